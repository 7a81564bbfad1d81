//! The starts of the current phase: arrivals or iterations. Determines which starts of all shards
//! belong to this shard, when the next is due, and what happened to each: taken, dropped, unmet or
//! withdrawn.

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::{Dealt, Time};
use throng_program::Drive;

use crate::starts::Starts;

/// The starts that a load scheduled at a rate in some time: arrivals or iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Became due. Each begins, or is dropped, unmet or withdrawn.
    pub wanted: u64,
    /// Were due before and have not begun.
    pub backlog: u64,
    /// Had only just become due when the run was stopped.
    pub withdrawn: u64,
}

/// The starts of one shard.
#[derive(Clone, Debug, Default)]
pub struct StartQueue {
    /// The starts at a rate, from a time on.
    starts: Option<Starts>,
    start: Time,
    /// This shard's part.
    dealt: Option<Dealt>,
    /// Total number of iterations of the phase.
    total: Option<u64>,
    /// Whether due starts that are not taken wait for a user, and whether they are dropped.
    waits: bool,
    drops: bool,
    /// Starts of this shard that were taken.
    taken: u64,
    /// Iterations that were due before a change of the phase and still wait for a user.
    behind: VecDeque<Behind>,
    /// Starts of past phases that never happened, and starts that were dropped, until they are
    /// queried.
    pub unmet: u64,
    pub dropped: u64,
    /// Scheduled starts that began, were dropped or given up; and how many were reported as wanted.
    settled: u64,
    told: u64,
    withdrawn: u64,
}

/// Iterations that were due before a change of their phase.
#[derive(Clone, Debug)]
struct Behind {
    starts: Starts,
    start: Time,
    dealt: Dealt,
    /// Iterations of this shard, and those of them that began.
    count: u64,
    begun: u64,
}

/// The progress of a phase at a change.
pub(crate) struct Cut {
    /// Starts of all shards that were due.
    pub(crate) due: u64,
    /// The fraction left until the next start.
    ahead: f64,
    /// Starts of this shard that were taken before they were due.
    early: u64,
}

impl StartQueue {
    /// Sets the drive of the current phase.
    pub(crate) fn drive(&mut self, drive: Option<&Drive>, dealt: Option<Dealt>) {
        self.dealt = dealt;
        (self.total, self.waits, self.drops) = match drive {
            Some(Drive::Iterations(it)) => (it.total, !it.drops, it.drops),
            _ => (None, false, false),
        };
    }

    /// Sets the starts from `start` on.
    pub(crate) fn stretch(&mut self, start: Time, starts: Option<Starts>) {
        (self.start, self.starts, self.taken) = (start, starts, 0);
    }

    /// A new phase starts.
    pub(crate) fn forget_behind(&mut self) {
        self.behind.clear();
    }

    /// The time from the start to the next due one; `None` if there are no more.
    pub(crate) fn due_after(&self) -> Option<Duration> {
        let global = self.dealt?.global(self.taken);
        if self.total.is_some_and(|total| global >= total) {
            return None;
        }
        self.starts.as_ref().map_or(Some(Duration::ZERO), |starts| starts.due(global))
    }

    /// When the next iteration is due, in a phase that ends or changes at `end`.
    pub(crate) fn next(&self, end: Time) -> Option<Time> {
        if let Some(behind) = self.behind.front() {
            return Some(behind.start + behind.starts.due(behind.dealt.global(behind.begun))?);
        }
        let due = self.start + self.due_after()?;
        (due < end || self.starts.is_none()).then_some(due)
    }

    /// Takes the next start, to begin or drop it.
    pub fn take(&mut self) {
        self.settled += u64::from(self.starts.is_some());
        let Some(behind) = self.behind.front_mut() else {
            self.taken += 1;
            return;
        };
        behind.begun += 1;
        self.behind.pop_front_if(|behind| behind.begun >= behind.count);
    }

    /// Starts that were due before then and were not taken.
    pub(crate) fn waiting(&self, until: Time) -> u64 {
        let behind = self.behind.iter().map(|behind| behind.count - behind.begun);
        behind.sum::<u64>() + self.unmet_until(until)
    }

    fn unmet_until(&self, until: Time) -> u64 {
        let (Some(dealt), Some(starts)) = (self.dealt, &self.starts) else { return 0 };
        let whole = starts.count_before(until.since(self.start), dealt.global(self.taken));
        dealt.part(self.total.map_or(whole, |total| whole.min(total))).saturating_sub(self.taken)
    }

    /// The starts that became due since the last call, until `now`, and those still waiting that
    /// were due before `late`.
    pub(crate) fn asked(&mut self, now: Time, late: Time) -> Asked {
        let backlog = self.waiting(late);
        let wanted = (self.settled + self.waiting(now)).saturating_sub(self.told);
        self.told += wanted;
        Asked { wanted, backlog, withdrawn: std::mem::take(&mut self.withdrawn) }
    }

    /// Gives up the starts that were due until then, and returns their number.
    pub(crate) fn give_up(&mut self, until: Time) -> u64 {
        let left = self.waiting(until);
        self.behind.clear();
        self.settled += left;
        match self.drops {
            true => self.dropped += left,
            false => self.unmet += left,
        }
        left
    }

    /// Like [`StartQueue::give_up`], but starts due later, until `now`, are withdrawn.
    pub(crate) fn withdraw(&mut self, until: Time, now: Time) {
        let waiting = self.waiting(now);
        let withdrawn = waiting.saturating_sub(self.give_up(until));
        self.withdrawn += withdrawn;
        self.settled += withdrawn;
    }

    /// At a change of the phase, due starts wait for a user or are given up; `None` if nothing
    /// starts at a rate.
    pub(crate) fn cut(&mut self, at: Time) -> Option<Cut> {
        let passed = at.since(self.start);
        let starts = self.starts.as_ref()?;
        let global = |local| self.dealt.map_or(0, |dealt| dealt.global(local));
        // With a total number, all shards must agree on how many were due: starts that this shard
        // took are not due later, but those of other shards may be.
        let known = match (self.total.is_some(), self.taken) {
            (true, 0) => 0,
            (true, taken) => global(taken - 1) + 1,
            (false, taken) => global(taken),
        };
        let due = starts.count_before(passed, known);
        let ahead = starts.ahead_after(passed, due);
        let due = self.total.map_or(due, |total| due.min(total));
        let count = self.dealt.map_or(0, |dealt| dealt.part(due));
        let (taken, start) = (self.taken, self.start);
        match self.dealt.filter(|_| self.waits) {
            None => _ = self.give_up(at),
            Some(_) if taken >= count => {}
            Some(dealt) => self.behind.extend(self.starts.take().map(|starts| Behind {
                starts,
                start,
                dealt,
                count,
                begun: taken,
            })),
        }
        // This shard learned of the change too late.
        Some(Cut { due, ahead, early: taken.saturating_sub(count) })
    }

    /// The changed phase continues without a gap.
    pub(crate) fn go_on(&mut self, cut: &Cut) {
        self.starts = self.starts.take().map(|starts| starts.ahead(cut.ahead));
        self.taken = cut.early;
    }

    /// When the start after the last iteration of the phase would be due.
    pub(crate) fn one_more(&self) -> Time {
        let (Some(total), Some(starts)) = (self.total, &self.starts) else { return self.start };
        self.start + starts.due(total).unwrap_or_default()
    }
}
