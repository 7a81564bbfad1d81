//! Shared wake-ups: how long a shard sleeps although something may be due or have arrived.
//!
//! A wake-up costs more than most of the work it does. If a shard would wake more often than once
//! per window (the run's precision, or longer if nothing starts at a rate), it wakes once per
//! window instead: it does what is due by then, and reads what has arrived, with the kernel's
//! timestamps. With less load, it wakes for each event.

use std::time::Duration;

use throng_base::Time;

/// Events per window above which sharing a wake-up saves more than the sleep costs.
const EVENTS_MIN: f64 = 1.5;
/// Events are counted over this many windows, and over at least this time.
const COUNTED_WINDOWS: u32 = 2;
const COUNTED_MIN: Duration = Duration::from_millis(4);

#[derive(Debug)]
pub(crate) struct Window {
    length: Duration,
    /// When the shard woke, or should have.
    woken: Time,
    /// Start of the count of events, and the count at that time.
    counted_from: Time,
    counted: u64,
    /// There were enough events.
    is_busy: bool,
}

impl Window {
    pub(crate) fn new(length: Duration, now: Time) -> Window {
        Window { length, woken: now, counted_from: now, counted: 0, is_busy: false }
    }

    /// Changes the length of the windows.
    pub(crate) fn has(&mut self, length: Duration) {
        self.length = length;
    }

    /// Whether wake-ups are shared at all.
    pub(crate) fn is_open(&self) -> bool {
        !self.length.is_zero()
    }

    /// The shard woke for a single event.
    pub(crate) fn woke(&mut self, now: Time) {
        self.woken = now;
    }

    /// All work is done. Returns until when the shard sleeps, whatever arrives; `None` to wake for
    /// the next event. `events` is the total number of events.
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
        // A wake-up that took longer than a window delays the following ones.
        self.woken = now.max(self.woken + self.length);
        Some(self.woken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn few_events_wake_immediately_and_many_share_a_wake_up() {
        let precision = Duration::from_millis(1);
        for (per_second, shares) in [(100, false), (1000, false), (2000, true), (50_000, true)] {
            let mut window = Window::new(precision, Time(0));
            for now in 1..100u64 {
                let until = window.sleeps_until(Time(now * MS), now * per_second / 1000);
                assert_eq!(until.is_some(), shares && now >= 4, "{per_second}/s at {now} ms");
            }
            // Being busy once has no lasting effect.
            window.sleeps_until(Time(110 * MS), 100 * per_second / 1000);
            assert_eq!(window.sleeps_until(Time(120 * MS), 100 * per_second / 1000), None);
        }
    }

    #[test]
    fn a_shard_wakes_once_per_window_if_it_can() {
        let mut window = Window::new(Duration::from_millis(1), Time(0));
        window.woke(Time(9_500_000));
        let mut until = |now: u64| window.sleeps_until(Time(now), now / 1000).map(Time::as_nanos);
        // 0.3 ms of the window are used up, then 0.1, then much more than one window.
        assert_eq!(until(9_800_000), Some(10_500_000));
        assert_eq!(until(10_600_000), Some(11_500_000));
        assert_eq!(until(15_000_000), Some(15_000_000));
        assert_eq!(until(15_100_000), Some(16_000_000));
        assert!(window.is_open() && !Window::new(Duration::ZERO, Time(0)).is_open());
    }
}
