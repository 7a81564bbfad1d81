//! Sessions that receive the packets of mosquitto, intact and damaged, however they are split.

use super::super::*;
use super::session::{Bench, PLAIN};
use super::{CAPTURED, bytes_of, packets};

/// The effect of a stream on a session: its events, how it ends, and its answers.
type Made = (Vec<String>, Option<Violation>, Vec<u8>);

/// A session that waits for the replies to a SUBSCRIBE and an UNSUBSCRIBE, as the clients of the
/// captures did.
fn waiting(version: Version) -> Bench {
    let mut bench = Bench::open(version, &PLAIN, b"");
    let Bench { session, out, now } = &mut bench;
    let two = SubscribeOptions::new(Qos::ExactlyOnce);
    let filters = [("a/+", two), ("$share/g/b/#", two)];
    let subscribed = session.subscribe(&filters, Properties::NONE, *now, out);
    let left = session.unsubscribe(&["zz"], Properties::NONE, *now, out);
    assert_eq!((subscribed, left), (Ok(1), Ok(2)));
    out.clear();
    bench
}

fn made(version: Version, parts: &[&[u8]]) -> Made {
    let mut bench = waiting(version);
    let mut events = Vec::new();
    for part in parts {
        match bench.hear_all(part, &mut events) {
            Ok(()) => {}
            Err(violation) => return (events, Some(violation), bench.out),
        }
    }
    (events, None, bench.out)
}

/// The packets of mosquitto to the subscriber after its CONNACK.
fn heard(version: Version) -> Vec<u8> {
    let (_, hex) = if version == Version::V3 { CAPTURED[1] } else { CAPTURED[8] };
    let stream = bytes_of(hex);
    packets(&stream)[1..].concat()
}

#[test]
fn packets_of_mosquitto_do_not_depend_on_the_split() {
    for version in [Version::V3, Version::V5] {
        let stream = heard(version);
        let whole = made(version, &[&stream]);
        assert_eq!((whole.0.len(), whole.1), (packets(&stream).len(), None));
        assert!(whole.0.contains(&"a/1=one".to_string()), "{:?}", whole.0);
        throng_fuzz::splits(&stream, |parts| assert_eq!(made(version, parts), whole));
    }
}

#[test]
fn fuzz_damaged_streams_do_not_depend_on_the_split() {
    let streams = [heard(Version::V3), heard(Version::V5)];
    throng_fuzz::mutations(&[&streams[0], &streams[1]], |input, random| {
        let version = if random.chance(0.5) { Version::V3 } else { Version::V5 };
        let whole = made(version, &[input]);
        let at = random.below(input.len() as u64 + 1) as usize;
        let (first, second) = input.split_at(at);
        assert_eq!(made(version, &[first, second]), whole);
    });
}
