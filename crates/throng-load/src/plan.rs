//! The plan of a load over time, as far as it is known in advance, for display before a run.

use std::time::Duration;

use throng_program::{Coming, Drive, Load, Phase, Start, Users};

use crate::coming;
use crate::profile::Profile;
use crate::schedules::root;
use crate::starts::{Bound, Chances as _};

/// A phase and its planned times.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The index of the phase in its load.
    pub phase: usize,
    pub load: usize,
    /// Since the start of the run.
    pub begin: Duration,
    /// Whether it starts then: false after a phase of unknown length.
    pub begin_is_known: bool,
    /// `None` if it ends when its work is done.
    pub length: Option<Duration>,
    /// Staying users at its start and at its end.
    pub users: (u64, u64),
    /// The duration of their change; afterwards, their number is constant.
    pub ramp: Duration,
    /// For changes in steps: the size of a step and the time between steps.
    pub steps: Option<(u64, Duration)>,
    /// New users per second.
    pub arrivals: Option<Profile>,
    /// Scheduled iterations per second.
    pub iterations: Option<Profile>,
}

/// The phases of all loads over time, by number. A phase of unknown length counts as if it took no
/// time.
pub fn plan(loads: &[Load]) -> Vec<Planned> {
    let begins = begins(loads);
    let mut out = Vec::with_capacity(loads.iter().map(|load| load.phases.len()).sum());
    for (number, (load, begin)) in loads.iter().zip(begins).enumerate() {
        let place = |mut one: Planned| {
            (one.load, one.begin) = (number, begin.0.saturating_add(one.begin));
            one.begin_is_known &= begin.1;
            one
        };
        out.extend(plan_of(load).into_iter().map(place));
    }
    out
}

/// When each load starts, and whether that is known. A load can start after any other in the list.
fn begins(loads: &[Load]) -> Vec<(Duration, bool)> {
    let length = |load: &Load| {
        let last = plan_of(load).pop();
        last.map_or((Duration::ZERO, true), |one| {
            let is_known = one.begin_is_known && one.length.is_some();
            (one.begin + one.length.unwrap_or_default(), is_known)
        })
    };
    let lengths: Vec<(Duration, bool)> = loads.iter().map(length).collect();
    let begin = |load: usize| {
        let (mut begin, mut is_known, mut load) = (Duration::ZERO, true, load);
        // A chain is at most as long as the list of loads.
        for _ in loads {
            match root(loads, load) {
                Start::At(after) => return (begin.saturating_add(after), is_known),
                Start::After(other) => {
                    load = usize::from(other);
                    begin = begin.saturating_add(lengths[load].0);
                    is_known &= lengths[load].1;
                }
                Start::With(_) => break,
            }
        }
        (begin, is_known)
    };
    (0..loads.len()).map(begin).collect()
}

/// The phases of one load, relative to its start.
pub fn plan_of(load: &Load) -> Vec<Planned> {
    let (mut begin, mut is_known, mut users) = (Duration::ZERO, true, 0);
    let mut out = Vec::with_capacity(load.phases.len());
    for (index, phase) in load.phases.iter().enumerate() {
        let planned = Planned { begin_is_known: is_known, ..planned(index, phase, begin, users) };
        is_known &= planned.length.is_some();
        begin = begin.saturating_add(planned.length.unwrap_or_default());
        users = planned.users.1;
        out.push(planned);
    }
    out
}

/// Maximum total number of users that a load starts, each with its own number. A user that leaves
/// and is replaced counts twice. Paused growth only reduces the number.
pub fn comers(load: &Load) -> u64 {
    let of = |(phase, one): (&Phase, Planned)| coming(phase, &one, Bound::Most);
    load.phases.iter().zip(plan_of(load)).map(of).fold(0, u64::saturating_add)
}

/// How many of them start in a phase.
pub(crate) fn coming(phase: &Phase, one: &Planned, bound: Bound) -> u64 {
    match &phase.drive {
        Drive::Arrivals(arrivals) => {
            let starts = |it: &Profile| it.starts(one.length.unwrap_or_default());
            arrivals.spacing.bound(one.arrivals.as_ref().map_or(0, starts), bound)
        }
        Drive::Users(_) | Drive::Iterations(_) => one.users.1.saturating_sub(one.users.0),
        Drive::Hold => 0,
    }
}

fn planned(index: usize, phase: &Phase, begin: Duration, before: u64) -> Planned {
    let mut planned = Planned {
        phase: index,
        load: 0,
        begin,
        begin_is_known: true,
        length: phase.time,
        users: (before, before),
        ramp: Duration::ZERO,
        steps: None,
        arrivals: None,
        iterations: None,
    };
    match &phase.drive {
        Drive::Hold => planned.length = Some(phase.time.unwrap_or_default()),
        Drive::Users(users) => {
            let change = users.to.abs_diff(before);
            planned.ramp = coming::length(users.coming, change).unwrap_or(Duration::MAX);
            planned.length = Some(phase.time.unwrap_or(planned.ramp));
            if let Coming::Steps { size, every } = users.coming {
                planned.steps = Some((size, every));
            }
            planned.users.1 = reached(before, *users, phase.time);
        }
        Drive::Arrivals(arrivals) => {
            planned.arrivals = Some(Profile::new(&arrivals.rate, phase.time));
        }
        Drive::Iterations(iterations) => {
            planned.users.1 = iterations.users;
            let rate = iterations.rate.as_ref();
            planned.iterations = rate.map(|rate| Profile::new(rate, phase.time));
            let needed = |it: &Profile| it.reaches(iterations.total? as f64);
            let paced = planned.iterations.as_ref().and_then(needed);
            planned.length = match (phase.time, paced) {
                (Some(time), Some(paced)) => Some(time.min(paced)),
                (time, paced) => time.or(paced),
            };
        }
    }
    planned
}

/// The number of users after a phase: its end can stop the ramp early.
pub fn reached(before: u64, users: Users, time: Option<Duration>) -> u64 {
    let ramp = coming::length(users.coming, users.to.abs_diff(before)).unwrap_or(Duration::MAX);
    let changes = match time {
        Some(time) if ramp > time => coming::count_before(users.coming, time),
        _ => u64::MAX,
    };
    changed(before, users.to, changes)
}

/// A staircase with more steps is treated as a ramp.
const STAIRS_MAX: u32 = 1_000;

/// The number of users after `changes` steps from one number toward another.
fn changed(from: u64, to: u64, changes: u64) -> u64 {
    match to >= from {
        true => from + (to - from).min(changes),
        false => from - (from - to).min(changes),
    }
}

impl Planned {
    /// The number of staying users at this time of the phase.
    pub fn users_at(&self, time: Duration) -> f64 {
        if let Some((size, every)) = self.steps {
            // Users of this moment have started.
            let steps = Coming::Steps { size, every };
            let come = coming::count_before(steps, time + Duration::from_nanos(1));
            return changed(self.users.0, self.users.1, come) as f64;
        }
        let (from, to) = (self.users.0 as f64, self.users.1 as f64);
        let ramp = self.ramp.min(self.length.unwrap_or(Duration::MAX));
        match ramp.is_zero() || time >= ramp {
            true => to,
            false => from + (to - from) * (time.as_secs_f64() / ramp.as_secs_f64()),
        }
    }

    pub(crate) fn users_at_seconds(&self, seconds: f64) -> f64 {
        self.users_at(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// The times in seconds between which the number of staying users only increases or only
    /// decreases.
    pub(crate) fn turns(&self) -> [f64; 3] {
        let begin = self.begin.as_secs_f64();
        let length = self.length.unwrap_or_default();
        [begin, begin + self.ramp.min(length).as_secs_f64(), begin + length.as_secs_f64()]
    }

    /// The number of staying users in pieces: start and length in seconds since the start of the
    /// phase, and the linear change. A ramp has `ramp_pieces` of them.
    pub(crate) fn pieces(&self, ramp_pieces: u32) -> Vec<(f64, f64, (f64, f64))> {
        let length = self.length.unwrap_or_default();
        let ramp = self.ramp.min(length);
        let (stairs, every) = match self.steps {
            Some((_, every)) => (ramp.as_nanos().div_ceil(every.as_nanos().max(1)), every),
            None => (0, ramp / ramp_pieces),
        };
        let mut pieces = Vec::new();
        let mut begin = Duration::ZERO;
        // A staircase that is too long is treated as a ramp.
        let is_staircase = (1..=u128::from(STAIRS_MAX)).contains(&stairs);
        let every = if stairs > 0 && !is_staircase { ramp / ramp_pieces } else { every };
        while begin < ramp && !every.is_zero() {
            let end = begin.saturating_add(every).min(ramp);
            let from = self.users_at(begin);
            let to = if is_staircase { from } else { self.users_at(end) };
            pieces.push((begin.as_secs_f64(), (end - begin).as_secs_f64(), (from, to)));
            begin = end;
        }
        let to = self.users_at(length);
        pieces.push((begin.as_secs_f64(), (length - begin).as_secs_f64(), (to, to)));
        pieces
    }

    /// Arrivals or iterations per second at this time of the phase.
    pub fn starts_at(&self, time: Duration) -> f64 {
        let rate = self.arrivals.as_ref().or(self.iterations.as_ref());
        rate.map_or(0.0, |rate| rate.rate_at(time.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_program::{Arrivals, Iterations};

    const S: Duration = Duration::from_secs(1);

    fn load(phases: Vec<(Drive, Option<u32>)>) -> Load {
        let phase = |(drive, time): (Drive, Option<u32>)| Phase {
            name: "p".into(),
            drive,
            time: time.map(|time| S * time),
            churn: None,
            measured: true,
        };
        Load::alone(phases.into_iter().map(phase).collect())
    }

    #[test]
    fn phases_follow_each_other() {
        let planned = plan_of(&load(vec![
            (Drive::Users(Users { to: 100, coming: Coming::Rate(10.0) }), None),
            (Drive::Hold, Some(60)),
            (Drive::Users(Users { to: 0, coming: Coming::Rate(10.0) }), Some(4)),
        ]));
        let begins: Vec<u64> = planned.iter().map(|one| one.begin.as_secs()).collect();
        assert_eq!(begins, [0, 10, 70]);
        assert_eq!(planned[0].users_at(S * 5), 50.0);
        assert_eq!(planned[1].users_at(S), 100.0);
        // The phase ends before all have left.
        assert_eq!(planned[2].users, (100, 60));
        assert_eq!(planned[2].users_at(S * 2), 80.0);
        assert_eq!(planned[0].pieces(1), [(0.0, 10.0, (0.0, 100.0)), (10.0, 0.0, (100.0, 100.0))]);
        assert_eq!(planned[1].pieces(1), [(0.0, 60.0, (100.0, 100.0))]);
    }

    #[test]
    fn arrivals_and_fixed_iterations_are_planned() {
        let planned = plan_of(&load(vec![
            (Drive::Arrivals(Arrivals::ramp(0.0, 100.0)), Some(10)),
            (Drive::Iterations(Iterations::new(5, Some(10.0), Some(50))), None),
            (Drive::Iterations(Iterations::new(5, None, Some(50))), None),
        ]));
        assert_eq!(planned[0].starts_at(S * 5), 50.0);
        assert_eq!((planned[1].begin, planned[1].length), (S * 10, Some(S * 5)));
        assert_eq!((planned[2].begin, planned[2].length), (S * 15, None));
        assert!(planned[2].begin_is_known);
        assert_eq!(planned[2].users_at(S), 5.0);
    }

    #[test]
    fn a_start_after_work_of_unknown_length_is_unknown() {
        let counted = Drive::Iterations(Iterations::new(5, None, Some(50)));
        let mut loads = vec![
            load(vec![(Drive::Hold, Some(1)), (counted, None), (Drive::Hold, Some(1))]),
            load(vec![(Drive::Hold, Some(2))]),
            load(vec![(Drive::Hold, Some(3)), (Drive::Hold, Some(1))]),
            load(vec![(Drive::Hold, Some(1))]),
        ];
        loads[1].start = Start::After(0);
        loads[2].start = Start::With(1);
        loads[3].start = Start::At(S);
        let known: Vec<bool> = plan(&loads).iter().map(|one| one.begin_is_known).collect();
        assert_eq!(known, [true, true, false, false, false, false, true]);
    }

    #[test]
    fn the_end_of_a_phase_stops_its_ramp() {
        let users = Users { to: 100, coming: Coming::Steps { size: 40, every: S * 30 } };
        for (seconds, want) in [(1, 40), (30, 40), (31, 80), (60, 80), (61, 100), (900, 100)] {
            assert_eq!(reached(0, users, Some(S * seconds)), want, "{seconds}");
        }
        assert_eq!(reached(100, Users { to: 0, ..users }, Some(S * 30)), 60);
        assert_eq!(reached(7, users, None), 100);
    }

    #[test]
    fn the_last_step_of_a_staircase_lasts_as_long_as_the_others() {
        let steps = Coming::Steps { size: 300, every: S * 10 };
        let planned = plan_of(&load(vec![
            (Drive::Users(Users { to: 1000, coming: steps }), None),
            (Drive::Users(Users { to: 0, coming: steps }), Some(15)),
        ]));
        let at = |phase: usize| move |second: u32| (phase, S * second);
        let users = |(phase, time): (usize, Duration)| planned[phase].users_at(time);
        assert_eq!(
            [0, 9, 10, 29, 30, 40].map(at(0)).map(users),
            [300.0, 300.0, 600.0, 900.0, 1000.0, 1000.0]
        );
        assert_eq!((planned[0].length, planned[1].begin), (Some(S * 40), S * 40));
        assert_eq!(planned[1].users, (1000, 400));
        let pieces: Vec<_> = planned[0].pieces(1).into_iter().map(|one| (one.1, one.2.1)).collect();
        let steps = [(10.0, 300.0), (10.0, 600.0), (10.0, 900.0), (10.0, 1000.0), (0.0, 1000.0)];
        assert_eq!(pieces, steps);
        assert_eq!([0, 10, 14].map(at(1)).map(users), [700.0, 400.0, 400.0]);
    }
}
