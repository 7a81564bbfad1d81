//! Servers with a queue and a rate limit, over both HTTP versions.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use throng_base::Clock;
use tokio::task::spawn_local;

use super::http2::{Client, block_on};
use super::{connect, end_of, get, http, im, options, read_answer, until, upgrade};
use crate::{CapacityOptions, Options, QueueStats, Running};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
/// Longer than any of these tests.
const HOUR: &str = "1h";

/// A server with this service time.
fn queue(service: &str, change: impl FnOnce(&mut CapacityOptions)) -> Running {
    let service = Some(service.parse().unwrap());
    let mut capacity = CapacityOptions { service, ..CapacityOptions::default() };
    change(&mut capacity);
    http(Options { capacity, ..options() })
}

fn figures(running: &Running) -> QueueStats {
    running.stats().queue.unwrap()
}

/// A connection that has sent a request.
fn asking(running: &Running) -> TcpStream {
    let mut stream = connect(running.listen);
    stream.write_all(GET).unwrap();
    stream
}

/// Waits until this many requests are in the queue, served or waiting.
fn until_queued(running: &Running, wanted: u64) {
    until(running, |stats| {
        stats.queue.as_ref().is_some_and(|queue| queue.waiting + queue.in_service == wanted)
    });
}

#[test]
fn requests_beyond_the_queue_limit_get_503_immediately() {
    let running = queue(HOUR, |it| (it.servers, it.queue_max) = (Some(2), Some(3)));
    let waiting: Vec<_> = (0..5).map(|_| asking(&running)).collect();
    until_queued(&running, 5);
    let mut stream = connect(running.listen);
    for _ in 0..4 {
        stream.write_all(GET).unwrap();
        assert_eq!(read_answer(&mut stream, false).status(), 503);
    }
    let expected = QueueStats {
        waiting: 3,
        in_service: 2,
        waiting_max: 3,
        admitted: 5,
        queue_full: 4,
        ..QueueStats::default()
    };
    assert_eq!(figures(&running), expected);
    running.reset();
    let kept = QueueStats { queue_full: 0, ..expected };
    assert_eq!(figures(&running), kept, "who is in it stays");
    drop(waiting);
}

#[test]
fn one_queue_serves_all_connections_of_all_threads() {
    let running = queue("2ms", |_| ());
    let begun = Clock::start();
    let clients: Vec<_> = (0..10)
        .map(|_| {
            let address = running.listen;
            std::thread::spawn(move || {
                let mut stream = connect(address);
                for _ in 0..20 {
                    stream.write_all(GET).unwrap();
                    assert_eq!(read_answer(&mut stream, false).status(), 200);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    // One server needs 2 ms for each of 200 requests, regardless of concurrency.
    assert!(begun.now().as_secs_f64() >= 0.4);
    let stats = running.stop();
    assert_eq!((stats.requests, stats.service_time.count), (200, 200));
    assert!(stats.service_time.p50_ns >= 2_000_000, "{:?}", stats.service_time);
    let queue = stats.queue.unwrap();
    assert_eq!((queue.admitted, queue.served, queue.waiting, queue.in_service), (200, 200, 0, 0));
}

#[test]
fn pipelined_requests_use_all_servers_and_get_responses_in_order() {
    let running = queue("0ms..5ms", |it| it.servers = Some(8));
    let mut stream = connect(running.listen);
    let requests: String =
        (0..300).map(|i| format!("GET /bytes/{i} HTTP/1.1\r\nHost: x\r\n\r\n")).collect();
    stream.write_all(requests.as_bytes()).unwrap();
    stream.write_all(b"GET /throng/law HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    for i in 0..300 {
        assert_eq!(read_answer(&mut stream, false).body.len(), i);
    }
    assert_eq!(read_answer(&mut stream, false).status(), 200, "behind them");
    let queue = figures(&running);
    assert_eq!((queue.admitted, queue.served), (300, 300));
    assert!(queue.waiting_max > 200, "all of one connection at once: {queue:?}");
}

#[test]
fn a_client_that_disconnects_frees_its_place() {
    let running = queue(HOUR, |it| it.queue_max = Some(1));
    let (first, second) = (asking(&running), asking(&running));
    until_queued(&running, 2);
    first.shutdown(Shutdown::Both).unwrap();
    second.shutdown(Shutdown::Both).unwrap();
    until_queued(&running, 0);
    let stats = running.stats();
    assert_eq!((figures(&running).dropped, stats.unanswered), (2, 2));
    let _third = asking(&running);
    until_queued(&running, 1);
    assert_eq!(figures(&running).queue_full, 0);
}

#[test]
fn requests_of_disconnected_clients_are_served_if_configured() {
    let running = queue("20ms", |it| it.work_on = true);
    for _ in 0..5 {
        drop(asking(&running));
    }
    let stats = until(&running, |stats| stats.queue.as_ref().unwrap().served == 5);
    let queue = stats.queue.unwrap();
    assert_eq!((queue.admitted, queue.dropped), (5, 0));
    // The last clients disconnected long before their turn; the first may have been served in time.
    assert!(queue.unwanted >= 3, "{queue:?}");
}

#[test]
fn requests_above_the_rate_limit_get_429() {
    let capacity =
        CapacityOptions { rate_limit: "1/2h:3".parse().ok(), ..CapacityOptions::default() };
    let running = http(Options { capacity, ..options() });
    let mut stream = connect(running.listen);
    let mut ask = || {
        stream.write_all(GET).unwrap();
        read_answer(&mut stream, false)
    };
    for _ in 0..3 {
        assert_eq!(ask().status(), 200);
    }
    let refused = ask();
    assert_eq!((refused.status(), refused.field("retry-after")), (429, Some("7200")));
    block_on(async {
        let mut client = Client::new(running.listen).await;
        let refused = client.get("/").await.unwrap();
        assert_eq!(
            (refused.status, &refused.headers["retry-after"]),
            (429, &"7200".parse().unwrap())
        );
        assert_eq!(client.get("/throng/stats").await.unwrap().status, 200, "not limited");
    });
    let stats = running.stop();
    assert_eq!((stats.requests, stats.service_time.count), (5, 5));
    assert_eq!(stats.queue.unwrap().rate_limited, 2);
}

#[test]
fn streams_wait_in_the_same_queue() {
    let running = queue("1ms", |it| it.servers = Some(2));
    let begun = Clock::start();
    block_on(async {
        let client = Rc::new(Client::new(running.listen).await);
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let mut client = client.another();
                spawn_local(async move { client.get("/").await.unwrap().status })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), 200);
        }
    });
    assert!(begun.now().as_secs_f64() >= 0.05);
    let queue = figures(&running);
    assert_eq!((queue.admitted, queue.served), (100, 100));
}

#[test]
fn a_stream_that_is_reset_leaves_the_queue() {
    let running = queue(HOUR, |it| it.queue_max = Some(0));
    block_on(async {
        let mut client = Client::new(running.listen).await;
        let mut other = client.another();
        let waiting = spawn_local(async move { other.get("/").await });
        let is_there = || figures(&running).in_service == 1;
        while !is_there() {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.get("/").await.unwrap().status, 503);
        waiting.abort();
        while is_there() {
            assert!(client.get("/throng/stats").await.is_ok());
        }
    });
    let stats = until(&running, |stats| stats.connections.open == 0);
    assert_eq!(stats.queue.unwrap().dropped, 1);
    assert_eq!((stats.http2.cancelled, stats.unanswered), (1, 1));
}

#[test]
fn the_law_is_served() {
    let law = |running: &Running, query: &str| get(running.listen, &format!("/throng/law{query}"));
    let running = queue("exponential 1ms", |_| ());
    let told = law(&running, "?p=99&within=50ms").json();
    assert_eq!((&told["by"], &told["model"]), (&"closed form".into(), &"M/M/1".into()), "{told}");
    assert!((told["rate_per_s"].as_f64().unwrap() - 907.9).abs() < 0.1, "{told}");
    assert_eq!((&told["within_ns"], &told["spacing"]), (&50_000_000.into(), &"poisson".into()));
    let wrong = law(&running, "?within=50");
    assert_eq!(wrong.status(), 400);
    assert!(wrong.text().contains("the unit of the duration is missing"), "{}", wrong.text());
    assert_eq!(law(&http(options()), "").status(), 404);
    assert_eq!(running.stats().requests, 0, "it is no request");
}

#[test]
fn a_server_refuses_connections_beyond_its_limit() {
    let running = im(None, Options { connections_max: Some(2), ..options() });
    let first = upgrade(running.listen);
    let _second = upgrade(running.listen);
    for _ in 0..3 {
        let mut refused = connect(running.listen);
        assert!(end_of(&mut refused).is_err(), "reset");
    }
    let stats = until(&running, |stats| stats.connections.refused == 3);
    assert_eq!((stats.connections.open, stats.connections.accepted), (2, 2));
    assert_eq!(get(running.admin.unwrap(), "/throng/stats").status(), 200, "not counted there");
    drop(first);
    until(&running, |stats| stats.connections.open == 1);
    let _third = upgrade(running.listen);
}

#[test]
fn new_connections_are_served_at_a_rate() {
    let running = im(None, Options { accept_per_s: Some(100.0), ..options() });
    let begun = Clock::start();
    let _streams: Vec<_> = (0..11).map(|_| upgrade(running.listen)).collect();
    let took = begun.now() - throng_base::Time::ZERO;
    assert!(took >= Duration::from_millis(100), "{took:?}");
}
