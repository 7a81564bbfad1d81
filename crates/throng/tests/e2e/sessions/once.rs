//! What is done once in a run: the books of the target count it, whatever the number of users.

use serde_json::Value;

use crate::run::{Run, throng};
use crate::servers::Target;

const SESSION: &str = "\
sessions:
  user:
    steps:
      - {http: \"GET /bytes/${setup.item}\", name: load, check: {size: 42}}
      - {http: POST /echo, json: {n: \"${setup.list[1]}\"}, check: {json: {n: b}}}";

const MAKE: &str = "{http: POST /echo?made, name: make, json: {id: 42, list: [a, b]}, save: {item: json.id, \
     list: json.list}}";

const TEARDOWN: &str = "teardown: [{http: \"GET /bytes/${setup.item + 1}\", name: remove}]";

fn scenario(target: &Target, setup: &str, teardown: &str, load: &str) -> String {
    let target = target.http("");
    format!("name: once\ntarget: {target}\nsetup:\n{setup}\n{SESSION}\nload: {load}\n{teardown}\n")
}

/// How the setup or the teardown went, of the summary.
#[track_caller]
fn once(run: &Run, part: &str) -> Value {
    let json = run.json();
    let all = json["once"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|once| once["part"] == part);
    found.unwrap_or_else(|| panic!("there is no {part}\n{run}"))
}

fn outcome(run: &Run, part: &str) -> String {
    once(run, part)["outcome"].as_str().unwrap_or_default().to_string()
}

#[test]
fn setup_and_teardown_run_once_for_any_number_of_users_and_shards() {
    let target = Target::start("http");
    let setup = format!("  - {MAKE}");
    let text = scenario(&target, &setup, TEARDOWN, "[{iterations: 60, users: 6}]");
    let run = throng("run scenario.yaml --json --shards 3 --out record")
        .file("scenario.yaml", text)
        .run()
        .exits(0);
    // 60 times two, and two more: one before and one after.
    target.comes_to("/requests", 122);
    run.has("/total/ok", 120);
    run.has("/total/count", 120);
    for part in ["setup", "teardown"] {
        let once = once(&run, part);
        run.check(once["outcome"] == "done", &once.to_string());
        run.check(once["steps"][0]["ok"] == 1, &once.to_string());
        run.check(once["steps"].as_array().map(Vec::len) == Some(1), &once.to_string());
    }
    let steps = run.json()["steps"].to_string();
    run.check(!steps.contains("make") && !steps.contains("remove"), "they are in no other row");
    let report = throng("report --json").arg(run.folder().join("record")).run().exits(0);
    report.check(report.json()["once"] == run.json()["once"], "the record says the same");
}

#[test]
fn a_failed_setup_starts_no_load_and_is_torn_down() {
    let target = Target::start("http");
    let setup = format!("  - {MAKE}\n  - {{http: GET /status/503, name: warm}}\n  - http: GET /");
    let text = scenario(&target, &setup, TEARDOWN, "[{iterations: 60, users: 6}]");
    let run = throng("run scenario.yaml --json --out record --junit junit.xml")
        .file("scenario.yaml", text)
        .run()
        .exits(4);
    // Two of the setup, of which one fails, and the teardown.
    target.comes_to("/requests", 3);
    run.has("/total/count", 0);
    let setup = once(&run, "setup");
    run.check(setup["outcome"] == "failed", &setup.to_string());
    run.check(setup["failure"]["step"] == "warm", &setup.to_string());
    run.check(setup["failure"]["place"] == "scenario.yaml:5:5", &setup.to_string());
    run.check(setup["failure"]["cause"] == "status-unexpected", &setup.to_string());
    run.check(outcome(&run, "teardown") == "done", "it is torn down all the same");
    let report = throng("report --details").arg(run.folder().join("record")).run().exits(4);
    report.says(&["the setup failed", "`warm` at scenario.yaml:5:5", "got 503"]);
    let junit = std::fs::read_to_string(run.folder().join("junit.xml")).expect("a file");
    run.check(junit.contains("type=\"setup-failed\""), &junit);
}

#[test]
fn a_step_of_a_setup_may_fail_if_declared() {
    let target = Target::start("http");
    let tolerated = "  - {http: GET /status/503, on_error: count}";
    let text =
        scenario(&target, &format!("{tolerated}\n  - {MAKE}"), "", "[{iterations: 1, users: 1}]");
    let line = "run scenario.yaml --json --no-record";
    let run = throng(line).file("scenario.yaml", text).run().exits(0);
    run.check(outcome(&run, "setup") == "done", "it came to its end");
    let stops = "  - {stop: not today}";
    let text = scenario(&target, &format!("  - {MAKE}\n{stops}"), "", "[{users: 1, for: 1s}]");
    let run = throng(line).file("scenario.yaml", text).run().exits(4);
    run.check(once(&run, "setup")["failure"]["detail"] == "not today", "a rule ended it");
}

#[test]
fn a_setup_has_a_time_limit() {
    let target = Target::start("http --latency 60s");
    let setup = "  timeout: 300ms\n  steps: [{http: GET /}]";
    let text = format!(
        "target: {}\nsetup:\n{setup}\nsessions: {{a: {{steps: [{{http: GET /}}]}}}}\n\
         load: [{{users: 1, for: 1s}}]\n",
        target.http("")
    );
    let line = "run scenario.yaml --json --no-record";
    let run = throng(line).file("scenario.yaml", text).run().exits(4);
    run.check(outcome(&run, "setup") == "timed-out", &run.out);
}

#[test]
fn a_failed_teardown_is_reported_and_does_not_affect_thresholds() {
    let target = Target::start("http");
    let teardown = "teardown: [{http: GET /status/500, name: remove}]";
    let setup = format!("  - {MAKE}");
    let text = scenario(&target, &setup, teardown, "[{iterations: 4, users: 2}]");
    let run =
        throng("run scenario.yaml --json --no-record").file("scenario.yaml", text).run().exits(0);
    let warnings = run.json()["outcome"]["warnings"].to_string();
    run.check(warnings.contains("teardown-failed"), &warnings);
    run.check(warnings.contains("`remove` at scenario.yaml:11:12"), &warnings);
}

#[test]
fn an_interrupted_run_is_torn_down() {
    let target = Target::start("http");
    let setup = format!("  - {MAKE}");
    let load = "[{users: 2, for: 1h}]";
    let text = scenario(&target, &setup, TEARDOWN, load);
    let child = throng("run scenario.yaml --json --no-record").file("scenario.yaml", text).start();
    child.until("requests", || target.counts("/requests") >= 10);
    child.signal(libc::SIGINT);
    let run = child.wait().exits(130);
    run.check(outcome(&run, "teardown") == "done", "after the first Ctrl-C");
    run.check(once(&run, "teardown")["steps"][0]["ok"] == 1, "once");
}

#[test]
fn an_interrupted_setup_is_torn_down() {
    let target = Target::start("http");
    let setup = "  - {http: GET /, name: wait}\n  - {think: 50s}\n  - http: GET /never";
    let text = scenario(&target, setup, "teardown: [{http: GET /gone}]", "[{users: 1, for: 1h}]");
    let text = text.replace("${setup.item}", "42").replace("${setup.list[1]}", "b");
    let child = throng("run scenario.yaml --json --no-record").file("scenario.yaml", text).start();
    child.until("requests", || target.counts("/requests") >= 1);
    child.signal(libc::SIGINT);
    let run = child.wait().exits(130);
    run.check(outcome(&run, "setup") == "interrupted", &run.out);
    run.check(outcome(&run, "teardown") == "done", &run.out);
    target.comes_to("/requests", 2);
}

#[test]
fn check_and_try_show_setup_and_teardown() {
    let target = Target::start("http");
    let setup = format!("  - {MAKE}");
    let text = scenario(&target, &setup, TEARDOWN, "[{iterations: 60, users: 6}]");
    let check = throng("check scenario.yaml").file("scenario.yaml", &text).run().exits(0);
    check.says(&["setup · once per run, timeout 1m", "teardown · once per run", "120 requests"]);
    let tried = throng("try scenario.yaml").file("scenario.yaml", &text).run().exits(0);
    tried.says(&["saved item = 42", "session user, user 1", "4 steps, all ok"]);
    target.comes_to("/requests", 4);
    let failing = text.replace("POST /echo?made", "POST /status/500");
    let tried = throng("try scenario.yaml").file("scenario.yaml", failing).run().exits(1);
    tried.says(&["the setup failed, so no session runs"]);
    tried.check(!tried.out.contains("session user"), "no session is tried");
}
