//! Letters from any thread to the connections of any worker: each worker has a bounded mailbox, and
//! is woken when the first letter arrives. Letters that wait together are processed together.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::address::Address;
use crate::chat::Room;
use crate::mqtt::{Client, Message, Target};
use crate::redis::Ticket;
use crate::sums::lock;
use crate::system::Bell;

/// Maximum number of letters in a mailbox.
const MAILBOX_LETTERS_MAX: usize = 100_000;
/// Maximum size of the letters in a mailbox.
const MAILBOX_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A message encoded once for all receivers; only its timestamp differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamped {
    bytes: Box<[u8]>,
    /// Position of the eight-byte timestamp.
    at: usize,
}

impl Stamped {
    pub(crate) fn new(bytes: Vec<u8>, at: usize) -> Stamped {
        Stamped { bytes: bytes.into(), at }
    }

    /// Writes the message with this timestamp, in nanoseconds of the wall clock, to `out`.
    pub(crate) fn stamp(&self, sent_ns: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.bytes);
        out[self.at..self.at + 8].copy_from_slice(&sent_ns.to_be_bytes());
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// A task for a worker's connections.
#[derive(Clone, Debug)]
pub(crate) enum Envelope {
    /// Delivers a message to the users of a room that are on this worker.
    Room(Arc<Room>, Arc<[u8]>),
    /// Delivers a push, stamped when it is written, to connections of this worker.
    Push(Box<[Address]>, Arc<Stamped>),
    /// Redis has confirmed these binds, or has not in time.
    Bound(Box<[Ticket]>, bool),
    /// Delivers a message to subscribers whose connections are on this worker.
    Mqtt(Vec<Target>, Arc<Message>),
    /// Delivers queued messages to a subscriber that can accept them.
    MqttRoom(Arc<Client>),
    /// Closes a connection gracefully.
    End(Address),
    /// The number and body of a message to all logged-in users of the messenger.
    Broadcast(u64, Arc<[u8]>),
}

impl Envelope {
    fn size(&self) -> usize {
        match self {
            Envelope::Room(_, bytes) | Envelope::Broadcast(_, bytes) => bytes.len(),
            Envelope::Push(addresses, frame) => frame.len() + size_of_val::<[_]>(addresses),
            Envelope::Bound(tickets, _) => size_of_val::<[_]>(tickets),
            Envelope::Mqtt(targets, message) => size_of_val(&**targets) + message.size(),
            Envelope::MqttRoom(_) | Envelope::End(_) => 0,
        }
    }
}

/// The mailboxes of all workers; the admin's is last.
pub(crate) struct Mailboxes {
    boxes: Vec<Mailbox>,
    /// Deliveries dropped because a mailbox was full.
    dropped: AtomicU64,
}

struct Mailbox {
    waiting: Mutex<Waiting>,
    bell: Bell,
}

#[derive(Default)]
struct Waiting {
    letters: Vec<Envelope>,
    bytes: usize,
    /// The worker has been woken and has not taken the letters yet.
    called: bool,
}

impl Mailboxes {
    /// Must be called before descriptor tables are separated, so that the descriptors have the same
    /// number in all of them.
    pub(crate) fn new(workers: usize) -> io::Result<Mailboxes> {
        let mailbox = |_| Ok(Mailbox { waiting: Mutex::default(), bell: Bell::new()? });
        let boxes = (0..=workers).map(mailbox).collect::<io::Result<_>>()?;
        Ok(Mailboxes { boxes, dropped: AtomicU64::new(0) })
    }

    pub(crate) fn workers(&self) -> usize {
        self.boxes.len() - 1
    }

    pub(crate) fn bell(&self, worker: usize) -> &Bell {
        &self.boxes[worker].bell
    }

    /// Wakes all workers.
    pub(crate) fn ring_all(&self) {
        self.boxes.iter().for_each(|mailbox| mailbox.bell.ring());
    }

    /// Returns whether the letter was accepted. A full mailbox rejects letters, except those about
    /// a single connection (its end, its bind). On rejection, the caller tries again, or counts the
    /// deliveries with [`Mailboxes::drop_deliveries`].
    pub(crate) fn send(&self, worker: u16, letter: Envelope) -> bool {
        let Some(mailbox) = self.boxes.get(usize::from(worker)) else { return false };
        let calls = {
            let waiting = &mut *lock(&mailbox.waiting);
            let size = letter.size();
            let full = waiting.letters.len() >= MAILBOX_LETTERS_MAX
                || waiting.bytes + size > MAILBOX_BYTES_MAX;
            if full
                && !matches!(letter, Envelope::End(_) | Envelope::Bound(..) | Envelope::MqttRoom(_))
            {
                return false;
            }
            waiting.bytes += size;
            waiting.letters.push(letter);
            !std::mem::replace(&mut waiting.called, true)
        };
        if calls {
            mailbox.bell.ring();
        }
        true
    }

    /// Takes all letters of a worker. The next letter wakes it again.
    pub(crate) fn take(&self, worker: usize) -> Vec<Envelope> {
        let waiting = &mut *lock(&self.boxes[worker].waiting);
        waiting.bytes = 0;
        waiting.called = false;
        std::mem::take(&mut waiting.letters)
    }

    pub(crate) fn drop_deliveries(&self, deliveries: u64) {
        self.dropped.fetch_add(deliveries, Ordering::Relaxed);
    }

    /// Deliveries dropped because a mailbox was full.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn reset(&self) {
        self.dropped.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Address = Address { worker: 0, generation: 0, place: 0 };

    #[test]
    fn a_mailbox_is_bounded_but_accepts_the_end_of_a_connection() {
        let post = Mailboxes::new(1).unwrap();
        let bytes: Arc<[u8]> = vec![0; 1024].into();
        let mut taken = 0;
        while post.send(0, Envelope::Broadcast(1, Arc::clone(&bytes))) {
            taken += 1;
        }
        assert_eq!(taken, MAILBOX_BYTES_MAX / 1024);
        assert!(post.send(0, Envelope::End(ADDRESS)));
        assert_eq!(post.take(0).len(), taken + 1);
        assert!(post.take(0).is_empty());
        let nothing: Arc<[u8]> = Arc::new([]);
        let taken = (0..).take_while(|_| post.send(0, Envelope::Broadcast(1, nothing.clone())));
        assert_eq!(taken.count(), MAILBOX_LETTERS_MAX);
        assert!(!post.send(9, Envelope::End(ADDRESS)), "there is no such worker");
    }
}
