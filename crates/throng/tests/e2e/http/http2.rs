//! HTTP/2: over TLS as both ends agree, and with prior knowledge; the other side keeps the books.

use crate::run::throng;
use crate::servers::{Nginx, Target};

#[test]
fn requests_over_http2_match_the_counts_of_the_target() {
    let target = Target::start("http");
    let line = format!("bench {} --http2 -n 1000 -c 10 --json", target.http("/"));
    let run = throng(&line).run().succeeds(1000);
    run.has("/connections/opened", 10);
    run.has("/connections/http2", 10);
    run.has("/connections/closed_by_us", 10);
    assert_eq!(target.counts("/http2/requests"), 1000, "{run}");
    assert_eq!(target.counts("/http2/connections"), 10, "{run}");
}

#[test]
fn the_version_is_negotiated_with_the_target() {
    let target = Target::start("http --tls");
    let url = target.http("/").replacen("http://", "https://", 1);
    for (flag, over_http2) in [("", 0), ("--http-version auto", 20), ("--http2", 40)] {
        let line = format!("bench {url} {flag} -k -n 20 -c 2 --insecure --json --no-record");
        throng(&line).run().succeeds(20);
        assert_eq!(target.counts("/http2/requests"), over_http2, "{flag}");
    }
}

#[test]
fn http2_works_with_nginx() {
    let nginx = Nginx::start("http2", "location /up { client_max_body_size 9m; return 200 up; }");
    let run = throng(&format!("bench {} --http2 -n 500 -c 5 --json", nginx.url("/")));
    let run = run.run().succeeds(500);
    run.has("/connections/opened", 5);
    run.within("/received_bytes", 500.0 * 2000.0, f64::MAX);
    let connections: std::collections::HashSet<String> =
        nginx.log(500).iter().map(|words| words[0].clone()).collect();
    assert_eq!(connections.len(), 5, "{run}");
}

#[test]
fn resets_and_errors_are_counted_on_both_sides() {
    let target = Target::start("http --resets 5% --errors 10% --latency 2ms");
    let line = format!("bench {} --http2 -n 2000 -c 20 --json", target.http("/"));
    let run = throng(&line).run().exits(0);
    let failed = |cause: &str| {
        let errors = run.json()["errors"].as_array().cloned().unwrap_or_default();
        let found = errors.iter().find(|error| error["cause"] == cause);
        found.and_then(|error| error["count"].as_u64()).unwrap_or_default()
    };
    let (resets, errors) = (failed("reset"), failed("status-unexpected"));
    run.check(resets > 20 && errors > 50, "both kinds of faults came");
    run.has("/total/ok", 2000 - resets - errors);
    assert_eq!(target.counts("/http2/requests"), 2000, "{run}");
    // The stream is reset, not the connection.
    run.has("/connections/opened", 20);
}

#[test]
fn an_http1_server_is_detected() {
    let nginx = Nginx::start("", "");
    let run = throng(&format!("bench {} --http2 -n 5 -c 1 --json", nginx.url("/"))).run().exits(4);
    run.fails("wrong-scheme", "scenario", None);
    run.check(
        run.to_string().contains("the target responds with HTTP/1"),
        "what it speaks is told",
    );
}

#[test]
fn streams_of_a_connection_are_refilled_one_by_one() {
    let target = Target::start("http --latency 5ms");
    let url = target.http("/");
    let line = format!("bench {url} --http2 -c 4 --streams 8 -n 1001 --json --no-record");
    let run = throng(&line).run().succeeds(1001);
    run.has("/connections/opened", 4);
    assert_eq!(target.counts("/http2/requests"), 1001, "{run}");
    assert_eq!(target.counts("/http2/connections"), 4, "{run}");
    let most = target.counts("/http2/streams_max");
    run.check((2..=8).contains(&most), "several at once, and no more than asked for");
    let line = format!("bench {url} --http2 -c 1 --streams 50 --rate 400 -d 1s --json --no-record");
    // Of a host that stalls, starts are left out when all streams are busy.
    let run = throng(&line).run();
    let ok = run.figure("/total/ok");
    assert_eq!(ok + run.figure("/users/starts_unmet"), 400.0, "{run}");
    assert_eq!(target.counts("/http2/requests"), 1001 + ok as u64, "{run}");
    run.check(ok > 100.0, "one connection carries a rate");
}

#[test]
fn the_stream_limit_of_nginx_is_respected() {
    let nginx = Nginx::start("http2", "http2_max_concurrent_streams 5;");
    let line = format!("bench {} --http2 -c 2 --streams 20 -n 600 --json", nginx.url("/"));
    let run = throng(&line).run().succeeds(600);
    run.has("/connections/opened", 2);
    run.has("/connections/streams_limited", 2);
    run.has("/connections/streams_allowed", 5);
    let told = "the target allows 5 concurrent streams per connection on 2 of 2 connections";
    run.says(&["\"streams-limited\"", told]);
    assert_eq!(nginx.log(600).len(), 600, "{run}");
}

/// nginx leaves a connection after so many requests, and never looks at those behind.
#[test]
fn requests_that_nginx_did_not_process_are_resent_for_any_method() {
    let server = "keepalive_requests 100; location /up { return 200 up; }";
    let nginx = Nginx::start("http2", server);
    let url = nginx.url("/up");
    let line = format!("bench {url} --http2 -m POST --body a=1 -n 5000 -c 4 --streams 8 --json");
    let run = throng(&line).run().succeeds(5000);
    let opened = run.figure("/connections/opened");
    run.check((50.0..=56.0).contains(&opened), "a connection for a hundred requests");
    run.check(run.figure("/total/resent") > 20.0, "some came behind the last one");
    assert_eq!(nginx.log(5000).len(), 5000, "{run}");
}

#[test]
fn refused_streams_and_graceful_closes_are_not_failures() {
    let target = Target::start("http --refuse-streams 5% --goaway-after 60 --latency 1ms");
    let url = target.http("/");
    let line = format!("bench {url} --http2 -m POST --body a=1 -n 3000 -c 3 --streams 16 --json");
    let run = throng(&line).run().succeeds(3000);
    assert_eq!(target.counts("/http2/requests"), 3000, "{run}");
    run.has("/total/resent", target.counts("/http2/refused"));
    run.check(target.counts("/http2/refused") > 50, "streams were refused");
    // A connection takes what is on its way until its client has heard of the end.
    run.check(target.counts("/http2/goaways") > 30, "connections were left");
}

#[test]
fn refused_calls_are_retried() {
    let target = Target::start("http --refuse-streams 5% --goaway-after 60 --latency 1ms");
    let url = target.url("grpc", "/echo.v1.Echo/Say");
    let line = format!("bench {url} --body {{}} -n 2000 -c 3 --streams 16 --json");
    let run = throng(&line).run().exits(0);
    run.has("/total/ok", 2000);
    assert_eq!(target.counts("/grpc/statuses/OK"), 2000, "{run}");
    run.has("/total/resent", target.counts("/http2/refused"));
    run.check(target.counts("/http2/goaways") > 20, "connections were left");
}

#[test]
fn users_wait_for_streams_in_order() {
    let target = Target::start("http --streams 5 --latency 5ms");
    let url = target.http("/");
    let line = format!("bench {url} --http2 -c 2 --streams 50 -n 2000 --timeout 900ms --json");
    let run = throng(&line).run().succeeds(2000);
    run.has("/connections/opened", 2);
    // A stream beyond the limit is refused (RFC 9113, 5.1.2), and would be sent again. On a busy
    // machine there may never be as many as the limit at once.
    run.has("/total/resent", 0);
    assert!((2..=5).contains(&target.counts("/http2/streams_max")), "{run}");
}

#[test]
fn meaningless_stream_settings_are_refused() {
    for (flags, told) in [
        ("http://127.0.0.1:1/", "--streams requires HTTP/2"),
        ("http://127.0.0.1:1/ --http2 --think 1s", "--think does not apply to streams"),
        ("http://127.0.0.1:1/ --http2 --no-keepalive", "--no-keepalive does not apply to streams"),
        ("ws://127.0.0.1:1/", "--streams"),
    ] {
        let run = throng(&format!("bench {flags} --streams 8 -n 1")).run().exits(2);
        run.check(run.to_string().contains(told), told);
    }
}

#[test]
fn branches_share_a_connection() {
    let target = Target::start("http --latency 200ms");
    let text = format!(
        "target: {}
connection: {{http_version: \"2\"}}
sessions:
  page:
    steps:
      - parallel:
          - [{{http: GET /a}}, {{http: GET /b}}]
          - [{{http: GET /c}}]
          - [{{http: GET /d}}]
load: [{{iterations: 8, users: 4}}]
",
        target.http("")
    );
    let run = throng("run page.yaml --json --no-record").file("page.yaml", text).run();
    let run = run.succeeds(32);
    run.has("/connections/http2", 4);
    assert_eq!(target.counts("/http2/requests"), 32, "{run}");
    assert_eq!(target.counts("/http2/connections"), 4, "{run}");
    assert_eq!(target.counts("/http2/streams_max"), 3, "{run}");
}
