//! A session step by step: what it writes, and how it handles its input.

use std::time::Duration;

use throng_base::Time;

use super::super::*;
use super::{packets, read, written};

/// A session with the buffers that it is lent.
pub(super) struct Bench {
    pub(super) session: Session,
    pub(super) out: Vec<u8>,
    pub(super) now: Time,
}

impl Bench {
    pub(super) fn new(version: Version, wishes: Wishes) -> Bench {
        Bench { session: Session::new(version, wishes), out: Vec::new(), now: Time::ZERO }
    }

    /// One that is connected; the CONNACK has these properties.
    pub(super) fn open(version: Version, connect: &Connect<'_>, properties: &[u8]) -> Bench {
        let mut bench = Bench::new(version, Wishes { aliases_max: 2, ..Wishes::default() });
        bench.connect(connect, false, properties);
        bench
    }

    pub(super) fn connect(&mut self, connect: &Connect<'_>, present: bool, properties: &[u8]) {
        self.session.connect(connect, self.now, &mut self.out);
        self.out.clear();
        let properties = Properties::new(properties, PacketType::Connack).expect("they belong");
        let connack = Connack { session_present: present, code: 0, properties };
        let events = self.hear(&Packet::Connack(connack)).expect("it is accepted");
        assert!(events[0].starts_with("Connected"), "{events:?}");
    }

    /// What it makes of a packet.
    pub(super) fn hear(&mut self, packet: &Packet<'_>) -> Result<Vec<String>, Violation> {
        self.hear_bytes(&written(self.session.version(), packet))
    }

    pub(super) fn hear_bytes(&mut self, input: &[u8]) -> Result<Vec<String>, Violation> {
        let mut events = Vec::new();
        self.hear_all(input, &mut events).map(|()| events)
    }

    /// The same, including the events before a violation.
    pub(super) fn hear_all(
        &mut self,
        mut input: &[u8],
        events: &mut Vec<String>,
    ) -> Result<(), Violation> {
        let (mut whole, mut topic) = (Vec::new(), String::new());
        loop {
            let lent = Lent {
                whole: &mut whole,
                topic: &mut topic,
                out: &mut self.out,
                now: self.now,
                packet_bytes_max: 1_000,
            };
            match self.session.next(&mut input, lent)? {
                Some(event) => events.push(told(&event)),
                None => return Ok(()),
            }
        }
    }

    /// The packets that it has written since the last call.
    pub(super) fn said(&mut self) -> Vec<String> {
        let version = self.session.version();
        let out = std::mem::take(&mut self.out);
        let told = |packet: &[u8]| format!("{:?}", read(version, packet).expect("it is valid"));
        packets(&out).into_iter().map(told).collect()
    }

    fn publish(&mut self, topic: &str, qos: Qos) -> Result<Sent, Refusal> {
        let message = Publish { topic, payload: b"m", qos, ..Publish::default() };
        self.session.publish(&message, self.now, &mut self.out)
    }
}

fn told(event: &Event<'_>) -> String {
    match event {
        Event::Message(message) => {
            format!("{}={}", message.topic, String::from_utf8_lossy(message.payload))
        }
        Event::Connected { session_present, resent, lost, .. } => {
            format!("Connected {session_present} resent {resent} lost {lost}")
        }
        Event::Refused { reason, .. } => format!("Refused {}", reason.name),
        Event::Published { id, reason } => format!("Published {id} {}", reason.name),
        Event::Subscribed { codes, lower } => format!("Subscribed {:?} {lower}", codes.codes),
        Event::Disconnected { reason, .. } => format!("Disconnected {}", reason.name),
        Event::Auth { reason, .. } => format!("Auth {}", reason.name),
        event => format!("{event:?}"),
    }
}

pub(super) const PLAIN: Connect<'_> = Connect {
    clean_start: true,
    keep_alive_s: 10,
    client_id: "c",
    will: None,
    user: None,
    password: None,
    properties: Properties::NONE,
};

pub(super) fn ack(id: u16) -> Ack<'static> {
    Ack { id, code: 0, properties: Properties::NONE }
}

pub(super) fn number(id: PropertyId, number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    write_property(id, Value::Number(number), &mut out);
    out
}

#[test]
fn an_idle_subscriber_is_small() {
    assert!(size_of::<Session>() <= 72, "{}", size_of::<Session>());
    for version in [Version::V3, Version::V5] {
        let mut bench = Bench::open(version, &PLAIN, b"");
        let filters = [("a/+", SubscribeOptions::new(Qos::AtLeastOnce))];
        let Bench { session, out, now } = &mut bench;
        let id = session.subscribe(&filters, Properties::NONE, *now, out).expect("it may");
        let codes = Codes { id, codes: &[1], ..Codes::default() };
        assert_eq!(bench.hear(&Packet::Suback(codes)), Ok(vec!["Subscribed [1] 0".into()]));
        let message = Publish { topic: "a/b", id: 7, qos: Qos::AtLeastOnce, ..Publish::default() };
        bench.hear(&Packet::Publish(message)).expect("it is valid");
        assert_eq!(bench.session.heap_bytes(), 0);
    }
}

#[test]
fn messages_of_each_qos_are_acknowledged() {
    let mut bench = Bench::open(Version::V5, &PLAIN, b"");
    let message = |qos, id| {
        let payload = b"m";
        Packet::Publish(Publish { topic: "t", payload, qos, id, ..Publish::default() })
    };
    assert_eq!(bench.hear(&message(Qos::AtMostOnce, 0)), Ok(vec!["t=m".into()]));
    assert_eq!(bench.said(), Vec::<String>::new());
    assert_eq!(bench.hear(&message(Qos::AtLeastOnce, 5)), Ok(vec!["t=m".into()]));
    assert_eq!(bench.said(), [format!("{:?}", Packet::Puback(ack(5)))]);
    assert_eq!(bench.hear(&message(Qos::ExactlyOnce, 6)), Ok(vec!["t=m".into()]));
    assert_eq!(bench.hear(&message(Qos::ExactlyOnce, 6)), Ok(vec!["Duplicate(6)".into()]));
    assert_eq!(bench.said().len(), 2);
    assert_eq!(bench.hear(&Packet::Pubrel(ack(6))), Ok(vec!["Released(6)".into()]));
    assert_eq!(bench.said(), [format!("{:?}", Packet::Pubcomp(ack(6)))]);
    // Repeated on the same connection: answered, and reported.
    assert_eq!(bench.hear(&Packet::Pubrel(ack(6))), Ok(vec!["Unreleased(6)".into()]));
    assert_eq!(bench.said(), [format!("{:?}", Packet::Pubcomp(Ack { code: 0x92, ..ack(6) }))]);
    assert_eq!(bench.hear(&message(Qos::ExactlyOnce, 6)), Ok(vec!["t=m".into()]));
}

#[test]
fn published_messages_wait_for_room_within_the_receive_maximum() {
    let mut bench = Bench::open(Version::V5, &PLAIN, &number(PropertyId::ReceiveMaximum, 2));
    assert_eq!(bench.publish("t", Qos::AtMostOnce), Ok(Sent::Gone));
    assert_eq!(bench.publish("t", Qos::AtLeastOnce), Ok(Sent::Flying(1)));
    assert_eq!(bench.publish("t", Qos::ExactlyOnce), Ok(Sent::Flying(2)));
    assert_eq!(bench.publish("t", Qos::AtLeastOnce), Ok(Sent::Waiting(3)));
    assert_eq!((bench.said().len(), bench.session.unacknowledged()), (3, 3));
    assert_eq!(bench.hear(&Packet::Pubrec(ack(2))), Ok(vec!["Received(2)".into()]));
    assert_eq!(bench.said(), [format!("{:?}", Packet::Pubrel(ack(2)))]);
    assert_eq!(bench.hear(&Packet::Puback(ack(1))), Ok(vec!["Published 1 Success".into()]));
    assert!(bench.said()[0].contains("id: 3"));
    assert_eq!(bench.hear(&Packet::Pubcomp(ack(2))), Ok(vec!["Published 2 Success".into()]));
    let refused = Ack { code: 0x97, ..ack(3) };
    let told = bench.hear(&Packet::Puback(refused));
    assert_eq!(told, Ok(vec!["Published 3 Quota exceeded".into()]));
    assert_eq!(bench.session.unacknowledged(), 0);
}

#[test]
fn a_resumed_session_resends_in_order() {
    let expiry = number(PropertyId::SessionExpiryInterval, 60);
    let properties = Properties::new(&expiry, PacketType::Connect).expect("it belongs");
    let lasting = Connect { clean_start: false, properties, ..PLAIN };
    let mut bench = Bench::open(Version::V5, &lasting, &number(PropertyId::TopicAliasMaximum, 9));
    for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce, Qos::ExactlyOnce] {
        bench.publish("t", qos).expect("it may");
    }
    bench.hear(&Packet::Pubrec(ack(2))).expect("it is valid");
    bench.out.clear();
    assert_eq!(bench.session.lost(), 0);
    assert_eq!(bench.publish("t", Qos::AtMostOnce), Err(Refusal::NotConnected));
    bench.connect(&lasting, true, &number(PropertyId::ReceiveMaximum, 2));
    let said = bench.said();
    assert_eq!(said.len(), 2);
    assert!(said[0].contains("topic: \"t\"") && said[0].contains("dup: true"), "{said:?}");
    assert_eq!(said[1], format!("{:?}", Packet::Pubrel(ack(2))));
    bench.hear(&Packet::Puback(ack(1))).expect("it is valid");
    let said = bench.said();
    assert!(said[0].contains("dup: true") && said[0].contains("id: 3"), "{said:?}");
    // The server has forgotten it: nothing is left to be sent.
    bench.session.lost();
    bench.session.connect(&lasting, bench.now, &mut bench.out);
    let connack = Packet::Connack(Connack::default());
    assert_eq!(bench.hear(&connack), Ok(vec!["Connected false resent 0 lost 2".into()]));
    assert_eq!(bench.session.heap_bytes(), 0);
}

#[test]
fn a_session_that_ends_with_its_connection_keeps_no_messages() {
    let mut bench = Bench::open(Version::V3, &PLAIN, b"");
    bench.publish("t", Qos::ExactlyOnce).expect("it may");
    let small = bench.session.heap_bytes();
    assert!(small < 400, "{small}");
    assert_eq!(bench.session.lost(), 1);
    assert_eq!(bench.session.heap_bytes(), 0);
}

#[test]
fn a_burst_leaves_little_memory_behind() {
    let mut bench = Bench::open(Version::V3, &PLAIN, b"");
    for _ in 0..500 {
        bench.publish("t", Qos::AtLeastOnce).expect("it may");
    }
    let message = |id| Publish { topic: "t", qos: Qos::ExactlyOnce, id, ..Publish::default() };
    for id in 1..=500 {
        bench.hear(&Packet::Publish(message(id))).expect("it is valid");
    }
    assert!(bench.session.heap_bytes() > 10_000);
    for id in 1..=500 {
        bench.hear(&Packet::Puback(ack(id))).expect("it is valid");
        bench.hear(&Packet::Pubrel(ack(id))).expect("it is valid");
    }
    assert!(bench.session.heap_bytes() < 200, "{}", bench.session.heap_bytes());
}

#[test]
fn topics_get_aliases_in_both_directions() {
    let announced = number(PropertyId::TopicAliasMaximum, 4);
    let properties = Properties::new(&announced, PacketType::Connect).expect("it belongs");
    let connect = Connect { properties, ..PLAIN };
    let mut bench = Bench::open(Version::V5, &connect, &number(PropertyId::TopicAliasMaximum, 9));
    let mut sizes = Vec::new();
    for topic in ["long/topic/1", "long/topic/1", "t/2", "t/3", "t/3"] {
        bench.publish(topic, Qos::AtMostOnce).expect("it may");
        sizes.push(bench.out.len());
        bench.out.clear();
    }
    // The wish is two aliases: the third topic has none.
    assert_eq!(sizes, [21, 9, 12, 9, 9]);
    let alias = number(PropertyId::TopicAlias, 3);
    let properties = Properties::new(&alias, PacketType::Publish).expect("it belongs");
    let message = |topic| Packet::Publish(Publish { topic, properties, ..Publish::default() });
    for (topic, found) in [("a", "a="), ("", "a="), ("b", "b="), ("", "b=")] {
        assert_eq!(bench.hear(&message(topic)), Ok(vec![found.into()]));
    }
    // An alias lives as long as its connection.
    bench.session.lost();
    bench.connect(&connect, false, b"");
    let violation = bench.hear(&message("")).expect_err("it is not known");
    assert_eq!(violation.breach, Breach::AliasUnknown(3));
}

#[test]
fn pings_are_sent_automatically_and_must_be_answered() {
    let mut bench = Bench::open(Version::V5, &PLAIN, &number(PropertyId::ServerKeepAlive, 5));
    let at = |seconds: u64| Time::ZERO + Duration::from_secs(seconds);
    let Bench { session, out, .. } = &mut bench;
    assert_eq!(session.keep_alive(at(4), out), Ok(at(5)));
    assert_eq!((session.keep_alive(at(5), out), out.len()), (Ok(at(10)), 2));
    bench.now = at(6);
    assert_eq!(bench.hear(&Packet::Pingresp), Ok(vec!["Pong".into()]));
    bench.publish("t", Qos::AtMostOnce).expect("it may");
    bench.out.clear();
    let Bench { session, out, .. } = &mut bench;
    assert_eq!((session.keep_alive(at(10), out), out.len()), (Ok(at(11)), 0));
    assert_eq!((session.keep_alive(at(11), out), out.len()), (Ok(at(16)), 2));
    let missed = session.keep_alive(at(16), out).expect_err("no reply");
    assert_eq!((missed.breach, missed.section()), (Breach::KeepAlive(5), "3.1.2.10"));
    assert!(!session.is_open());
}

#[test]
fn packets_that_the_server_does_not_support_are_not_sent() {
    let mut properties = Vec::new();
    for id in [
        PropertyId::MaximumQos,
        PropertyId::RetainAvailable,
        PropertyId::WildcardSubscriptionAvailable,
        PropertyId::SharedSubscriptionAvailable,
        PropertyId::SubscriptionIdentifierAvailable,
    ] {
        properties.extend(number(id, 0));
    }
    properties.extend(number(PropertyId::MaximumPacketSize, 20));
    let mut bench = Bench::open(Version::V5, &PLAIN, &properties);
    assert_eq!(bench.publish("t", Qos::AtLeastOnce), Err(Refusal::Qos(0)));
    assert_eq!(bench.publish("t/+", Qos::AtMostOnce).map_err(Refusal::section), Err("3.3.2.1"));
    let large = Refusal::TooLarge { bytes: 36, bytes_max: 20 };
    assert_eq!(bench.publish(&"t".repeat(30), Qos::AtMostOnce), Err(large));
    let retained = Publish { topic: "t", retain: true, ..Publish::default() };
    let Bench { session, out, now } = &mut bench;
    assert_eq!(session.publish(&retained, *now, out), Err(Refusal::Retain));
    let one = SubscribeOptions::new(Qos::AtLeastOnce);
    let mut subscribe = |filter: &str, properties: &[u8]| {
        let properties = Properties::new(properties, PacketType::Subscribe).expect("they belong");
        session.subscribe(&[(filter, one)], properties, *now, out)
    };
    assert_eq!(subscribe("a/+", b""), Err(Refusal::Wildcard));
    assert_eq!(subscribe("$share/g/a", b""), Err(Refusal::Shared));
    assert_eq!(subscribe("a", b"\x0b\x01"), Err(Refusal::SubscriptionIdentifier));
    assert!(matches!(subscribe(&"a".repeat(30), b""), Err(Refusal::TooLarge { .. })));
    assert!(subscribe("a", b"").is_ok());
    assert!(session.unsubscribe(&[], Properties::NONE, *now, out).is_err());
}

#[test]
fn a_server_refuses_or_disconnects_with_a_reason() {
    for (version, code, name) in
        [(Version::V3, 4, "Bad user name or password"), (Version::V5, 0x8a, "Banned")]
    {
        let mut bench = Bench::new(version, Wishes::default());
        bench.session.connect(&PLAIN, bench.now, &mut bench.out);
        let connack = Packet::Connack(Connack { code, ..Connack::default() });
        assert_eq!(bench.hear(&connack), Ok(vec![format!("Refused {name}")]));
        assert!(!bench.session.is_open());
    }
    let mut bench = Bench::open(Version::V5, &PLAIN, b"");
    let farewell = Farewell { code: 0x8e, ..Farewell::default() };
    let told = bench.hear(&Packet::Disconnect(farewell));
    assert_eq!(told, Ok(vec!["Disconnected Session taken over".into()]));
    assert_eq!(bench.publish("t", Qos::AtMostOnce), Err(Refusal::NotConnected));
    // Further input is ignored.
    assert_eq!(bench.hear_bytes(b"\xff\xff"), Ok(vec![]));
}
