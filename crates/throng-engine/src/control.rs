//! How a run is stopped before its time, from outside or by a user of any shard, and the gate
//! that lets users go on step by step.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use throng_base::Time;

/// Stops the run. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Control {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    word: AtomicU8,
    stopped: OnceLock<Stopped>,
}

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    pub at: Time,
    pub reason: String,
    pub by: StoppedBy,
}

/// What stopped a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoppedBy {
    /// The verb `stop` or `on_error: stop`.
    Rule,
    /// A source of data is at its end: a normal end.
    Data,
}

pub(crate) const STOP: u8 = 1;
pub(crate) const ABORT: u8 = 2;

impl Control {
    /// No new work; users finish their step and leave, within the graceful stop.
    pub fn stop(&self) {
        self.state.word.fetch_max(STOP, Ordering::Relaxed);
    }

    /// Users leave at once.
    pub fn abort(&self) {
        self.state.word.fetch_max(ABORT, Ordering::Relaxed);
    }

    /// Stops for a reason. The first reason is the reason; a run that is stopping has none.
    pub(crate) fn stop_because(&self, reason: impl FnOnce() -> Stopped) {
        let (order, other) = (Ordering::AcqRel, Ordering::Acquire);
        if self.state.word.compare_exchange(0, STOP, order, other).is_ok() {
            // Who stopped it is the only one who gets here.
            let _ = self.state.stopped.set(reason());
        }
    }

    /// The reason, once there is one.
    pub(crate) fn stopped(&self) -> Option<&Stopped> {
        self.state.stopped.get()
    }

    pub(crate) fn word(&self) -> u8 {
        self.state.word.load(Ordering::Relaxed)
    }
}

/// Users wait here before every step until they are let through.
#[derive(Debug, Default)]
pub struct Gate {
    permits: AtomicU64,
}

/// So many permits are for ever.
const OPEN: u64 = u64::MAX;

impl Gate {
    /// Lets one user do one step.
    pub fn permit(&self) {
        let more = |permits: u64| Some(permits.saturating_add(1));
        let _ = self.permits.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
    }

    /// Lets all users go on without being asked again.
    pub fn open(&self) {
        self.permits.store(OPEN, Ordering::Release);
    }

    /// Takes a permit, if there is one.
    pub(crate) fn pass(&self) -> bool {
        let fewer = |permits: u64| match permits {
            OPEN => Some(OPEN),
            permits => permits.checked_sub(1),
        };
        self.permits.fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(reason: &str) -> Stopped {
        Stopped { at: Time::ZERO, reason: reason.into(), by: StoppedBy::Rule }
    }

    #[test]
    fn the_first_reason_is_the_reason() {
        let control = Control::default();
        assert_eq!((control.word(), control.stopped()), (0, None));
        let threads: Vec<_> = (0..4)
            .map(|index| {
                let control = control.clone();
                let work = move || control.stop_because(|| stopped(&index.to_string()));
                std::thread::spawn(work)
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let first = control.stopped().cloned();
        control.stop_because(|| stopped("later"));
        assert!(first.is_some());
        assert_eq!((control.word(), control.stopped().cloned()), (STOP, first));
    }

    #[test]
    fn a_run_that_was_stopped_from_outside_has_no_reason() {
        let control = Control::default();
        control.stop();
        control.stop_because(|| stopped("later"));
        assert_eq!(control.stopped(), None);
        control.abort();
        assert_eq!(control.word(), ABORT);
    }

    #[test]
    fn a_gate_lets_through_as_many_as_are_permitted() {
        let gate = Gate::default();
        assert!(!gate.pass());
        gate.permit();
        gate.permit();
        assert!(gate.pass() && gate.pass() && !gate.pass());
        gate.open();
        gate.permit();
        assert!((0..10).all(|_| gate.pass()));
    }
}
