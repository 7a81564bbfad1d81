//! Which instruction comes next: iterations, leaving, beginning anew.

use std::time::Duration;

use throng_base::{Time, UserId};
use throng_program::Retry;

use super::task::{Active, Begun, Doing, GONE};
use super::transaction::End;
use super::{State, Waits};
use crate::prepared::LoadPlan;
use crate::recorder::Iteration;
use crate::trace::What;

/// How a user holds back after connections that did not open: from this, doubled each time, to
/// that. It keeps a closed target from being asked 100,000 times a second.
const BACK_OFF_MIN: Duration = Duration::from_millis(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);

/// The session of a new user of a load.
pub(super) fn choose(load: &LoadPlan, id: UserId) -> u16 {
    load.session_of(id.0 - load.first_user) as u16
}

/// How long it took is reckoned when it is over.
pub(super) const FINISHED: Iteration = Iteration::Finished(None);

/// What statements of SQL have left open ends with the iteration: others wait for its locks.
fn roll_back(user: &mut State) {
    if user.waits.change(Waits::IN_TRANSACTION, false) {
        user.lines.roll_back();
    }
}

impl Active<'_> {
    /// Goes on with the next instruction, which is due when this one ended.
    pub(super) fn next_step(&mut self) {
        self.go_to(self.task.pc + 1);
    }

    /// The same behind one that takes no time: in an iteration that started late, what follows is
    /// as late.
    pub(super) fn pass_on(&mut self) {
        let (due, is_scheduled) = (self.task.due, self.task.is_scheduled);
        self.next_step();
        if is_scheduled && due < self.user.now {
            (self.task.due, self.task.is_scheduled) = (due, true);
        }
    }

    /// Goes on with this instruction, due now.
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

    /// An iteration begins. At a rate it counts from when it was due, even if it begins after the
    /// end of the load, where no schedule has a pace; else when it begins.
    pub(super) fn start_iteration(&mut self, due: Time) {
        let shard = self.shard;
        if self.user.once || shard.paces_iterations() || shard.stopping.get() {
            // Since then the user has been free.
            let able = self.task.due;
            self.task.due = shard.begins_late(due, able, self.user.now);
            self.task.is_scheduled = true;
        }
        self.iteration_begins();
    }

    fn iteration_begins(&mut self) {
        let since = if self.task.is_scheduled { self.task.due } else { self.user.now };
        self.shard.iteration_is_done(self.user.session, self.user.slot, since);
        roll_back(self.user);
        self.user.running = true;
        self.user.iterations += 1;
        self.task.doing = Doing::Step;
        if let Some(memory) = &mut self.user.memory {
            memory.forget_rows(&self.shard.prepared.program);
        }
        self.user.tell(|| What::IterationBegins);
    }

    /// The running iteration is over, if there is one.
    pub(super) fn iteration_over(&mut self, how: Iteration) {
        if std::mem::take(&mut self.user.running) {
            roll_back(self.user);
            let finished = how == FINISHED;
            let how = match finished {
                true => {
                    let took = self.shard.iteration_took(self.user.slot, self.user.now);
                    Iteration::Finished(took)
                }
                false => how,
            };
            self.shard.iteration_ends(self.user.session, how);
            if let (Some(keep), Some(memory)) = (&self.shard.keep, &self.user.memory) {
                keep.set(memory.values());
            }
            self.user.tell(|| What::IterationEnds { finished });
        }
    }

    /// Goes on behind the running iteration, whether it ran through or not.
    pub(super) fn end_iteration(&mut self, how: Iteration) {
        self.task.leave_transactions(End::Whole, self.user);
        self.iteration_over(how);
        match self.user.once {
            true => self.leave_done(),
            false => self.go_to(self.of_session().begin),
        }
    }

    /// Leaves between two iterations; what came is done with before.
    pub(super) fn leave_done(&mut self) {
        if self.user.holds_back() {
            self.shard.seats.borrow_mut().leave(self.user.slot);
            return self.go_to(self.of_session().begin);
        }
        self.user.leaving = true;
        self.go_to(self.of_session().end);
    }

    /// The verb `next`.
    pub(super) fn next_iteration(&mut self) {
        match self.user.running {
            _ if self.task.is_body() => {
                self.branch_leaves();
                self.return_from_body();
            }
            true => self.end_iteration(FINISHED),
            false if self.user.leaving => self.go_to(GONE),
            false => self.go_to(self.of_session().begin),
        }
    }

    /// The verb `leave`.
    pub(super) fn leave_on_purpose(&mut self) {
        if self.task.is_body() {
            return self.leave_from_body();
        }
        self.task.leave_transactions(End::Whole, self.user);
        match self.user.leaving {
            true => self.go_to(GONE),
            false => {
                self.iteration_over(FINISHED);
                self.leave_done();
            }
        }
    }

    /// Begins what a session does at its end, from whatever it was doing.
    pub(super) fn take_leave(&mut self, how: Iteration) {
        self.interrupt();
        self.user.leaving = true;
        self.task.leave_transactions(End::CutOff, self.user);
        self.iteration_over(how);
        self.go_to(self.of_session().end);
    }

    /// A step that cannot be done without a connection has lost it, or never got one: the session
    /// begins anew, after a pause that grows with every refusal in a row.
    pub(super) fn restart(&mut self, refused: bool) {
        self.task.leave_transactions(End::CutOff, self.user);
        self.iteration_over(Iteration::Failed);
        if self.user.once || self.user.leaving {
            self.user.leaving = true;
            self.go_to(GONE);
            return;
        }
        if self.shard.is_traced() && !self.user.begins_again() {
            self.user.leaving = true;
            self.go_to(GONE);
            return;
        }
        self.go_to(0);
        if let Some(retry) = self.user.reconnects() {
            return self.reconnect(retry);
        }
        if let Some(time) = self.user.left_alone() {
            return self.hold(time);
        }
        // The first loss after an answer is no reason to wait, a second one in a row is.
        if refused || self.user.refusals > 0 {
            return self.hold_back();
        }
        self.user.refusals = 1;
    }

    /// Waits before the instruction at the program counter, longer with every refusal in a row.
    pub(super) fn hold_back(&mut self) {
        let doubled = BACK_OFF_MIN.saturating_mul(1 << self.user.refusals.min(16));
        let most = doubled.min(BACK_OFF_MAX).as_secs_f64();
        self.user.refusals = self.user.refusals.saturating_add(1);
        // Half of it is chance, so that refused users do not come back together.
        let time = self.user.random.uniform(most / 2.0, most);
        self.hold(Duration::from_secs_f64(time));
    }

    /// Waits before the instruction at the program counter, which is due afterwards.
    pub(super) fn hold(&mut self, time: Duration) {
        self.task.due = self.user.now;
        self.wait_for(Doing::Holding, self.user.now + time);
    }

    /// Waits before the session begins anew, longer with every loss in a row and no less than the
    /// target has asked for; leaves when no attempt is left.
    pub(super) fn reconnect(&mut self, retry: Retry) {
        let user = &mut *self.user;
        if retry.times.is_some_and(|times| u32::from(user.losses) >= times) {
            user.leaving = true;
            return self.go_to(GONE);
        }
        let most = retry.low.saturating_mul(1 << user.losses.min(30)).min(retry.high);
        user.losses = user.losses.saturating_add(1);
        let most = most.as_secs_f64();
        // Half of it is chance, so that users who were lost together do not come back together.
        let wait = Duration::from_secs_f64(user.random.uniform(most / 2.0, most));
        let least = user.left_alone().unwrap_or_default();
        self.hold(wait.max(least));
    }

    /// What went on besides a `stay` ends with it.
    pub(super) fn stay_over(&mut self) {
        for line in 0..self.user.lines.count() {
            self.user.stay_beats_over(line);
        }
        self.user.end_every_of_stay();
    }
}

impl State {
    /// How long the target wants to be left alone by those who lost its streams of events.
    pub(super) fn left_alone(&self) -> Option<Duration> {
        self.memory.as_ref()?.left_alone()
    }

    /// What a user does whose connection was lost, as the first says that it opens.
    pub(super) fn reconnects(&self) -> Option<Retry> {
        let links = &self.shard.prepared.sessions[usize::from(self.session)].links;
        links.iter().find_map(|link| link.reconnect)
    }
}
