//! The server side of RFC 6455: frames, message assembly, close codes. No extensions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The longest message, assembled from all its fragments.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// RFC 6455, section 5.5.
const CONTROL_BYTES_MAX: u64 = 125;

/// The reason for a close, as numbered in RFC 6455, section 7.4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u16);

impl Code {
    pub(crate) const PROTOCOL_ERROR: Code = Code(1002);
    pub(crate) const INVALID_DATA: Code = Code(1007);
    pub(crate) const TOO_BIG: Code = Code(1009);
    pub(crate) const INTERNAL_ERROR: Code = Code(1011);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    last: bool,
    opcode: Opcode,
    mask: [u8; 4],
    /// The length of the header and of the payload.
    length: usize,
    payload: usize,
}

/// A message or control frame of a peer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    Message {
        opcode: Opcode,
        data: &'a [u8],
    },
    Ping(&'a [u8]),
    Pong,
    /// The code to reply with.
    Close(Option<Code>),
}

/// Parses the frames of one connection. It holds no buffer while idle.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    fragments: Option<Box<Fragments>>,
}

#[derive(Debug)]
struct Fragments {
    opcode: Opcode,
    data: Vec<u8>,
}

impl FrameReader {
    /// Parses the first frame of `input`, unmasks it in place, and calls `hear` if it completes a
    /// message. Returns the bytes used; 0 if the frame is incomplete. After an error, no further
    /// frame can be parsed.
    pub(crate) fn read(
        &mut self,
        input: &mut [u8],
        hear: impl FnOnce(Event<'_>),
    ) -> Result<usize, Code> {
        let Some(header) = parse_header(input)? else { return Ok(0) };
        let end = header.length + header.payload;
        let Some(payload) = input.get_mut(header.length..end) else { return Ok(0) };
        unmask(payload, header.mask);
        match header.opcode {
            Opcode::Ping => hear(Event::Ping(payload)),
            Opcode::Pong => hear(Event::Pong),
            Opcode::Close => hear(Event::Close(close_code(payload)?)),
            _ => self.data(header, payload, hear)?,
        }
        Ok(end)
    }

    fn data(
        &mut self,
        header: Header,
        payload: &[u8],
        hear: impl FnOnce(Event<'_>),
    ) -> Result<(), Code> {
        match (&mut self.fragments, header.opcode) {
            (None, Opcode::Continuation) => return Err(Code::PROTOCOL_ERROR),
            (None, opcode) if header.last => {
                check_text(opcode, payload)?;
                hear(Event::Message { opcode, data: payload });
            }
            (None, opcode) => {
                let data = payload.to_vec();
                self.fragments = Some(Box::new(Fragments { opcode, data }));
            }
            (Some(fragments), Opcode::Continuation) => {
                if fragments.data.len() + payload.len() > MESSAGE_BYTES_MAX {
                    return Err(Code::TOO_BIG);
                }
                fragments.data.extend_from_slice(payload);
                if header.last {
                    check_text(fragments.opcode, &fragments.data)?;
                    hear(Event::Message { opcode: fragments.opcode, data: &fragments.data });
                    self.fragments = None;
                }
            }
            (Some(_), _) => return Err(Code::PROTOCOL_ERROR),
        }
        Ok(())
    }
}

fn check_text(opcode: Opcode, data: &[u8]) -> Result<(), Code> {
    match opcode {
        Opcode::Text if std::str::from_utf8(data).is_err() => Err(Code::INVALID_DATA),
        _ => Ok(()),
    }
}

/// The frame header (RFC 6455, section 5.2); `None` if it is incomplete.
fn parse_header(input: &[u8]) -> Result<Option<Header>, Code> {
    let &[first, second, ref rest @ ..] = input else { return Ok(None) };
    let opcode = match first & 0x0f {
        0 => Opcode::Continuation,
        1 => Opcode::Text,
        2 => Opcode::Binary,
        8 => Opcode::Close,
        9 => Opcode::Ping,
        10 => Opcode::Pong,
        _ => return Err(Code::PROTOCOL_ERROR),
    };
    let (last, reserved, masked) = (first & 0x80 != 0, first & 0x70, second & 0x80 != 0);
    if reserved != 0 || !masked {
        return Err(Code::PROTOCOL_ERROR);
    }
    let (payload, rest) = match second & 0x7f {
        126 => match rest.split_first_chunk::<2>() {
            Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
            None => return Ok(None),
        },
        127 => match rest.split_first_chunk::<8>() {
            Some((length, rest)) => (u64::from_be_bytes(*length), rest),
            None => return Ok(None),
        },
        short => (u64::from(short), rest),
    };
    let control = matches!(opcode, Opcode::Close | Opcode::Ping | Opcode::Pong);
    if control && (!last || payload > CONTROL_BYTES_MAX) {
        return Err(Code::PROTOCOL_ERROR);
    }
    if payload > MESSAGE_BYTES_MAX as u64 {
        return Err(Code::TOO_BIG);
    }
    let Some((mask, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let length = input.len() - rest.len();
    Ok(Some(Header { last, opcode, mask: *mask, length, payload: payload as usize }))
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let wide = u64::from(u32::from_ne_bytes(mask)) * 0x0000_0001_0000_0001;
    let (words, rest) = payload.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// The code of a close frame, which is sent back.
fn close_code(payload: &[u8]) -> Result<Option<Code>, Code> {
    let Some((code, reason)) = payload.split_first_chunk::<2>() else {
        return if payload.is_empty() { Ok(None) } else { Err(Code::PROTOCOL_ERROR) };
    };
    let code = u16::from_be_bytes(*code);
    match code {
        1000..=1003 | 1007..=1014 | 3000..=4999 => {
            check_text(Opcode::Text, reason)?;
            Ok(Some(Code(code)))
        }
        _ => Err(Code::PROTOCOL_ERROR),
    }
}

/// A complete frame of the server: final, unmasked.
pub(crate) fn write_frame(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    let (header, length) = frame_header(opcode, payload.len());
    out.extend_from_slice(&header[..length]);
    out.extend_from_slice(payload);
}

/// A frame whose payload `write` appends in place; the header is adjusted afterwards.
pub(crate) fn frame(out: &mut Vec<u8>, opcode: Opcode, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let usual = start + 2;
    out.extend_from_slice(&[0; 2]);
    write(out);
    let (header, length) = frame_header(opcode, out.len() - usual);
    out.splice(start..usual, header[..length].iter().copied());
}

/// The header of a frame, and its length.
fn frame_header(opcode: Opcode, payload: usize) -> ([u8; 10], usize) {
    let mut header = [0; 10];
    header[0] = 0x80 | opcode as u8;
    let length = match payload {
        ..126 => {
            header[1] = payload as u8;
            2
        }
        126..=0xffff => {
            header[1] = 126;
            header[2..4].copy_from_slice(&(payload as u16).to_be_bytes());
            4
        }
        _ => {
            header[1] = 127;
            header[2..].copy_from_slice(&(payload as u64).to_be_bytes());
            10
        }
    };
    (header, length)
}

pub(crate) fn close_frame(code: Option<Code>) -> Vec<u8> {
    let mut frame = Vec::new();
    let payload = code.map(|code| code.0.to_be_bytes());
    write_frame(&mut frame, Opcode::Close, payload.as_ref().map_or(&[], |bytes| bytes));
    frame
}

/// The value of `Sec-WebSocket-Accept` (RFC 6455, section 4.2.2); `None` if the key is not valid.
pub(crate) fn accept_key(key: &str) -> Option<String> {
    let nonce = STANDARD.decode(key).ok()?;
    if nonce.len() != 16 {
        return None;
    }
    let mut sha = sha1_smol::Sha1::new();
    sha.update(key.as_bytes());
    sha.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    Some(STANDARD.encode(sha.digest().bytes()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A frame as a client sends it.
    pub(crate) fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        write_frame(&mut frame, Opcode::Text, payload);
        let header = frame.len() - payload.len();
        frame.truncate(header);
        frame[0] = first;
        frame[1] |= 0x80;
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        frame.extend_from_slice(&mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        frame
    }

    /// What is parsed from a stream of frames in these parts.
    fn heard(parts: &[&[u8]]) -> Vec<String> {
        let (mut reader, mut kept, mut events) = (FrameReader::default(), Vec::new(), Vec::new());
        for part in parts {
            kept.extend_from_slice(part);
            loop {
                match reader.read(&mut kept, |event| events.push(format!("{event:?}"))) {
                    Ok(0) => break,
                    Ok(used) => drop(kept.drain(..used)),
                    Err(code) => {
                        events.push(format!("{code:?}"));
                        return events;
                    }
                }
            }
        }
        events
    }

    fn stream() -> Vec<u8> {
        [
            masked(0x81, b"hello"),
            masked(0x01, b"frag"),
            masked(0x89, b"p"),
            masked(0x00, b"men"),
            masked(0x80, b"ted"),
            masked(0x82, &[0xff; 200]),
            masked(0x8a, b""),
            masked(0x88, &[0x03, 0xe8, b'b', b'y', b'e']),
        ]
        .concat()
    }

    #[test]
    fn frames_may_be_split_anywhere() {
        let stream = stream();
        let whole = heard(&[&stream]);
        assert_eq!(whole.len(), 6);
        assert!(whole[1].starts_with("Ping"));
        assert!(whole[2].contains(&format!("{:?}", b"fragmented")));
        assert_eq!(whole[5], "Close(Some(Code(1000)))");
        throng_fuzz::splits(&stream, |parts| assert_eq!(heard(parts), whole));
    }

    #[test]
    fn forbidden_frames_are_refused() {
        let unmasked = vec![0x81, 0x01, b'a'];
        let too_big = [&[0x82, 0xff][..], &(1u64 << 40).to_be_bytes(), &[0; 4]].concat();
        let big = masked(0x02, &vec![0; MESSAGE_BYTES_MAX]);
        for (frames, code) in [
            (unmasked, 1002),
            (masked(0xc1, b"rsv"), 1002),
            (masked(0x83, b"opcode"), 1002),
            (masked(0x09, b"fragmented ping"), 1002),
            (masked(0x89, &[0; 126]), 1002),
            (masked(0x80, b"continues nothing"), 1002),
            ([masked(0x01, b"a"), masked(0x81, b"b")].concat(), 1002),
            (masked(0x88, b"1"), 1002),
            (masked(0x88, &1005u16.to_be_bytes()), 1002),
            (masked(0x81, &[0xff]), 1007),
            (too_big, 1009),
            ([big, masked(0x80, b"x")].concat(), 1009),
        ] {
            assert_eq!(heard(&[&frames]).last(), Some(&format!("Code({code})")), "{frames:?}");
        }
    }

    #[test]
    fn any_length_is_unmasked() {
        for length in (0..300).chain([65_535, 65_536]) {
            let payload: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let expected =
                format!("{:?}", Event::Message { opcode: Opcode::Binary, data: &payload });
            assert_eq!(heard(&[&masked(0x82, &payload)]), [expected]);
        }
    }

    #[test]
    fn a_payload_written_in_place_gives_the_same_frame() {
        for length in [0, 1, 125, 126, 300, 65_535, 65_536] {
            let payload = vec![7; length];
            let (mut whole, mut in_place) = (vec![1, 2], vec![1, 2]);
            write_frame(&mut whole, Opcode::Text, &payload);
            frame(&mut in_place, Opcode::Text, |out| out.extend_from_slice(&payload));
            assert!(whole == in_place, "{length}");
        }
    }

    #[test]
    fn fuzz_frames() {
        let stream = stream();
        throng_fuzz::mutations(&[&stream, &masked(0x81, b"{}")], |input, random| {
            let whole = heard(&[input]);
            let (first, second) = input.split_at(random.below(input.len() as u64 + 1) as usize);
            assert_eq!(heard(&[first, second]), whole);
        });
    }

    #[test]
    fn the_key_of_the_rfc_is_accepted() {
        let accepted = accept_key("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accepted.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_eq!(accept_key("c2hvcnQ="), None);
        assert_eq!(accept_key("not base64 at all!"), None);
    }
}
