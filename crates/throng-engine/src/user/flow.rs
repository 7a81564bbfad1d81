//! Which instruction is next: iterations, leaving, restarts.

use std::time::Duration;

use throng_base::{Random, Time, UserId};
use throng_program::Retry;

use super::task::{Active, Begun, Doing, GONE};
use super::transaction::End;
use super::{State, Waits};
use crate::prepared::LoadPlan;
use crate::recorder::Iteration;
use crate::trace::What;

/// Backoff after connections that did not open: doubles from the minimum to the maximum. Without
/// it, a closed target would be asked 100,000 times a second.
const BACK_OFF_MIN: Duration = Duration::from_millis(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);

/// Selects the session of a new user of a load.
pub(super) fn choose(load: &LoadPlan, id: UserId) -> u16 {
    load.session_of(id.0 - load.first_user) as u16
}

/// Its duration is computed when it is over.
pub(super) const FINISHED: Iteration = Iteration::Finished(None);

/// Transactions that are open on databases end with the iteration: others wait for their locks.
fn roll_back(user: &mut State) {
    if user.waits.change(Waits::IN_TRANSACTION, false) {
        user.lines.roll_back();
    }
}

/// A wait before another try, longer after each of `tries`. Half of it is random, so that users
/// that failed together do not return together.
pub(super) fn back_off(random: &mut Random, low: Duration, high: Duration, tries: u16) -> Duration {
    let most = low.saturating_mul(1 << tries.min(30)).min(high).as_secs_f64();
    Duration::from_secs_f64(random.uniform(most / 2.0, most))
}

impl Active<'_> {
    /// Continues with the next instruction, which is due when this one ended.
    pub(super) fn next_step(&mut self) {
        self.go_to(self.task.pc + 1);
    }

    /// Continues after an instruction that takes no time: in an iteration that started late, the
    /// next one is just as late.
    pub(super) fn pass_on(&mut self) {
        let (due, is_scheduled) = (self.task.due, self.task.is_scheduled);
        self.next_step();
        if is_scheduled && due < self.user.now {
            (self.task.due, self.task.is_scheduled) = (due, true);
        }
    }

    /// Continues with this instruction, due now.
    pub(super) fn go_to(&mut self, pc: u32) {
        debug_assert!(self.task.begun == Begun::No, "{:?} has no end", self.instruction().step());
        if !self.task.is_body() {
            self.stay_over();
        }
        self.task.pc = pc;
        (self.task.due, self.task.is_scheduled) = (self.user.now, false);
        self.task.deadline = Time::NEVER;
        self.task.doing = Doing::Step;
        self.task.retries = 0;
    }

    /// Waits before the current instruction, longer with every consecutive refusal.
    pub(super) fn hold_back(&mut self) {
        let (random, tries) = (&mut self.user.random, self.user.refusals.into());
        let time = back_off(random, BACK_OFF_MIN, BACK_OFF_MAX, tries);
        self.user.refusals = self.user.refusals.saturating_add(1);
        self.hold(time);
    }

    /// Waits before the current instruction, which is due afterwards.
    pub(super) fn hold(&mut self, time: Duration) {
        self.task.due = self.user.now;
        self.wait_for(Doing::Holding, self.user.now + time);
    }

    /// Ends the background tasks of a `stay`.
    pub(super) fn stay_over(&mut self) {
        for line in 0..self.user.lines.count() {
            self.user.heartbeats(line).stay_over();
        }
        self.user.end_every_of_stay();
    }
}

/// The running session: only it has iterations, leaves, and restarts.
pub(super) struct Session<'v, 'a> {
    pub(super) active: &'v mut Active<'a>,
}

impl<'v, 'a> Session<'v, 'a> {
    pub(super) fn new(active: &'v mut Active<'a>) -> Self {
        Session { active }
    }

    /// Starts an iteration. At a rate, it is measured from when it was due, even if it starts after
    /// the end of the load, when no schedule sets the pace; otherwise from its start.
    pub(super) fn start_iteration(&mut self, due: Time) {
        let shard = self.active.shard;
        if self.active.user.once || shard.paces_iterations() || shard.stopping.get() {
            // The user has been free since then.
            let able = self.active.task.due;
            self.active.task.due = shard.begins_late(due, able, self.active.user.now);
            self.active.task.is_scheduled = true;
        }
        self.iteration_begins();
    }

    fn iteration_begins(&mut self) {
        let Active { shard, user, task, .. } = &mut *self.active;
        let since = if task.is_scheduled { task.due } else { user.now };
        shard.iteration_is_done(user.session, user.slot, since);
        roll_back(user);
        user.running = true;
        user.iterations += 1;
        task.doing = Doing::Step;
        if let Some(memory) = &mut user.memory {
            memory.forget_rows(&shard.prepared.program);
        }
        user.tell(|| What::IterationBegins);
    }

    /// Ends the running iteration, if there is one.
    pub(super) fn iteration_over(&mut self, how: Iteration) {
        let Active { shard, user, .. } = &mut *self.active;
        if std::mem::take(&mut user.running) {
            roll_back(user);
            let finished = how == FINISHED;
            let how = match finished {
                true => Iteration::Finished(shard.iteration_took(user.slot, user.now)),
                false => how,
            };
            shard.iteration_ends(user.session, how);
            if let (Some(keep), Some(memory)) = (&shard.keep, &user.memory) {
                keep.set(memory.values());
            }
            user.tell(|| What::IterationEnds { finished });
        }
    }

    /// Continues after the running iteration, complete or not.
    pub(super) fn end_iteration(&mut self, how: Iteration) {
        self.active.task.leave_transactions(End::Whole, self.active.user);
        self.iteration_over(how);
        match self.active.user.once {
            true => self.leave_done(),
            false => self.active.go_to(self.active.of_session().begin),
        }
    }

    /// Leaves between two iterations, after all messages are handled.
    pub(super) fn leave_done(&mut self) {
        if self.active.user.holds_back() {
            self.active.shard.slots.borrow_mut().leave(self.active.user.slot);
            return self.active.go_to(self.active.of_session().begin);
        }
        self.active.user.leaving = true;
        self.active.go_to(self.active.of_session().end);
    }

    /// Starts what a session does at its end, whatever it was doing.
    pub(super) fn take_leave(&mut self, how: Iteration) {
        self.active.interrupt();
        self.active.user.leaving = true;
        self.active.task.leave_transactions(End::CutOff, self.active.user);
        self.iteration_over(how);
        self.active.go_to(self.active.of_session().end);
    }

    /// A step has lost the connection that it needs, or never got one: restarts the session, after
    /// a pause that grows with every consecutive refusal.
    pub(super) fn restart(&mut self, refused: bool) {
        self.active.task.leave_transactions(End::CutOff, self.active.user);
        self.iteration_over(Iteration::Failed);
        let Active { shard, user, .. } = &mut *self.active;
        if user.once || user.leaving || shard.is_traced() && !user.begins_again() {
            user.leaving = true;
            return self.active.go_to(GONE);
        }
        self.active.go_to(0);
        if let Some(retry) = self.reconnects() {
            return self.reconnect(retry);
        }
        if let Some(time) = self.left_alone() {
            return self.active.hold(time);
        }
        // The first loss after a response is no reason to wait; a second consecutive one is.
        if refused || self.active.user.refusals > 0 {
            return self.active.hold_back();
        }
        self.active.user.refusals = 1;
    }

    /// Waits before the session restarts: longer with every consecutive loss, and at least as long
    /// as the target has asked for. Leaves when no attempt is left.
    pub(super) fn reconnect(&mut self, retry: Retry) {
        let user = &mut *self.active.user;
        if retry.times.is_some_and(|times| u32::from(user.losses) >= times) {
            user.leaving = true;
            return self.active.go_to(GONE);
        }
        let wait = back_off(&mut user.random, retry.low, retry.high, user.losses);
        user.losses = user.losses.saturating_add(1);
        let least = self.left_alone().unwrap_or_default();
        self.active.hold(wait.max(least));
    }

    /// The reconnection time that the target has set for its event streams.
    fn left_alone(&self) -> Option<Duration> {
        self.active.user.memory.as_ref()?.left_alone()
    }

    /// What a user does when its connection is lost, according to the first connection that its
    /// session opens.
    pub(super) fn reconnects(&self) -> Option<Retry> {
        let Active { shard, user, .. } = &*self.active;
        let links = &shard.prepared.sessions[usize::from(user.session)].links;
        links.iter().find_map(|link| link.reconnect)
    }
}
