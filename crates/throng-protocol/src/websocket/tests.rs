//! Frames and messages: the RFCs' own examples, every rule broken once, and every cut.

mod autobahn;
mod takeover;

use std::fmt::Write as _;

use flate2::{Compress, Compression, FlushCompress};
use throng_base::Random;

use super::frame::{CLOSE_REASON_BYTES_MAX, apply_mask};
use super::*;

impl Deflate {
    /// Each message is compressed separately, with the largest window.
    pub(super) const NO_CONTEXT_TAKEOVER: Deflate =
        Deflate { own_window_bits: 15, peer_takeover_bits: None };
}

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// One reader with all that a call needs, and what it has handed out.
struct Bench {
    reader: FrameReader,
    inflater: Inflater,
    limits: Limits,
    messages: Vec<String>,
}

impl Bench {
    fn new(role: Role, deflate: bool, limits: Limits) -> Bench {
        let reader = FrameReader::new(role, deflate.then_some(Deflate::NO_CONTEXT_TAKEOVER));
        Bench { reader, inflater: Inflater::new(), limits, messages: Vec::new() }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), WebSocketError> {
        let Bench { reader, inflater, limits, messages } = self;
        let mut rest = bytes;
        while let Some(message) = reader.next(&mut rest, limits, inflater, &mut Vec::new())? {
            messages.push(told(message));
        }
        Ok(())
    }
}

fn told(message: Message<'_>) -> String {
    match message {
        Message::Text(text) => format!("text {text}"),
        Message::Binary(bytes) => format!("binary {}", bytes.escape_ascii()),
        Message::Ping(bytes) => format!("ping {}", bytes.escape_ascii()),
        Message::Pong(bytes) => format!("pong {}", bytes.escape_ascii()),
        Message::Close { code, reason } => format!("close {code:?} {reason}"),
    }
}

type Outcome = (Vec<String>, Result<bool, WebSocketError>);

/// The messages in the parts, and whether the reader was idle at the end, or the error.
fn read_all(parts: &[&[u8]], role: Role, deflate: bool, limits: Limits) -> Outcome {
    let mut bench = Bench::new(role, deflate, limits);
    for part in parts {
        if let Err(error) = bench.feed(part) {
            assert!(bench.reader.is_done());
            return (bench.messages, Err(error));
        }
        assert_eq!(bench.reader.is_idle(), bench.reader.heap_bytes() == 0);
    }
    (bench.messages, Ok(bench.reader.is_idle()))
}

fn check(stream: &[u8], role: Role, deflate: bool, messages: &[&str]) {
    throng_fuzz::splits(stream, |parts| {
        let (found, end) = read_all(parts, role, deflate, Limits::default());
        assert_eq!((found.as_slice(), end), (&strings(messages)[..], Ok(true)), "{parts:x?}");
    });
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_string()).collect()
}

fn check_violation(stream: &[u8], role: Role, deflate: bool, error: &WebSocketError) {
    throng_fuzz::splits(stream, |parts| {
        let (_, end) = read_all(parts, role, deflate, Limits::default());
        assert_eq!(end.as_ref(), Err(error), "{parts:x?}");
    });
}

/// Random bytes that do not compress.
fn noise(length: usize, random: &mut Random) -> Vec<u8> {
    (0..length).map(|_| random.next_u64() as u8).collect()
}

/// Cuts a stream at random places.
fn cut<'a>(mut rest: &'a [u8], random: &mut Random) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let longest = if random.chance(0.5) { rest.len() } else { rest.len().min(9) };
        let (part, later) = rest.split_at(1 + random.below(longest as u64) as usize);
        parts.push(part);
        rest = later;
    }
    parts
}

#[test]
fn the_examples_of_rfc_6455_section_5_7_are_read() {
    check(b"\x81\x05Hello", Role::Client, false, &["text Hello"]);
    let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    check(masked, Role::Server, false, &["text Hello"]);
    check(b"\x01\x03Hel\x80\x02lo", Role::Client, false, &["text Hello"]);
    check(b"\x89\x05Hello", Role::Client, false, &["ping Hello"]);
    let pong = b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    check(pong, Role::Server, false, &["pong Hello"]);
    for (header, length) in
        [(&b"\x82\x7e\x01\x00"[..], 256), (b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 65_536)]
    {
        let frame = [header, &vec![b'x'; length]].concat();
        let message = format!("binary {}", "x".repeat(length));
        for at in [0, 1, 2, 3, 4, 9, 10, 11, length] {
            let (first, second) = frame.split_at(at);
            let found = read_all(&[first, second], Role::Client, false, Limits::default());
            assert_eq!(found, (vec![message.clone()], Ok(true)));
        }
    }
}

#[test]
fn the_examples_of_rfc_6455_section_5_7_are_written() {
    let write = |opcode, fin, mask, payload: &[u8]| {
        let mut out = Vec::new();
        write_frame(&mut out, opcode, fin, false, mask, payload);
        out
    };
    assert_eq!(write(Opcode::Text, true, None, b"Hello"), b"\x81\x05Hello");
    let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    assert_eq!(write(Opcode::Text, true, Some(MASK), b"Hello"), masked);
    assert_eq!(write(Opcode::Text, false, None, b"Hel"), b"\x01\x03Hel");
    assert_eq!(write(Opcode::Continuation, true, None, b"lo"), b"\x80\x02lo");
    assert_eq!(write(Opcode::Ping, true, None, b"Hello"), b"\x89\x05Hello");
    assert_eq!(write(Opcode::Binary, true, None, &[0; 256])[..4], *b"\x82\x7e\x01\x00");
    let long = write(Opcode::Binary, true, None, &[0; 65_536]);
    assert_eq!(long[..10], *b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00");
}

#[test]
fn control_frames_may_come_between_fragments() {
    let stream = b"\x01\x02\xc3\xa4\x89\x02hi\x00\x01\xc3\x8a\x00\x80\x01\xb6\
        \x00\x00\x82\x00\x88\x05\x03\xe8bye\xff\xff ignored";
    let start = &stream[..16];
    check(start, Role::Client, false, &["ping hi", "pong ", "text äö"]);
    // Without the continuation that nothing was begun for, and with a close at the end.
    let rest = [start, &stream[18..]].concat();
    let all = ["ping hi", "pong ", "text äö", "binary ", "close Some(1000) bye"];
    check(&rest, Role::Client, false, &all);
}

#[test]
fn a_close_inside_a_message_ends_the_stream() {
    let stream = b"\x01\x02ab\x88\x00\x80\x01c\x81\x01d";
    check(stream, Role::Client, false, &["close None "]);
}

#[test]
fn close_frames_carry_valid_codes() {
    for code in 0..=u16::MAX {
        let mut stream = Vec::new();
        write_close(&mut stream, Some(code), "why", None);
        let valid = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
        let (messages, end) = read_all(&[&stream], Role::Client, false, Limits::default());
        let expected = match valid {
            true => (vec![format!("close Some({code}) why")], Ok(true)),
            false => (vec![], Err(WebSocketError::CloseCodeForbidden(code))),
        };
        assert_eq!((messages, end), expected);
    }
}

#[test]
fn a_close_frame_is_written_within_125_bytes() {
    let mut out = Vec::new();
    write_close(&mut out, Some(1000), &"ä".repeat(100), Some(MASK));
    let reason = "ä".repeat(CLOSE_REASON_BYTES_MAX / 2);
    check(&out, Role::Server, false, &[&format!("close Some(1000) {reason}")]);
    out.clear();
    write_close(&mut out, None, "lost without a code", None);
    assert_eq!(out, b"\x88\x00");
}

#[test]
fn every_violated_rule_is_an_error() {
    use WebSocketError as E;
    let client: &[(&[u8], E)] = &[
        (b"\x91\x00", E::ReservedBits(1)),
        (b"\xa1\x00", E::ReservedBits(2)),
        (b"\xc1\x00", E::ReservedBits(4)),
        (b"\xf1\x00", E::ReservedBits(7)),
        (b"\x83\x00", E::ReservedOpcode(3)),
        (b"\x87\x00", E::ReservedOpcode(7)),
        (b"\x8b\x00", E::ReservedOpcode(11)),
        (b"\x8f\x00", E::ReservedOpcode(15)),
        (b"\x09\x00", E::ControlFragmented),
        (b"\x08\x00", E::ControlFragmented),
        (b"\x89\x7e\x00\x7e", E::ControlTooLong(126)),
        (b"\x8a\x7f\x00\x00", E::ControlTooLong(127)),
        (b"\x80\x00", E::ContinuationWithoutStart),
        (b"\x81\x00\x00\x00", E::ContinuationWithoutStart),
        (b"\x01\x01a\x80\x01b\x80\x00", E::ContinuationWithoutStart),
        (b"\x01\x01a\x81\x01b", E::MessageInsideMessage),
        (b"\x01\x01a\x89\x00\x02\x01b", E::MessageInsideMessage),
        (b"\x81\x80\x00\x00\x00\x00", E::Masked),
        (b"\x01\x00\x80\x80\x00\x00\x00\x00", E::Masked),
        (b"\x82\x7e\x00\x7d", E::LengthNotMinimal(125)),
        (b"\x82\x7e\x00\x00", E::LengthNotMinimal(0)),
        (b"\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", E::LengthNotMinimal(65_535)),
        (b"\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", E::LengthTooLarge),
        (b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", E::LengthTooLarge),
        (
            b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff",
            E::FrameTooLarge { size: u64::MAX >> 1, limit: 16 << 20 },
        ),
        (b"\x81\x02\xc3\x28", E::TextNotUtf8),
        (b"\x81\x01\xc3", E::TextNotUtf8),
        (b"\x81\x03\xed\xa0\x80", E::TextNotUtf8),
        (b"\x01\x01\xc3\x80\x01\x28", E::TextNotUtf8),
        (b"\x88\x01\x03", E::CloseCodeCut),
        (b"\x88\x02\x03\xed", E::CloseCodeForbidden(1005)),
        (b"\x88\x02\x03\xf7", E::CloseCodeForbidden(1015)),
        (b"\x88\x03\x03\xe8\xff", E::CloseReasonNotUtf8),
    ];
    for (stream, error) in client {
        check_violation(stream, Role::Client, false, error);
    }
    check_violation(b"\x81\x00", Role::Server, false, &E::NotMasked);
    check_violation(b"\x81\x80\0\0\0\0\x89\x00", Role::Server, false, &E::NotMasked);
    let deflate: &[(&[u8], E)] = &[
        (b"\xe1\x00", E::ReservedBits(6)),
        (b"\xc9\x00", E::ReservedBits(4)),
        (b"\x41\x00\xc0\x00", E::ReservedBits(4)),
        (b"\xc1\x01\xff", E::CompressionBroken),
        (b"\xc1\x03\xf2\x48\xcd", E::CompressionBroken),
        (b"\xc1\x05\xf2\x00\x11\x00\x00", E::CompressionBroken),
        (b"\xc1\x0c\x00\x05\x00\xfa\xffHell\xff\xff\0", E::CompressionBroken),
    ];
    for (stream, error) in deflate {
        check_violation(stream, Role::Client, true, error);
    }
}

#[test]
fn errors_contain_a_close_code_and_are_short() {
    use WebSocketError as E;
    let max = u64::MAX;
    for (error, code) in [
        (E::ReservedBits(4), 1002),
        (E::ReservedOpcode(3), 1002),
        (E::ControlFragmented, 1002),
        (E::ControlTooLong(126), 1002),
        (E::ContinuationWithoutStart, 1002),
        (E::MessageInsideMessage, 1002),
        (E::Masked, 1002),
        (E::NotMasked, 1002),
        (E::LengthNotMinimal(max), 1002),
        (E::LengthTooLarge, 1002),
        (E::CloseCodeCut, 1002),
        (E::CloseCodeForbidden(1005), 1002),
        (E::TextNotUtf8, 1007),
        (E::CloseReasonNotUtf8, 1007),
        (E::CompressionBroken, 1007),
        (E::FrameTooLarge { size: max, limit: max }, 1009),
        (E::MessageTooLarge { size: max, limit: max }, 1009),
    ] {
        assert_eq!(error.close_code(), code, "{error}");
        assert!(error.to_string().len() <= 120, "{error}");
    }
}

#[test]
fn after_an_error_nothing_more_is_read() {
    let mut bench = Bench::new(Role::Client, false, Limits::default());
    assert_eq!(bench.feed(b"\x81\x01a\x83\x00"), Err(WebSocketError::ReservedOpcode(3)));
    assert_eq!(bench.feed(b"\x81\x01b"), Ok(()));
    assert_eq!(bench.messages, ["text a"]);
    assert!(bench.reader.is_idle() && bench.reader.is_done());
}

#[test]
fn a_complete_message_is_not_copied() {
    let stream = b"\x81\x05Hello\x82\x03\x01\x02\x03\x89\x01p";
    let mut inflater = Inflater::new();
    let mut offsets = Vec::new();
    let mut reader = FrameReader::new(Role::Client, Some(Deflate::NO_CONTEXT_TAKEOVER));
    let (mut rest, mut room, limits) = (&stream[..], Vec::new(), Limits::default());
    while let Some(message) = reader.next(&mut rest, &limits, &mut inflater, &mut room).unwrap() {
        let payload = match message {
            Message::Text(text) => text.as_bytes(),
            Message::Binary(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes,
            Message::Close { reason, .. } => reason.as_bytes(),
        };
        offsets.push(payload.as_ptr().addr() - stream.as_ptr().addr());
    }
    assert_eq!((room.capacity(), reader.heap_bytes()), (0, 0));
    assert_eq!(offsets, [2, 9, 14]);
}

#[test]
fn an_announced_length_reserves_little() {
    let mut bench = Bench::new(Role::Client, false, Limits::default());
    bench.feed(b"\x82\x7f\x00\x00\x00\x00\x00\xff\xff\xff\x01").expect("within the limits");
    assert!(bench.reader.heap_bytes() <= 66_000, "{}", bench.reader.heap_bytes());
}

#[test]
fn limits_are_exact_to_the_byte() {
    let limits = Limits { message_bytes_max: 200, frame_bytes_max: 150 };
    let frames = |lengths: &[usize]| {
        let mut out = Vec::new();
        for (index, length) in lengths.iter().enumerate() {
            let opcode = if index == 0 { Opcode::Binary } else { Opcode::Continuation };
            let payload = vec![b'x'; *length];
            write_frame(&mut out, opcode, index + 1 == lengths.len(), false, None, &payload);
        }
        out
    };
    let outcome = |stream: &[u8]| {
        let mut last = None;
        throng_fuzz::splits(stream, |parts| {
            let (messages, end) = read_all(parts, Role::Client, true, limits);
            let found = (messages.len(), end.map(|_| ()));
            assert_eq!(*last.get_or_insert(found.clone()), found);
        });
        last.expect("there is at least one way to cut")
    };
    let too_large = |size| Err(WebSocketError::MessageTooLarge { size, limit: 200 });
    assert_eq!(outcome(&frames(&[150])), (1, Ok(())));
    let frame = WebSocketError::FrameTooLarge { size: 151, limit: 150 };
    assert_eq!(outcome(&frames(&[151])), (0, Err(frame)));
    assert_eq!(outcome(&frames(&[150, 50])), (1, Ok(())));
    assert_eq!(outcome(&frames(&[150, 51])), (0, too_large(201)));
    assert_eq!(outcome(&frames(&[100, 100, 0])), (1, Ok(())));
    assert_eq!(outcome(&frames(&[100, 100, 1])), (0, too_large(201)));
    let mut deflater = Deflater::default();
    for (length, expected) in [(200, (1, Ok(()))), (201, (0, too_large(201)))] {
        let mut out = Vec::new();
        let payload = vec![b'x'; length];
        write_message_deflated(&mut out, Opcode::Text, None, &payload, 15, &mut deflater);
        assert!(out.len() < 100);
        assert_eq!(outcome(&out), expected);
    }
}

#[test]
fn the_examples_of_rfc_7692_section_7_2_3_are_read() {
    let hello = &["text Hello"];
    check(b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", Role::Client, true, hello);
    check(b"\x41\x03\xf2\x48\xcd\x80\x04\xc9\xc9\x07\x00", Role::Client, true, hello);
    check(b"\xc1\x0b\x00\x05\x00\xfa\xffHello\x00", Role::Client, true, hello);
    check(b"\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00", Role::Client, true, hello);
    let two_blocks = b"\xc1\x0d\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00";
    check(two_blocks, Role::Client, true, hello);
    check(b"\xc1\x01\x00", Role::Client, true, &["text "]);
    // Three cases that the RFC does not show: an empty message, a stream that ends without the byte
    // after it, and an uncompressed message although compression was negotiated.
    check(b"\xc2\x00", Role::Client, true, &["binary "]);
    check(b"\xc1\x07\xf3\x48\xcd\xc9\xc9\x07\x00", Role::Client, true, hello);
    check(b"\x81\x05Hello", Role::Client, true, hello);
}

#[test]
fn messages_compressed_by_zlib_are_read() {
    let text = r#"{"type":"chat","from":"alice","to":"bob","text":"hello hello hello"}"#;
    for payload in [
        "aa562aa92c4855b2524ace482c51d2514a2bcacf05f2127332935381dc927c2027293f09c44cad28017232\
         527372f2159048a55a0000"
            .to_string(),
        text.bytes().fold("004400bbff".to_string(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }) + "00",
    ] {
        let payload = crate::stream::parse_hex(&payload).expect("this is hexadecimal");
        let mut stream = Vec::new();
        write_frame(&mut stream, Opcode::Text, true, true, None, &payload);
        check(&stream, Role::Client, true, &[&format!("text {text}")]);
    }
}

#[test]
fn a_decompression_bomb_stops_at_the_limit() {
    let zeros = vec![0; 32 << 20];
    let mut raw = Compress::new(Compression::best(), false);
    let mut bomb = Vec::with_capacity(1 << 20);
    raw.compress_vec(&zeros, &mut bomb, FlushCompress::Sync).expect("zeros compress");
    assert_eq!(raw.total_in(), zeros.len() as u64);
    let limit = 1 << 20;
    let mut inflater = Inflater::new();
    let error = WebSocketError::MessageTooLarge { size: limit as u64 + 1, limit: limit as u64 };
    assert_eq!(inflater.inflate(&bomb, &[], limit), Err(error));
    assert!(inflater.heap_bytes() <= limit + 1 + (64 << 10));
    // The inflater serves the next message as if nothing had happened.
    let hello = b"\xf2\x48\xcd\xc9\xc9\x07\x00";
    assert_eq!(inflater.inflate(hello, &[], 5), Ok(&b"Hello"[..]));
    assert!(matches!(inflater.inflate(hello, &[], 4), Err(WebSocketError::MessageTooLarge { .. })));
    assert!(matches!(inflater.inflate(hello, &[], 0), Err(WebSocketError::MessageTooLarge { .. })));
}

#[test]
fn the_number_of_last_blocks_is_limited() {
    let mut inflater = Inflater::new();
    for (count, expected) in [(16, Ok(&b""[..])), (17, Err(WebSocketError::CompressionBroken))] {
        // Empty last blocks, and the byte that a sender appends to them.
        let message = [b"\x03\x00".repeat(count), vec![0]].concat();
        assert_eq!(inflater.inflate(&message, &[], 10), expected, "{count}");
    }
}

#[test]
fn deflated_messages_are_inflated_again() {
    let mut random = Random::new(throng_fuzz::seed());
    let mut deflater = Deflater::default();
    for length in [0, 1, 127, 128, 129, 5_000, 65_535, 65_536, 300_000, 2_000_000] {
        for texts in [true, false] {
            let payload = match texts {
                true => b"the same words again and again; ".repeat(length / 32 + 1),
                false => noise(length, &mut random),
            };
            let payload = &payload[..length];
            let mut stream = Vec::new();
            write_message_deflated(&mut stream, Opcode::Binary, None, payload, 15, &mut deflater);
            let compressed = stream[0] & 0x40 != 0;
            assert_eq!(compressed, texts && length >= deflate::DEFLATE_BYTES_MIN, "{length}");
            // Also when it gains nothing, what the deflater makes is a valid message.
            let deflated = deflater.deflate(payload, 15).expect("deflating works").to_vec();
            stream.clear();
            write_frame(&mut stream, Opcode::Binary, true, true, Some(MASK), &deflated);
            let parts = cut(&stream, &mut random);
            let (messages, end) = read_all(&parts, Role::Server, true, Limits::default());
            assert_eq!(end, Ok(true));
            assert!(messages == [told(Message::Binary(payload))], "{length} {texts}");
        }
    }
}

#[test]
fn wide_masking_equals_byte_by_byte_masking() {
    let mut random = Random::new(7);
    for length in 0..70 {
        for offset in 0..9 {
            let bytes = noise(length, &mut random);
            let mut masked = bytes.clone();
            apply_mask(&mut masked, MASK, offset);
            for (index, byte) in bytes.iter().enumerate() {
                assert_eq!(masked[index], byte ^ MASK[(index + offset as usize) % 4]);
            }
        }
    }
}

/// Writes a random conversation; what a reader must hand out of it.
fn conversation(random: &mut Random, role: Role, deflate: bool) -> (Vec<u8>, Vec<String>) {
    const LENGTHS: [usize; 10] = [0, 1, 2, 124, 125, 126, 127, 65_535, 65_536, 65_537];
    let mut deflater = Deflater::default();
    let mut mask = {
        let mut masks = Random::new(random.next_u64());
        move || (role == Role::Server).then(|| masks.next_u32().to_le_bytes())
    };
    let (mut out, mut messages) = (Vec::new(), Vec::new());
    for _ in 0..=random.below(4) {
        let picked = LENGTHS[random.below(10) as usize];
        let length = if random.chance(0.3) { picked } else { random.below(300) as usize };
        let payload = match random.chance(0.5) {
            true => noise(length, random),
            false => vec![b'a' + random.below(26) as u8; length],
        };
        let text = std::str::from_utf8(&payload).ok();
        let opcode = if text.is_some() { Opcode::Text } else { Opcode::Binary };
        if deflate && random.chance(0.3) {
            write_message_deflated(&mut out, opcode, mask(), &payload, 15, &mut deflater);
        } else {
            let compressed = deflate && random.chance(0.5);
            let sent = match compressed {
                true => deflater.deflate(&payload, 15).expect("deflating works"),
                false => &payload,
            };
            let mut opcode = opcode;
            let mut rest = sent;
            loop {
                let fragment = random.chance(0.5);
                let length = if fragment {
                    random.below(rest.len() as u64 + 1) as usize
                } else {
                    rest.len()
                };
                let (part, later) = rest.split_at(length);
                let first = opcode != Opcode::Continuation;
                write_frame(&mut out, opcode, !fragment, compressed && first, mask(), part);
                if !fragment {
                    break;
                }
                if random.chance(0.5) {
                    let ping = noise(random.below(126) as usize, random);
                    write_frame(&mut out, Opcode::Ping, true, false, mask(), &ping);
                    messages.push(told(Message::Ping(&ping)));
                }
                (opcode, rest) = (Opcode::Continuation, later);
            }
        }
        messages.push(told(text.map_or(Message::Binary(&payload), Message::Text)));
    }
    (out, messages)
}

#[test]
fn fuzz_written_messages_are_read_however_they_are_split() {
    for case in throng_fuzz::cases(10) {
        let mut random = case.random();
        let role = if random.chance(0.5) { Role::Client } else { Role::Server };
        let deflate = random.chance(0.5);
        let (stream, messages) = conversation(&mut random, role, deflate);
        let parts = cut(&stream, &mut random);
        case.try_on(&stream, || {
            let (found, end) = read_all(&parts, role, deflate, Limits::default());
            assert_eq!(end, Ok(true));
            assert!(found == messages, "other messages than were written");
        });
    }
}

#[test]
fn fuzz_damaged_streams_do_not_depend_on_the_split() {
    let corpus: &[&[u8]] = &[
        b"\x81\x05Hello\x01\x03Hel\x89\x02hi\x80\x02lo",
        b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00\x41\x03\xf2\x48\xcd\x80\x04\xc9\xc9\x07\x00",
        b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\x89\x80\x01\x02\x03\x04",
        b"\x82\x7e\x00\x80aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        b"\x88\x05\x03\xe8bye",
    ];
    let limits = Limits { message_bytes_max: 300, frame_bytes_max: 200 };
    throng_fuzz::mutations(corpus, |input, random| {
        let role = if random.chance(0.7) { Role::Client } else { Role::Server };
        let deflate = random.chance(0.5);
        let whole = read_all(&[input], role, deflate, limits);
        let parts = cut(input, random);
        assert_eq!(read_all(&parts, role, deflate, limits), whole, "{parts:x?}");
    });
}

#[test]
fn fuzz_the_inflater_stays_within_its_limit() {
    let mut deflater = Deflater::default();
    let long = deflater.deflate(&[b'z'; 10_000], 15).expect("deflating works").to_vec();
    let text = b"a few words, some of them some of them again".repeat(4);
    let short = deflater.deflate(&text, 15).expect("deflating works").to_vec();
    let corpus: &[&[u8]] = &[&long, &short, b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00"];
    let mut inflater = Inflater::new();
    throng_fuzz::mutations(corpus, |input, random| {
        let limit = random.below(20_000) as usize;
        let first = inflater.inflate(input, &[], limit).map(<[u8]>::to_vec);
        assert!(first.as_ref().map_or(0, Vec::len) <= limit);
        // Nothing of an earlier message is left.
        assert_eq!(Inflater::new().inflate(input, &[], limit).map(<[u8]>::to_vec), first);
    });
}
