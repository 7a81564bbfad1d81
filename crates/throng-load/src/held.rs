//! The clock of growth, which stops while growth is paused. It is the same for all shards,
//! regardless of when each receives a pause.

use std::time::Duration;

use throng_base::Time;

/// The pauses of growth: their total, and the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Total time of all pauses except the last.
    pub before: Duration,
    /// The start of the last pause; [`Time::NEVER`] if growth was never paused.
    pub from: Time,
    /// Its end; [`Time::NEVER`] while growth is paused.
    pub to: Time,
}

impl Default for Held {
    fn default() -> Held {
        Held { before: Duration::ZERO, from: Time::NEVER, to: Time::NEVER }
    }
}

impl Held {
    /// Whether growth is paused and the end of the pause is unknown.
    pub fn is_held(&self) -> bool {
        self.from != Time::NEVER && self.to == Time::NEVER
    }

    /// The total pause until `time`; exact from the start of the last pause on.
    pub fn until(&self, time: Time) -> Duration {
        self.before + time.min(self.to).since(self.from)
    }

    /// The total pause; `None` while growth is paused.
    fn total(&self) -> Option<Duration> {
        (!self.is_held()).then(|| self.until(Time::NEVER))
    }
}

/// The clock of growth since a start.
#[derive(Clone, Debug)]
pub(crate) struct GrowthClock {
    pub(crate) start: Time,
    pub(crate) held: Held,
    /// The total pause at the start.
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

    /// Growth was paused or resumed.
    pub(crate) fn hold(&mut self, held: Held) {
        self.held = held;
        // The total pause at the start is known only now.
        if held.from <= self.start {
            self.held_before = held.until(self.start);
        }
    }

    /// The time until then without pauses.
    pub(crate) fn passed(&self, time: Time) -> Duration {
        time.since(self.start).saturating_sub(self.held_until(time))
    }

    pub(crate) fn was_held_until(&self, time: Time) -> bool {
        !self.held_until(time).is_zero()
    }

    fn held_until(&self, time: Time) -> Duration {
        self.held.until(time).saturating_sub(self.held_before)
    }

    /// When a user starts that is due this long after the start; `None` if growth is paused before.
    pub(crate) fn comes(&self, after: Duration) -> Option<Time> {
        if self.comes_before_held(after) {
            return Some(self.unheld(after));
        }
        Some(self.start + after + self.held.total()?.saturating_sub(self.held_before))
    }

    /// Whether a user that is due this long after the start starts before the next pause.
    pub(crate) fn comes_before_held(&self, after: Duration) -> bool {
        self.held.from > self.start && self.unheld(after) < self.held.from
    }

    /// When a user starts that is due this long after the start, if growth is not paused again.
    pub(crate) fn unheld(&self, after: Duration) -> Time {
        self.start + after + self.held.before.saturating_sub(self.held_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_stops_while_growth_is_paused() {
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
