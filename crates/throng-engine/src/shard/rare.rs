//! State that few exchanges need, in particular the bodies of HTTP responses: borrowed from the
//! shard and returned, so that no request allocates its own.

use std::hash::DefaultHasher;
use std::io;
use std::rc::Rc;

use throng_base::{Random, Time};
use throng_protocol::http1::ContentDecoder;
use throng_protocol::http1::digest::Challenge;

use crate::failure::Finding;
use crate::looked::{Kept, PartsOfReply, Tally};
use crate::prepared::CallResponse;
use crate::prepared::template::SentTo;
use crate::recorder::spent::OpeningTimes;
use crate::shard::budget::{Held, Purse};

/// A message that is written together with those of other steps.
pub(crate) struct Joined {
    /// Its end in the buffer.
    pub(crate) end: usize,
    /// Its length, and the correlation number of its reply.
    pub(crate) sent: (u64, u32),
    /// Random state and number before it, in case it must be written again.
    pub(crate) before: (Random, u32),
}

/// State that few exchanges need.
#[derive(Default)]
pub(crate) struct Rare {
    /// The body so far, if it is needed and arrived in pieces or encoded.
    pub(crate) body: Vec<u8>,
    /// Instead of the body, if that need not be kept.
    pub(crate) tally: Option<Tally>,
    /// The body's share of the budget.
    pub(crate) held: Held,
    /// The head and the first bytes of the body of a failed response, if it is the first of its
    /// kind: evidence.
    pub(crate) witnessed: Vec<u8>,
    pub(crate) decoder: Option<ContentDecoder>,
    /// The parts of the request that differ per user and are needed again.
    pub(crate) sent_to: SentTo,
    pub(crate) kept: Kept,
    /// The part of `bytes_out` that was sent before, to a connection whose target did not process
    /// it.
    pub(crate) before_bytes: u64,
    /// How often it was resent.
    pub(crate) resends: u8,
    /// A failure that makes every check pointless.
    pub(crate) finding: Option<Finding>,
    pub(crate) location: Option<Box<[u8]>>,
    /// For a call: its response so far, and its metadata if a check, save or expression reads it.
    pub(crate) call: Option<CallResponse>,
    pub(crate) metadata: Vec<u8>,
    /// The challenge of a 401 response.
    pub(crate) challenge: Option<Challenge>,
    /// The credentials that the request sent.
    pub(crate) authorization: Vec<u8>,
    /// For a response that is sampled.
    pub(crate) sample: Option<Sample>,
    /// The row of the instance that the response names.
    pub(crate) instance: Option<u16>,
    /// Whether the same request was sent before, if requests are tracked.
    pub(crate) repeated: Option<bool>,
    /// The packets of a reply before its last one.
    pub(crate) parts: PartsOfReply,
    /// Messages that arrived meanwhile and contain several records that are not separated.
    pub(crate) joined: u32,
    /// Messages of the following steps that the socket takes together with its own.
    pub(crate) behind: Vec<Joined>,
    /// Its entry in the ledger: row and key.
    pub(crate) sent: Option<(u16, u64)>,
    /// Seconds that the response asks clients to wait, or 0.
    pub(crate) retry_after_s: u64,
    /// The trace ID that was sent.
    pub(crate) trace: Option<u128>,
    /// The connection that was opened for it.
    pub(crate) opening: Option<OpeningTimes>,
    /// Random state and time when the request was written, so that it can be written again in the
    /// same way.
    pub(crate) before: Option<(Random, Time)>,
    /// Why the rest of the request could not be sent. What the target had sent before is read
    /// nevertheless.
    pub(crate) unsendable: Option<io::Error>,
}

/// A response that is sampled.
pub(crate) struct Sample {
    /// The digest of the body so far.
    pub(crate) digest: DefaultHasher,
    /// A cache answered.
    pub(crate) cached: bool,
}

impl Rare {
    /// Ready for another exchange.
    pub(crate) fn clear(&mut self, purse: &Rc<Purse>) {
        self.body.clear();
        self.held.resize(0, purse);
        self.witnessed.clear();
        self.sent_to.clear();
        self.kept.clear();
        self.parts.clear();
        self.behind.clear();
        self.authorization.clear();
        self.metadata.clear();
        (self.challenge, self.call) = (None, None);
        let Rare { decoder, finding, location, sent, trace, before, unsendable, .. } = self;
        (*decoder, *finding, *location, *trace, *before) = (None, None, None, None, None);
        (*sent, *unsendable, self.sample) = (None, None, None);
        (self.tally, self.retry_after_s, self.opening) = (None, 0, None);
        (self.repeated, self.instance) = (None, None);
        (self.before_bytes, self.resends, self.joined) = (0, 0, 0);
    }
}
