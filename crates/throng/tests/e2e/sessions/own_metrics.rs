//! What a scenario counts and measures of its own: exact over shards, in report, JSON and
//! thresholds.

use crate::run::throng;
use crate::scenarios::{one_session, times};
use crate::servers::Target;

const STEPS: &str = "\
- {http: POST /echo, json: {n: \"${iteration}\", ms: 250}, save: {n: json.n, ms: json.ms}}
- count: orders
- {count: items, by: \"${saved.n}\"}
- {measure: basket, value: \"${saved.n * 0.5}\"}
- {measure: server time, value: \"${saved.ms}\", unit: ms}";

const THRESHOLDS: &str = "\
thresholds: [orders count = 12, items count = 30, basket max = 2, basket min = 0.5, \
     server time max = 250ms, server time p95 < 251ms, http count = 12, count = 12]";

#[test]
fn counters_and_trends_are_exact_over_shards() {
    let target = Target::start("http");
    // Twelve users: 1, 2, 3 and 4 items, each three times.
    let load = "load: [{iterations: 12, users: 12}]".to_string();
    let steps = STEPS.replace("${iteration}", "${1 + user.id % 4}");
    let text = one_session(&target.http(""), &format!("{load}\n{THRESHOLDS}"), &steps);
    let line = "run scenario.yaml --json --out record --shards 3";
    let run = throng(line).file("scenario.yaml", text).run().exits(0);
    let row = |name: &str| run.row("own", name);
    run.check(row("orders")["count"] == 12, "a counter");
    run.check(row("items")["count"] == 30, "a counter with numbers of its own");
    run.check(row("items")["values"].is_null(), "a counter has no values");
    run.check(row("basket")["values"]["max"] == 2.0, &row("basket").to_string());
    run.check(row("basket")["values"]["mean"] == 1.25, &row("basket").to_string());
    run.check(row("server time")["values"]["max"] == 250e6, &row("server time").to_string());
    run.has("/total/count", 12);
    let report = throng("report --details").arg(run.folder().join("record")).run().exits(0);
    report.says(&["counters and trends", "orders", "basket", "1.25", "250ms"]);
}

#[test]
fn a_value_that_is_not_a_number_is_an_evaluation_error() {
    let target = Target::start("http");
    let steps = "- http: GET /\n- {count: odd, by: \"${user.id - 2}\"}\n\
                 - {measure: text, value: \"${'x' + string(user.id)}\"}";
    let text = one_session(&target.http(""), &times(3, 3), steps);
    let line = "run scenario.yaml --json --no-record";
    let run = throng(line).file("scenario.yaml", text).run();
    run.check(run.row("own", "odd")["count"] == 1, "0 and 1, and nothing of -1");
    run.check(run.row("own", "text")["count"] == 0, "no value");
    run.check(run.row("steps", "expressions")["failed"] == 3, "told as those of `set`");
}
