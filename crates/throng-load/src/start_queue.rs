//! What the running phase starts: users who arrive, or iterations. Which of the starts of all
//! shards are ours, when the next is due, and what became of those that were: each is taken,
//! dropped, unmet or withdrawn.

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::{Dealt, Time};
use throng_program::Drive;

use crate::starts::Starts;

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

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub struct StartQueue {
    /// What starts at a rate, from this instant on.
    starts: Option<Starts>,
    start: Time,
    /// Our part.
    dealt: Option<Dealt>,
    /// The phase has so many iterations.
    total: Option<u64>,
    /// Those that are due and not taken: wait for a user; are dropped.
    waits: bool,
    drops: bool,
    /// Of ours, how many were taken.
    taken: u64,
    /// Iterations that were due before the phase was amended and still wait for a user.
    behind: VecDeque<Behind>,
    /// Starts that never happened though their time came, of phases that are over, and those that
    /// were dropped, until they are asked for.
    pub unmet: u64,
    pub dropped: u64,
    /// Starts at a rate that were begun, dropped or given up; and how many were told to be wanted.
    settled: u64,
    told: u64,
    withdrawn: u64,
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

/// Where a phase that is amended has come to.
pub(crate) struct Cut {
    /// Starts of all shards that were due.
    pub(crate) due: u64,
    /// How much is left until the next one.
    ahead: f64,
    /// Of ours, how many were taken that are not due.
    early: u64,
}

impl StartQueue {
    /// The phase drives this now.
    pub(crate) fn drive(&mut self, drive: Option<&Drive>, dealt: Option<Dealt>) {
        self.dealt = dealt;
        (self.total, self.waits, self.drops) = match drive {
            Some(Drive::Iterations(it)) => (it.total, !it.drops, it.drops),
            _ => (None, false, false),
        };
    }

    /// From `start` on these.
    pub(crate) fn stretch(&mut self, start: Time, starts: Option<Starts>) {
        (self.start, self.starts, self.taken) = (start, starts, 0);
    }

    /// Another phase begins.
    pub(crate) fn forget_behind(&mut self) {
        self.behind.clear();
    }

    /// How long after the start the next one is due; None when there is none to come.
    pub(crate) fn due_after(&self) -> Option<Duration> {
        let global = self.dealt?.global(self.taken);
        if self.total.is_some_and(|total| global >= total) {
            return None;
        }
        self.starts.as_ref().map_or(Some(Duration::ZERO), |starts| starts.due(global))
    }

    /// When the next iteration is due, of a phase that ends or is amended at `end`.
    pub(crate) fn next(&self, end: Time) -> Option<Time> {
        if let Some(behind) = self.behind.front() {
            return Some(behind.start + behind.starts.due(behind.dealt.global(behind.begun))?);
        }
        let due = self.start + self.due_after()?;
        (due < end || self.starts.is_none()).then_some(due)
    }

    /// Takes the next one, to begin it or to drop it.
    pub fn take(&mut self) {
        self.settled += u64::from(self.starts.is_some());
        let Some(behind) = self.behind.front_mut() else {
            self.taken += 1;
            return;
        };
        behind.begun += 1;
        self.behind.pop_front_if(|behind| behind.begun >= behind.count);
    }

    /// What was due before then and was not taken.
    pub(crate) fn waiting(&self, until: Time) -> u64 {
        let behind = self.behind.iter().map(|behind| behind.count - behind.begun);
        behind.sum::<u64>() + self.unmet_until(until)
    }

    fn unmet_until(&self, until: Time) -> u64 {
        let (Some(dealt), Some(starts)) = (self.dealt, &self.starts) else { return 0 };
        let whole = starts.count_before(until.since(self.start), dealt.global(self.taken));
        dealt.part(self.total.map_or(whole, |total| whole.min(total))).saturating_sub(self.taken)
    }

    /// What fell due since the last call, until `now`, and what of it still waits that was due
    /// before `late`.
    pub(crate) fn asked(&mut self, now: Time, late: Time) -> Asked {
        let backlog = self.waiting(late);
        let wanted = (self.settled + self.waiting(now)).saturating_sub(self.told);
        self.told += wanted;
        Asked { wanted, backlog, withdrawn: std::mem::take(&mut self.withdrawn) }
    }

    /// What was due until then and will not be done. How many there were.
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

    /// As [`StartQueue::give_up`]; what was due later, until `now`, is withdrawn.
    pub(crate) fn withdraw(&mut self, until: Time, now: Time) {
        let waiting = self.waiting(now);
        let withdrawn = waiting.saturating_sub(self.give_up(until));
        self.withdrawn += withdrawn;
        self.settled += withdrawn;
    }

    /// Those that are due at an instant at which the phase is amended still wait for a user, or are
    /// given up; None where nothing starts at a rate.
    pub(crate) fn cut(&mut self, at: Time) -> Option<Cut> {
        let passed = at.since(self.start);
        let starts = self.starts.as_ref()?;
        let global = |local| self.dealt.map_or(0, |dealt| dealt.global(local));
        // Of how many all shards have to agree where there is a number of them: none of those that
        // are ours and were taken is due later, but one of the others may be.
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
        // Of a shard that heard of it too late.
        Some(Cut { due, ahead, early: taken.saturating_sub(count) })
    }

    /// The phase goes on in step with what it was before it was amended.
    pub(crate) fn go_on(&mut self, cut: &Cut) {
        self.starts = self.starts.take().map(|starts| starts.ahead(cut.ahead));
        self.taken = cut.early;
    }

    /// When one more iteration than the phase has would be due.
    pub(crate) fn one_more(&self) -> Time {
        let (Some(total), Some(starts)) = (self.total, &self.starts) else { return self.start };
        self.start + starts.due(total).unwrap_or_default()
    }
}
