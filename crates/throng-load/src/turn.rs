//! Whose slice of a duel goes on, for the load of one side.

use throng_base::{Time, Turns};

/// The slice that goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    turns: Turns,
    from: Time,
    slice: u64,
}

impl Turn {
    /// Slices are counted from this moment.
    pub(crate) fn new(turns: Turns, from: Time) -> Turn {
        Turn { turns, from, slice: 0 }
    }

    /// Whether the side of this load works.
    pub(crate) fn works(&self) -> bool {
        self.turns.works_in(self.slice)
    }

    pub(crate) fn ends(&self) -> Time {
        let slices = u32::try_from(self.slice + 1).unwrap_or(u32::MAX);
        self.from.saturating_add(self.turns.slice.saturating_mul(slices))
    }

    pub(crate) fn advance(&mut self) {
        self.slice += 1;
    }
}
