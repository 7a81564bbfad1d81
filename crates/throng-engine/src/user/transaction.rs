//! Transactions: steps that are timed together, one within another as the scenario has it.

use std::time::Duration;

use throng_base::StepId;
use throng_metrics::Cause;

use super::task::{Active, Open, Transactions};
use crate::recorder::Attempt;

/// With the usual room of a list for four.
pub(super) const SIZES: [u64; 2] = [size_of::<Transactions>() as u64, 4 * size_of::<Open>() as u64];

/// How a transaction ends in which nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Where the scenario has its end, or leaves it on purpose.
    Whole,
    /// The user was cut off in the middle: it is neither ok nor failed.
    CutOff,
}

impl Active<'_> {
    /// Whether the user is in a transaction that is finished before it leaves.
    pub(super) fn in_transaction(&self) -> bool {
        let open = self.task.transactions.as_ref().is_some_and(|one| !one.open.is_empty());
        open && self.shard.finishes_transactions()
    }

    /// The time counts from when its first step is due.
    pub(super) fn begin_transaction(&mut self, step: StepId) {
        let begin = self.task.due;
        let transactions = self.task.transactions.get_or_insert_default();
        let paused = transactions.paused;
        transactions.open.push(Open { step, begin, paused, failed: None });
        self.shard.recorder.borrow_mut().begun(step);
        self.task.pc += 1;
    }

    pub(super) fn end_transaction(&mut self) {
        self.task.pc += 1;
        let Some(transactions) = &mut self.task.transactions else { return };
        let Some(open) = transactions.open.pop() else { return };
        let whole = self.user.now - open.begin;
        let paused = transactions.paused.saturating_sub(open.paused);
        let latency = Some(whole.saturating_sub(paused));
        let attempt = Attempt { latency, ..Attempt::default() };
        self.shard.recorder.borrow_mut().with_pauses(open.step, whole);
        self.transaction_ended(&open, &attempt);
    }

    /// All transactions the user is in end, as it leaves what is between their begin and end.
    /// What did not run through has no time.
    pub(super) fn leave_transactions(&mut self, end: End) {
        let Some(transactions) = &mut self.task.transactions else { return };
        for open in std::mem::take(&mut transactions.open).iter().rev() {
            match open.failed.is_some() || end == End::Whole {
                true => self.transaction_ended(open, &Attempt::default()),
                false => self.shard.recorder.borrow_mut().interrupted(open.step),
            }
        }
    }

    fn transaction_ended(&mut self, open: &Open, attempt: &Attempt) {
        let shard = self.shard;
        let Some((step, cause)) = open.failed else {
            shard.recorder.borrow_mut().ok(open.step, attempt);
            if shard.is_traced() {
                self.user.trace_ended(open.step, attempt, None);
            }
            return;
        };
        let detail = || say!("in step `{}`", shard.prepared.program.step(step).name);
        shard.recorder.borrow_mut().failed(open.step, attempt, cause, self.user.now, detail);
        if shard.is_traced() {
            self.user.trace_ended(open.step, attempt, Some((cause, &detail())));
        }
    }

    /// A step failed and is not tried again.
    pub(super) fn transactions_fail(&mut self, step: StepId, cause: Cause) {
        let Some(transactions) = &mut self.task.transactions else { return };
        for open in &mut transactions.open {
            open.failed.get_or_insert((step, cause));
        }
    }

    /// The user has paused since its step was due.
    pub(super) fn paused(&mut self) {
        self.paused_for(self.user.now - self.task.due);
    }

    /// The user has paused for so long.
    pub(super) fn paused_for(&mut self, time: Duration) {
        if self.task.is_body() {
            return;
        }
        self.shard.recorder.borrow_mut().population.paused_us += time.as_micros() as u64;
        if let Some(transactions) = &mut self.task.transactions {
            transactions.paused += time;
        }
        if self.shard.is_traced() {
            self.user.trace_paused(time);
        }
    }
}
