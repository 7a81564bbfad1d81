//! Packets in the messages of a WebSocket.

use throng_base::Time;

use super::super::*;
use super::written;
use crate::websocket::{self, FrameReader, Inflater, Opcode, Role, write_frame};

/// A client that sends CONNECT over a WebSocket.
fn carried() -> (Client, Vec<u8>) {
    let mut client = Client::new(Version::V5, Wishes::default());
    client.is_carried(FrameReader::new(Role::Client, None));
    let mut out = Vec::new();
    let connect = Connect { client_id: "c", clean_start: true, ..Connect::default() };
    client.say([1; 4], &mut out, |session, out| session.connect(&connect, Time(1), out));
    (client, out)
}

/// The client's events for bytes with this split, and its output.
fn heard(client: &mut Client, parts: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
    let (mut room, mut own, mut out, mut found) = (Vec::new(), Room::default(), Vec::new(), vec![]);
    let (limits, mut inflater) = (websocket::Limits::default(), Inflater::new());
    for part in parts {
        let mut rest = *part;
        let reading = Reading { now: Time(7), limits: &limits };
        loop {
            let lent = (&mut own, &mut room);
            match client.next(&mut rest, reading, &mut inflater, lent, &mut out) {
                Ok(Some(Came::Message)) => {
                    let message = Message::of(&room);
                    let payload = String::from_utf8_lossy(message.payload).into_owned();
                    found.push(format!("{} {:?} {payload}", message.topic, message.qos()));
                }
                Ok(Some(Came::Answered { packet, .. })) => found.push(format!("{packet:?}")),
                Ok(Some(other)) => found.push(format!("{other:?}")),
                Ok(None) => break,
                Err(error) => {
                    found.push(error.said().english());
                    return (found, out);
                }
            }
        }
    }
    (found, out)
}

/// The packets that frames of a client carry.
fn packets_of(frames: &[u8]) -> Vec<u8> {
    let (mut reader, mut rest, mut room) = (FrameReader::new(Role::Server, None), frames, vec![]);
    let (limits, mut inflater, mut all) = (Default::default(), Inflater::new(), Vec::new());
    while let Ok(Some(message)) = reader.next(&mut rest, &limits, &mut inflater, &mut room) {
        match message {
            websocket::Message::Binary(bytes) => all.extend_from_slice(bytes),
            other => panic!("{other:?}"),
        }
    }
    all
}

/// Packets of a server, and messages that cut them anywhere.
#[test]
fn packets_are_found_however_messages_and_reads_split_them() {
    let publish = |id, payload| Publish {
        topic: "a/b",
        payload,
        qos: Qos::AtLeastOnce,
        id,
        ..Publish::default()
    };
    let mut stream = written(Version::V5, &Packet::Connack(Connack::default()));
    for (id, payload) in [(1, &b"one"[..]), (2, b""), (3, &[b'x'; 300])] {
        stream.extend(written(Version::V5, &Packet::Publish(publish(id, payload))));
    }
    let long = "x".repeat(300);
    let want =
        ["Connack", "a/b AtLeastOnce one", "a/b AtLeastOnce ", &format!("a/b AtLeastOnce {long}")];
    for cut in 0..stream.len() {
        let (mut client, hello) = carried();
        let connect = packets_of(&hello);
        assert!(matches!(super::read(Version::V5, &connect), Ok(Packet::Connect(_))));
        let (first, second) = stream.split_at(cut);
        let mut frames = Vec::new();
        write_frame(&mut frames, Opcode::Binary, true, false, None, first);
        write_frame(&mut frames, Opcode::Ping, true, false, None, b"");
        write_frame(&mut frames, Opcode::Binary, true, false, None, second);
        let (one, two) = frames.split_at(cut * frames.len() / stream.len());
        let (mut found, out) = heard(&mut client, &[one, two]);
        found.retain(|one| !one.starts_with("Ping"));
        assert_eq!(found, want, "cut at {cut}");
        let acknowledged = packets_of(&out);
        let acks: Vec<_> = super::packets(&acknowledged);
        assert_eq!(acks.len(), 3);
        assert_eq!(client.session().heap_bytes(), client.heap_bytes(), "nothing is kept");
    }
}

#[test]
fn text_messages_are_refused_and_closes_are_reported() {
    let (mut client, _) = carried();
    let mut frames = Vec::new();
    write_frame(&mut frames, Opcode::Text, true, false, None, b"hello");
    let (found, _) = heard(&mut client, &[&frames]);
    assert!(found[0].contains("section 6.0"), "{found:?}");
    let (mut client, _) = carried();
    let (found, _) = heard(&mut client, &[&[0x88, 0x02, 0x03, 0xe9]]);
    assert_eq!(found, ["Closed { code: Some(1001) }"]);
}
