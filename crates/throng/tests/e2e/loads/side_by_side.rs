//! Loads side by side, against the books of a target.

use crate::run::{Run, Throng, throng};
use crate::servers::Target;

/// Users who stay, who arrive while they do, administrators when these have gone, and with them
/// one who looks once.
fn scenario(target: &Target, readers: &str) -> String {
    format!(
        "target: {}
sessions:
  reader: {{steps: [{{http: GET /read}}, {{think: 50ms..150ms}}]}}
  buyer: {{steps: [{{http: GET /cart}}, {{think: 100ms}}, {{http: GET /order}}]}}
  admin: {{steps: [{{http: GET /admin}}]}}
  auditor: {{steps: [{{http: GET /audit}}]}}
loads:
  readers: {{sessions: reader, phases: [{{name: hold, users: 5, for: {readers}}}]}}
  buyers:
    sessions: buyer
    at: 300ms
    phases: [{{name: rush, arrivals: 20/s, for: 1s}}, {{name: last, for: 1s}}]
  admins: {{sessions: admin, after: buyers, phases: [{{name: look, iterations: 6, users: 2}}]}}
  auditors: {{sessions: auditor, with: admins, phases: [{{name: audit, iterations: 3, users: 1}}]}}
thresholds:
  - errors = 0 in readers
  - unmet = 0 in buyers
  - iterations.started = 6 in admins
",
        target.http("")
    )
}

fn command(target: &Target, readers: &str) -> Throng {
    throng("run s.yaml --json --shards 2").file("s.yaml", scenario(target, readers))
}

fn count(run: &Run, step: &str) -> u64 {
    run.row("steps", step)["ok"].as_u64().expect("a number")
}

#[test]
fn loads_match_the_counts_of_the_target() {
    let target = Target::start("http");
    let run = command(&target, "3s").run().exits(0);
    let steps = ["GET /cart", "GET /order", "GET /admin", "GET /audit"];
    assert_eq!(steps.map(|step| count(&run, step)), [20, 20, 6, 3]);
    let read = count(&run, "GET /read");
    // Five users, each with a pause of 50 to 150 ms.
    run.check((50..400).contains(&read), "readers read all the time");
    assert_eq!(target.counts("/requests"), read + 20 + 20 + 6 + 3);
    // Each user has a connection of its own, and keeps it.
    assert_eq!(target.counts("/connections/accepted"), 5 + 20 + 2 + 1);
    for (load, users, requests) in
        [("readers", 5, read), ("buyers", 20, 40), ("admins", 2, 6), ("auditors", 1, 3)]
    {
        let row = run.row("loads", load);
        run.check(row["users_started"] == users && row["ok"] == requests, load);
    }
    let lasted = |load: &str| run.row("loads", load)["lasted_ns"].as_f64().unwrap_or_default();
    run.check(lasted("readers") > 2.5e9, "the readers stay for three seconds");
    run.check(lasted("buyers") < 3e9, "the buyers come for one, and have one more");
}

#[test]
fn stopped_loads_have_balanced_counts() {
    let target = Target::start("http");
    let child = command(&target, "60s").start();
    child.until("buyers come", || target.counts("/connections/accepted") > 10);
    child.signal(libc::SIGINT);
    let run = child.wait();
    let json = run.json();
    let rows = json["steps"].as_array().expect("rows");
    let sum = |what: &str| rows.iter().filter_map(|row| row[what].as_u64()).sum::<u64>();
    run.check(sum("begun") == sum("ok") + sum("interrupted"), "no attempt is lost");
    assert_eq!(target.counts("/requests"), sum("ok"));
    let of_loads: u64 = ["readers", "buyers", "admins", "auditors"]
        .iter()
        .filter_map(|load| json["loads"].as_array()?.iter().find(|row| row["name"] == **load))
        .filter_map(|row| row["ok"].as_u64())
        .sum();
    run.check(of_loads == sum("ok"), "the rows of loads add up");
    run.check(json["run"]["interrupted"] == true, "it is recorded");
    run.exits(130);
}
