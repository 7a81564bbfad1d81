//! Streams of packets: valid ones, broken ones, and resuming after them.

use crate::Ink;
use throng_protocol::framed::declaration::{Comparison, Condition, Message, More, Placed, Role};

use super::*;
use crate::capture::sample::{ACK, CLIENT, FIN, SERVER, SYN, Wrap, pcap, tcp};
use crate::capture::{Passed, read};
use crate::streams::Streams;
use crate::telling::{How, Telling};
use crate::tests::{chat, compiled, field, message};
use throng_scenario::protocol::given::encode;

fn packet(protocol: &Protocol, text: &str, sequence: u64) -> Vec<u8> {
    encode(protocol, text, sequence).expect(text).bytes
}

/// The results for bytes, one word each.
fn found(protocol: &Protocol, bytes: &[u8]) -> (Vec<String>, Tally) {
    let mut out = Vec::new();
    let mut sink = |place: PacketPlace, found: Found<'_>| out.push(word(protocol, place, &found));
    let mut reading = Reading::new(protocol);
    reading.bytes(bytes, &mut sink);
    let tally = reading.end(false, &mut sink);
    (out, tally)
}

fn word(protocol: &Protocol, place: PacketPlace, found: &Found<'_>) -> String {
    let at = place.position;
    match found {
        Found::Packet { packet, exchange, .. } => {
            let mark = match exchange {
                Exchange::Alone => "",
                Exchange::Request => "?",
                Exchange::Reply { is_part: false, .. } => "!",
                Exchange::Reply { is_part: true, .. } => "!…",
                Exchange::Unpaired => "!~",
                Exchange::Orphan => "!?",
            };
            format!("{at}:{}{mark}", protocol.info(packet.message).name)
        }
        Found::Broken { broken, .. } => format!("{at}:broken {}", broken.position),
        Found::Skipped { bytes } => format!("{at}:skipped {bytes}"),
        Found::Gap { bytes } => format!("{at}:gap {bytes}"),
        Found::Left { bytes, is_cut_off } => format!("{at}:left {} {is_cut_off}", bytes.len()),
        Found::Web { reason } => format!("{at}:web {}", reason.english()),
    }
}

const JOIN: &str = "join: {room: 1, user: 2, token: t}";
const JOINED: &str = "joined: {code: 0, online: 1}";

#[test]
fn consecutive_packets_are_found() {
    let protocol = compiled(chat());
    let bytes = [
        packet(&protocol, "ping", 3),
        packet(&protocol, JOIN, 4),
        packet(&protocol, JOINED, 4),
        packet(&protocol, "pong", 3),
        packet(&protocol, "pong", 3),
    ]
    .concat();
    let (words, tally) = found(&protocol, &bytes);
    assert_eq!(words, ["0:ping?", "11:join?", "41:joined!", "58:pong!", "69:pong!?"]);
    assert_eq!((tally.replies, tally.orphans, tally.unanswered, tally.fits()), (2, 1, 0, true));
    // In pieces of any size.
    throng_fuzz::splits(&bytes[..41], |parts| {
        let mut out = Vec::new();
        let mut sink =
            |place: PacketPlace, found: Found<'_>| out.push(word(&protocol, place, &found));
        let mut reading = Reading::new(&protocol);
        parts.iter().for_each(|part| reading.bytes(part, &mut sink));
        reading.end(false, &mut sink);
        assert_eq!(out, ["0:ping?", "11:join?"]);
    });
}

#[test]
fn the_last_packet_of_a_reply_ends_the_request() {
    let mut declaration = chat();
    let row = message("row", 77, &["join"], Vec::new());
    declaration.messages.push(Message { more: Some(More::Always), ..row });
    let protocol = compiled(declaration);
    let row = || packet(&protocol, "row", 4);
    let bytes =
        [row(), packet(&protocol, JOIN, 4), row(), row(), packet(&protocol, JOINED, 4), row()];
    let (words, tally) = found(&protocol, &bytes.concat());
    let kinds: Vec<&str> =
        words.iter().filter_map(|word| word.split_once(':')).map(|it| it.1).collect();
    assert_eq!(kinds, ["row!?", "join?", "row!…", "row!…", "joined!", "row!?"]);
    assert_eq!((tally.replies, tally.orphans, tally.unanswered), (1, 2, 0));
}

#[test]
fn a_message_that_answers_its_own_kind_alternates_as_request_and_reply() {
    let mut declaration = chat();
    declaration.packet.retain(|field| matches!(field.role, Role::Length { .. } | Role::Body));
    let body = declaration.messages[0].body.clone();
    declaration.messages = vec![Message { kind: None, ..message("line", 0, &["line"], body) }];
    let protocol = compiled(declaration);
    let line = packet(&protocol, "line: {room: 1, user: 2, token: t}", 0);
    let (words, tally) = found(&protocol, &[&line[..], &line, &line].concat());
    let kinds: Vec<&str> =
        words.iter().filter_map(|word| word.split_once(':')).map(|it| it.1).collect();
    assert_eq!(kinds, ["line?", "line!", "line?"]);
    assert_eq!((tally.replies, tally.orphans, tally.unanswered, tally.fits()), (1, 0, 1, true));
}

#[test]
fn after_broken_bytes_the_next_magic_starts_a_packet() {
    let protocol = compiled(chat());
    let good = packet(&protocol, "ping", 1);
    let mut long = good.clone();
    long[2..6].copy_from_slice(&[0xff; 4]);
    let (words, tally) = found(&protocol, &[&long[..], b"junk", &good].concat());
    assert_eq!(words, ["0:broken 2", "0:skipped 15", "15:ping?"]);
    assert_eq!((tally.broken, tally.skipped_bytes, tally.fits()), (1, 15, false));
    // An error inside a packet's length only affects this packet.
    let mut strange = good.clone();
    strange[6] = 77;
    let (words, _) = found(&protocol, &[&strange[..], &good].concat());
    assert_eq!(words, ["0:broken 6", "11:ping?"]);
    let (words, tally) = found(&protocol, &good[..7]);
    assert_eq!((words, tally.fits()), (vec!["0:left 7 true".to_string()], false));
    assert!(!found(&protocol, b"nothing of it").1.fits());
}

#[test]
fn without_a_magic_a_packet_may_follow_at_the_next_segment() {
    let mut declaration = chat();
    declaration.packet.remove(0);
    let protocol = compiled(declaration);
    let good = packet(&protocol, "ping", 1);
    let segments: [&[u8]; 4] = [&[0xff; 9], b"??", &good, &good];
    let mut at = 2;
    let mut packets = vec![tcp(CLIENT, SERVER, 1, SYN, b"")];
    for segment in segments {
        packets.push(tcp(CLIENT, SERVER, at, ACK, segment));
        at += segment.len() as u32;
    }
    let (words, _) = captured(&protocol, &packets);
    assert_eq!(words, ["0:broken 0", "0:skipped 11", "11:ping?", "20:ping?"]);
}

/// The results for a capture.
fn captured(protocol: &Protocol, packets: &[Vec<u8>]) -> (Vec<String>, Tally) {
    let mut out = Vec::new();
    let mut sink = |place: PacketPlace, found: Found<'_>| out.push(word(protocol, place, &found));
    let (mut streams, mut reading) = (Streams::new(None), Reading::new(protocol));
    let file = pcap(Wrap::Ethernet, packets);
    let passed = read(&file[..], &mut |frame| {
        streams.frame(&frame, &mut |event| reading.event(event, &mut sink));
    });
    assert!(passed.is_ok());
    streams.end(&mut |event| reading.event(event, &mut sink));
    let tally = reading.end(true, &mut sink);
    (out, tally)
}

#[test]
fn a_capture_is_two_streams() {
    let protocol = compiled(chat());
    let (join, joined) = (packet(&protocol, JOIN, 5), packet(&protocol, JOINED, 5));
    let said = packet(&protocol, "said: {from: 3, text: hello}", 0);
    let down = [&said[..], &joined].concat();
    let packets = [
        tcp(CLIENT, SERVER, 0, SYN, b""),
        tcp(SERVER, CLIENT, 900, SYN | ACK, b""),
        tcp(CLIENT, SERVER, 11, ACK, &join[10..]),
        tcp(CLIENT, SERVER, 1, ACK, &join[..10]),
        tcp(CLIENT, SERVER, 1, ACK, &join[..10]),
        tcp(SERVER, CLIENT, 901, ACK, &down[..20]),
        tcp(SERVER, CLIENT, 921, ACK, &down[20..]),
        tcp(SERVER, CLIENT, 901 + down.len() as u32, ACK, &said[..9]),
        tcp(SERVER, CLIENT, 910 + down.len() as u32, ACK | FIN, b""),
    ];
    let (words, tally) = captured(&protocol, &packets);
    let behind = down.len();
    let left = format!("{behind}:left 9 true");
    assert_eq!(words, ["0:join?", "0:said", "26:joined!", &left]);
    assert_eq!((tally.replies, tally.cut_off, tally.fits()), (1, 1, false));
    // Captured from the middle of a packet on.
    let midway = [tcp(SERVER, CLIENT, 6, ACK, &down[5..])];
    let (words, tally) = captured(&protocol, &midway);
    assert_eq!(words, ["0:skipped 21", "21:joined!?"]);
    assert!(tally.fits(), "{tally:?}");
    // With a gap.
    let holed = [
        tcp(CLIENT, SERVER, 0, SYN, b""),
        tcp(CLIENT, SERVER, 1, ACK, &join[..20]),
        tcp(CLIENT, SERVER, 31, ACK, &join),
    ];
    let (words, _) = captured(&protocol, &holed);
    assert_eq!(words, ["0:left 20 false", "20:gap 10", "30:join?"]);
}

#[test]
fn fuzz_any_bytes_are_read_and_told() {
    let protocol = compiled(chat());
    let good: Vec<Vec<u8>> =
        [JOIN, JOINED, "ping"].iter().map(|text| packet(&protocol, text, 1)).collect();
    let whole = good.concat();
    let segments: Vec<Vec<u8>> =
        good.iter().map(|packet| tcp(CLIENT, SERVER, 1, ACK, packet)).collect();
    let file = pcap(Wrap::Raw, &segments);
    let how = How { json: false, full: false, only: None, summary: false };
    let ink = Ink { colour: false, width: 80 };
    throng_fuzz::mutations(&[&whole, &good[0]], |input, _| {
        for json in [false, true] {
            let mut telling = Telling::new(&protocol, How { json, ..how.clone() }, ink);
            let mut length = 0;
            let mut sink =
                |place: PacketPlace, found: Found<'_>| length += telling.tell(place, &found).len();
            let mut reading = Reading::new(&protocol);
            reading.bytes(input, &mut sink);
            let tally = reading.end(false, &mut sink);
            let told = telling.summary(&tally, Some(&Passed::default()), 0);
            assert!(!told.is_empty() && length <= 4_000 + 400 * input.len());
        }
    });
    throng_fuzz::mutations(&[&file], |input, _| {
        let (mut streams, mut reading) = (Streams::new(None), Reading::new(&protocol));
        let _ = read(input, &mut |frame| {
            streams.frame(&frame, &mut |event| reading.event(event, &mut |_, _| ()));
        });
        streams.end(&mut |event| reading.event(event, &mut |_, _| ()));
        reading.end(true, &mut |_, _| ());
    });
}

/// A simplified MQTT: a publication with a packet ID is answered with the same ID.
fn mqtt(id_of_answer: &str) -> Protocol {
    let number = |id: &str, bits| field(id, Type::Unsigned(bits), Role::Value);
    let mut id = number("packet_id", 16);
    id.condition = Some(Condition {
        field: Placed { value: "qos".to_string(), place: Default::default() },
        comparison: Comparison::NotEqual,
        value: 0,
    });
    let mut declaration = chat();
    declaration.packet.retain(|field| field.role != Role::Correlates);
    declaration.messages = vec![
        message("publish", 3, &[], vec![number("qos", 8), id]),
        message("puback", 4, &["publish"], vec![number(id_of_answer, 16)]),
    ];
    compiled(declaration)
}

/// The results for packets that alternate in direction, one millisecond apart.
fn talked(protocol: &Protocol, said: &[(Direction, &str)]) -> (Vec<String>, Tally) {
    let address = "127.0.0.1:1".parse().unwrap();
    let ends = Ends { number: 1, client: address, server: address };
    let mut out = Vec::new();
    let mut sink = |_: PacketPlace, found: Found<'_>| {
        let Found::Packet { exchange, .. } = found else { panic!("{found:?}") };
        out.push(match exchange {
            Exchange::Reply { took_ns: Some(ns), .. } => format!("{} ms", ns / 1_000_000),
            Exchange::Reply { took_ns: None, .. } => "one of them".to_string(),
            other => format!("{other:?}"),
        });
    };
    let mut reading = Reading::new(protocol);
    for (at, (direction, text)) in (1..).zip(said) {
        let bytes = packet(protocol, text, 0);
        let (time_ns, what) = (at * 1_000_000, What::Bytes(&bytes));
        let event = Event { ends, direction: *direction, time_ns, is_midway: false, what };
        reading.event(event, &mut sink);
    }
    let tally = reading.end(true, &mut sink);
    (out, tally)
}

#[test]
fn replies_match_the_request_whose_value_they_repeat() {
    use Direction::{Down, Up};
    let said = [
        (Up, "publish: {qos: 0}"),
        (Up, "publish: {qos: 1, packet_id: 7}"),
        (Up, "publish: {qos: 1, packet_id: 8}"),
        (Down, "puback: {ID: 8}"),
        (Down, "puback: {ID: 7}"),
        (Down, "puback: {ID: 9}"),
    ];
    let talked = |id: &str| {
        let said = said.map(|(direction, text)| (direction, text.replace("ID", id)));
        let said: Vec<_> = said.iter().map(|(way, text)| (*way, text.as_str())).collect();
        talked(&mqtt(id), &said)
    };
    let (words, tally) = talked("packet_id");
    // The last one repeats a value that no request has.
    assert_eq!(words[3..], ["1 ms", "3 ms", "one of them"]);
    assert_eq!((tally.replies, tally.orphans, tally.unanswered), (3, 0, 0));
    // If no values differ, the answered request is not named.
    let (words, _) = talked("other");
    assert_eq!(words[3..], ["one of them"; 3]);
    let (words, _) =
        self::talked(&mqtt("other"), &[(Up, "publish: {qos: 0}"), (Down, "puback: {other: 9}")]);
    assert_eq!(words[1], "1 ms");
}
