//! `throng plan`: what so many users need, by the sizes of this build or by an earlier run.

use crate::run::{Run, throng};
use crate::servers::Target;

/// `users` is what `--set` changes.
fn members(target: &str) -> String {
    format!(
        r#"name: members who stay
vars: {{users: 2000}}
target: {{addresses: ["{target}"]}}
sessions:
  member:
    steps:
      - connect: /acc
      - request: {{json: {{seq: "${{user.id}}-1", cmd: login, data: {{userId: "u${{user.id}}"}}}}}}
        expect: {{json: {{cmd: login, response: {{code: 200}}}}}}
      - stay: forever
        heartbeat: {{json: {{seq: "b", cmd: heartbeat, data: {{}}}}, every: 2s, lost_after: 2s}}
load:
  - {{name: fill, users: {{to: "${{vars.users}}", rate: 800/s}}}}
  - {{name: hold, for: 3s}}
  - {{name: drain, users: {{to: 0, rate: 10_000/s}}}}
"#
    )
}

pub(crate) fn number(run: &Run, pointer: &str) -> f64 {
    let json = run.json();
    let found = json.pointer(pointer).and_then(serde_json::Value::as_f64);
    run.check(found.is_some(), &format!("there is no number {pointer}"));
    found.unwrap_or_default()
}

#[test]
fn a_scenario_without_a_run_is_estimated_by_sizes() {
    let text = members("ws://192.0.2.1:80");
    let plan = |line: &str| throng(line).file("im.yaml", &text).run().exits(0);
    let line = "plan im.yaml --users 1M --machine 8cores,16GiB --explain";
    let run = plan(line);
    run.says(&[
        "1,000,000 concurrent users that connect to ws://192.0.2.1",
        "500,000 heartbeats/s",
        "from the object sizes in this build, +15 %",
        "1 table of 1,048,576",
        "each machine needs 16 source addresses",
        "memory per user (bytes)",
        "throng run im.yaml --set users=10000\n",
        "throng doctor im.yaml --users 1000000",
        "throng run im.yaml --set users=1000000",
        "ip addr add",
        "source: {addresses: 198.18.0.10..",
    ]);
    let widest = run.out.lines().map(|line| line.chars().count()).max();
    run.check(widest <= Some(80), "a line is longer than a terminal is wide");
    let run = plan("plan im.yaml --users 1M --machine 8cores,16GiB --json");
    let bytes = number(&run, "/cost/user_bytes");
    run.check((500.0..1200.0).contains(&bytes), "a user is not as small as promised");
    run.check(run.json()["cost"]["measured"].is_null(), "measured by nothing");
    run.check(run.json()["needs"][0]["resource"] == "memory", "the first need");
    run.check(run.json()["users"] == 1_000_000, "the users");
}

#[test]
fn a_run_measures_what_the_next_one_needs() {
    let target = Target::start("im");
    let text = members(&target.url("ws", ""));
    let run = throng("run im.yaml --quiet --out before").file("im.yaml", &text).run();
    // What it cost is measured on a busy host too, whose latencies are none of the target's.
    run.check([0, 5].contains(&run.code()), "it did not run");
    let record = run.folder().join("before");
    let plan = |line: &str| throng(line).file("im.yaml", &text).arg(&record).run().exits(0);
    let run = plan("plan im.yaml --users 100k --json --from");
    let user = number(&run, "/cost/measured/user_bytes");
    run.check((500.0..2_500.0).contains(&user), "the bytes of a user are not measured well");
    let connect = number(&run, "/cost/measured/connect_cpu_ns");
    run.check((5_000.0..5_000_000.0).contains(&connect), "the CPU of a connection");
    run.check(run.json()["target_is_local"] == true, "both ends are here");
    run.check(number(&run, "/needs/0/needed") > 100_000.0 * (user + 4_000.0), "memory");
    plan("plan im.yaml --explain --from").says(&["measured in run before, with 2,000 users"]);
    // The same in Chinese, and of another scenario.
    let other = text.replace("members who stay", "others");
    let run = throng("plan im.yaml --lang zh --from").file("im.yaml", other).arg(&record).run();
    run.exits(0).says(&["那次运行是另一个场景：`members who stay`", "实测"]);
}

#[test]
fn the_peak_of_a_day_is_shown_with_its_numbers() {
    let line = "plan --pv 3M --per-machine 58/s";
    throng(line).run().exits(0).says(&[
        "(3,000,000 x 80%) / (86,400 s x 20%) = 139/s",
        "139/s / 58/s per machine = 3 service machines",
        "throng bench http://HOST/ -c 14 --rate 139/s",
    ]);
    let run = throng("plan --pv 3M --share 50% --of-day 10% --json").run().exits(0);
    run.check((number(&run, "/peak/per_s") - 173.61).abs() < 0.01, "the formula");
    throng("plan --pv 3M")
        .run()
        .exits(0)
        .says(&["give `--per-machine RATE`, or run this scenario"]);
}

#[test]
fn without_a_scenario_there_are_two_usual_users() {
    throng("plan --users 1M").run().exits(0).says(&[
        "idle WebSocket users",
        "throng doctor --users ",
        "throng bench ws://HOST/ -c ",
    ]);
    throng("plan --rate 50k/s")
        .run()
        .exits(0)
        .says(&["keep-alive HTTP users", "50,000 requests/s"]);
    throng("plan --users 1M --lang zh").run().exits(0).says(&["空闲的 WebSocket 用户", "要做的事"]);
}

#[test]
fn impossible_plans_are_reported_with_a_fix() {
    for (line, cure) in [
        ("plan", "give a scenario, --users N"),
        ("plan --users 0", "at least 1"),
        ("plan --users 9_000_000_000_000", "users are too many for a plan"),
        ("plan --users 5 --machine 16", "8cores,16GiB"),
        ("plan --users 5 --machine 16,8", "8cores,16GiB"),
        ("plan --pv 5 --share 0%", "more than 0"),
        ("plan --pv 5 --of-day 200%", "at most 100%"),
        ("plan --share 5%", "--pv"),
        ("plan --pv 5 --rate 5", "cannot be used with"),
        ("plan nothing.yaml", "give the path of a scenario file"),
        ("plan --users 5 --from nowhere", "is not a run directory"),
    ] {
        let run = throng(line).run().exits(2);
        run.check(run.err.contains(cure), &format!("`{line}` does not say `{cure}`"));
    }
}
