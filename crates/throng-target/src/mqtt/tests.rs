//! Tests brokers on loopback with small clients.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::codec;
use crate::stats::MqttStats;
use crate::tests::{connect, end_of, options, until};
use crate::{FaultOptions, Options, Running, Stats, TargetKind, start};

fn broker(options: Options) -> Running {
    start(TargetKind::Mqtt, options).unwrap()
}

fn books(stats: &Stats) -> MqttStats {
    stats.mqtt.clone().unwrap()
}

/// A packet with a body of several parts.
fn packet(first: u8, body: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    codec::write(first, body, &mut out);
    out
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat()
}

/// A CONNECT: flags, the fields after the keep-alive time, and those after the client identifier.
struct Hello<'a> {
    level: u8,
    flags: u8,
    keep_alive_s: u16,
    properties: &'a [u8],
    id: &'a str,
    rest: &'a [u8],
}

impl Hello<'_> {
    fn bytes(&self) -> Vec<u8> {
        let properties = match self.level {
            4 => Vec::new(),
            _ => [&[self.properties.len() as u8], self.properties].concat(),
        };
        let head = [b"\0\x04MQTT", &[self.level, self.flags][..]].concat();
        let alive = self.keep_alive_s.to_be_bytes();
        packet(0x10, &[&head, &alive, &properties, &text(self.id), self.rest])
    }
}

const V3: Hello<'_> =
    Hello { level: 4, flags: 2, keep_alive_s: 0, properties: b"", id: "c", rest: b"" };
const V5: Hello<'_> = Hello { level: 5, ..V3 };
/// An MQTT 5 session that lasts for a minute.
const LASTING: Hello<'_> = Hello { flags: 0, properties: b"\x11\0\0\0\x3c", ..V5 };

fn publish(level: u8, qos: u8, id: u16, topic: &str, payload: &str) -> Vec<u8> {
    let id = if qos > 0 { id.to_be_bytes().to_vec() } else { Vec::new() };
    let properties: &[u8] = if level == 5 { &[0] } else { &[] };
    packet(0x30 | qos << 1, &[&text(topic), &id, properties, payload.as_bytes()])
}

fn subscribe(level: u8, id: u16, filter: &str, options: u8) -> Vec<u8> {
    let properties: &[u8] = if level == 5 { &[0] } else { &[] };
    packet(0x82, &[&id.to_be_bytes(), properties, &text(filter), &[options]])
}

fn ack(first: u8, id: u16) -> Vec<u8> {
    packet(first, &[&id.to_be_bytes()])
}

/// The next packet: its first byte and its body.
fn hear(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    stream.read_exact(&mut head).unwrap();
    assert!(head[1] < 0x80, "a short packet");
    let mut body = vec![0; usize::from(head[1])];
    stream.read_exact(&mut body).unwrap();
    (head[0], body)
}

fn say(stream: &mut TcpStream, bytes: &[u8]) -> (u8, Vec<u8>) {
    stream.write_all(bytes).unwrap();
    hear(stream)
}

/// A connected client, and whether its session was resumed.
fn client(running: &Running, hello: &Hello<'_>) -> (TcpStream, bool) {
    let mut stream = connect(running.listen);
    let (first, body) = say(&mut stream, &hello.bytes());
    assert_eq!((first, body[1]), (0x20, 0));
    (stream, body[0] == 1)
}

/// A client with a subscription.
fn subscriber(running: &Running, hello: &Hello<'_>, filter: &str, options: u8) -> TcpStream {
    let (mut stream, _) = client(running, hello);
    let (first, body) = say(&mut stream, &subscribe(hello.level, 7, filter, options));
    assert_eq!((first, body.last()), (0x90, Some(&(options & 3))));
    stream
}

/// The first byte, the topic, the packet identifier and the rest of a PUBLISH.
fn message(stream: &mut TcpStream) -> (u8, String, u16, Vec<u8>) {
    let (first, body) = hear(stream);
    assert_eq!(first & 0xf0, 0x30, "a PUBLISH: {first:x} {body:x?}");
    let end = 2 + usize::from(u16::from_be_bytes([body[0], body[1]]));
    let topic = String::from_utf8(body[2..end].to_vec()).unwrap();
    let has_id = first & 6 > 0;
    let id = if has_id { u16::from_be_bytes([body[end], body[end + 1]]) } else { 0 };
    (first, topic, id, body[end + if has_id { 2 } else { 0 }..].to_vec())
}

#[test]
fn messages_of_each_qos_reach_clients_of_both_versions() {
    let running = broker(Options { workers: Some(2), ..options() });
    let mut three = subscriber(&running, &Hello { id: "three", ..V3 }, "a/+", 2);
    let mut five = subscriber(&running, &Hello { id: "five", ..V5 }, "#", 1);
    let (mut from, _) = client(&running, &V5);
    for qos in 0..3 {
        let bytes = publish(5, qos, 9, "a/b", "m");
        match qos {
            0 => from.write_all(&bytes).unwrap(),
            1 => assert_eq!(say(&mut from, &bytes), (0x40, vec![0, 9])),
            _ => {
                assert_eq!(say(&mut from, &bytes), (0x50, vec![0, 9]));
                assert_eq!(say(&mut from, &bytes), (0x50, vec![0, 9]), "not again");
                assert_eq!(say(&mut from, &ack(0x62, 9)), (0x70, vec![0, 9]));
            }
        }
        let (first, topic, id, rest) = message(&mut three);
        assert_eq!((first >> 1 & 3, topic.as_str(), rest), (qos, "a/b", b"m".to_vec()));
        match qos {
            0 => {}
            1 => three.write_all(&ack(0x40, id)).unwrap(),
            _ => {
                assert_eq!(say(&mut three, &ack(0x50, id)).0, 0x62);
                three.write_all(&ack(0x70, id)).unwrap();
            }
        }
        let (first, _, id, rest) = message(&mut five);
        assert_eq!((first >> 1 & 3, rest), (qos.min(1), b"\0m".to_vec()));
        if qos > 0 {
            five.write_all(&ack(0x40, id)).unwrap();
        }
    }
    let stats = until(&running, |stats| books(stats).acknowledged == 4);
    let counts = books(&stats);
    assert_eq!((counts.published, counts.repeated, counts.misnumbered), ([1, 1, 1], 1, 0));
    let deliveries = stats.deliveries.unwrap();
    assert_eq!((deliveries.owed, deliveries.written), (6, 6));
}

#[test]
fn a_session_outlives_its_connection_on_request() {
    let running = broker(options());
    let mut stream = subscriber(&running, &LASTING, "t", 1);
    let (mut from, _) = client(&running, &Hello { id: "from", ..V3 });
    assert_eq!(say(&mut from, &publish(3, 1, 1, "t", "one")).0, 0x40);
    let (_, _, id, _) = message(&mut stream);
    drop(stream);
    until(&running, |stats| stats.connections.open == 1);
    for (id, text) in [(2, "two"), (3, "three")] {
        say(&mut from, &publish(3, 1, id, "t", text));
    }
    say(&mut from, &publish(3, 2, 4, "elsewhere", "no"));
    let (mut stream, present) = client(&running, &LASTING);
    assert!(present);
    let (first, _, again, rest) = message(&mut stream);
    assert_eq!((first, again, rest), (0x3a, id, b"\0one".to_vec()), "with the DUP flag");
    assert_eq!(message(&mut stream).3, b"\0two");
    assert_eq!(message(&mut stream).3, b"\0three");
    // A clean start ends the session.
    drop(stream);
    let (stream, present) = client(&running, &V5);
    assert!(!present);
    let counts = books(&running.stats());
    assert_eq!((counts.resumed, counts.resent, counts.subscriptions), (1, 1, 0));
    drop(stream);
    let stats = until(&running, |stats| stats.connections.open == 1);
    assert_eq!(books(&stats).sessions, 1);
}

#[test]
fn retained_messages_are_sent_on_subscription() {
    let running = broker(options());
    let (mut from, _) = client(&running, &Hello { id: "from", ..V3 });
    let mut retain = |topic: &str, payload: &str| {
        let mut bytes = publish(4, 1, 1, topic, payload);
        bytes[0] |= 1;
        say(&mut from, &bytes);
    };
    for (topic, payload) in [("a/1", "x"), ("a/2", "y"), ("b", "z"), ("a/2", "")] {
        retain(topic, payload);
    }
    let mut stream = subscriber(&running, &V3, "a/#", 0);
    assert_eq!(message(&mut stream), (0x31, "a/1".into(), 0, b"x".to_vec()));
    retain("a/3", "live");
    assert_eq!(message(&mut stream), (0x30, "a/3".into(), 0, b"live".to_vec()));
    assert_eq!(books(&running.stats()).retained, 3);
}

#[test]
fn a_message_for_several_subscriptions_of_a_client_is_sent_once() {
    let running = broker(options());
    let (mut stream, _) = client(&running, &Hello { id: "to", ..V5 });
    for (identifier, filter, qos) in [(5, "a/+", 0), (6, "a/#", 1)] {
        let properties = [2, 0x0b, identifier];
        let bytes = packet(0x82, &[&[0, 1], &properties, &text(filter), &[qos]]);
        assert_eq!(say(&mut stream, &bytes).0, 0x90);
    }
    let (mut from, _) = client(&running, &V5);
    // An expiry, which is forwarded, and an alias, which is not.
    let properties = [8, 0x23, 0, 1, 0x02, 0, 0, 0, 9];
    from.write_all(&packet(0x32, &[&text("a/b"), &[0, 1], &properties, b"m"])).unwrap();
    assert_eq!(hear(&mut from), (0x40, vec![0, 1]));
    from.write_all(&packet(0x30, &[&text(""), &[3, 0x23, 0, 1], b"n"])).unwrap();
    let (first, topic, _, rest) = message(&mut stream);
    assert_eq!((first, topic.as_str()), (0x32, "a/b"), "the highest QoS");
    let (properties, payload) = rest.split_at(10);
    assert_eq!((&properties[..6], payload), (&[9, 0x02, 0, 0, 0, 9][..], &b"m"[..]));
    let mut identifiers = [properties[7], properties[9]];
    identifiers.sort_unstable();
    assert_eq!(identifiers, [5, 6]);
    let (_, topic, _, rest) = message(&mut stream);
    assert_eq!((topic.as_str(), rest.last()), ("a/b", Some(&b'n')));
}

#[test]
fn members_of_a_group_take_turns() {
    let running = broker(Options { workers: Some(2), ..options() });
    let ids = ["m0", "m1", "m2"];
    let mut members: Vec<TcpStream> =
        ids.iter().map(|id| subscriber(&running, &Hello { id, ..V5 }, "$share/g/t", 0)).collect();
    let (mut from, _) = client(&running, &V3);
    for number in 0..9 {
        from.write_all(&publish(4, 0, 0, "t", &number.to_string())).unwrap();
    }
    let mut heard: Vec<String> = Vec::new();
    for member in &mut members {
        heard.extend((0..3).map(|_| String::from_utf8(message(member).3).unwrap()));
    }
    heard.sort();
    assert_eq!(heard, (0..9).map(|number| format!("\0{number}")).collect::<Vec<_>>());
}

#[test]
fn a_will_is_published_if_its_client_is_lost_but_not_if_it_disconnects() {
    let running = broker(options());
    let mut stream = subscriber(&running, &Hello { id: "watch", ..V3 }, "will/+", 0);
    let will = |topic: &str| [text(topic), text("gone")].concat();
    for (id, graceful) in [("leaves", true), ("lost", false)] {
        let rest = will(&format!("will/{id}"));
        let hello = Hello { id, flags: 6, rest: &rest, ..V3 };
        let (mut client, _) = client(&running, &hello);
        if graceful {
            client.write_all(b"\xe0\0").unwrap();
            assert_eq!(end_of(&mut client).unwrap(), 0);
        }
    }
    assert_eq!(message(&mut stream).1, "will/lost");
    // With a delay of a second, unless the session ends first.
    let rest = [vec![5, 0x18, 0, 0, 0, 1], will("will/late")].concat();
    let hello = Hello { id: "late", flags: 4, rest: &rest, ..LASTING };
    drop(client(&running, &hello));
    assert_eq!(message(&mut stream).1, "will/late");
    assert_eq!(books(&running.stats()).wills, 2);
}

#[test]
fn a_client_has_one_connection_and_must_send_packets() {
    let running = broker(options());
    let (mut first, _) = client(&running, &V5);
    let (mut second, present) = client(&running, &V5);
    assert_eq!((hear(&mut first), present), ((0xe0, vec![0x8e, 0]), false));
    assert_eq!(end_of(&mut first).unwrap(), 0);
    assert_eq!(say(&mut second, b"\xc0\0"), (0xd0, vec![]));
    let (mut silent, _) = client(&running, &Hello { id: "silent", keep_alive_s: 1, ..V5 });
    assert_eq!(hear(&mut silent), (0xe0, vec![0x8d, 0]));
    assert_eq!(end_of(&mut silent).unwrap(), 0);
    let counts = books(&running.stats());
    assert_eq!((counts.taken_over, counts.keep_alive), (1, 1));
}

#[test]
fn a_protocol_violation_closes_the_connection() {
    let running = broker(options());
    let hello = V5.bytes();
    for bytes in [
        publish(5, 0, 0, "t", "before CONNECT"),
        [hello.clone(), hello.clone()].concat(),
        [&hello[..], b"\xd1\0"].concat(),
        [&hello[..], b"\x30\xff\xff\xff\xff\x7f"].concat(),
        [hello, subscribe(5, 0, "t", 0)].concat(),
    ] {
        let mut stream = connect(running.listen);
        stream.write_all(&bytes).unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
    }
    assert_eq!(until(&running, |stats| stats.refused == 5).mqtt.unwrap().broken, 5);
    let (mut stream, _) = client(&running, &V5);
    assert_eq!(say(&mut stream, &subscribe(5, 1, "a#", 0)).1.last(), Some(&0x8f));
}

#[test]
fn delivery_faults_are_exact() {
    let faults =
        FaultOptions { lose_every: Some(10), twice_every: Some(7), ..FaultOptions::default() };
    let running = broker(Options { faults, ..options() });
    let mut stream = subscriber(&running, &Hello { id: "to", ..V3 }, "t", 0);
    let (mut from, _) = client(&running, &V3);
    for _ in 0..100 {
        from.write_all(&publish(4, 0, 0, "t", "m")).unwrap();
    }
    // 10 are lost; of the 14 sevenths, one is also lost.
    (0..103).for_each(|_| drop(message(&mut stream)));
    // The last one is lost, so nothing is received after it.
    let all = |stats: &Stats| stats.deliveries.as_ref().is_some_and(|it| it.owed == 100);
    let deliveries = until(&running, all).deliveries.unwrap();
    assert_eq!((deliveries.owed, deliveries.lost, deliveries.twice), (100, 10, 13));
    assert_eq!(deliveries.written, 103);
}

#[test]
fn errors_reject_and_forgotten_subscriptions_are_confirmed() {
    let running = broker(Options { errors: 1.0, ..options() });
    for (hello, code) in [(V3, 3), (V5, 0x88)] {
        let mut stream = connect(running.listen);
        assert_eq!(say(&mut stream, &hello.bytes()).1[1], code);
        assert_eq!(end_of(&mut stream).unwrap_or_default(), 0);
    }
    let faults = FaultOptions { forget_every: Some(2), ..FaultOptions::default() };
    let running = broker(Options { faults, ..options() });
    let _streams: Vec<_> =
        ["a", "b", "c", "d"].map(|id| subscriber(&running, &Hello { id, ..V5 }, "t", 0)).into();
    let counts = books(&running.stats());
    assert_eq!((counts.subscribes, counts.forgotten, counts.subscriptions), (4, 2, 2));
}

#[test]
fn packets_can_be_split_anywhere() {
    let running = broker(options());
    let stream =
        [V5.bytes(), subscribe(5, 1, "t", 0), publish(5, 1, 2, "t", "m"), b"\xc0\0\xe0\0".to_vec()]
            .concat();
    throng_fuzz::splits(&stream, |parts| {
        let mut client = connect(running.listen);
        parts.iter().for_each(|part| client.write_all(part).unwrap());
        let mut all = Vec::new();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client.read_to_end(&mut all).unwrap();
        assert!(all.starts_with(b"\x20\x06\0\0\x03\x22\0\x10\x90\x04\0\x01\0\0"), "{all:x?}");
        assert!(all.windows(4).any(|bytes| bytes == b"\x40\x02\0\x02"), "{all:x?}");
    });
    let counts = books(&until(&running, |stats| stats.connections.open == 0));
    assert_eq!((counts.broken, counts.sessions), (0, 0));
}

#[test]
fn fuzz_a_broker_survives_garbage() {
    let running = broker(options());
    let stream = [V5.bytes(), subscribe(5, 1, "t", 2), publish(5, 2, 2, "t", "m")].concat();
    let mut tried = 0;
    throng_fuzz::mutations(&[&stream, &LASTING.bytes(), &V3.bytes()], |input, _| {
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
    client(&running, &V5);
}
