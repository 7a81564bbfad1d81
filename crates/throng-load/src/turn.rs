//! The current slice of a duel, for the load of one side.

use throng_base::{SETTLING, Time, Turns};

/// The current slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    turns: Turns,
    from: Time,
    slice: u64,
}

impl Turn {
    /// Slices are counted from `from`.
    pub(crate) fn new(turns: Turns, from: Time) -> Turn {
        Turn { turns, from, slice: 0 }
    }

    /// Whether it is this side's turn.
    pub(crate) fn works(&self) -> bool {
        self.turns.works_in(self.slice)
    }

    pub(crate) fn ends(&self) -> Time {
        self.begin_of(self.slice + 1)
    }

    /// Whether a connection from before this slice is replaced.
    pub(crate) fn renews(&self, established: Time, now: Time) -> bool {
        let begin = self.begin_of(self.slice);
        established < begin && now < begin.saturating_add(SETTLING) && self.works()
    }

    fn begin_of(&self, slice: u64) -> Time {
        let slices = u32::try_from(slice).unwrap_or(u32::MAX);
        self.from.saturating_add(self.turns.slice.saturating_mul(slices))
    }

    pub(crate) fn advance(&mut self) {
        self.slice += 1;
    }
}
