//! One shard's part of a load, phase by phase.

use std::time::Duration;

use throng_base::{Time, UserId};
use throng_program::{Drive, Iterations, Load, Phase};

use crate::curve::Curve;

/// Which part of the whole is ours: every `of`-th event, beginning with number `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub index: u64,
    pub of: u64,
}

impl Share {
    pub const WHOLE: Share = Share { index: 0, of: 1 };

    /// How many of `whole` events are ours.
    pub fn part(self, whole: u64) -> u64 {
        whole / self.of + u64::from(whole % self.of > self.index)
    }

    /// The number in the whole of our event `local`.
    pub fn global(self, local: u64) -> u64 {
        local * self.of + self.index
    }

    /// The identity of our user `local`; identities of the whole count from 1 without gaps.
    pub fn user(self, local: u64) -> UserId {
        UserId(self.global(local) + 1)
    }
}

/// Something to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// This phase begins.
    Phase(u16),
    /// A user comes who stays.
    Come { due: Time },
    /// One of the users who stay leaves.
    Leave,
    /// A user comes who runs the session once.
    Arrive { due: Time },
    /// The last phase is over.
    End,
}

/// When users who stay begin an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As soon as the one before is done.
    Free,
    /// When the schedule has one for them.
    Scheduled,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Schedule {
    phases: Vec<Phase>,
    share: Share,
    /// Index of the running phase; `phases.len()` after the last.
    current: usize,
    began: bool,
    start: Time,
    /// Of the running phase; [`Time::NEVER`] where only its work ends it.
    end: Time,
    /// Users who stay: how many are there, of ours; how many there were when the phase began.
    staying: u64,
    staying_before: u64,
    /// Users or arrivals of the running phase that were handed out.
    handed: u64,
    /// Iterations of the running phase that were handed out.
    begun: u64,
    /// Starts of phases that are over that never happened, until they are asked for.
    unmet: u64,
}

impl Schedule {
    pub fn new(load: &Load, share: Share, start: Time) -> Schedule {
        let phases = load.phases.clone();
        let mut schedule = Schedule {
            phases,
            share,
            current: 0,
            began: false,
            start,
            end: start,
            staying: 0,
            staying_before: 0,
            handed: 0,
            begun: 0,
            unmet: 0,
        };
        schedule.enter(0, start);
        schedule
    }

    fn enter(&mut self, index: usize, start: Time) {
        self.current = index;
        self.began = false;
        self.start = start;
        self.staying_before = self.staying;
        self.handed = 0;
        self.begun = 0;
        self.end = match self.phases.get(index) {
            Some(phase) => self.planned_end(phase, start),
            None => Time::NEVER,
        };
    }

    fn planned_end(&self, phase: &Phase, start: Time) -> Time {
        match (phase.time, &phase.drive) {
            (Some(time), _) => start + time,
            (None, Drive::Hold) => start,
            // A ramp without a time is over when its last user has come or gone. All shards
            // reckon with the whole, so that all have the same end.
            (None, Drive::Users(users)) => {
                let change = users.to.abs_diff(self.whole_before()) as f64;
                let seconds = users.rate.map_or(0.0, |rate| change / rate.max(1e-9));
                start + Duration::from_secs_f64(seconds.min(1e9))
            }
            (None, Drive::Arrivals(_) | Drive::Iterations(_)) => Time::NEVER,
        }
    }

    /// Users of all shards when the running phase began: what the phases before asked for.
    fn whole_before(&self) -> u64 {
        let before = &self.phases[..self.current];
        let last = before.iter().rev().find_map(|phase| match &phase.drive {
            Drive::Users(users) => Some(users.to),
            Drive::Iterations(iterations) => Some(iterations.users),
            Drive::Hold | Drive::Arrivals(_) => None,
        });
        last.unwrap_or(0)
    }

    fn drive(&self) -> Option<&Drive> {
        self.phases.get(self.current).map(|phase| &phase.drive)
    }

    /// The running phase; the last one after its end.
    pub fn phase(&self) -> u16 {
        self.current.min(self.phases.len().saturating_sub(1)) as u16
    }

    pub fn is_over(&self) -> bool {
        self.current >= self.phases.len()
    }

    /// When the running phase ends, as far as it is known.
    pub fn phase_end(&self) -> Time {
        self.end
    }

    /// How many of our users shall be staying at the moment.
    pub fn staying(&self) -> u64 {
        self.staying
    }

    pub fn pace(&self) -> Pace {
        match self.drive() {
            Some(Drive::Iterations(_)) => Pace::Scheduled,
            _ => Pace::Free,
        }
    }

    /// The next moment at which [`Schedule::pop`] has something.
    pub fn next(&self) -> Time {
        if self.is_over() {
            return Time::NEVER;
        }
        if !self.began {
            return self.start;
        }
        self.next_user().unwrap_or(Time::NEVER).min(self.end)
    }

    /// What is due at `now`, one after another.
    pub fn pop(&mut self, now: Time) -> Option<Action> {
        if self.is_over() || self.next() > now {
            return None;
        }
        if !self.began {
            self.began = true;
            return Some(Action::Phase(self.phase()));
        }
        if let Some(due) = self.next_user().filter(|due| *due <= now && *due <= self.end) {
            self.handed += 1;
            return Some(self.user_action(due));
        }
        self.advance(self.end);
        self.is_over().then_some(Action::End).or_else(|| self.pop(now))
    }

    fn user_action(&mut self, due: Time) -> Action {
        if let Some(Drive::Arrivals(_)) = self.drive() {
            return Action::Arrive { due };
        }
        if self.wanted_staying() < self.staying_before {
            self.staying -= 1;
            return Action::Leave;
        }
        self.staying += 1;
        Action::Come { due }
    }

    fn advance(&mut self, start: Time) {
        self.unmet += self.unmet_until(start);
        self.enter(self.current + 1, start);
    }

    /// How many of ours the running phase wants to stay in the end.
    fn wanted_staying(&self) -> u64 {
        match self.drive() {
            Some(Drive::Users(users)) => self.share.part(users.to),
            Some(Drive::Iterations(iterations)) => self.share.part(iterations.users),
            Some(Drive::Hold | Drive::Arrivals(_)) | None => self.staying_before,
        }
    }

    /// When the next user comes, arrives or leaves in the running phase.
    fn next_user(&self) -> Option<Time> {
        let rate = match self.drive()? {
            Drive::Arrivals(arrivals) => {
                let curve = match self.phases[self.current].time {
                    Some(time) => Curve::ramp(arrivals.rate, arrivals.to, time),
                    None => Curve::constant(arrivals.rate),
                };
                let due = self.start + curve.due(self.share.global(self.handed))?;
                return (due < self.end).then_some(due);
            }
            Drive::Users(users) => users.rate,
            Drive::Iterations(_) => None,
            Drive::Hold => return None,
        };
        if self.handed >= self.wanted_staying().abs_diff(self.staying_before) {
            return None;
        }
        let Some(rate) = rate else { return Some(self.start) };
        let after = Curve::constant(rate).due(self.rank_of_change(self.handed))?;
        Some(self.start + after)
    }

    /// The place in the order of the whole at which our change number `local` happens.
    fn rank_of_change(&self, local: u64) -> u64 {
        let whole = self.whole_before();
        if self.wanted_staying() >= self.staying_before {
            self.share.global(self.staying_before + local).saturating_sub(whole)
        } else {
            whole.saturating_sub(1 + self.share.global(self.staying_before - 1 - local))
        }
    }

    /// When the next iteration of the running phase is due; None when there is none to come.
    /// Only for [`Pace::Scheduled`]. A time before now is a start that had to wait.
    pub fn next_iteration(&self) -> Option<Time> {
        let iterations = self.iterations()?;
        let global = self.share.global(self.begun);
        if iterations.total.is_some_and(|total| global >= total) {
            return None;
        }
        let Some(rate) = iterations.rate else { return Some(self.start) };
        let due = self.start + Curve::constant(rate).due(global)?;
        (due < self.end).then_some(due)
    }

    /// Takes the iteration that [`Schedule::next_iteration`] told.
    pub fn begin_iteration(&mut self) {
        self.begun += 1;
    }

    /// Whether the running phase is over when a number of iterations is done.
    pub fn counts_iterations(&self) -> bool {
        self.iterations().is_some_and(|iterations| iterations.total.is_some())
    }

    /// Whether the running phase has a time for each iteration.
    pub fn paces_iterations(&self) -> bool {
        self.iterations().is_some_and(|iterations| iterations.rate.is_some())
    }

    fn iterations(&self) -> Option<Iterations> {
        match self.drive() {
            Some(Drive::Iterations(iterations)) => Some(*iterations),
            _ => None,
        }
    }

    /// Starts that never happened though their time came, of phases that are over; told once.
    pub fn take_unmet(&mut self) -> u64 {
        std::mem::take(&mut self.unmet)
    }

    /// Iterations that were due before `now` and were not begun.
    fn unmet_until(&self, now: Time) -> u64 {
        let Some(Iterations { rate: Some(rate), total, .. }) = self.iterations() else { return 0 };
        let passed = now.min(self.end).since(self.start).as_secs_f64();
        let whole = (passed * rate).ceil() as u64;
        let whole = total.map_or(whole, |total| whole.min(total));
        self.share.part(whole).saturating_sub(self.begun)
    }

    /// The work of the running phase is done before its time: goes on with the next phase.
    pub fn finish_phase(&mut self, now: Time) {
        if !self.is_over() {
            self.end = now;
        }
    }

    /// Nothing is due any more, whatever the load says.
    pub fn cancel(&mut self, now: Time) {
        self.unmet += self.unmet_until(now);
        self.current = self.phases.len();
    }
}

#[cfg(test)]
mod tests;
