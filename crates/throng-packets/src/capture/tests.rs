//! Captures of all kinds, whole and damaged.

use super::sample::{ACK, CLIENT, SERVER, Wrap, pcap, pcapng, tcp, udp, udp6};
use super::*;

/// Time, source port, transport, payload.
type Seen = (u64, u16, Carried, Vec<u8>);

fn all(bytes: &[u8]) -> (Vec<Seen>, Passed) {
    let mut frames = Vec::new();
    let passed = read(bytes, &mut |frame| {
        frames.push((frame.time_ns, frame.source.port(), frame.carried, frame.payload.to_vec()));
    });
    (frames, passed.expect("a capture"))
}

#[test]
fn all_links_and_both_formats_are_read() {
    let packets = [
        tcp(CLIENT, SERVER, 7, ACK, b"hello"),
        udp(SERVER, CLIENT, b"to you"),
        udp6(CLIENT, SERVER, b"six"),
        vec![0x45, 0, 0, 24, 0, 0, 0, 0, 64, 1, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 8, 0, 0, 0],
    ];
    for wrap in Wrap::ALL {
        for (file, format) in [(pcap(wrap, &packets), "pcap"), (pcapng(wrap, &packets), "ng")] {
            assert!(is_capture(&file));
            let (frames, passed) = all(&file);
            let about = format!("{wrap:?} {format} {passed:?}");
            assert_eq!((passed.frames, passed.others, passed.torn), (4, 1, false), "{about}");
            let payloads: Vec<&[u8]> = frames.iter().map(|frame| &frame.3[..]).collect();
            assert_eq!(payloads, [&b"hello"[..], b"to you", b"six"], "{about}");
            assert_eq!(frames[1].0 - frames[0].0, 1_000_000, "{about}");
            assert_eq!(frames[0].0, 1_000_000_000_000, "{about}");
            assert!(matches!(frames[0].2, Carried::Segment { sequence: 7, syn: false, .. }));
            assert_eq!((frames[1].1, frames[1].2), (SERVER, Carried::Datagram));
        }
    }
}

#[test]
fn truncated_frames_are_reported() {
    let packets = [udp(SERVER, CLIENT, b"to you"), udp(SERVER, CLIENT, b"again")];
    for file in [pcap(Wrap::Raw, &packets), pcapng(Wrap::Raw, &packets)] {
        let (frames, passed) = all(&file[..file.len() - 3]);
        assert_eq!((frames.len(), passed.torn), (1, true), "{passed:?}");
    }
    assert_eq!(read(&b"no capture at all"[..], &mut |_| ()), Err(NoCapture));
    assert_eq!(read(&b""[..], &mut |_| ()), Err(NoCapture));
    // A truncated frame.
    let mut file = pcap(Wrap::Raw, &[udp(SERVER, CLIENT, b"to you")]);
    let length = file.len() - 2;
    file.truncate(length);
    file[32..36].copy_from_slice(&((length - 40) as u32).to_le_bytes());
    let mut cut = Vec::new();
    let passed = read(&file[..], &mut |frame| cut.push((frame.payload.len(), frame.cut_bytes)));
    assert_eq!((cut, passed.unwrap().torn), (vec![(4, 2)], false));
}

#[test]
fn frames_may_be_larger_than_the_buffer() {
    let mut packet = udp(SERVER, CLIENT, &[7; 60_000]);
    packet.extend(vec![0; 3 * BUFFER_BYTES]);
    let (frames, passed) = all(&pcap(Wrap::Raw, &[packet.clone(), packet]));
    assert_eq!((frames.len(), passed.torn), (2, false));
    assert_eq!(frames[0].3.len(), 60_000);
}

#[test]
fn a_pipe_returns_few_bytes_per_read() {
    struct Drops<'a>(&'a [u8]);
    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let bytes = self.0.len().min(3);
            buffer[..bytes].copy_from_slice(&self.0[..bytes]);
            self.0 = &self.0[bytes..];
            Ok(bytes)
        }
    }
    let file = pcapng(Wrap::Raw, &[udp(SERVER, CLIENT, b"to you")]);
    let mut frames = 0;
    let passed = read(Drops(&file), &mut |_| frames += 1).expect("a capture");
    assert_eq!((frames, passed.torn), (1, false));
}

#[test]
fn fragments_and_foreign_links_are_counted() {
    let mut fragment = udp(SERVER, CLIENT, b"a part");
    fragment[6] = 0x20;
    let (frames, passed) = all(&pcap(Wrap::Ethernet, &[fragment]));
    assert_eq!((frames.len(), passed.fragments), (0, 1));
    let mut file = pcap(Wrap::Raw, &[udp(SERVER, CLIENT, b"x")]);
    file[20] = 105;
    let (frames, passed) = all(&file);
    assert_eq!((frames.len(), passed.foreign, passed.link_type), (0, 1, 105));
}

#[test]
fn fuzz_no_capture_is_too_broken() {
    let packets =
        [tcp(CLIENT, SERVER, 7, ACK, b"hello"), udp(SERVER, CLIENT, b"x"), udp6(1, 2, b"six")];
    let files: Vec<Vec<u8>> = Wrap::ALL
        .into_iter()
        .flat_map(|wrap| [pcap(wrap, &packets), pcapng(wrap, &packets)])
        .collect();
    let corpus: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    throng_fuzz::mutations(&corpus, |input, _| {
        let mut bytes = 0;
        if let Ok(passed) = read(input, &mut |frame| bytes += frame.payload.len()) {
            assert!(passed.frames as usize <= input.len() && bytes <= input.len());
        }
    });
}
