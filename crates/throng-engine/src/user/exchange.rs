//! An exchange: a request that waits for an HTTP response, for a message, or for room in the
//! socket.

pub(super) mod answer;

use throng_base::{Said, Time};

use super::deliver::withdraw;
use crate::recorder::Attempt;
use crate::recorder::spent::OpeningTimes;
use crate::shard::Lane;
use crate::shard::rare::Rare;

/// An exchange that has started, and what has arrived so far.
pub(super) struct Exchange {
    /// When the request was handed over for sending; for a message without a request, the start of
    /// the wait.
    pub(super) sent: Time,
    pub(super) first_byte: Time,
    pub(super) bytes_in: u64,
    /// Includes every resend.
    pub(super) bytes_out: u64,
    /// What only some exchanges need.
    pub(super) rare: Option<Box<Rare>>,
    /// Correlation number of the reply; 0 if the protocol has none.
    pub(super) number: u32,
    pub(super) status: u16,
    pub(super) keep_alive: bool,
    pub(super) awaits: Awaits,
}

/// What an exchange waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    /// The response to an HTTP request, over a connection that may have been used before.
    Answer { reused: bool },
    /// A message, or a reply on a raw stream.
    Message,
    /// Room in the socket for its own message.
    Room,
    /// The handshake of TLS.
    Tls,
}

/// Why the target is known not to have processed a request without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unheard {
    No,
    /// The target closed the idle connection just as the request was sent over it again.
    Idle,
    /// The target says so (RFC 9113, 8.7): the stream is above the last one that it processes
    /// before it closes, or it was refused.
    Told,
}

impl Exchange {
    pub(super) fn new(awaits: Awaits, sent: Time) -> Exchange {
        Exchange {
            sent,
            first_byte: Time::ZERO,
            bytes_in: 0,
            bytes_out: 0,
            rare: None,
            number: 0,
            status: 0,
            keep_alive: false,
            awaits,
        }
    }

    pub(super) fn rare(&mut self, shard: &Lane) -> &mut Rare {
        self.rare.get_or_insert_with(|| shard.rare())
    }

    /// This is the first exchange on its connection.
    pub(super) fn is_first(&mut self, opening: Option<OpeningTimes>, shard: &Lane) {
        if opening.is_some() {
            self.rare(shard).opening = opening;
        }
    }

    /// Length of the request as last written.
    pub(super) fn request_bytes(&self) -> u64 {
        self.bytes_out - self.rare.as_ref().map_or(0, |rare| rare.before_bytes)
    }

    /// How often the request was resent before this attempt.
    pub(super) fn resends(&self) -> u8 {
        self.rare.as_ref().map_or(0, |rare| rare.resends)
    }

    /// The request is a resend.
    pub(super) fn goes_again(&mut self, bytes_out: u64, resends: u8, shard: &Lane) {
        self.bytes_out = bytes_out;
        let rare = self.rare(shard);
        (rare.before_bytes, rare.resends) = (bytes_out, resends);
    }

    /// What was sent is in the ledger.
    pub(super) fn is_delivered(&mut self, sent: Option<(u16, u64)>, shard: &Lane) {
        if sent.is_some() {
            self.rare(shard).sent = sent;
        }
    }

    pub(super) fn came(&mut self, bytes: u64, now: Time) {
        if self.bytes_in == 0 {
            self.first_byte = now;
        }
        self.bytes_in += bytes;
    }

    pub(super) fn attempt(&self, now: Time, due: Time) -> Attempt {
        Attempt {
            latency: Some(now - due),
            waited: self.sent - due,
            first_byte: (self.first_byte > Time::ZERO).then(|| self.first_byte - due),
            code: self.status,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            retry_after_s: self.rare.as_ref().map_or(0, |rare| rare.retry_after_s),
            trace: self.rare.as_ref().and_then(|rare| rare.trace),
            opening: self.rare.as_ref().and_then(|rare| rare.opening),
        }
    }

    /// Returns what it borrowed to the shard.
    pub(super) fn forget(self, shard: &Lane) {
        if let Some(rare) = self.rare {
            shard.take_back(rare);
        }
    }

    /// What had arrived in time.
    pub(super) fn progress(&self, waited: &str) -> Said {
        let parts = self.rare.as_ref().map_or(0, |rare| rare.parts.count(None));
        match (self.awaits, self.bytes_in, self.status) {
            (Awaits::Message, ..) if parts > 0 => {
                say!(
                    "received {parts} packets of the reply, but not its last packet within {waited}"
                )
            }
            (Awaits::Tls, ..) => say!("the TLS handshake did not complete within {waited}"),
            (Awaits::Room, ..) => say!("the target did not read the message within {waited}"),
            (Awaits::Message, 0, _) => say!("no matching message within {waited}"),
            (Awaits::Message, bytes, _) => {
                say!("received {bytes} bytes, but no complete message within {waited}")
            }
            (Awaits::Answer { .. }, 0, _) => say!("no response within {waited}"),
            (Awaits::Answer { .. }, bytes, 0) => {
                say!("received only {bytes} bytes of the response headers within {waited}")
            }
            (Awaits::Answer { .. }, bytes, status) => {
                say!(
                    "received status {status} and {bytes} bytes, but no complete response within \
                     {waited}"
                )
            }
        }
    }

    /// Cancels the delivery of what was sent.
    pub(super) fn withdraw(&self, shard: &Lane, now: Time) {
        if let Some(sent) = self.rare.as_ref().and_then(|rare| rare.sent) {
            withdraw(sent, shard, now);
        }
    }
}

impl Awaits {
    pub(super) fn is_answer(self) -> bool {
        matches!(self, Awaits::Answer { .. })
    }
}
