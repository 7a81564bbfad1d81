//! Server-sent events (WHATWG HTML, 9.2) to several viewers. Who comes back says what it heard last
//! and is told what came since; who was away for too long, or is new, is told all. Who does not
//! read is dropped: what waits for it is bounded, and nobody waits for it.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::server::{Connection, Reply};

pub const VIEWERS_MAX: usize = 64;
/// Messages that may wait for a viewer, besides what its socket has taken.
const WAITING_MAX: usize = 32;
/// What is kept for those who come back.
const KEPT_MAX: usize = 120;
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Milliseconds until a browser comes back.
const RETRY_MS: u32 = 1_000;

struct Viewer {
    messages: mpsc::Sender<Bytes>,
    connection: Connection,
}

/// See the module's description.
pub struct Hub {
    viewers: Vec<Viewer>,
    /// Tells the messages of this hub from those of another run on the same port.
    epoch: u64,
    /// Of the last message.
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

    /// Viewers that did not read.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// To all, and to those who come back. `data` is one line.
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

    /// What was said before says nothing any more to those who come back: they are told all.
    pub fn forget(&mut self) {
        self.kept.clear();
        self.kept_bytes = 0;
    }

    /// One viewer more, which has heard `last`. `all` makes what a new one is told first.
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

    /// All viewers are told what waits for them, and then that it is over.
    pub fn close(&mut self) {
        self.viewers.clear();
    }

    /// Whether what came after a message is still known.
    pub fn knows(&self, last: &str) -> bool {
        self.since(last).is_some()
    }

    /// What came after a message, if that is known.
    fn since(&self, last: &str) -> Option<Vec<Bytes>> {
        let (epoch, number) = last.split_once('-')?;
        let number: u64 = number.parse().ok().filter(|number| *number <= self.number)?;
        let first = self.kept.front().map_or(self.number + 1, |(number, _)| *number);
        let is_known = u64::from_str_radix(epoch, 16).ok()? == self.epoch && first <= number + 1;
        let behind = self.kept.iter().filter(|(it, _)| *it > number);
        is_known.then(|| behind.map(|(_, message)| message.clone()).collect())
    }

    /// With the number of the last one.
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
    fn who_comes_back_hears_what_came_since_and_nothing_twice() {
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
    fn what_is_kept_is_bounded_by_messages_and_bytes() {
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
