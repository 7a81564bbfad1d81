//! Targets whose capacity is known: what a run counts is what their queue and their limit count.

use crate::run::{Run, throng};
use crate::servers::{Target, fetch};

/// How many responses of a run had this status.
fn codes(run: &Run, status: u16) -> u64 {
    let json = run.json();
    let codes = &json["steps"][0]["codes"];
    codes[status.to_string()].as_u64().unwrap_or_default()
}

#[test]
fn a_full_queue_counts_what_the_run_counts() {
    for version in ["", "--http2"] {
        let target = Target::start("http --servers 2 --service exponential 5ms --queue-max 3");
        let line = format!("bench {} {version} -n 400 -c 20 --json", target.http("/"));
        let run = throng(&line).run();
        let (ok, full) = (codes(&run, 200), codes(&run, 503));
        run.check(ok + full == 400 && full > 20, "20 users do not fit into 5 places");
        assert_eq!(target.counts("/requests"), 400, "{run}");
        assert_eq!(target.counts("/queue/queue_full"), full, "{run}");
        let books = ["admitted", "served"].map(|name| target.counts(&format!("/queue/{name}")));
        assert_eq!(books, [ok, ok], "{run}");
        assert!(target.counts("/queue/waiting_max") <= 3, "{run}");
    }
}

#[test]
fn a_rate_limit_counts_what_the_run_counts() {
    for version in ["", "--http2"] {
        let target = Target::start("http --rate-limit 50/s:10");
        let line = format!("bench {} {version} --rate 200 -d 2s --json", target.http("/"));
        let run = throng(&line).run();
        let (ok, limited) = (codes(&run, 200), codes(&run, 429));
        assert_eq!(target.counts("/requests"), ok + limited, "{run}");
        assert_eq!(target.counts("/queue/rate_limited"), limited, "{run}");
        // The burst, and 50 in each of two seconds; a slow host makes that longer.
        run.check(limited > 0 && ok >= 100, "the rest is refused");
    }
}

#[test]
fn abandoned_requests_leave_the_queue_or_are_served_as_configured() {
    for (flags, served, dropped) in [("60s", 0, 10), ("150ms --work-on", 10, 0)] {
        let target = Target::start(&format!("http --service {flags}"));
        let line = format!("bench {} -n 10 -c 10 --timeout 400ms --json", target.http("/"));
        let run = throng(&line).run();
        let failed = run.json()["total"]["failed"].as_u64().unwrap_or_default();
        run.check(failed >= 7, "at most two or three are served in time");
        target.comes_to("/queue/served", served);
        target.comes_to("/queue/dropped", dropped);
        assert_eq!(target.counts("/queue/admitted"), 10, "{run}");
        assert_eq!(target.counts("/queue/unwanted"), if dropped > 0 { 0 } else { failed }, "{run}");
    }
}

#[test]
fn the_law_is_beside_the_statistics() {
    let target = Target::start("http --servers 8 --service exponential 8ms --errors 0.1%");
    let law = fetch(target.admin, "/throng/law?p=99&within=50ms");
    let law: serde_json::Value = serde_json::from_str(&law).expect("JSON");
    assert_eq!((&law["by"], &law["model"]), (&"closed form".into(), &"M/M/8, errors".into()));
    let rate = law["rate_per_s"].as_f64().unwrap_or_default();
    assert!((860.0..877.0).contains(&rate), "{law}");
}

#[test]
fn wrong_capacities_are_refused_with_the_fix() {
    for (kind, arguments, told) in [
        ("http", &["--usl=0.02"][..], "write CONTENTION,CROSSTALK"),
        ("http", &["--service=stalls"], "write a latency as"),
        ("http", &["--rate-limit=500"], "`500/s:20`"),
        ("http", &["--warm-up=60s"], "write a duration and a speed: `60s:60%`"),
        ("http", &["--slow-spells=45s"], "`45s:5s:15%`"),
        ("http", &["--servers=0"], "it must be at least 1"),
        ("http", &["--servers=8"], "`--servers` requires `--service`"),
        ("http", &["--queue-max=9"], "`--queue-max` requires `--service`"),
        ("http", &["--work-on"], "`--work-on` requires `--service`"),
        ("http", &["--service=1ms", "--latency=1ms"], "`--latency` cannot be combined"),
        ("http", &["--service=1ms", "--usl=0,0", "--queue-max=9"], "with `--usl`, no request"),
        ("http", &["--connections-max=0"], "it must be at least 1"),
        ("im", &["--service=1ms"], "only `throng target http` has a queue"),
        ("im", &["--accept-rate=0/s"], "it must be more than 0"),
    ] {
        let line = throng(&format!("target {kind} --listen 127.0.0.1:0"));
        let run = arguments.iter().fold(line, |line, it| line.arg(it)).run();
        run.exits(2).says(&[told]);
    }
}

#[test]
fn a_messenger_accepts_connections_up_to_its_limit() {
    let target = Target::start("im --connections-max 5");
    let scenario = format!(
        "target: {}\nsessions: {{one: {{steps: [connect, {{stay: 1s}}]}}}}\n\
         load: [{{iterations: 8, users: 8}}]\n",
        target.url("ws", "/")
    );
    let run = throng("run s.yaml --json").file("s.yaml", scenario).run();
    run.has("/total/failed", 3);
    let counts = ["accepted", "refused"].map(|name| target.counts(&format!("/connections/{name}")));
    assert_eq!(counts, [5, 3], "{run}");
}
