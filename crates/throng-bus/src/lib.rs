//! What the machines of a fleet talk over. A [`Bus`] has four things: messages to whoever listens
//! now, a log that keeps what it has acknowledged, registers that are written by compare-and-set,
//! and blobs by their digest. [`memory`] is one for tests, with faults by a seed; [`nats`] is the
//! real one, NATS with JetStream, whose [`server`] and [`keys`] are here, too.
//!
//! Names are words joined by dots, `m.RUN.AGENT`; a pattern may have `*` for one word and `>` for
//! the rest. A word is of letters, digits, `-` and `_` ([`is_word`]).

#![allow(async_fn_in_trait)] // All of a machine's dealings with a bus are on one thread.

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

/// What the server takes as one message, with its headers: as much as NATS advises at most. The
/// packed line of a second of a thousand steps is smaller.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// A payload has at most so many bytes: the rest is for headers.
pub const PAYLOAD_BYTES_MAX: usize = MESSAGE_BYTES_MAX - (64 << 10);
/// A blob has at most so many bytes.
pub const BLOB_BYTES_MAX: usize = 1 << 30;

/// A message to whoever listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    pub payload: Bytes,
    /// Where an answer goes, if one is wanted.
    pub reply: Option<String>,
    /// Of a register that was written: which of its values this is.
    pub revision: Option<u64>,
}

/// What the log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    pub subject: String,
    /// Its number in the log; they only grow.
    pub sequence: u64,
    pub payload: Bytes,
    /// So many more wait behind it: none where whoever follows has caught up.
    pub behind: u64,
}

/// The value of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// From 1; each write of any register has a higher one.
    pub revision: u64,
    pub value: Bytes,
}

/// Why the bus did not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusError {
    /// It did not answer: it may have done it. To be tried again.
    Cut,
    /// A register has another revision than was expected.
    Conflict,
    /// The log or the store is full. To be tried again when somebody has made room.
    Full,
    /// It will never do it: a right is missing, or what was asked for cannot be.
    Refused(Said),
}

/// How the connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Nothing was heard of the bus yet.
    Begun,
    Up,
    /// It is tried again and again.
    Cut,
    /// It will never come: a wrong key, a wrong certificate, a bus that is too old.
    Refused(Said),
}

/// The messages that come to a pattern; those beyond [`WAITING_MAX`] that nobody takes are lost.
pub type Subscription = mpsc::Receiver<Message>;
/// What the log has to a pattern, in its order, without gaps.
pub type Following = mpsc::Receiver<Logged>;
/// So many messages wait for whoever takes them.
pub const WAITING_MAX: usize = 4_096;

/// One machine's connection. Clones share it; it ends with the last one.
pub trait Bus: Clone + 'static {
    /// How the connection is, and when that changes.
    fn link(&self) -> watch::Receiver<Link>;

    /// To whoever listens now. Nobody tells whether it came.
    fn publish(&self, subject: &str, payload: Bytes);

    /// Listens, through all disconnections: what is said meanwhile is lost.
    async fn subscribe(&self, pattern: &str) -> Result<Subscription, BusError>;

    /// Asks whoever listens to a subject and answers by [`Bus::publish`] to [`Message::reply`].
    async fn request(
        &self,
        subject: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<Bytes, BusError>;

    /// Appends to the log and comes back when it has it for good. What is appended again under the
    /// same id soon after is there once.
    async fn append(&self, subject: &str, id: &str, payload: Bytes) -> Result<(), BusError>;

    /// All that the log has and will have to a pattern, from a sequence on.
    async fn follow(&self, pattern: &str, from: u64) -> Result<Following, BusError>;

    /// The value of a register, if it was ever written.
    async fn read(&self, key: &str) -> Result<Option<Entry>, BusError>;

    /// Writes a register if it still has this revision (0: never written); gives the new one. All
    /// who have subscribed to `written.KEY` are told, with the revision.
    async fn write(&self, key: &str, expected: u64, value: Bytes) -> Result<u64, BusError>;

    /// The names of the registers to a pattern.
    async fn keys(&self, pattern: &str) -> Result<Vec<String>, BusError>;

    /// Keeps a blob; its name is its SHA-256 in hexadecimal digits.
    async fn store(&self, blob: Bytes) -> Result<String, BusError>;

    /// A blob by its name, checked; none where the bus has none.
    async fn fetch(&self, name: &str) -> Result<Option<Bytes>, BusError>;
}

/// Whether this can be one word of a name.
pub fn is_word(word: &str) -> bool {
    let is_of = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !word.is_empty() && word.len() <= 64 && word.chars().all(is_of)
}

/// Whether a name is one of those that the pattern means.
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
    fn patterns_mean_words() {
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
