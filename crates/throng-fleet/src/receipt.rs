//! Tracks which numbered lines of each agent have arrived. An agent numbers the lines of one
//! incarnation (one life of its process) from 0 and reports their number at its end. Lines can
//! arrive in any order and more than once; the receipt tells whether a line is new, and finally
//! whether all have arrived. A run is complete only then, never because of elapsed time.

use std::collections::BTreeMap;
use std::ops::Range;

/// The received lines of one incarnation, as ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// From the first line to the line after the last.
    ranges: BTreeMap<u64, u64>,
    /// The total number of lines, once the agent has reported it.
    lines: Option<u64>,
}

/// The result of noting a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    New,
    /// A duplicate: its figures are already included.
    Again,
    /// It cannot be noted, so it must not be included: there are too many gaps before it, or it is
    /// after the reported end.
    Refused,
}

/// Maximum number of ranges of one incarnation. A log preserves the order of each sender, so more
/// than a few gaps are a defect; memory stays bounded even then.
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

    /// Sets the total that the agent reports. False, without effect, if it contradicts the received
    /// lines or an earlier total.
    pub fn ends_with(&mut self, lines: u64) -> bool {
        let is_so = self.reach() <= lines && self.lines.is_none_or(|told| told == lines);
        if is_so {
            self.lines = Some(lines);
        }
        is_so
    }

    /// The number of received lines.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(first, end)| end - first).sum()
    }

    /// True if the agent has reported its end and all lines have arrived.
    pub fn is_complete(&self) -> bool {
        self.lines.is_some_and(|lines| self.count() == lines)
    }

    /// Lines known to be missing: before a received line, or before the reported end.
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

    /// The line after the last received one.
    pub fn reach(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, &end)| end)
    }

    /// True if the agent has reported its end.
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
    fn lines_in_any_order_and_duplicates_are_counted_once() {
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
    fn nothing_is_complete_before_its_end_is_reported() {
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
        // An agent without any lines is complete when it reports that.
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
