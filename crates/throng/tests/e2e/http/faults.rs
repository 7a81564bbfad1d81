//! HTTP servers that misbehave: every fault is counted by its cause, and nothing hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::faulty::{Faulty, Peer};
use crate::run::{Run, throng};
use crate::servers::{Nginx, Target, free_port};

/// Six requests, none of which can take longer than a second.
fn bench(url: &str, line: &str) -> Run {
    let run = throng(&format!("bench {url} -n 6 -c 3 --timeout 1s {line} --json")).run();
    run.check(run.took.as_secs() < 20, "it took too long");
    run
}

#[track_caller]
fn fails(server: &Faulty, line: &str, cause: &str) {
    let run = bench(&server.url("http"), line);
    run.fails(cause, "target", Some(6));
    run.check(run.json()["errors"][0]["example"]["detail"].is_string(), "there is no example");
}

const OK: &str = "HTTP/1.1 200 OK\r\n";

#[test]
fn a_missing_target_is_unreachable() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let run = bench(&url, "").exits(4);
    run.fails("connect-refused", "target", Some(6));
    // A target that was never reached cannot be lost.
    let run = throng(&format!("bench {url} -c 2 -d 30s --json")).run().exits(4);
    let reason = run.json()["outcome"]["reasons"][0].to_string();
    run.check(reason.contains("the target could not be reached"), &reason);
    let run = throng(&format!("bench {url} -n 6 -c 3")).run().exits(4);
    run.says(&["connect-refused", "target"]);
}

#[test]
fn a_missing_target_is_not_hammered() {
    // A port that no other test can use during this one.
    let url = "http://127.0.0.1:1/";
    let run = throng(&format!("bench {url} -c 10 -d 30s --json")).run().exits(4);
    run.check(run.took.as_secs() < 15, "it does not give up");
    run.within("/connections/attempted", 10.0, 20_000.0);
}

#[test]
fn silence_is_a_timeout() {
    fails(&Faulty::start(|peer| peer.waits()), "", "timeout");
    let half = |mut peer: Peer| {
        peer.hears();
        peer.says(format!("{OK}Content-Length: 10\r\n\r\nhalf").as_bytes());
        peer.waits();
    };
    fails(&Faulty::start(half), "", "timeout");
    let run = bench(&Faulty::start(|peer| peer.waits()).url("http"), "");
    run.has("/connections/timed_out", 6);
    // The minimum; a busy machine is later.
    run.within("/total/latency/min_ns", 0.95e9, 20e9);
}

#[test]
fn a_close_before_the_response_is_counted() {
    fails(&Faulty::start(|peer| peer.closes()), "", "closed-early");
    fails(&Faulty::says(""), "", "closed-early");
    fails(&Faulty::says("HTTP/1.1 2"), "", "closed-early");
    fails(&Faulty::says(format!("{OK}X-Half: ")), "", "closed-early");
    fails(&Faulty::says(format!("{OK}Content-Length: 10\r\n\r\nhalf")), "", "closed-early");
    let chunks = format!("{OK}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    fails(&Faulty::says(chunks), "", "closed-early");
}

#[test]
fn a_reset_is_counted() {
    let resets = |mut peer: Peer| {
        peer.hears();
        peer.resets();
    };
    fails(&Faulty::start(resets), "", "reset");
}

#[test]
fn garbage_is_malformed() {
    for garbage in [
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "\0\u{1}\u{2}\u{3}\r\n\r\n",
        "HTTP/1.1 2OO OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno header at all\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nxx\r\n",
    ] {
        fails(&Faulty::says(garbage), "", "malformed");
    }
}

#[test]
fn endless_responses_are_limited() {
    let endless = |begin: &'static str, piece: &'static [u8]| {
        Faulty::start(move |mut peer| {
            peer.hears();
            peer.says(begin.as_bytes());
            while peer.says(piece) {}
        })
    };
    let header = b"X-Endless: 0123456789012345678901234567890123456789\r\n";
    fails(&endless("HTTP/1.1 200 OK\r\n", header), "", "too-large");
    fails(&endless("HTTP/1.1 200 OK\r\nX-Endless: ", &[b'x'; 1000]), "", "too-large");
    fails(&endless("", &[b'x'; 1000]), "", "malformed");
    // Nothing reads the body, so none of it is kept: only the time is limited.
    let body = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n";
    fails(&endless(body, &[b'x'; 65536]), "", "timeout");
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    fails(&endless(chunks, b"4\r\nmore\r\n"), "", "timeout");
    fails(&endless(chunks, b"4\r\nfive.\r\n"), "", "malformed");
    fails(&endless(body, &[b'x'; 65536]), "--expect-text needle", "too-large");
    let run = bench(&endless("", b"HTTP/1.1 100 Continue\r\n\r\n").url("http"), "");
    run.has("/total/failed", 6);
}

/// The number of failures with a cause.
fn failures(run: &Run, cause: &str) -> u64 {
    let json = run.json();
    let row = json["errors"].as_array().expect("rows").iter().find(|row| row["cause"] == cause);
    row.and_then(|row| row["count"].as_u64()).unwrap_or(0)
}

/// What a load of one kind leaves to hide a fault behind: no time between two requests, a time in
/// which connections are idle, a schedule.
const LOADS: [&str; 3] = ["-c 10", "-c 10 --think 3ms", "-c 50 --rate 1000"];

#[test]
fn faults_between_valid_responses_are_distinguished() {
    for load in LOADS {
        let target = Target::start("http --errors 20% --resets 10%");
        let run = throng(&format!("bench {} -n 1000 {load} --json", target.http("/"))).run();
        let stats = target.stats();
        let same = |cause: &str, key: &str| {
            let told = failures(&run, cause);
            let fault = format!("{told} × {cause}, but the target has {key} {}", stats[key]);
            run.check(stats[key] == told, &fault);
        };
        same("status-unexpected", "errors_sent");
        same("reset", "resets_sent");
        run.has("/total/count", 1000);
        run.has("/total/codes/500", failures(&run, "status-unexpected"));
        run.has("/total/resent", 0);
        run.check(stats["requests"] == 1000, "the target has seen other requests");
    }
}

#[test]
fn dropped_requests_are_reported() {
    for load in LOADS {
        let (heard, dropped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (hears, drops) = (Arc::clone(&heard), Arc::clone(&dropped));
        let server = Faulty::start(move |mut peer| {
            while peer.hears() {
                if hears.fetch_add(1, Ordering::SeqCst) % 7 == 6 {
                    drops.fetch_add(1, Ordering::SeqCst);
                    return peer.closes();
                }
                peer.says(format!("{OK}Content-Length: 2\r\n\r\nok").as_bytes());
            }
        });
        let run = throng(&format!("bench {} -n 1500 {load} --json", server.url("http"))).run();
        let (heard, dropped) = (heard.load(Ordering::SeqCst), dropped.load(Ordering::SeqCst));
        run.has("/total/count", 1500);
        let resent = run.figure("/total/resent") as u64;
        run.check(heard <= 1500 + resent, &format!("{heard} came, {resent} were sent again"));
        let told = failures(&run, "closed-early");
        run.check(told == dropped, &format!("{told} told, {dropped} dropped"));
    }
}

/// nginx closes idle connections at the moment when users come back: whatever meets, each request
/// is one attempt, and a good one if nginx has answered it.
#[test]
fn closed_idle_connections_fail_no_request() {
    let nginx = Nginx::start("", "keepalive_timeout 20ms;");
    let mut good = 0;
    for flags in ["", "--no-resend"] {
        let line = format!("bench {} -n 1000 -c 20 --think 20ms {flags} --json", nginx.url("/"));
        let run = throng(&line).run();
        run.has("/total/count", 1000);
        run.check(flags.is_empty() || run.figure("/total/resent") == 0.0, "it was sent again");
        good += run.figure("/total/ok") as usize;
        run.check(nginx.log(good).len() == good, "nginx has answered others");
    }
}

#[test]
fn an_early_response_is_read() {
    let refuses = |mut peer: Peer| {
        peer.hears();
        let end = "Content-Length: 9\r\nConnection: close\r\n\r\ntoo large";
        peer.says(format!("HTTP/1.1 413 Content Too Large\r\n{end}").as_bytes());
        // Closing with unread bytes is a reset.
    };
    let server = Faulty::start(refuses);
    let line = format!("bench {} -n 6 -c 3 -D body.bin --json", server.url("http"));
    let run = throng(&line).file("body.bin", "x".repeat(16 << 20)).run();
    run.has("/total/codes/413", 6);
    run.has("/total/count", 6);
    run.check(failures(&run, "status-unexpected") == 6, "the answer is lost");
}

#[test]
fn bytes_after_the_end_of_a_response_are_reported() {
    let server = Faulty::says(format!("{OK}Content-Length: 2\r\n\r\nok, and more"));
    let run = bench(&server.url("http"), "");
    run.fails("malformed", "target", Some(6));
    run.says(&["after the end of the response"]);
    let head = Faulty::says(format!("{OK}Content-Length: 4\r\n\r\nbody"));
    bench(&head.url("http"), "-m HEAD").fails("malformed", "target", Some(6));
}

/// A target that leaves the close to the client costs no time.
#[test]
fn the_client_closes_without_waiting_if_expected_to() {
    let server = Faulty::start(|mut peer| {
        peer.hears();
        peer.says(format!("{OK}Connection: close\r\nContent-Length: 2\r\n\r\nok").as_bytes());
        peer.waits();
    });
    let line = format!("bench {} -n 400 -c 1 --json", server.url("http"));
    let run = throng(&line).run().succeeds(400);
    run.has("/connections/opened", 400);
    // With a wait of 50 ms after each, it would take 20 s.
    run.within("/measured_ns", 1.0, 15e9);
}

#[test]
fn a_target_that_stops_is_noticed() {
    let target = Target::start("http --close-after 300ms");
    let run = throng(&format!("bench {} -c 4 -d 1500ms --json", target.http("/"))).run();
    run.within("/total/ok", 100.0, f64::MAX);
    run.within("/connections/opened", 8.0, 200.0);
}
