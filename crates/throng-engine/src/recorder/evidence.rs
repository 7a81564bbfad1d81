//! The circumstances of a failure: the user, its row of data, what was sent and what was received.
//! Collected only for the first failure of its kind on a shard, so that requests do not pay for it.

use throng_base::UserId;

use crate::trace::Shown;

/// Maximum size of what is kept of each direction.
pub const EVIDENCE_BYTES_MAX: usize = 4096;

/// The circumstances of one failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub user: UserId,
    /// Counted from 1; 0 before the first.
    pub iteration: u64,
    /// HTTP status; 0 without one.
    pub code: u16,
    /// The fields of the user's data rows that the scenario uses: as `source.column`, values as
    /// JSON.
    pub row: Vec<(String, String)>,
    pub exchange: Exchange,
}

/// What was sent and received, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// `None` if it cannot be written again: messages of long-lived connections.
    pub sent: Option<Shown>,
    /// `None` if nothing was received or kept.
    pub received: Option<Shown>,
}
