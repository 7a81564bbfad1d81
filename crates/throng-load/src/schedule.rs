//! One shard's part of a load, phase by phase.

use std::time::Duration;

use throng_base::{Time, UserId};
use throng_program::{Drive, Iterations, Load, Phase, Users};

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
    /// Users who stay: how many are there, of ours; how many there were when the phase began, of
    /// ours and of all shards. Ours are our part of the whole.
    staying: u64,
    staying_before: u64,
    whole_before: u64,
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
            whole_before: 0,
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
                let change = users.to.abs_diff(self.whole_before);
                let never = Duration::from_nanos(u64::MAX);
                let after = |rate| Curve::constant(rate).due(change).unwrap_or(never);
                start + users.rate.map_or(Duration::ZERO, after)
            }
            (None, Drive::Arrivals(_) | Drive::Iterations(_)) => Time::NEVER,
        }
    }

    /// Users of all shards when the running phase ends in its time: what it wants, or how far its
    /// ramp comes. A phase that ends before its time has no ramp.
    fn whole_after(&self) -> u64 {
        let Some(phase) = self.phases.get(self.current) else { return self.whole_before };
        match (&phase.drive, phase.time) {
            (Drive::Hold | Drive::Arrivals(_), _) => self.whole_before,
            (Drive::Iterations(iterations), _) => iterations.users,
            (Drive::Users(Users { to, rate: Some(rate) }), Some(time)) => {
                let reached = Curve::constant(*rate).count_before(time);
                let change = to.abs_diff(self.whole_before).min(reached);
                match *to >= self.whole_before {
                    true => self.whole_before + change,
                    false => self.whole_before - change,
                }
            }
            (Drive::Users(users), _) => users.to,
        }
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

    /// Whether no phase follows the running one.
    pub fn is_last_phase(&self) -> bool {
        self.current + 1 >= self.phases.len()
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
        self.whole_before = self.whole_after();
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
        let due = self.start + Curve::constant(rate).due(self.rank_of_change(self.handed))?;
        // Who is due at the end of a time belongs to the next phase. Without a time the end is
        // when one more would be due.
        (due < self.end || self.phases[self.current].time.is_none()).then_some(due)
    }

    /// Whether all who come or leave by `now` in the running phase were told by
    /// [`Schedule::pop`]: only then is it known whom work can be given to.
    pub fn is_settled(&self, now: Time) -> bool {
        !self.is_over() && self.began && self.next_user().is_none_or(|due| due > now)
    }

    /// The place in the order of the whole at which our change number `local` happens.
    fn rank_of_change(&self, local: u64) -> u64 {
        let whole = self.whole_before;
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
        let global = self.share_of_iterations(iterations)?.global(self.begun);
        if iterations.total.is_some_and(|total| global >= total) {
            return None;
        }
        let Some(rate) = iterations.rate else { return Some(self.start) };
        let due = self.start + Curve::constant(rate).due(global)?;
        (due < self.end).then_some(due)
    }

    /// Our part of the iterations. Users are dealt out one by one, so that where there are fewer
    /// than shards only the first shards have one; only those get iterations.
    fn share_of_iterations(&self, iterations: Iterations) -> Option<Share> {
        let of = self.share.of.min(iterations.users);
        (self.share.index < of).then_some(Share { of, ..self.share })
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
        let Some(iterations) = self.iterations() else { return 0 };
        let Some(share) = self.share_of_iterations(iterations) else { return 0 };
        let Some(rate) = iterations.rate else { return 0 };
        let passed = now.min(self.end).since(self.start);
        let whole = Curve::constant(rate).count_before(passed);
        let whole = iterations.total.map_or(whole, |total| whole.min(total));
        share.part(whole).saturating_sub(self.begun)
    }

    /// The work of the running phase is done before its time: goes on with the next phase.
    ///
    /// Where iterations have a rate, only when one more would be due: the last of 20 at 20 a
    /// second is due after 0.95 s, but they take a second.
    pub fn finish_phase(&mut self, now: Time) {
        if !self.is_over() {
            self.end = self.end.min(now.max(self.one_more()));
        }
    }

    /// When one more iteration than the running phase has would be due.
    fn one_more(&self) -> Time {
        let Some(Iterations { rate: Some(rate), total: Some(total), .. }) = self.iterations()
        else {
            return self.start;
        };
        self.start + Curve::constant(rate).due(total).unwrap_or_default()
    }

    /// Nothing is due any more, whatever the load says.
    pub fn cancel(&mut self, now: Time) {
        self.unmet += self.unmet_until(now);
        self.current = self.phases.len();
    }
}

#[cfg(test)]
mod tests;
