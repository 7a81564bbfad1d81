//! The packets of the chat room: a head of eleven bytes and a body, all big-endian. Independent of
//! protocol declarations.

/// `magic` u16, `length` of the body u32, `kind` u8, `seq` u32.
pub(crate) const HEAD_BYTES: usize = 11;
/// Position of the kind in the head.
pub(crate) const KIND_AT: usize = 6;
pub(crate) const MAGIC: u16 = 0xC4A7;
/// Maximum length of a body.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of a text, so that the packet `said` does not exceed its limit.
pub(crate) const TEXT_BYTES_MAX: usize = BODY_BYTES_MAX - SAID_BYTES;
/// Length of the fields before the text in the body of `said`.
const SAID_BYTES: usize = 8 + 8 + 8 + 2;

const JOIN: u8 = 1;
const JOINED: u8 = 2;
const LIKE: u8 = 3;
const GIFT: u8 = 4;
const DONE: u8 = 5;
const LIGHT: u8 = 6;
const SAY: u8 = 7;
const SAID: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const LEAVE: u8 = 11;

/// A message from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    Join { room: u64, user: u64, token: &'a str },
    Like { count: u64 },
    Gift { gift: u16, price: u32 },
    Light { colour: u8 },
    Say { id: u64, sent_ns: u64, text: &'a str },
    Ping,
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) seq: u32,
    pub(crate) message: Message<'a>,
}

/// Why bytes are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    Magic,
    Length,
    Kind,
    Body,
}

/// The first packet in `input` and its length; `None` while it is incomplete. Violations in the
/// head are detected at the first wrong byte.
pub(crate) fn read(input: &[u8]) -> Result<Option<(Packet<'_>, usize)>, Breach> {
    let magic = MAGIC.to_be_bytes();
    let common = input.len().min(magic.len());
    if input[..common] != magic[..common] {
        return Err(Breach::Magic);
    }
    let Some(length) = input.get(2..6).and_then(|bytes| bytes.try_into().ok()) else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(length) as usize;
    if length > BODY_BYTES_MAX {
        return Err(Breach::Length);
    }
    let Some(kind) = input.get(KIND_AT) else { return Ok(None) };
    if !matches!(*kind, JOIN | LIKE | GIFT | LIGHT | SAY | PING | LEAVE) {
        return Err(Breach::Kind);
    }
    let Some(seq) = input.get(7..HEAD_BYTES).and_then(|bytes| bytes.try_into().ok()) else {
        return Ok(None);
    };
    let end = HEAD_BYTES + length;
    let Some(body) = input.get(HEAD_BYTES..end) else { return Ok(None) };
    let message = message(*kind, &mut Body(body)).ok_or(Breach::Body)?;
    Ok(Some((Packet { seq: u32::from_be_bytes(seq), message }, end)))
}

/// The message of this kind; `None` if the body is not exactly one.
fn message<'a>(kind: u8, body: &mut Body<'a>) -> Option<Message<'a>> {
    let message = match kind {
        JOIN => Message::Join { room: body.u64()?, user: body.u64()?, token: body.text()? },
        LIKE => Message::Like { count: body.varint()? },
        GIFT => Message::Gift { gift: body.u16()?, price: u32::from_be_bytes(body.take()?) },
        LIGHT => Message::Light { colour: u8::from_be_bytes(body.take()?) },
        SAY => Message::Say { id: body.u64()?, sent_ns: body.u64()?, text: body.text()? },
        PING => Message::Ping,
        LEAVE => Message::Leave,
        _ => return None,
    };
    body.0.is_empty().then_some(message)
}

/// The rest of a body.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    /// Seven bits per byte, least significant first; at most 64 bits.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take()?;
            let bits = u64::from(byte & 0x7F);
            // The tenth byte may contain only one bit.
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A two-byte length, followed by UTF-8.
    fn text(&mut self) -> Option<&'a str> {
        let length = usize::from(self.u16()?);
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}

fn head(out: &mut Vec<u8>, kind: u8, seq: u32, length: usize) {
    out.reserve(HEAD_BYTES + length);
    out.extend_from_slice(&MAGIC.to_be_bytes());
    out.extend_from_slice(&(length as u32).to_be_bytes());
    out.push(kind);
    out.extend_from_slice(&seq.to_be_bytes());
}

pub(crate) fn write_joined(out: &mut Vec<u8>, seq: u32, code: u16, online: u64) {
    head(out, JOINED, seq, 6);
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(&u32::try_from(online).unwrap_or(u32::MAX).to_be_bytes());
}

pub(crate) fn write_done(out: &mut Vec<u8>, seq: u32, code: u16) {
    head(out, DONE, seq, 2);
    out.extend_from_slice(&code.to_be_bytes());
}

pub(crate) fn write_pong(out: &mut Vec<u8>, seq: u32) {
    head(out, PONG, seq, 0);
}

/// An unsolicited message to all users in a room, so its seq is zero. The text is at most
/// [`TEXT_BYTES_MAX`] long.
pub(crate) fn said(from: u64, id: u64, sent_ns: u64, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    head(&mut out, SAID, 0, SAID_BYTES + text.len());
    for number in [from, id, sent_ns] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn packet(kind: u8, seq: u32, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        head(&mut out, kind, seq, body.len());
        out.extend_from_slice(body);
        out
    }

    fn text(text: &str) -> Vec<u8> {
        [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
    }

    pub(crate) fn join(seq: u32, room: u64, user: u64, token: &str) -> Vec<u8> {
        let body = [&room.to_be_bytes()[..], &user.to_be_bytes(), &text(token)].concat();
        packet(JOIN, seq, &body)
    }

    pub(crate) fn speak(seq: u32, id: u64, said: &str) -> Vec<u8> {
        let body = [&id.to_be_bytes()[..], &77u64.to_be_bytes(), &text(said)].concat();
        packet(SAY, seq, &body)
    }

    pub(crate) fn like(seq: u32, count: u8) -> Vec<u8> {
        packet(LIKE, seq, &[count])
    }

    pub(crate) fn gift(seq: u32) -> Vec<u8> {
        packet(GIFT, seq, &[0, 7, 0, 0, 0, 100])
    }

    pub(crate) fn light(seq: u32) -> Vec<u8> {
        packet(LIGHT, seq, &[3])
    }

    pub(crate) fn ping(seq: u32) -> Vec<u8> {
        packet(PING, seq, &[])
    }

    pub(crate) fn leave() -> Vec<u8> {
        packet(LEAVE, 9, &[])
    }

    #[test]
    fn packets_are_read_completely_and_exactly() {
        let check = |bytes: &[u8], seq, message| {
            let bytes = [bytes, b"rest"].concat();
            let whole = bytes.len() - 4;
            assert_eq!(read(&bytes), Ok(Some((Packet { seq, message }, whole))));
            for cut in 0..whole {
                assert_eq!(read(&bytes[..cut]), Ok(None), "{cut} bytes of {message:?}");
            }
        };
        let token = "t-7";
        check(&join(1, 42, 7, token), 1, Message::Join { room: 42, user: 7, token });
        check(&speak(2, 9, "hi ü"), 2, Message::Say { id: 9, sent_ns: 77, text: "hi ü" });
        check(&like(3, 5), 3, Message::Like { count: 5 });
        check(&gift(4), 4, Message::Gift { gift: 7, price: 100 });
        check(&light(5), 5, Message::Light { colour: 3 });
        check(&ping(6), 6, Message::Ping);
        check(&leave(), 9, Message::Leave);
    }

    #[test]
    fn violations_are_detected_as_early_as_possible() {
        assert_eq!(read(&[0xC4]), Ok(None));
        assert_eq!(read(&[0xC5]), Err(Breach::Magic));
        assert_eq!(read(&[0xC4, 0xA8]), Err(Breach::Magic));
        assert_eq!(read(&[0xC4, 0xA7, 0, 1, 0, 0]), Ok(None));
        assert_eq!(read(&[0xC4, 0xA7, 0, 1, 0, 1]), Err(Breach::Length));
        for kind in [0, JOINED, DONE, SAID, PONG, 12, 0x88] {
            assert_eq!(read(&[0xC4, 0xA7, 0, 0, 0, 0, kind]), Err(Breach::Kind), "{kind}");
        }
        let bad_bodies: [(u8, &[u8]); 9] = [
            (PING, b"x"),
            (LIGHT, b""),
            (LIGHT, b"xx"),
            (GIFT, &[0; 5]),
            (LIKE, &[0x80]),
            (LIKE, &[0x80; 11]),
            (JOIN, &[0; 19]),
            (SAY, &[0; 17]),
            (LIKE, &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02]),
        ];
        for (kind, body) in bad_bodies {
            assert_eq!(read(&packet(kind, 1, body)), Err(Breach::Body), "{kind} {body:?}");
        }
        let mut no_text = speak(1, 2, "ab");
        let last = no_text.len() - 1;
        no_text[last] = 0xFF;
        assert_eq!(read(&no_text), Err(Breach::Body));
    }

    #[test]
    fn varints_have_at_most_64_bits() {
        let read_one = |bytes: &[u8]| Body(bytes).varint();
        assert_eq!(read_one(&[0x00]), Some(0));
        assert_eq!(read_one(&[0xAC, 0x02]), Some(300));
        let most = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        assert_eq!(read_one(&most), Some(u64::MAX));
    }

    #[test]
    fn the_longest_text_makes_the_longest_packet() {
        let longest = "x".repeat(TEXT_BYTES_MAX);
        assert_eq!(said(1, 2, 3, &longest).len(), HEAD_BYTES + BODY_BYTES_MAX);
        assert_eq!(
            said(1, 2, 3, "ab"),
            [
                &[0xC4, 0xA7, 0, 0, 0, 28, 8, 0, 0, 0, 0][..],
                &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3],
                &[0, 2, b'a', b'b'],
            ]
            .concat()
        );
    }

    #[test]
    fn fuzz_chat_packets() {
        let corpus = [join(1, 42, 7, "t-7"), speak(2, 9, "hello"), like(3, 5), gift(4), leave()];
        let corpus: Vec<&[u8]> = corpus.iter().map(Vec::as_slice).collect();
        throng_fuzz::mutations(&corpus, |input, _| {
            let mut rest = input;
            while let Ok(Some((_, used))) = read(rest) {
                assert!(used >= HEAD_BYTES && used <= rest.len());
                rest = &rest[used..];
            }
            // Do not wait for more bytes if they cannot make it valid.
            if read(rest) == Ok(None) {
                assert!(rest.len() < HEAD_BYTES + BODY_BYTES_MAX);
            }
        });
    }
}
