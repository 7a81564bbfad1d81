//! Events at a constant or linearly changing rate: computes when the k-th one is due.

use std::time::Duration;

/// More events than any run has; a power of two.
const COUNT_MAX: u64 = 1 << 62;

/// A rate that changes linearly from one value to another, and stays constant afterwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// Events per second at the start.
    from: f64,
    /// Change of the rate per second.
    slope: f64,
    /// Seconds; infinite for a constant rate without end.
    length: f64,
}

impl Curve {
    pub fn constant(rate: f64) -> Curve {
        Curve { from: rate, slope: 0.0, length: f64::INFINITY }
    }

    pub fn ramp(from: f64, to: f64, time: Duration) -> Curve {
        Curve::piece(from, to, time.as_secs_f64())
    }

    /// From one rate to another in this many seconds.
    pub(crate) fn piece(from: f64, to: f64, length: f64) -> Curve {
        let slope = if length > 0.0 { (to - from) / length } else { 0.0 };
        Curve { from, slope, length }
    }

    /// When event `k` (from 0) is due, after the start; None if it never is.
    pub fn due(&self, k: u64) -> Option<Duration> {
        self.reaches(k as f64).map(nanoseconds)
    }

    /// The seconds after which there have been this many events; None if there never are.
    ///
    /// The number of events until t is the integral of the rate, `from·t + slope·t²/2`. This is its
    /// inverse, in the form that stays precise for a small slope.
    pub(crate) fn reaches(&self, wanted: f64) -> Option<f64> {
        if wanted == 0.0 && (self.from > 0.0 || self.slope > 0.0) {
            return Some(0.0);
        }
        let root = self.from * self.from + 2.0 * self.slope * wanted;
        if root < 0.0 {
            return None;
        }
        let divisor = self.from + root.sqrt();
        let seconds = 2.0 * wanted / divisor;
        (divisor > 0.0 && seconds <= self.length).then_some(seconds)
    }

    /// The number of events until this many seconds after the start.
    pub(crate) fn until(&self, seconds: f64) -> f64 {
        let within = seconds.clamp(0.0, self.length);
        f64::midpoint(self.from, self.rate_at(within)) * within
    }

    pub(crate) fn length(&self) -> f64 {
        self.length
    }

    pub(crate) fn is_constant(&self) -> bool {
        self.slope == 0.0
    }

    /// The rate this many seconds after the start.
    pub(crate) fn rate_at(&self, seconds: f64) -> f64 {
        match self.is_constant() {
            true => self.from,
            false => self.from + self.slope * seconds.clamp(0.0, self.length),
        }
    }

    /// How many events are due before `time`: exactly those for which [`Curve::due`] says so.
    ///
    /// Computed with it and not from the integral: the two round differently, and the results must
    /// not differ by an event.
    pub fn count_before(&self, time: Duration) -> u64 {
        count(|k| self.due(k).is_some_and(|due| due < time))
    }
}

/// The number of leading events for which `before` is true; it must be false for all others.
pub(crate) fn count(before: impl Fn(u64) -> bool) -> u64 {
    if !before(0) {
        return 0;
    }
    // Invariant: event `low` is before, event `high` is not.
    let mut high = 1;
    while high < COUNT_MAX && before(high) {
        high *= 2;
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        match before(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

pub(crate) fn nanoseconds(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    fn count(curve: Curve, until: f64) -> u64 {
        (0..).take_while(|k| curve.due(*k).is_some_and(|due| due.as_secs_f64() < until)).count()
            as u64
    }

    #[test]
    fn a_constant_rate_is_even() {
        let curve = Curve::constant(500.0);
        assert_eq!(curve.due(0), Some(Duration::ZERO));
        assert_eq!(curve.due(250), Some(Duration::from_millis(500)));
        assert_eq!(count(curve, 2.0), 1000);
        assert_eq!(curve.due(1_000_000_000_000).map(|due| due.as_secs()), Some(2_000_000_000));
    }

    #[test]
    fn a_ramp_has_the_area_of_a_triangle() {
        let ten = Duration::from_secs(10);
        assert_eq!(count(Curve::ramp(0.0, 100.0, ten), 10.0), 500);
        assert_eq!(count(Curve::ramp(100.0, 0.0, ten), 10.0), 500);
        assert_eq!(count(Curve::ramp(50.0, 150.0, ten), 10.0), 1000);
        assert_eq!(Curve::ramp(100.0, 0.0, ten).due(501), None);
    }

    #[test]
    fn counts_agree_with_due_times() {
        let mut random = Random::new(20);
        for round in 0..3000 {
            let time = Duration::from_millis(1 + random.below(40_000));
            let rate = |random: &mut Random| match random.below(3) {
                0 => random.below(1000) as f64 / 60.0,
                1 => random.below(2000) as f64 / 7.0,
                _ => random.below(100) as f64,
            };
            let (from, to) = (rate(&mut random), rate(&mut random));
            let curve = match round % 2 {
                0 => Curve::constant(from),
                _ => Curve::ramp(from, to, time),
            };
            let until = time.mul_f64(random.below(3) as f64 / 2.0);
            let due = |k: &u64| curve.due(*k).is_some_and(|due| due < until);
            let counted = (0..).take_while(due).count() as u64;
            assert_eq!(curve.count_before(until), counted, "{curve:?} until {until:?}");
        }
        let minute = Curve::constant(62.0 / 60.0);
        assert_eq!(minute.count_before(Duration::from_secs(30)), 31);
        assert_eq!(Curve::constant(1e18).count_before(Duration::MAX), COUNT_MAX);
    }

    #[test]
    fn a_zero_rate_has_no_events() {
        assert_eq!(Curve::constant(0.0).due(0), None);
        assert_eq!(Curve::constant(0.0).due(1), None);
        assert_eq!(Curve::ramp(0.0, 0.0, Duration::from_secs(1)).due(1), None);
    }

    #[test]
    fn due_times_are_monotonic() {
        let curve = Curve::ramp(1.0, 20_000.0, Duration::from_secs(30));
        let mut before = Duration::ZERO;
        for k in 0..300_000 {
            let due = curve.due(k).expect("within the ramp");
            assert!(due >= before, "{k}");
            before = due;
        }
    }
}
