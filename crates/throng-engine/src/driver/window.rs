//! Wakings that are shared: how long a shard sleeps on though something may be due or have come.
//!
//! A waking costs more than what is done in most of them. Where a shard would wake more often than
//! once in a window (the run's precision, or more where nothing begins at a rate), it looks once a
//! window instead: it does what is due by then and hears what has come, which the kernel has
//! stamped. Where less happens, it wakes for each event.

use std::time::Duration;

use throng_base::Time;

/// Events in a window from which on sharing a waking spares more than one sleep costs.
const EVENTS_MIN: f64 = 1.5;
/// Events are counted over this many windows, and over at least this time.
const COUNTED_WINDOWS: u32 = 2;
const COUNTED_MIN: Duration = Duration::from_millis(4);

#[derive(Debug)]
pub(crate) struct Window {
    length: Duration,
    /// When the shard woke, or should have.
    woken: Time,
    /// Events are counted since, and had this number then.
    counted_from: Time,
    counted: u64,
    /// There were many enough.
    is_busy: bool,
}

impl Window {
    pub(crate) fn new(length: Duration, now: Time) -> Window {
        Window { length, woken: now, counted_from: now, counted: 0, is_busy: false }
    }

    /// From now on windows have this length.
    pub(crate) fn has(&mut self, length: Duration) {
        self.length = length;
    }

    /// Whether wakings are shared at all.
    pub(crate) fn is_open(&self) -> bool {
        !self.length.is_zero()
    }

    /// The shard woke for a single event.
    pub(crate) fn woke(&mut self, now: Time) {
        self.woken = now;
    }

    /// All is done that can be done. Until when the shard sleeps on, whatever comes; None when it
    /// wakes for the next event. `events` is how many there were so far.
    pub(crate) fn sleeps_until(&mut self, now: Time, events: u64) -> Option<Time> {
        let passed = now - self.counted_from;
        if passed >= COUNTED_MIN.max(self.length * COUNTED_WINDOWS) {
            let share = self.length.as_secs_f64() / passed.as_secs_f64();
            self.is_busy = (events - self.counted) as f64 * share >= EVENTS_MIN;
            (self.counted_from, self.counted) = (now, events);
        }
        if !self.is_busy {
            return None;
        }
        // A waking that took longer than a window delays the ones behind it.
        self.woken = now.max(self.woken + self.length);
        Some(self.woken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn few_events_wake_at_once_and_many_share_a_waking() {
        let precision = Duration::from_millis(1);
        for (per_second, shares) in [(100, false), (1000, false), (2000, true), (50_000, true)] {
            let mut window = Window::new(precision, Time(0));
            for now in 1..100u64 {
                let until = window.sleeps_until(Time(now * MS), now * per_second / 1000);
                assert_eq!(until.is_some(), shares && now >= 4, "{per_second}/s at {now} ms");
            }
            // What was busy once is not for ever.
            window.sleeps_until(Time(110 * MS), 100 * per_second / 1000);
            assert_eq!(window.sleeps_until(Time(120 * MS), 100 * per_second / 1000), None);
        }
    }

    #[test]
    fn a_shard_wakes_once_a_window_as_far_as_it_can() {
        let mut window = Window::new(Duration::from_millis(1), Time(0));
        window.woke(Time(9_500_000));
        let mut until = |now: u64| window.sleeps_until(Time(now), now / 1000).map(Time::as_nanos);
        // 0.3 ms of the window are used up, then 0.1, then much more than one.
        assert_eq!(until(9_800_000), Some(10_500_000));
        assert_eq!(until(10_600_000), Some(11_500_000));
        assert_eq!(until(15_000_000), Some(15_000_000));
        assert_eq!(until(15_100_000), Some(16_000_000));
        assert!(window.is_open() && !Window::new(Duration::ZERO, Time(0)).is_open());
    }
}
