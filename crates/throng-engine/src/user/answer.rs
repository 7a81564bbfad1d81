//! What only some exchanges need, the bodies of HTTP answers above all: it is taken from the shard
//! and given back, so that no request allocates anything of its own.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use throng_base::{Random, Said, Time};
use throng_extract::{Digest, Hasher};
use throng_metrics::Cause;
use throng_protocol::grpc::Response;
use throng_protocol::http1::digest::Challenge;
use throng_protocol::http1::{ContentDecoder, ContentError};

use super::exchange::Exchange;
use crate::budget::{Held, Purse};
use crate::evidence::EVIDENCE_BYTES_MAX;
use crate::failure::{Finding, shown};
use crate::prepared::HttpPlan;
use crate::shard::Lane;
use crate::verify::Kept;

/// What was needed for one exchange or another.
#[derive(Default)]
pub(crate) struct Rare {
    /// The body as far as it has come, when somebody looks at it and it came in pieces or coded.
    pub(super) body: Vec<u8>,
    /// In place of the body, where that need not be kept.
    pub(super) tally: Option<Tally>,
    /// What the body has of the budget.
    held: Held,
    /// The head and the first bytes of the body of an answer whose status is a failure, where it
    /// is the first of its kind: evidence.
    pub(super) witnessed: Vec<u8>,
    pub(super) decoder: Option<ContentDecoder>,
    /// The path that was sent, where it differs from user to user.
    pub(super) path: Vec<u8>,
    pub(super) kept: Kept,
    /// What makes every check pointless.
    pub(super) finding: Option<Finding>,
    pub(super) location: Option<String>,
    /// Of a gRPC call: its response as far as it has come, and its metadata where somebody looks
    /// at them.
    pub(super) call: Option<Response>,
    pub(super) metadata: Vec<u8>,
    /// Of a 401 that asks who it is.
    pub(super) challenge: Option<Challenge>,
    /// What the request said of that.
    pub(super) authorization: Vec<u8>,
    /// What was sent is in the ledger: of which row, and what tells it apart there.
    pub(super) sent: Option<(u16, u64)>,
    /// So many seconds the answer asks to be left alone, if any.
    pub(super) retry_after_s: u64,
    /// The trace id that was sent.
    pub(super) trace: Option<u128>,
    /// Chance and time as they were when the request was written, so that it can be written once
    /// more in the same way.
    pub(super) before: Option<(Random, Time)>,
    /// Why the rest of the request could not be sent. What the target had said before is read
    /// all the same.
    pub(super) unsendable: Option<io::Error>,
}

/// How many of them wait for the next exchange.
const RARES_MAX: usize = 64;
/// What a body may leave behind.
const BODY_KEPT_BYTES_MAX: usize = 64 * 1024;

impl Rare {
    pub(super) fn of(shard: &Lane) -> Box<Rare> {
        shard.rares.borrow_mut().pop().unwrap_or_default()
    }

    /// Gives it back for another exchange.
    pub(super) fn give_back(mut self: Box<Self>, shard: &Lane) {
        let mut rares = shard.rares.borrow_mut();
        if rares.len() >= RARES_MAX || self.body.capacity() > BODY_KEPT_BYTES_MAX {
            return;
        }
        self.body.clear();
        self.held.resize(0, &shard.purse);
        self.witnessed.clear();
        self.path.clear();
        self.kept.clear();
        self.authorization.clear();
        self.metadata.clear();
        (self.challenge, self.call) = (None, None);
        let Rare { decoder, finding, location, sent, trace, before, unsendable, .. } = &mut *self;
        (*decoder, *finding, *location, *trace, *before) = (None, None, None, None, None);
        (*sent, *unsendable) = (None, None);
        (self.tally, self.retry_after_s) = (None, 0);
        rares.push(self);
    }
}

impl Exchange {
    /// Whether the rest of the request could not be sent.
    pub(super) fn is_cut_off(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.unsendable.is_some())
    }

    pub(super) fn found(&mut self, finding: Finding, shard: &Lane) {
        self.rare(shard).finding.get_or_insert(finding);
    }

    /// More of the body, in the bytes that were read last. A body that comes whole and as it is
    /// stays there; only its place is noted, in `whole`.
    pub(super) fn body(
        &mut self,
        piece: &[u8],
        read: &[u8],
        whole: &mut Option<Range<usize>>,
        streamed: Option<&[Digest]>,
        shard: &Lane,
    ) {
        if !shard.is_traced() && self.rare.as_ref().is_some_and(|rare| rare.finding.is_some()) {
            // It is bad already: nobody looks at the rest.
            return;
        }
        let untouched = self.rare.as_ref().is_none_or(|rare| {
            rare.body.is_empty()
                && rare.tally.is_none()
                && rare.decoder.is_none()
                && rare.finding.is_none()
        });
        if untouched && whole.is_none() {
            let begin = (piece.as_ptr() as usize).wrapping_sub(read.as_ptr() as usize);
            let range = begin..begin.wrapping_add(piece.len());
            if read.get(range.clone()).is_some() {
                *whole = Some(range);
                return;
            }
        }
        self.keep_body(read, whole, streamed, shard);
        let Rare { body, held, decoder, tally, .. } = self.rare(shard);
        let mut tally = tally_of(tally, streamed);
        let mut keep = |piece: &[u8]| match &mut tally {
            Some(tally) => tally.add(piece),
            None => keep(piece, body, held, &shard.purse),
        };
        let kept = match decoder {
            None => keep(piece),
            Some(decoder) => decoder.write(piece, &mut keep),
        };
        if let Err(not_kept) = kept {
            self.refuse_body(&not_kept, shard);
        }
    }

    /// More of a body that comes between those of others.
    pub(super) fn piece(&mut self, piece: &[u8], plan: &HttpPlan, shard: &Lane) {
        match plan.needs_body {
            true => self.body(piece, &[], &mut None, plan.streamed.as_deref(), shard),
            false => self.witness_body(piece),
        }
    }

    /// Copies what was left where it was read: more is to come.
    pub(super) fn keep_body(
        &mut self,
        read: &[u8],
        whole: &mut Option<Range<usize>>,
        streamed: Option<&[Digest]>,
        shard: &Lane,
    ) {
        let Some(bytes) = whole.take().and_then(|range| read.get(range)) else { return };
        let Rare { body, held, tally, .. } = self.rare(shard);
        let kept = match tally_of(tally, streamed) {
            Some(tally) => tally.add(bytes),
            None => keep(bytes, body, held, &shard.purse),
        };
        if let Err(not_kept) = kept {
            self.refuse_body(&not_kept, shard);
        }
    }

    /// The body is not wanted any more, nor is what was kept of it.
    fn refuse_body(&mut self, not_kept: &NotKept, shard: &Lane) {
        let rare = self.rare(shard);
        rare.decoder = None;
        let finding = match not_kept {
            NotKept::Coding(error) => coding_failed(error),
            NotKept::Budget => {
                rare.body = Vec::new();
                rare.held.resize(0, &shard.purse);
                shard.purse.refusal()
            }
        };
        self.found(finding, shard);
    }

    /// More of a body that nobody looks at: a piece of it is kept behind a head that is evidence.
    pub(super) fn witness_body(&mut self, piece: &[u8]) {
        let Some(rare) = self.rare.as_deref_mut().filter(|rare| !rare.witnessed.is_empty()) else {
            return;
        };
        let room = EVIDENCE_BYTES_MAX.saturating_sub(rare.witnessed.len());
        rare.witnessed.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// The words with the trace id of the request, so that it can be found in tracing.
    pub(super) fn traced(&self, detail: Said) -> Said {
        match self.rare.as_ref().and_then(|rare| rare.trace) {
            Some(trace) => say!("{detail} (trace {trace:032x})"),
            None => detail,
        }
    }
}

/// What is known of a body that is not kept.
pub(crate) struct Tally {
    pub(crate) bytes: u64,
    digests: Vec<(Digest, Hasher)>,
}

impl Tally {
    fn new(digests: &[Digest]) -> Tally {
        let digests = digests.iter().map(|digest| (*digest, Hasher::new(*digest)));
        Tally { bytes: 0, digests: digests.collect() }
    }

    fn add(&mut self, piece: &[u8]) -> Result<(), NotKept> {
        self.bytes += piece.len() as u64;
        self.digests.iter_mut().for_each(|(_, hasher)| hasher.update(piece));
        Ok(())
    }

    pub(crate) fn digits(&self, digest: Digest) -> Option<String> {
        let known = self.digests.iter().find(|(known, _)| *known == digest);
        known.map(|(_, hasher)| hasher.digits())
    }
}

fn tally_of<'t>(
    tally: &'t mut Option<Tally>,
    streamed: Option<&[Digest]>,
) -> Option<&'t mut Tally> {
    streamed.map(|digests| tally.get_or_insert_with(|| Tally::new(digests)))
}

/// Why more of a body was not kept.
enum NotKept {
    Coding(ContentError),
    /// All users together keep as much as they may.
    Budget,
}

impl From<ContentError> for NotKept {
    fn from(error: ContentError) -> NotKept {
        NotKept::Coding(error)
    }
}

/// Adds to a body, as long as the budget has room for what it comes to.
fn keep(
    piece: &[u8],
    body: &mut Vec<u8>,
    held: &mut Held,
    purse: &Rc<Purse>,
) -> Result<(), NotKept> {
    let needed = body.len() + piece.len();
    if needed > held.bytes() {
        // As a vector grows: twice as large, or as large as needed.
        let capacity = match needed <= body.capacity() {
            true => body.capacity(),
            false => needed.max(body.capacity().saturating_mul(2)),
        };
        if !held.resize(capacity, purse) {
            return Err(NotKept::Budget);
        }
        body.reserve_exact(capacity - body.len());
    }
    body.extend_from_slice(piece);
    Ok(())
}

pub(super) fn coding_failed(error: &ContentError) -> Finding {
    (Cause::CodingFailed, Said::of_others(shown(error.to_string().as_bytes())))
}
