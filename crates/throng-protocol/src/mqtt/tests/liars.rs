//! Servers that violate the standard: each connection ends, with the section of the standard.

use super::super::*;
use super::session::{Bench, PLAIN, ack, number};
use super::{read, written};

/// The reaction of an open session to these bytes: the breach, and the section.
#[track_caller]
fn check(version: Version, bytes: &[u8], breach: Breach, section: &str) {
    let mut bench = Bench::open(version, &PLAIN, b"");
    let violation = bench.hear_bytes(bytes).expect_err("it is not allowed");
    assert_eq!((violation.breach, violation.section()), (breach, section), "{bytes:x?}");
    assert!(!violation.is_our_limit() && !violation.said().english().is_empty());
    assert!(!bench.session.is_open());
    // An MQTT 5 server is told, once, and nothing more is read.
    match version {
        Version::V3 => assert_eq!(bench.out, b""),
        Version::V5 => {
            let code = violation.reason_code();
            let told = read(version, &bench.out).expect("a DISCONNECT");
            assert_eq!(told, Packet::Disconnect(Farewell { code, ..Farewell::default() }));
        }
    }
    assert_eq!(bench.hear_bytes(bytes), Ok(vec![]));
}

#[test]
fn malformed_packets_end_the_connection() {
    use Flaw as F;
    for (bytes, flaw, three, five) in [
        (&b"\x00\x00"[..], F::UnknownType(0), "2.2.1", "2.1.2"),
        (b"\xd1\x00", F::Flags(1), "2.2.2", "2.1.3"),
        (b"\x30\xff\xff\xff\xff\x7f", F::LengthTooLong, "2.2.3", "1.5.5"),
        (b"\x36\x05\x00\x01t\x00\x01", F::QosThree, "3.3.1.2", "3.3.1.2"),
        (b"\x38\x03\x00\x01t", F::DupAtQosZero, "3.3.1.1", "3.3.1.1"),
        (b"\x30\x02\x00\x01", F::CutOff, "3.3", "3.3"),
        (b"\x30\x05\x00\x03t/#", F::WildcardInTopic, "3.3.2.1", "3.3.2.1"),
        (b"\x30\x03\x00\x01\xff", F::NotUtf8, "1.5.3", "1.5.4"),
        (b"\x30\x03\x00\x01\x00", F::NulCharacter, "1.5.3", "1.5.4"),
        (b"\x32\x05\x00\x01t\x00\x00", F::PacketIdZero, "2.3.1", "2.2.1"),
        (b"\x40\x01\x00", F::CutOff, "3.4", "3.4"),
        (b"\xd0\x01x", F::LeftOver(1), "3.13", "3.13"),
    ] {
        check(Version::V3, bytes, Breach::Malformed(flaw), three);
        check(Version::V5, bytes, Breach::Malformed(flaw), five);
    }
    check(Version::V3, b"\xf0\x00", Breach::Malformed(F::UnknownType(15)), "2.2.1");
    check(Version::V3, b"\x40\x03\x00\x01\x00", Breach::Malformed(F::LeftOver(1)), "3.4");
    check(Version::V3, b"\x30\x02\x00\x00", Breach::Malformed(F::TopicMissing), "4.7.3");
}

#[test]
fn malformed_packets_of_mqtt_5_end_the_connection() {
    use Flaw as F;
    use PropertyId as P;
    for (bytes, flaw, section) in [
        (&b"\xd0\x80\x00"[..], F::LengthNotShortest, "1.5.5"),
        (b"\x30\x04\x00\x00\x00x", F::TopicMissing, "3.3.2.1"),
        (b"\x30\x06\x00\x01t\x02\x7f\x00", F::PropertyUnknown(0x7f), "2.2.2.2"),
        (b"\x30\x07\x00\x01t\x03\x21\x00\x01", F::PropertyMisplaced(P::ReceiveMaximum), "2.2.2.2"),
        (
            b"\x30\x08\x00\x01t\x04\x01\x00\x01\x00",
            F::PropertyTwice(P::PayloadFormatIndicator),
            "2.2.2.2",
        ),
        (b"\x30\x06\x00\x01t\x02\x01\x02", F::PropertyValue(P::PayloadFormatIndicator), "2.2.2.2"),
        (b"\x30\x07\x00\x01t\x03\x23\x00\x00", F::PropertyValue(P::TopicAlias), "2.2.2.2"),
        (b"\x30\x05\x00\x01t\x02\x01", F::CutOff, "3.3"),
        (b"\x40\x03\x00\x01\x01", F::ReasonCode(1), "2.4"),
    ] {
        check(Version::V5, bytes, Breach::Malformed(flaw), section);
    }
    // The identifiers in a message may repeat, once per matching subscription.
    let mut bench = Bench::open(Version::V5, &PLAIN, b"");
    let told = bench.hear_bytes(b"\x30\x09\x00\x01t\x04\x0b\x01\x0b\x02x");
    assert_eq!(told, Ok(vec!["t=x".into()]));
}

#[test]
fn packets_out_of_order_end_the_connection() {
    let five = |packet: Packet<'_>| written(Version::V5, &packet);
    let subscribe = b"\x82\x07\x00\x01\x00\x00\x01t\x00";
    let codes = |id, codes| Codes { id, codes, ..Codes::default() };
    for (bytes, breach, section) in [
        (five(Packet::Connack(Connack::default())), Breach::SecondConnack, "3.2"),
        (five(Packet::Pingreq), Breach::FromServer, "2.1.2"),
        (subscribe.to_vec(), Breach::FromServer, "2.1.2"),
        (five(Packet::Puback(ack(7))), Breach::UnknownId(7), "4.3.2"),
        (five(Packet::Pubrec(ack(7))), Breach::UnknownId(7), "4.3.3"),
        (five(Packet::Pubcomp(ack(7))), Breach::UnknownId(7), "4.3.3"),
        (five(Packet::Suback(codes(7, &[0]))), Breach::UnknownId(7), "3.8.4"),
        (five(Packet::Unsuback(codes(7, &[0]))), Breach::UnknownId(7), "3.10.4"),
        (five(Packet::Pingresp), Breach::PongWithoutPing, "3.13"),
        (five(Packet::Auth(Farewell::default())), Breach::AuthWithoutMethod, "4.12"),
    ] {
        check(Version::V5, &bytes, breach, section);
    }
    let alias = Breach::AliasTooHigh { alias: 1, alias_max: 0 };
    check(Version::V5, b"\x30\x07\x00\x01t\x03\x23\x00\x01", alias, "3.3.2.3.4");
}

#[test]
fn replies_must_match_their_requests() {
    let asked = |code: &[u8]| {
        let mut bench = Bench::open(Version::V5, &PLAIN, b"");
        let filters = [("a", SubscribeOptions::new(Qos::AtLeastOnce))];
        let Bench { session, out, now } = &mut bench;
        let id = session.subscribe(&filters, Properties::NONE, *now, out).expect("it may");
        out.clear();
        let suback = Packet::Suback(Codes { id, codes: code, ..Codes::default() });
        bench.hear(&suback).map_err(|violation| violation.breach)
    };
    assert_eq!(asked(&[2]), Err(Breach::QosNotAsked { granted: 2, asked: 1 }));
    assert_eq!(asked(&[1, 1]), Err(Breach::CodeCount { codes: 2, filters: 1 }));
    // A lower QoS, and a refusal, are allowed and counted.
    assert_eq!(asked(&[0]), Ok(vec!["Subscribed [0] 1".into()]));
    assert_eq!(asked(&[0x87]), Ok(vec!["Subscribed [135] 0".into()]));
    let mut bench = Bench::open(Version::V5, &PLAIN, b"");
    let message = Publish { topic: "t", qos: Qos::AtLeastOnce, ..Publish::default() };
    bench.session.publish(&message, bench.now, &mut bench.out).expect("it may");
    let wrong = bench.hear(&Packet::Pubrec(ack(1))).expect_err("it waits for PUBACK");
    assert_eq!((wrong.breach, wrong.section()), (Breach::WrongReply(1), "4.3.3"));
}

#[test]
fn a_connection_starts_with_connack() {
    let begun = |packet: &Packet<'_>, clean_start| {
        let mut bench = Bench::new(Version::V5, Wishes::default());
        let connect = Connect { clean_start, ..PLAIN };
        bench.session.connect(&connect, bench.now, &mut bench.out);
        bench.hear(packet).map_err(|violation| (violation.breach, violation.section()))
    };
    let message = Packet::Publish(Publish { topic: "t", ..Publish::default() });
    assert_eq!(begun(&message, true), Err((Breach::BeforeConnack, "3.2")));
    let farewell = Packet::Disconnect(Farewell::default());
    assert_eq!(begun(&farewell, true), Err((Breach::BeforeConnack, "3.2")));
    let present = Connack { session_present: true, ..Connack::default() };
    assert_eq!(begun(&Packet::Connack(present), true), Err((Breach::SessionPresent, "3.2.2.1.1")));
    assert!(begun(&Packet::Connack(present), false).is_ok());
    let refused = Packet::Connack(Connack { code: 0x87, ..present });
    assert_eq!(begun(&refused, false), Err((Breach::SessionPresent, "3.2.2.1.1")));
}

#[test]
fn exceeding_an_announced_limit_ends_the_connection() {
    let mut announced = number(PropertyId::ReceiveMaximum, 2);
    announced.extend(number(PropertyId::MaximumPacketSize, 100));
    let properties = Properties::new(&announced, PacketType::Connect).expect("they belong");
    let connect = Connect { properties, ..PLAIN };
    let mut bench = Bench::open(Version::V5, &connect, b"");
    let message = |id| {
        let qos = Qos::ExactlyOnce;
        Packet::Publish(Publish { topic: "t", qos, id, ..Publish::default() })
    };
    bench.hear(&message(1)).expect("the first");
    bench.hear(&message(2)).expect("the second");
    let third = bench.hear(&message(3)).expect_err("the third");
    assert_eq!((third.breach, third.section()), (Breach::ReceiveMaximum(2), "3.3.4"));
    // 256 MB are refused by their length, before any of them is kept.
    let large = b"\x30\xff\xff\xff\x7f\x00\x01t";
    let mut bench = Bench::open(Version::V5, &connect, b"");
    let told = bench.hear_bytes(large).expect_err("too large");
    let too_large = |bytes_max, announced| {
        Breach::Malformed(Flaw::TooLarge { bytes: 268_435_460, bytes_max, announced })
    };
    assert_eq!((told.breach, told.section()), (too_large(100, true), "3.1.2.11.4"));
    assert!(!told.is_our_limit() && bench.session.heap_bytes() == 0);
    let mut bench = Bench::open(Version::V3, &PLAIN, b"");
    let told = bench.hear_bytes(large).expect_err("too large");
    assert!(told.is_our_limit() && told.breach == too_large(1_000, false));
}

#[test]
fn a_server_that_only_supports_3_1_1_is_recognized() {
    let mut bench = Bench::new(Version::V5, Wishes::default());
    bench.session.connect(&Connect::default(), bench.now, &mut bench.out);
    let events = bench.hear_bytes(&[0x20, 0x02, 0x00, 0x01]).expect("it may refuse so");
    assert!(events[0].contains("Unsupported Protocol Version"), "{events:?}");
}
