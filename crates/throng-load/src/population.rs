//! The users who stay: how many are there, of ours and of all shards, and when the next one comes
//! or leaves.

use std::time::Duration;

use throng_base::{Share, Time};
use throng_program::{Coming, Drive, Users};

use crate::coming;
use crate::held::{GrowthClock, Held};

/// How many users of one shard come or go at a time, where there are so many shards at least, and
/// where none comes or goes earlier by more than this.
const GROUP: u64 = 4;
pub(crate) const GROUPING_SHARDS_MIN: u64 = 8;
const GROUPED_MAX: Duration = Duration::from_millis(20);

/// See the module's description. Ours are our part of the whole.
#[derive(Clone, Debug)]
pub struct Population {
    share: Share,
    pub(crate) clock: GrowthClock,
    /// What the running phase wants; None where it wants those that are there.
    goal: Option<Users>,
    /// How many are there, of ours; how many there were when the phase began, of ours and of all
    /// shards.
    staying: u64,
    staying_before: u64,
    whole_before: u64,
    /// Changes of the running phase that were handed out.
    handed: u64,
    /// More of ours, and of all shards, do not stay any more: growth was given up.
    staying_max: u64,
    whole_max: u64,
}

impl Population {
    pub(crate) fn new(share: Share, start: Time) -> Population {
        Population {
            share,
            clock: GrowthClock::new(start),
            goal: None,
            staying: 0,
            staying_before: 0,
            whole_before: 0,
            handed: 0,
            staying_max: u64::MAX,
            whole_max: u64::MAX,
        }
    }

    /// How many of ours shall be staying at the moment.
    pub fn staying(&self) -> u64 {
        self.staying
    }

    /// Whether users of ours shall still come to stay.
    pub fn awaits_users(&self) -> bool {
        self.wanted() > self.staying
    }

    /// From `start` on with those that are there, `whole` of all shards.
    pub(crate) fn stretch(&mut self, start: Time, whole: u64) {
        self.clock.stretch(start);
        self.staying_before = self.staying;
        self.whole_before = whole;
        self.handed = 0;
        if self.growth_is_given_up() {
            (self.whole_max, self.staying_max) = (whole, self.staying);
        }
    }

    /// This is what the running phase wants.
    pub(crate) fn pursue(&mut self, drive: Option<&Drive>) {
        self.goal = match drive {
            Some(Drive::Users(users)) => Some(*users),
            Some(Drive::Iterations(iterations)) => {
                Some(Users { to: iterations.users, coming: Coming::AtOnce })
            }
            Some(Drive::Hold | Drive::Arrivals(_)) | None => None,
        };
    }

    /// How they come or go in the running phase.
    pub(crate) fn coming(&self) -> Option<Coming> {
        self.goal.map(|goal| goal.coming)
    }

    /// More of all shards do not stay.
    pub(crate) fn whole_max(&self) -> u64 {
        self.whole_max
    }

    /// How many of all shards the running phase wants to stay in the end.
    pub(crate) fn whole_wanted(&self) -> u64 {
        self.goal.map_or(self.whole_before, |goal| goal.to).min(self.whole_max)
    }

    /// How many of ours the running phase wants to stay in the end.
    fn wanted(&self) -> u64 {
        let wanted = self.goal.map(|goal| self.share.part(goal.to));
        wanted.unwrap_or(self.staying_before).min(self.staying_max)
    }

    /// Whether more users come to stay in the running phase.
    pub(crate) fn is_growing(&self) -> bool {
        self.whole_wanted() > self.whole_before
    }

    /// Users of all shards who stay when so much of the running phase is over: those whose change
    /// was due before.
    pub(crate) fn whole_at(&self, time: Time) -> u64 {
        let Some(coming) = self.coming() else { return self.whole_before };
        let wanted = self.whole_wanted();
        if wanted < self.whole_before {
            let gone = coming::count_before(coming, time.since(self.clock.start));
            return self.whole_before - (self.whole_before - wanted).min(gone);
        }
        let come = coming::count_before(coming, self.clock.passed(time));
        self.whole_before + (wanted - self.whole_before).min(come)
    }

    /// Users of all shards when the running phase ends: what it wants, if it ends when it `is_done`
    /// or takes no time; else how far its ramp comes.
    pub(crate) fn whole_after(&self, end: Time, is_done: bool) -> u64 {
        let all_at_once = || {
            self.coming() == Some(Coming::AtOnce)
                && !(self.clock.was_held_until(end) && self.is_growing())
        };
        if is_done || all_at_once() { self.whole_wanted() } else { self.whole_at(end) }
    }

    /// When a ramp without a time is over: when its last user has come or gone. All shards reckon
    /// with the whole, so that all have the same end.
    pub(crate) fn ramp_end(&self) -> Time {
        let Some(coming) = self.coming() else { return self.clock.start };
        let change = self.whole_wanted().abs_diff(self.whole_before);
        let length = coming::length(coming, change).unwrap_or(Duration::from_nanos(u64::MAX));
        let last = change.checked_sub(1).and_then(|last| coming::due(coming, last));
        match self.is_growing() {
            // Nothing is left that could be held.
            true if last.is_some_and(|last| self.clock.comes_before_held(last)) => {
                self.clock.unheld(length)
            }
            true => self.clock.comes(length).unwrap_or(Time::NEVER),
            false => self.clock.start + length,
        }
    }

    /// Whether all of a ramp that `ends` then have come before growth is held.
    pub(crate) fn has_grown_before(&self, held: Held, ends: Time) -> bool {
        self.is_growing() && self.whole_at(held.from.min(ends)) == self.whole_wanted()
    }

    pub(crate) fn growth_is_given_up(&self) -> bool {
        self.staying_max != u64::MAX
    }

    /// Who would come after `at` does not.
    pub(crate) fn give_up_growth(&mut self, at: Time) {
        (self.whole_max, self.staying_max) = match self.is_growing() {
            true => {
                let whole = self.whole_at(at);
                (whole, self.staying.max(self.share.part(whole)))
            }
            false => (self.whole_before, self.staying_before),
        };
    }

    /// When the next user comes or leaves, in a phase that ends or is amended at these times.
    pub(crate) fn next_change(&self, end: Time, amended: Time) -> Option<Time> {
        let coming = self.coming()?;
        let wanted = self.wanted();
        if self.handed >= wanted.abs_diff(self.staying_before) {
            return None;
        }
        let due_of = |local| {
            let after = coming::due(coming, self.rank_of_change(local))?;
            match wanted > self.staying_before {
                true => self.clock.comes(after),
                false => Some(self.clock.start + after),
            }
        };
        let due = due_of(self.handed)?;
        // Who is due at the end of a time belongs to the next phase; but who comes at once does
        // so even in a phase that takes no time.
        let at_once = coming == Coming::AtOnce && due == self.clock.start;
        let is_in = (due < end || at_once) && due < amended;
        is_in.then(|| due_of(self.first_of_group(coming)).map_or(due, |first| first.min(due)))
    }

    /// The next change happens; whether a user comes.
    pub(crate) fn change(&mut self) -> bool {
        let comes = self.wanted() >= self.staying_before;
        self.handed += 1;
        self.staying = if comes { self.staying + 1 } else { self.staying - 1 };
        comes
    }

    /// The place in the order of the whole at which our change number `local` happens.
    fn rank_of_change(&self, local: u64) -> u64 {
        let whole = self.whole_before;
        if self.wanted() >= self.staying_before {
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
}
