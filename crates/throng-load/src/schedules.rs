//! One shard's part of all loads of a run: a schedule for each, merged by what is due first.

use throng_base::{Random, Share, Time};
use throng_program::{Load, Start};

use crate::held::Held;
use crate::schedule::{Action, Schedule};

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Schedules {
    loads: Vec<Schedule>,
    /// By load: whose end it waits for.
    after: Vec<Option<usize>>,
}

impl Schedules {
    /// Loads that begin with or after each other do not do so in a circle. What is left to chance
    /// follows from the seed, which is that of the whole run.
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

    /// How many there are.
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

    /// The next moment at which [`Schedules::pop`] may have something.
    pub fn next(&self) -> Time {
        self.loads.iter().map(Schedule::next).min().unwrap_or(Time::NEVER)
    }

    /// What is due at `now`, one after another in the order of time, and of which load.
    pub fn pop(&mut self, now: Time) -> Option<(usize, Action)> {
        loop {
            // Of those that are due at one moment the first one written.
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

    /// What waits for the end of this load begins. When the end was, all shards reckon alike where
    /// it is known beforehand; where only work ends a load, each shard goes on when its own part is
    /// done, as it does with phases.
    fn ended(&mut self, load: usize) {
        // What follows the last phase began with its end.
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

/// When a load begins, as if it did not begin with another.
pub(crate) fn root(loads: &[Load], load: usize) -> Start {
    let mut start = loads[load].start;
    // As many steps as there are loads lead to the root, or round in a circle.
    for _ in loads {
        let Start::With(other) = start else { break };
        start = loads[usize::from(other)].start;
    }
    start
}

#[cfg(test)]
mod tests;
