//! The starts of a phase that has a rate, numbered through all shards: when each is due.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use throng_base::Random;
use throng_program::{Rate, Spacing};

use crate::curve::count;
use crate::profile::Profile;

/// See the module's description. It is as small for a billion starts as for one; all shards reckon
/// the same times from the same seed, and each takes those that are its own.
#[derive(Clone, Debug)]
pub(crate) struct Starts {
    profile: Profile,
    chance: Option<Chance>,
    /// How much of the first start is still to come when they begin: 0 has it due at once.
    ahead: f64,
    /// The last that was asked for, as the same is asked again and again.
    known: Cell<(u64, Option<Duration>)>,
}

/// The starts of a Poisson process: between two of them is one on average, spread exponentially,
/// when time goes as fast as the rate has it (the inverse of its integral: Cinlar, "Introduction to
/// Stochastic Processes", 1975).
#[derive(Clone, Debug)]
struct Chance {
    begin: Random,
    reached: RefCell<Reached>,
    /// Those that were counted, up to some time.
    counted: RefCell<(Reached, Duration)>,
}

/// How far the drawing has come.
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

    /// How many come before `time`. Who asks for one time after the other draws each once.
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

    /// What has been drawn until start `k`. Whoever asks for one after the other draws each once.
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

    /// The same, in step with others that they follow.
    pub(crate) fn ahead(self, ahead: f64) -> Starts {
        Starts { ahead, ..self }
    }

    /// How much is left until the next start when so many were due until `passed`. Who comes by
    /// chance has no memory.
    pub(crate) fn ahead_after(&self, passed: Duration, starts: u64) -> f64 {
        let left = starts as f64 + self.ahead - self.profile.until(passed.as_secs_f64());
        if self.chance.is_some() { 0.0 } else { left.clamp(0.0, 1.0) }
    }

    /// When start `k` (from 0) is due, after the begin; None when it never comes.
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

    /// How many are due before `time`: those for which [`Starts::due`] says so. It is known of the
    /// first `known` of them.
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

/// Which of the figures that are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Pauses are as long as they can be, and the end cuts off whatever it can.
    Least,
    /// Pauses and choices are what they are on average.
    Mean,
    /// Pauses are as short as they can be, and all that is begun is done.
    Most,
}

/// What chance makes of a number that is even on average.
pub(crate) trait Chances {
    /// So many where there are this many on average. More, or less, is seen less often than once in
    /// 10^13 runs (by the bound of Chernoff).
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
