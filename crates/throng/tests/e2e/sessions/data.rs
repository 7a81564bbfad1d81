//! Rows of data, from the file to the target: each where it belongs, and no row twice that may not.

use serde_json::Value;

use crate::run::{Child, Run, throng};
use crate::scenarios::{one_session, running, times};
use crate::scribe::Scribe;
use crate::servers::Target;

/// Each iteration authorises one account of a source.
fn authorise(target: &str, source: &str, load: &str) -> String {
    let head = format!("data: {{accounts: {{{source}}}}}\n{load}");
    let steps = "- http: POST /oauth/authorize\n  json: {ssoid: \"${data.accounts.id}\"}";
    one_session(target, &head, steps)
}

fn rows(count: u64) -> String {
    (1..=count).fold("id\n".into(), |rows, row| format!("{rows}a{row}\n"))
}

/// `target` counts accounts, and those that came again.
#[track_caller]
fn took(target: &Target, run: &Run, accounts: u64, again: u64) {
    let counts = (target.counts("/accounts"), target.counts("/accounts_again"));
    run.check(counts == (accounts, again), &format!("the target has seen {counts:?}"));
}

fn run_against(target: &Target, source: &str, load: &str, count: u64) -> Run {
    let text = authorise(&target.http(""), source, load);
    running(&text).file("accounts.csv", rows(count)).run()
}

#[test]
fn the_end_of_unique_rows_ends_the_run_gracefully() {
    let target = Target::start("http");
    let source = "csv: accounts.csv, take: unique, at_end: stop";
    let run = run_against(&target, source, &times(10_000, 5), 40);
    let run = run.succeeds(40);
    took(&target, &run, 40, 0);
    let stopped = &run.json()["outcome"]["stopped"];
    run.check(stopped["by"] == "data", "the data stopped it");
    let reason = stopped["reason"].as_str().unwrap_or_default();
    run.check(reason.contains("`data.accounts`"), "the reason names the source");
    run.check(run.events("stopped").len() == 1, "it is recorded once");
    let record = run.folder().join("record");
    let report = throng("report").arg(record).run().exits(0);
    report.says(&["the run ended when its data ran out", "`data.accounts`", "all rows were used"]);

    // It is long before its time, which changes nothing.
    let target = Target::start("http");
    let load = "load: [{users: 3, for: 30s}]";
    let run = run_against(&target, source, load, 30).exits(0);
    took(&target, &run, 30, 0);
    run.check(run.took.as_secs() < 20, "it goes on to its time");
}

#[test]
fn the_thresholds_decide_about_a_run_that_ended_with_its_rows() {
    let target = Target::start("http");
    let load = format!("thresholds: [http count > 1k]\n{}", times(10_000, 5));
    let source = "csv: accounts.csv, take: unique, at_end: stop";
    let run = run_against(&target, source, &load, 20).exits(1);
    run.check(run.json()["outcome"]["stopped"]["by"] == "data", "the data stopped it");
}

/// Nobody said that the rows bound the run: its load was not done, whatever the thresholds say.
#[test]
fn a_run_whose_rows_ran_out_by_surprise_is_invalid() {
    let target = Target::start("http");
    let load = "thresholds: [errors < 1%]\nload: [{users: 3, for: 30s}]";
    let run = run_against(&target, "csv: accounts.csv, take: unique", load, 30).exits(5);
    took(&target, &run, 30, 0);
    let outcome = run.json()["outcome"].clone();
    run.check(outcome["invalid_reasons"][0]["reason"] == "data-ended", "the reason");
    run.check(outcome["stopped"]["by"] == "data-short", "the data stopped it");
    let record = run.folder().join("record");
    let report = throng("report").arg(record).run().exits(5);
    report.says(&["the data ran out", "data-ended", "at_end: stop"]);
}

#[test]
fn rows_may_wrap() {
    let target = Target::start("http");
    let source = "csv: accounts.csv, take: unique, at_end: wrap";
    let run = run_against(&target, source, &times(50, 5), 20).succeeds(50);
    took(&target, &run, 20, 30);
}

#[test]
fn the_end_of_the_rows_may_be_an_error() {
    let target = Target::start("http");
    let source = "csv: accounts.csv, take: unique, at_end: error";
    let run = run_against(&target, source, &times(50, 5), 20).exits(0);
    took(&target, &run, 20, 0);
    run.has("/total/ok", 20);
    run.fails("data-exhausted", "scenario", Some(30));
}

#[test]
fn a_user_keeps_its_row() {
    let scribe = Scribe::start();
    let load = times(30, 5);
    let source = "csv: accounts.csv, take: per user";
    let text = authorise(&scribe.target(), source, &load);
    let text = text.replace("{ssoid:", "{user: \"${user.id}\", ssoid:");
    running(&text).file("accounts.csv", rows(5)).run().succeeds(30);
    let mut pairs: Vec<(u64, String)> = Vec::new();
    for asked in scribe.book() {
        let body: Value = serde_json::from_str(&asked.body).expect("JSON");
        let user = body["user"].as_u64().expect("a user");
        pairs.push((user, body["ssoid"].as_str().expect("a row").to_string()));
    }
    pairs.sort();
    pairs.dedup();
    assert_eq!(pairs.len(), 5, "one row each: {pairs:?}");
    pairs.sort_by(|one, other| one.1.cmp(&other.1));
    pairs.dedup_by(|one, other| one.1 == other.1);
    assert_eq!(pairs.len(), 5, "no row for two: {pairs:?}");
}

#[test]
fn shards_share_rows_without_asking() {
    for (count, total) in [(300, 300), (7, 7)] {
        let target = Target::start("http");
        let text = authorise(&target.http(""), "csv: accounts.csv, take: unique", &times(total, 6));
        let run = running(&text).arg("--shards=2").file("accounts.csv", rows(count)).run();
        let run = run.succeeds(total);
        assert_eq!(run.json()["run"]["shards"], 2);
        took(&target, &run, total, 0);
        run.check(run.json()["outcome"]["stopped"].is_null(), "every row was there to be taken");
    }
    let target = Target::start("http");
    let source = "csv: accounts.csv, take: unique, at_end: wrap";
    let text = authorise(&target.http(""), source, &times(100, 6));
    let run = running(&text).arg("--shards=2").file("accounts.csv", rows(50)).run().succeeds(100);
    took(&target, &run, 50, 50);
}

/// What one user asks for, in order.
fn order(source: &str, more: &str, total: u64) -> Vec<String> {
    let scribe = Scribe::start();
    let head = format!("seed: 1\ndata: {{it: {{{source}}}}}\n{}", times(total, 1));
    let text = one_session(&scribe.target(), &head, &format!("- http: GET /{more}"));
    let jsonl =
        "{\"id\": 1, \"of\": {\"name\": \"ann\"}}\n\n{\"id\": 2, \"of\": {\"name\": \"bö\"}}\n";
    let run = running(&text).file("it.csv", rows(10)).file("it.jsonl", jsonl);
    run.file("semi.csv", "1;x y\n2;\"a;b\"\n").run().succeeds(total);
    let path = |asked: &String| asked.trim_start_matches("GET /").to_string();
    scribe.asked().iter().map(path).collect()
}

#[test]
fn rows_are_used_in_order() {
    let wanted: Vec<String> = (0..25).map(|n| format!("a{}", n % 10 + 1)).collect();
    assert_eq!(order("csv: it.csv", "${data.it.id}", 25), wanted);
    assert_eq!(order("list: [7, x, true]", "${data.it}", 4), ["7", "x", "true", "7"]);
    let list = "list: [{a: 1, b: 2}, {a: 3, b: 4}]";
    assert_eq!(order(list, "${data.it.b}-${data.it.a}", 3), ["2-1", "4-3", "2-1"]);
}

#[test]
fn rows_are_shuffled_again_and_again() {
    let seen = order("csv: it.csv, take: shuffle", "${data.it.id}", 30);
    let mut rounds: Vec<Vec<String>> = seen.chunks(10).map(<[String]>::to_vec).collect();
    assert!(rounds[0] != rounds[1] && rounds[1] != rounds[2], "each round has its own order");
    for round in &mut rounds {
        assert!(!round.iter().map(|it| it[1..].parse::<u64>()).is_sorted_by_key(|it| it.ok()));
        round.sort();
        round.dedup();
        assert_eq!(round.len(), 10, "every row once in a round");
    }
    assert_eq!(order("csv: it.csv, take: shuffle", "${data.it.id}", 30), seen, "the same seed");
}

#[test]
fn rows_are_used_at_random() {
    let seen = order("csv: it.csv, take: random", "${data.it.id}", 100);
    let mut rows = seen.clone();
    rows.sort();
    rows.dedup();
    assert!(rows.len() >= 9 && seen[..10] != seen[10..20], "{seen:?}");
    assert_eq!(order("csv: it.csv, take: random", "${data.it.id}", 100), seen, "the same seed");
}

#[test]
fn rows_have_many_forms() {
    let path = "${data.it.of.name}/${data.it.id + 1}";
    assert_eq!(order("json_lines: it.jsonl", path, 3), ["ann/2", "b%C3%B6/3", "ann/2"]);
    let semi = "csv: semi.csv, separator: \";\", columns: [id, word]";
    assert_eq!(order(semi, "${data.it.id}/${data.it.word}", 2), ["1/x%20y", "2/a;b"]);
    let made = "generate: {id: 5..7, name: \"u-###-??\", fix: 9}";
    let seen = order(made, "${data.it.id}/${data.it.name}/${data.it.fix}", 4);
    for (asked, id) in seen.iter().zip([5, 6, 7, 5]) {
        let parts: Vec<&str> = asked.split(['/', '-']).collect();
        let [got, "u", digits, letters, "9"] = parts[..] else { panic!("{asked}") };
        assert_eq!(got, id.to_string());
        assert!(digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit()), "{asked}");
        assert!(letters.len() == 2 && letters.bytes().all(|b| b.is_ascii_lowercase()), "{asked}");
    }
    assert_ne!(seen[0][2..], seen[1][2..], "names differ");
}

#[test]
fn an_iteration_stays_with_its_row() {
    let scribe = Scribe::start();
    let head = format!("data: {{it: {{csv: it.csv, take: unique}}}}\n{}", times(8, 2));
    let steps = "- http: GET /a/${data.it.id}\n- http: GET /b/${data.it.id}";
    let text = one_session(&scribe.target(), &head, steps);
    running(&text).file("it.csv", rows(8)).run().succeeds(16);
    for row in 1..=8 {
        assert_eq!(scribe.count(&format!("GET /a/a{row}")), 1);
        assert_eq!(scribe.count(&format!("GET /b/a{row}")), 1);
    }
}

#[test]
fn a_missing_file_is_reported_before_anything_is_sent() {
    let scribe = Scribe::apart();
    let text = authorise(&scribe.target(), "csv: none.csv, take: unique", &times(5, 1));
    let run = running(&text).run().exits(2);
    run.says(&["error[data-unreadable]", "none.csv", "--> scenario.yaml:3:", "nothing was sent"]);
    let text = authorise(&scribe.target(), "csv: accounts.csv, take: unique", &times(5, 1));
    for wrong in ["id\na1\na2,more\n", "id\n\"a1\n", "id\n"] {
        let run = running(&text).file("accounts.csv", wrong).run().exits(2);
        run.says(&["error[data-", "accounts.csv", "nothing was sent"]);
        run.check(!run.folder().join("record").exists(), "there is no record");
    }
    assert_eq!(scribe.accepted(), 0);
}

/// More than is held in memory.
fn large(fill: &str) -> String {
    let rows: Vec<String> =
        (0..100_000).map(|row| format!("{row:06}{}", fill.repeat(44))).collect();
    format!("id\n{}\n", rows.join("\n"))
}

#[test]
fn a_file_that_changes_under_the_run_is_noticed() {
    let scribe = Scribe::start();
    let load = "load: [{users: 2, for: 30s}]\ndefaults: {on_error: stop}";
    let text = authorise(&scribe.target(), "csv: accounts.csv, take: random", load);
    let text = format!("{text}      - think: 5ms\n");
    let command = running(&text).file("accounts.csv", large("a"));
    let path = command.folder().join("accounts.csv");
    let child: Child = command.start();
    child.until("some rows to be used", || scribe.accepted() > 0 && scribe.asked().len() > 20);
    std::fs::write(&path, large("b").replace("00", "0")).expect("a file");
    let run = child.wait().exits(4);
    run.fails("data-failed", "scenario", None);
    let reason = run.json()["outcome"]["stopped"]["reason"].to_string();
    run.check(reason.contains("` changed during the run"), "the reason");
    run.check(run.took.as_secs() < 20, "it is noticed at once");
    let good = |body: &str| body.contains("aaaa") && !body.contains('b');
    run.check(scribe.book().iter().all(|asked| good(&asked.body)), "no row is of the new file");
}

#[test]
fn files_of_other_programs_are_understood() {
    let scribe = Scribe::start();
    let head = format!("data: {{it: {{csv: it.csv}}}}\n{}", times(3, 1));
    let steps =
        "- http: POST /\n  json: {id: \"${data.it.id}\", note: \"${data.it['full note']}\"}";
    let text = one_session(&scribe.target(), &head, steps);
    // As spreadsheets write it: a mark at the begin, both line ends, line ends in quotes.
    let rows = "\u{feff}id,\"full note\"\r\n007,\"two\nlines, \"\"quoted\"\"\"\r\n\r\n2,\"\"\n3,ü";
    running(&text).file("it.csv", rows).run().succeeds(3);
    let bodies: Vec<String> = scribe.book().into_iter().map(|asked| asked.body).collect();
    let wanted = [
        r#"{"id":"007","note":"two\nlines, \"quoted\""}"#,
        r#"{"id":"2","note":""}"#,
        r#"{"id":"3","note":"ü"}"#,
    ];
    assert_eq!(bodies, wanted);
}

#[test]
fn only_sessions_that_read_rows_use_them() {
    let scribe = Scribe::start();
    let head = format!("data: {{it: {{list: [a, b, c], take: unique}}}}\n{}", times(6, 1));
    let steps = "\
- if: ${iteration % 2 == 0}
  then: [{http: \"GET /${data.it}\"}, {http: \"GET /${data.it}\"}]
  else: [{http: GET /none}]";
    let run = running(&one_session(&scribe.target(), &head, steps)).run().succeeds(9);
    run.check(run.json()["outcome"]["stopped"].is_null(), "the rows suffice");
    let asked = ["none", "a", "a", "none", "b", "b", "none", "c", "c"];
    assert_eq!(scribe.asked(), asked.map(|path| format!("GET /{path}")));
}
