//! How often the machines of a run announce something to each other, and which of them are there.

use std::time::Duration;

use throng_base::{Share, Time};

/// Every machine receives from every other: the more machines, the less often each announces.
const EVERY_PER_MACHINE: Duration = Duration::from_millis(10);
const EVERY_MIN: Duration = Duration::from_millis(100);
const EVERY_MAX: Duration = Duration::from_secs(10);
/// Stop waiting for a machine that is silent for this long.
const SILENT_MIN: Duration = Duration::from_secs(10);
const SILENT_TIMES: u32 = 3;

/// The interval between announcements, if all parts of the run are like this one.
pub(crate) fn every(share: Share) -> Duration {
    let machines = (1.0 / share.fraction()).ceil();
    EVERY_PER_MACHINE.mul_f64(machines).clamp(EVERY_MIN, EVERY_MAX)
}

/// A machine that is silent for this long is taken to be gone.
pub(crate) fn silent(share: Share) -> Duration {
    SILENT_MIN.max(every(share) * SILENT_TIMES)
}

/// Waits for all machines to be heard once.
#[derive(Debug, Default)]
pub(crate) struct Muster {
    begun: Option<Time>,
}

/// Whether the machines of a run are all known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    All,
    /// Some machines were never heard from; this one stopped waiting for them.
    Enough,
    No,
}

impl Muster {
    /// `others` are the widths of the machines that were heard.
    pub(crate) fn known(
        &mut self,
        share: Share,
        others: impl Iterator<Item = u64>,
        now: Time,
    ) -> Known {
        let begun = *self.begun.get_or_insert(now);
        let (_, width, of) = share.machine();
        match others.fold(width, u64::saturating_add) >= of {
            true => Known::All,
            false if now.since(begun) >= silent(share) => Known::Enough,
            false => Known::No,
        }
    }
}

/// Whether these numbers can be another machine's part of this run.
pub(crate) fn is_another(share: Share, first: u64, width: u64) -> bool {
    let (own, _, of) = share.machine();
    first != own && first.checked_add(width).is_some_and(|end| end <= of)
}
