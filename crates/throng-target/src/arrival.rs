//! Arrival times of received data: the kernel's receive timestamps, converted to the server's
//! clock.

use std::cell::Cell;

use throng_base::{Clock, Time};

/// If the difference between two clocks changes by more than this, the wall clock was set.
const STEP_NS_MIN: u64 = 100_000;

/// When bytes arrived, and when they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When the last byte arrived at the socket.
    pub(crate) at: Time,
    pub(crate) read: Time,
}

/// Converts wall-clock timestamps to a worker's clock. Both have the same rate, even while the wall
/// clock is slewed, so their difference changes only when the wall clock is set.
pub(crate) struct Arrivals {
    clock: Clock,
    /// The last difference between the wall clock and the worker's clock, in nanoseconds.
    apart_ns: Cell<i64>,
    /// Earlier timestamps may be from before the wall clock was set.
    steady_since: Cell<Time>,
}

impl Arrivals {
    pub(crate) fn new(clock: Clock) -> Arrivals {
        let (wall_ns, now) = (clock.unix_nanos(), clock.now());
        let apart_ns = Cell::new(apart_ns(wall_ns, now));
        Arrivals { clock, apart_ns, steady_since: Cell::new(Time::ZERO) }
    }

    /// The arrival of data that was just read, with its wall-clock timestamp in nanoseconds.
    pub(crate) fn note(&self, stamp: Option<u64>) -> Arrival {
        let (wall_ns, read) = (self.clock.unix_nanos(), self.clock.now());
        Arrival { at: self.at(stamp, wall_ns, read), read }
    }

    /// The time of reading if the timestamp is missing or impossible.
    fn at(&self, stamp: Option<u64>, wall_ns: u64, now: Time) -> Time {
        let apart_ns = apart_ns(wall_ns, now);
        if apart_ns.abs_diff(self.apart_ns.replace(apart_ns)) >= STEP_NS_MIN {
            self.steady_since.set(now);
        }
        let waited_ns = stamp.and_then(|stamp| wall_ns.checked_sub(stamp));
        let at = waited_ns.and_then(|waited_ns| now.0.checked_sub(waited_ns)).map(Time);
        at.filter(|at| *at >= self.steady_since.get()).unwrap_or(now)
    }
}

fn apart_ns(wall_ns: u64, now: Time) -> i64 {
    (wall_ns as i64).wrapping_sub(now.0 as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// The wall-clock time at the start of the worker's clock.
    const EPOCH: u64 = 1_800_000_000_000 * MS;

    /// Last compared at zero, after a long time without a change.
    fn arrivals() -> Arrivals {
        let clock = Clock::simulated();
        let arrivals = Arrivals::new(clock);
        arrivals.apart_ns.set(EPOCH as i64);
        arrivals
    }

    /// Reads at a time on both clocks, in milliseconds since the start.
    fn check(arrivals: &Arrivals, stamp: Option<u64>, wall: u64, now: u64, arrived: u64) {
        let stamp = stamp.map(|ms| EPOCH + ms * MS);
        let at = arrivals.at(stamp, EPOCH + wall * MS, Time(now * MS));
        assert_eq!(at, Time(arrived * MS), "{stamp:?} read at {wall}, {now}");
    }

    #[test]
    fn a_timestamp_shows_how_long_data_waited() {
        let arrivals = arrivals();
        check(&arrivals, Some(970), 1000, 1000, 970);
        check(&arrivals, Some(1000), 1000, 1000, 1000);
        check(&arrivals, Some(1), 90_000, 90_000, 1);
    }

    #[test]
    fn without_a_plausible_timestamp_the_time_of_reading_is_used() {
        let arrivals = arrivals();
        check(&arrivals, None, 1000, 1000, 1000);
        check(&arrivals, Some(1001), 1000, 1000, 1000);
        let ancient = arrivals.at(Some(EPOCH - MS), EPOCH + MS, Time(MS));
        assert_eq!(ancient, Time(MS), "before the server");
    }

    #[test]
    fn timestamps_from_before_a_clock_change_are_ignored() {
        // An hour forward, then back: (wall, now) in ms.
        for hour in [3_600_000, -3_600_000] {
            let wall = |now: u64| (7_200_000 + now).saturating_add_signed(hour);
            let arrivals = arrivals();
            check(&arrivals, Some(7_199_999), 7_200_000, 7_200_000, 7_199_999);
            // Both messages were in their sockets when the clock was set.
            check(&arrivals, Some(7_200_001), wall(10), 7_200_010, 7_200_010);
            check(&arrivals, Some(7_200_002), wall(11), 7_200_011, 7_200_011);
            check(&arrivals, Some(wall(12)), wall(42), 7_200_042, 7_200_012);
        }
    }

    #[test]
    fn the_time_between_two_clock_readings_is_not_a_clock_change() {
        let arrivals = arrivals();
        check(&arrivals, Some(970), 1000, 1000, 970);
        let late = Time(2000 * MS + 40_000);
        let at = arrivals.at(Some(EPOCH + 1000 * MS), EPOCH + 2000 * MS, late);
        assert_eq!(at, Time(1000 * MS + 40_000));
    }
}
