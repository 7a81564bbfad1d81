//! Loads that are changed while they run, by `throng control` and by keys.

use std::process::Command;

use crate::run::{Child, Throng, binary, throng};
use crate::scribe::Scribe;
use crate::servers::{Target, program};

fn scenario(target: &Target) -> String {
    format!(
        "target: {}
sessions: {{one: {{steps: [{{http: GET /}}]}}}}
loads:
  main:
    sessions: one
    phases: [{{name: steady, arrivals: 50/s, for: 10m}}, {{name: last, arrivals: 10/s, for: 1s}}]
",
        target.http("")
    )
}

fn tell(child: &Child, words: &str) -> crate::run::Run {
    let record = child.folder().join("record");
    throng(&format!("control {} {words}", record.display())).run()
}

#[test]
fn a_run_is_changed_by_commands_and_says_so() {
    let target = Target::start("http");
    let child = throng("run s.yaml --json --out record").file("s.yaml", scenario(&target)).start();
    let record = child.folder().join("record");
    child.until("the socket", || record.join("control.sock").exists());
    child.until("requests", || target.counts("/requests") > 0);
    tell(&child, "more").exits(0).says(&["times 1.1"]);
    tell(&child, "rate 200/s").exits(0);
    tell(&child, "status --json").exits(0).says(&["\"per_second\":200.0", "steady"]);
    tell(&child, "users 5").exits(2).says(&["control-refused", "throng control rate"]);
    tell(&child, "--load other more").exits(2).says(&["no load `other`", "main"]);
    tell(&child, "mark here").exits(0);
    tell(&child, "pause").exits(0);
    tell(&child, "go-on").exits(0);
    tell(&child, "end-phase").exits(0);
    // What was due while it was paused is not missed.
    let run = child.wait().exits(0);
    run.check(run.wanted() > 0, "starts were scheduled");
    let json = run.json();
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count"), "{run}");
    let changes = json["changes"].as_array().expect("changes");
    let of = |name: &str| {
        changes.iter().filter_map(|it| it[name].as_str()).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(of("change"), "times 1.1, rate 200, pause, go-on, end-phase", "{run}");
    assert_eq!(of("mark"), "here", "{run}");
    assert_eq!(json["phases"][1]["name"], "last", "{run}");
    run.check(!run.folder().join("record/control.sock").exists(), "the socket is left");
    let over = throng(&format!("control {} more", run.folder().join("record").display())).run();
    over.exits(2).says(&["has ended"]);
}

/// There are rows for two more users than the ten that are planned.
#[test]
fn users_are_added_up_to_the_number_of_rows() {
    let scribe = Scribe::start();
    let scenario = format!(
        "target: {}
data: {{people: {{csv: people.csv, take: per user}}}}
sessions: {{one: {{steps: [{{http: 'GET /${{data.people.name}}', name: get}}, {{think: 20ms}}]}}}}
load: [{{name: steady, users: 10, for: 10m}}]
",
        scribe.target()
    );
    let people: String = (1..=12).map(|n| format!("u{n}\n")).collect();
    let child = throng("run s.yaml --json --out record")
        .file("s.yaml", scenario)
        .file("people.csv", format!("name\n{people}"))
        .start();
    let record = child.folder().join("record");
    child.until("the socket", || record.join("control.sock").exists());
    child.until("requests", || scribe.count("GET /u10") > 0);
    let refused = tell(&child, "users 13").exits(2);
    refused.says(&["this run can have at most 12 users, not 13", "take: per user", "add rows"]);
    refused.check(!refused.err.contains("ulimit"), "descriptors are not what is scarce");
    tell(&child, "more 20%").exits(0);
    child.until("the row of the last one", || {
        scribe.count("GET /u11") > 0 && scribe.count("GET /u12") > 0
    });
    tell(&child, "stop").exits(0);
    let run = child.wait().exits(130);
    run.has("/total/failed", 0);
    run.has("/users/started", 12);
}

/// At a terminal of 80 columns.
fn terminal(line: &str) -> Throng {
    let mut command = Command::new(program("script", "bsdutils"));
    let line = format!(
        "stty cols 80 rows 24; {} {line}; echo code=$?; stty -a | grep -o -- '-*icanon'",
        binary().display()
    );
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color");
    Throng::new(command).listens()
}

#[test]
fn rapid_key_presses_lose_nothing() {
    let target = Target::start("http");
    let line = format!("bench {} --rate 50/s -d 60s --out record", target.http("/"));
    let mut child = terminal(&line).start();
    child.until("requests", || target.counts("/requests") > 0);
    child.types("?");
    child.hears("the keys", |out, _| out.contains("m mark").then_some(()));
    for _ in 0..100 {
        child.types("+-");
    }
    child.types("m");
    child.hears("the mark", |out, _| out.contains("marked").then_some(()));
    child.types("q");
    child.hears("the end", |out, _| out.contains("code=").then_some(()));
    let run = child.wait();
    let mut shown = run.out.lines().rev().map(str::trim);
    run.check(shown.any(|line| line == "icanon"), "the terminal is not as it was");
    let events =
        std::fs::read_to_string(run.folder().join("record/events.ndjson")).expect("events");
    let amended = events.lines().filter(|line| line.contains("\"amended\"")).count();
    assert_eq!(amended, 200, "{run}");
    assert!(events.contains("\"marked\"") && events.contains("\"interrupted\""), "{run}");
}
