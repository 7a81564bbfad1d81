//! The bodies of HTTP responses: what is kept of them as they arrive.

use std::hash::Hasher as _;
use std::ops::Range;
use std::rc::Rc;

use throng_base::Said;
use throng_extract::Digest;
use throng_metrics::Cause;
use throng_protocol::framed::Records;
use throng_protocol::http1::ContentError;
use throng_protocol::http2::Token;
use throng_protocol::machine::Ends;

use crate::failure::{Failure, Finding, shown};
use crate::looked::Tally;
use crate::prepared::HttpPlan;
use crate::recorder::evidence::EVIDENCE_BYTES_MAX;
use crate::shard::Lane;
use crate::shard::budget::{Held, Purse};
use crate::shard::rare::Rare;
use crate::user::exchange::{Exchange, Unheard};

/// A request for which nothing more arrives, and why, unless its response is complete.
pub(in crate::user) type Ended = (Token, Result<(), (Failure, Unheard)>);

/// State of reading a batch of bytes.
#[derive(Default)]
pub(in crate::user) struct Reading<'a> {
    pub(in crate::user) ends: Ends<'a>,
    /// Requests that have ended; handled once all bytes are read.
    pub(in crate::user) ended: Vec<Ended>,
    /// Set if the transport separates messages.
    pub(in crate::user) records: Option<Records<'a>>,
}

/// Bytes of the only response on a connection.
pub(in crate::user) struct Piece<'a> {
    pub(in crate::user) bytes: &'a [u8],
    /// The range of the body, as long as it is complete and in these bytes alone.
    pub(in crate::user) whole: Option<Range<usize>>,
}

impl<'a> Piece<'a> {
    pub(in crate::user) fn take_whole(&mut self) -> Option<&'a [u8]> {
        self.whole.take().and_then(|range| self.bytes.get(range))
    }
}

impl Exchange {
    /// Whether the rest of the request could not be sent.
    pub(in crate::user) fn is_unsendable(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.unsendable.is_some())
    }

    pub(in crate::user) fn found(&mut self, finding: Finding, shard: &Lane) {
        self.rare(shard).finding.get_or_insert(finding);
    }

    /// More of the body. A body that is complete and unencoded in `all` is not copied; only its
    /// range is noted.
    pub(in crate::user) fn body(
        &mut self,
        piece: &[u8],
        all: Option<&mut Piece<'_>>,
        streamed: Option<&[Digest]>,
        shard: &Lane,
    ) {
        if !shard.is_traced() && self.rare.as_ref().is_some_and(|rare| rare.finding.is_some()) {
            // The response is bad already: the rest is ignored.
            return;
        }
        let untouched = self.rare.as_ref().is_none_or(|rare| {
            rare.body.is_empty()
                && rare.tally.is_none()
                && rare.decoder.is_none()
                && rare.finding.is_none()
        });
        if let Some(all) = all {
            if untouched && all.whole.is_none() {
                let read = all.bytes.as_ptr() as usize;
                let begin = (piece.as_ptr() as usize).wrapping_sub(read);
                all.whole = Some(begin..begin.wrapping_add(piece.len()));
                return;
            }
            self.keep_body(all, streamed, shard);
        }
        let Rare { body, held, decoder, tally, .. } = self.rare(shard);
        let mut tally = tally_of(tally, streamed);
        let mut keep = |piece: &[u8]| match &mut tally {
            Some(tally) => {
                tally.add(piece);
                Ok(())
            }
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

    /// Adds to the sample of the body that content checks may use.
    #[inline]
    fn sample_body(&mut self, piece: &[u8]) {
        if let Some(sample) = self.rare.as_mut().and_then(|rare| rare.sample.as_mut()) {
            sample.digest.write(piece);
        }
    }

    /// More of the body of a response.
    #[inline]
    pub(in crate::user) fn piece(
        &mut self,
        piece: &[u8],
        plan: &HttpPlan,
        all: Option<&mut Piece<'_>>,
        shard: &Lane,
    ) {
        self.sample_body(piece);
        match plan.needs_body {
            true => self.body(piece, all, plan.streamed.as_deref(), shard),
            false => self.witness_body(piece),
        }
    }

    /// Copies what is still in the read buffer, because more is to come.
    pub(in crate::user) fn keep_body(
        &mut self,
        all: &mut Piece<'_>,
        streamed: Option<&[Digest]>,
        shard: &Lane,
    ) {
        let Some(bytes) = all.take_whole() else { return };
        let Rare { body, held, tally, .. } = self.rare(shard);
        let kept = match tally_of(tally, streamed) {
            Some(tally) => {
                tally.add(bytes);
                Ok(())
            }
            None => keep(bytes, body, held, &shard.purse),
        };
        if let Err(not_kept) = kept {
            self.refuse_body(&not_kept, shard);
        }
    }

    /// Stops keeping the body, and drops what was kept.
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

    /// More of a body that nothing reads: a part of it is kept as evidence, after the head.
    fn witness_body(&mut self, piece: &[u8]) {
        let Some(rare) = self.rare.as_deref_mut().filter(|rare| !rare.witnessed.is_empty()) else {
            return;
        };
        let room = EVIDENCE_BYTES_MAX.saturating_sub(rare.witnessed.len());
        rare.witnessed.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Adds the trace ID of the request, so that it can be found in a tracing system.
    pub(in crate::user) fn traced(&self, detail: Said) -> Said {
        match self.rare.as_ref().and_then(|rare| rare.trace) {
            Some(trace) => say!("{detail} (trace {trace:032x})"),
            None => detail,
        }
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
    /// All users together have reached the limit.
    Budget,
}

impl From<ContentError> for NotKept {
    fn from(error: ContentError) -> NotKept {
        NotKept::Coding(error)
    }
}

/// Appends to a body while the memory budget allows it.
fn keep(
    piece: &[u8],
    body: &mut Vec<u8>,
    held: &mut Held,
    purse: &Rc<Purse>,
) -> Result<(), NotKept> {
    let needed = body.len() + piece.len();
    if needed > held.bytes() {
        // Grows like a vector: to twice the size, or as large as needed.
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

pub(in crate::user) fn coding_failed(error: &ContentError) -> Finding {
    (Cause::CodingFailed, Said::of_others(shown(error.to_string().as_bytes())))
}
