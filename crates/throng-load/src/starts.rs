//! The starts of a phase with a rate, numbered across all shards, and their due times.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use throng_base::Random;
use throng_program::{Rate, Spacing};

use crate::curve::count;
use crate::profile::Profile;

/// Constant size for any number of starts. All shards compute the same times from the same seed,
/// and each takes its own.
#[derive(Clone, Debug)]
pub(crate) struct Starts {
    profile: Profile,
    chance: Option<Chance>,
    /// Fraction of the first interval that is still left: with 0, the first start is due
    /// immediately.
    ahead: f64,
    /// The last result, because the same start is queried repeatedly.
    known: Cell<(u64, Option<Duration>)>,
}

/// The starts of a Poisson process: exponential intervals with a mean of one, in time transformed
/// by the rate (the inverse of its integral: Cinlar, "Introduction to Stochastic Processes", 1975).
#[derive(Clone, Debug)]
struct Chance {
    begin: Random,
    reached: RefCell<Reached>,
    /// The starts counted up to some time.
    counted: RefCell<(Reached, Duration)>,
}

/// The progress of the random sequence.
#[derive(Clone, Debug)]
struct Reached {
    random: Random,
    drawn: u64,
    sum: f64,
}

impl Reached {
    fn draw(&mut self) {
        self.sum += self.random.exponential(1.0);
        self.drawn += 1;
    }
}

impl Chance {
    fn new(begin: Random) -> Chance {
        let reached = Reached { random: begin.clone(), drawn: 0, sum: 0.0 };
        let counted = RefCell::new((reached.clone(), Duration::ZERO));
        Chance { begin, reached: RefCell::new(reached), counted }
    }

    /// The number of starts before `time`. Increasing queries draw each start once.
    fn count_before(&self, time: Duration, is_before: impl Fn(f64) -> bool) -> u64 {
        let mut counted = self.counted.borrow_mut();
        if time < counted.1 {
            counted.0 = Reached { random: self.begin.clone(), drawn: 0, sum: 0.0 };
        }
        counted.1 = time;
        let reached = &mut counted.0;
        while reached.drawn == 0 || is_before(reached.sum) {
            reached.draw();
        }
        reached.drawn - 1
    }

    /// The transformed time of start `k`. Increasing queries draw each start once.
    fn until(&self, k: u64) -> f64 {
        let mut reached = self.reached.borrow_mut();
        if reached.drawn > k + 1 {
            *reached = Reached { random: self.begin.clone(), drawn: 0, sum: 0.0 };
        }
        while reached.drawn <= k {
            reached.draw();
        }
        reached.sum
    }
}

impl Starts {
    pub(crate) fn new(
        rate: &Rate,
        spacing: Spacing,
        time: Option<Duration>,
        random: Random,
    ) -> Starts {
        let chance = (spacing == Spacing::Poisson).then(|| Chance::new(random));
        let profile = Profile::new(rate, time);
        Starts { profile, chance, ahead: 0.0, known: Cell::new((u64::MAX, None)) }
    }

    /// The same, continuing earlier starts without a gap.
    pub(crate) fn ahead(self, ahead: f64) -> Starts {
        Starts { ahead, ..self }
    }

    /// The fraction left until the next start, if `starts` were due until `passed`. Random starts
    /// have no memory.
    pub(crate) fn ahead_after(&self, passed: Duration, starts: u64) -> f64 {
        let left = starts as f64 + self.ahead - self.profile.until(passed.as_secs_f64());
        if self.chance.is_some() { 0.0 } else { left.clamp(0.0, 1.0) }
    }

    /// The due time of start `k` (from 0) after the beginning; `None` if it never happens.
    pub(crate) fn due(&self, k: u64) -> Option<Duration> {
        let (known, due) = self.known.get();
        if known == k {
            return due;
        }
        let wanted = self.chance.as_ref().map_or(k as f64 + self.ahead, |chance| chance.until(k));
        let due = self.profile.reaches(wanted);
        self.known.set((k, due));
        due
    }

    /// The number of starts before `time`, consistent with [`Starts::due`]. The first `known` are
    /// certainly before it.
    pub(crate) fn count_before(&self, time: Duration, known: u64) -> u64 {
        let is_before = |due: Option<Duration>| due.is_some_and(|due| due < time);
        match &self.chance {
            Some(chance) => {
                let before = |sum: f64| is_before(self.profile.reaches(sum));
                chance.count_before(time, before).max(known)
            }
            None => count(|k| is_before(self.due(k))),
        }
    }
}

/// Which of the possible values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The longest pauses; everything the end can interrupt is interrupted.
    Least,
    /// Mean pauses and choices.
    Mean,
    /// The shortest pauses; everything that starts is completed.
    Most,
}

/// Bounds of random counts.
pub(crate) trait Chances {
    /// A bound of the count with this mean. It is exceeded less often than once in 10^13 runs
    /// (Chernoff bound).
    fn bound(self, mean: u64, bound: Bound) -> u64;
}

impl Chances for Spacing {
    fn bound(self, mean: u64, bound: Bound) -> u64 {
        let off = (8.0 * (mean as f64).sqrt()) as u64 + 30;
        match (self, bound) {
            (Spacing::Even, _) | (_, Bound::Mean) => mean,
            (Spacing::Poisson, Bound::Least) => mean.saturating_sub(off),
            (Spacing::Poisson, Bound::Most) => mean.saturating_add(off),
        }
    }
}

#[cfg(test)]
mod tests;
