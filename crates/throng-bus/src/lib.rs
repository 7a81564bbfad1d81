//! The message bus of a fleet. A [`Bus`] has four services: messages to current listeners, a log
//! that keeps what it has acknowledged, registers written by compare-and-set, and blobs named by
//! digest. [`memory`] is an implementation for tests, with seeded faults; [`nats`] is the real one,
//! NATS with JetStream, whose [`server`] and [`keys`] are here too.
//!
//! Names are words joined by dots, `m.RUN.AGENT`; a pattern can contain `*` for one word and `>`
//! for the rest. A word consists of letters, digits, `-` and `_` ([`is_word`]).

#![allow(async_fn_in_trait)] // Each machine uses its bus on one thread.

#[macro_use]
extern crate throng_base;

#[cfg(test)]
mod contract;
pub mod identity;
pub mod keys;
pub mod memory;
pub mod nats;
#[cfg(test)]
mod port;
pub mod server;
mod version;

pub use version::Version;

use std::time::Duration;

use bytes::Bytes;
use throng_base::Said;
use tokio::sync::{mpsc, watch};

/// Maximum size of a message with headers on the server: the most that NATS recommends. The packed
/// line of a second with a thousand steps is smaller.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// Maximum size of a payload: the rest is for headers.
pub const PAYLOAD_BYTES_MAX: usize = MESSAGE_BYTES_MAX - (64 << 10);
/// Maximum size of a blob.
pub const BLOB_BYTES_MAX: usize = 1 << 30;

/// A message to current listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    pub payload: Bytes,
    /// The subject for the reply, if one is expected.
    pub reply: Option<String>,
    /// The revision, for a register that was written.
    pub revision: Option<u64>,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    pub subject: String,
    /// Its sequence number in the log, which only grows.
    pub sequence: u64,
    pub payload: Bytes,
    /// The number of later entries; zero if the follower has caught up.
    pub behind: u64,
}

/// The value of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Starts at 1; each write to any register has a higher one.
    pub revision: u64,
    pub value: Bytes,
}

/// Why an operation on the bus failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusError {
    /// No reply: it may have succeeded. Can be retried.
    Cut,
    /// The register has a different revision.
    Conflict,
    /// The log or the store is full. Can be retried when there is space.
    Full,
    /// It can never succeed: a right is missing, or the request is invalid.
    Refused(Said),
}

/// The state of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Not connected yet.
    Begun,
    Up,
    /// Reconnecting.
    Cut,
    /// It can never succeed: a wrong key or certificate, or an outdated bus.
    Refused(Said),
}

/// Messages that match a pattern; if more than [`WAITING_MAX`] are waiting, further ones are lost.
pub type Subscription = mpsc::Receiver<Message>;
/// Log entries that match a pattern, in order and without gaps.
pub type Following = mpsc::Receiver<Logged>;
/// Maximum number of messages that wait for the subscriber.
pub const WAITING_MAX: usize = 4_096;

/// The connection of one machine. Clones share it; it is closed with the last one.
pub trait Bus: Clone + 'static {
    /// The state of the connection, and its changes.
    fn link(&self) -> watch::Receiver<Link>;

    /// Sends to current listeners, without confirmation of delivery.
    fn publish(&self, subject: &str, payload: Bytes);

    /// Subscribes, also across disconnects: messages sent meanwhile are lost.
    async fn subscribe(&self, pattern: &str) -> Result<Subscription, BusError>;

    /// Sends a request to a listener, which replies by [`Bus::publish`] to [`Message::reply`].
    async fn request(
        &self,
        subject: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<Bytes, BusError>;

    /// Appends to the log and returns when the entry is durable. Another append with the same ID
    /// soon afterwards is ignored.
    async fn append(&self, subject: &str, id: &str, payload: Bytes) -> Result<(), BusError>;

    /// All current and future log entries that match a pattern, from a sequence on.
    async fn follow(&self, pattern: &str, from: u64) -> Result<Following, BusError>;

    /// The value of a register, if it was ever written.
    async fn read(&self, key: &str) -> Result<Option<Entry>, BusError>;

    /// Writes a register if it still has this revision (0: never written); returns the new one.
    /// Subscribers of `written.KEY` are notified with the revision.
    async fn write(&self, key: &str, expected: u64, value: Bytes) -> Result<u64, BusError>;

    /// The names of the registers that match a pattern.
    async fn keys(&self, pattern: &str) -> Result<Vec<String>, BusError>;

    /// Stores a blob; its name is its SHA-256 in hexadecimal.
    async fn store(&self, blob: Bytes) -> Result<String, BusError>;

    /// A blob by its name, verified; None if the bus does not have it.
    async fn fetch(&self, name: &str) -> Result<Option<Bytes>, BusError>;
}

/// True for a valid single word of a name.
pub fn is_word(word: &str) -> bool {
    let is_of = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !word.is_empty() && word.len() <= 64 && word.chars().all(is_of)
}

/// True if a name matches the pattern.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut wanted, mut words) = (pattern.split('.'), name.split('.'));
    loop {
        match (wanted.next(), words.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_words() {
        let cases = [
            ("m.run.a", "m.run.a", true),
            ("m.*.a", "m.run.a", true),
            ("m.*", "m.run.a", false),
            ("m.>", "m.run.a", true),
            ("m.>", "m", false),
            (">", "m", true),
            ("m.run.a", "m.run", false),
            ("m.run", "m.run.a", false),
        ];
        for (pattern, name, wanted) in cases {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
        assert!(is_word("agent-7_a") && !is_word("") && !is_word("a.b") && !is_word("*"));
        assert!(!is_word("ä") && !is_word(&"a".repeat(65)));
    }
}
