//! The offset between a machine's clock and the controller's. A request and its reply bound the
//! offset by half of their round trip (Cristian, "Probabilistic clock synchronization", 1989); of
//! several, the shortest round trip is the best, and half of it bounds the error.

use std::time::Duration;

/// An offset: the controller's clock is ahead of ours by this much, within the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    pub ahead_ns: i64,
    pub error_ns: u64,
}

/// Collects round trips, in nanoseconds since the Unix epoch.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    best: Option<Offset>,
}

/// Round trips of one estimate.
pub const ROUND_TRIPS: usize = 8;
/// A larger offset means a wrong clock: certificates would not be valid on both sides.
pub const AHEAD_MAX: Duration = Duration::from_hours(1);

impl Estimate {
    /// Adds a round trip: sent at `sent`, the remote time in the reply, received at `received`.
    /// Ignored if our clock went backwards meanwhile.
    pub fn add(&mut self, sent: u64, theirs: u64, received: u64) {
        let Some(round_trip) = received.checked_sub(sent) else { return };
        let middle = i128::from(sent) + i128::from(round_trip / 2);
        let Ok(ahead_ns) = i64::try_from(i128::from(theirs) - middle) else { return };
        let offset = Offset { ahead_ns, error_ns: round_trip.div_ceil(2) };
        if self.best.is_none_or(|best| offset.error_ns < best.error_ns) {
            self.best = Some(offset);
        }
    }

    pub fn offset(&self) -> Option<Offset> {
        self.best
    }
}

impl Offset {
    /// True if the clocks are plausible.
    pub fn is_plausible(self) -> bool {
        u128::from(self.ahead_ns.unsigned_abs()) <= AHEAD_MAX.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    #[test]
    fn the_true_offset_is_within_the_error() {
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let ahead = i64::try_from(random.below(10_000_000_000)).unwrap() - 5_000_000_000;
            let mut estimate = Estimate::default();
            let mut now = 1_800_000_000_000_000_000;
            for _ in 0..ROUND_TRIPS {
                let (there, back) = (random.below(40_000_000), random.below(4_000_000));
                let theirs = (now + there).checked_add_signed(ahead).unwrap();
                estimate.add(now, theirs, now + there + back);
                now += 1_000_000_000;
            }
            let offset = estimate.offset().unwrap();
            let wrong = offset.ahead_ns.abs_diff(ahead);
            assert!(wrong <= offset.error_ns, "seed {seed}: {wrong} > {}", offset.error_ns);
            assert!(offset.is_plausible());
        }
    }

    #[test]
    fn implausible_clocks_are_detected() {
        let mut estimate = Estimate::default();
        estimate.add(10, 5, 9);
        assert_eq!(estimate.offset(), None, "our clock went backwards");
        estimate.add(0, u64::MAX, 0);
        assert_eq!(estimate.offset(), None, "no clock shows that");
        estimate.add(0, 3_600_000_000_001, 0);
        assert!(!estimate.offset().unwrap().is_plausible(), "more than an hour");
    }
}
