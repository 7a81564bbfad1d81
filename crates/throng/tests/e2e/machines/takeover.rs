//! A run of a fleet whose controller is killed goes on at another controller, and a run that the
//! bus has lost is made of what its agents have kept: with every figure. The target keeps the
//! books.

use std::path::{Path, PathBuf};

use crate::machines::fleet::{Fleet, by_label, lost};
use crate::machines::processes::begun;
use crate::run::{Child, Run, Throng, throng};
use crate::servers::Target;

/// So many seconds of 50 starts a second, with something before and behind it.
pub(crate) fn scenario(target: &Target, seconds: u32) -> String {
    format!(
        "name: taken\ntarget: {}\nvars: {{word: {{env: WORD}}}}\n\
         setup: [{{http: POST /echo, json: {{id: 7}}, save: {{id: json.id}}, name: make}}]\n\
         sessions: {{reader: {{steps: [{{http: \"GET /read/${{vars.word}}/${{setup.id}}\"}}]}}}}\n\
         load: [{{arrivals: 50/s, for: {seconds}s}}]\n\
         teardown: [{{http: \"GET /down/${{setup.id}}\", name: remove}}]\n",
        target.http("")
    )
}

fn controller(fleet: &Fleet, target: &Target, seconds: u32) -> Throng {
    let keys = format!("--fleet={}", fleet.keys.display());
    let run = throng("run s.yaml --json --out record").arg(keys).env("WORD", "known");
    run.file("s.yaml", scenario(target, seconds))
}

pub(crate) fn resume(fleet: &Fleet, more: &str) -> Throng {
    let keys = format!("--fleet={}", fleet.keys.display());
    throng(&format!("resume --json --out taken {more}")).arg(keys)
}

pub(crate) fn under_way(target: &Target, child: &Child) {
    child.until("all make load", || target.counts("/requests") > 60);
}

/// All of it: once before, once behind, and the load between.
fn is_whole(target: &Target, run: &Run) {
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count") + 2.0, "{run}");
    let once = run.json()["once"].as_array().cloned().unwrap_or_default();
    let places = once.iter().filter_map(|it| it["steps"][0]["place"].as_str());
    let places: Vec<&str> = places.collect();
    run.check(places.len() == 2 && places[0].ends_with("s.yaml:4:9"), &format!("{places:?}"));
    run.check(places[1].ends_with("s.yaml:7:12"), &format!("{places:?}"));
}

#[test]
fn a_standby_takes_over_a_run_with_all_its_results() {
    let fleet = Fleet::start(&["a", "b"]);
    let target = Target::start("http");
    let child = controller(&fleet, &target, 16).start();
    under_way(&target, &child);
    let standby = resume(&fleet, "--standby").start();
    standby.hears("it waits", |_, err| err.contains("on standby for run").then_some(()));
    let record = child.folder().join("record").display().to_string();
    throng(&format!("control {record} mark")).arg("before all").run().exits(0);
    throng(&format!("control {record} rate 25/s")).run().exits(0);
    let before = target.counts("/requests");
    child.until("the rate has changed", || target.counts("/requests") > before + 20);
    child.signal(libc::SIGKILL);
    drop(child.wait());
    let run = standby.wait().exits(0);
    run.says(&["and rereads its earlier results"]);
    is_whole(&target, &run);
    run.check(!lost(&run), "nobody is lost");
    let changes = run.json()["changes"].as_array().cloned().unwrap_or_default();
    run.check(changes.len() == 2, "each was told once");
    run.check(changes[0]["mark"] == "before all" && changes[1]["change"] == "rate 25", "in order");
    let report = throng("report --json").arg(run.folder().join("taken")).run();
    assert_eq!(begun(&report), begun(&run), "{report}");
    let count = run.json()["total"]["begun"].as_u64().unwrap_or(0);
    by_label(&run, "name", &["a", "b"], count);
    let none = resume(&fleet, "").run().exits(3);
    none.says(&["no run of this fleet is in progress"]);
}

#[test]
fn a_run_that_ended_alone_is_taken_over_afterwards() {
    let fleet = Fleet::start(&["a"]);
    let target = Target::start("http");
    let child = controller(&fleet, &target, 5).start();
    under_way(&target, &child);
    child.signal(libc::SIGKILL);
    drop(child.wait());
    fleet.agents[0]
        .1
        .hears("sent", |_, err| err.contains("of this agent are in the log").then_some(()));
    let run = resume(&fleet, "").run().exits(0);
    is_whole(&target, &run);
    run.has("/total/count", 250);
    // Once more, by its name: nothing of it is done twice.
    let id = run.json()["run"]["id"].as_str().expect("an id").to_string();
    let again = resume(&fleet, &id).run().exits(0);
    again.has("/total/count", 250);
    assert_eq!(target.counts("/requests"), 252, "{again}");
    resume(&fleet, "nothing").run().exits(3).says(&["the bus has no run nothing"]);
}

/// What each agent keeps.
fn kept(fleet: &Fleet, name: &str) -> PathBuf {
    fleet.folder.path().join(format!("{name}.agent"))
}

fn collect(directories: &[&Path]) -> Run {
    let command = throng("collect --json --out taken");
    directories.iter().fold(command, |command, directory| command.arg(directory)).run()
}

#[test]
fn a_run_is_recovered_from_its_agents() {
    let mut fleet = Fleet::start(&["a", "b"]);
    let target = Target::start("http");
    let run = controller(&fleet, &target, 3).run().exits(0);
    is_whole(&target, &run);
    for (_, agent) in fleet.agents.drain(..) {
        agent.signal(libc::SIGTERM);
        agent.wait().exits(0);
    }
    let (a, b) = (kept(&fleet, "a"), kept(&fleet, "b"));
    let all = collect(&[&a, &b]).exits(0);
    assert_eq!(begun(&all), begun(&run), "{all}");
    let parts = ["steps", "total", "users", "machines", "phases", "by_label"];
    for part in parts {
        assert_eq!(all.json()[part], run.json()[part], "{part}\n{all}");
    }
    assert_eq!(target.counts("/requests"), 152, "nothing is sent");
    let one = collect(&[&a]).exits(5);
    one.check(lost(&one), "b is missing");
    collect(&[&a, &a]).exits(2).says(&["contains the same part", "give each part only once"]);
    collect(&[&fleet.keys]).exits(2).says(&["does not contain any part of a run"]);
    let second = controller_again(&mut fleet, &target);
    collect(&[&second]).exits(2).says(&["parts of 2 runs were found", "--run"]);
}

/// Another run of agent `a`, which keeps both.
fn controller_again(fleet: &mut Fleet, target: &Target) -> PathBuf {
    let agent = fleet.agent("a", &fleet.folder.path().join("a"), "").start();
    agent.hears("joined", |_, err| err.contains("joined").then_some(()));
    fleet.agents.push(("a".to_string(), agent));
    controller(fleet, target, 1).run().exits(0);
    kept(fleet, "a")
}

#[test]
fn the_load_of_a_lost_agent_is_taken_over_if_requested() {
    let mut fleet = Fleet::start(&["a", "b"]);
    let target = Target::start("http");
    let child = controller(&fleet, &target, 15).arg("--redistribute").start();
    under_way(&target, &child);
    let (_, agent) = fleet.agents.pop().expect("an agent");
    agent.signal(libc::SIGTERM);
    agent.wait().exits(0);
    let run = child.wait().exits(5);
    run.says(&["the other machines now generate 2.00 times their share"]);
    run.check(lost(&run), "a part was missing for a moment");
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count") + 2.0, "{run}");
    // Of 750; half of 13 seconds would be missing.
    run.check(run.figure("/total/count") > 650.0, "the load was not made by the other");
    let changes = run.json()["changes"].as_array().cloned().unwrap_or_default();
    run.check(changes.iter().any(|it| it["change"] == "redistribute 2.00"), "no dated change");
}
