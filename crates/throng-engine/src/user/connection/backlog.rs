//! Messages that are kept for a later step: a queue with its own limit, so that a target that sends
//! many messages cannot exhaust the memory of the generator.

use std::collections::VecDeque;

/// Most messages in one queue of a user.
pub(in crate::user) const WAITING_MESSAGES_MAX: usize = 16_384;
/// Most bytes in one queue; a single message may be larger.
pub(in crate::user) const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// An item of a backlog.
pub(in crate::user) trait Waits {
    fn bytes(&self) -> usize;
}

#[derive(Debug)]
pub(in crate::user) struct Backlog<T> {
    queue: VecDeque<T>,
    bytes: usize,
}

impl<T> Default for Backlog<T> {
    fn default() -> Backlog<T> {
        Backlog { queue: VecDeque::new(), bytes: 0 }
    }
}

impl<T: Waits> Backlog<T> {
    pub(in crate::user) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(in crate::user) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(in crate::user) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(in crate::user) fn iter(&self) -> impl Iterator<Item = &T> {
        self.queue.iter()
    }

    /// Whether this many more bytes are within the limits.
    pub(in crate::user) fn has_room(&self, bytes: usize) -> bool {
        self.is_empty()
            || self.len() < WAITING_MESSAGES_MAX && self.bytes + bytes <= WAITING_BYTES_MAX
    }

    pub(in crate::user) fn push(&mut self, one: T) {
        self.bytes += one.bytes();
        self.queue.push_back(one);
    }

    pub(in crate::user) fn push_first(&mut self, one: T) {
        self.bytes += one.bytes();
        self.queue.push_front(one);
    }

    pub(in crate::user) fn pop(&mut self) -> Option<T> {
        self.pop_if(|_| true)
    }

    /// Takes the first item if it matches.
    pub(in crate::user) fn pop_if(&mut self, is_such: impl Fn(&T) -> bool) -> Option<T> {
        let first = self.queue.pop_front_if(|first| is_such(first))?;
        self.bytes -= first.bytes();
        Some(first)
    }

    /// Takes the first item that matches.
    pub(in crate::user) fn take_first(&mut self, is_such: impl Fn(&T) -> bool) -> Option<T> {
        let at = self.queue.iter().position(is_such)?;
        let found = self.queue.remove(at)?;
        self.bytes -= found.bytes();
        Some(found)
    }

    /// All items of this queue, then all of the other.
    pub(in crate::user) fn followed_by(mut self, behind: Backlog<T>) -> Backlog<T> {
        if self.is_empty() {
            return behind;
        }
        self.bytes += behind.bytes;
        self.queue.extend(behind.queue);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Waits for Vec<u8> {
        fn bytes(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn messages_wait_in_order_and_within_the_limits() {
        let mut backlog = Backlog::default();
        assert!(backlog.has_room(WAITING_BYTES_MAX + 1), "one message may have any size");
        for number in 0..WAITING_MESSAGES_MAX {
            assert!(backlog.has_room(1));
            backlog.push(vec![number as u8]);
        }
        assert!(!backlog.has_room(1), "there are too many");
        assert_eq!(backlog.take_first(|one| one[0] == 7), Some(vec![7]));
        assert!(backlog.has_room(1));
        assert!(!backlog.has_room(WAITING_BYTES_MAX), "they have too many bytes");
        assert_eq!(backlog.pop_if(|one| one[0] == 1), None);
        assert_eq!((backlog.pop(), backlog.pop()), (Some(vec![0]), Some(vec![1])));
        let mut first = Backlog::default();
        first.push(vec![9; WAITING_BYTES_MAX]);
        first.push_first(vec![8]);
        let mut all = first.followed_by(backlog);
        assert!(!all.has_room(0));
        assert_eq!((all.pop(), all.len()), (Some(vec![8]), WAITING_MESSAGES_MAX - 2));
    }
}
