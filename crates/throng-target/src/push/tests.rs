//! Tests push services on loopback with small devices.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throng_base::{Clock, clock};

use super::codec::tests::{bind, heartbeat, packet, received, report};
use crate::redis::TestServer;
use crate::tests::{PATIENCE, ask, connect, end_of, get, options, until};
use crate::{FaultOptions, Options, PushOptions, Running, TargetKind, start};

fn service(push: PushOptions, options: Options) -> Running {
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    start(TargetKind::Push, Options { admin, push, ..options }).unwrap()
}

fn plain() -> Running {
    service(PushOptions::default(), options())
}

/// Reads a packet: kind, sequence number, body.
fn read(stream: &mut TcpStream) -> (u8, u32, Vec<u8>) {
    let mut head = [0; 7];
    stream.read_exact(&mut head).unwrap();
    let length = usize::from(u16::from_be_bytes([head[0], head[1]]));
    let mut body = vec![0; length - 5];
    stream.read_exact(&mut body).unwrap();
    (head[2], u32::from_be_bytes([head[3], head[4], head[5], head[6]]), body)
}

/// Reads the ID, the timestamp and the data of a push.
fn read_push(stream: &mut TcpStream) -> (u64, u64, String) {
    let (kind, seq, body) = read(stream);
    let number = |at: usize| u64::from_be_bytes(body[at..at + 8].try_into().unwrap());
    assert_eq!((kind, seq), (5, 1 << 31 | number(0) as u32));
    (number(0), number(8), String::from_utf8(body[16..].to_vec()).unwrap())
}

/// A bound device.
fn device(running: &Running, name: &str) -> TcpStream {
    let mut stream = connect(running.listen);
    stream.write_all(&bind(9, name, "pk")).unwrap();
    assert_eq!(read(&mut stream), (2, 9, vec![0]));
    stream
}

fn post(running: &Running, path: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    let answer = ask(&mut connect(running.admin.unwrap()), &(head + &body));
    (answer.status(), answer.json())
}

fn asked(running: &Running, path: &str) -> (u16, Value) {
    let answer = get(running.admin.unwrap(), path);
    (answer.status(), answer.json())
}

/// The push service's counts, once the one at `pointer` equals `wanted`.
fn until_count(running: &Running, pointer: &str, wanted: u64) -> Value {
    let push = |stats: &crate::Stats| stats.push.clone().unwrap();
    push(&until(running, |stats| push(stats).pointer(pointer) == Some(&wanted.into())))
}

#[test]
fn a_device_can_split_its_packets_anywhere() {
    let running = plain();
    let stream =
        [bind(1, "d17", "pk"), heartbeat(2), report(3, r#"{"battery":5}"#), received(7)].concat();
    let mut lives = 0;
    throng_fuzz::splits(&stream, |parts| {
        let mut device = connect(running.listen);
        parts.iter().for_each(|part| device.write_all(part).unwrap());
        let answers = [(2, 1, vec![0]), (4, 2, vec![]), (8, 3, vec![])];
        answers.iter().for_each(|answer| assert_eq!(read(&mut device), *answer));
        lives += 1;
        let counts = until_count(&running, "/acknowledged", lives);
        assert_eq!(counts["online"], 1);
        drop(device);
        until_count(&running, "/online", 0);
    });
    let stats = running.stop();
    let counts = stats.push.unwrap();
    for name in ["binds", "bound", "heartbeats", "reports"] {
        assert_eq!(counts[name], lives, "{name}");
    }
    assert_eq!((stats.logged_in, stats.refused, stats.messages), (0, 0, 4 * lives));
}

#[test]
fn a_device_is_bound_once_and_by_its_key() {
    let running = plain();
    let mut first = connect(running.listen);
    first.write_all(&[bind(1, "d17", "guess"), bind(2, "d17", "pk")].concat()).unwrap();
    assert_eq!((read(&mut first), read(&mut first)), ((2, 1, vec![1]), (2, 2, vec![0])));
    let mut second = device(&running, "d17");
    assert_eq!(end_of(&mut first).unwrap(), 0, "closed in order");
    second.write_all(&heartbeat(5)).unwrap();
    assert_eq!(read(&mut second), (4, 5, vec![]));
    drop(first);
    let stats = until(&running, |stats| stats.connections.open == 1);
    let counts = stats.push.unwrap();
    assert_eq!((&counts["kicked"], &counts["refused_keys"]), (&json!(1), &json!(1)));
    assert_eq!((&counts["online"], stats.logged_in), (&json!(1), 1));
    assert_eq!(asked(&running, "/device/d17").0, 200);
}

#[test]
fn violations_close_the_connection_and_are_counted_by_reason() {
    let running = plain();
    let bound = |bytes: Vec<u8>| [bind(9, "d1", "pk"), bytes].concat();
    for (reason, bytes) in [
        ("not_bound", heartbeat(1)),
        ("not_bound", report(1, "{}")),
        ("not_bound", received(1)),
        ("bound_again", bound(bind(1, "d1", "pk"))),
        ("unknown_kind", bound(packet(5, 1, b""))),
        ("too_long", bound(vec![0xff, 0xff])),
        ("too_short", bound(vec![0, 1])),
        ("malformed", bound(packet(6, 1, b"short"))),
        ("not_json", bound(report(1, "{]"))),
    ] {
        running.reset();
        let mut stream = connect(running.listen);
        stream.write_all(&bytes).unwrap();
        // The reply to the bind, if any, and the end of the connection.
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
        until_count(&running, &format!("/closed/{reason}"), 1);
        assert_eq!(running.stats().refused, 1);
        until_count(&running, "/online", 0);
    }
}

#[test]
fn pushes_reach_one_some_or_all_devices() {
    let running = plain();
    let mut devices: Vec<TcpStream> =
        ["d1", "d2", "d30", "phone"].iter().map(|name| device(&running, name)).collect();
    let push = |to: Value, id: u64| {
        post(&running, "/push", &json!({"to": to, "id": id, "data": {"a": 1}}))
    };
    let before = clock::wall_now().as_nanos() as u64;
    assert_eq!(push(json!("phone"), 17), (202, json!({"id": 17, "addressed": 1})));
    let (id, sent_ns, data) = read_push(&mut devices[3]);
    assert_eq!((id, data.as_str()), (17, r#"{"a":1}"#));
    assert!(sent_ns >= before && sent_ns <= clock::wall_now().as_nanos() as u64);
    let some = json!({"id": 18, "addressed": 2, "offline": 1});
    assert_eq!(push(json!(["d1", "d9", "d30"]), 18), (202, some));
    assert_eq!(read_push(&mut devices[0]).0, 18);
    assert_eq!(read_push(&mut devices[2]).0, 18);
    let all = json!({"to": "all", "id": 19, "rate": 1000});
    assert_eq!(post(&running, "/push", &all), (202, json!({"id": 19, "addressed": 4})));
    for device in &mut devices {
        assert_eq!(read_push(device).0, 19);
        device.write_all(&received(19)).unwrap();
    }
    assert_eq!(push(json!("d9"), 20), (404, json!({"error": "`d9` is not online"})));
    let counts = until_count(&running, "/acknowledged", 4);
    assert_eq!((&counts["addressed"], &counts["pushes_waiting"]), (&json!(7), &json!(0)));
    let stats = asked(&running, "/stats").1;
    assert_eq!(
        (&stats["deliveries"]["written"], &stats["connections"]["open"]),
        (&json!(7), &json!(4))
    );
}

#[test]
fn the_admin_lists_online_devices_and_rejects_with_a_reason() {
    let running = plain();
    let _devices: Vec<TcpStream> =
        (0..5).map(|number| device(&running, &format!("d{}", number * 10))).collect();
    let online = |query: &str| asked(&running, &format!("/online{query}")).1["online"].clone();
    assert_eq!(online("?from=0&to=20"), json!(["d0", "d10", "d20"]));
    assert_eq!(online("?from=41&to=999"), json!([]));
    assert_eq!(online(""), json!(["d0", "d10", "d20", "d30", "d40"]));
    assert_eq!(asked(&running, "/device/d10").1["online"], true);
    assert_eq!(asked(&running, "/device/d11"), (404, json!({"device": "d11", "online": false})));
    for (path, status) in
        [("/online?from=2&to=1", 400), ("/online?to=999999999", 400), ("/push", 405)]
    {
        let (answered, body) = asked(&running, path);
        assert!(answered == status && body["error"].is_string(), "{path}: {body}");
    }
    assert_eq!(get(running.admin.unwrap(), "/nothing").status(), 404);
    assert_eq!(post(&running, "/push", &json!({"to": 1})).0, 400);
    assert_eq!(post(&running, "/faults", &json!({"lose": 1})).0, 400);
    // One connection can carry many requests.
    let mut stream = connect(running.admin.unwrap());
    for _ in 0..3 {
        assert_eq!(ask(&mut stream, "GET /stats HTTP/1.1\r\nHost: x\r\n\r\n").status(), 200);
    }
}

#[test]
fn push_faults_are_exact_and_can_change_at_runtime() {
    let running = plain();
    let mut devices: Vec<TcpStream> =
        (0..50).map(|number| device(&running, &format!("d{number}"))).collect();
    let set = |faults: Value| assert_eq!(post(&running, "/faults", &faults).0, 200);
    set(json!({"lose_every": 10, "twice_every": 7}));
    for id in 0..4 {
        assert_eq!(post(&running, "/push", &json!({"to": "all", "id": id})).0, 202);
    }
    let wanted = |stats: &crate::Stats| stats.deliveries.as_ref().unwrap().owed == 200;
    let stats = until(&running, wanted).deliveries.unwrap();
    // Two of the sevenths are also tenths, which are lost.
    assert_eq!((stats.lost, stats.twice, stats.written), (20, 26, 206));
    set(json!({"lose_every": null, "twice_every": null}));
    assert_eq!(post(&running, "/push", &json!({"to": "all", "id": 99})).0, 202);
    let mut pushes = 0;
    for device in &mut devices {
        while read_push(device).0 != 99 {
            pushes += 1;
        }
    }
    assert_eq!(pushes, 206);
}

#[test]
fn some_binds_are_confirmed_and_forgotten() {
    let faults = FaultOptions { forget_every: Some(3), ..FaultOptions::default() };
    let running = service(PushOptions::default(), Options { faults, ..options() });
    let mut devices: Vec<TcpStream> =
        (0..9).map(|number| device(&running, &format!("d{number}"))).collect();
    for stream in &mut devices {
        stream.write_all(&heartbeat(1)).unwrap();
        assert_eq!(read(stream).0, 4);
    }
    let counts = running.stats().push.unwrap();
    assert_eq!((&counts["online"], &counts["forgotten"]), (&json!(6), &json!(3)));
    assert_eq!(asked(&running, "/online").1["online"].as_array().unwrap().len(), 6);
}

#[test]
fn a_silent_device_is_marked_as_offline() {
    let idle_timeout = Some(Duration::from_millis(300));
    let running = service(PushOptions { idle_timeout, ..PushOptions::default() }, options());
    let mut silent = [device(&running, "d1"), connect(running.listen)];
    let mut lively = device(&running, "d2");
    let clock = Clock::start();
    while running.stats().push.unwrap()["closed"]["idle"] != 2 {
        assert!(clock.now().as_secs_f64() < PATIENCE.as_secs_f64());
        lively.write_all(&heartbeat(1)).unwrap();
        assert_eq!(read(&mut lively).0, 4);
    }
    silent.iter_mut().for_each(|stream| assert_eq!(end_of(stream).unwrap(), 0));
    assert_eq!(asked(&running, "/online").1["online"], json!(["d2"]));
}

#[test]
fn pushes_are_sent_automatically() {
    let push_every = Some(Duration::from_millis(50));
    let running = service(PushOptions { push_every, ..PushOptions::default() }, options());
    let mut devices = [device(&running, "d1"), device(&running, "d2")];
    for device in &mut devices {
        let (first, _, data) = read_push(device);
        assert!(first > 1 << 32 && data.starts_with("{\"number\":"), "{data}");
        assert_eq!(read_push(device).0, first + 1);
    }
}

/// A service that mirrors to this Redis server.
fn mirrored(redis: &TestServer, redis_wait: bool) -> Running {
    let redis = Some(format!("redis://{}", redis.address).parse().unwrap());
    let redis_timeout = Duration::from_millis(200);
    let push = PushOptions { redis, redis_wait, redis_timeout, ..PushOptions::default() };
    service(push, options())
}

#[test]
fn the_presence_is_mirrored_to_redis() {
    let redis = TestServer::start(SocketAddr::from(([127, 0, 0, 1], 0)), Arc::default());
    let running = mirrored(&redis, false);
    let mut devices: Vec<TcpStream> =
        (0..30).map(|number| device(&running, &format!("d{number}"))).collect();
    let mirrored = |count: usize| {
        let sets = redis.sets.lock().unwrap();
        sets.get("presence").map_or(0, std::collections::BTreeSet::len) == count
    };
    until(&running, |_| mirrored(30));
    devices.truncate(10);
    until(&running, |_| mirrored(10));
    let stats = asked(&running, "/stats").1;
    assert_eq!(stats["redis"]["connected"], true);
    assert_eq!(running.stop().connections.reset, 0);
}

#[test]
fn binds_wait_for_redis_with_a_timeout() {
    let mut redis = TestServer::start(SocketAddr::from(([127, 0, 0, 1], 0)), Arc::default());
    let running = mirrored(&redis, true);
    let _first = device(&running, "d1");
    assert!(redis.sets.lock().unwrap()["presence"].contains("d1"), "it is written by then");
    redis.kill();
    let mut second = connect(running.listen);
    second.write_all(&[bind(2, "d2", "pk"), heartbeat(3)].concat()).unwrap();
    assert_eq!(read(&mut second), (4, 3, vec![]), "it is alive while it waits");
    assert_eq!(read(&mut second), (2, 2, vec![2]));
    until_count(&running, "/unconfirmed", 1);
    assert_eq!(asked(&running, "/device/d2").0, 404);
    let stats = asked(&running, "/stats").1;
    assert_eq!(
        (&stats["redis"]["connected"], &stats["redis"]["stale"]),
        (&json!(false), &json!(true))
    );
    let redis = TestServer::start(redis.address, Arc::clone(&redis.sets));
    until_count(&running, "/redis/rewrites", 2);
    second.write_all(&bind(4, "d2", "pk")).unwrap();
    assert_eq!(read(&mut second), (2, 4, vec![0]));
    assert_eq!(redis.sets.lock().unwrap()["presence"].len(), 2);
}

#[test]
fn fuzz_a_push_service_survives_garbage() {
    let running = plain();
    let stream = [bind(1, "d17", "pk"), heartbeat(2), report(3, "{}"), received(7)].concat();
    let mut tried = 0;
    throng_fuzz::mutations(&[&stream], |input, _| {
        tried += 1;
        if tried > 300 {
            return;
        }
        let mut stream = connect(running.listen);
        // The server may close the connection before it has read all bytes.
        let _ = stream.write_all(input);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    until(&running, |stats| stats.connections.open == 0);
    until_count(&running, "/online", 0);
    device(&running, "d17");
}
