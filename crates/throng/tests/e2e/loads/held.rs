//! The generator's own limits: what it may take of its host, and what it does when it is there.

use crate::run::{Throng, throng};
use crate::servers::{Target, program};

/// A phase that ends whoever came, and wants more users than one second brings.
fn ramp(target: &Target) -> String {
    format!(
        "target: {}\nsessions:\n  member:\n    steps:\n      - connect: /acc\n      - stay: forever\n\
         load:\n  - {{name: fill, users: {{to: 100, rate: 50/s}}, for: 4s}}\n  \
         - {{name: drain, users: {{to: 0, rate: 500/s}}}}\n",
        target.url("ws", "").trim_end_matches('/')
    )
}

fn run(target: &Target, line: &str) -> Throng {
    throng(&format!("run ramp.yaml --no-record {line}")).file("ramp.yaml", ramp(target))
}

#[test]
fn too_little_memory_pauses_growth_and_is_attributed_to_the_generator() {
    let target = Target::start("im");
    let run = run(&target, "--max-memory 1MiB --details").run().exits(5);
    run.says(&["growth paused: throng and its connections use ", "--max-memory is 1.05 MB"]);
    run.says(&["the result is invalid", "growth paused for "]);
    // It is seen when the run has begun: the first users may be there by then.
    assert!(target.counts("/connections/accepted") < 50, "{run}");
}

#[test]
fn a_traffic_limit_pauses_growth() {
    let target = Target::start("im");
    // The loopback interface has more than that as soon as somebody connects.
    for (flag, limit, words) in [
        ("--max-bandwidth 1kbit/s", "bandwidth", "--max-bandwidth is 1 kbit/s"),
        ("--max-packets 1/s", "packets", "--max-packets is 1/s"),
    ] {
        let run = run(&target, &format!("{flag} --json")).run().exits(5);
        assert_eq!(run.json()["growth"]["held"]["limit"], limit, "{run}");
        run.says(&["growth paused: this host has ", words]);
    }
    assert!(target.counts("/connections/accepted") < 200, "both ramps");
}

#[test]
fn throttling_is_recorded_and_reported_again() {
    let target = Target::start("im");
    let line = "run ramp.yaml --max-memory 1MiB --out record --lang zh";
    let run = throng(line).file("ramp.yaml", ramp(&target)).run().exits(5);
    run.says(&["暂停增长：throng 及其连接占用"]);
    let read = |name: &str| {
        std::fs::read_to_string(run.folder().join("record").join(name)).expect("a file")
    };
    let events = read("events.ndjson");
    run.check(events.contains(r#""event":"held""#), "it is no event");
    // Records are English, whatever the person speaks.
    run.check(events.contains("throng and its connections use "), "it has no detail");
    run.check(read("intervals.ndjson").contains(r#""held":true"#), "no second of it");
}

#[test]
fn sufficient_resources_throttle_no_user() {
    let target = Target::start("im");
    let run = run(&target, "--max-memory 900GB --max-cpu 100% --nice 3 --json").run();
    // A host that is busy to the last processor may hold users for a while.
    run.check([0, 5].contains(&run.code()), "it ends in order");
    run.check(!run.err.contains("--max-memory is"), "memory is not the limit");
}

#[test]
fn existing_users_cannot_be_throttled_which_is_reported() {
    let target = Target::start("http");
    let line = format!("bench {} -c 4 -d 3s --max-cpu 1% --no-record", target.http("/"));
    let run = throng(&line).run().exits(0);
    run.says(&[
        "at a limit, but all users have started, so growth cannot be paused:",
        "--max-cpu is 1 %",
    ]);
}

#[test]
fn nice_is_kept_by_all_threads() {
    let target = Target::start("http");
    let line = format!("bench {} -c 4 -d 20s --nice 7 --no-record", target.http("/"));
    let child = throng(&line).start();
    target.comes_to("/connections/accepted", 4);
    let tasks = format!("/proc/{}/task", child.id());
    let nices: Vec<String> = std::fs::read_dir(&tasks)
        .expect("its threads")
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok())
        // Field 19; what stands before the last bracket is a name.
        .filter_map(|stat| Some(stat.rsplit_once(')')?.1.split(' ').nth(17)?.to_string()))
        .collect();
    assert!(nices.len() >= 2 && nices.iter().all(|nice| nice == "7"), "{nices:?}");
}

#[test]
fn refusals_of_the_host_are_reported_before_the_first_packet() {
    let target = Target::start("http");
    program("setpriv", "util-linux");
    let line = format!("bench {} -n 10 --nice -20 --no-record", target.http("/"));
    // SAFETY: the call has no arguments and touches no memory.
    let run = match unsafe { libc::geteuid() } {
        0 => Throng::under("setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice", &line).run(),
        _ => throng(&line).run(),
    };
    run.exits(3).says(&[
        "error[host-unfit]",
        "does not allow `--nice -20`",
        "only root",
        "nothing was sent",
    ]);
    assert_eq!(target.counts("/requests"), 0);
}

#[test]
fn impossible_limits_are_refused_with_the_fix() {
    let target = Target::start("http");
    for (flag, cure) in [
        ("--max-cpu 80", "a share is a percentage: `5%`"),
        ("--max-cpu 0%", "it must be more than 0"),
        ("--max-cpu 101%", "a share is at most 100%"),
        ("--max-memory much", "a size is a number and a unit"),
        ("--max-memory 0", "it must be more than 0"),
        ("--max-bandwidth 200", "a bandwidth is a number with its unit: `200Mbit/s`, `1Gbit/s`"),
        ("--max-packets many/s", "a rate is a number per unit of time"),
        ("--back-off 60", "a share is a percentage: `5%`"),
        ("--back-off 60% --processes 2", "`--back-off` does not work across processes"),
        ("--nice 20", "it must be a number from -20 to 19; a higher number means a lower priority"),
        (
            "--nice fast",
            "it must be a number from -20 to 19; a higher number means a lower priority",
        ),
    ] {
        let run = throng(&format!("bench {} {flag}", target.http("/"))).run().exits(2);
        run.says(&[cure]);
    }
    assert_eq!(target.counts("/requests"), 0);
}
