//! Shapes of loads, against a target that counts what it gets.

use crate::run::{Run, throng};
use crate::servers::Target;

/// One request each, and a pause.
fn run(target: &Target, think: &str, rest: &str, flags: &str) -> Run {
    let text = format!(
        "target: {}\nsessions: {{a: {{steps: [{{http: GET /, name: get}}, {{think: {think}}}]}}}}\n\
         {rest}\n",
        target.http("")
    );
    throng(&format!("run s.yaml --json {flags}")).file("s.yaml", text).run()
}

#[test]
fn starts_without_a_free_user_are_dropped_and_counted() {
    let target = Target::start("http");
    let thresholds = "thresholds: [dropped <= 90%, dropped > 80%, unmet = 0]";
    for load in [
        "load: [{arrivals: 100/s, max: 10, for: 1s}]",
        "load: [{iterations: 100/s, max: 10, for: 1s}]",
        "load: [{arrivals: {from: 50/s, to: 150/s}, max: 10, for: 1s}]",
    ] {
        let before = target.counts("/requests");
        // Nobody is done before the phase is over.
        let run = run(&target, "2s", &format!("{load}\n{thresholds}"), "--shards 2");
        let run = run.succeeds(10);
        run.has("/users/starts_dropped", 90);
        run.has("/users/iterations_started", 10);
        run.has("/users/starts_unmet", 0);
        assert_eq!(run.wanted(), 100, "{run}");
        assert_eq!(target.counts("/requests") - before, 10, "{load}");
    }
}

/// 200 a second of two users, with a target that takes 20 ms: half of it waits.
#[test]
fn the_requested_rate_is_reported_if_not_reached() {
    let target = Target::start("http --latency 20ms");
    let line = format!("bench {} -c 2 --rate 200 -d 3s --details --out record", target.http("/"));
    let run = throng(&line).run();
    run.says(&[" wanted/s", " 200 ", "starts scheduled per second", "starts behind schedule"]);
    let again = throng(&format!("report --json {}", run.folder().join("record").display())).run();
    assert_eq!(again.wanted(), 600, "{again}");
    again.within("/users/starts_begun", 100.0, 310.0);
    again.within("/users/starts_backlog_max", 190.0, 500.0);
    // Every second wants the same.
    let lines = std::fs::read_to_string(run.folder().join("record/intervals.ndjson"));
    let lines = lines.expect("lines");
    let mut wanted = [0; 3];
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line");
        let second = line["second"].as_u64().expect("a second").min(2) as usize;
        wanted[second] += line["population"]["wanted"].as_u64().unwrap_or(0);
    }
    again.check(wanted.iter().all(|it| (199..=201).contains(it)), &format!("{wanted:?}"));
}

#[test]
fn random_arrivals_depend_only_on_the_seed_for_any_number_of_shards() {
    let target = Target::start("http");
    let load = "load: [{arrivals: 300/s, spacing: poisson, for: 1s}]";
    let count = |seed: u64, shards: u64| {
        let before = target.counts("/requests");
        let head = format!("seed: {seed}\n{load}");
        let run = run(&target, "1ms", &head, &format!("--shards {shards}"));
        let ok = run.figure("/total/ok") as u64;
        // On a busy machine one that was wanted at the end may not begin.
        let wanted = run.wanted();
        run.succeeds(ok);
        assert_eq!(target.counts("/requests") - before, ok);
        wanted
    };
    let counts = [1, 2, 3].map(|shards| count(5, shards));
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    // Eight standard deviations.
    assert!(counts[0].abs_diff(300) < 140, "{counts:?}");
    assert!([6, 7, 8].iter().any(|seed| count(*seed, 1) != counts[0]), "chance follows the seed");
}

/// Runs a load with a file beside it, and counts what the target got.
fn with_file(target: &Target, load: &str, name: &str, content: &str) -> (Run, u64) {
    let before = target.counts("/requests");
    let text = format!(
        "target: {}\nsessions: {{a: {{steps: [{{http: GET /}}]}}}}\nload: [{load}]\n",
        target.http("")
    );
    let run = throng("run s.yaml --json --shards 2").file("s.yaml", text).file(name, content).run();
    let requests = target.counts("/requests") - before;
    (run, requests)
}

#[test]
fn points_of_a_file_and_a_sine_are_as_many_requests_as_their_area() {
    let target = Target::start("http");
    let csv = "second,rps\n0,0\n500ms,200\n1,200\n1,40\n1.5,40\n";
    // A triangle of 50, a hundred, and 20 behind a step.
    let (run, requests) = with_file(&target, "{arrivals: {points: day.csv}}", "day.csv", csv);
    run.succeeds(170);
    assert_eq!(requests, 170);
    let load = "{iterations: {points: day.csv}, users: 20}";
    let (run, requests) = with_file(&target, load, "day.csv", csv);
    run.succeeds(170);
    assert_eq!(requests, 170);
    let load = "{arrivals: {sine: {mean: 100/s, amplitude: 90/s, period: 500ms}}, for: 1s}";
    let (run, requests) = with_file(&target, load, "unused", "");
    run.succeeds(100);
    assert_eq!(requests, 100);
}

#[test]
fn a_log_is_replayed_in_its_times() {
    let target = Target::start("http");
    let line = |second: u32| {
        format!("::1 - - [10/Oct/2026:13:55:{second:02} +0000] \"GET / HTTP/1.1\" 200 1\n")
    };
    // 30 in the first second, none in the next, then 60, of which one was written early.
    let seconds = std::iter::repeat_n(7, 29).chain([9, 7]).chain(std::iter::repeat_n(9, 59));
    let log: String = seconds.map(line).collect();
    let load = "{name: replay, arrivals: {log: {file: access.log, speed: 4}}}";
    let (run, requests) = with_file(&target, load, "access.log", &log);
    let row = run.row("phases", "replay");
    let lasted = row["lasted_ns"].as_f64().unwrap_or_default() / 1e9;
    run.check((0.6..5.0).contains(&lasted), "three seconds take three quarters of one");
    run.succeeds(90);
    assert_eq!(requests, 90);
}

#[test]
fn unreadable_shape_files_are_reported_before_anything_is_sent() {
    let target = Target::start("http");
    for (load, name, content, said) in [
        ("{arrivals: {points: a.csv}}", "a.csv", "0,1\n5,2\n4,3\n", "a.csv:3"),
        ("{arrivals: {points: a.csv}}", "b.csv", "", "cannot be read"),
        ("{arrivals: {log: a.log}}", "a.log", "nothing\n", "a.log:1"),
        ("{iterations: {log: a.log}, users: 1}", "a.log", "", "the log has no requests"),
    ] {
        let (run, requests) = with_file(&target, load, name, content);
        run.says(&[said, "help: "]);
        run.exits(2);
        assert_eq!(requests, 0);
    }
}
