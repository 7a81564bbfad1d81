//! The current level of each load after all changes; whether a change is possible, and its result.

use std::collections::BTreeMap;

use throng_base::{Said, Time};
use throng_engine::{Spare, SpareLimit};
use throng_program::{Change, Coming, Drive, Load, Program};

use crate::control::command::LoadStatus;
use crate::running::Running;

pub(crate) struct Levels {
    /// By load and phase: the target value since the last change.
    changed: BTreeMap<(usize, usize), Drive>,
    /// By load: users in addition to the planned ones.
    beyond: Vec<u64>,
    /// Maximum number of additional users, and the resource that limits it.
    spare: Spare,
}

/// Why nothing changed, and what to do.
pub(crate) type Refusal = (Said, Said);

impl Levels {
    pub(crate) fn new(program: &Program, spare: Spare) -> Levels {
        Levels { changed: BTreeMap::new(), beyond: vec![0; program.loads.len()], spare }
    }

    /// The resource that is exhausted when additional users are refused.
    pub(super) fn limit(&self) -> SpareLimit {
        self.spare.limit
    }

    /// The current target value of the load in the phase, and its number of users.
    fn level(&self, load: &Load, number: usize, phase: usize) -> (Drive, Option<u64>) {
        let of =
            |phase: usize| self.changed.get(&(number, phase)).unwrap_or(&load.phases[phase].drive);
        let users = (0..=phase).rev().find_map(|phase| match of(phase) {
            Drive::Users(users) => Some(users.to),
            Drive::Iterations(iterations) => Some(iterations.users),
            Drive::Arrivals(_) | Drive::Hold => None,
        });
        (of(phase).clone(), users)
    }

    /// Applies the change, and returns how many users of the load may stay.
    pub(crate) fn change(
        &mut self,
        (load, number): (&Load, usize),
        (phase, passed): (usize, std::time::Duration),
        change: Change,
    ) -> Result<u64, Refusal> {
        let others: u64 =
            self.beyond.iter().enumerate().map(|(it, n)| if it == number { 0 } else { *n }).sum();
        let spare = self.spare.users.saturating_sub(others);
        let users_max = load.staying_max().saturating_add(spare);
        if change == Change::EndPhase {
            return Ok(users_max);
        }
        let (drive, present) = self.level(load, number, phase);
        let now = throng_program::Phase { drive, ..load.phases[phase].clone() };
        let changed = throng_load::Adjustment::from(change);
        let usual = (present.unwrap_or(0), Coming::AtOnce);
        let Some(drive) = changed.drive(&now, usual, passed) else {
            let name = &now.name;
            return Err(match (change, &now.drive) {
                (Change::Rate(_), _) => (
                    say!("phase `{name}` has no rate that can be changed"),
                    say!("change its users: `throng control users N`"),
                ),
                (_, Drive::Iterations(iterations)) if iterations.rate.is_some() => (
                    say!("phase `{name}` starts its iterations at a rate"),
                    say!("change its rate: `throng control rate N/s`"),
                ),
                (_, Drive::Iterations(_)) => (
                    say!(
                        "phase `{name}` has a fixed number of iterations, divided among its users"
                    ),
                    say!(
                        "end the phase with `throng control end-phase`; for the next run, give \
                         it a rate in the scenario"
                    ),
                ),
                _ => (
                    say!(
                        "phase `{name}` starts users at a rate, so it has no fixed number of users"
                    ),
                    say!("change its rate: `throng control rate N/s`"),
                ),
            });
        };
        let wanted = match &drive {
            Drive::Users(users) => users.to,
            Drive::Iterations(iterations) => iterations.users,
            Drive::Arrivals(_) | Drive::Hold => 0,
        };
        if wanted > users_max {
            let message = say!("this run can have at most {users_max} users, not {wanted}");
            return Err((message, more_room(self.spare.limit)));
        }
        self.beyond[number] = self.beyond[number].max(wanted.saturating_sub(load.staying_max()));
        self.changed.insert((number, phase), drive);
        Ok(users_max)
    }

    /// The levels of the loads that have not ended.
    pub(crate) fn status(
        &self,
        program: &Program,
        running: &Running,
        (paused, now): (bool, Time),
    ) -> Vec<LoadStatus> {
        let status = |(number, load): (usize, &Load)| {
            let (phase, begun) = running.at(number, now)?;
            let within = running.within(number, phase);
            let (drive, users) = self.level(load, number, within);
            let passed = now.since(begun).as_secs_f64();
            let rate =
                |rate| throng_load::Profile::new(rate, load.phases[within].time).rate_at(passed);
            Some(LoadStatus {
                load: load.name.clone(),
                phase: load.phases[within].name.clone(),
                users: users.filter(|_| !matches!(drive, Drive::Arrivals(_))),
                per_second: drive.rate().map(rate),
                paused,
                elapsed_ns: now.as_nanos(),
            })
        };
        program.loads.iter().enumerate().filter_map(status).collect()
    }
}

/// How to allow more users in the next run: this limit cannot be raised during a run.
fn more_room(limit: SpareLimit) -> Said {
    match limit {
        SpareLimit::Descriptors => {
            say!("to allow more users, raise `ulimit -n` and start the run again")
        }
        SpareLimit::Rows => say!(
            "each user needs its own row (`take: per user`): add rows, or let users share rows \
             (`at_end: wrap`), and start the run again"
        ),
        SpareLimit::Sources => say!(
            "the addresses in `source` were divided among the planned users: plan more users in \
             `load` and start the run again"
        ),
    }
}
