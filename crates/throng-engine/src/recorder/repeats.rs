//! Whether a request was sent before: tracked from the first conflict (409, 422) of a step on, so
//! that other steps do not pay for it. The memory is constant.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;

/// Bits of a filter: 128 KiB. With [`ENTRIES_MAX`] entries, one new request in 30 is taken for an
/// old one.
const BITS: u64 = 1 << 20;
const ENTRIES_MAX: u64 = 100_000;

/// A request that differs per user, by path and body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// For an HTTP/1.1 request as written; header fields are ignored.
    pub(crate) fn new(written: &[u8], body: &[u8]) -> Fingerprint {
        let line = memchr::memchr(b'\r', written).unwrap_or(written.len());
        let own = memchr::memmem::find(written, b"\r\n\r\n").map_or(written.len(), |at| at + 4);
        let mut hasher = DefaultHasher::new();
        hasher.write(&written[..line]);
        hasher.write(&written[own..]);
        hasher.write(body);
        Fingerprint(hasher.finish())
    }
}

/// Requests that were sent (a Bloom filter, 1970, with two bits each).
pub(crate) struct Repeats {
    bits: Box<[u64]>,
    entries: u64,
}

impl Repeats {
    pub(crate) fn new() -> Repeats {
        Repeats { bits: vec![0; (BITS / 64) as usize].into(), entries: 0 }
    }

    /// Adds a request; true if it was present.
    pub(crate) fn note(&mut self, Fingerprint(hash): Fingerprint) -> bool {
        if self.entries >= ENTRIES_MAX {
            self.bits.fill(0);
            self.entries = 0;
        }
        let mut known = true;
        for place in [hash % BITS, (hash >> 32) % BITS] {
            let (word, bit) = (&mut self.bits[(place / 64) as usize], 1 << (place % 64));
            known &= *word & bit != 0;
            *word |= bit;
        }
        self.entries += u64::from(!known);
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_identified_by_path_and_body() {
        let one = Fingerprint::new(b"POST /a HTTP/1.1\r\nx: 1\r\n\r\n{\"id\":7}", b"");
        assert_eq!(one, Fingerprint::new(b"POST /a HTTP/1.1\r\nx: 2\r\n\r\n{\"id\":7}", b""));
        assert_eq!(one, Fingerprint::new(b"POST /a HTTP/1.1\r\n\r\n", b"{\"id\":7}"));
        for other in ["POST /b HTTP/1.1\r\n\r\n{\"id\":7}", "POST /a HTTP/1.1\r\n\r\n{\"id\":8}"] {
            assert_ne!(one, Fingerprint::new(other.as_bytes(), b""));
        }
    }

    #[test]
    fn sent_requests_are_found_with_few_false_positives() {
        let mut repeats = Repeats::new();
        let print = |id: u64| Fingerprint::new(format!("GET /{id}\r\n\r\n").as_bytes(), b"");
        let wrong = (0..50_000).filter(|id| repeats.note(print(*id))).count();
        assert!(wrong < 500, "{wrong}");
        assert!((0..50_000).all(|id| repeats.note(print(id))));
        for id in 50_000..200_000 {
            repeats.note(print(id));
        }
        let again = (0..1_000).filter(|id| repeats.note(print(*id))).count();
        assert!(again < 100, "it begins anew: {again}");
    }
}
