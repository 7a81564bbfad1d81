//! Tracks the users that stay: their number on this shard and on all shards, and when the next one
//! starts or leaves.

use std::time::Duration;

use throng_base::{Share, Time};
use throng_program::{Coming, Drive, Users};

use crate::coming;
use crate::held::{GrowthClock, Held};

/// How many users of one shard start or leave together, the minimum number of shards for that, and
/// the maximum time by which a user may do so early.
const GROUP: u64 = 4;
pub(crate) const GROUPING_SHARDS_MIN: u64 = 8;
const GROUPED_MAX: Duration = Duration::from_millis(20);

/// The staying users of one shard.
#[derive(Clone, Debug)]
pub struct Population {
    share: Share,
    pub(crate) clock: GrowthClock,
    /// The target of the current phase; `None` if it keeps the present users.
    goal: Option<Users>,
    /// The current number on this shard, and the numbers at the start of the phase on this shard
    /// and on all shards.
    staying: u64,
    staying_before: u64,
    whole_before: u64,
    /// Changes of the current phase that were returned.
    handed: u64,
    /// Maximum numbers of this shard and of all shards, once growth has ended.
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

    /// How many users of this shard must stay now.
    pub fn staying(&self) -> u64 {
        self.staying
    }

    /// Whether more users of this shard are still to start.
    pub fn awaits_users(&self) -> bool {
        self.wanted() > self.staying
    }

    /// Starts a new count at `start` with the present users, `whole` on all shards.
    pub(crate) fn stretch(&mut self, start: Time, whole: u64) {
        self.clock.stretch(start);
        self.staying_before = self.staying;
        self.whole_before = whole;
        self.handed = 0;
        if self.growth_is_given_up() {
            (self.whole_max, self.staying_max) = (whole, self.staying);
        }
    }

    /// Sets the target of the current phase.
    pub(crate) fn pursue(&mut self, drive: Option<&Drive>) {
        self.goal = match drive {
            Some(Drive::Users(users)) => Some(*users),
            Some(Drive::Iterations(iterations)) => {
                Some(Users { to: iterations.users, coming: Coming::AtOnce })
            }
            Some(Drive::Hold | Drive::Arrivals(_)) | None => None,
        };
    }

    /// How users start or leave in the current phase.
    pub(crate) fn coming(&self) -> Option<Coming> {
        self.goal.map(|goal| goal.coming)
    }

    /// Limits the users of all shards.
    pub(crate) fn whole_max(&self) -> u64 {
        self.whole_max
    }

    /// The target of the current phase for all shards.
    pub(crate) fn whole_wanted(&self) -> u64 {
        self.goal.map_or(self.whole_before, |goal| goal.to).min(self.whole_max)
    }

    /// The target of the current phase for this shard.
    fn wanted(&self) -> u64 {
        let wanted = self.goal.map(|goal| self.share.part(goal.to));
        wanted.unwrap_or(self.staying_before).min(self.staying_max)
    }

    /// Whether the current phase adds users.
    pub(crate) fn is_growing(&self) -> bool {
        self.whole_wanted() > self.whole_before
    }

    /// The number of users of all shards at this time of the current phase, by the changes that
    /// were due.
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

    /// The number of users of all shards at the end of the current phase: its target if the phase
    /// ends when it `is_done` or takes no time, otherwise the progress of its ramp.
    pub(crate) fn whole_after(&self, end: Time, is_done: bool) -> u64 {
        let all_at_once = || {
            self.coming() == Some(Coming::AtOnce)
                && !(self.clock.was_held_until(end) && self.is_growing())
        };
        if is_done || all_at_once() { self.whole_wanted() } else { self.whole_at(end) }
    }

    /// The end of a ramp without a time: when its last user has started or left. All shards compute
    /// it for all users, so that they agree.
    pub(crate) fn ramp_end(&self) -> Time {
        let Some(coming) = self.coming() else { return self.clock.start };
        let change = self.whole_wanted().abs_diff(self.whole_before);
        let length = coming::length(coming, change).unwrap_or(Duration::from_nanos(u64::MAX));
        let last = change.checked_sub(1).and_then(|last| coming::due(coming, last));
        match self.is_growing() {
            // Nothing is left that could be paused.
            true if last.is_some_and(|last| self.clock.comes_before_held(last)) => {
                self.clock.unheld(length)
            }
            true => self.clock.comes(length).unwrap_or(Time::NEVER),
            false => self.clock.start + length,
        }
    }

    /// Whether a ramp that `ends` then is complete before growth is paused.
    pub(crate) fn has_grown_before(&self, held: Held, ends: Time) -> bool {
        self.is_growing() && self.whole_at(held.from.min(ends)) == self.whole_wanted()
    }

    pub(crate) fn growth_is_given_up(&self) -> bool {
        self.staying_max != u64::MAX
    }

    /// Users that would start after `at` never do.
    pub(crate) fn give_up_growth(&mut self, at: Time) {
        (self.whole_max, self.staying_max) = match self.is_growing() {
            true => {
                let whole = self.whole_at(at);
                (whole, self.staying.max(self.share.part(whole)))
            }
            false => (self.whole_before, self.staying_before),
        };
    }

    /// When the next user starts or leaves, in a phase that ends or is changed at these times.
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
        // A user due at the end of a phase belongs to the next one, except that users that start at
        // once do so even in a phase that takes no time.
        let at_once = coming == Coming::AtOnce && due == self.clock.start;
        let is_in = (due < end || at_once) && due < amended;
        is_in.then(|| due_of(self.first_of_group(coming)).map_or(due, |first| first.min(due)))
    }

    /// Performs the next change; returns whether a user starts.
    pub(crate) fn change(&mut self) -> bool {
        let comes = self.wanted() >= self.staying_before;
        self.handed += 1;
        self.staying = if comes { self.staying + 1 } else { self.staying - 1 };
        comes
    }

    /// The global position of this shard's change `local`.
    fn rank_of_change(&self, local: u64) -> u64 {
        let whole = self.whole_before;
        if self.wanted() >= self.staying_before {
            self.share.global(self.staying_before + local).saturating_sub(whole)
        } else {
            whole.saturating_sub(1 + self.share.global(self.staying_before - 1 - local))
        }
    }

    /// The first change of the group that contains the next one. If many shards must start users
    /// fast, each starts several at a time, in turns, so that a thread wakes for more than one.
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
