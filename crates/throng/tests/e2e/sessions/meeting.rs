//! Users who wait for each other, over all shards, processes and machines.

use crate::machines::fleet::{Fleet, lost};
use crate::machines::processes::{children, kill};
use crate::run::{PATIENCE, Run};
use crate::scenarios::{one_session, running, times};
use crate::scribe::Scribe;

#[test]
fn waits_at_a_rendezvous_are_limited() {
    let scribe = Scribe::start();
    let steps = "\
- if: ${user.id == 1}
  then: [{rendezvous: gate, users: 3, timeout: 300ms}]
- http: GET /on";
    let text = one_session(&scribe.target(), &times(3, 3), steps);
    let run = running(&text).run().exits(0);
    assert!(scribe.count("GET /on") == 3, "{run}");
    let row = run.row("errors", "gate");
    run.check(row["cause"] == "rendezvous-timeout" && row["blame"] == "scenario", "the cause");
    run.check(run.took < PATIENCE, "it waits");
}

/// Thirty users in all meet twice, wherever they are.
fn all_meet(scribe: &Scribe) -> String {
    let steps = "\
- http: GET /warm
- think: 10ms..300ms
- rendezvous: gate
  users: 30
- http: GET /on";
    one_session(&scribe.target(), &times(60, 30), steps)
}

/// Nobody went on before all thirty were there, on all machines together.
#[track_caller]
fn have_met(run: &Run, scribe: &Scribe) {
    let row = run.row("steps", "gate");
    run.check(row["ok"] == 60 && row["count"] == 60, "all have met, each time");
    let (mut warm, mut on) = (0, 0);
    for asked in scribe.book() {
        match asked.what.as_str() {
            "GET /warm" => warm += 1,
            _ => {
                let wanted = (on / 30 + 1) * 30;
                assert!(warm >= wanted, "number {on} goes on when {warm} have come\n{run}");
                on += 1;
            }
        }
    }
    run.check((warm, on) == (60, 60), "the target has seen all");
}

#[test]
fn users_of_several_processes_continue_together() {
    for processes in [1, 2, 5] {
        let scribe = Scribe::start();
        let several = format!("--processes={processes}");
        let run = running(&all_meet(&scribe)).arg("--shards=2").arg(several).run().exits(0);
        have_met(&run, &scribe);
    }
}

#[test]
fn users_of_a_fleet_continue_together() {
    let fleet = Fleet::start(&["a", "b", "c"]);
    let scribe = Scribe::start();
    let keys = format!("--fleet={}", fleet.keys.display());
    let run = running(&all_meet(&scribe)).arg("--shards=2").arg(keys).run().exits(0);
    have_met(&run, &scribe);
}

/// The process that counts is killed: the next one does, once it has waited long enough.
#[test]
fn other_users_meet_when_a_process_is_killed() {
    let scribe = Scribe::start();
    let steps = "\
- http: GET /warm
- think: 100ms
- rendezvous: gate
  users: 4
  timeout: 1m
- http: GET /on";
    let text = one_session(&scribe.target(), "load: [{users: 12, for: 25s}]\n", steps);
    let child = running(&text).arg("--shards=1").arg("--processes=3").start();
    child.until("they meet", || scribe.count("GET /on") >= 24);
    kill(children(child.id())[0]);
    let before = scribe.count("GET /on");
    child.until("the others meet", || scribe.count("GET /on") > before + 24);
    let run = child.wait().exits(5);
    run.check(lost(&run), "the result is invalid");
    let row = run.row("steps", "gate");
    run.check(row["ok"] == row["count"], "nobody went on alone");
}

#[test]
fn separately_run_parts_have_no_rendezvous() {
    let scribe = Scribe::start();
    let run = running(&all_meet(&scribe)).arg("--part=1/3").run().exits(2);
    run.says(&["`rendezvous` does not work across parts that run separately", "nothing was sent"]);
    assert!(scribe.book().is_empty(), "{run}");
}
