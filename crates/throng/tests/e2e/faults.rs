//! HTTP servers that do what no server should: every fault is counted by its cause, nothing hangs.

use crate::faulty::{Faulty, Peer};
use crate::run::{Run, throng};
use crate::servers::{Target, free_port};

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
fn a_target_that_is_not_there_is_unreachable() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    let run = bench(&url, "").exits(4);
    run.fails("connect-refused", "target", Some(6));
    let run = throng(&format!("bench {url} -n 6 -c 3")).run().exits(4);
    run.says(&["connect-refused", "target"]);
}

#[test]
fn nobody_hammers_at_a_target_that_is_not_there() {
    let url = format!("http://127.0.0.1:{}/", free_port());
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
    // At least; a machine that is busy comes later.
    run.within("/total/latency/min_ns", 0.95e9, 20e9);
}

#[test]
fn an_end_before_the_answer_is_counted() {
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
fn what_has_no_end_is_limited() {
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
    // Nothing looks at the body, so none of it is kept: only the time is limited.
    let body = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n";
    fails(&endless(body, &[b'x'; 65536]), "", "timeout");
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    fails(&endless(chunks, b"4\r\nmore\r\n"), "", "timeout");
    fails(&endless(chunks, b"4\r\nfive.\r\n"), "", "malformed");
    fails(&endless(body, &[b'x'; 65536]), "--expect-text needle", "too-large");
    let run = bench(&endless("", b"HTTP/1.1 100 Continue\r\n\r\n").url("http"), "");
    run.has("/total/failed", 6);
}

#[test]
fn faults_between_good_answers_are_told_apart() {
    let target = Target::start("http --errors 20% --resets 10%");
    let line = format!("bench {} -n 1000 -c 10 --json", target.http("/"));
    let run = throng(&line).run();
    let json = run.json();
    let count = |cause: &str| {
        let rows = json["errors"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["cause"] == cause);
        row.and_then(|row| row["count"].as_u64()).unwrap_or(0)
    };
    let stats = target.stats();
    let same = |cause: &str, key: &str| {
        let fault = format!("{} × {cause}, but the target has {key} {}", count(cause), stats[key]);
        run.check(stats[key] == count(cause), &fault);
    };
    same("status-unexpected", "errors_sent");
    same("reset", "resets_sent");
    run.has("/total/count", 1000);
    run.has("/total/codes/500", count("status-unexpected"));
}

#[test]
fn a_target_that_goes_away_is_noticed() {
    let target = Target::start("http --close-after 300ms");
    let run = throng(&format!("bench {} -c 4 -d 1500ms --json", target.http("/"))).run();
    run.within("/total/ok", 100.0, f64::MAX);
    run.within("/connections/opened", 8.0, 200.0);
}
