//! What went to which address, where a name has several, and what was done of which session: as
//! the books of the targets have it.

use serde_json::Value;

use crate::run::{Run, throng};
use crate::servers::Target;

/// Two servers at one port, the second of which is slow and fails.
fn both() -> (Target, Target) {
    let good = Target::start("http --latency 2ms");
    let port = good.address.port();
    let bad = Target::start_on(&format!("127.0.0.2:{port}"), "http --latency 60ms --errors 30%");
    (good, bad)
}

fn row<'a>(json: &'a Value, target: &Target) -> &'a Value {
    let address = target.address.to_string();
    let mut rows = json["targets"].as_array().expect("rows").iter();
    rows.find(|row| row["address"] == address).unwrap_or_else(|| panic!("no row of {address}"))
}

/// The rows are what the targets have counted, and together all that was done.
#[track_caller]
fn add_up(run: &Run, targets: &[&Target]) {
    let json = run.json();
    let of = |row: &Value, name: &str| row[name].as_u64().expect("a count");
    for target in targets {
        let row = row(&json, target);
        run.check(of(row, "count") == target.counts("/requests"), "its requests");
        run.check(of(row, "failed") == target.counts("/errors_sent"), "its errors");
        let accepted = target.counts("/connections/accepted");
        run.check(of(row, "connections_opened") == accepted, "its connections");
    }
    let rows = json["targets"].as_array().expect("rows");
    run.check(rows.len() == targets.len(), "a row for each");
    let names = ["begun", "count", "ok", "failed", "interrupted", "received_bytes", "sent_bytes"];
    for name in names {
        let sum: u64 = rows.iter().map(|row| of(row, name)).sum();
        run.check(sum == of(&json["total"], name), &format!("all together: {name}"));
    }
    let sum: u64 = rows.iter().map(|row| of(&row["latency"], "count")).sum();
    run.check(sum == of(&json["total"]["latency"], "count"), "their times");
}

#[test]
fn the_slow_and_failing_address_is_named() {
    let (good, bad) = both();
    let port = good.address.port();
    let line = format!(
        "http://shop.test:{port}/ --resolve shop.test:{port}:127.0.0.1,127.0.0.2 -c 8 -n 400"
    );
    let run = throng(&format!("bench {line} --json --shards 2 --out record")).run();
    add_up(&run, &[&good, &bad]);
    let json = run.json();
    let (fast, slow) = (row(&json, &good), row(&json, &bad));
    run.check(fast["failed"] == 0 && slow["failed"].as_u64() > Some(0), "who fails");
    run.check(slow["latency"]["min_ns"].as_u64() >= Some(60_000_000), "who is slow");
    run.check(fast["latency"]["p50_ns"].as_u64() < Some(40_000_000), "who is not");
    let record = run.folder().join("record");
    let text = throng(&format!("report --details {}", record.display())).run();
    text.says(&["address", &good.address.to_string(), &bad.address.to_string()]);
    let again = throng(&format!("report --json {}", record.display())).run();
    again.check(again.json()["targets"] == json["targets"], "the record has the same");
}

#[test]
fn several_processes_give_the_rows_of_one() {
    let (good, bad) = both();
    let scenario = format!(
        "target: [{}, {}]\nsessions: {{one: {{steps: [{{http: GET /}}]}}}}\n\
         load: [{{iterations: 200, users: 12}}]\n",
        good.http(""),
        bad.http("")
    );
    let line = "run s.yaml --json --shards 1 --processes 3";
    let run = throng(line).file("s.yaml", scenario).run();
    add_up(&run, &[&good, &bad]);
}

/// Nobody listens at the second address of the name.
const CLOSED: &str = "127.0.0.3";

#[test]
fn an_address_that_refuses_is_skipped_and_named() {
    let good = Target::start("http");
    let port = good.address.port();
    let closed = format!("{CLOSED}:{port}");
    for order in [format!("127.0.0.1,{CLOSED}"), format!("{CLOSED},127.0.0.1")] {
        let before = good.counts("/connections/accepted");
        let resolve = format!("--resolve shop.test:{port}:{order}");
        let line = format!("bench http://shop.test:{port}/ {resolve} -c 8 -n 80 --no-keepalive");
        let run = throng(&format!("{line} --json --out record")).run().exits(0);
        run.has("/total/ok", 80);
        run.has("/total/failed", 0);
        let json = run.json();
        let row_of = |address: &str| {
            let mut rows = json["targets"].as_array().expect("rows").iter();
            rows.find(|row| row["address"] == address).expect("a row").clone()
        };
        let (good_row, closed_row) = (row_of(&good.address.to_string()), row_of(&closed));
        let of = |row: &Value, name: &str| row[name].as_u64().expect("a count");
        let passed_over = of(&closed_row, "connections_passed_over");
        run.check(passed_over >= 30, "connections are spread, and began there");
        run.check(of(&closed_row, "connections_attempted") == passed_over, "all of them");
        run.check(of(&closed_row, "connections_failed") == 0, "none of them failed");
        let opened = good.counts("/connections/accepted") - before;
        run.check(of(&good_row, "connections_opened") == opened, "the other has them all");
        run.check(of(&good_row, "connections_passed_over") == 0, "and refused none");
        // A busy host has a warning of its own before it.
        let mut warnings = json["outcome"]["warnings"].as_array().expect("warnings").iter();
        let warning = warnings.find(|warning| warning["code"] == "address-refused");
        let note = warning.and_then(|warning| warning["notes"][0].as_str()).unwrap_or_default();
        run.check(note.contains(&closed) && note.contains(&passed_over.to_string()), note);
        let record = run.folder().join("record");
        let text = throng(&format!("report --details {}", record.display())).run();
        text.says(&["address-refused", &closed, "unopened"]);
    }
}

/// The one user of a setup has one of the addresses, whichever comes first.
#[test]
fn setup_and_lasting_connections_skip_an_address_that_refuses() {
    let target = Target::start("echo");
    let port = target.address.port();
    for order in [["127.0.0.1", CLOSED], [CLOSED, "127.0.0.1"]] {
        let [first, second] = order;
        let scenario = format!(
            "target: ws://shop.test:{port}
connection: {{resolve: {{\"shop.test:{port}\": [{first}, {second}]}}}}
setup: [connect, {{request: {{text: hello}}}}]
sessions: {{one: {{steps: [connect, {{request: {{text: hello}}}}, disconnect]}}}}
load: [{{iterations: 20, users: 4}}]
"
        );
        let run = throng("run s.yaml --json --shards 2").file("s.yaml", scenario).run().exits(0);
        run.has("/total/failed", 0);
        run.check(run.json()["once"][0]["outcome"] == "done", "the setup is done");
    }
}

#[test]
fn every_address_that_refuses_is_named() {
    let port = Target::start("http").address.port();
    let both = format!("--resolve shop.test:{port}:127.0.0.4,{CLOSED}");
    let run = throng(&format!("bench http://shop.test:{port}/ {both} -c 4 -n 40 --json")).run();
    run.check(run.json()["total"]["ok"] == 0, "nobody is there");
    let json = run.json().to_string();
    run.check(json.contains(&format!("127.0.0.4:{port}: ")), "the first is named");
    run.check(json.contains(&format!("{CLOSED}:{port}: ")), "and the second");
    run.check(!json.contains("address-refused"), "no other one accepted anything");
    let sum = |name: &str| -> u64 {
        let json = run.json();
        let rows = json["targets"].as_array().expect("rows").iter();
        rows.map(|row| row[name].as_u64().expect("a count")).sum()
    };
    run.check(sum("connections_failed") == sum("failed"), "all of them failed");
    run.check(sum("connections_passed_over") == 0, "none was opened elsewhere");
}

#[test]
fn one_address_has_no_row() {
    let good = Target::start("http");
    let run = throng(&format!("bench {} -c 4 -n 40 --json --out record", good.http("/"))).run();
    run.check(run.json()["targets"].as_array().is_some_and(Vec::is_empty), "nothing to tell apart");
    let lines = std::fs::read_to_string(run.folder().join("record/intervals.ndjson"));
    run.check(!lines.expect("lines").contains("\"targets\""), "nothing is written");
}

#[test]
fn iterations_are_distinguished_by_session() {
    let target = Target::start("http --latency 2ms");
    let scenario = format!(
        "target: {}
sessions:
  reader: {{weight: 1, steps: [{{http: GET /read}}]}}
  buyer: {{weight: 1, steps: [{{http: GET /a}}, {{think: 30ms}}, {{http: GET /b}}]}}
  loser: {{weight: 1, steps: [{{http: GET /status/500, on_error: next}}, {{http: GET /never}}]}}
load: [{{iterations: 300, users: 60}}]
",
        target.http("")
    );
    for processes in [1, 2] {
        let before = target.counts("/requests");
        let line = format!("run s.yaml --json --shards 2 --processes {processes} --out record");
        let run = throng(&line).file("s.yaml", scenario.clone()).run();
        let json = run.json();
        let rows = json["sessions"].as_array().expect("rows");
        let of = |name: &str| {
            let row = rows.iter().find(|row| row["name"] == name).expect("a row");
            let count = |what: &str| row[what].as_u64().expect("a count");
            [count("begun"), count("finished"), count("failed"), count("interrupted")]
        };
        let [reader, buyer, loser] = ["reader", "buyer", "loser"].map(of);
        run.check(reader[0] + buyer[0] + loser[0] == 300, "all of them");
        run.check([reader, buyer].iter().all(|row| row[0] == row[1]), "they come to their end");
        run.check(loser[0] == loser[2] && loser[2] > 0, "this one never does");
        let asked = target.counts("/requests") - before;
        run.check(asked == reader[1] + 2 * buyer[1] + loser[2], "what the target has got");
        let time = |name: &str| {
            let row = rows.iter().find(|row| row["name"] == name).expect("a row");
            row["time"]["min_ns"].as_u64()
        };
        run.check(time("reader") >= Some(2_000_000), "an answer takes 2 ms");
        run.check(time("buyer") >= Some(34_000_000) && time("loser").is_none(), "with its pause");
        let record = run.folder().join("record");
        let text = throng(&format!("report --details {}", record.display())).run();
        text.says(&["session", "reader", "buyer", "loser"]);
    }
}
