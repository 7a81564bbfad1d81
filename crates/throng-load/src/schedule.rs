//! One shard's part of a load, phase by phase.

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::{Random, Share, Time, Turns};
use throng_program::{Change, Coming, Drive, Iterations, Load, Parting, Phase};

use crate::amendment::{Adjustment, Amendment};
use crate::churning::Churning;
use crate::held::Held;
use crate::population::Population;
use crate::portion::Portion;
use crate::start_queue::{Asked, StartQueue};
use crate::starts::Starts;
use crate::turn::Turn;

/// An event that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// This phase of the load starts.
    Phase(u16),
    /// A user that stays starts.
    Come { due: Time },
    /// A staying user leaves.
    Leave,
    /// A user arrives that runs the session once.
    Arrive { due: Time },
    /// A staying user closes its connection in this mode and reconnects.
    Part { how: Parting, due: Time },
    /// The last phase has ended.
    End,
}

/// When staying users start an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As soon as the previous one has ended.
    Free,
    /// When the schedule assigns one.
    Scheduled,
}

#[derive(Clone, Debug)]
pub struct Schedule {
    phases: Vec<Phase>,
    /// The portion that this machine generates.
    portion: Portion,
    share: Share,
    /// Index of the running phase; `phases.len()` after the last.
    current: usize,
    began: bool,
    /// When the current phase started, or the last one ended.
    pub(crate) start: Time,
    /// End of the current phase; [`Time::NEVER`] if it ends when its work is done.
    end: Time,
    pub population: Population,
    pub starts: StartQueue,
    /// Seed of random spacing.
    seed: u64,
    churning: Churning,
    /// Changes in the future, sorted by time.
    amendments: VecDeque<Amendment>,
    /// For a side of a duel: the turns and the current slice.
    turns: Option<Turns>,
    turn: Option<Turn>,
}

impl Schedule {
    /// `seed` is that of the run; all random choices derive from it.
    pub fn new(load: &Load, share: Share, start: Time, seed: u64) -> Schedule {
        let phases = load.phases.clone();
        let mut schedule = Schedule {
            portion: Portion::whole(&phases),
            phases,
            share,
            current: 0,
            began: false,
            start,
            end: start,
            population: Population::new(share, start),
            starts: StartQueue::default(),
            seed,
            churning: Churning::default(),
            amendments: VecDeque::new(),
            turns: load.turns,
            turn: None,
        };
        schedule.enter(0, start, 0);
        schedule
    }

    /// Sets the start of a load that was created with [`Time::NEVER`].
    pub fn begin(&mut self, start: Time) {
        if !self.began && self.current == 0 {
            self.enter(0, start, 0);
        }
    }

    /// Starts the phase, with this many users of all shards.
    fn enter(&mut self, index: usize, start: Time, whole: u64) {
        self.current = index;
        if index == 0 {
            self.turn = self.turns.map(|turns| Turn::new(turns, start));
        }
        self.began = false;
        self.starts.forget_behind();
        self.stretch(start, whole);
        let users = whole.max(self.population.whole_wanted());
        self.churning = self.churning.again(users, start);
        self.end = self.planned_end();
    }

    /// From `start` on, the current phase applies to the users that are present, `whole` on all
    /// shards.
    fn stretch(&mut self, start: Time, whole: u64) {
        self.start = start;
        self.population.stretch(start, whole);
        self.pursue();
        let starts = self.starts_of(self.current);
        self.starts.stretch(start, starts);
    }

    /// Applies the drive of the current phase to the users that may still start.
    fn pursue(&mut self) {
        let drive = self.phases.get(self.current).map(|phase| &phase.drive);
        self.population.pursue(drive);
        // Iterations are assigned to users in turn, as are arrivals if their number is limited.
        let dealt = drive.and_then(|drive| match drive {
            Drive::Arrivals(arrivals) => self.share.dealt(arrivals.max),
            Drive::Iterations(iterations) => {
                self.share.dealt(Some(iterations.users.min(self.population.whole_max())))
            }
            Drive::Users(_) | Drive::Hold => self.share.dealt(None),
        });
        self.starts.drive(drive, dealt);
    }

    /// Schedules a change in the future. For a load that has not started, it applies at its start.
    pub fn amend(&mut self, amendment: Amendment) {
        // Changes by a user and by this machine are independent, so sort them.
        let place = self.amendments.partition_point(|known| known.at <= amendment.at);
        self.amendments.insert(place, amendment);
    }

    /// The next change of the current phase.
    fn amended_at(&self) -> Time {
        self.amendments.front().map_or(Time::NEVER, |amendment| amendment.at)
    }

    fn apply(&mut self, Amendment { at, change, users_max }: Amendment) {
        let has_begun = self.has_begun();
        let ends_phase = change == Adjustment::Change(Change::EndPhase);
        if !has_begun && ends_phase {
            return;
        }
        let at = if has_begun { at } else { self.start };
        let present = if has_begun { self.population.whole_at(at) } else { 0 };
        if ends_phase {
            self.starts.give_up(at.min(self.end));
            return self.enter(self.current + 1, at, present);
        }
        let passed = if has_begun { at.since(self.start) } else { Duration::ZERO };
        let present_whole = self.portion.present(present, self.current);
        if let Adjustment::Portion(portion) = change {
            let behind = self.current + usize::from(has_begun);
            self.portion.set(portion, self.phases.iter_mut().skip(behind));
        }
        let phase = self.portion.phase_of_whole(&self.phases[self.current], self.current);
        let usual = self.phases[..self.current].iter().rev().find_map(|phase| match phase.drive {
            Drive::Users(users) => Some(users.coming),
            _ => None,
        });
        let usual = (present_whole, usual.unwrap_or(Coming::AtOnce));
        let Some(mut drive) = change.drive(&phase, usual, passed) else { return };
        match &mut drive {
            Drive::Users(users) => users.to = users.to.min(users_max),
            Drive::Iterations(iterations) => iterations.users = iterations.users.min(users_max),
            Drive::Arrivals(_) | Drive::Hold => {}
        }
        let drive = self.portion.amended(drive, self.current);
        if !has_begun {
            self.phases[self.current].drive = drive;
            return self.enter(0, self.start, 0);
        }
        match drive.rate() {
            Some(_) => self.amend_rate(drive, present, at),
            None => self.amend_users(drive, present, at),
        }
    }

    /// Changes the rate; starts continue without a gap.
    fn amend_rate(&mut self, mut drive: Drive, present: u64, at: Time) {
        let Some(cut) = self.starts.cut(at) else { return };
        if let Drive::Iterations(Iterations { total: Some(total), .. }) = &mut drive {
            *total -= cut.due;
        }
        self.set_rest(drive, at);
        self.stretch(at, present);
        self.starts.go_on(&cut);
    }

    /// Changes the target number of users. A ramp continues if it leads there.
    fn amend_users(&mut self, drive: Drive, present: u64, at: Time) {
        let wanted = match &drive {
            Drive::Users(users) => users.to,
            Drive::Iterations(iterations) => iterations.users,
            Drive::Arrivals(_) | Drive::Hold => present,
        };
        let before = self.population.whole_wanted();
        let (rises, falls) = (before > present, before < present);
        let goes_on = (rises && wanted > present) || (falls && wanted < present);
        match goes_on && self.population.coming() != Some(Coming::AtOnce) {
            true => {
                self.phases[self.current].drive = drive;
                self.pursue();
            }
            false => {
                self.set_rest(drive, at);
                self.stretch(at, present);
            }
        }
        let users = present.max(self.population.whole_wanted());
        self.churning.amend(self.phases[self.current].churn.as_ref(), users, at);
        if ends_with_its_ramp(self.phases.get(self.current)) {
            self.end = self.planned_end().max(at);
        }
    }

    /// Sets the rest of the current phase; its end stays.
    fn set_rest(&mut self, drive: Drive, at: Time) {
        let passed = at.since(self.start);
        let phase = &mut self.phases[self.current];
        phase.time = phase.time.map(|time| time.saturating_sub(passed));
        phase.drive = drive;
    }

    fn starts_of(&self, index: usize) -> Option<Starts> {
        let phase = self.phases.get(index)?;
        let (rate, spacing) = match &phase.drive {
            Drive::Arrivals(arrivals) => (&arrivals.rate, arrivals.spacing),
            Drive::Iterations(iterations) => (iterations.rate.as_ref()?, iterations.spacing),
            Drive::Users(_) | Drive::Hold => return None,
        };
        let mut random = Random::for_owner(self.seed, index as u64);
        if self.began {
            // A changed phase must not repeat its random sequence.
            random = Random::for_owner(random.next_u64(), self.start.0);
        }
        Some(Starts::new(rate, spacing, phase.time, random))
    }

    fn planned_end(&self) -> Time {
        let Some(phase) = self.phases.get(self.current) else { return Time::NEVER };
        match (phase.time, &phase.drive) {
            (Some(time), _) => self.start + time,
            (None, Drive::Hold) => self.start,
            (None, Drive::Users(_)) => self.population.ramp_end(),
            (None, Drive::Arrivals(_) | Drive::Iterations(_)) => Time::NEVER,
        }
    }

    /// Growth was paused or resumed: users that are due later start later by the length of the
    /// pause. A phase with a duration still ends on time. Shards that are notified in advance agree
    /// exactly on which users have started.
    pub fn hold(&mut self, held: Held) {
        // A ramp whose last user started before the pause is complete.
        let done = self.population.has_grown_before(held, self.end);
        self.population.clock.hold(held);
        let grows = !self.is_over() && self.population.is_growing();
        if !done && grows && ends_with_its_ramp(self.phases.get(self.current)) {
            self.end = self.planned_end();
        }
    }

    /// Ends growth in this run. Phases that want more users keep the present ones; a ramp without a
    /// duration ends.
    pub fn give_up_growth(&mut self, now: Time) {
        if self.is_over() || self.population.growth_is_given_up() {
            return;
        }
        let ramp =
            self.population.is_growing() && ends_with_its_ramp(self.phases.get(self.current));
        // Users that were due before the pause still start.
        let held = self.population.clock.held;
        let at = if held.is_held() { now.max(held.from) } else { now };
        self.population.give_up_growth(at);
        self.pursue();
        if ramp {
            self.end = self.end.min(at.max(self.start));
        }
    }

    /// The drive of the current phase.
    pub fn drive(&self) -> Option<&Drive> {
        self.phases.get(self.current).map(|phase| &phase.drive)
    }

    /// The current phase, or the last one after its end.
    pub fn phase(&self) -> u16 {
        self.current.min(self.phases.len().saturating_sub(1)) as u16
    }

    pub fn is_over(&self) -> bool {
        self.current >= self.phases.len()
    }

    /// Whether the first phase has started.
    pub fn has_begun(&self) -> bool {
        self.began || self.current > 0
    }

    /// Whether the current phase is measured.
    pub fn is_measured(&self) -> bool {
        self.phases.get(self.current).is_some_and(|phase| phase.measured)
    }

    /// Whether the current phase is the last one.
    pub fn is_last_phase(&self) -> bool {
        self.current + 1 >= self.phases.len()
    }

    /// When the current phase ends, if known.
    pub fn phase_end(&self) -> Time {
        self.end
    }

    /// Whether it is the other side's turn in a duel, so that no iteration starts here.
    fn rests(&self) -> bool {
        self.turn.is_some_and(|turn| !turn.works())
    }

    /// Whether a connection is replaced before the next request. In a duel, this happens at the
    /// start of each slice: a target that ties each connection to a thread distributes the few
    /// connections unevenly, and one such distribution for the whole duel would look like a
    /// difference between the sides.
    pub fn renews(&self, established: Time, now: Time) -> bool {
        self.turn.is_some_and(|turn| turn.renews(established, now))
    }

    pub fn pace(&self) -> Pace {
        match self.drive() {
            Some(Drive::Iterations(_)) => Pace::Scheduled,
            _ if self.rests() => Pace::Scheduled,
            _ => Pace::Free,
        }
    }

    /// The next time at which [`Schedule::pop`] may return an action.
    pub fn next(&self) -> Time {
        if self.is_over() {
            return Time::NEVER;
        }
        if !self.began {
            return self.start.min(self.amended_at());
        }
        let user = self.next_user().unwrap_or(Time::NEVER);
        let churn = self.next_churn().unwrap_or(Time::NEVER);
        let turn_end = self.turn.map_or(Time::NEVER, |turn| turn.ends());
        user.min(churn).min(self.limit()).min(turn_end)
    }

    /// The next action that is due at `now`.
    pub fn pop(&mut self, now: Time) -> Option<Action> {
        while !self.is_over() && self.next() <= now {
            if let Some(turn) = self.turn.as_mut().filter(|turn| self.began && turn.ends() <= now) {
                turn.advance();
                continue;
            }
            let amended = self.amended_at();
            if !self.began && self.start <= amended {
                self.began = true;
                return Some(Action::Phase(self.phase()));
            }
            let user = self.next_user().filter(|due| *due <= self.end);
            let churn = self.next_churn();
            match (user, churn) {
                // Only users present before this moment can disconnect.
                (user, Some(due))
                    if self.began && due <= now && user.is_none_or(|user| due <= user) =>
                {
                    if let Some(action) = self.churn_action(due) {
                        return Some(action);
                    }
                }
                (Some(due), _) if self.began && due <= now => return Some(self.user_action(due)),
                _ => {
                    match self.amendments.pop_front_if(|it| it.at < self.end || !self.began) {
                        Some(amendment) => self.apply(amendment),
                        None => self.advance(self.end),
                    }
                    if self.is_over() {
                        return Some(Action::End);
                    }
                }
            }
        }
        None
    }

    fn user_action(&mut self, due: Time) -> Action {
        if let Some(Drive::Arrivals(_)) = self.drive() {
            self.starts.take();
            return Action::Arrive { due };
        }
        if self.population.change() { Action::Come { due } } else { Action::Leave }
    }

    /// When a user of this shard may disconnect next in the current phase.
    fn next_churn(&self) -> Option<Time> {
        let churn = self.phases.get(self.current)?.churn.as_ref()?;
        self.churning.next(churn, self.share).filter(|due| *due < self.limit())
    }

    /// Returns no disconnect if no users stay.
    fn churn_action(&mut self, due: Time) -> Option<Action> {
        let whole = self.population.whole_at(due);
        let churn = self.phases[self.current].churn.as_ref()?;
        let how = self.churning.take(churn, self.share, whole)?;
        (self.population.staying() > 0).then_some(Action::Part { how, due })
    }

    fn advance(&mut self, start: Time) {
        self.starts.give_up(start.min(self.end));
        let whole = self
            .population
            .whole_after(self.end, ends_with_its_ramp(self.phases.get(self.current)));
        self.enter(self.current + 1, start, whole);
    }

    /// When the current phase ends or changes, whichever is first.
    fn limit(&self) -> Time {
        self.end.min(self.amended_at())
    }

    /// When the next user starts, arrives or leaves in the current phase.
    fn next_user(&self) -> Option<Time> {
        let phase = self.phases.get(self.current)?;
        if let Drive::Arrivals(_) = phase.drive {
            let due = self.population.clock.comes(self.starts.due_after()?)?;
            return (due < self.limit() && !self.population.growth_is_given_up()).then_some(due);
        }
        // Without a duration, the phase ends when the next start would be due.
        let end = if phase.time.is_some() { self.end } else { Time::NEVER };
        self.population.next_change(end, self.amended_at())
    }

    /// Whether [`Schedule::pop`] has returned all users that start or leave by `now`. Only then is
    /// it known which users can get work.
    pub fn is_settled(&self, now: Time) -> bool {
        !self.is_over() && self.began && self.next_user().is_none_or(|due| due > now)
    }

    /// The due time of the next iteration in the current phase, if any. Only for
    /// [`Pace::Scheduled`]. A time in the past is a delayed start.
    pub fn next_iteration(&self) -> Option<Time> {
        self.iterations().filter(|_| !self.rests())?;
        self.starts.next(self.limit())
    }

    /// The due time of the oldest iteration that no user took, if such iterations are dropped.
    pub fn next_to_drop(&self) -> Option<Time> {
        self.iterations().filter(|iterations| iterations.drops)?;
        self.next_iteration()
    }

    /// Drops the iterations that were due until then.
    pub fn drop_iterations(&mut self, until: Time) {
        while self.next_to_drop().is_some_and(|due| due <= until) {
            self.starts.take();
            self.starts.dropped += 1;
        }
    }

    /// The iterations of the current phase.
    pub fn iterations(&self) -> Option<&Iterations> {
        match self.drive() {
            Some(Drive::Iterations(iterations)) => Some(iterations),
            _ => None,
        }
    }

    /// The starts that became due since the last call, until `now`, and those still waiting that
    /// were due `patience` before.
    pub fn asked(&mut self, now: Time, patience: Duration) -> Asked {
        let (late, limit) = (Time(now.0.saturating_sub(patience.as_nanos() as u64)), self.limit());
        self.starts.asked(now.min(limit), late.min(limit))
    }

    /// The work of the current phase is done early: continues with the next phase.
    ///
    /// With a rate of iterations, the phase ends when the next one would be due: the last of 20 at
    /// 20 per second is due after 0.95 s, but they take a second.
    pub fn finish_phase(&mut self, now: Time) {
        if !self.is_over() {
            self.end = self.end.min(now.max(self.starts.one_more()));
        }
    }

    /// Ends the load at `now`. Starts due after `until` that still wait are withdrawn; earlier ones
    /// never happened.
    pub fn cancel(&mut self, until: Time, now: Time) {
        self.starts.withdraw(until.min(self.end), now.min(self.limit()));
        self.current = self.phases.len();
        self.pursue();
    }
}

fn ends_with_its_ramp(phase: Option<&Phase>) -> bool {
    matches!(phase, Some(Phase { drive: Drive::Users(_), time: None, .. }))
}

#[cfg(test)]
mod tests;
