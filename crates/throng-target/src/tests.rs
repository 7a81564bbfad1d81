//! Complete servers on loopback, tested with small clients on std sockets.

mod grpc;
mod http2;
mod queue;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::websocket::tests::masked;
use crate::{Latency, Options, Running, Stats, TargetKind, start};

/// The timeout of every wait in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn options() -> Options {
    Options { workers: Some(2), ..Options::default() }
}

fn http(options: Options) -> Running {
    start(TargetKind::Http, options).unwrap()
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// A response: its head, and its body after decoding.
pub(crate) struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head[9..12].parse().unwrap()
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

fn read_line(stream: &mut impl Read) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    line.truncate(line.len() - 2);
    String::from_utf8(line).unwrap()
}

fn read_bytes(stream: &mut impl Read, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

fn read_answer(stream: &mut impl Read, head_only: bool) -> Answer {
    let mut answer = Answer { head: String::new(), body: Vec::new() };
    loop {
        let line = read_line(stream);
        if line.is_empty() {
            break;
        }
        answer.head.push_str(&line);
        answer.head.push('\n');
    }
    let bodiless = head_only || matches!(answer.status(), 100..=199 | 204 | 304);
    if bodiless {
    } else if let Some(length) = answer.field("content-length") {
        answer.body = read_bytes(stream, length.parse().unwrap());
    } else if answer.field("transfer-encoding") == Some("chunked") {
        loop {
            let size = usize::from_str_radix(&read_line(stream), 16).unwrap();
            answer.body.extend(read_bytes(stream, size));
            assert_eq!(read_line(stream), "");
            if size == 0 {
                break;
            }
        }
    } else {
        stream.read_to_end(&mut answer.body).unwrap();
    }
    answer
}

pub(crate) fn ask(stream: &mut TcpStream, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).unwrap();
    read_answer(stream, request.starts_with("HEAD"))
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    ask(&mut connect(address), &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

/// Waits until the stats are as `wanted`.
pub(crate) fn until(running: &Running, wanted: impl Fn(&Stats) -> bool) -> Stats {
    let clock = throng_base::Clock::start();
    loop {
        let stats = running.stats();
        if wanted(&stats) {
            return stats;
        }
        assert!(clock.now().as_secs_f64() < PATIENCE.as_secs_f64(), "waited in vain: {stats:#?}");
        std::thread::yield_now();
    }
}

/// How the peer closed: `Ok` after a FIN, the error after a reset.
pub(crate) fn end_of(stream: &mut TcpStream) -> std::io::Result<usize> {
    stream.read(&mut [0; 1024])
}

#[test]
fn routes() {
    let running = http(Options { body: 100, ..options() });
    let get = |path: &str| get(running.listen, path);
    assert_eq!(get("/").body, vec![b'x'; 100]);
    assert_eq!(get("/any/other?path").body.len(), 100);
    assert_eq!(get("http://proxied/bytes/7").body.len(), 7);
    for size in [0, 1, 5000, 32_768, 32_769, 3_000_000] {
        assert_eq!(get(&format!("/bytes/{size}")).body.len(), size);
        let chunked = get(&format!("/chunked/{size}"));
        assert_eq!((chunked.field("content-length"), chunked.body.len()), (None, size));
    }
    for status in [200, 204, 304, 404, 418, 503, 599] {
        assert_eq!(get(&format!("/status/{status}")).status(), status);
    }
    for path in ["/status/100", "/status/600", "/bytes/", "/bytes/x", "/bytes/9999999999999999"] {
        assert_eq!(get(path).status(), 400, "{path}");
    }
    let redirect = get("/redirect/3");
    assert_eq!((redirect.status(), redirect.field("location")), (302, Some("/redirect/2")));
    assert_eq!(get("/redirect/0").status(), 200);
    let set = get("/cookies/set?a=b");
    assert_eq!((set.status(), set.field("set-cookie")), (302, Some("a=b; Path=/")));
    let json = get("/json").json();
    assert_eq!(json["code"], 0);
    assert_eq!(json["data"]["token"].as_str().unwrap().len(), 16);
}

#[test]
fn the_request_is_echoed() {
    let running = http(options());
    let mut stream = connect(running.listen);
    let cookies =
        ask(&mut stream, "GET /cookies HTTP/1.1\r\nHost: x\r\nCookie: a=1; b = 2\r\n\r\n").json();
    assert_eq!(cookies["cookies"], serde_json::json!({ "a": "1", "b": "2" }));
    let echo = ask(
        &mut stream,
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nhello",
    );
    assert_eq!((echo.field("content-type"), echo.text()), (Some("text/x"), "hello"));
    let anything = ask(
        &mut stream,
        "PUT /anything/a?b=c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    )
    .json();
    assert_eq!(anything["method"], "PUT");
    assert_eq!(anything["path"], "/anything/a");
    assert_eq!(anything["query"], "b=c");
    assert_eq!(anything["headers"]["host"], "x");
    assert_eq!(anything["body"], "abcde");
}

#[test]
fn head_requests_old_versions_and_expectations_are_handled() {
    let running = http(options());
    let mut stream = connect(running.listen);
    let head = ask(&mut stream, "HEAD /bytes/100000 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!((head.field("content-length"), head.body.len()), (Some("100000"), 0));
    let expect =
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(ask(&mut stream, expect).status(), 100);
    assert_eq!(ask(&mut stream, "hi").text(), "hi");
    let kept = ask(&mut stream, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(kept.field("connection"), Some("keep-alive"));
    let closed = ask(&mut stream, "GET /chunked/9 HTTP/1.0\r\n\r\n");
    assert_eq!((closed.field("connection"), closed.body.len()), (Some("close"), 9));
    assert_eq!(end_of(&mut stream).unwrap(), 0);
    let mut stream = connect(running.listen);
    let closed = ask(&mut stream, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!(closed.field("connection"), Some("close"));
    assert_eq!(end_of(&mut stream).unwrap(), 0);
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!(stats.connections.closed_by_us, 2);
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    for latency in ["none", "0s..1ms"] {
        let running = http(Options { latency: latency.parse().unwrap(), ..options() });
        let mut stream = connect(running.listen);
        let requests: String = (0..3000)
            .map(|i| format!("GET /bytes/{} HTTP/1.1\r\nHost: x\r\n\r\n", i % 50))
            .collect();
        let mut writer = stream.try_clone().unwrap();
        let writing = std::thread::spawn(move || writer.write_all(requests.as_bytes()).unwrap());
        for i in 0..3000 {
            assert_eq!(read_answer(&mut stream, false).body.len(), i % 50, "{latency}");
        }
        writing.join().unwrap();
        let stats = running.stop();
        assert_eq!((stats.requests, stats.service_time.count, stats.unanswered), (3000, 3000, 0));
    }
}

#[test]
fn a_request_may_be_split_anywhere() {
    let running = http(options());
    let request =
        b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let mut stream = connect(running.listen);
    let mut asked = 0;
    throng_fuzz::splits(request, |parts| {
        parts.iter().for_each(|part| stream.write_all(part).unwrap());
        assert_eq!(read_answer(&mut stream, false).text(), "abc");
        asked += 1;
    });
    let stats = running.stop();
    assert_eq!((stats.requests, stats.refused), (asked, 0));
}

#[test]
fn malformed_requests_are_refused_and_counted() {
    let running = http(options());
    let endless = format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(200_000));
    let large = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n";
    let uncoded = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    let slow = "GET / HTTP/1.1\r\nHost: x\r\nSleep: soon\r\n\r\n";
    let cases = [
        ("garbage \u{1}\r\n\r\n", 400),
        ("GET / HTTP/3\r\n\r\n", 505),
        (&endless, 431),
        (large, 413),
        (uncoded, 400),
        (slow, 400),
    ];
    for (request, status) in cases {
        let mut stream = connect(running.listen);
        let answer = ask(&mut stream, request);
        assert_eq!(answer.status(), status, "{:?}", &request[..request.len().min(60)]);
        assert_eq!(end_of(&mut stream).unwrap(), 0);
    }
    assert_eq!(running.stats().refused, cases.len() as u64);
    assert_eq!(running.stats().requests, 0);
}

#[test]
fn fuzz_a_server_survives_garbage() {
    let running = http(options());
    let echo = start(TargetKind::Echo, options()).unwrap();
    let upgrade = [UPGRADE.as_bytes(), &masked(0x81, b"hello"), &masked(0x89, b"p")].concat();
    let corpus: [&[u8]; 2] = [b"GET /chunked/5 HTTP/1.1\r\nHost: x\r\nTimes: 2\r\n\r\n", &upgrade];
    let mut tried = 0;
    throng_fuzz::mutations(&corpus, |input, _| {
        tried += 1;
        if tried > 300 {
            return;
        }
        for address in [running.listen, echo.listen] {
            let mut stream = connect(address);
            // The server may close before it has read all of it.
            let _ = stream.write_all(input);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    for server in [&running, &echo] {
        until(server, |stats| stats.connections.open == 0);
    }
    assert_eq!(get(running.listen, "/").status(), 200);
}

#[test]
fn slow_responses_are_sent_in_pieces() {
    let running = http(options());
    let mut stream = connect(running.listen);
    let slow = ask(
        &mut stream,
        "POST /ping HTTP/1.1\r\nHost: x\r\nSleep: 10\r\nTimes: 3\r\nContent-Length: 1\r\n\r\n.",
    );
    assert_eq!(slow.body.len(), 3 * 13);
    let slow = ask(&mut stream, "GET /json HTTP/1.1\r\nHost: x\r\nSleep: 5\r\n\r\n");
    assert_eq!(slow.json()["code"], 0);
    let many = ask(&mut stream, "GET /bytes/50 HTTP/1.1\r\nHost: x\r\nTimes: 20000\r\n\r\n");
    assert_eq!(many.body.len(), 50 * 20_000);
    let head = ask(&mut stream, "HEAD / HTTP/1.1\r\nHost: x\r\nSleep: 5\r\n\r\n");
    assert_eq!(head.status(), 200);
    let old = ask(&mut stream, "GET / HTTP/1.0\r\nTimes: 2\r\n\r\n");
    assert_eq!(old.body.len(), 2 * 13);
    let stats = running.stop();
    assert_eq!((stats.requests, stats.service_time.count), (5, 5));
    assert!(stats.service_time.max_ns >= 30_000_000);
}

#[test]
fn a_client_that_disconnects_while_waiting_is_noticed() {
    let running = http(options());
    let mut stream = connect(running.listen);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nSleep: 3600000\r\n\r\n").unwrap();
    until(&running, |stats| stats.requests == 1);
    drop(stream);
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.unanswered, stats.service_time.count), (1, 0));
    assert_eq!(stats.connections.closed_by_peer, 1);
}

#[test]
fn a_client_that_does_not_read_delays_no_other() {
    let running = http(Options { workers: Some(1), ..Options::default() });
    let mut deaf = connect(running.listen);
    deaf.write_all(b"GET /bytes/1000000000000 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    until(&running, |stats| stats.bytes_out > 100_000);
    assert_eq!(get(running.listen, "/").status(), 200);
    drop(deaf);
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!(stats.unanswered, 1);
}

#[test]
fn each_law_is_served_and_measured() {
    for (law, at_least, at_most_median) in [
        ("2ms", 2_000_000, u64::MAX),
        ("1ms..5ms", 1_000_000, u64::MAX),
        ("exponential 2ms", 0, u64::MAX),
        ("stall 30ms every 90ms", 0, 30_000_000),
    ] {
        let running = http(Options { latency: law.parse().unwrap(), ..options() });
        let address = running.listen;
        let clients: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut stream = connect(address);
                    for _ in 0..50 {
                        assert_eq!(
                            ask(&mut stream, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").status(),
                            200
                        );
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        let stats = running.stop();
        let served = &stats.service_time;
        assert_eq!((stats.requests, served.count), (200, 200), "{law}");
        assert!(served.p50_ns >= at_least && served.p50_ns <= at_most_median, "{law}: {served:?}");
        let ordered = [served.p50_ns, served.p90_ns, served.p99_ns, served.p999_ns, served.max_ns];
        assert!(ordered.is_sorted() && served.p50_ns > 0, "{law}: {served:?}");
    }
}

#[test]
fn a_stall_stops_every_connection() {
    let law =
        Latency::Stall { stall: Duration::from_millis(200), every: Duration::from_secs(3600) };
    // The server starts in its stall.
    let running = http(Options { latency: law, ..options() });
    let mut streams: Vec<TcpStream> = (0..8).map(|_| connect(running.listen)).collect();
    for stream in &mut streams {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    }
    for stream in &mut streams {
        assert_eq!(read_answer(stream, false).status(), 200);
    }
    assert!(running.age() >= Duration::from_millis(200));
}

#[test]
fn shares_of_errors_and_resets_are_exact_and_counted() {
    let running = http(Options { errors: 0.3, resets: 0.2, ..options() });
    let (mut errors, mut resets) = (0, 0);
    for _ in 0..400 {
        let mut stream = connect(running.listen);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        match stream.peek(&mut [0]) {
            Ok(n) => {
                assert_eq!(n, 1);
                let status = read_answer(&mut stream, false).status();
                assert!(status == 200 || status == 500);
                errors += u64::from(status == 500);
            }
            Err(e) => {
                assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset);
                resets += 1;
            }
        }
    }
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.errors_sent, stats.resets_sent), (errors, resets));
    assert_eq!((stats.requests, stats.service_time.count), (400, 400 - resets));
    assert!((80..160).contains(&errors) && (45..120).contains(&resets), "{errors} {resets}");
}

#[test]
fn connections_are_closed_at_the_age_limit() {
    let close_after = Some(Duration::from_millis(20));
    let running = http(Options { close_after, ..options() });
    let mut idle = connect(running.listen);
    let mut waiting = connect(running.listen);
    waiting.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nSleep: 3600000\r\n\r\n").unwrap();
    assert_eq!(end_of(&mut idle).unwrap(), 0);
    assert_eq!(end_of(&mut waiting).unwrap(), 0);
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.connections.closed_by_us, stats.unanswered), (2, 1));
}

#[test]
fn connections_are_assigned_to_workers_by_source() {
    // Each worker accepts one connection, and the next an hour later.
    let slow_accept = Some(Duration::from_secs(3600));
    let workers = Some(8);
    let running = http(Options { workers, slow_accept, by_source: true, ..options() });
    let held: Vec<TcpStream> = (1..=8).map(|last| connect_from(last, running.listen)).collect();
    until(&running, |stats| stats.connections.accepted == 8);
    drop(held);
    let _waits = connect_from(3, running.listen);
    let answered = until(&running, |stats| stats.connections.open == 0);
    assert_eq!(answered.connections.accepted, 8, "the third worker does not accept now");
}

/// From 127.1.0.`last`.
fn connect_from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 1, 0, last], 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

#[test]
fn statistics_are_served_and_reset() {
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let running = http(Options { admin, ..options() });
    let admin = running.admin.unwrap();
    let mut held = connect(running.listen);
    ask(&mut held, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(get(running.listen, "/").status(), 200);
    until(&running, |stats| stats.connections.open == 1);
    let stats = get(admin, "/throng/stats").json();
    assert_eq!(stats["requests"], 2);
    assert_eq!(stats["connections"]["accepted"], 2);
    assert_eq!(stats["service_time"]["count"], 2);
    assert_eq!(stats, serde_json::to_value(running.stats()).unwrap());
    // A request for the statistics opens a connection, but is not counted as a request.
    assert_eq!(get(running.listen, "/throng/stats").json()["requests"], 2);
    assert_eq!(get(admin, "/throng/reset").status(), 200);
    let stats = until(&running, |stats| stats.connections.open == 1);
    assert_eq!((stats.requests, stats.service_time.count), (0, 0));
    assert_eq!(get(admin, "/nowhere").status(), 404);
    assert_eq!(get(admin, "/broadcast").status(), 405);
}

#[test]
fn bytes_are_echoed() {
    for latency in ["none", "1ms"] {
        let running =
            start(TargetKind::Echo, Options { latency: latency.parse().unwrap(), ..options() })
                .unwrap();
        let mut stream = connect(running.listen);
        stream.write_all(b"ping").unwrap();
        assert_eq!(read_bytes(&mut stream, 4), b"ping");
        let large: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
        let (sent, mut writer) = (large.clone(), stream.try_clone().unwrap());
        let writing = std::thread::spawn(move || writer.write_all(&sent).unwrap());
        assert!(read_bytes(&mut stream, large.len()) == large);
        writing.join().unwrap();
        // Bytes that only start like a request are echoed, too.
        let mut stream = connect(running.listen);
        stream.write_all(b"GET lost\r\n\r\n").unwrap();
        assert_eq!(read_bytes(&mut stream, 12), b"GET lost\r\n\r\n");
        let stats = running.stop();
        assert_eq!(stats.bytes_in, stats.bytes_out);
        assert_eq!(stats.messages, stats.service_time.count);
    }
}

#[test]
fn raw_bytes_can_cause_a_reset() {
    let running = start(TargetKind::Echo, Options { resets: 1.0, ..options() }).unwrap();
    let mut stream = connect(running.listen);
    stream.write_all(b"ping").unwrap();
    assert_eq!(end_of(&mut stream).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(running.stats().resets_sent, 1);
}

const UPGRADE: &str = "GET /acc HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\
    Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat, other\r\n\r\n";

fn upgrade(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    let answer = ask(&mut stream, UPGRADE);
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.field("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(answer.field("sec-websocket-protocol"), Some("chat"));
    stream
}

/// A server frame: its first byte and its payload.
fn read_frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let start = read_bytes(stream, 2);
    let length = match start[1] {
        126 => u16::from_be_bytes(read_bytes(stream, 2).try_into().unwrap()) as usize,
        127 => u64::from_be_bytes(read_bytes(stream, 8).try_into().unwrap()) as usize,
        length => length as usize,
    };
    (start[0], read_bytes(stream, length))
}

#[test]
fn messages_are_echoed() {
    for latency in ["none", "1ms"] {
        let running =
            start(TargetKind::Echo, Options { latency: latency.parse().unwrap(), ..options() })
                .unwrap();
        let mut stream = upgrade(running.listen);
        let large = vec![7; 300_000];
        for (first, data) in [(0x81, &b"hello"[..]), (0x82, &[0xff; 200]), (0x82, &large)] {
            stream.write_all(&masked(first, data)).unwrap();
            let (answered, payload) = read_frame(&mut stream);
            assert!(answered == first && payload == data);
        }
        stream.write_all(&masked(0x01, b"in ")).unwrap();
        stream.write_all(&masked(0x89, b"hey")).unwrap();
        assert_eq!(read_frame(&mut stream), (0x8a, b"hey".to_vec()));
        stream.write_all(&masked(0x80, b"two")).unwrap();
        assert_eq!(read_frame(&mut stream), (0x81, b"in two".to_vec()));
        stream.write_all(&masked(0x88, &[0x03, 0xe8])).unwrap();
        assert_eq!(read_frame(&mut stream), (0x88, vec![0x03, 0xe8]));
        assert_eq!(end_of(&mut stream).unwrap(), 0);
        drop(stream);
        let stats = until(&running, |stats| stats.connections.open == 0);
        assert_eq!((stats.requests, stats.messages, stats.service_time.count), (1, 4, 4));
        assert_eq!(stats.connections.closed_by_us, 1);
    }
}

#[test]
fn bad_frames_cause_a_close() {
    let running = start(TargetKind::Echo, options()).unwrap();
    for (bytes, code) in [(vec![0x81, 1, b'a'], 1002u16), (masked(0x81, &[0xff]), 1007)] {
        let mut stream = upgrade(running.listen);
        stream.write_all(&bytes).unwrap();
        assert_eq!(read_frame(&mut stream), (0x88, code.to_be_bytes().to_vec()));
        assert_eq!(end_of(&mut stream).unwrap(), 0);
    }
    assert_eq!(running.stats().refused, 2);
}

fn im(broadcast_every: Option<Duration>, options: Options) -> Running {
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    start(TargetKind::Im, Options { admin, broadcast_every, ..options }).unwrap()
}

fn say(stream: &mut TcpStream, text: &str) -> Value {
    stream.write_all(&masked(0x81, text.as_bytes())).unwrap();
    hear(stream)
}

fn hear(stream: &mut TcpStream) -> Value {
    let (first, payload) = read_frame(stream);
    assert_eq!(first, 0x81);
    serde_json::from_slice(&payload).unwrap()
}

fn login(stream: &mut TcpStream, user: &str) {
    let text = format!(r#"{{"seq":"1-1","cmd":"login","data":{{"userId":"{user}"}}}}"#);
    let answer = say(stream, &text);
    assert_eq!((&answer["cmd"], &answer["seq"]), (&Value::from("login"), &Value::from("1-1")));
    assert_eq!(answer["response"]["code"], 200);
}

#[test]
fn the_messenger_executes_its_commands() {
    let running = im(None, options());
    let mut stream = upgrade(running.listen);
    let mut code = |text: &str| say(&mut stream, text)["response"]["code"].clone();
    assert_eq!(code(r#"{"seq":"0","cmd":"heartbeat","data":{}}"#), 1003);
    assert_eq!(code(r#"{"seq":"1","cmd":"ping"}"#), 200);
    assert_eq!(code(r#"{"seq":"2","cmd":"login","data":{"userId":"u1"}}"#), 200);
    assert_eq!(code(r#"{"seq":"3","cmd":"heartbeat","data":{}}"#), 200);
    assert_eq!(code(r#"{"seq":"4","cmd":"dance"}"#), 404);
    assert_eq!(code("dance!"), 1001);
    let stats = running.stats();
    assert_eq!((stats.messages, stats.service_time.count), (6, 6));
    assert_eq!((stats.logins, stats.heartbeats, stats.logged_in), (1, 1, 1));
    assert_eq!(get(running.listen, "/acc").status(), 426);
    assert_eq!(running.stats().refused, 1);
}

#[test]
fn online_users_are_counted() {
    let running = im(None, options());
    let mut streams: Vec<TcpStream> = (0..9).map(|_| upgrade(running.listen)).collect();
    for (i, stream) in streams.iter_mut().enumerate() {
        login(stream, &format!("u{}", i / 2));
    }
    let admin = running.admin.unwrap();
    let online = |logged_in, users| serde_json::json!({ "online": logged_in, "users": users });
    assert_eq!(get(admin, "/online").json(), online(9, 5));
    assert_eq!(running.stats().double_logins, 4);
    // A second login on the same connection still counts one user online.
    login(&mut streams[0], "someone else");
    assert_eq!(get(admin, "/online").json(), online(9, 6));
    streams.drain(1..6);
    until(&running, |stats| stats.logged_in == 4);
    assert_eq!(get(admin, "/online").json(), online(4, 3));
}

#[test]
fn broadcasts_reach_all_logged_in_users() {
    let running = im(None, options());
    let mut members: Vec<TcpStream> = (0..5).map(|_| upgrade(running.listen)).collect();
    members.iter_mut().enumerate().for_each(|(i, stream)| login(stream, &format!("u{i}")));
    let mut stranger = upgrade(running.listen);
    let post = "POST /broadcast HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{\"text\":1}";
    let post = post.replace("Length: 9", "Length: 10");
    let mut admin = connect(running.admin.unwrap());
    assert_eq!(ask(&mut admin, &post).status(), 200);
    running.broadcast(b"again");
    for stream in &mut members {
        let message = hear(stream);
        assert_eq!(
            (&message["cmd"], &message["data"]["id"]),
            (&Value::from("msg"), &Value::from(1))
        );
        assert_eq!(message["data"]["body"]["text"], 1);
        assert!(message["data"]["sent_ns"].as_u64().unwrap() > 0);
        assert_eq!(hear(stream)["data"]["body"], "again");
    }
    assert_eq!(say(&mut stranger, r#"{"cmd":"ping"}"#)["cmd"], "ping");
    let stats = until(&running, |stats| stats.broadcasts == 2);
    assert_eq!((stats.broadcast_messages, stats.broadcast_messages_dropped), (10, 0));
}

#[test]
fn broadcasts_are_sent_at_the_interval() {
    let running = im(Some(Duration::from_millis(5)), options());
    let mut stream = upgrade(running.listen);
    login(&mut stream, "u1");
    let ids: Vec<u64> = (0..5).map(|_| hear(&mut stream)["data"]["id"].as_u64().unwrap()).collect();
    assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 1), "{ids:?}");
}

#[test]
fn only_users_that_do_not_read_lose_messages() {
    let running = im(None, Options { workers: Some(1), ..Options::default() });
    let mut deaf = upgrade(running.listen);
    login(&mut deaf, "deaf");
    let body = vec![b'x'; 60_000];
    let mut sent = 0;
    while running.stats().broadcast_messages_dropped == 0 {
        running.broadcast(&body);
        sent += 1;
        until(&running, |stats| stats.broadcasts == sent);
    }
    let mut other = upgrade(running.listen);
    login(&mut other, "other");
    running.broadcast(&body);
    assert_eq!(hear(&mut other)["data"]["id"], sent + 1);
    assert_eq!(hear(&mut deaf)["data"]["id"], 1);
}

#[test]
fn messages_to_the_messenger_can_fail() {
    let running = im(None, Options { errors: 1.0, ..options() });
    let mut stream = upgrade(running.listen);
    let answer = say(&mut stream, r#"{"seq":7,"cmd":"login","data":{"userId":"u"}}"#);
    assert_eq!((&answer["seq"], &answer["response"]["code"]), (&Value::from(7), &Value::from(500)));
    let stats = running.stats();
    assert_eq!((stats.errors_sent, stats.logins, stats.logged_in), (1, 0, 0));
}

#[test]
fn bad_upgrades_are_refused() {
    let running = im(None, options());
    for (from, to, status) in [
        ("Version: 13", "Version: 8", 426),
        ("dGhlIHNhbXBsZSBub25jZQ==", "short", 400),
        ("GET", "POST", 400),
        ("HTTP/1.1", "HTTP/1.0", 400),
    ] {
        let answer = ask(&mut connect(running.listen), &UPGRADE.replace(from, to));
        assert_eq!(answer.status(), status, "{to}");
    }
}

#[test]
fn separate_descriptor_tables_work_and_wake() {
    let connections = crate::system::raise_descriptor_limit().unwrap() + 1;
    let running = im(None, Options { connections, workers: Some(3), ..Options::default() });
    let mut members: Vec<TcpStream> = (0..12).map(|_| upgrade(running.listen)).collect();
    members.iter_mut().for_each(|stream| login(stream, "u"));
    running.broadcast(b"1");
    let post = "POST /broadcast HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n2";
    assert_eq!(ask(&mut connect(running.admin.unwrap()), post).status(), 200);
    for stream in &mut members {
        let bodies = [hear(stream)["data"]["body"].clone(), hear(stream)["data"]["body"].clone()];
        assert!(bodies == [1, 2] || bodies == [2, 1]);
    }
    drop(members);
    until(&running, |stats| stats.connections.open == 0 && stats.logged_in == 0);
    running.stop();
}

#[test]
fn a_taken_address_is_refused() {
    let running = http(options());
    let again = start(TargetKind::Http, Options { listen: running.listen, ..options() });
    assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let listen = running.listen;
    drop(running);
    assert_eq!(http(Options { listen, ..options() }).listen, listen);
}

#[test]
fn connections_end_when_the_server_stops() {
    let running = http(options());
    let mut stream = connect(running.listen);
    ask(&mut stream, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    running.stop();
    assert_eq!(end_of(&mut stream).unwrap(), 0);
}

#[test]
fn event_streams_are_counted_event_by_event() {
    let running = http(options());
    let mut stream = connect(running.listen);
    stream.write_all(b"GET /events?every=1ms&count=20 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let answer = read_answer(&mut stream, false);
    assert_eq!(answer.field("content-type"), Some("text/event-stream"));
    assert_eq!(answer.text().matches("\n\n").count(), 20);
    // The connection stays open, and the next stream resumes after the last event.
    let ask = "GET /events?every=0s&count=25&close_after=3 HTTP/1.1\r\nHost: a\r\n";
    stream.write_all(format!("{ask}Last-Event-ID: 20\r\n\r\n").as_bytes()).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("id: 21\n") && rest.contains("id: 23\n"), "{rest}");
    assert!(!rest.contains("id: 24\n") && !rest.contains("\r\n0\r\n"), "{rest}");
    let stats = running.stats();
    let streams = (stats.event_streams, stats.event_streams_resumed, stats.events);
    assert_eq!((streams, stats.requests, stats.unanswered), ((2, 1, 23), 2, 0));
    assert_eq!(stats.service_time.count, 0, "no stream has the time of an answer");
}
