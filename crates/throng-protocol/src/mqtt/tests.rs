//! Packets of both versions: captured, drawn and damaged ones; topics and tables.

use std::fmt::Write as _;

use throng_base::Random;

use super::*;

mod carried;
mod cuts;
mod exchange;
mod liars;
mod session;

/// Packets between mosquitto 2.0.11 and its clients, from `mosquitto_sub -q 2 -t a/+ -t
/// '$share/g/b/#' -U zz` and `mosquitto_pub` with QoS 0, 1 and 2, captured by a proxy.
#[rustfmt::skip]
const CAPTURED: [(Version, &str); 14] = [
    (Version::V3, "101700044d5154540400003c000b7375626d71747476333131821700010003612f2b0200\
      0c2473686172652f672f622f2302a206000200027a7a400200015002000270020002e000"),
    (Version::V3, "20020000900400010202b002000230090003612f307a65726f320a0003612f3100016f6e\
      65340a0003622f32000274776f62020002"),
    (Version::V3, "101600044d5154540402003c000a70306d7174747633313130090003612f307a65726fe0\
      00"),
    (Version::V3, "102d00044d51545404ee003c000a70316d717474763331310003772f740004676f6e6500\
      0475736572000470617373330a0003612f3100016f6e65e000"),
    (Version::V3, "2002000040020001"),
    (Version::V3, "101600044d5154540402003c000a70326d71747476333131340a0003622f32000174776f\
      62020001e000"),
    (Version::V3, "200200005002000170020001"),
    (Version::V5, "101900044d5154540500003c08110000003c21000300047375623582180001000003612f\
      2b02000c2473686172652f672f622f2302a20700020000027a7a4002000140020002e000"),
    (Version::V5, "200900000622000a21001490050001000202330b0003612f310001006f6e65b004000200\
      11300a0003612f30007a65726f32310003612f310002262600016b00017603000a746578\
      742f706c61696e080003722f7409000263640101020000003c6f6e65"),
    (Version::V5, "101300044d5154540502003c032100140003703035300a0003612f30007a65726fe000"),
    (Version::V5, "103800044d51545405ee003c0b110000001e210007220005000370313505180000000500\
      03772f740004676f6e6500047573657200047061737333310003612f310001262600016b\
      00017603000a746578742f706c61696e020000003c080003722f74090002636401016f6e\
      65e000"),
    (Version::V5, "200900000622000a21001440020001"),
    (Version::V5, "101300044d5154540502003c032100140003703235340b0003622f3200010074776f6202\
      0001e000"),
    (Version::V5, "200900000622000a2100145002000170020001"),
];

pub(super) fn bytes_of(hex: &str) -> Vec<u8> {
    crate::stream::parse_hex(hex).expect("this is hexadecimal")
}

/// The packets of a stream, unchanged.
pub(super) fn packets(stream: &[u8]) -> Vec<&[u8]> {
    let (mut rest, mut found) = (stream, Vec::new());
    while !rest.is_empty() {
        let (length, bytes) = wire::varint(&rest[1..]).expect("a length").expect("all of it");
        let (packet, behind) = rest.split_at(1 + bytes + length as usize);
        found.push(packet);
        rest = behind;
    }
    found
}

pub(super) fn read(version: Version, packet: &[u8]) -> Result<Packet<'_>, Flaw> {
    let (_, bytes) = wire::varint(&packet[1..])?.ok_or(Flaw::CutOff)?;
    decode(version, packet[0], &packet[1 + bytes..])
}

pub(super) fn written(version: Version, packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.write(version, &mut out);
    out
}

/// All packets of a stream by a reader, however it is cut; the first thing that is wrong with it.
fn read_all(parts: &[&[u8]], version: Version, bytes_max: u32) -> (Vec<Vec<u8>>, Option<Flaw>) {
    let (mut reader, mut whole) = (PacketReader::default(), Vec::new());
    let allowed = reader::Allowed { version, bytes_max, announced: false };
    let mut found = Vec::new();
    for part in parts {
        let mut input = *part;
        loop {
            match reader.next(&mut input, &mut whole, allowed) {
                Ok(Some(raw)) => found.push([&[raw.first], raw.body].concat()),
                Ok(None) => break,
                Err((_, flaw)) => return (found, Some(flaw)),
            }
        }
        assert!(input.is_empty(), "a reader that waits has taken everything");
    }
    (found, None)
}

#[test]
fn packets_of_mosquitto_are_reproduced_byte_by_byte() {
    for (version, hex) in CAPTURED {
        let stream = bytes_of(hex);
        let mut again = Vec::new();
        for packet in packets(&stream) {
            let read = read(version, packet).unwrap_or_else(|flaw| panic!("{flaw:?}: {packet:x?}"));
            read.write(version, &mut again);
        }
        assert_eq!(again, stream);
    }
}

#[test]
fn packets_are_found_however_they_are_split() {
    for (version, hex) in CAPTURED {
        let stream = bytes_of(hex);
        let whole = read_all(&[&stream], version, 1000);
        assert_eq!((whole.0.len(), whole.1), (packets(&stream).len(), None));
        throng_fuzz::splits(&stream, |parts| assert_eq!(read_all(parts, version, 1000), whole));
    }
}

#[test]
fn a_capture_is_decoded_as_expected() {
    let stream = bytes_of(CAPTURED[10].1);
    let all = packets(&stream);
    let Ok(Packet::Connect(connect)) = read(Version::V5, all[0]) else { panic!("no CONNECT") };
    let will = connect.will.expect("a will");
    assert_eq!((connect.client_id, connect.keep_alive_s, connect.clean_start), ("p15", 60, true));
    assert_eq!((connect.user, connect.password), (Some("user"), Some(&b"pass"[..])));
    assert_eq!((will.topic, will.payload, will.retain), ("w/t", &b"gone"[..], true));
    assert_eq!(will.properties.number(PropertyId::WillDelayInterval), Some(5));
    assert_eq!(connect.properties.number(PropertyId::ReceiveMaximum), Some(7));
    let Ok(Packet::Publish(publish)) = read(Version::V5, all[1]) else { panic!("no PUBLISH") };
    assert_eq!((publish.topic, publish.payload, publish.id), ("a/1", &b"one"[..], 1));
    assert_eq!((publish.qos, publish.retain, publish.dup), (Qos::AtLeastOnce, true, false));
    assert_eq!(publish.properties.text(PropertyId::ContentType), Some("text/plain"));
    let pair = publish.properties.get(PropertyId::UserProperty);
    assert_eq!(pair, Some(Value::Pair("k", "v")));
}

/// Properties that are allowed in `place`.
fn draw_properties(random: &mut Random, place: impl Fn(PropertyId) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    for id in PropertyId::all().filter(|id| place(*id)) {
        if random.chance(0.6) {
            continue;
        }
        let number = 1 + random.below(60_000) as u32;
        let value = match id.kind() {
            ValueKind::Flag => Value::Number(number % 2),
            ValueKind::Text => Value::Text("text/ü"),
            ValueKind::Bytes => Value::Bytes(&[0, 1, 255]),
            ValueKind::Pair => Value::Pair("name", ""),
            _ => Value::Number(number),
        };
        write_property(id, value, &mut out);
    }
    out
}

/// Calls `test` with a packet of this type, with drawn contents.
fn draw(
    version: Version,
    packet: PacketType,
    random: &mut Random,
    mut test: impl FnMut(&Packet<'_>),
) {
    let five = version == Version::V5;
    let drawn = match five {
        true => draw_properties(random, |id| id.belongs_to(packet)),
        false => Vec::new(),
    };
    let properties = Properties::new(&drawn, packet).expect("they belong");
    let qos = Qos::new(random.below(3) as u8).expect("a QoS");
    let id = 1 + random.below(65_535) as u16;
    let payload = vec![random.next_u32() as u8; random.below(300) as usize];
    let (retain, failed) = (random.chance(0.5), five && random.chance(0.5));
    let ack = Ack { id, code: if failed { 0x80 } else { 0 }, properties };
    let release = Ack { code: if failed { 0x92 } else { 0 }, ..ack };
    let mut filters = Vec::new();
    match packet {
        PacketType::Connect => draw_connect(version, properties, random, &mut test),
        PacketType::Connack => {
            test(&Packet::Connack(Connack { session_present: retain, code: 0, properties }));
        }
        PacketType::Publish => {
            let (dup, id) = if qos == Qos::AtMostOnce { (false, 0) } else { (failed, id) };
            let (topic, payload) = ("a/b", &payload[..]);
            let publish = Publish { topic, payload, qos, retain, dup, id, properties };
            test(&Packet::Publish(publish));
            assert_eq!(written(version, &Packet::Publish(publish)).len(), publish.bytes(version));
        }
        PacketType::Puback => test(&Packet::Puback(ack)),
        PacketType::Pubrec => test(&Packet::Pubrec(ack)),
        PacketType::Pubrel => test(&Packet::Pubrel(release)),
        PacketType::Pubcomp => test(&Packet::Pubcomp(release)),
        PacketType::Subscribe => {
            let options = SubscribeOptions { no_local: five, ..SubscribeOptions::new(qos) };
            encode::write_filters(version, &[("a/+", options), ("#", options)], &mut filters);
            test(&Packet::Subscribe(Subscribe { id, properties, filters: &filters }));
        }
        PacketType::Unsubscribe => {
            wire::write_bytes(b"a/+", &mut filters);
            test(&Packet::Unsubscribe(Unsubscribe { id, properties, filters: &filters }));
        }
        PacketType::Suback => {
            test(&Packet::Suback(Codes { id, properties, codes: &[0, 2, 0x80] }));
        }
        PacketType::Unsuback => {
            let codes: &[u8] = if five { &[0, 0x11] } else { &[] };
            test(&Packet::Unsuback(Codes { id, properties, codes }));
        }
        PacketType::Pingreq => test(&Packet::Pingreq),
        PacketType::Pingresp => test(&Packet::Pingresp),
        PacketType::Disconnect => {
            let code = if five { 0x04 } else { 0 };
            test(&Packet::Disconnect(Farewell { code, properties }));
        }
        PacketType::Auth if five => test(&Packet::Auth(Farewell { code: 0x18, properties })),
        PacketType::Auth => {}
    }
}

fn draw_connect(
    version: Version,
    properties: Properties<'_>,
    random: &mut Random,
    test: &mut impl FnMut(&Packet<'_>),
) {
    let will_bytes = match version {
        Version::V3 => Vec::new(),
        Version::V5 => draw_properties(random, |id| Properties::of_will(&one(id)).is_ok()),
    };
    let user = random.chance(0.5).then_some("user");
    let will = Will {
        topic: "will/t",
        payload: b"gone",
        qos: Qos::ExactlyOnce,
        retain: random.chance(0.5),
        properties: Properties::of_will(&will_bytes).expect("they belong"),
    };
    test(&Packet::Connect(Connect {
        clean_start: random.chance(0.5),
        keep_alive_s: random.next_u32() as u16,
        client_id: "client-ü",
        will: random.chance(0.5).then_some(will),
        user,
        password: user.map(|_| &b"\0pass"[..]),
        properties,
    }));
}

/// A property with a value of its kind.
fn one(id: PropertyId) -> Vec<u8> {
    let mut out = Vec::new();
    for value in [Value::Number(1), Value::Text("t"), Value::Bytes(b"b"), Value::Pair("a", "b")] {
        write_property(id, value, &mut out);
    }
    out
}

#[test]
fn fuzz_every_packet_is_read_as_it_was_written() {
    for case in throng_fuzz::cases(20) {
        let mut random = case.random();
        for version in [Version::V3, Version::V5] {
            for packet in (1..16).filter_map(|number| PacketType::of(number << 4, version)) {
                draw(version, packet, &mut random, |packet| {
                    let bytes = written(version, packet);
                    case.try_on(&bytes, || assert_eq!(read(version, &bytes), Ok(*packet)));
                    assert_eq!(packets(&bytes).len(), 1);
                });
            }
        }
    }
}

#[test]
fn fuzz_damaged_packets_do_not_depend_on_the_split() {
    let streams: Vec<Vec<u8>> = CAPTURED.iter().map(|(_, hex)| bytes_of(hex)).collect();
    let corpus: Vec<&[u8]> = streams.iter().map(Vec::as_slice).collect();
    throng_fuzz::mutations(&corpus, |input, random| {
        let version = if random.chance(0.5) { Version::V3 } else { Version::V5 };
        let whole = read_all(&[input], version, 500);
        let at = random.below(input.len() as u64 + 1) as usize;
        let (first, second) = input.split_at(at);
        assert_eq!(read_all(&[first, second], version, 500), whole);
        for packet in &whole.0 {
            let Ok(read) = decode(version, packet[0], &packet[1..]) else { continue };
            // A CONNECT contains its own version.
            let version = match read {
                Packet::Connect(_) => version_of_connect(&packet[1..]).expect("it was read"),
                _ => version,
            };
            // What is read is written in its shortest form, which means the same.
            let again = written(version, &read);
            assert_eq!(self::read(version, &again), Ok(read));
            // A filter list must be readable.
            if let Packet::Subscribe(subscribe) = read {
                assert!(subscribe.filters().count() > 0);
            }
            let mut text = String::new();
            let _ = write!(text, "{read:?}");
        }
    });
}

#[test]
fn topics_match_as_in_the_standard() {
    for (filter, name, expected) in [
        ("sport/tennis/player1/#", "sport/tennis/player1", true),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
        ("sport/#", "sport", true),
        ("#", "a/b", true),
        ("sport/tennis/+", "sport/tennis/player1", true),
        ("sport/tennis/+", "sport/tennis/player1/ranking", false),
        ("sport/+", "sport", false),
        ("sport/+", "sport/", true),
        ("+/+", "/finance", true),
        ("/+", "/finance", true),
        ("+", "/finance", false),
        ("#", "$SYS/monitor", false),
        ("+/monitor", "$SYS/monitor", false),
        ("$SYS/#", "$SYS/monitor", true),
        ("a/b", "a/b", true),
        ("a/b", "A/b", false),
        ("a//b", "a//b", true),
        ("a/+/b", "a//b", true),
        ("a", "a/", false),
    ] {
        assert_eq!(topic::matches(filter, name), expected, "{filter} {name}");
    }
}

#[test]
fn names_and_filters_are_checked() {
    use topic::{TopicError as E, check_filter, check_name, shared};
    for (filter, found) in [
        ("#", Ok(())),
        ("a/#", Ok(())),
        ("+/b/+", Ok(())),
        ("$share/g/a/+", Ok(())),
        ("", Err(E::Empty)),
        ("a#", Err(E::HashMisplaced)),
        ("a/#/b", Err(E::HashMisplaced)),
        ("a+/b", Err(E::PlusMisplaced)),
        ("$share/g", Err(E::ShareIncomplete)),
        ("$share//a", Err(E::ShareIncomplete)),
        ("$share/g/", Err(E::ShareIncomplete)),
        ("$share/+/a", Err(E::WildcardInGroup)),
        ("a\0", Err(E::NulCharacter)),
    ] {
        assert_eq!(check_filter(filter), found, "{filter}");
    }
    assert_eq!(shared("$share/g/a/b"), Ok(Some(("g", "a/b"))));
    assert_eq!(check_name("a/+"), Err(E::WildcardInName));
    assert_eq!(check_name(&"x".repeat(65_536)), Err(E::TooLong));
    assert_eq!(check_name("a/ü"), Ok(()));
}

#[test]
fn tables_have_every_row_once() {
    let all: Vec<PropertyId> = PropertyId::all().collect();
    assert!(all.windows(2).all(|pair| (pair[0] as u8) < pair[1] as u8));
    for id in all {
        assert_eq!(PropertyId::named(id.name()), Some(id));
        let bytes = one(id);
        let somewhere = (1..16).any(|place| {
            Properties::read(&mut wire::Fields(&measured(&bytes)), 1 << place).is_ok()
        });
        let in_will = Properties::of_will(&bytes).is_ok();
        assert!(somewhere || in_will, "{}", id.name());
    }
    let reason = |packet, code| Reason::of(Version::V5, packet, code).map(|it| it.name);
    assert_eq!(reason(PacketType::Connack, 0x87), Some("Not authorized"));
    assert_eq!(reason(PacketType::Puback, 0x85), None);
    assert_eq!(reason(PacketType::Suback, 0xa2), Some("Wildcard Subscriptions not supported"));
    let three = Reason::of(Version::V3, PacketType::Connack, 2).expect("a return code");
    assert_eq!(
        (three.name, three.blame, three.is_error()),
        ("Identifier rejected", Blame::Scenario, true)
    );
    let granted = Reason::of(Version::V3, PacketType::Suback, 2).expect("a return code");
    assert!(!granted.is_error());
}

fn measured(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    wire::write_measured(&mut out, |out| out.extend_from_slice(bytes));
    out
}
