//! Samples of responses: whether they are the same for all users, and whether requests that had a
//! conflict were sent before.

use throng_base::StepId;
use throng_metrics::{SAMPLED_OF, SampleInterval};

use crate::recorder::repeats::{Fingerprint, Repeats};

/// Conflict, and unprocessable content: the usual statuses for data that exists already (RFC 9110).
const CONFLICTS: [u16; 2] = [409, 422];
/// Steps of a shard whose requests are tracked; each takes 128 KiB.
const FOLLOWED_MAX: usize = 16;

/// See the module.
#[derive(Default)]
pub(crate) struct Samples {
    pub(super) rows: Vec<SampleInterval>,
    /// By step: when the next response is sampled, and the digest of the first sampled body.
    sampling: Vec<(u32, Option<u64>)>,
    /// For steps that had a conflict: the requests since then.
    repeats: Vec<(StepId, Repeats)>,
}

impl Samples {
    /// Whether this response to a step is sampled.
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

    /// The result of a sample: the digest of its body, and whether a cache answered.
    pub(crate) fn sampled(&mut self, step: StepId, digest: u64, cached: bool) {
        let place = usize::from(step.0);
        let first = self.sampling.get_mut(place).map(|(_, first)| *first.get_or_insert(digest));
        let row = SampleInterval::of(&mut self.rows, step.0);
        row.sampled += 1;
        row.same += u64::from(first == Some(digest));
        row.cached += u64::from(cached);
    }

    /// Whether requests of a step are tracked: it had a conflict.
    #[inline]
    pub(crate) fn follows(&self, step: StepId) -> bool {
        self.repeats.iter().any(|(it, _)| *it == step)
    }

    /// A tracked request is sent; returns whether it was sent before.
    pub(crate) fn follow(&mut self, step: StepId, print: Fingerprint) -> Option<bool> {
        let (_, repeats) = self.repeats.iter_mut().find(|(it, _)| *it == step)?;
        Some(repeats.note(print))
    }

    /// A request that differs per user got a response with this status.
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
