//! What only some exchanges need, the bodies of HTTP answers above all: it is taken from the shard
//! and given back, so that no request allocates anything of its own.

use std::hash::DefaultHasher;
use std::io;
use std::rc::Rc;

use throng_base::{Random, Time};
use throng_protocol::grpc::Response;
use throng_protocol::http1::ContentDecoder;
use throng_protocol::http1::digest::Challenge;

use crate::budget::{Held, Purse};
use crate::failure::Finding;
use crate::looked::{Kept, PartsOfReply, Tally};
use crate::spent::OpeningTimes;
use crate::template::SentTo;

/// A message that is written together with those of other steps.
pub(crate) struct Joined {
    /// Where in the bytes it ends.
    pub(crate) end: usize,
    /// How many bytes it has, and what its reply carries.
    pub(crate) sent: (u64, u32),
    /// Chance and number as they were before, if it has to be written once more.
    pub(crate) before: (Random, u32),
}

/// What was needed for one exchange or another.
#[derive(Default)]
pub(crate) struct Rare {
    /// The body as far as it has come, when somebody looks at it and it came in pieces or coded.
    pub(crate) body: Vec<u8>,
    /// In place of the body, where that need not be kept.
    pub(crate) tally: Option<Tally>,
    /// What the body has of the budget.
    pub(crate) held: Held,
    /// The head and the first bytes of the body of an answer whose status is a failure, where it
    /// is the first of its kind: evidence.
    pub(crate) witnessed: Vec<u8>,
    pub(crate) decoder: Option<ContentDecoder>,
    /// What of the request differs from user to user and is needed again.
    pub(crate) sent_to: SentTo,
    pub(crate) kept: Kept,
    /// Of `bytes_out` what was written before, to a connection that heard nothing of it.
    pub(crate) before_bytes: u64,
    /// How often it was sent once more.
    pub(crate) resends: u8,
    /// What makes every check pointless.
    pub(crate) finding: Option<Finding>,
    pub(crate) location: Option<Box<[u8]>>,
    /// Of a gRPC call: its response as far as it has come, and its metadata where somebody looks
    /// at them.
    pub(crate) call: Option<Response>,
    pub(crate) metadata: Vec<u8>,
    /// Of a 401 that asks who it is.
    pub(crate) challenge: Option<Challenge>,
    /// What the request said of that.
    pub(crate) authorization: Vec<u8>,
    /// Of a response that is looked at for what it is like.
    pub(crate) sample: Option<Sample>,
    /// The instance that the response names, by its row.
    pub(crate) instance: Option<u16>,
    /// Whether the same request was sent before, where that is followed.
    pub(crate) repeated: Option<bool>,
    /// The packets of a reply before its last one.
    pub(crate) parts: PartsOfReply,
    /// How many messages came meanwhile that contain several records and are not separated.
    pub(crate) joined: u32,
    /// Messages of the steps behind it that the socket takes together with its own.
    pub(crate) behind: Vec<Joined>,
    /// What was sent is in the ledger: of which row, and what tells it apart there.
    pub(crate) sent: Option<(u16, u64)>,
    /// So many seconds the answer asks to be left alone, if any.
    pub(crate) retry_after_s: u64,
    /// The trace id that was sent.
    pub(crate) trace: Option<u128>,
    /// The connection that was opened for it.
    pub(crate) opening: Option<OpeningTimes>,
    /// Chance and time as they were when the request was written, so that it can be written once
    /// more in the same way.
    pub(crate) before: Option<(Random, Time)>,
    /// Why the rest of the request could not be sent. What the target had said before is read
    /// all the same.
    pub(crate) unsendable: Option<io::Error>,
}

/// A response that is looked at for what it is like.
pub(crate) struct Sample {
    /// The body so far.
    pub(crate) digest: DefaultHasher,
    /// It says that a cache has answered.
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
