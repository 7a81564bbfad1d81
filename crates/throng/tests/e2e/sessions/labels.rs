//! Labels of runs and steps: in the record, in JSON, in the report, in JUnit; and thresholds by
//! them.

use crate::run::throng;
use crate::scenarios::{one_session, times};
use crate::servers::Target;

const STEPS: &str = "\
- {http: GET /, name: page, label: {tier: gold}}
- {http: GET /status/404, name: page, label: {tier: silver}}
- {transaction: visit, label: {tier: gold}, steps: [{http: GET /bytes/10}]}";

const HEAD: &str = "\
label: {release: 1.4, region: east, api_token: hush-hush}
thresholds:
  - http{tier:gold} errors = 0
  - page{tier:silver} errors > 99%
  - \"{tier:silver} count = 4\"
  - visit{tier:gold} count = 4";

#[test]
fn labels_are_in_all_outputs_of_a_run() {
    let target = Target::start("http");
    let text = one_session(&target.http(""), &format!("{}\n{HEAD}", times(4, 1)), STEPS);
    let line = "run scenario.yaml --json --out record --junit junit.xml --label region=west \
                --tag build=77";
    let run = throng(line).file("scenario.yaml", text).run().exits(0);
    let labels = serde_json::json!(
        {"api_token": "***", "build": "77", "region": "west", "release": "1.4"}
    );
    run.check(run.json()["run"]["labels"] == labels, "in JSON");
    run.check(run.row("steps", "page {tier:gold}")["labels"]["tier"] == "gold", "of a step");
    run.check(run.row("steps", "page {tier:gold}")["ok"] == 4, "its own row");
    run.check(run.row("steps", "page {tier:silver}")["failed"] == 4, "its own row");
    run.check(run.row("transactions", "visit")["labels"]["tier"] == "gold", "of a transaction");
    let read = |path: &str| std::fs::read_to_string(run.folder().join(path)).expect("a file");
    let info: serde_json::Value = serde_json::from_str(&read("record/run.json")).expect("JSON");
    run.check(info["labels"] == labels, "in the run directory");
    run.check(info["steps"][0]["labels"]["tier"] == "gold", "in the run directory");
    let junit = read("junit.xml");
    run.check(junit.contains("<property name=\"label.release\" value=\"1.4\"/>"), &junit);
    for file in ["junit.xml", "record/run.json", "record/scenario.yaml"] {
        run.check(!read(file).contains("hush-hush"), file);
    }
    let report = throng("report").arg(run.folder().join("record")).run().exits(0);
    report.says(&["release=1.4", "region=west", "build=77", "page {tier:gold}"]);
}

#[test]
fn labels_of_the_command_line_are_checked_as_those_of_a_scenario() {
    let line = "bench http://127.0.0.1:9/ -n 1 --no-record --label";
    throng(line).arg("release=1.4\nbeta").run().exits(2).says(&["bad-label", "a line break"]);
    throng(line).arg("=x").run().exits(2).says(&["bad-label", "the name is empty"]);
    throng(line).arg("release").run().exits(2).says(&["write NAME=VALUE"]);
}
