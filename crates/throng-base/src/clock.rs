//! Time as an argument: nanoseconds since the start of a run, from a real or a simulated clock.
//! Only this module reads the system's clocks.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A moment, in nanoseconds since the clock's origin (the start of the run).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    pub const ZERO: Time = Time(0);
    /// Later than any time in a run: 584 years.
    pub const NEVER: Time = Time(u64::MAX);

    pub fn from_secs(seconds: u64) -> Time {
        Time(seconds.saturating_mul(1_000_000_000))
    }

    pub fn as_nanos(self) -> u64 {
        self.0
    }

    /// The whole second of the run that contains this time.
    pub fn second(self) -> u64 {
        self.0 / 1_000_000_000
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub fn saturating_add(self, duration: Duration) -> Time {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(nanos))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, duration: Duration) -> Time {
        self.saturating_add(duration)
    }
}

impl Sub<Time> for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.as_secs_f64())
    }
}

/// The source of time. Clones share their origin; clones of a simulated clock share their time.
#[derive(Clone, Debug)]
pub enum Clock {
    Real { origin: Instant },
    Simulated { hand: Arc<AtomicU64> },
}

impl Clock {
    /// A clock that starts now.
    #[allow(clippy::disallowed_methods)]
    pub fn start() -> Clock {
        Clock::Real { origin: Instant::now() }
    }

    /// A clock that starts after a delay, and is at zero until then.
    #[allow(clippy::disallowed_methods)]
    pub fn start_in(ahead: Duration) -> Clock {
        Clock::Real { origin: Instant::now() + ahead }
    }

    /// A clock that started some time ago.
    #[allow(clippy::disallowed_methods)]
    pub fn started(ago: Duration) -> Clock {
        let now = Instant::now();
        Clock::Real { origin: now.checked_sub(ago).unwrap_or(now) }
    }

    /// Sleeps until the clock starts.
    #[allow(clippy::disallowed_methods)]
    pub fn wait_for_zero(&self) {
        if let Clock::Real { origin } = self {
            std::thread::sleep(origin.saturating_duration_since(Instant::now()));
        }
    }

    /// A clock that only [`Clock::set`] changes.
    pub fn simulated() -> Clock {
        Clock::Simulated { hand: Arc::new(AtomicU64::new(0)) }
    }

    #[allow(clippy::disallowed_methods)]
    #[inline]
    pub fn now(&self) -> Time {
        match self {
            Clock::Real { origin } => Time(origin.elapsed().as_nanos() as u64),
            Clock::Simulated { hand } => Time(hand.load(Ordering::Relaxed)),
        }
    }

    /// The wall-clock time in nanoseconds since the Unix epoch. A simulated clock starts there.
    pub fn unix_nanos(&self) -> u64 {
        match self {
            Clock::Real { .. } => u64::try_from(wall_now().as_nanos()).unwrap_or(u64::MAX),
            Clock::Simulated { hand } => hand.load(Ordering::Relaxed),
        }
    }

    /// Advances a simulated clock; earlier times and real clocks are ignored.
    pub fn set(&self, time: Time) {
        if let Clock::Simulated { hand } = self {
            hand.fetch_max(time.0, Ordering::Relaxed);
        }
    }
}

/// The wall-clock time since the Unix epoch, for recorded times and names, never for measurements.
#[allow(clippy::disallowed_methods)]
pub fn wall_now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_moves_only_forward() {
        let clock = Clock::simulated();
        let twin = clock.clone();
        clock.set(Time::from_secs(5));
        twin.set(Time::from_secs(3));
        assert_eq!(twin.now(), Time::from_secs(5));
    }

    #[test]
    fn sums_saturate() {
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO - Time::from_secs(1), Duration::ZERO);
        assert_eq!(Time(1_999_999_999).second(), 1);
    }
}
