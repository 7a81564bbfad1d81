//! Results of a request, shared by both dialects.

use super::reply::{Came, Reply};

/// Capacity that is kept for a result.
pub(super) const KEPT_BYTES_MAX: usize = 4 * 1024;

/// The results of a request so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) rows: u64,
    pub(super) affected: u64,
    /// The key that MySQL assigned to a row; PostgreSQL has none.
    pub(super) insert_id: Option<u64>,
    pub(super) bytes: u64,
    pub(super) has_row: bool,
    pub(super) is_error: bool,
    /// The description of the columns and the first row, or an error.
    pub(super) kept: Vec<u8>,
    pub(super) row_at: usize,
}

impl Found {
    pub(super) fn clear(&mut self) {
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        kept.shrink_to(KEPT_BYTES_MAX);
        *self = Found { kept, ..Found::default() };
    }

    fn reply<'r>(&self, kept: &'r mut Vec<u8>) -> Reply<'r> {
        kept.clear();
        kept.extend_from_slice(&self.kept);
        let Found { rows, affected, insert_id, bytes, is_error, row_at, .. } = *self;
        Reply { rows, affected, insert_id, bytes, is_error, kept, row_at }
    }
}

/// The meaning of a message for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    More,
    Open,
    FirstRow,
    Done,
}

impl Step {
    /// `None` if more messages must follow.
    pub(super) fn came<'r>(self, found: &Found, kept: &'r mut Vec<u8>) -> Option<Came<'r>> {
        match self {
            Step::More => None,
            Step::Open => Some(Came::Open),
            Step::FirstRow => Some(Came::FirstRow),
            Step::Done => Some(Came::Done(found.reply(kept))),
        }
    }
}
