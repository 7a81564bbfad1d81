//! Fleets under faults that a seed selects: agents, their engines, the bus, its keeper and the
//! controller are killed, frozen and disconnected during a run. The target counts, and so do the
//! disks of the agents: the results of the run must agree with them.

mod books;
mod deeds;
mod wire;

use throng_base::{Clock, Random};

use crate::run::{Run, throng};
use crate::servers::Target;
use books::Books;
use deeds::{Chaos, Story};

/// The number of stories per test run; `THRONG_CHAOS=20` runs twenty.
const SEEDS: u64 = 2;
const RATE: u64 = 60;
const USERS: u64 = 6;
const SECONDS: u64 = 9;
/// The counts of a second are written after it, and a busy machine takes its time.
const UNWRITTEN_MS: u64 = 2_500;

fn scenario(target: &Target) -> String {
    format!(
        "target: {}
sessions:
  comer: {{steps: [{{http: GET /come}}]}}
  stayer: {{steps: [{{http: GET /stay}}, {{think: 100ms}}]}}
loads:
  comers: {{sessions: comer, phases: [{{arrivals: {RATE}/s, for: {SECONDS}s}}]}}
  stayers: {{sessions: stayer, phases: [{{users: {USERS}, for: {SECONDS}s}}]}}
",
        target.http("")
    )
}

#[test]
fn no_count_is_lost_and_no_incomplete_run_is_called_complete() {
    let seeds = std::env::var("THRONG_CHAOS").ok().and_then(|text| text.parse().ok());
    let first = std::env::var("THRONG_CHAOS_FROM").ok().and_then(|text| text.parse().ok());
    let first = first.unwrap_or(0);
    // Two at a time: they mostly wait.
    let seeds: Vec<u64> = (first..first + seeds.unwrap_or(SEEDS)).collect();
    for pair in seeds.chunks(2) {
        std::thread::scope(|scope| {
            for &seed in pair {
                scope.spawn(move || eprintln!("seed {seed}: {}", tells(seed)));
            }
        });
    }
}

/// Runs one story; returns the outcome.
fn tells(seed: u64) -> String {
    let story = Story::new(&mut Random::new(seed));
    eprintln!("seed {seed}: {} agents; {story}", story.agents);
    let mut chaos = Chaos::new(&story);
    let target = Target::start("http --latency 3ms");
    let keys = format!("--fleet={}", chaos.fleet.keys.display());
    let run = throng("run s.yaml --json --out record").arg(keys).file("s.yaml", scenario(&target));
    let child = run.arg(format!("--agents={}", story.agents)).start();
    child.hears("the agents", |_, err| err.contains("generate the load").then_some(()));
    let run = chaos.lives_through(&story, child).wait();
    judged(&story, &chaos, &target, &run)
}

/// Compares the results of the run with the target's counts and the disks of the agents.
fn judged(story: &Story, chaos: &Chaos, target: &Target, run: &Run) -> String {
    let say = |fault: &str| format!("{fault}\n{story}");
    if run.code() == 3 {
        run.says(&["nothing was sent"]);
        run.check(target.counts("/requests") == 0, &say("something was sent"));
        return "did not begin, and says so".to_string();
    }
    run.check([0, 5].contains(&run.code()), &say("neither whole nor called invalid"));
    // No requests may arrive after the run.
    let asked = target.counts("/requests");
    Clock::start_in(std::time::Duration::from_millis(700)).wait_for_zero();
    run.check(target.counts("/requests") == asked, &say("the load goes on"));
    let own = Books::of_run(run);
    let disks = Books::of_disks(&chaos.fleet);
    run.check(own == disks, &say(&format!("the run has {own:?}, the disks have {disks:?}")));
    let again = throng("report --json").arg(run.folder().join("record")).run();
    run.check(Books::of_run(&again) == own, &say("the record has other figures"));
    run.has("/record/lines_missing", 0);
    let killed = story.kills_engines();
    if killed == 0 {
        let ended = own.ok + own.failed + own.interrupted;
        run.check(own.begun == ended, &say(&format!("begun and ended differ: {own:?}")));
    }
    // The last counts of a killed engine are not on any disk; the target received the requests.
    let unwritten = killed * (RATE + USERS * 10) * UNWRITTEN_MS / 1_000;
    let known = own.ok + own.failed;
    let seen = known..=own.begun.max(known) + unwritten;
    run.check(seen.contains(&asked), &say(&format!("the target saw {asked}: {own:?}")));
    let is_whole = own.arrived == RATE * SECONDS;
    run.check(is_whole || run.code() == 5, &say(&format!("called whole: {own:?}")));
    let what = if run.code() == 0 { "whole" } else { "invalid, and says so" };
    format!("{what}, {} begun, {} ended, the target saw {asked}", own.begun, known)
}
