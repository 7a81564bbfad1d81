//! Transactions: steps that are timed together, nested as the scenario says.

use std::time::Duration;

use throng_base::{StepId, Time};
use throng_metrics::Cause;

use super::State;
use super::task::{Active, Open, Task, Transactions};
use crate::recorder::Attempt;
use crate::shard::Lane;
use crate::trace::What;

/// With the initial capacity of a list: four.
pub(super) const SIZES: [u64; 2] = [size_of::<Transactions>() as u64, 4 * size_of::<Open>() as u64];

/// How a transaction without a failure ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At its end in the scenario, or left on purpose.
    Whole,
    /// The user was cut off: the transaction neither succeeded nor failed.
    CutOff,
}

impl Transactions {
    /// Timed from when its first step is due.
    pub(super) fn begin(&mut self, step: StepId, begin: Time, shard: &Lane) {
        self.open.push(Open { step, begin, paused: self.paused, failed: None });
        shard.recorder.borrow_mut().begun(step);
    }

    /// Ends the innermost transaction.
    pub(super) fn end(&mut self, user: &State) {
        let Some(open) = self.open.pop() else { return };
        let whole = user.now - open.begin;
        let paused = self.paused.saturating_sub(open.paused);
        let latency = Some(whole.saturating_sub(paused));
        let attempt = Attempt { latency, ..Attempt::default() };
        user.shard.recorder.borrow_mut().with_pauses(open.step, whole);
        open.ended(&attempt, user);
    }
}

impl Open {
    fn ended(&self, attempt: &Attempt, user: &State) {
        let shard = &user.shard;
        let Some((step, cause)) = self.failed else {
            shard.recorder.borrow_mut().ok(self.step, attempt);
            return user.tell_end(self.step, attempt, None);
        };
        let detail = || say!("in step `{}`", shard.prepared.program.step(step).name);
        shard.recorder.borrow_mut().failed(self.step, attempt, cause, user.now, detail);
        if shard.is_traced() {
            user.tell_end(self.step, attempt, Some((cause, &detail())));
        }
    }
}

impl Task {
    /// Whether the user is in a transaction that must finish before it leaves.
    pub(super) fn in_transaction(&self, shard: &Lane) -> bool {
        let open = self.transactions.as_ref().is_some_and(|one| !one.open.is_empty());
        open && shard.finishes_transactions()
    }

    /// Ends all transactions of the user as it leaves their steps. Incomplete ones have no
    /// duration.
    pub(super) fn leave_transactions(&mut self, end: End, user: &State) {
        let Some(transactions) = &mut self.transactions else { return };
        for open in std::mem::take(&mut transactions.open).iter().rev() {
            match open.failed.is_some() || end == End::Whole {
                true => open.ended(&Attempt::default(), user),
                false => user.shard.recorder.borrow_mut().interrupted(open.step),
            }
        }
    }

    /// A step failed for good.
    pub(super) fn transactions_fail(&mut self, step: StepId, cause: Cause) {
        let Some(transactions) = &mut self.transactions else { return };
        for open in &mut transactions.open {
            open.failed.get_or_insert((step, cause));
        }
    }
}

impl Active<'_> {
    /// The user has paused since its step was due.
    pub(super) fn paused(&mut self) {
        self.paused_for(self.user.now - self.task.due);
    }

    /// The user has paused for this time.
    pub(super) fn paused_for(&mut self, time: Duration) {
        if self.task.is_body() {
            return;
        }
        self.shard.recorder.borrow_mut().interval.population.paused_us += time.as_micros() as u64;
        if let Some(transactions) = &mut self.task.transactions {
            transactions.paused += time;
        }
        self.user.tell(|| What::Paused(time));
    }
}
