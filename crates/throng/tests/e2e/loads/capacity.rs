//! A search for the capacity of a service: what it refuses, and what it says where it ends early.
//! Whole searches take minutes: the tests of `throng-load` run them on services with a known law.

use std::time::Duration;

use serde_json::Value;

use crate::machines::fleet::Fleet;
use crate::run::{Run, throng, throng_first};
use crate::servers::{Target, free_port};

/// A scenario with a rate, and so many users.
fn scenario(target: &Target, load: &str, thresholds: &str) -> String {
    format!(
        "target: {}\nsessions: {{one: {{steps: [{{http: GET /}}]}}}}\nload: [{load}]\n\
         thresholds: {thresholds}\n",
        target.http("")
    )
}

#[track_caller]
fn refused(load: &str, thresholds: &str, line: &str, texts: &[&str]) {
    let target = Target::start("http");
    let text = scenario(&target, load, thresholds);
    let run = throng(&format!("capacity s.yaml {line}")).file("s.yaml", text).run().exits(2);
    run.says(texts);
    run.says(&["nothing was sent"]);
    assert_eq!(target.counts("/requests"), 0);
}

const PACED: &str = "{iterations: 100/s, users: 50, for: 5s}";

#[test]
fn impossible_searches_are_refused() {
    refused(PACED, "[]", "", &["requires thresholds", "--threshold 'http p99 < 50ms'"]);
    refused(PACED, "[http p99 < 50ms]", "--budget 10s", &["a search needs at least"]);
    refused(PACED, "[http rate > 50/s]", "", &["depends on the load", "--at-least"]);
    refused("{users: 5, for: 5s}", "[errors < 1%]", "", &["closed model", "--vary rate"]);
    refused(PACED, "[errors < 1%]", "--vary nobody", &["no load `nobody`"]);
    refused(PACED, "[errors < 1%]", "--from 90/s --max 50/s", &["above --max"]);
}

fn capacity(target: &Target, thresholds: &str, line: &str) -> Run {
    let text = scenario(target, PACED, thresholds);
    let line = format!("capacity s.yaml --json --out record {line}");
    // A generator that is late ends a search.
    throng_first(&line).file("s.yaml", text).run()
}

#[test]
fn a_first_level_that_fails_ends_the_search() {
    let target = Target::start("http --errors 30%");
    let run = capacity(&target, "[errors < 1%]", "--from 20/s").exits(1);
    let found = run.json()["capacity"].clone();
    run.check(found["carries"].is_null() && found["low"].is_null(), "nothing is promised");
    run.check(found["levels"].as_array().map(Vec::len) == Some(1), "nothing higher is tried");
    run.check(found["fails_by"].to_string().contains("errors < 1%"), "by what");
    run.check(run.json()["total"]["count"] == target.counts("/requests"), "the books");
    // From its record, the search is repeated and not the load of the scenario.
    let again = throng(&format!("rerun {} --json", run.folder().join("record").display())).run();
    let again = again.exits(1);
    again.check(again.json()["capacity"]["levels"][0]["load"] == 20.0, "the same first level");
}

#[test]
fn a_fleet_searches_as_one_machine_does() {
    let fleet = Fleet::start(&["anna", "berta"]);
    let target = Target::start("http");
    let text = scenario(&target, PACED, "[http p99 < 1s, errors < 1%]");
    let line = "capacity s.yaml --json --from 50/s --max 60/s --confirm 3s --no-overload";
    let keys = format!("--fleet={}", fleet.keys.display());
    let run = throng(line).arg(keys).file("s.yaml", text).run().exits(0);
    let (whole, found) = (run.json(), run.json()["capacity"].clone());
    run.check(found["ended_by"] == "max" && found["low"] == 60.0, "the highest level");
    run.check(found["levels"].as_array().is_some_and(|it| it.len() >= 2), "both levels");
    run.check(whole["total"]["count"] == target.counts("/requests"), "the books");
    let works = |machine: &Value| machine["generator"]["lateness"].is_object();
    let machines = whole["machines"].as_array().cloned().unwrap_or_default();
    run.check(machines.len() == 2 && machines.iter().all(works), "both machines");
}

#[test]
fn a_service_that_sustains_the_highest_level_has_at_least_that_capacity() {
    let target = Target::start("http");
    let line = "--from 50/s --max 50/s --confirm 3s --no-overload --at-least 40/s";
    let run = capacity(&target, "[http p99 < 1s, errors < 1%]", line).exits(0);
    let found = run.json()["capacity"].clone();
    run.check(found["ended_by"] == "max" && found["low"] == 50.0, "the highest level");
    run.check(run.took < Duration::from_secs(60), "it ends");
    run.check(run.json()["total"]["count"] == target.counts("/requests"), "the books");
    let record = run.folder().join("record");
    let again = throng(&format!("report --json {}", record.display())).run();
    again.check(again.json()["capacity"] == found, "the record has the same");
    let text = throng(&format!("report {}", record.display())).run();
    text.says(&["at least 50/s"]);
}

#[test]
fn a_missing_target_has_no_capacity() {
    let line = format!("bench http://127.0.0.1:{}/ --capacity", free_port());
    throng(&line).arg("http p99 < 50ms").run().exits(4);
}

#[test]
fn a_public_address_needs_a_yes() {
    let run = throng("bench http://192.0.2.1/ --capacity").arg("errors < 1%").run().exits(2);
    run.says(&["public address", "--yes", "nothing was sent"]);
}
