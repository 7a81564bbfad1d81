//! Which numbered lines of each agent have come. An agent numbers the lines of one incarnation (one
//! life of its process) from 0 and says at its end how many there were. A line may come twice, and
//! lines may come in any order; the receipt says whether a line is new, and at the end whether all
//! are there. A run is complete when they are, never because time has passed.

use std::collections::BTreeMap;
use std::ops::Range;

/// The lines of one incarnation that have come, as ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// By their first line: the line after the last.
    ranges: BTreeMap<u64, u64>,
    /// How many lines there are, once the agent has said so.
    lines: Option<u64>,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    New,
    /// It had come before: its figures are in the sum already.
    Again,
    /// It cannot be noted, so it must not be summed up: there are too many gaps before it, or it
    /// lies behind the end that the agent has told.
    Refused,
}

/// Ranges of one incarnation. A log keeps the order of each sender, so more than a few gaps are a
/// fault; memory stays bounded under it.
pub const RANGES_MAX: usize = 1_024;

impl Receipt {
    pub fn take(&mut self, line: u64) -> Taken {
        if self.lines.is_some_and(|lines| line >= lines) || line == u64::MAX {
            return Taken::Refused;
        }
        let before = self.ranges.range(..=line).next_back().map(|(&first, &end)| (first, end));
        if before.is_some_and(|(_, end)| line < end) {
            return Taken::Again;
        }
        let end = self.ranges.get(&(line + 1)).copied();
        let first = before.filter(|&(_, end)| end == line).map(|(first, _)| first);
        if first.is_none() && end.is_none() && self.ranges.len() == RANGES_MAX {
            return Taken::Refused;
        }
        if end.is_some() {
            self.ranges.remove(&(line + 1));
        }
        self.ranges.insert(first.unwrap_or(line), end.unwrap_or(line + 1));
        Taken::New
    }

    /// The agent says that it has told so many lines in all. False where it contradicts what has
    /// come, or what it said before: then nothing is changed.
    pub fn ends_with(&mut self, lines: u64) -> bool {
        let is_so = self.reach() <= lines && self.lines.is_none_or(|told| told == lines);
        if is_so {
            self.lines = Some(lines);
        }
        is_so
    }

    /// How many have come.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(first, end)| end - first).sum()
    }

    /// Whether the agent has told its end and every line of it has come.
    pub fn is_complete(&self) -> bool {
        self.lines.is_some_and(|lines| self.count() == lines)
    }

    /// Those that are known to be missing: before a line that has come, or before the end that the
    /// agent has told.
    pub fn missing(&self) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut next = 0;
        for (&first, &end) in &self.ranges {
            if next < first {
                missing.push(next..first);
            }
            next = end;
        }
        if let Some(lines) = self.lines.filter(|&lines| next < lines) {
            missing.push(next..lines);
        }
        missing
    }

    /// The line behind the last one that has come.
    pub fn reach(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, &end)| end)
    }

    /// Whether the agent has told its end.
    pub fn is_ended(&self) -> bool {
        self.lines.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use throng_base::Random;

    use super::*;

    #[test]
    fn lines_that_come_in_any_order_and_twice_are_counted_once() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let lines = 1 + random.below(60);
            let mut receipt = Receipt::default();
            let mut come = BTreeSet::new();
            for _ in 0..random.below(200) {
                let line = random.below(lines);
                let taken = if come.insert(line) { Taken::New } else { Taken::Again };
                assert_eq!(receipt.take(line), taken, "seed {seed}");
                assert_eq!(receipt.count(), come.len() as u64, "seed {seed}");
            }
            assert!(receipt.ends_with(lines));
            let missing: Vec<u64> = receipt.missing().into_iter().flatten().collect();
            let wanted: Vec<u64> = (0..lines).filter(|line| !come.contains(line)).collect();
            assert_eq!(missing, wanted, "seed {seed}");
            assert_eq!(receipt.is_complete(), wanted.is_empty());
            for line in wanted {
                assert!(!receipt.is_complete());
                assert_eq!(receipt.take(line), Taken::New);
            }
            assert!(receipt.is_complete() && receipt.missing().is_empty(), "seed {seed}");
        }
    }

    #[test]
    fn nothing_is_complete_before_its_end_is_told() {
        let mut receipt = Receipt::default();
        assert!(!receipt.is_complete());
        assert_eq!(receipt.take(0), Taken::New);
        assert!(!receipt.is_complete() && receipt.missing().is_empty());
        assert!(receipt.ends_with(2) && !receipt.is_complete());
        assert_eq!(receipt.missing(), vec![1..2]);
        assert_eq!(receipt.take(2), Taken::Refused, "it lies behind the end");
        assert!(!receipt.ends_with(3), "it said another end before");
        assert_eq!(receipt.take(1), Taken::New);
        assert!(receipt.is_complete());
        // One that has told nothing at all is complete when it says so.
        assert!(Receipt::default().ends_with(0));
        let mut come = Receipt::default();
        come.take(7);
        assert!(!come.ends_with(7) && !come.is_ended(), "line 7 is the eighth");
    }

    #[test]
    fn memory_is_bounded_when_every_second_line_is_lost() {
        let mut receipt = Receipt::default();
        let taken = (0..2 * RANGES_MAX as u64).map(|line| receipt.take(line * 2));
        let refused = taken.filter(|&taken| taken == Taken::Refused).count();
        assert_eq!(refused, RANGES_MAX);
        assert_eq!(receipt.take(1), Taken::New, "a gap may be filled");
        assert_eq!(receipt.take(u64::MAX), Taken::Refused);
    }
}
