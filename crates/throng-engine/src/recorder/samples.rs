//! Responses that are looked at: whether they are the same for all, and whether requests that had
//! a conflict were sent before.

use throng_base::StepId;
use throng_metrics::{SAMPLED_OF, SampleInterval};

use crate::recorder::repeats::{Fingerprint, Repeats};

/// Conflict, and unprocessable content: what services say of data that they have (RFC 9110).
const CONFLICTS: [u16; 2] = [409, 422];
/// Steps of a shard whose requests are followed; each takes 128 KiB.
const FOLLOWED_MAX: usize = 16;

/// See the module's description.
#[derive(Default)]
pub(crate) struct Samples {
    pub(super) rows: Vec<SampleInterval>,
    /// By step: which response comes next, and the digest of the first body that was sampled.
    sampling: Vec<(u32, Option<u64>)>,
    /// Of steps that had a conflict: the requests since then.
    repeats: Vec<(StepId, Repeats)>,
}

impl Samples {
    /// Whether this response to a step is one that is looked at.
    #[inline]
    pub(crate) fn wants(&mut self, step: StepId) -> bool {
        let place = usize::from(step.0);
        if place >= self.sampling.len() {
            self.sampling.resize(place + 1, (0, None));
        }
        let next = &mut self.sampling[place].0;
        *next = next.wrapping_add(1);
        *next % SAMPLED_OF == 1
    }

    /// What a response that was looked at is like: the digest of its body, and whether a cache has
    /// answered.
    pub(crate) fn sampled(&mut self, step: StepId, digest: u64, cached: bool) {
        let place = usize::from(step.0);
        let first = self.sampling.get_mut(place).map(|(_, first)| *first.get_or_insert(digest));
        let row = SampleInterval::of(&mut self.rows, step.0);
        row.sampled += 1;
        row.same += u64::from(first == Some(digest));
        row.cached += u64::from(cached);
    }

    /// Whether requests of a step are to be told apart: it had a conflict.
    #[inline]
    pub(crate) fn follows(&self, step: StepId) -> bool {
        self.repeats.iter().any(|(it, _)| *it == step)
    }

    /// Such a request is sent; whether it was sent before.
    pub(crate) fn follow(&mut self, step: StepId, print: Fingerprint) -> Option<bool> {
        let (_, repeats) = self.repeats.iter_mut().find(|(it, _)| *it == step)?;
        Some(repeats.note(print))
    }

    /// A request that differs from user to user got a response with this status.
    pub(crate) fn followed(&mut self, step: StepId, code: u16, repeated: Option<bool>) {
        let conflicts = CONFLICTS.contains(&code);
        if let Some(repeated) = repeated {
            let row = SampleInterval::of(&mut self.rows, step.0);
            row.followed += 1;
            row.repeated += u64::from(repeated);
            row.conflicts += u64::from(conflicts);
            row.conflicts_repeated += u64::from(conflicts && repeated);
        } else if conflicts && self.repeats.len() < FOLLOWED_MAX && !self.follows(step) {
            self.repeats.push((step, Repeats::new()));
        }
    }
}
