//! Which instruction comes next: iterations, leaving, beginning anew.

use std::task::Context;
use std::time::Duration;

use throng_base::{Random, Time, UserId};
use throng_metrics::Cause;
use throng_program::{Instruction, Parting, Session};

use super::outcome::Onward;
use super::transaction::End;
use super::{Doing, Turn, User};
use crate::prepared::{Plan, Prepared};
use crate::recorder::Attempt;

/// How a user holds back after connections that did not open: from this, doubled each time, to
/// that. It keeps a closed target from being asked 100,000 times a second.
const BACK_OFF_MIN: Duration = Duration::from_millis(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// So many refusals in a row is a target worth that breaks the protocol.
const BREAKS_REFUSALS: u8 = 6;

/// The session of a new user, one that is counted or drawn by weight, and its target, which all
/// users of the run get in turn: exactly by the weights, so that every source port is of use with
/// every target.
pub(super) fn choose(prepared: &Prepared, id: UserId, random: &mut Random) -> (u16, u16) {
    let session = match prepared.counted.iter().find(|(last, _)| id.0 <= *last) {
        Some((_, session)) => *session,
        // More users than are counted, and nothing else to do: they do what is last.
        None if prepared.session_weight == 0 => prepared.sessions.len() - 1,
        None => weighted(prepared.weights(), prepared.session_weight, random),
    };
    let plan = &prepared.sessions[session].links[0];
    let own = &plan.targets;
    let weights = own.iter().map(|target| prepared.targets[usize::from(*target)].target.weight);
    let turn = u128::from(id.0) * u128::from(plan.target_stride);
    let target = at_weight(weights, (turn % u128::from(plan.target_weight)) as u64);
    (session as u16, own.get(target).copied().unwrap_or_default())
}

/// The place of the one that is drawn.
pub(super) fn weighted(weights: impl Iterator<Item = u32>, sum: u64, random: &mut Random) -> usize {
    at_weight(weights, random.below(sum))
}

/// Whose part of the sum of the weights this place is in.
fn at_weight(weights: impl Iterator<Item = u32>, mut left: u64) -> usize {
    for (index, weight) in weights.enumerate() {
        if left < u64::from(weight) {
            return index;
        }
        left -= u64::from(weight);
    }
    0
}

/// Where a user is whose session is over, but whose connection is not.
pub(super) static BEHIND_THE_END: Instruction =
    Instruction::Disconnect { link: 0, how: Parting::Fin };
pub(super) static NO_PLAN: Plan = Plan::Nothing;
/// The program counter there: what stands behind the session are the bodies of its handlers.
pub(super) const GONE: u32 = u32::MAX;

/// The instruction at the program counter, borrowed from the program for as long as the shard
/// lives.
macro_rules! at_pc {
    ($user:ident, $shard:ident, $instruction:ident, $plan:ident) => {
        let $shard = std::rc::Rc::clone(&$user.shard);
        let session = usize::from($user.session);
        let pc = $user.pc as usize;
        let code = &$shard.prepared.program.sessions[session].code;
        let $instruction = code.get(pc).unwrap_or(&$crate::user::flow::BEHIND_THE_END);
        let plans = &$shard.prepared.plans[session];
        let $plan = plans.get(pc).unwrap_or(&$crate::user::flow::NO_PLAN);
    };
}
pub(super) use at_pc;

impl User {
    /// Lets the shard know how to wake this user; a task's waker stays the same.
    pub(super) fn introduce(&mut self, cx: &Context<'_>) {
        self.is_hasty = Some(false);
        // Many may have come together.
        self.now = self.shard.clock.now();
        self.shard.seats.borrow_mut().know(self.slot, cx.waker());
    }

    pub(super) fn session(&self) -> &Session {
        &self.shard.prepared.program.sessions[usize::from(self.session)]
    }

    /// Does the instruction at the program counter.
    pub(super) fn step(&mut self, cx: &mut Context<'_>) -> Turn {
        let (begin, end) = (self.session().begin, self.session().end);
        if !self.leaving {
            let may = !self.in_flight && !self.in_transaction();
            if may && self.shard.seats.borrow().must_leave(self.slot) {
                match self.besides.as_ref().is_some_and(|besides| besides.holds_back()) {
                    true => self.wait_for(Doing::Idle, Time::NEVER),
                    false => self.take_leave(),
                }
                return Turn::Again;
            }
            if may
                && let Some(how) = self.parting.take()
                && self.parts_now()
            {
                self.part(how, cx);
                return Turn::Again;
            }
            if self.pc == begin && !self.running {
                return self.ask_for_iteration();
            }
            if self.pc == end {
                self.end_iteration(true);
                return Turn::Again;
            }
        }
        if self.pc >= self.session().last {
            self.pc = GONE;
            return self.finish(cx);
        }
        if self.shard.is_watched() && !self.in_flight && !self.watched_step() {
            return Turn::Again;
        }
        self.instruct(cx);
        Turn::Again
    }

    pub(super) fn instruct(&mut self, cx: &mut Context<'_>) {
        at_pc!(self, shard, instruction, plan);
        match (instruction, plan) {
            (Instruction::Http(http), Plan::Http(plan)) => self.http(http, plan, cx),
            (Instruction::Connect(connect), _) => self.connect(connect),
            (Instruction::Disconnect { how, .. }, _) => {
                self.next_step();
                self.end_by(*how, cx);
            }
            (Instruction::Send(send), _) => self.send_only(send, cx),
            (Instruction::Expect(expect), _) => self.expect(expect, cx),
            (Instruction::Request(request), _) => self.request(request, cx),
            (Instruction::Stay(stay), _) => self.stay(stay, cx),
            (Instruction::Return, _) => self.return_from_body(),
            (Instruction::Slow { slow, .. }, _) => self.slow_down(*slow),
            // Every HTTP instruction has its plan: they are made together.
            (Instruction::Http(_), _) => self.next_step(),
            (other, _) => self.control(other),
        }
    }

    /// Goes on with the next instruction, which is due when this one ended.
    pub(super) fn next_step(&mut self) {
        self.go_to(self.pc + 1);
    }

    /// Goes on with this instruction, due now.
    pub(super) fn go_to(&mut self, pc: u32) {
        debug_assert!(self.begun.is_none(), "{:?} has no end", self.begun);
        if !self.in_body {
            self.stay_over();
        }
        self.pc = pc;
        (self.due, self.is_scheduled) = (self.now, false);
        self.deadline = Time::NEVER;
        self.doing = Doing::Step;
        self.retries = 0;
    }

    /// The time of thinking or staying is over.
    pub(super) fn pause_over(&mut self) {
        at_pc!(self, _shard, instruction, _plan);
        if let Instruction::Stay(stay) = instruction {
            self.step_ok(stay.step, &Attempt::default());
        }
        self.paused();
        self.next_step();
    }

    fn ask_for_iteration(&mut self) -> Turn {
        if self.once {
            self.shard.iteration_begins();
            self.begin_iteration_due(self.due);
            return Turn::Again;
        }
        match self.shard.next_iteration(self.slot, self.due, self.now) {
            Some(due) => self.begin_iteration(due),
            None => self.wait_for(Doing::Idle, Time::NEVER),
        }
        Turn::Again
    }

    /// An iteration begins. At a rate it counts from when it was due; else when it begins.
    pub(super) fn begin_iteration(&mut self, due: Time) {
        match self.shard.paces_iterations() {
            true => self.begin_iteration_due(due),
            false => self.iteration_begins(),
        }
    }

    fn begin_iteration_due(&mut self, due: Time) {
        // Since then the user has been free.
        let able = self.due;
        self.due = self.shard.begins_late(due, able, self.now);
        self.is_scheduled = true;
        self.iteration_begins();
    }

    fn iteration_begins(&mut self) {
        self.running = true;
        self.iterations += 1;
        self.doing = Doing::Step;
        if let Some(memory) = &mut self.memory {
            memory.forget_rows(&self.shard.prepared.program);
        }
        if self.shard.is_traced() {
            self.trace_iteration(None);
        }
    }

    /// The running iteration is over, if there is one.
    pub(super) fn iteration_over(&mut self, finished: bool) {
        if std::mem::take(&mut self.running) {
            self.shard.iteration_ends(finished);
            if self.shard.is_traced() {
                self.trace_iteration(Some(finished));
            }
        }
    }

    /// Goes on behind the running iteration, whether it ran through or not.
    pub(super) fn end_iteration(&mut self, finished: bool) {
        self.leave_transactions(End::Whole);
        self.iteration_over(finished);
        match self.once {
            true => self.leave_done(),
            false => self.go_to(self.session().begin),
        }
    }

    /// Leaves between two iterations; what came is done with before.
    fn leave_done(&mut self) {
        if self.besides.as_ref().is_some_and(|besides| besides.holds_back()) {
            self.shard.seats.borrow_mut().leave(self.slot);
            return self.go_to(self.session().begin);
        }
        self.leaving = true;
        self.go_to(self.session().end);
    }

    /// The verb `next`.
    pub(super) fn next_iteration(&mut self) {
        match self.running {
            _ if self.in_body => self.return_from_body(),
            true => self.end_iteration(true),
            false if self.leaving => self.go_to(GONE),
            false => self.go_to(self.session().begin),
        }
    }

    /// The verb `leave`.
    pub(super) fn leave_on_purpose(&mut self) {
        if self.in_body {
            return self.leave_from_body();
        }
        self.leave_transactions(End::Whole);
        match self.leaving {
            true => self.go_to(GONE),
            false => {
                self.iteration_over(true);
                self.leave_done();
            }
        }
    }

    /// Begins what a session does at its end, from whatever it was doing.
    pub(super) fn take_leave(&mut self) {
        self.interrupt();
        self.leaving = true;
        self.leave_transactions(End::CutOff);
        self.iteration_over(false);
        self.go_to(self.session().end);
    }

    /// Whether a step of a body is under way.
    pub(super) fn does_something_besides(&self) -> bool {
        self.besides.as_ref().is_some_and(|besides| besides.is_in_flight())
    }

    /// Told to leave while waiting: whether what the user waits for can be given up. A step that
    /// was begun is finished, and so is a transaction: half a purchase is left with no target.
    pub(super) fn leaves_now(&mut self) -> bool {
        let can = match self.doing {
            Doing::Idle | Doing::Holding | Doing::Gate | Doing::Rendezvous(_) => true,
            Doing::Pause => !self.in_transaction(),
            Doing::Stay => !self.in_transaction() || self.deadline == Time::NEVER,
            Doing::Opening(_) => !self.in_transaction(),
            _ => false,
        };
        let is_busy = self.besides.as_ref().is_some_and(|besides| besides.holds_back());
        if self.leaving || !can || is_busy {
            return false;
        }
        self.now = self.shard.clock.now();
        self.break_off_step();
        self.take_leave();
        true
    }

    /// The user has to go on elsewhere. Who stays has done what it was asked for; any other step
    /// that is begun will not end.
    pub(super) fn break_off_step(&mut self) {
        at_pc!(self, _shard, instruction, _plan);
        match (&self.doing, instruction) {
            (Doing::Stay, Instruction::Stay(stay)) => self.step_ok(stay.step, &Attempt::default()),
            _ => self.interrupt(),
        }
        self.give_up();
    }

    /// A step that cannot be done without a connection has lost it, or never got one: the session
    /// begins anew, after a pause that grows with every refusal in a row.
    pub(super) fn restart(&mut self, refused: bool) {
        self.leave_transactions(End::CutOff);
        self.iteration_over(false);
        if self.once || self.leaving {
            self.leaving = true;
            self.go_to(GONE);
            return;
        }
        self.go_to(0);
        if let Some(retry) =
            self.shard.prepared.sessions[usize::from(self.session)].links[0].reconnect
        {
            return self.reconnect(retry);
        }
        // The first loss after an answer is no reason to wait, a second one in a row is.
        if refused || self.refusals > 0 {
            return self.hold_back();
        }
        self.refusals = 1;
    }

    /// Waits before the instruction at the program counter, longer with every refusal in a row.
    pub(super) fn hold_back(&mut self) {
        let doubled = BACK_OFF_MIN.saturating_mul(1 << self.refusals.min(16));
        let most = doubled.min(BACK_OFF_MAX).as_secs_f64();
        self.refusals = self.refusals.saturating_add(1);
        // Half of it is chance, so that refused users do not come back together.
        let time = self.random.uniform(most / 2.0, most);
        self.hold(Duration::from_secs_f64(time));
    }

    /// Waits before the instruction at the program counter, which is due afterwards.
    pub(super) fn hold(&mut self, time: Duration) {
        self.due = self.now;
        self.wait_for(Doing::Holding, self.now + time);
    }

    /// The session is over: its connection is ended in order, then the user is gone.
    fn finish(&mut self, cx: &mut Context<'_>) -> Turn {
        self.leave_transactions(End::Whole);
        if self.connection.is_some() {
            self.close(cx);
            return Turn::Again;
        }
        Turn::Gone
    }

    /// A verb that needs a connection found none.
    pub(super) fn without_connection(&mut self, step: throng_base::StepId) {
        self.begin(step);
        // sentences
        let never = "the step needs a connection, and there is none: `connect` comes first";
        let (cause, detail) = match self.loss.take() {
            Some(loss) => match *loss {
                loss @ (Cause::Malformed | Cause::TooLarge | Cause::MemoryLimit, _) => loss,
                (_, detail) => (Cause::Lost, detail),
            },
            None => (Cause::ScenarioFailed, never.into()),
        };
        // Who speaks another language does so the next time, too.
        let breaks = matches!(cause, Cause::Malformed | Cause::TooLarge);
        if breaks {
            self.refusals = self.refusals.max(BREAKS_REFUSALS);
        }
        let onward = Onward::Anew { refused: breaks || cause == Cause::ScenarioFailed };
        self.step_failed(step, &Attempt::default(), (cause, detail), onward);
    }
}
