//! Segments in any order give the stream; missing bytes are a gap.

use throng_base::Random;

use super::*;
use crate::capture::read;
use crate::capture::sample::{ACK, CLIENT, FIN, RST, SERVER, SYN, Wrap, pcap, tcp, udp};

const UP: (u16, u16) = (CLIENT, SERVER);
const DOWN: (u16, u16) = (SERVER, CLIENT);

fn segment(way: (u16, u16), sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    tcp(way.0, way.1, sequence, flags, payload)
}

/// The events, one per line: `1^hello`, `1v` and so on.
fn story(packets: &[Vec<u8>], port: Option<u16>) -> Vec<String> {
    let mut streams = Streams::new(port);
    let mut out: Vec<String> = Vec::new();
    let mut sink = |event: Event<'_>| {
        let way = if event.direction == Direction::Up { '^' } else { 'v' };
        let head = format!("{}{way}", event.ends.number);
        match event.what {
            What::Bytes(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                match out.last_mut().filter(|last| last.starts_with(&format!("{head}="))) {
                    Some(last) => last.push_str(&text),
                    None => out.push(format!("{head}={text}")),
                }
            }
            What::Datagram(bytes) => out.push(format!("{head}#{}", bytes.escape_ascii())),
            What::Gap(bytes) => out.push(format!("{head}?{bytes}")),
            What::End { reset } => out.push(format!("{head}!{}", if reset { "r" } else { "f" })),
        }
    };
    read(&pcap(Wrap::Ethernet, packets)[..], &mut |frame| streams.frame(&frame, &mut sink))
        .expect("a capture");
    streams.end(&mut sink);
    out
}

fn opened(first: u32) -> Vec<Vec<u8>> {
    vec![
        segment(UP, first, SYN, b""),
        segment(DOWN, 900, SYN | ACK, b""),
        segment(UP, first.wrapping_add(1), ACK, b""),
    ]
}

#[test]
fn order_repetition_and_overlap_do_not_matter() {
    let first = u32::MAX - 2;
    let at = |offset: u32| first.wrapping_add(1 + offset);
    let mut packets = opened(first);
    packets.push(segment(UP, at(3), ACK, b"lo wo"));
    packets.push(segment(DOWN, 901, ACK, b"ye"));
    packets.push(segment(UP, at(0), ACK, b"hel"));
    packets.push(segment(UP, at(0), ACK, b"hel"));
    packets.push(segment(UP, at(10), ACK | FIN, b"d!"));
    packets.push(segment(UP, at(6), ACK, b"worl"));
    packets.push(segment(DOWN, 902, ACK | FIN, b"es"));
    assert_eq!(story(&packets, None), ["1v=ye", "1^=hello world!", "1^!f", "1v=s", "1v!f"]);
}

#[test]
fn shuffled_segments_give_the_same_stream() {
    let text: Vec<u8> = (0..400u32).map(|at| b'a' + (at % 26) as u8).collect();
    let want = vec![format!("1^={}", String::from_utf8_lossy(&text)), "1^!f".to_string()];
    for round in 0..200 {
        let mut random = Random::for_owner(7, round);
        let first = random.next_u64() as u32;
        let mut segments = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let length = (1 + random.below(40) as usize).min(text.len() - at);
            let begin = at.saturating_sub(random.below(9) as usize);
            let flags = if at + length == text.len() { ACK | FIN } else { ACK };
            let sequence = first.wrapping_add(1 + begin as u32);
            segments.push(segment(UP, sequence, flags, &text[begin..at + length]));
            at += length;
        }
        for _ in 0..random.below(5) {
            let again = segments[random.below(segments.len() as u64) as usize].clone();
            segments.push(again);
        }
        for last in (1..segments.len()).rev() {
            segments.swap(last, random.below(last as u64 + 1) as usize);
        }
        let packets = [opened(first), segments].concat();
        assert_eq!(story(&packets, None), want, "round {round}");
    }
}

#[test]
fn missing_segments_are_a_gap() {
    let mut packets = opened(100);
    packets.push(segment(UP, 101, ACK, b"one"));
    packets.push(segment(UP, 110, ACK, b"three"));
    assert_eq!(story(&packets, None), ["1^=one", "1^?6", "1^=three"]);
    // The peer has acknowledged it, so it was sent.
    let mut acknowledged = segment(DOWN, 901, ACK, b"");
    acknowledged[28..32].copy_from_slice(&115u32.to_be_bytes());
    packets.extend(std::iter::repeat_n(acknowledged, PATIENCE_FRAMES as usize + 1));
    packets.push(segment(DOWN, 901, ACK, b"then"));
    assert_eq!(story(&packets, None), ["1^=one", "1^?6", "1^=three", "1v=then"]);
}

#[test]
fn connections_are_separated() {
    let mut packets = opened(100);
    packets.push(segment(UP, 101, ACK, b"a"));
    packets.push(segment(DOWN, 901, RST, b""));
    packets.push(segment(UP, 102, ACK, b"late"));
    packets.extend(opened(5_000));
    packets.push(segment(UP, 5_001, ACK, b"b"));
    packets.push(udp(SERVER, CLIENT, b"d"));
    packets.push(tcp(CLIENT, 22, 7, ACK, b"not this"));
    let story_of = |port| story(&packets, port);
    assert_eq!(story_of(Some(SERVER)), ["1^=a", "1v!r", "1^!r", "2^=b", "3v#d"]);
    assert_eq!(story_of(Some(22)), ["1^=not this"]);
    assert_eq!(story_of(Some(23)), [""; 0]);
}

#[test]
fn a_stream_may_be_captured_from_its_middle() {
    let packets = [segment(DOWN, 77, ACK, b"push"), segment(DOWN, 81, ACK, b"ed")];
    assert_eq!(story(&packets, None), ["1v=pushed"]);
}

#[test]
fn fuzz_any_segments_stay_bounded() {
    for round in 0..300 {
        let mut random = Random::for_owner(11, round);
        let mut packets = Vec::new();
        for _ in 0..random.below(200) {
            let way = if random.below(2) == 0 { UP } else { DOWN };
            let near = random.below(3_000) as u32;
            let sequence = if random.below(9) == 0 { random.next_u64() as u32 } else { near };
            let flags = random.next_u64() as u8;
            packets.push(segment(way, sequence, flags, &[b'x'; 90][..random.below(90) as usize]));
        }
        let bytes: usize = story(&packets, None).iter().map(String::len).sum();
        assert!(bytes <= packets.len() * 120, "round {round}");
    }
}
