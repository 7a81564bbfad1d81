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
    pub(crate) fn total(&self) -> Option<Duration> {
        (!self.is_held()).then(|| self.until(Time::NEVER))
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
