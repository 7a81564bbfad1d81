//! Truth: the measurements of throng match those of the target. Other work of the machine is
//! excluded if possible; otherwise, and because a host may take processors away, each test has
//! several attempts, of which one must pass.

use crate::run::{throng, throng_first};
use crate::servers::Target;

const TRIES: usize = 3;

/// Passes within several attempts.
#[track_caller]
fn holds(attempt: impl Fn() -> Result<(), String>) {
    let mut faults = Vec::new();
    for _ in 0..TRIES {
        match attempt() {
            Ok(()) => return,
            Err(fault) => faults.push(fault),
        }
    }
    panic!("not once in {TRIES} tries:\n{}", faults.join("\n"));
}

/// The p99 that the run reports and that of the target differ by 5 % or 2 ms at most. Where throng
/// says itself that it was late by more than that, as when a host takes its processors away, what
/// it reports is not less than what was served, and more by no more than it says.
fn agrees(law: &str, load: &str) -> Result<(), String> {
    agrees_over("http", law, load)
}

fn agrees_over(scheme: &str, law: &str, load: &str) -> Result<(), String> {
    let tls = if scheme == "https" { " --tls" } else { "" };
    let target = Target::begun(&format!("http --latency {law}{tls}"), throng_first);
    let line = format!("bench {} {load} --json", target.url(scheme, "/"));
    let run = throng_first(&line).start().wait().exits(0);
    let (ours, theirs) =
        (run.figure("/total/latency/p99_ns"), target.counts("/service_time/p99_ns") as f64);
    let allowed = (theirs * 0.05).max(2e6);
    // The precision is not part of response times.
    let free = run.figure("/generator/precision_ns");
    let late = |quantile: &str| run.figure(&format!("/generator/lateness/{quantile}_ns")) - free;
    let is_explained = late("p99") > allowed && (0.0..=late("max")).contains(&(ours - theirs));
    match (ours - theirs).abs() <= allowed || is_explained {
        true => Ok(()),
        false => Err(format!("{law}, {load}: p99 {ours} ns, the target's {theirs} ns\n{run}")),
    }
}

#[test]
fn closed_load_measures_what_the_target_serves() {
    for law in ["20ms", "10ms..50ms", "exponential 20ms"] {
        holds(|| agrees(law, "-c 20 -d 2s"));
    }
}

#[test]
fn open_load_measures_what_the_target_serves() {
    for law in ["20ms", "10ms..50ms", "exponential 20ms"] {
        holds(|| agrees(law, "-c 60 --rate 500 -d 3s"));
    }
}

/// Responses wait in the socket for half of a window on average, and for all of it at worst.
#[test]
fn late_reads_are_measured_at_arrival() {
    for scheme in ["http", "https"] {
        // The first requests, among many handshakes, are not measured.
        let load = "-c 60 --rate 600 --warm-up 1s -d 4s --precision 5ms --insecure";
        holds(|| agrees_over(scheme, "20ms", load));
    }
}

/// The requested rate is twice what two users achieve with a target that takes 20 ms.
#[test]
fn waiting_for_a_slow_target_is_response_time_but_not_service_time() {
    holds(|| {
        let target = Target::begun("http --latency 20ms", throng_first);
        let load = "-c 2 --rate 200 -d 3s --json --out record";
        let run = throng_first(&format!("bench {} {load}", target.http("/"))).start().wait();
        let of = |times: &str, figure: &str| run.figure(&format!("/steps/0/{times}/{figure}"));
        let (response, service) = (of("latency", "p50_ns"), of("service", "p50_ns"));
        let p90 = of("service", "p90_ns");
        let own = target.counts("/service_time/p50_ns") as f64;
        run.check(of("service", "count") == of("latency", "count"), "each has both");
        let line = format!("report {} --details", run.folder().join("record").display());
        let again = throng_first(&line).start().wait();
        again.says(&["service time"]);
        match response > 400e6 && (service - own).abs() < 5e6 && p90 < 40e6 {
            true => Ok(()),
            false => Err(format!("response {response}, service {service}, p90 {p90}\n{run}")),
        }
    });
}

/// Users with kept connections and no think time do not wait: the record omits the service times.
#[test]
fn service_times_equal_to_response_times_are_not_written() {
    let target = Target::start("http --latency 2ms");
    let line = format!("bench {} -c 2 -d 3s --precision 0s --json --out record", target.http("/"));
    let run = throng(&line).run().exits(0);
    let lines = std::fs::read_to_string(run.folder().join("record/intervals.ndjson"));
    let lines = lines.expect("lines");
    // Connections were opened in the first second.
    let with = lines.lines().filter(|line| line.contains("\"service\":")).count();
    run.check(with <= 1 && lines.lines().count() >= 3, &format!("{with} lines have it"));
    let of = |times: &str| run.figure(&format!("/steps/0/{times}/count"));
    run.check(of("service") == of("latency"), "they are known all the same");
}

#[test]
fn a_frozen_target_shows_in_open_load() {
    holds(|| {
        let target = Target::begun("http --latency stall 400ms every 1s", throng_first);
        let line = format!("bench {} -c 400 --rate 300 -d 3s --json", target.http("/"));
        let run = throng_first(&line).start().wait().exits(0);
        // The requests of 400 ms of every second wait, one in eight of all for more than 250 ms.
        let (p90, max) = (run.figure("/total/latency/p90_ns"), run.figure("/total/latency/max_ns"));
        let p50 = run.figure("/total/latency/p50_ns");
        match p50 < 100e6 && p90 > 200e6 && (350e6..700e6).contains(&max) {
            true => Ok(()),
            false => Err(format!("p50 {p50}, p90 {p90}, max {max}\n{run}")),
        }
    });
}
