//! The turns of a duel: the sides generate load in alternating slices, two per pair, in random
//! order within each pair. A drift of the host then affects both sides equally.

use std::time::Duration;

use crate::Random;

/// The start of a slice is not counted: the other side's last requests end in it, and users open
/// new connections.
pub const SETTLING: Duration = Duration::from_secs(1);

/// One of the two sides of a duel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    A,
    B,
}

/// The slices of one side, counted from the start of its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Not zero.
    pub slice: Duration,
    /// Determines which side is first in each pair of slices.
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

    /// The side of a slice, counted from 0. Slices 0 and 1 are the first pair.
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
    fn each_pair_has_both_sides_and_each_side_is_first_about_equally_often() {
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
