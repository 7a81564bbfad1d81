//! Something was asked of the target and is to be answered: by an HTTP answer, by a message, or by
//! room in the socket for what is sent.

pub(super) mod answer;

use throng_base::{Said, Time};

use super::deliver::withdraw;
use crate::recorder::Attempt;
use crate::recorder::spent::OpeningTimes;
use crate::shard::Lane;
use crate::shard::rare::Rare;

/// What was asked for, as far as it has come.
pub(super) struct Exchange {
    /// When the request was handed over for sending; of a message that is only waited for, when
    /// the waiting began to count.
    pub(super) sent: Time,
    pub(super) first_byte: Time,
    pub(super) bytes_in: u64,
    /// As often as it was sent.
    pub(super) bytes_out: u64,
    /// What only some exchanges need.
    pub(super) rare: Option<Box<Rare>>,
    /// What the reply carries; 0 where replies carry nothing.
    pub(super) number: u32,
    pub(super) status: u16,
    pub(super) keep_alive: bool,
    pub(super) awaits: Awaits,
}

/// What an exchange waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    /// The answer to an HTTP request, over a connection that may have been used before.
    Answer { reused: bool },
    /// A message, or an answer on a raw stream.
    Message,
    /// Room in the socket for its own message.
    Room,
    /// The handshake of TLS.
    Tls,
}

/// Whether it is known of a request without an answer that the target has not looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unheard {
    No,
    /// The target had closed the idle connection just when the request was sent over it again.
    Idle,
    /// The target says so (RFC 9113, 8.7): a stream above the last one that it looks at before it
    /// goes away, or a stream that it refused.
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

    /// It is the first one on its connection.
    pub(super) fn is_first(&mut self, opening: Option<OpeningTimes>, shard: &Lane) {
        if opening.is_some() {
            self.rare(shard).opening = opening;
        }
    }

    /// How long the request is, as it was written last.
    pub(super) fn request_bytes(&self) -> u64 {
        self.bytes_out - self.rare.as_ref().map_or(0, |rare| rare.before_bytes)
    }

    /// How often the request was sent once more before this.
    pub(super) fn resends(&self) -> u8 {
        self.rare.as_ref().map_or(0, |rare| rare.resends)
    }

    /// The request is one that is sent once more.
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

    /// What it needed goes back to the shard.
    pub(super) fn forget(self, shard: &Lane) {
        if let Some(rare) = self.rare {
            shard.take_back(rare);
        }
    }

    /// What has come of it in time.
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

    /// What was sent is not to be expected anywhere.
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
