//! One shard's part of a load, phase by phase.

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::{Dealt, Random, Share, Time, Turns};
use throng_program::{Churn, Coming, Drive, Iterations, Load, Parting, Phase};

use crate::amendment::{Amendment, Change};
use crate::churning::Churning;
use crate::coming;
use crate::held::Held;
use crate::portion::Portion;
use crate::starts::Starts;
use crate::turn::Turn;

/// How many users of one shard come or go at a time, where there are so many shards at least, and
/// where none comes or goes earlier by more than this.
const GROUP: u64 = 4;
const GROUPING_SHARDS_MIN: u64 = 8;
const GROUPED_MAX: Duration = Duration::from_millis(20);

/// Something to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// This phase of the load begins.
    Phase(u16),
    /// A user comes who stays.
    Come { due: Time },
    /// One of the users who stay leaves.
    Leave,
    /// A user comes who runs the session once.
    Arrive { due: Time },
    /// One of the users who stay loses its connection in this way, and comes back by itself.
    Part { how: Parting, due: Time },
    /// The last phase is over.
    End,
}

/// What a load asked for in some time: starts at a rate, be it users who arrive or iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Fell due. Each begins, is dropped, is unmet or is withdrawn.
    pub wanted: u64,
    /// Were due before and have not begun.
    pub backlog: u64,
    /// Had been due for a moment only when the run was stopped.
    pub withdrawn: u64,
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
    /// What is made of what they want.
    portion: Portion,
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
    /// What the running phase begins at a rate.
    starts: Option<Starts>,
    /// For what is spaced by chance.
    seed: u64,
    churning: Churning,
    /// Starts of phases that are over that never happened, and those that were dropped, until they
    /// are asked for.
    unmet: u64,
    dropped: u64,
    /// Starts at a rate that were begun, dropped or given up; and how many were told to be wanted.
    settled: u64,
    told: u64,
    withdrawn: u64,
    held: Held,
    /// How long growth had been held when the running phase began.
    held_before: Duration,
    /// More of ours, and of all shards, do not stay any more: growth was given up.
    staying_max: u64,
    whole_max: u64,
    /// Those that lie ahead, in the order of their instants.
    amendments: VecDeque<Amendment>,
    /// Iterations that were due before the phase was amended and still wait for a user.
    behind: VecDeque<Behind>,
    /// Of one side of a duel, and the slice that goes on.
    turns: Option<Turns>,
    turn: Option<Turn>,
}

/// Iterations that were due before an instant at which their phase was amended.
#[derive(Clone, Debug)]
struct Behind {
    starts: Starts,
    start: Time,
    dealt: Dealt,
    /// Of ours, and those that were begun.
    count: u64,
    begun: u64,
}

impl Schedule {
    /// What is left to chance follows from the seed, which is that of the whole run.
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
            staying: 0,
            staying_before: 0,
            whole_before: 0,
            handed: 0,
            begun: 0,
            starts: None,
            seed,
            churning: Churning::default(),
            unmet: 0,
            dropped: 0,
            settled: 0,
            told: 0,
            withdrawn: 0,
            held: Held::default(),
            held_before: Duration::ZERO,
            staying_max: u64::MAX,
            whole_max: u64::MAX,
            amendments: VecDeque::new(),
            behind: VecDeque::new(),
            turns: load.turns,
            turn: None,
        };
        schedule.enter(0, start);
        schedule
    }

    /// For a load that was made to begin at [`Time::NEVER`]: it is known when it does.
    pub fn begin(&mut self, start: Time) {
        if !self.began && self.current == 0 {
            self.enter(0, start);
        }
    }

    fn enter(&mut self, index: usize, start: Time) {
        self.current = index;
        if index == 0 {
            self.turn = self.turns.map(|turns| Turn::new(turns, start));
        }
        self.began = false;
        self.behind.clear();
        self.stretch(start);
        let users = self.whole_before.max(self.wanted_of_whole());
        self.churning = self.churning.again(users, start);
        self.end = self.planned_end();
    }

    /// From `start` on the running phase does what it says, with who is there.
    fn stretch(&mut self, start: Time) {
        self.start = start;
        self.staying_before = self.staying;
        self.handed = 0;
        self.begun = 0;
        self.starts = self.starts_of(self.current);
        self.held_before = self.held.until(start);
        if self.growth_is_given_up() {
            (self.whole_max, self.staying_max) = (self.whole_before, self.staying);
        }
    }

    /// What is changed at an instant that lies ahead. A load that has not begun is changed for
    /// when it does.
    pub fn amend(&mut self, amendment: Amendment) {
        // Those of a person and those of this machine itself do not know of each other.
        let place = self.amendments.partition_point(|known| known.at <= amendment.at);
        self.amendments.insert(place, amendment);
    }

    /// When the phase that runs is amended next.
    fn amended_at(&self) -> Time {
        self.amendments.front().map_or(Time::NEVER, |amendment| amendment.at)
    }

    fn apply(&mut self, Amendment { at, change, users_max }: Amendment) {
        let has_begun = self.has_begun();
        if !has_begun && change == Change::EndPhase {
            return;
        }
        let at = if has_begun { at } else { self.start };
        let present = if has_begun { self.whole_at(at) } else { 0 };
        if change == Change::EndPhase {
            self.give_up_starts(at);
            self.whole_before = present;
            return self.enter(self.current + 1, at);
        }
        let passed = if has_begun { at.since(self.start) } else { Duration::ZERO };
        let present_whole = self.portion.present(present, self.current);
        if let Change::Portion(portion) = change {
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
            return self.enter(0, self.start);
        }
        match drive.rate() {
            Some(_) => self.amend_rate(drive, present, at),
            None => self.amend_users(drive, present, at),
        }
    }

    /// What starts goes on in step at another rate.
    fn amend_rate(&mut self, mut drive: Drive, present: u64, at: Time) {
        let passed = at.since(self.start);
        let Some(starts) = self.starts.take() else { return };
        let dealt = self.dealt();
        let taken = if self.iterations().is_some() { self.begun } else { self.handed };
        // Of how many all shards have to agree where there is a number of them: none of those that
        // are ours and were taken is due later, but one of the others may be.
        let known = match (self.iterations().is_some_and(|it| it.total.is_some()), taken) {
            (true, 0) => 0,
            (true, taken) => dealt.map_or(0, |dealt| dealt.global(taken - 1) + 1),
            (false, taken) => dealt.map_or(0, |dealt| dealt.global(taken)),
        };
        let due = starts.count_before(passed, known);
        let ahead = starts.ahead_after(passed, due);
        let mut begin = due;
        if let Drive::Iterations(Iterations { total: Some(total), .. }) = &mut drive {
            begin = due.min(*total);
            *total -= begin;
        }
        let count = dealt.map_or(0, |dealt| dealt.part(begin));
        let waits = self.iterations().is_some() && !self.drops_iterations();
        self.starts = Some(starts);
        match dealt {
            Some(dealt) if waits => self.wait_behind(dealt, count),
            _ => _ = self.give_up_starts(at),
        }
        self.set_rest(drive, at);
        self.whole_before = present;
        self.stretch(at);
        self.starts = self.starts.take().map(|starts| starts.ahead(ahead));
        // Of a shard that heard of it too late.
        (self.begun, self.handed) = match self.iterations() {
            Some(_) => (taken.saturating_sub(count), 0),
            None => (0, taken.saturating_sub(count)),
        };
    }

    /// Those that are due and were not begun still wait for a user.
    fn wait_behind(&mut self, dealt: Dealt, count: u64) {
        if let Some(starts) = self.starts.take().filter(|_| self.begun < count) {
            let (start, begun) = (self.start, self.begun);
            self.behind.push_back(Behind { starts, start, dealt, count, begun });
        }
    }

    /// Users come or go on to another number: on the same way where it leads there.
    fn amend_users(&mut self, drive: Drive, present: u64, at: Time) {
        let wanted = match &drive {
            Drive::Users(users) => users.to,
            Drive::Iterations(iterations) => iterations.users,
            Drive::Arrivals(_) | Drive::Hold => present,
        };
        let before = self.wanted_of_whole();
        let (rises, falls) = (before > present, before < present);
        let goes_on = (rises && wanted > present) || (falls && wanted < present);
        match goes_on && self.coming() != Some(Coming::AtOnce) {
            true => self.phases[self.current].drive = drive,
            false => {
                self.set_rest(drive, at);
                self.whole_before = present;
                self.stretch(at);
            }
        }
        let users = present.max(self.wanted_of_whole());
        self.churning.amend(self.phases[self.current].churn.as_ref(), users, at);
        if self.ends_with_its_ramp() {
            self.end = self.planned_end().max(at);
        }
    }

    /// The rest of the running phase, whose end stays where it is.
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
            // Of an amended phase: not the same again.
            random = Random::for_owner(random.next_u64(), self.start.0);
        }
        Some(Starts::new(rate, spacing, phase.time, random))
    }

    fn planned_end(&self) -> Time {
        let Some(phase) = self.phases.get(self.current) else { return Time::NEVER };
        match (phase.time, &phase.drive) {
            (Some(time), _) => self.start + time,
            (None, Drive::Hold) => self.start,
            // A ramp without a time is over when its last user has come or gone. All shards
            // reckon with the whole, so that all have the same end.
            (None, Drive::Users(users)) => {
                let change = self.wanted_of_whole().abs_diff(self.whole_before);
                let never = Duration::from_nanos(u64::MAX);
                let length = coming::length(users.coming, change).unwrap_or(never);
                let last = change.checked_sub(1).and_then(|last| coming::due(users.coming, last));
                let came = |last| self.comes(last).filter(|at| *at < self.held.from);
                match self.is_growing() {
                    // Nothing is left that could be held.
                    true if self.held.from > self.start && last.and_then(came).is_some() => {
                        self.start + length + self.held.before.saturating_sub(self.held_before)
                    }
                    true => self.comes(length).unwrap_or(Time::NEVER),
                    false => self.start + length,
                }
            }
            (None, Drive::Arrivals(_) | Drive::Iterations(_)) => Time::NEVER,
        }
    }

    /// When somebody comes who is due so long after the phase's begin by the clock of growth; None
    /// while that stands still before.
    fn comes(&self, after: Duration) -> Option<Time> {
        let start = self.start + after;
        let unheld = start + self.held.before.saturating_sub(self.held_before);
        if self.held.from > self.start && unheld < self.held.from {
            return Some(unheld);
        }
        Some(start + self.held.total()?.saturating_sub(self.held_before))
    }

    /// Whether more users come to stay in the running phase.
    fn is_growing(&self) -> bool {
        self.wanted_of_whole() > self.whole_before
    }

    /// How users who stay come or go in the running phase.
    fn coming(&self) -> Option<Coming> {
        match self.drive()? {
            Drive::Users(users) => Some(users.coming),
            Drive::Iterations(_) => Some(Coming::AtOnce),
            Drive::Hold | Drive::Arrivals(_) => None,
        }
    }

    /// How many of all shards the running phase wants to stay in the end.
    fn wanted_of_whole(&self) -> u64 {
        self.wanted().unwrap_or(self.whole_before).min(self.whole_max)
    }

    /// How many of ours the running phase wants to stay in the end.
    fn wanted_staying(&self) -> u64 {
        let wanted = self.wanted().map(|wanted| self.share.part(wanted));
        wanted.unwrap_or(self.staying_before).min(self.staying_max)
    }

    fn wanted(&self) -> Option<u64> {
        match self.drive()? {
            Drive::Users(users) => Some(users.to),
            Drive::Iterations(iterations) => Some(iterations.users),
            Drive::Hold | Drive::Arrivals(_) => None,
        }
    }

    /// Users of all shards who stay when so much of the running phase is over: those whose change
    /// was due before.
    fn whole_at(&self, time: Time) -> u64 {
        let Some(coming) = self.coming() else { return self.whole_before };
        let wanted = self.wanted_of_whole();
        let passed = time.since(self.start);
        if wanted < self.whole_before {
            let gone = coming::count_before(coming, passed);
            return self.whole_before - (self.whole_before - wanted).min(gone);
        }
        let held = self.held.until(time).saturating_sub(self.held_before);
        let come = coming::count_before(coming, passed.saturating_sub(held));
        self.whole_before + (wanted - self.whole_before).min(come)
    }

    /// Users of all shards when the running phase ends in its time: what it wants, or how far its
    /// ramp comes.
    fn whole_after(&self) -> u64 {
        let all_at_once = || {
            let held = self.held.until(self.end) > self.held_before;
            self.coming() == Some(Coming::AtOnce) && !(held && self.is_growing())
        };
        match self.phases.get(self.current) {
            // A phase that takes no time is long enough for this.
            Some(_) if all_at_once() => self.wanted_of_whole(),
            // A phase that ends when it is done was done; but for its growth being given up.
            Some(Phase { drive: Drive::Users(_), time: None, .. }) => self.wanted_of_whole(),
            _ => self.whole_at(self.end),
        }
    }

    /// Growth is held, or goes on: who is due after that comes later by as long as it is held. A
    /// phase that has a time ends with it all the same. Shards that hear of it before it is so
    /// have exactly the same idea of who has come.
    pub fn hold(&mut self, held: Held) {
        // A ramp whose last user has come before this has nothing left that could be held.
        let done =
            self.is_growing() && self.whole_at(held.from.min(self.end)) == self.wanted_of_whole();
        self.held = held;
        // What was held at the phase's begin is known only now.
        if held.from <= self.start {
            self.held_before = held.until(self.start);
        }
        if !done && !self.is_over() && self.is_growing() && self.ends_with_its_ramp() {
            self.end = self.planned_end();
        }
    }

    /// Nobody comes any more in this run. Phases that want more users than there are have those
    /// that are there; a ramp that has no time is over.
    pub fn give_up_growth(&mut self, now: Time) {
        if self.is_over() || self.growth_is_given_up() {
            return;
        }
        let grows = self.is_growing();
        let ramp = grows && self.ends_with_its_ramp();
        // Who was due before growth was held still comes.
        let at = if self.held.is_held() { now.max(self.held.from) } else { now };
        (self.whole_max, self.staying_max) = match grows {
            true => {
                let whole = self.whole_at(at);
                (whole, self.staying.max(self.share.part(whole)))
            }
            false => (self.whole_before, self.staying_before),
        };
        if ramp {
            self.end = self.end.min(at.max(self.start));
        }
    }

    fn growth_is_given_up(&self) -> bool {
        self.staying_max != u64::MAX
    }

    fn ends_with_its_ramp(&self) -> bool {
        matches!(
            self.phases.get(self.current),
            Some(Phase { drive: Drive::Users(_), time: None, .. })
        )
    }

    /// Whether users of ours shall still come to stay.
    pub fn awaits_users(&self) -> bool {
        self.wanted_staying() > self.staying
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

    /// When its last phase ended; None before.
    pub(crate) fn ended(&self) -> Option<Time> {
        // What follows the last phase began with its end.
        self.is_over().then_some(self.start)
    }

    /// Whether its first phase has begun.
    pub fn has_begun(&self) -> bool {
        self.began || self.current > 0
    }

    /// Whether the running phase counts.
    pub fn is_measured(&self) -> bool {
        self.phases.get(self.current).is_some_and(|phase| phase.measured)
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

    /// Whether the other side of a duel works: no iteration begins here meanwhile.
    fn rests(&self) -> bool {
        self.turn.is_some_and(|turn| !turn.works())
    }

    /// Whether a connection is replaced by a new one before the next request. In a duel, all are
    /// at the beginning of each slice: a target that ties each connection to a thread deals the few
    /// connections of a duel out unevenly, and one such deal for the whole duel would look like a
    /// difference of the sides.
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

    /// The next moment at which [`Schedule::pop`] may have something.
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
        user.min(churn).min(self.end).min(self.amended_at()).min(turn_end)
    }

    /// What is due at `now`, one after another.
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
                // Who falls out at a moment is one of those who were there before it.
                (user, Some(due))
                    if self.began && due <= now && user.is_none_or(|user| due <= user) =>
                {
                    if let Some(action) = self.churn_action(due) {
                        return Some(action);
                    }
                }
                (Some(due), _) if self.began && due <= now => {
                    self.handed += 1;
                    return Some(self.user_action(due));
                }
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
            self.settled += 1;
            return Action::Arrive { due };
        }
        if self.wanted_staying() < self.staying_before {
            self.staying -= 1;
            return Action::Leave;
        }
        self.staying += 1;
        Action::Come { due }
    }

    fn churn(&self) -> Option<&Churn> {
        self.phases.get(self.current)?.churn.as_ref()
    }

    /// When somebody of ours may fall out in the running phase.
    fn next_churn(&self) -> Option<Time> {
        let due = self.churning.next(self.churn()?, self.share)?;
        (due < self.end.min(self.amended_at())).then_some(due)
    }

    /// Where nobody stays, nobody falls out.
    fn churn_action(&mut self, due: Time) -> Option<Action> {
        let whole = self.whole_at(due);
        let churn = self.phases[self.current].churn.as_ref()?;
        let how = self.churning.take(churn, self.share, whole)?;
        (self.staying > 0).then_some(Action::Part { how, due })
    }

    fn advance(&mut self, start: Time) {
        self.give_up_starts(start);
        self.whole_before = self.whole_after();
        self.enter(self.current + 1, start);
    }

    /// How many of ours come or go in the running phase.
    fn changes(&self) -> u64 {
        self.wanted_staying().abs_diff(self.staying_before)
    }

    /// When the next user comes, arrives or leaves in the running phase.
    fn next_user(&self) -> Option<Time> {
        if let Some(Drive::Arrivals(_)) = self.drive() {
            let number = self.dealt()?.global(self.handed);
            let due = self.comes(self.starts.as_ref()?.due(number)?)?;
            let end = self.end.min(self.amended_at());
            return (due < end && !self.growth_is_given_up()).then_some(due);
        }
        let coming = self.coming()?;
        if self.handed >= self.changes() {
            return None;
        }
        let due_of = |local| {
            let after = coming::due(coming, self.rank_of_change(local))?;
            match self.wanted_staying() > self.staying_before {
                true => self.comes(after),
                false => Some(self.start + after),
            }
        };
        let due = due_of(self.handed)?;
        // Who is due at the end of a time belongs to the next phase; but who comes at once does
        // so even in a phase that takes no time. Without a time the end is when one more would
        // be due.
        let at_once = coming == Coming::AtOnce && due == self.start;
        let is_in = due < self.end || at_once || self.phases[self.current].time.is_none();
        let is_in = is_in && due < self.amended_at();
        is_in.then(|| due_of(self.first_of_group(coming)).map_or(due, |first| first.min(due)))
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

    /// Whose due time the next change of ours has: where many shards have to bring users fast, each
    /// brings some at a time, in turns with the others, so that a thread wakes for more than one.
    fn first_of_group(&self, coming: Coming) -> u64 {
        let Coming::Rate(rate) = coming else { return self.handed };
        let together = GROUP as f64 * 1.0 / (rate * self.share.fraction());
        let (thread, threads) = self.share.place();
        if threads < GROUPING_SHARDS_MIN || together > GROUPED_MAX.as_secs_f64() {
            return self.handed;
        }
        let turn = (self.handed + thread) % GROUP;
        self.handed.saturating_sub(turn)
    }

    /// When the next iteration of the running phase is due; None when there is none to come.
    /// Only for [`Pace::Scheduled`]. A time before now is a start that had to wait.
    pub fn next_iteration(&self) -> Option<Time> {
        let iterations = self.iterations().filter(|_| !self.rests())?;
        if let Some(behind) = self.behind.front() {
            return Some(behind.start + behind.starts.due(behind.dealt.global(behind.begun))?);
        }
        let global = self.dealt()?.global(self.begun);
        if iterations.total.is_some_and(|total| global >= total) {
            return None;
        }
        let Some(starts) = &self.starts else { return Some(self.start) };
        let due = self.start + starts.due(global)?;
        (due < self.end.min(self.amended_at())).then_some(due)
    }

    /// Our part of what begins: iterations go to users in turn, and so do the places of those who
    /// arrive where their number is limited.
    fn dealt(&self) -> Option<Dealt> {
        let users = match self.drive()? {
            Drive::Arrivals(arrivals) => arrivals.max,
            Drive::Iterations(iterations) => Some(iterations.users.min(self.whole_max)),
            Drive::Users(_) | Drive::Hold => None,
        };
        self.share.dealt(users)
    }

    /// More of ours than these do not arrive at once: who comes then is dropped.
    pub fn arrived_max(&self) -> Option<u64> {
        match self.drive()? {
            Drive::Arrivals(arrivals) => arrivals.max.map(|max| self.share.part(max)),
            Drive::Users(_) | Drive::Iterations(_) | Drive::Hold => None,
        }
    }

    /// When the oldest iteration that no user has taken was due, where such ones are dropped.
    pub fn next_to_drop(&self) -> Option<Time> {
        self.drops_iterations().then(|| self.next_iteration())?
    }

    /// Whether an iteration that no user is free for is dropped, instead of waiting for one.
    pub fn drops_iterations(&self) -> bool {
        self.iterations().is_some_and(|iterations| iterations.drops)
    }

    /// Drops those that were due until then.
    pub fn drop_iterations(&mut self, until: Time) {
        while self.next_to_drop().is_some_and(|due| due <= until) {
            self.begun += 1;
            self.dropped += 1;
            self.settled += 1;
        }
    }

    /// Whom [`Action::Arrive`] told does not come.
    pub fn drop_arrival(&mut self) {
        self.dropped += 1;
    }

    /// Takes the iteration that [`Schedule::next_iteration`] told, to begin it or to drop it.
    pub fn begin_iteration(&mut self) {
        self.settled += u64::from(self.paces_iterations());
        let Some(behind) = self.behind.front_mut() else {
            self.begun += 1;
            return;
        };
        behind.begun += 1;
        self.behind.pop_front_if(|behind| behind.begun >= behind.count);
    }

    /// Whether the running phase is over when a number of iterations is done.
    pub fn counts_iterations(&self) -> bool {
        self.iterations().is_some_and(|iterations| iterations.total.is_some())
    }

    /// Whether the running phase has a time for each iteration.
    pub fn paces_iterations(&self) -> bool {
        self.iterations().is_some_and(|iterations| iterations.rate.is_some())
    }

    fn iterations(&self) -> Option<&Iterations> {
        match self.drive() {
            Some(Drive::Iterations(iterations)) => Some(iterations),
            _ => None,
        }
    }

    /// Starts that never happened though their time came, of phases that are over; told once.
    pub fn take_unmet(&mut self) -> u64 {
        std::mem::take(&mut self.unmet)
    }

    /// Starts that were dropped; told once.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// What fell due at a rate since the last call, until `now`, and what of it still waits that
    /// was due `patience` before.
    pub fn asked(&mut self, now: Time, patience: Duration) -> Asked {
        let backlog = self.waiting(Time(now.0.saturating_sub(patience.as_nanos() as u64)));
        let wanted = (self.settled + self.waiting(now)).saturating_sub(self.told);
        self.told += wanted;
        Asked { wanted, backlog, withdrawn: std::mem::take(&mut self.withdrawn) }
    }

    /// What was due before `now` and has not begun.
    fn waiting(&self, now: Time) -> u64 {
        let behind = self.behind.iter().map(|behind| behind.count - behind.begun);
        behind.sum::<u64>() + self.unmet_until(now.min(self.amended_at()))
    }

    /// What was due until now in the running phase and will not be done: every start that was due
    /// is begun, dropped or unmet. How many there were.
    fn give_up_starts(&mut self, now: Time) -> u64 {
        let behind = self.behind.drain(..).map(|behind| behind.count - behind.begun);
        let left = behind.sum::<u64>() + self.unmet_until(now);
        self.settled += left;
        match self.drops_iterations() {
            true => self.dropped += left,
            false => self.unmet += left,
        }
        left
    }

    /// Iterations that were due before `now` and were not begun, and users who should have
    /// arrived before it.
    fn unmet_until(&self, now: Time) -> u64 {
        let passed = now.min(self.end).since(self.start);
        let (Some(share), Some(starts)) = (self.dealt(), &self.starts) else { return 0 };
        let (taken, total) = match self.iterations() {
            Some(iterations) => (self.begun, iterations.total),
            None => (self.handed, None),
        };
        let whole = starts.count_before(passed, share.global(taken));
        share.part(total.map_or(whole, |total| whole.min(total))).saturating_sub(taken)
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
        let total = self.iterations().and_then(|iterations| iterations.total);
        let (Some(total), Some(starts)) = (total, &self.starts) else { return self.start };
        self.start + starts.due(total).unwrap_or_default()
    }

    /// Nothing is due any more from `now` on, whatever the load says. Starts that were due after
    /// `until` and wait are withdrawn, the others never happened.
    pub fn cancel(&mut self, until: Time, now: Time) {
        let waiting = self.waiting(now);
        let withdrawn = waiting.saturating_sub(self.give_up_starts(until));
        self.withdrawn += withdrawn;
        self.settled += withdrawn;
        self.current = self.phases.len();
    }
}

#[cfg(test)]
mod tests;
