//! The packets of the push protocol: a two-byte length of the rest, a kind, a sequence number and
//! the body. Numbers are big-endian. Independent of protocol declarations.

use serde::de::IgnoredAny;

use super::counts::Breach;
use crate::mail::Stamped;

/// Maximum value of a packet's length.
pub(crate) const LENGTH_MAX: usize = 16 * 1024;
/// The length, the kind and the sequence number.
const HEAD_BYTES: usize = 7;
/// The part of the head that is included in the length.
const COUNTED_HEAD_BYTES: usize = 5;
/// Maximum bytes of JSON in a push, after its ID and its timestamp.
pub(crate) const PUSH_DATA_BYTES_MAX: usize = LENGTH_MAX - COUNTED_HEAD_BYTES - 16;

/// Position of the kind in a packet.
pub(crate) const KIND_AT: usize = 2;

const BIND: u8 = 1;
const BOUND: u8 = 2;
const HEARTBEAT: u8 = 3;
const ALIVE: u8 = 4;
const PUSH: u8 = 5;
const RECEIVED: u8 = 6;
const REPORT: u8 = 7;
const NOTED: u8 = 8;

/// A message from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    Bind { device: &'a str, key: &'a str },
    Heartbeat,
    Received { id: u64 },
    Report,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) seq: u32,
    pub(crate) message: Message<'a>,
}

/// The first packet of `input` and its length; `None` if it is incomplete. Invalid packets are
/// rejected as early as possible.
pub(crate) fn read(input: &[u8]) -> Result<Option<(Packet<'_>, usize)>, Breach> {
    let Some((length, rest)) = input.split_first_chunk::<2>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*length));
    if length > LENGTH_MAX {
        return Err(Breach::TooLong);
    }
    if length < COUNTED_HEAD_BYTES {
        return Err(Breach::TooShort);
    }
    if rest.first().is_some_and(|kind| !matches!(*kind, BIND | HEARTBEAT | RECEIVED | REPORT)) {
        return Err(Breach::UnknownKind);
    }
    let Some(packet) = rest.get(..length) else { return Ok(None) };
    let (head, body) = packet.split_at(COUNTED_HEAD_BYTES);
    let seq = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let message = match head[0] {
        BIND => bind(body)?,
        HEARTBEAT if body.is_empty() => Message::Heartbeat,
        RECEIVED => Message::Received { id: u64::from_be_bytes(number(body)?) },
        REPORT => {
            let json: Result<IgnoredAny, _> = serde_json::from_slice(body);
            json.map(|_| Message::Report).map_err(|_| Breach::NotJson)?
        }
        _ => return Err(Breach::Malformed),
    };
    Ok(Some((Packet { seq, message }, 2 + length)))
}

fn bind(body: &[u8]) -> Result<Message<'_>, Breach> {
    let (device, rest) = text(body)?;
    let (key, rest) = text(rest)?;
    if device.is_empty() || !rest.is_empty() {
        return Err(Breach::Malformed);
    }
    Ok(Message::Bind { device, key })
}

/// A text after its one-byte length, and the rest.
fn text(bytes: &[u8]) -> Result<(&str, &[u8]), Breach> {
    let (length, rest) = bytes.split_first().ok_or(Breach::Malformed)?;
    let (text, rest) = rest.split_at_checked(usize::from(*length)).ok_or(Breach::Malformed)?;
    Ok((std::str::from_utf8(text).map_err(|_| Breach::Malformed)?, rest))
}

fn number<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Breach> {
    bytes.try_into().map_err(|_| Breach::Malformed)
}

/// A reply; its body is always a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushAnswer {
    Bound(u8),
    Alive,
    Noted,
}

pub(crate) fn write_answer(out: &mut Vec<u8>, seq: u32, answer: PushAnswer) {
    let (kind, body): (u8, &[u8]) = match &answer {
        PushAnswer::Bound(code) => (BOUND, std::slice::from_ref(code)),
        PushAnswer::Alive => (ALIVE, &[]),
        PushAnswer::Noted => (NOTED, &[]),
    };
    write_packet(out, kind, seq, body);
}

/// The sequence number of a push, which its acknowledgement contains. It is separate from those of
/// devices' requests, which never become that large.
pub(crate) fn seq_of_push(id: u64) -> u32 {
    1 << 31 | id as u32 & (u32::MAX >> 1)
}

/// Position of the timestamp in a push: after the head and the ID.
const SENT_NS_AT: usize = HEAD_BYTES + 8;

/// A push, encoded once for all receivers; only its timestamp differs. `None` if the data does not
/// fit into a packet.
pub(crate) fn push_frame(id: u64, data: &[u8]) -> Option<Stamped> {
    if data.len() > PUSH_DATA_BYTES_MAX {
        return None;
    }
    let mut body = Vec::with_capacity(16 + data.len());
    body.extend_from_slice(&id.to_be_bytes());
    body.extend_from_slice(&[0; 8]);
    body.extend_from_slice(data);
    let mut out = Vec::with_capacity(HEAD_BYTES + body.len());
    write_packet(&mut out, PUSH, seq_of_push(id), &body);
    Some(Stamped::new(out, SENT_NS_AT))
}

fn write_packet(out: &mut Vec<u8>, kind: u8, seq: u32, body: &[u8]) {
    let length = COUNTED_HEAD_BYTES + body.len();
    debug_assert!(length <= LENGTH_MAX, "what is written fits into a packet");
    out.extend_from_slice(&(length as u16).to_be_bytes());
    out.push(kind);
    out.extend_from_slice(&seq.to_be_bytes());
    out.extend_from_slice(body);
}

/// Encodes packets of devices, for tests.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn bind(seq: u32, device: &str, key: &str) -> Vec<u8> {
        let mut body = vec![device.len() as u8];
        body.extend_from_slice(device.as_bytes());
        body.push(key.len() as u8);
        body.extend_from_slice(key.as_bytes());
        packet(BIND, seq, &body)
    }

    pub(crate) fn heartbeat(seq: u32) -> Vec<u8> {
        packet(HEARTBEAT, seq, &[])
    }

    pub(crate) fn received(id: u64) -> Vec<u8> {
        packet(RECEIVED, seq_of_push(id), &id.to_be_bytes())
    }

    pub(crate) fn report(seq: u32, json: &str) -> Vec<u8> {
        packet(REPORT, seq, json.as_bytes())
    }

    pub(crate) fn packet(kind: u8, seq: u32, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_packet(&mut out, kind, seq, body);
        out
    }

    #[test]
    fn packets_are_read_as_declared() {
        let bytes = b"\x00\x0c\x01\x00\x00\x01\x02\x03d17\x02pk";
        let binds = Message::Bind { device: "d17", key: "pk" };
        assert_eq!(read(bytes), Ok(Some((Packet { seq: 258, message: binds }, 14))));
        assert_eq!(bind(258, "d17", "pk"), bytes);
        let check = |bytes: &[u8], message| {
            assert_eq!(read(bytes).unwrap().unwrap().0, Packet { seq: 7, message });
        };
        check(&heartbeat(7), Message::Heartbeat);
        check(&report(7, "{\"battery\": 5}"), Message::Report);
        check(&packet(RECEIVED, 7, &[0, 0, 0, 0, 0, 0, 1, 0]), Message::Received { id: 256 });
    }

    #[test]
    fn replies_and_pushes_are_written_as_declared() {
        let written = |answer| {
            let mut out = Vec::new();
            write_answer(&mut out, 0x0102_0304, answer);
            out
        };
        assert_eq!(written(PushAnswer::Bound(2)), b"\x00\x06\x02\x01\x02\x03\x04\x02");
        assert_eq!(written(PushAnswer::Alive), b"\x00\x05\x04\x01\x02\x03\x04");
        assert_eq!(written(PushAnswer::Noted), b"\x00\x05\x08\x01\x02\x03\x04");
        let mut out = vec![9; 100];
        push_frame(17, b"{}").unwrap().stamp(0x0506, &mut out);
        assert_eq!(
            out, b"\x00\x17\x05\x80\0\0\x11\0\0\0\0\0\0\0\x11\0\0\0\0\0\0\x05\x06{}",
            "{out:x?}"
        );
        assert!(push_frame(1, &vec![b' '; PUSH_DATA_BYTES_MAX]).is_some());
        assert_eq!(push_frame(1, &vec![b' '; PUSH_DATA_BYTES_MAX + 1]), None);
    }

    #[test]
    fn violations_are_rejected_as_early_as_possible() {
        for (bytes, breach) in [
            (&b"\x40\x01"[..], Breach::TooLong),
            (b"\x00\x04", Breach::TooShort),
            (b"\x00\x05\x02", Breach::UnknownKind),
            (b"\x00\x05\x00", Breach::UnknownKind),
            (&packet(HEARTBEAT, 1, b"x"), Breach::Malformed),
            (&packet(RECEIVED, 1, b"1234567"), Breach::Malformed),
            (&packet(BIND, 1, b"\x05abc"), Breach::Malformed),
            (&packet(BIND, 1, b"\x01d\x01kx"), Breach::Malformed),
            (&packet(BIND, 1, b"\x01\xff\x01k"), Breach::Malformed),
            (&packet(BIND, 1, b"\x00\x01k"), Breach::Malformed),
            (&packet(REPORT, 1, b"{"), Breach::NotJson),
            (&packet(REPORT, 1, b""), Breach::NotJson),
        ] {
            assert_eq!(read(bytes), Err(breach), "{bytes:?}");
        }
        assert_eq!(read(b"\x40\x00\x01"), Ok(None));
    }

    #[test]
    fn packets_can_be_split_at_every_byte() {
        let stream = [bind(1, "d17", "pk"), heartbeat(2), received(3), report(4, "[1]")].concat();
        throng_fuzz::splits(&stream, |parts| {
            let (mut kept, mut seqs) = (Vec::new(), Vec::new());
            for part in parts {
                kept.extend_from_slice(part);
                while let Some((packet, used)) = read(&kept).unwrap() {
                    seqs.push(packet.seq);
                    kept.drain(..used);
                }
            }
            assert_eq!((seqs, kept.len()), (vec![1, 2, seq_of_push(3), 4], 0));
        });
    }

    #[test]
    fn fuzz_packets() {
        let stream = [bind(1, "d17", "pk"), heartbeat(2), received(3), report(4, "[1]")].concat();
        throng_fuzz::mutations(&[&stream, &bind(1, "d17", "pk")], |input, _| {
            let mut at = 0;
            while let Ok(Some((_, used))) = read(&input[at..]) {
                assert!(used >= HEAD_BYTES && used <= input.len() - at);
                at += used;
            }
        });
    }
}
