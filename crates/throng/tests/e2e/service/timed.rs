//! Events at set times of a run: what they do happens for real, once, and costs the run nothing.

use serde_json::Value;

use crate::run::{Run, binary, throng};
use crate::servers::Target;

#[track_caller]
fn event(run: &Run, name: &str) -> Value {
    let json = run.json();
    let all = json["events"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|event| event["name"] == name);
    found.unwrap_or_else(|| panic!("there is no event {name}\n{run}"))
}

#[track_caller]
fn ended(run: &Run, name: &str, status: &str, detail: &str) -> Value {
    let event = event(run, name);
    let detail_is = event["detail"].as_str().is_some_and(|it| it.contains(detail));
    run.check(event["status"] == status && detail_is, &event.to_string());
    event
}

fn scenario(target: &str, load: &str, events: &str) -> String {
    format!(
        "name: timed\ntarget: {target}\nsessions: {{u: {{steps: [{{http: GET /}}, \
         {{think: 50ms}}]}}}}\nload: [{{name: steady, {load}}}]\nevents:\n{events}"
    )
}

/// A free port, as far as one can know.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn a_target_that_is_killed_and_started_again_is_told_with_its_times() {
    let at = format!("127.0.0.1:{}", free_port());
    // The servers end by themselves, whatever becomes of the test. They answer so slowly that what
    // a busy machine adds is no change of the response times.
    let serve = "target http --latency 100ms --listen";
    let serve = format!("timeout 25 {} {serve} {at}", binary().display());
    let target = throng("--version").run().exits(0);
    let folder = target.folder().display().to_string();
    let start = format!("{serve} >/dev/null 2>&1 & echo $! > {folder}/pid");
    let kill = format!("kill -9 $(ps -o pid= --ppid $(cat {folder}/pid)) $(cat {folder}/pid)");
    let first = std::process::Command::new("/bin/sh").args(["-c", &start]).status();
    assert!(first.is_ok_and(|status| status.success()));
    let events = format!(
        "  - {{name: restart, at: steady + 6200ms, run: \"{kill}; sleep 0.5; {start}\"}}\n  \
         - {{name: end, at: 13900ms, run: \"{kill}\"}}\n"
    );
    let more = "thresholds: ['errors < 100% within 2s of \"restart\"', \
                'errors = 0% within 2s of restart']\n";
    let text = scenario(&format!("http://{at}"), "users: 8, for: 14s", &(events + more));
    let run = throng("run scenario.yaml --json --allow-commands --out record");
    let run = run.file("scenario.yaml", text).run().exits(1);
    let restart = ended(&run, "restart", "done", "exit code 0");
    let late = restart["at_ns"].as_u64().zip(restart["due_ns"].as_u64());
    run.check(late.is_some_and(|(at, due)| at >= due && at - due < 1_000_000_000), "in time");
    let changed = restart["changed"].to_string();
    run.check(changed.contains("error_share"), &changed);
    for part in ["before", "during", "after"] {
        run.check(restart[part].is_object(), part);
    }
    let verdicts: Vec<Value> =
        run.json()["thresholds"].as_array().into_iter().flatten().cloned().collect();
    run.check(verdicts.len() == 2 && verdicts[0]["verdict"] == "met", &format!("{verdicts:?}"));
    run.check(verdicts[1]["verdict"] == "not-met", &format!("{verdicts:?}"));
    let report = throng("report --details").arg(run.folder().join("record")).run();
    report.says(&["restart, before", "restart, during", "errors"]);
}

#[test]
fn hanging_flooding_or_missing_commands_do_not_affect_the_run() {
    let target = Target::start("http");
    let events = "  - {name: hang, at: 100ms, run: \"trap '' TERM; sleep 60\", timeout: 500ms}\n  \
                  - {name: flood, at: 100ms, run: [yes, flooded], timeout: 500ms}\n  \
                  - {name: gone, at: 200ms, run: [/no/such/program]}\n  \
                  - {name: wrong, at: 300ms, run: exit 3}\n  \
                  - {name: late, after: wrong + 1h, mark: later}\n  \
                  - {name: long, at: 1500ms, run: sleep 60}\n  \
                  - {name: never, when: errors > 50% over 1s, mark: errors}\n  \
                  - {name: asked, at: 1s, http: GET http://ADDRESS/}\n";
    let events = events.replace("ADDRESS", &target.address.to_string());
    let text = scenario(&target.http(""), "users: 4, for: 2500ms", &events);
    let run = throng("run scenario.yaml --json --allow-commands").file("scenario.yaml", text);
    let run = run.run().exits(0);
    ended(&run, "hang", "timed-out", "killed after 500ms");
    let flood = ended(&run, "flood", "timed-out", "killed");
    let output = flood["output"].as_str().unwrap_or_default();
    run.check(output.starts_with("flooded\n") && output.len() < 2200, output);
    ended(&run, "gone", "failed", "/no/such/program");
    ended(&run, "wrong", "failed", "exit code 3");
    ended(&run, "late", "not-reached", "ended before the scheduled time after `wrong`");
    ended(&run, "long", "stopped", "the run ended");
    ended(&run, "never", "not-reached", "was never true");
    ended(&run, "asked", "done", "status 200");
    let warnings = run.json()["outcome"]["warnings"].to_string();
    run.check(warnings.contains("event-failed") && warnings.contains("event-never"), &warnings);
    target.comes_to("/requests", run.figure("/total/count") as u64 + 1);
}

#[test]
fn nothing_is_executed_that_was_not_allowed() {
    let target = Target::start("http");
    let events = "  - {name: touch, at: 100ms, run: \"touch executed\"}\n";
    let text = scenario(&target.http(""), "users: 2, for: 1s", events);
    let run = throng("run scenario.yaml").file("scenario.yaml", &text).run().exits(2);
    run.says(&["commands-not-allowed", "command: touch executed", "--allow-commands"]);
    run.check(!run.folder().join("executed").exists(), "it was executed");
    target.comes_to("/requests", 0);
    let check = throng("check scenario.yaml").file("scenario.yaml", &text).run().exits(0);
    check.says(&["events", "100ms", "run: touch executed", "--allow-commands"]);
    check.check(!check.folder().join("executed").exists(), "it was executed");
    let allowed = throng("run scenario.yaml").file("scenario.yaml", &text);
    let allowed = allowed.env("THRONG_ALLOW_COMMANDS", "1").run().exits(0);
    allowed.check(allowed.folder().join("executed").exists(), "it was not executed");
}

#[test]
fn of_several_processes_only_one_acts_and_all_are_amended() {
    let target = Target::start("http");
    let events = "  - {name: once, at: 300ms, run: \"echo x >> log; cat log\"}\n  \
                  - {name: more, after: once + 200ms, amend: users 8}\n";
    let text = scenario(&target.http(""), "users: 4, for: 3s", events);
    let run = throng("run scenario.yaml --json --allow-commands --processes 2");
    let run = run.file("scenario.yaml", text).run().exits(0);
    let once = ended(&run, "once", "done", "exit code 0");
    run.check(once["output"] == "x", &once.to_string());
    ended(&run, "more", "done", "users 8");
    run.has("/users/present_max", 8);
}
