//! A generator that could not run for a while.

use crate::run::throng;
use crate::servers::Target;

#[test]
fn a_stopped_generator_has_no_valid_result() {
    let target = Target::start("http");
    let line = format!("bench {} -c 4 -d 10s --json --no-record", target.http("/"));
    let run = throng(&line).start();
    run.hears("a second to pass", |_, err| err.contains("s       4 ").then_some(()));
    run.signal(libc::SIGSTOP);
    // Another run is the clock: it takes two seconds.
    throng(&format!("bench {} -c 1 -d 2s --no-record", target.http("/"))).run();
    run.signal(libc::SIGCONT);
    let run = run.wait().exits(5);
    let reasons = run.json()["outcome"]["invalid_reasons"].to_string();
    run.check(reasons.contains("time-lost"), "it says nothing of the time it lost");
    // All shards stopped for as long as the process was stopped: the start and end of the other run
    // depend on the computer, but no run loses more time than it lasted.
    run.within("/generator/lost_longest_ns", 1.5e9, run.figure("/lasted_ns"));
}
