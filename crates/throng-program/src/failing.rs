//! What a user does when a step fails.

use std::time::Duration;

use throng_metrics::Cause;

/// What a user does when a step fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failing {
    pub retry: Option<Retry>,
    /// The reaction when no retry is left.
    pub then: OnError,
}

/// Retries. All tries are one attempt: the last one decides, and earlier ones are counted
/// separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Which failures are followed by another try.
    pub on: RetryOn,
    /// Tries after the first, at most 65,535; `None` is unlimited.
    pub times: Option<u32>,
    /// The wait before the next try: it starts with `low` and doubles up to `high`, and half of it
    /// is random.
    pub low: Duration,
    pub high: Duration,
}

/// Most ranges of statuses, and most causes, that may be listed.
pub const RETRY_ON_MAX: usize = 8;

/// Which failures are retried. Small, because every step has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryOn {
    #[default]
    Any,
    /// Those whose response has one of the statuses (inclusive ranges), or that have one of the
    /// causes.
    Only { statuses: [Option<(u16, u16)>; RETRY_ON_MAX], causes: [Option<Cause>; RETRY_ON_MAX] },
}

impl RetryOn {
    pub fn holds(&self, cause: Cause, status: u16) -> bool {
        let holds = |range: &(u16, u16)| (range.0..=range.1).contains(&status);
        match self {
            RetryOn::Any => true,
            RetryOn::Only { statuses, causes } => {
                causes.contains(&Some(cause)) || statuses.iter().flatten().any(holds)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Counts the failure and continues: with the next step, or with a restart if the connection is
    /// gone.
    #[default]
    Count,
    /// Ends the iteration.
    Next,
    /// The user leaves.
    Leave,
    /// The whole run ends.
    Stop,
}
