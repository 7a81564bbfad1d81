//! The wall clock beside the clock of the run: converts times of the run to wall time, and the
//! kernel's timestamps, which are wall time, to times of the run.

use std::cell::Cell;
use std::time::Duration;

use throng_base::{Clock, Time};

/// The offset between the clocks is measured again after this time. A clock that is being slewed
/// runs at most 0.05 % too fast or too slow (adjtimex(2)): half a microsecond.
const LOOK: Duration = Duration::from_millis(1);
/// Maximum difference of two measurements if the wall clock was not set.
const DIFFERENCE_MAX: Duration = Duration::from_micros(50);
/// Both clocks must be read within this time, or they are read again: a thread may be preempted in
/// between.
const READING_MAX: Duration = Duration::from_micros(3);
const READINGS_MAX: u32 = 3;

/// The wall clock, in nanoseconds since the epoch, at time zero of the run's clock.
#[derive(Debug, Default)]
pub(crate) struct Wall {
    offset: Cell<u64>,
    looked: Cell<Time>,
    step: Cell<Option<Step>>,
}

/// The wall clock was set.
#[derive(Clone, Copy, Debug)]
struct Step {
    offset_before: u64,
    /// Between these two measurements.
    after: Time,
    noticed: Time,
}

impl Wall {
    pub(crate) fn new(clock: &Clock) -> Wall {
        let wall = Wall::default();
        let (now, unix) = read(clock);
        wall.offset.set(unix.wrapping_sub(now.as_nanos()));
        wall.looked.set(now);
        wall
    }

    pub(crate) fn look(&self, clock: &Clock) {
        let (now, unix) = read(clock);
        self.looked_at(now, unix);
    }

    fn looked_at(&self, now: Time, unix: u64) {
        let offset = unix.wrapping_sub(now.as_nanos());
        let offset_before = self.offset.replace(offset);
        let after = self.looked.replace(now);
        let slewed = (now - after) / 1000;
        if Duration::from_nanos(offset.abs_diff(offset_before)) > DIFFERENCE_MAX + slewed {
            self.step.set(Some(Step { offset_before, after, noticed: now }));
        }
    }

    /// A time in nanoseconds since the epoch.
    pub(crate) fn unix_nanos(&self, at: Time) -> u64 {
        self.offset.get().wrapping_add(at.as_nanos())
    }

    /// Arrival time of data that was read at `read`, from the kernel's timestamp in nanoseconds
    /// since the epoch; `read` without a timestamp (0), or with one that cannot be trusted.
    #[inline]
    pub(crate) fn moment(&self, clock: &Clock, read: Time, stamp: u64) -> Time {
        if stamp == 0 {
            return read;
        }
        let at = stamp.wrapping_sub(self.offset.get());
        let is_plausible = at <= read.as_nanos() && read.as_nanos() - at < LOOK.as_nanos() as u64;
        if read - self.looked.get() >= LOOK || !is_plausible && self.looked.get() < read {
            self.look(clock);
        }
        self.converted(read, stamp)
    }

    fn converted(&self, read: Time, stamp: u64) -> Time {
        let by = |offset: u64| stamp.checked_sub(offset).map(Time).filter(|at| *at <= read);
        let at = by(self.offset.get());
        let Some(step) = self.step.get() else { return at.unwrap_or(read) };
        let before = || by(step.offset_before).filter(|at| *at <= step.noticed);
        match at {
            Some(at) if at >= step.noticed => at,
            // It may have been stamped before or after the clock was set.
            Some(at) if at >= step.after => {
                if before().is_none() {
                    at
                } else {
                    read
                }
            }
            _ => before().unwrap_or(read),
        }
    }
}

/// Both clocks at the same time.
fn read(clock: &Clock) -> (Time, u64) {
    let mut readings = 0;
    loop {
        let (before, unix, after) = (clock.now(), clock.unix_nanos(), clock.now());
        readings += 1;
        if after - before <= READING_MAX || readings == READINGS_MAX {
            return (before + (after - before) / 2, unix);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: u64 = 1_800_000_000_000_000_000;
    const MS: u64 = 1_000_000;

    fn wall(now: u64) -> Wall {
        let wall = Wall::default();
        wall.looked_at(Time(now), EPOCH + now);
        wall.step.set(None);
        wall
    }

    #[test]
    fn a_timestamp_is_converted_to_run_time() {
        let wall = wall(5 * MS);
        assert_eq!(wall.converted(Time(6 * MS), EPOCH + 5_250_000), Time(5_250_000));
        assert_eq!(wall.unix_nanos(Time(7)), EPOCH + 7);
        // From the future, or from before the run: the time of reading.
        assert_eq!(wall.converted(Time(6 * MS), EPOCH + 7 * MS), Time(6 * MS));
        assert_eq!(wall.converted(Time(6 * MS), EPOCH - 1), Time(6 * MS));
        let clock = Clock::simulated();
        assert_eq!(Wall::new(&clock).moment(&clock, Time(3), 0), Time(3));
    }

    #[test]
    fn a_slewed_clock_is_followed() {
        let wall = wall(0);
        for look in 1..=1000u64 {
            wall.looked_at(Time(look * MS), EPOCH + look * MS + look * 500);
        }
        assert!(wall.step.get().is_none());
        let stamp = EPOCH + 1000 * MS + 500_000 - 200;
        assert_eq!(wall.converted(Time(1000 * MS + 100), stamp), Time(1000 * MS - 200));
    }

    #[test]
    fn setting_the_clock_changes_no_time_of_the_run() {
        for forward in [true, false] {
            let set = |unix: u64| if forward { unix + 3_600_000 * MS } else { unix - 60_000 * MS };
            let wall = wall(10 * MS);
            // It was set at 10.5 ms, which is noticed at 11 ms.
            wall.looked_at(Time(11 * MS), set(EPOCH + 11 * MS));
            let read = Time(11 * MS + 1);
            let old = wall.converted(read, EPOCH + 10 * MS + 400_000);
            let new = wall.converted(read, set(EPOCH + 10 * MS + 600_000));
            assert_eq!((old, new), (Time(10_400_000), Time(10_600_000)));
            assert_eq!(wall.converted(read, EPOCH + 9 * MS), Time(9 * MS));
            let later = wall.converted(Time(30 * MS), set(EPOCH + 20 * MS));
            assert_eq!(later, Time(20 * MS));
        }
    }

    #[test]
    fn a_small_clock_step_is_applied_only_if_certain() {
        let wall = wall(10 * MS);
        wall.looked_at(Time(11 * MS), EPOCH + 11 * MS + 200_000);
        let read = Time(11 * MS + 100);
        // It may have arrived before the step, at 10.3 ms, or after it, at 10.1 ms.
        assert_eq!(wall.converted(read, EPOCH + 10 * MS + 300_000), read);
        assert_eq!(wall.converted(read, EPOCH + 9 * MS + 500_000), Time(9_500_000));
        assert_eq!(wall.converted(Time(13 * MS), EPOCH + 12 * MS + 200_000), Time(12 * MS));
    }
}
