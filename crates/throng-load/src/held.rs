//! How long nobody was allowed to come: a clock for growth that stands still at times, the same
//! for all shards, whenever each of them hears of it.

use std::time::Duration;

use throng_base::Time;

/// The times during which growth was held, with the last of them by its begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// All together, without the last one.
    pub before: Duration,
    /// The begin of the last one; [`Time::NEVER`] when growth was never held.
    pub from: Time,
    /// Its end; [`Time::NEVER`] while growth is held.
    pub to: Time,
}

impl Default for Held {
    fn default() -> Held {
        Held { before: Duration::ZERO, from: Time::NEVER, to: Time::NEVER }
    }
}

impl Held {
    /// Whether nobody may come from then on, and nobody knows until when.
    pub fn is_held(&self) -> bool {
        self.from != Time::NEVER && self.to == Time::NEVER
    }

    /// How long growth was held until `time`. Exact from the begin of the last time on.
    pub fn until(&self, time: Time) -> Duration {
        self.before + time.min(self.to).since(self.from)
    }

    /// All together; None while growth is held.
    fn total(&self) -> Option<Duration> {
        (!self.is_held()).then(|| self.until(Time::NEVER))
    }
}

/// The clock of growth from an instant on.
#[derive(Clone, Debug)]
pub(crate) struct GrowthClock {
    pub(crate) start: Time,
    pub(crate) held: Held,
    /// How long growth had been held at the start.
    held_before: Duration,
}

impl GrowthClock {
    pub(crate) fn new(start: Time) -> GrowthClock {
        GrowthClock { start, held: Held::default(), held_before: Duration::ZERO }
    }

    pub(crate) fn stretch(&mut self, start: Time) {
        self.start = start;
        self.held_before = self.held.until(start);
    }

    /// Growth is held, or goes on.
    pub(crate) fn hold(&mut self, held: Held) {
        self.held = held;
        // What was held at the start is known only now.
        if held.from <= self.start {
            self.held_before = held.until(self.start);
        }
    }

    /// How much of the time until then growth was not held.
    pub(crate) fn passed(&self, time: Time) -> Duration {
        time.since(self.start).saturating_sub(self.held_until(time))
    }

    pub(crate) fn was_held_until(&self, time: Time) -> bool {
        !self.held_until(time).is_zero()
    }

    fn held_until(&self, time: Time) -> Duration {
        self.held.until(time).saturating_sub(self.held_before)
    }

    /// When somebody comes who is due so long after the start; None while growth is held before.
    pub(crate) fn comes(&self, after: Duration) -> Option<Time> {
        if self.comes_before_held(after) {
            return Some(self.unheld(after));
        }
        Some(self.start + after + self.held.total()?.saturating_sub(self.held_before))
    }

    /// Whether somebody who is due so long after the start comes before growth is held again.
    pub(crate) fn comes_before_held(&self, after: Duration) -> bool {
        self.held.from > self.start && self.unheld(after) < self.held.from
    }

    /// When somebody comes who is due so long after the start, if growth is not held again.
    pub(crate) fn unheld(&self, after: Duration) -> Time {
        self.start + after + self.held.before.saturating_sub(self.held_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stands_still_while_growth_is_held() {
        let ten = Duration::from_secs(10);
        let never = Held::default();
        assert_eq!((never.is_held(), never.total()), (false, Some(Duration::ZERO)));
        assert_eq!(never.until(Time::NEVER), Duration::ZERO);
        let held = Held { before: ten, from: Time::from_secs(50), to: Time::NEVER };
        assert_eq!((held.is_held(), held.total()), (true, None));
        assert_eq!(held.until(Time::from_secs(50)), ten);
        assert_eq!(held.until(Time::from_secs(60)), 2 * ten);
        let over = Held { to: Time::from_secs(70), ..held };
        assert_eq!(over.total(), Some(3 * ten));
        assert_eq!(over.until(Time::from_secs(55)), Duration::from_secs(15));
    }
}
