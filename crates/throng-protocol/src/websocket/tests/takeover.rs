//! Messages that refer to earlier ones of their connection, and windows smaller than the largest.

use super::*;

/// A sender that compresses with context takeover.
struct Sender(Compress);

impl Sender {
    fn new() -> Sender {
        Sender(Compress::new(Compression::best(), false))
    }

    fn payload(&mut self, message: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(message.len() + 1024);
        self.0.compress_vec(message, &mut out, FlushCompress::Sync).expect("it compresses");
        out.strip_suffix(b"\0\0\xff\xff").expect("a sync flush").to_vec()
    }

    fn frame(&mut self, message: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
        let (payload, mut out) = (self.payload(message), Vec::new());
        write_frame(&mut out, Opcode::Binary, true, true, mask, &payload);
        out
    }
}

fn bench(own_window_bits: u8, peer_takeover_bits: Option<u8>) -> Bench {
    let mut bench = Bench::new(Role::Client, true, Limits::default());
    let deflate = Deflate { own_window_bits, peer_takeover_bits };
    bench.reader = FrameReader::new(Role::Client, Some(deflate));
    bench
}

#[test]
fn messages_refer_to_earlier_ones() {
    let mut random = Random::new(throng_fuzz::seed());
    let text = noise(20_000, &mut random);
    let mut sender = Sender::new();
    let mut bench = bench(15, Some(15));
    for (index, part) in
        [&text[..], &text[5_000..], b"", &text[5_000..9_000]].into_iter().enumerate()
    {
        let frame = sender.frame(part, None);
        assert!(index == 0 || frame.len() < 1_000, "{index}: {} bytes", frame.len());
        for bytes in cut(&frame, &mut random) {
            bench.feed(bytes).expect("a message");
        }
        // An uncompressed message is not part of what the next one may refer to.
        bench.feed(b"\x81\x02hi\x89\x00").expect("a message");
        assert!(bench.reader.is_idle());
        assert_eq!(
            bench.messages,
            [told(Message::Binary(part)), told(Message::Text("hi")), told(Message::Ping(b""))]
        );
        bench.messages.clear();
    }
}

#[test]
fn without_takeover_a_reference_to_an_earlier_message_is_an_error() {
    let text = noise(500, &mut Random::new(1));
    for (bits, expected) in [(None, Err(WebSocketError::CompressionBroken)), (Some(9), Ok(()))] {
        let (mut sender, mut bench) = (Sender::new(), bench(15, bits));
        bench.feed(&sender.frame(&text, None)).expect("the first stands alone");
        assert_eq!(bench.feed(&sender.frame(&text[..400], None)), expected, "{bits:?}");
    }
}

#[test]
fn a_connection_keeps_no_more_than_the_window() {
    let text = noise(100_000, &mut Random::new(2));
    let own_bytes = bench_bytes(15, &[]);
    for bits in 8..=15 {
        let window = 1 << bits;
        for parts in [vec![&text[..]], text.chunks(77).collect(), vec![&text[..window - 1]]] {
            let kept = bench_bytes(bits, &parts);
            assert!(kept > window && kept <= window + 512, "{bits}: {kept}");
        }
    }
    assert_eq!(own_bytes, 0, "nothing before the first message");
    assert!(bench_bytes(15, &[b"short"]) < 512);
}

fn bench_bytes(bits: u8, parts: &[&[u8]]) -> usize {
    let (mut sender, mut bench) = (Sender::new(), bench(15, Some(bits)));
    for part in parts {
        // Each by itself, because the sender does not keep to a smaller window.
        sender.0.reset();
        bench.feed(&sender.frame(part, None)).expect("a message");
    }
    assert_eq!(bench.messages.len(), parts.len());
    bench.reader.heap_bytes()
}

#[test]
fn the_limit_applies_to_the_message_only() {
    let zeros = vec![0; 40_000];
    let limits = Limits { message_bytes_max: 40_000, ..Limits::default() };
    let (mut sender, mut bench) = (Sender::new(), bench(15, Some(15)));
    bench.limits = limits;
    for _ in 0..3 {
        bench.feed(&sender.frame(&zeros, None)).expect("within the limit");
    }
    let error = WebSocketError::MessageTooLarge { size: 40_001, limit: 40_000 };
    assert_eq!(bench.feed(&sender.frame(&[0; 40_001], None)), Err(error));
}

#[test]
fn our_messages_respect_the_window_of_the_peer() {
    let mut random = Random::new(3);
    let mut deflater = Deflater::default();
    // What repeats does so after 300 bytes: within 512, beyond 256.
    let repeated = noise(300, &mut random).repeat(20);
    let deflated = |deflater: &mut Deflater, bits| {
        deflater.deflate(&repeated, bits).expect("it compresses").len()
    };
    assert!(deflated(&mut deflater, 8) >= repeated.len());
    assert!(deflated(&mut deflater, 9) < repeated.len() * 3 / 4);
    assert!(deflated(&mut deflater, 15) < 1_000);
    for bits in 8..=15 {
        for length in [0, 1, 255, 256, 257, 32_768, 32_769, 100_000] {
            let payload = &b"some words that repeat; ".repeat(5_000)[..length];
            let deflated = deflater.deflate(payload, bits).expect("it compresses").to_vec();
            let mut inflater = Inflater::new();
            assert_eq!(inflater.inflate(&deflated, &[], length), Ok(payload), "{bits} {length}");
        }
    }
}

#[test]
fn fuzz_takeover_does_not_depend_on_the_split() {
    for case in throng_fuzz::cases(30) {
        let mut random = case.random();
        let bits = 8 + random.below(8) as u8;
        let (mut sender, mut bench) = (Sender::new(), bench(15, Some(bits)));
        let (mut stream, mut expected) = (Vec::new(), Vec::new());
        let words = noise(200, &mut random);
        for index in 0..1 + random.below(4) {
            // Within the smallest window, because the sender knows the largest only.
            let length = if index == 0 { 100 } else { random.below(40) as usize };
            let start = random.below(60) as usize;
            let message = &words[start..start + length];
            stream.extend(sender.frame(message, None));
            expected.push(told(Message::Binary(message)));
        }
        let parts = cut(&stream, &mut random);
        case.try_on(&stream, || {
            parts.iter().for_each(|part| bench.feed(part).expect("a message"));
            assert_eq!(bench.messages, expected);
        });
    }
}
