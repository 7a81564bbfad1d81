//! Bytes that a socket has not taken yet.

use std::sync::Arc;

use crate::transport::pieces::Pieces;

pub(in crate::user) struct Unsent {
    /// Bytes that only this connection sends.
    own: Vec<u8>,
    /// Bytes that follow, shared by all users.
    shared: Option<Arc<[u8]>>,
    /// How many bytes of both the socket has taken.
    sent: usize,
}

impl Unsent {
    /// The rest of both after the socket has taken `sent` bytes.
    pub(in crate::user) fn new(own: &[u8], shared: Option<&Arc<[u8]>>, sent: usize) -> Unsent {
        Unsent {
            own: own.get(sent..).unwrap_or_default().to_vec(),
            shared: shared.cloned(),
            sent: sent.saturating_sub(own.len()),
        }
    }

    pub(in crate::user) fn left(&self) -> Pieces<'_> {
        let shared = self.shared.as_deref().unwrap_or_default();
        Pieces { own: &self.own, shared }.behind(self.sent)
    }

    pub(in crate::user) fn has_sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Appends bytes. Sent bytes are dropped as soon as they are the larger part: a target that
    /// reads slowly and never catches up costs no extra memory, and each byte is moved at most once
    /// per byte sent.
    pub(in crate::user) fn add(&mut self, own: &[u8], shared: Option<&Arc<[u8]>>) {
        if self.shared.is_some() || self.sent > self.own.len() / 2 {
            *self = Unsent { own: self.left().to_vec(), shared: None, sent: 0 };
        }
        self.own.extend_from_slice(own);
        self.shared = shared.cloned();
    }

    /// Heap bytes of its own, without shared ones.
    pub(in crate::user) fn heap_bytes(&self) -> usize {
        self.own.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_starts_where_the_socket_stopped() {
        let body: Arc<[u8]> = (*b"body").into();
        let whole = b"headbody";
        for first in 0..=whole.len() {
            for second in 0..=whole.len() - first {
                let mut unsent = Unsent::new(b"head", Some(&body), first);
                assert_eq!(unsent.left().to_vec(), whole[first..]);
                assert!(unsent.heap_bytes() <= 4, "the body is not copied");
                unsent.has_sent(second);
                assert_eq!(unsent.left().to_vec(), whole[first + second..]);
                let more = [&whole[first + second..], b"morebody"].concat();
                unsent.add(b"more", Some(&body));
                assert_eq!(unsent.left().to_vec(), more);
                unsent.add(b"!", None);
                assert_eq!(unsent.left().to_vec(), [&more[..], b"!"].concat());
            }
        }
        assert_eq!(Arc::strong_count(&body), 1, "nothing holds it any more");
    }

    /// The target reads as fast as bytes are added, and never catches up.
    #[test]
    fn sent_bytes_are_dropped() {
        let mut unsent = Unsent::new(&[0; 1000], None, 0);
        for _ in 0..10_000 {
            unsent.has_sent(100);
            unsent.add(&[0; 100], None);
            assert_eq!(unsent.left().len(), 1000);
            assert!(unsent.heap_bytes() <= 4_400, "{}", unsent.heap_bytes());
        }
    }
}
