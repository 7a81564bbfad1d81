//! One shard's part of all loads of a run: one schedule each, merged by due time.

use throng_base::{Random, Share, Time};
use throng_program::{Load, Start};

use crate::held::Held;
use crate::schedule::{Action, Schedule};

/// The schedules of all loads.
#[derive(Clone, Debug)]
pub struct Schedules {
    loads: Vec<Schedule>,
    /// By load: the load after whose end it starts.
    after: Vec<Option<usize>>,
}

impl Schedules {
    /// Dependencies between loads have no cycle. `seed` is that of the run; all random choices
    /// derive from it.
    pub fn new(loads: &[Load], share: Share, start: Time, seed: u64) -> Schedules {
        let starts: Vec<Start> = (0..loads.len()).map(|load| root(loads, load)).collect();
        let schedule = |(number, begin): (usize, &Start)| {
            let start = match begin {
                Start::At(after) => start + *after,
                Start::After(_) | Start::With(_) => Time::NEVER,
            };
            let seed = Random::for_owner(seed, number as u64).next_u64();
            Schedule::new(&loads[number], share, start, seed)
        };
        let after = |start: &Start| match start {
            Start::After(load) => Some(usize::from(*load)),
            Start::At(_) | Start::With(_) => None,
        };
        Schedules {
            loads: starts.iter().enumerate().map(schedule).collect(),
            after: starts.iter().map(after).collect(),
        }
    }

    /// The number of loads.
    pub fn len(&self) -> usize {
        self.loads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    pub fn get(&self, load: usize) -> &Schedule {
        &self.loads[load]
    }

    pub fn get_mut(&mut self, load: usize) -> &mut Schedule {
        &mut self.loads[load]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Schedule> {
        self.loads.iter()
    }

    /// The next time at which [`Schedules::pop`] may return an action.
    pub fn next(&self) -> Time {
        self.loads.iter().map(Schedule::next).min().unwrap_or(Time::NEVER)
    }

    /// The next action that is due at `now`, in the order of time, and its load.
    pub fn pop(&mut self, now: Time) -> Option<(usize, Action)> {
        loop {
            // Of several loads with the same due time, the first in the scenario comes first.
            let next = self.loads.iter().enumerate().min_by_key(|(_, schedule)| schedule.next());
            let (load, due) = next.map(|(load, schedule)| (load, schedule.next()))?;
            if due > now {
                return None;
            }
            let schedule = &mut self.loads[load];
            if let Some(action) = schedule.pop(due) {
                if action == Action::End {
                    self.ended(load);
                }
                return Some((load, action));
            }
        }
    }

    /// Starts the loads that wait for the end of this one. If the end is known in advance, all
    /// shards compute the same time. If only work ends a load, each shard continues when its own
    /// part is done, as between phases.
    fn ended(&mut self, load: usize) {
        // The next load starts at the end of the last phase.
        let end = self.loads[load].start;
        for (schedule, after) in self.loads.iter_mut().zip(&self.after) {
            if *after == Some(load) {
                schedule.begin(end);
            }
        }
    }

    pub fn is_over(&self) -> bool {
        self.loads.iter().all(Schedule::is_over)
    }

    /// See [`Schedule::hold`].
    pub fn hold(&mut self, held: Held) {
        self.loads.iter_mut().for_each(|schedule| schedule.hold(held));
    }

    /// See [`Schedule::give_up_growth`].
    pub fn give_up_growth(&mut self, now: Time) {
        self.loads.iter_mut().for_each(|schedule| schedule.give_up_growth(now));
    }

    /// See [`Schedule::cancel`].
    pub fn cancel(&mut self, until: Time, now: Time) {
        self.loads.iter_mut().for_each(|schedule| schedule.cancel(until, now));
    }
}

/// When a load starts, with dependencies on the start of other loads resolved.
pub(crate) fn root(loads: &[Load], load: usize) -> Start {
    let mut start = loads[load].start;
    // The chain is at most as long as the number of loads, unless it is a cycle.
    for _ in loads {
        let Start::With(other) = start else { break };
        start = loads[usize::from(other)].start;
    }
    start
}

#[cfg(test)]
mod tests;
