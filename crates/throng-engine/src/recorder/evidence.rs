//! What a failure is told by: who failed, with which row, what was sent and what came. Taken only
//! for the first failure of its kind on a shard, so that no request pays for it.

use throng_base::UserId;

use crate::trace::Shown;

/// What is kept of what was sent, and of what came.
pub const EVIDENCE_BYTES_MAX: usize = 4096;

/// The circumstances of one failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub user: UserId,
    /// Counted from 1; 0 before the first.
    pub iteration: u64,
    /// HTTP status; 0 without one.
    pub code: u16,
    /// The fields of the user's rows of data that the scenario names: as `source.column`, values
    /// as JSON.
    pub row: Vec<(String, String)>,
    pub exchange: Exchange,
}

/// What was sent and what came, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// None where it cannot be written once more: messages of long-lived connections.
    pub sent: Option<Shown>,
    /// None where nothing came, or nothing of it was kept.
    pub received: Option<Shown>,
}
