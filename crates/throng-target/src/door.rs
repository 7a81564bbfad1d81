//! Limits the number of connections and their rate, for all workers together.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use throng_base::Time;

use crate::sums::lock;

pub(crate) struct Door {
    inside_max: Option<u64>,
    inside: AtomicU64,
    pace: Option<Mutex<Pace>>,
}

/// Admission times at equal intervals, unless connections arrive more slowly.
struct Pace {
    distance: Duration,
    next: Time,
}

impl Door {
    pub(crate) fn new(inside_max: Option<u64>, per_s: Option<f64>) -> Door {
        let pace = per_s.map(|per_s| {
            let distance = Duration::from_secs_f64((1.0 / per_s).min(DISTANCE_SECONDS_MAX));
            Mutex::new(Pace { distance, next: Time::ZERO })
        });
        Door { inside_max, inside: AtomicU64::new(0), pace }
    }

    /// Whether a connection is admitted. Call [`Door::leave`] when it ends.
    pub(crate) fn enter(&self) -> bool {
        let Some(max) = self.inside_max else { return true };
        if self.inside.fetch_add(1, Ordering::Relaxed) < max {
            return true;
        }
        self.leave();
        false
    }

    pub(crate) fn leave(&self) {
        if self.inside_max.is_some() {
            self.inside.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// How long a new connection has to wait.
    pub(crate) fn wait(&self, now: Time) -> Duration {
        let Some(pace) = &self.pace else { return Duration::ZERO };
        let mut pace = lock(pace);
        let at = pace.next.max(now);
        pace.next = at + pace.distance;
        at - now
    }
}

/// Maximum interval between two connections.
const DISTANCE_SECONDS_MAX: f64 = 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_connections_is_limited() {
        let door = Door::new(Some(2), None);
        assert_eq!(
            [door.enter(), door.enter(), door.enter(), door.enter()],
            [true, true, false, false]
        );
        door.leave();
        assert_eq!([door.enter(), door.enter()], [true, false]);
        let open = Door::new(None, None);
        assert!((0..100).all(|_| open.enter()));
    }

    #[test]
    fn connections_are_admitted_at_the_configured_rate() {
        let door = Door::new(None, Some(10.0));
        let wait = |ms: u64| door.wait(Time(ms * 1_000_000)).as_millis();
        assert_eq!([wait(0), wait(0), wait(50), wait(450), wait(450)], [0, 100, 150, 0, 100]);
    }
}
