//! Which of two sides works when, if they work in turn: in slices of time, two to a pair, whose
//! order within each pair is drawn. A drift of the host then counts for both sides alike.

use std::time::Duration;

use crate::Random;

/// The beginning of a slice does not count: the other side's last requests end in it, and users
/// open their connections anew.
pub const SETTLING: Duration = Duration::from_secs(1);

/// One of the two sides of a duel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    A,
    B,
}

/// The slices in which one side works, counted from the start of its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Not zero.
    pub slice: Duration,
    /// Decides which side works first in each pair of slices.
    pub seed: u64,
    pub side: Side,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::A, Side::B];

    pub fn name(self) -> &'static str {
        match self {
            Side::A => "A",
            Side::B => "B",
        }
    }

    /// The side that works in a slice, counted from 0. Slices 0 and 1 are the first pair.
    pub fn of_slice(seed: u64, slice: u64) -> Side {
        let begins_with_a = Random::for_owner(seed, slice / 2).chance(0.5);
        match begins_with_a == slice.is_multiple_of(2) {
            true => Side::A,
            false => Side::B,
        }
    }
}

impl Turns {
    pub fn works_in(&self, slice: u64) -> bool {
        Side::of_slice(self.seed, slice) == self.side
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_both_sides_and_each_side_begins_about_as_often() {
        let mut begun = 0;
        for pair in 0..1_000 {
            let [first, second] = [2 * pair, 2 * pair + 1].map(|slice| Side::of_slice(7, slice));
            assert_ne!(first, second);
            begun += u32::from(first == Side::A);
        }
        assert!((440..560).contains(&begun), "{begun}");
        let turns = |side| Turns { slice: Duration::from_secs(5), seed: 7, side };
        assert!((0..100).all(|it| turns(Side::A).works_in(it) != turns(Side::B).works_in(it)));
    }
}
