//! Server-sent events (WHATWG HTML, 9.2) for several viewers. A viewer that reconnects names its
//! last message and gets the later ones; a new one, or one that was away too long, gets the whole
//! state. A viewer that does not read is dropped: its queue is bounded, and sending never blocks.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::server::{Connection, Reply};

pub const VIEWERS_MAX: usize = 64;
/// Maximum number of messages that wait for a viewer, in addition to its socket buffer.
const WAITING_MAX: usize = 32;
/// Maximum number of messages kept for viewers that reconnect.
const KEPT_MAX: usize = 120;
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Milliseconds until a browser reconnects.
const RETRY_MS: u32 = 1_000;

struct Viewer {
    messages: mpsc::Sender<Bytes>,
    connection: Connection,
}

/// See the module's description.
pub struct Hub {
    viewers: Vec<Viewer>,
    /// Distinguishes the messages of this hub from those of another run on the same port.
    epoch: u64,
    /// The number of the last message.
    number: u64,
    kept: VecDeque<(u64, Bytes)>,
    kept_bytes: usize,
    dropped: u64,
}

impl Hub {
    pub fn new(epoch: u64) -> Hub {
        let (viewers, kept) = (Vec::new(), VecDeque::new());
        Hub { viewers, epoch, number: 0, kept, kept_bytes: 0, dropped: 0 }
    }

    pub fn viewers(&mut self) -> usize {
        self.viewers.retain(|viewer| !viewer.messages.is_closed());
        self.viewers.len()
    }

    /// The number of viewers that were dropped because they did not read.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Sends to all viewers, and to those that reconnect later. `data` is one line.
    pub fn tell(&mut self, event: &str, data: &str) {
        self.number += 1;
        let message = self.message(event, data);
        self.kept_bytes += message.len();
        self.kept.push_back((self.number, message.clone()));
        while self.kept.len() > KEPT_MAX || self.kept_bytes > KEPT_BYTES_MAX {
            let Some((_, oldest)) = self.kept.pop_front() else { break };
            self.kept_bytes -= oldest.len();
        }
        let mut dropped = 0;
        self.viewers.retain(|viewer| match viewer.messages.try_send(message.clone()) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
            Err(mpsc::error::TrySendError::Full(_)) => {
                dropped += 1;
                viewer.connection.hang_up();
                false
            }
        });
        self.dropped += dropped;
    }

    /// Earlier messages are outdated: viewers that reconnect get the whole state.
    pub fn forget(&mut self) {
        self.kept.clear();
        self.kept_bytes = 0;
    }

    /// Adds a viewer whose last message was `last`. `all` creates the state for a new one.
    pub fn join(
        &mut self,
        last: Option<&str>,
        connection: &Connection,
        all: impl FnOnce(&Hub) -> Bytes,
    ) -> Reply {
        if self.viewers() >= VIEWERS_MAX {
            return Reply::text(503, "too many viewers\n");
        }
        let (messages, waiting) = mpsc::channel(WAITING_MAX + KEPT_MAX);
        match last.and_then(|last| self.since(last)) {
            Some(missed) => missed.into_iter().for_each(|it| drop(messages.try_send(it))),
            None => drop(messages.try_send(all(self))),
        }
        self.viewers.push(Viewer { messages, connection: connection.clone() });
        Reply::stream("text/event-stream", waiting)
    }

    /// Viewers get the messages that wait for them, and then the end of the stream.
    pub fn close(&mut self) {
        self.viewers.clear();
    }

    /// True if all messages after this one are kept.
    pub fn knows(&self, last: &str) -> bool {
        self.since(last).is_some()
    }

    /// The messages after this one, if they are kept.
    fn since(&self, last: &str) -> Option<Vec<Bytes>> {
        let (epoch, number) = last.split_once('-')?;
        let number: u64 = number.parse().ok().filter(|number| *number <= self.number)?;
        let first = self.kept.front().map_or(self.number + 1, |(number, _)| *number);
        let is_known = u64::from_str_radix(epoch, 16).ok()? == self.epoch && first <= number + 1;
        let behind = self.kept.iter().filter(|(it, _)| *it > number);
        is_known.then(|| behind.map(|(_, message)| message.clone()).collect())
    }

    /// A message with the number of the last one.
    pub fn message(&self, event: &str, data: &str) -> Bytes {
        let (epoch, number) = (self.epoch, self.number);
        let head = format!("id: {epoch:x}-{number}\nretry: {RETRY_MS}\nevent: {event}\n");
        Bytes::from(format!("{head}data: {data}\n\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(messages: Option<Vec<Bytes>>) -> Option<Vec<String>> {
        let text = |message: Bytes| String::from_utf8_lossy(&message).into_owned();
        let data = |text: String| text.split("data: ").nth(1).map(|it| it.trim().to_string());
        messages.map(|all| all.into_iter().map(text).filter_map(data).collect())
    }

    #[test]
    fn a_viewer_that_reconnects_gets_the_missed_messages_once() {
        let mut hub = Hub::new(0xab);
        (1..=5).for_each(|at: u64| hub.tell("second", &at.to_string()));
        let wanted = |texts: &[&str]| Some(texts.iter().map(|it| it.to_string()).collect());
        assert_eq!(numbers(hub.since("ab-3")), wanted(&["4", "5"]));
        assert_eq!(numbers(hub.since("ab-0")), wanted(&["1", "2", "3", "4", "5"]));
        assert_eq!(numbers(hub.since("ab-5")), wanted(&[]));
        for stale in ["ab-6", "ac-3", "3", "ab-", "", "ab-x"] {
            assert_eq!(hub.since(stale), None, "{stale}");
        }
        hub.forget();
        assert_eq!(hub.since("ab-3"), None, "it is told all");
        assert_eq!(numbers(hub.since("ab-5")), wanted(&[]));
    }

    #[test]
    fn the_backlog_is_bounded_by_messages_and_bytes() {
        let mut hub = Hub::new(1);
        (0..1_000).for_each(|_| hub.tell("second", "x"));
        assert_eq!(hub.kept.len(), KEPT_MAX);
        assert_eq!(hub.since("1-879"), None);
        assert_eq!(hub.since("1-880").map(|it| it.len()), Some(120));
        let large = "x".repeat(KEPT_BYTES_MAX / 2);
        (0..5).for_each(|_| hub.tell("second", &large));
        assert!(hub.kept_bytes <= KEPT_BYTES_MAX);
    }
}
