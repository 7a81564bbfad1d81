//! `throng duel`: two targets in turn.

use crate::run::throng;
use crate::servers::Target;

#[test]
fn both_sides_are_loaded_in_turn_over_new_connections() {
    let (a, b) = (Target::start("http"), Target::start("http"));
    let line = format!(
        "duel http://{}/ http://{}/ -c 3 --slice 2s --for 12s --json --out record",
        a.address, b.address
    );
    // Two pairs are too few for a verdict.
    let run = throng(&line).run().exits(5);
    let json = run.json();
    let found = &json["duel"];
    run.check(found["verdict"] == "too-short" && found["pairs"] == 2, "two pairs");
    run.check(found["ended_by"] == "budget", "to its end");
    for figure in found["figures"].as_array().expect("figures") {
        let is_cpu = figure["figure"] == "target_cpu_per_attempt";
        let is_known = figure["a"].is_number() && figure["b"].is_number();
        run.check(is_known, if is_cpu { "targets are on this host" } else { "both sides have it" });
    }
    let opened = json["connections"]["opened"].as_u64();
    run.check(opened > Some(6), "users open new connections in later slices");
    run.check(json["machines"].as_array().map(Vec::len) == Some(2), "a machine for each side");
    let record = run.folder().join("record");
    let report = throng("report --json").arg(record.display().to_string()).run().exits(5);
    report.check(report.json()["duel"] == *found, "the record has the same");
    let rerun = throng("rerun").arg(record.display().to_string()).run().exits(2);
    rerun.check(rerun.err.contains("cannot be rerun"), "it says so");
}

#[test]
fn a_missing_side_ends_the_duel() {
    let a = Target::start("http");
    let line = format!("duel http://{}/ http://127.0.0.1:1/ --slice 2s", a.address);
    let run = throng(&line).run().exits(4);
    run.check(run.err.contains("no attempt succeeded on side B"), "it is named");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let code = |line: &str, code: &str| {
        let run = throng(line).run().exits(2);
        run.check(run.err.contains(code), code);
    };
    code("duel http://127.0.0.1:1/", "duel-unclear");
    code("duel http://127.0.0.1:1/ ws://127.0.0.1:1/", "do not have the same steps");
    code("duel http://127.0.0.1:1/ http://127.0.0.1:2/ --slice 1s", "bad-value");
    code("duel http://127.0.0.1:1/ http://127.0.0.1:2/ -n 5", "--requests does not apply");
    let line = "duel http://127.0.0.1:1/ http://127.0.0.1:2/ --fail-if";
    let run = throng(line).arg("x p99 > +5%").run().exits(2);
    run.check(run.err.contains("unknown-step"), "a step that is not there");
}
