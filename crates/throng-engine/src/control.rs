//! How a run is stopped early, from outside or by a user of any shard; how its growth is paused;
//! and the gate that lets users run step by step.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use throng_base::{Said, Time};
use throng_load::{Amendment, Held};
use throng_metrics::StopBy;

/// Stops the run. All clones control the same run.
#[derive(Clone, Debug, Default)]
pub struct Control {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    word: AtomicU8,
    stopped: OnceLock<Stopped>,
    growth: Mutex<Growth>,
    /// Its version: as long as that does not change, shards read nothing else.
    growth_version: AtomicU64,
    /// By load number, in the order in which they take effect; and how many there are.
    amendments: Mutex<Vec<(u16, Amendment)>>,
    amended: AtomicUsize,
}

/// What paused growth. Growth resumes when no holder is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Limit = 1,
    Person = 2,
}

/// A pause, resume or amendment takes effect this much later than it is requested: every shard
/// knows before it takes effect, no start is delayed, and all shards agree on which users have
/// started. Longer than any interval between two probes of a shard.
pub const GROWTH_AHEAD: Duration = Duration::from_millis(250);

/// Whether users may be added, and when growth was paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) version: u64,
    pub(crate) held: Held,
    pub(crate) given_up: bool,
    /// [`Holder`]s as bits.
    holders: u8,
}

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    pub at: Time,
    pub reason: Said,
    pub by: StopBy,
}

pub(crate) const STOP: u8 = 1;
pub(crate) const ABORT: u8 = 2;

impl Control {
    /// Starts no new work; users finish their step and leave, within the graceful stop.
    pub fn stop(&self) {
        self.state.word.fetch_max(STOP, Ordering::Relaxed);
    }

    /// Users leave immediately.
    pub fn abort(&self) {
        self.state.word.fetch_max(ABORT, Ordering::Relaxed);
    }

    /// Stops for a reason. Only the first reason counts, and a run that is stopping already gets
    /// none.
    pub(crate) fn stop_because(&self, reason: impl FnOnce() -> Stopped) {
        let (order, other) = (Ordering::AcqRel, Ordering::Acquire);
        if self.state.word.compare_exchange(0, STOP, order, other).is_ok() {
            // Only the first caller gets here.
            let _ = self.state.stopped.set(reason());
        }
    }

    /// The reason, if there is one.
    pub(crate) fn stopped(&self) -> Option<&Stopped> {
        self.state.stopped.get()
    }

    /// From `at` on, or a moment later, no users are added; leaving, churn and iterations continue.
    /// Ramps without a time end later by the length of the pause. A pause that is active keeps its
    /// start.
    pub fn hold(&self, by: Holder, at: Time) {
        let from = at + GROWTH_AHEAD;
        self.change_growth(|growth| {
            growth.holders |= by as u8;
            growth.held = match growth.held {
                held if held.is_held() => held,
                // The release has not taken effect: this is the same pause.
                held if held.from != Time::NEVER && from <= held.to => {
                    Held { to: Time::NEVER, ..held }
                }
                held => Held { before: held.until(Time::NEVER), from, to: Time::NEVER },
            };
        });
    }

    /// Growth resumes where it was paused, later by the length of the pause.
    pub fn release(&self, by: Holder, at: Time) {
        self.change_growth(|growth| {
            growth.holders &= !(by as u8);
            if growth.holders == 0 && growth.held.is_held() {
                growth.held.to = growth.held.from.max(at + GROWTH_AHEAD);
            }
        });
    }

    /// Adds no more users in this run: phases that want more keep the users they have, ramps
    /// without a time end, and arrivals count as dropped starts.
    pub fn give_up_growth(&self) {
        self.change_growth(|growth| growth.given_up = true);
    }

    fn change_growth(&self, change: impl FnOnce(&mut Growth)) {
        let mut growth = self.growth();
        change(&mut growth);
        growth.version += 1;
        self.state.growth_version.store(growth.version, Ordering::Release);
    }

    fn growth(&self) -> MutexGuard<'_, Growth> {
        self.state.growth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Amends a load from a time on, which is [`GROWTH_AHEAD`] in the future.
    pub fn amend(&self, load: u16, amendment: Amendment) {
        let mut all = self.state.amendments.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((load, amendment));
        self.state.amended.store(all.len(), Ordering::Release);
    }

    /// The amendments after those that the shard already knows.
    #[inline]
    pub(crate) fn amendments(&self, heard: usize) -> Vec<(u16, Amendment)> {
        if self.state.amended.load(Ordering::Acquire) == heard {
            return Vec::new();
        }
        let all = self.state.amendments.lock().unwrap_or_else(PoisonError::into_inner);
        all[heard..].to_vec()
    }

    /// Whether growth is paused.
    pub fn is_held(&self) -> bool {
        self.growth().held.is_held()
    }

    /// Whether users may be added now, if that has changed since this version.
    #[inline]
    pub(crate) fn growth_news(&self, heard: u64) -> Option<Growth> {
        let version = self.state.growth_version.load(Ordering::Acquire);
        (version != heard).then(|| *self.growth())
    }

    pub(crate) fn word(&self) -> u8 {
        self.state.word.load(Ordering::Relaxed)
    }
}

/// Users wait here before every step until they get a permit.
#[derive(Debug, Default)]
pub struct Gate {
    permits: AtomicU64,
}

/// Unlimited permits.
const OPEN: u64 = u64::MAX;

impl Gate {
    /// Lets one user run one step.
    pub fn permit(&self) {
        let more = |permits: u64| Some(permits.saturating_add(1));
        let _ = self.permits.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
    }

    /// Lets all users continue without further permits.
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

    fn stopped(reason: Said) -> Stopped {
        Stopped { at: Time::ZERO, reason, by: StopBy::Rule }
    }

    #[test]
    fn only_the_first_stop_reason_counts() {
        let control = Control::default();
        assert_eq!((control.word(), control.stopped()), (0, None));
        let threads: Vec<_> = (0..4)
            .map(|index| {
                let control = control.clone();
                let work =
                    move || control.stop_because(|| stopped(Said::of_others(index.to_string())));
                std::thread::spawn(work)
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let first = control.stopped().cloned();
        control.stop_because(|| stopped(Said::of_others("later")));
        assert!(first.is_some());
        assert_eq!((control.word(), control.stopped().cloned()), (STOP, first));
    }

    #[test]
    fn a_run_stopped_from_outside_has_no_reason() {
        let control = Control::default();
        control.stop();
        control.stop_because(|| stopped(Said::of_others("later")));
        assert_eq!(control.stopped(), None);
        control.abort();
        assert_eq!(control.word(), ABORT);
    }

    #[test]
    fn growth_pauses_for_the_requested_time() {
        let control = Control::default();
        assert!(!control.is_held() && control.growth_news(0).is_none());
        control.release(Holder::Limit, Time::from_secs(1));
        assert!(!control.is_held());
        control.hold(Holder::Limit, Time::from_secs(2));
        control.hold(Holder::Limit, Time::from_secs(3));
        assert!(control.is_held());
        control.release(Holder::Limit, Time::from_secs(5));
        // Paused again before it resumed.
        control.hold(Holder::Limit, Time::from_secs(5));
        control.release(Holder::Limit, Time::from_secs(6));
        control.release(Holder::Limit, Time::from_secs(7));
        control.hold(Holder::Limit, Time::from_secs(10));
        let held = control.growth_news(0).unwrap().held;
        assert!(control.is_held() && held.is_held());
        let from = Time::from_secs(10) + GROWTH_AHEAD;
        assert_eq!((held.from, held.until(from)), (from, Duration::from_secs(4)));
        control.give_up_growth();
        let news = control.growth_news(0).unwrap();
        assert!(news.given_up && news.held == held);
        assert_eq!(control.growth_news(news.version), None);
    }

    #[test]
    fn a_limit_does_not_resume_growth_that_the_operator_paused() {
        let control = Control::default();
        control.hold(Holder::Person, Time::from_secs(1));
        control.hold(Holder::Limit, Time::from_secs(2));
        control.release(Holder::Limit, Time::from_secs(3));
        assert!(control.is_held());
        control.hold(Holder::Limit, Time::from_secs(4));
        control.release(Holder::Person, Time::from_secs(5));
        assert!(control.is_held());
        control.release(Holder::Limit, Time::from_secs(6));
        assert!(!control.is_held());
        let held = control.growth_news(0).map(|news| news.held.until(Time::from_secs(99)));
        assert_eq!(held, Some(Duration::from_secs(5)));
    }

    #[test]
    fn amendments_are_returned_once_and_in_order() {
        let control = Control::default();
        assert!(control.amendments(0).is_empty());
        let amendment = |second| Amendment {
            at: Time::from_secs(second),
            change: throng_program::Change::EndPhase.into(),
            users_max: 9,
        };
        (1..=3).for_each(|second| control.amend(0, amendment(second)));
        assert_eq!(control.amendments(1), [(0, amendment(2)), (0, amendment(3))]);
        assert!(control.amendments(3).is_empty());
    }

    #[test]
    fn readers_only_see_consistent_states() {
        let control = Control::default();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let control = control.clone();
                std::thread::spawn(move || {
                    for second in 1..3000 {
                        control.hold(Holder::Limit, Time::from_secs(2 * second));
                        control.release(Holder::Limit, Time::from_secs(2 * second + 1));
                    }
                })
            })
            .collect();
        let mut heard = 0;
        while !writers.iter().all(|writer| writer.is_finished()) {
            let Some(news) = control.growth_news(heard) else { continue };
            assert!(news.version > heard && news.held.from < Time::from_secs(6001));
            // All pauses are before the end of the last one.
            let last = if news.held.is_held() { news.held.from } else { news.held.to };
            assert!(news.held.before <= last - Time::ZERO, "{news:?}");
            heard = news.version;
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert!(!control.is_held());
    }

    #[test]
    fn a_gate_passes_one_step_per_permit() {
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
