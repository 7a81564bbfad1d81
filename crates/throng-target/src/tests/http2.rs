//! Tests the server over HTTP/2 with the client of the `h2` crate.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::client::{self, SendRequest};
use http::{HeaderMap, Method, Request};
use rustls::StreamOwned;
use tokio::runtime::Builder;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::{connect, get, http, options, until};
use crate::Options;
use crate::worker::tests::trusting_client_that_offers;

/// The result of a request; the reason if its stream or connection was abandoned.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    body: Vec<u8>,
}

/// A connection, and the task that drives it.
pub(super) struct Client {
    pub(super) send: SendRequest<Bytes>,
    pub(super) driver: JoinHandle<Result<(), h2::Error>>,
}

impl Client {
    pub(super) async fn new(address: SocketAddr) -> Client {
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let (send, connection) = client::handshake(socket).await.unwrap();
        Client { send, driver: spawn_local(connection) }
    }

    /// Another client of the same connection.
    pub(super) fn another(&self) -> Client {
        Client { send: self.send.clone(), driver: spawn_local(async { Ok(()) }) }
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<Answer, h2::Error> {
        self.ask(request(Method::GET, path, &[]), b"").await
    }

    async fn ask(&mut self, request: Request<()>, body: &[u8]) -> Result<Answer, h2::Error> {
        let (response, mut stream) = {
            self.send = self.send.clone().ready().await?;
            self.send.send_request(request, body.is_empty())?
        };
        let mut rest = Bytes::copy_from_slice(body);
        while !rest.is_empty() {
            stream.reserve_capacity(rest.len());
            let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap()?;
            let piece = rest.split_to(room.min(rest.len()));
            stream.send_data(piece, rest.is_empty())?;
        }
        let (head, mut incoming) = response.await?.into_parts();
        let mut body = Vec::new();
        while let Some(piece) = incoming.data().await {
            let piece = piece?;
            body.extend_from_slice(&piece);
            incoming.flow_control().release_capacity(piece.len())?;
        }
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }
}

fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut builder = Request::builder().method(method).uri(format!("http://x{path}"));
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).unwrap()
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_io().build().unwrap();
    LocalSet::new().block_on(&runtime, future)
}

#[test]
fn routes_equal_those_of_http1() {
    let running = http(Options { body: 100, ..options() });
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        for path in [
            "/",
            "/any/other?path",
            "/bytes/0",
            "/bytes/5000",
            "/bytes/3000000",
            "/chunked/70000",
            "/status/204",
            "/status/418",
            "/status/99",
            "/redirect/2",
            "/redirect/0",
            "/cookies/set?a=b",
            "/cookies",
            "/anything/x?y=z",
        ] {
            let theirs = get(address, path);
            let ours = client.ask(request(Method::GET, path, &[]), b"").await.unwrap();
            assert_eq!(ours.status, theirs.status(), "{path}");
            for name in ["location", "set-cookie", "content-type", "content-length"] {
                let header = ours.headers.get(name).map(|value| value.to_str().unwrap());
                assert_eq!(header, theirs.field(name), "{name} of {path}");
            }
            assert!(ours.body == theirs.body, "{path}");
            let head = client.ask(request(Method::HEAD, path, &[]), b"").await.unwrap();
            assert_eq!((head.status, head.body.len()), (ours.status, 0), "{path}");
        }
        let kind = [("content-type", "text/x")];
        let body: Vec<u8> = (0..3_000_000).map(|at| (at % 251) as u8).collect();
        let echo = client.ask(request(Method::POST, "/echo", &kind), &body).await.unwrap();
        assert_eq!(echo.headers["content-type"], "text/x");
        assert!(echo.body == body);
        let seen = [("cookie", "a=1"), ("cookie", "b=2"), ("x-y", "z")];
        let cookies = client.ask(request(Method::GET, "/cookies", &seen), b"").await.unwrap();
        assert_eq!(cookies.body, br#"{"cookies":{"a":"1","b":"2"}}"#);
        let stats = client.ask(request(Method::GET, "/throng/stats", &[]), b"").await.unwrap();
        assert!(String::from_utf8(stats.body).unwrap().contains(r#""http2":{"connections":1,"#));
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    // 14 paths with each version, and with HEAD; one request is invalid. The statistics are not
    // counted.
    assert_eq!((stats.requests, stats.http2.requests, stats.refused), (13 + 28, 28, 3));
    assert_eq!(stats.service_time.count, stats.requests);
    assert_eq!((stats.http2.connections, stats.http2.streams_max, stats.unanswered), (1, 1, 0));
}

#[test]
fn each_stream_has_its_own_delay() {
    let running = http(Options { latency: "1ms..20ms".parse().unwrap(), ..options() });
    let address = running.listen;
    block_on(async {
        let client = Client::new(address).await;
        let done = Rc::new(Cell::new(0));
        let tasks: Vec<_> = (0..200)
            .map(|_| {
                let send = client.send.clone();
                let done = Rc::clone(&done);
                spawn_local(async move {
                    let mut client = Client { send, driver: spawn_local(async { Ok(()) }) };
                    let answer = client.ask(request(Method::GET, "/", &[]), b"").await.unwrap();
                    assert_eq!((answer.status, answer.body.len()), (200, 13));
                    done.set(done.get() + 1);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(done.get(), 200);
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.requests, stats.http2.requests, stats.service_time.count), (200, 200, 200));
    let served = &stats.service_time;
    assert!(served.p50_ns >= 5_000_000 && served.p99_ns >= 15_000_000, "{served:?}");
    assert!((2..=200).contains(&stats.http2.streams_max), "{:?}", stats.http2);
}

#[test]
fn errors_and_resets_apply_to_streams() {
    let running = http(Options { errors: 0.3, resets: 0.2, ..options() });
    let address = running.listen;
    let (mut errors, mut resets) = (0, 0);
    block_on(async {
        let mut client = Client::new(address).await;
        for _ in 0..400 {
            match client.ask(request(Method::GET, "/", &[]), b"").await {
                Ok(answer) => errors += u64::from(answer.status == 500),
                Err(error) => {
                    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
                    resets += 1;
                }
            }
        }
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.errors_sent, stats.resets_sent), (errors, resets));
    assert_eq!((stats.requests, stats.service_time.count), (400, 400 - resets));
    assert_eq!((stats.connections.accepted, stats.http2.cancelled), (1, 0));
    assert!((80..160).contains(&errors) && (45..120).contains(&resets), "{errors} {resets}");
}

#[test]
fn slow_responses_are_sent_in_pieces() {
    let running = http(options());
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        let slow = [("sleep", "10"), ("times", "3")];
        let clock = throng_base::Clock::start();
        let answer = client.ask(request(Method::GET, "/bytes/70000", &slow), b"").await.unwrap();
        assert_eq!((answer.body.len(), answer.headers.get("content-length")), (210_000, None));
        assert!(clock.now().as_secs_f64() >= 0.03);
        let head = client.ask(request(Method::HEAD, "/", &slow), b"").await.unwrap();
        assert_eq!(head.status, 200);
        let wrong = [("sleep", "soon")];
        let refused = client.ask(request(Method::GET, "/", &wrong), b"").await.unwrap();
        assert_eq!(refused.status, 400);
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.requests, stats.refused, stats.service_time.count), (2, 1, 2));
    assert!(stats.service_time.max_ns >= 30_000_000);
}

#[test]
fn clients_that_do_not_wait_are_counted() {
    let running = http(options());
    let address = running.listen;
    let hour = [("sleep", "3600000")];
    block_on(async {
        let mut client = Client::new(address).await;
        // An abandoned stream on an open connection.
        let asked = client.send.send_request(request(Method::GET, "/", &hour), true);
        let (response, _) = asked.unwrap();
        until_async(&running, |stats| stats.requests == 1).await;
        drop(response);
        until_async(&running, |stats| stats.http2.cancelled == 1).await;
        // An abandoned connection.
        let asked = client.send.send_request(request(Method::GET, "/", &hour), true);
        until_async(&running, |stats| stats.requests == 2).await;
        client.driver.abort();
        drop((asked, client));
    });
    let stats = until(&running, |stats| stats.connections.open == 0 && stats.unanswered == 2);
    assert_eq!((stats.http2.cancelled, stats.service_time.count), (1, 0));
}

/// Like [`until`], while the tasks of this thread continue.
pub(super) async fn until_async(running: &crate::Running, wanted: impl Fn(&crate::Stats) -> bool) {
    let clock = throng_base::Clock::start();
    while !wanted(&running.stats()) {
        assert!(clock.now().as_secs_f64() < super::PATIENCE.as_secs_f64(), "waited in vain");
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_connection_is_closed_with_goaway_after_its_lifetime() {
    let close_after = Some(Duration::from_millis(20));
    let running = http(Options { close_after, ..options() });
    let address = running.listen;
    block_on(async {
        let mut client = Client::new(address).await;
        let answer = client.ask(request(Method::GET, "/", &[("sleep", "3600000")]), b"").await;
        assert!(answer.is_err());
        // GOAWAY without an error, then the end.
        assert!(client.driver.await.unwrap().is_ok());
    });
    let stats = until(&running, |stats| stats.connections.open == 0 && stats.unanswered == 1);
    assert_eq!((stats.connections.closed_by_us, stats.connections.reset), (1, 0));
}

/// A frame of a client.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
    bytes.extend_from_slice(payload);
    bytes
}

/// The preface, and GET `/` on stream 1 with the fields of the static table.
fn asks() -> Vec<u8> {
    let get = frame(1, 5, 1, b"\x82\x86\x84\x01\x01x");
    [crate::http::PREFACE, &frame(4, 0, 0, b""), &get].concat()
}

/// Reads until the body of a response is complete.
fn read_body(stream: &mut impl Read) {
    let wanted = frame(0, 1, 1, &[b'x'; 13]);
    let mut all = Vec::new();
    while !all.ends_with(&wanted) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        all.push(byte[0]);
    }
}

#[test]
fn the_preface_can_be_split_anywhere() {
    let running = http(options());
    for size in [1, 5, 18, 23, 24, 25] {
        let mut stream = connect(running.listen);
        for piece in asks().chunks(size) {
            stream.write_all(piece).unwrap();
        }
        read_body(&mut stream);
    }
    // A request with a similar start is HTTP/1.1.
    let mut stream = connect(running.listen);
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nXX").unwrap();
    assert_eq!(super::read_answer(&mut stream, false).status(), 505);
    assert_eq!(get(running.listen, "/").status(), 200);
    drop(stream);
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.requests, stats.http2.requests, stats.http2.connections), (7, 6, 6));
    assert_eq!(stats.bytes_in, 6 * asks().len() as u64 + 20 + 27);
}

#[test]
fn over_tls_the_client_selects_the_version() {
    let running = http(Options { tls: true, ..options() });
    for (offer, chosen) in [
        (&[&b"h2"[..], b"http/1.1"][..], Some(&b"h2"[..])),
        (&[b"http/1.1", b"h2"], Some(b"h2")),
        (&[b"http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let client = trusting_client_that_offers(offer);
        let mut stream = StreamOwned::new(client, connect(running.listen));
        if chosen == Some(b"h2") {
            stream.write_all(&asks()).unwrap();
            read_body(&mut stream);
        } else {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            assert_eq!(super::read_answer(&mut stream, false).status(), 200);
        }
        assert_eq!(stream.conn.alpn_protocol(), chosen);
    }
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!((stats.requests, stats.http2.requests), (4, 2));
}

#[test]
fn event_streams_equal_those_of_http1() {
    let running = http(options());
    block_on(async {
        let mut client = Client::new(running.listen).await;
        let ask = |query: &str, headers: &[(&str, &str)]| {
            request(Method::GET, &format!("/events?{query}"), headers)
        };
        let answer = client.ask(ask("every=1ms&count=20", &[]), b"").await.unwrap();
        assert_eq!(answer.headers["content-type"], "text/event-stream");
        let text = String::from_utf8(answer.body).unwrap();
        assert_eq!(text.matches("\n\n").count(), 20, "{text}");
        assert!(text.starts_with("id: 1\nevent: tick\ndata: {\"n\":1}\n\nid: 2\n"), "{text}");
        let since = [("last-event-id", "18")];
        let answer = client.ask(ask("every=0s&count=20", &since), b"").await.unwrap();
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.starts_with("id: 19\n") && text.matches("\n\n").count() == 2, "{text}");
        let reset = client.ask(ask("every=1ms&reset_after=3", &[]), b"").await.unwrap_err();
        assert_eq!(reset.reason(), Some(Reason::INTERNAL_ERROR));
        let closed = client.ask(ask("every=1ms&close_after=3", &[]), b"").await.unwrap_err();
        assert!(closed.is_go_away() || closed.is_io(), "{closed}");
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    let streams = (stats.event_streams, stats.event_streams_resumed, stats.events);
    assert_eq!((streams, stats.requests, stats.unanswered), ((4, 1, 28), 4, 0));
    assert_eq!(stats.service_time.count, 0, "no stream has the time of an answer");
}
