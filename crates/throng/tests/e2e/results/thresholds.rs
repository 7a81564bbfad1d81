//! Thresholds, exit codes, and the verdict for build servers.

use crate::run::{Run, throng};
use crate::scenarios::{one_session, running, times};
use crate::servers::Target;

const STEPS: &str = "\
- transaction: visit
  steps:
    - http: GET /
      name: front
    - http: GET /status/404
      name: missing
      check: {status: 404}
- http: GET /bytes/10
  name: bytes
  check: {size: 11}";

/// Each step eight times, of which `bytes` fails always.
fn run(thresholds: &str, line: &str) -> Run {
    let target = Target::start("http");
    let head = format!("{}\nthresholds:\n{thresholds}", times(8, 2));
    let text = one_session(&target.http(""), &head, STEPS);
    throng(&format!("run scenario.yaml --json --out record {line}"))
        .file("scenario.yaml", text)
        .run()
}

fn list(thresholds: &[&str]) -> String {
    thresholds.iter().fold(String::new(), |list, threshold| format!("{list}  - \"{threshold}\"\n"))
}

const MET: &[&str] = &[
    "visit p95 < 10s",
    "visit errors = 0",
    "visit with pauses max < 20s",
    "visit count = 8",
    "http count = 24",
    "http rate > 1/s",
    "front mean < 10s",
    "bytes errors >= 8",
    "bytes errors > 99%",
    "errors < 40%",
    "front errors = 0%",
    "missing errors = 0",
    "checks > 60%",
    "connections.opened = 2",
    "connections.reset = 0",
    "unmet = 0",
    "connect p99 < 5s",
    "iterations count = 8",
    "front p99 < 10s in phase 1",
];

const MISSED: &[&str] = &[
    "visit p50 < 1ns",
    "visit count > 100",
    "bytes errors < 1%",
    "bytes errors = 0 in phase 1",
    "checks > 99.99%",
    "errors < 1%",
    "connections.opened > 100",
    "http rate > 1000000/s",
];

#[test]
fn thresholds_of_every_kind_are_met() {
    let run = run(&list(MET), "").exits(0);
    for threshold in MET {
        let row = run.row("thresholds", threshold);
        run.check(row["verdict"] == "met", &row.to_string());
        run.check(!row["figure"].is_null(), &row.to_string());
    }
}

#[test]
fn thresholds_of_every_kind_are_missed() {
    for threshold in MISSED {
        let run = run(&list(&["visit p95 < 10s", threshold]), "").exits(1);
        run.check(run.row("thresholds", threshold)["verdict"] == "not-met", threshold);
        run.check(run.row("thresholds", "visit p95 < 10s")["verdict"] == "met", "the other one");
        let reasons = run.json()["outcome"]["reasons"].to_string();
        run.check(reasons.contains(threshold), "the reason of the exit code");
    }
}

#[test]
fn thresholds_may_be_of_one_phase() {
    let target = Target::start("http");
    let steps =
        "- http: \"GET /${iteration > 5 ? 'status/500' : ''}\"\n  name: page\n- think: 20ms";
    let head = |thresholds: &[&str]| {
        let phases = [
            "{name: warm-up, users: 1, for: 300ms, measured: false}",
            "{name: low, users: 2, for: 500ms}",
            "{name: high, users: 5, for: 500ms}",
        ];
        format!("load: [{}]\nthresholds:\n{}", phases.join(", "), list(thresholds))
    };
    let run = |thresholds: &[&str], code: i32| {
        running(&one_session(&target.http(""), &head(thresholds), steps)).run().exits(code)
    };
    // The second phase brings three users who are good at first.
    let good = ["page errors > 0 in low", "users.online >= 5 in high", "users.online < 3 in low"];
    run(&good, 0);
    run(&["users.online >= 5 in low"], 1);
    run(&["page errors = 0 in high"], 1);
    let all = run(&["page count > 10"], 0);
    let phase = |name: &str| all.row("phases", name)["count"].as_u64().unwrap_or_default();
    all.has("/total/count", phase("low") + phase("high"));
    all.check(phase("warm-up") > 3, "the warm-up is there, and not in the total");
}

#[test]
fn metrics_without_values_are_not_a_success() {
    let target = Target::start("http");
    let steps = "- http: GET /\n- if: ${iteration > 100}\n  then: [{http: GET /rare}]";
    let head = format!("{}\nthresholds: [GET /rare p99 < 1s]", times(3, 1));
    let run = running(&one_session(&target.http(""), &head, steps)).run().exits(1);
    assert_eq!(run.row("thresholds", "GET /rare p99 < 1s")["verdict"], "unknown");
}

#[test]
fn the_table_of_thresholds_follows_the_verdict() {
    let target = Target::start("http");
    let thresholds = list(&["visit p95 < 10s", "bytes errors = 0"]);
    let text = one_session(
        &target.http(""),
        &format!("{}\nthresholds:\n{thresholds}", times(8, 2)),
        STEPS,
    );
    let run = throng("run scenario.yaml --no-record --details");
    let run = run.file("scenario.yaml", text).run().exits(1);
    let table = run.out.split("\nthreshold ").nth(1).unwrap_or_default();
    run.check(
        table.contains("visit p95 < 10s") && table.contains("bytes errors = 0"),
        "the thresholds",
    );
    run.check(table.contains("NOT MET"), "the verdict");
    run.check(table.contains("\nstep "), "the steps stand behind the thresholds");
    run.says(&["expected the size to be 11"]);
}

#[test]
fn a_run_in_which_nothing_succeeded_is_never_green() {
    let target = Target::start("http");
    let steps = "- http: GET /status/404";
    for thresholds in ["", "thresholds: [p99 < 10s]"] {
        let text = one_session(&target.http(""), &format!("{}\n{thresholds}", times(8, 2)), steps);
        let run = running(&text).run().exits(1);
        run.check(run.json()["outcome"]["headline"] == "nothing succeeded", "the headline");
        run.has("/total/ok", 0);
        let run = throng("run scenario.yaml --junit verdict.xml --no-record")
            .file("scenario.yaml", text)
            .run()
            .exits(1);
        run.says(&["nothing succeeded: the status is not as expected", "8 failed (100 %)"]);
        let xml = std::fs::read_to_string(run.folder().join("verdict.xml")).expect("a file");
        assert!(xml.contains("type=\"nothing-succeeded\""), "{xml}");
    }
}

/// What a reader of XML wants: every element is closed, in order; one root.
fn elements(xml: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>").expect("a head");
    for part in body.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "a bare sign in {text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed in order");
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default().to_string();
        let values: Vec<&str> = tag.split('"').collect();
        assert_eq!(values.len() % 2, 1, "quotes are closed in {tag}");
        for value in values.iter().skip(1).step_by(2).chain([&text]) {
            for entity in value.split('&').skip(1) {
                let known = ["amp;", "lt;", "gt;", "quot;", "apos;", "#"];
                assert!(known.iter().any(|it| entity.starts_with(it)), "a bare & in {value}");
            }
        }
        if !tag.ends_with('/') {
            open.push(name.clone());
        }
        all.push(name);
    }
    assert!(open.is_empty(), "{open:?} are open");
    assert_eq!(all.first().map(String::as_str), Some("testsuites"));
    all
}

#[test]
fn the_verdict_is_written_for_build_servers() {
    let thresholds = list(&["visit p95 < 10s", "bytes errors < 1%", "visit max <= 20s"]);
    let run = run(&thresholds, "--junit verdict.xml").exits(1);
    let xml = std::fs::read_to_string(run.folder().join("verdict.xml")).expect("a file");
    let all = elements(&xml);
    let count = |name: &str| all.iter().filter(|it| *it == name).count();
    assert_eq!((count("testcase"), count("failure"), count("testsuite")), (5, 1, 1), "{xml}");
    assert!(xml.contains("failures=\"1\"") && xml.contains("bytes errors &lt; 1%"), "{xml}");
    assert!(xml.contains("measured: 100"), "{xml}");

    let record = run.folder().join("record");
    let again = throng("report --junit again.xml").arg(&record).run().exits(1);
    let same = std::fs::read_to_string(again.folder().join("again.xml")).expect("a file");
    // Each names the record as it was given.
    let folder = |text: &str| text.replace(&record.display().to_string(), "record");
    assert_eq!(folder(&same), folder(&xml), "a report says the same");
    let place = "report --junit no/such/folder.xml";
    throng(place).arg(&record).run().exits(2).says(&["error[file-unwritable]", "no/such"]);
}

#[test]
fn a_good_verdict_has_no_failure() {
    let run = run(&list(&["visit p95 < 10s"]), "--junit verdict.xml").exits(0);
    let xml = std::fs::read_to_string(run.folder().join("verdict.xml")).expect("a file");
    assert!(!elements(&xml).iter().any(|name| name == "failure"), "{xml}");
}

#[test]
fn a_run_that_was_stopped_has_no_good_verdict() {
    let target = Target::start("http");
    let text = one_session(&target.http(""), &times(8, 2), "- http: GET /\n- stop: no more <&>");
    let run = throng("run scenario.yaml --junit verdict.xml").file("scenario.yaml", text);
    let run = run.run().exits(4);
    run.says(&["(stopped-by-rule)", "no more <&>"]);
    let xml = std::fs::read_to_string(run.folder().join("verdict.xml")).expect("a file");
    assert!(elements(&xml).iter().any(|name| name == "failure"), "{xml}");
    assert!(xml.contains("no more &lt;&amp;&gt;"), "{xml}");
}

/// A load for a minute against a target of which three requests in ten fail.
fn failing(target: &Target, rules: &str) -> String {
    format!(
        "target: {}
sessions: {{reader: {{steps: [{{http: GET /read}}, {{think: 5ms}}]}}}}
load: [{{name: hold, users: 10, for: 60s}}]
{rules}
",
        target.http("")
    )
}

#[test]
fn a_met_condition_ends_the_run() {
    let target = Target::start("http --errors 30%");
    let rules = "abort_when: [http p99 > 30s over 1s, errors > 10% over 2s for 1s]";
    for processes in [1, 2] {
        let line = format!("run s.yaml --json --processes {processes}");
        let run = throng(&line).file("s.yaml", failing(&target, rules)).run().exits(4);
        run.says(&["`errors > 10% over 2s for 1s` is true", "the run ends in 1.00s unless"]);
        let json = run.json();
        let stopped = json["outcome"]["stopped"].to_string();
        run.check(stopped.contains("abort_when: errors > 10% over 2s for 1s"), &stopped);
        run.check(stopped.contains("\"rule\""), &stopped);
        let at_ns = json["outcome"]["stopped"]["at_ns"].as_f64().unwrap_or_default();
        run.check((3e9..20e9).contains(&at_ns), "two seconds, and one more");
        run.check(json["total"]["begun"] == json["total"]["count"], "all is answered");
    }
    let requests = target.counts("/requests");
    assert!(requests > 100, "{requests}");
}

#[test]
fn a_command_line_says_what_ends_its_run() {
    let target = Target::start("http --errors 30%");
    let line = format!("bench {} -c 5 --think 5ms -d 60s --json --abort-when", target.http(""));
    let run = throng(&line).arg("errors > 10% over 2s for 1s").run().exits(4);
    let stopped = run.json()["outcome"]["stopped"].to_string();
    run.check(stopped.contains("abort_when: errors > 10% over 2s for 1s"), &stopped);
    run.says(&["`errors > 10% over 2s for 1s` is true"]);
}

#[test]
fn a_threshold_over_stretches_is_missed_by_one_of_them() {
    let target = Target::start("http");
    let text = format!(
        "target: {}
sessions: {{reader: {{steps: [{{http: GET /read}}]}}}}
load: [{{name: slow, arrivals: 20/s, for: 2s}}, {{name: fast, arrivals: 200/s, for: 3s}}]
thresholds: [http rate > 100/s, http rate > 100/s over 2s, http rate > 100/s in fast over 2s]
",
        target.http("")
    );
    let run = throng("run s.yaml --json").file("s.yaml", text).run().exits(1);
    let json = run.json();
    let verdicts = [0, 1, 2].map(|at: usize| json["thresholds"][at]["verdict"].clone());
    assert_eq!(verdicts, ["met", "not-met", "met"], "{run}");
}
