//! Which instruction comes next, and what the simple ones do.

use std::task::Context;
use std::time::Duration;

use throng_base::{Random, Time};
use throng_metrics::Cause;
use throng_program::{Instruction, Session};

use super::{Doing, Turn, User};
use crate::prepared::{Plan, Prepared};
use crate::recorder::Attempt;

/// How a user holds back after connections that did not open: from this, doubled each time, to
/// that. It keeps a closed target from being asked 100,000 times a second.
const BACK_OFF_MIN: Duration = Duration::from_millis(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);

/// The session and the target of a new user, drawn by their weights.
pub(super) fn choose(prepared: &Prepared, random: &mut Random) -> (u16, u16) {
    let sessions = &prepared.program.sessions;
    let session = weighted(sessions.iter().map(|one| one.weight), prepared.session_weight, random);
    let targets = prepared.targets.iter().map(|one| one.target.weight);
    (session, weighted(targets, prepared.target_weight, random))
}

fn weighted(weights: impl Iterator<Item = u32>, sum: u64, random: &mut Random) -> u16 {
    let mut left = random.below(sum);
    for (index, weight) in weights.enumerate() {
        if left < u64::from(weight) {
            return index as u16;
        }
        left -= u64::from(weight);
    }
    0
}

/// Where a user is whose session is over, but whose connection is not.
pub(super) static BEHIND_THE_END: Instruction = Instruction::Disconnect;
pub(super) static NO_PLAN: Plan = Plan::Nothing;

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
        self.known = true;
        self.shard.seats.borrow_mut().know(self.slot, cx.waker());
    }

    fn session(&self) -> &Session {
        &self.shard.prepared.program.sessions[usize::from(self.session)]
    }

    /// Does the instruction at the program counter.
    pub(super) fn step(&mut self, cx: &mut Context<'_>) -> Turn {
        let (begin, end) = (self.session().begin, self.session().end);
        if !self.leaving {
            if !self.in_flight && self.shard.seats.borrow().must_leave(self.slot) {
                self.take_leave();
                return Turn::Again;
            }
            if self.pc == begin && !self.running {
                return self.ask_for_iteration();
            }
            if self.pc == end {
                self.end_iteration();
                return Turn::Again;
            }
        }
        if self.pc as usize >= self.session().code.len() {
            return self.finish(cx);
        }
        self.instruct(cx);
        Turn::Again
    }

    fn instruct(&mut self, cx: &mut Context<'_>) {
        at_pc!(self, shard, instruction, plan);
        match (instruction, plan) {
            (Instruction::Http(http), Plan::Http(plan)) => self.http(http, plan, cx),
            (Instruction::Connect(connect), _) => self.connect(connect),
            (Instruction::Disconnect, _) => {
                self.next_step();
                self.close(cx);
            }
            (Instruction::Send(send), _) => self.send_only(send, cx),
            (Instruction::Expect(expect), _) => self.expect(expect),
            (Instruction::Request(request), _) => self.request(request, cx),
            (Instruction::Think { low, high }, _) => self.think(*low, *high),
            (Instruction::Stay { time, .. }, _) => {
                let until = time.map_or(Time::NEVER, |time| self.due + time);
                self.wait_for(Doing::Pause, until);
            }
            (Instruction::RepeatBegin { register, low, high, end }, _) => {
                let times = low + self.random.below(u64::from(high - low) + 1) as u32;
                self.registers[usize::from(*register)] = times;
                self.pc = if times == 0 { end + 1 } else { self.pc + 1 };
            }
            (Instruction::RepeatEnd { register, begin }, _) => {
                let left = &mut self.registers[usize::from(*register)];
                *left = left.saturating_sub(1);
                self.pc = if *left > 0 { begin + 1 } else { self.pc + 1 };
            }
            (Instruction::Jump(to), _) => self.pc = *to,
            // Every HTTP instruction has its plan: they are made together.
            (Instruction::Http(_), _) => self.next_step(),
        }
    }

    /// Goes on with the next instruction, which is due when this one ended.
    pub(super) fn next_step(&mut self) {
        self.pc += 1;
        self.due = self.now;
        self.deadline = Time::NEVER;
        self.doing = Doing::Step;
    }

    fn think(&mut self, low: Duration, high: Duration) {
        let time = self.random.uniform(low.as_secs_f64(), high.as_secs_f64());
        // A think time counts from the moment it was due, so that no delay adds up.
        let until = self.due + Duration::from_secs_f64(time.max(0.0));
        self.wait_for(Doing::Pause, until);
    }

    /// The time of thinking, staying or holding back is over.
    pub(super) fn pause_over(&mut self) {
        at_pc!(self, shard, instruction, _plan);
        if let Instruction::Stay { step, .. } = instruction {
            shard.recorder.borrow_mut().ok(*step, &Attempt::default());
        }
        self.next_step();
    }

    fn ask_for_iteration(&mut self) -> Turn {
        if self.once {
            self.shard.iteration_begins();
            self.begin_iteration(self.due);
            return Turn::Again;
        }
        match self.shard.next_iteration(self.slot, self.now) {
            Some(due) => self.begin_iteration(due),
            None => self.wait_for(Doing::Idle, Time::NEVER),
        }
        Turn::Again
    }

    pub(super) fn begin_iteration(&mut self, due: Time) {
        self.running = true;
        self.iterations += 1;
        self.due = due;
        self.doing = Doing::Step;
    }

    fn end_iteration(&mut self) {
        self.running = false;
        self.shard.iteration_ends(true);
        match self.once {
            true => self.leaving = true,
            false => self.pc = self.session().begin,
        }
    }

    /// Begins what a session does at its end, from whatever it was doing.
    fn take_leave(&mut self) {
        self.leaving = true;
        if std::mem::take(&mut self.running) {
            self.shard.iteration_ends(false);
        }
        self.pc = self.session().end;
        self.due = self.now;
        self.deadline = Time::NEVER;
        self.doing = Doing::Step;
    }

    /// Told to leave while waiting: whether what the user waits for can be given up.
    pub(super) fn leaves_now(&mut self) -> bool {
        let can =
            matches!(self.doing, Doing::Pause | Doing::Idle | Doing::Holding | Doing::Opening(_));
        if self.leaving || !can {
            return false;
        }
        self.now = self.shard.clock.now();
        if let Doing::Opening(_) = self.doing {
            // Nobody is there yet whom one would have to take leave of.
            self.interrupt();
            self.shard.recorder.borrow_mut().gauges.connections_opening -= 1;
        }
        if let Doing::Pause = self.doing {
            at_pc!(self, shard, instruction, _plan);
            if let Instruction::Stay { step, .. } = instruction {
                shard.recorder.borrow_mut().ok(*step, &Attempt::default());
            }
        }
        self.take_leave();
        true
    }

    /// A step that cannot be done without a connection has lost it, or never got one: the session
    /// begins anew, after a pause that grows with every refusal in a row.
    pub(super) fn restart(&mut self, refused: bool) {
        if std::mem::take(&mut self.running) {
            self.shard.iteration_ends(false);
        }
        if self.once || self.leaving {
            self.leaving = true;
            self.pc = self.session().code.len() as u32;
            self.doing = Doing::Step;
            return;
        }
        self.pc = 0;
        // The first loss after an answer is no reason to wait, a second one in a row is.
        if refused || self.refusals > 0 {
            return self.hold_back();
        }
        self.refusals = 1;
        self.due = self.now;
        self.doing = Doing::Step;
    }

    /// Waits before the instruction at the program counter, longer with every refusal in a row.
    pub(super) fn hold_back(&mut self) {
        let doubled = BACK_OFF_MIN.saturating_mul(1 << self.refusals.min(16));
        let most = doubled.min(BACK_OFF_MAX).as_secs_f64();
        self.refusals = self.refusals.saturating_add(1);
        // Half of it is chance, so that refused users do not come back together.
        let time = self.random.uniform(most / 2.0, most);
        self.wait_for(Doing::Holding, self.now + Duration::from_secs_f64(time));
    }

    /// The session is over: its connection is ended in order, then the user is gone.
    fn finish(&mut self, cx: &mut Context<'_>) -> Turn {
        if self.connection.is_some() {
            self.close(cx);
            return Turn::Again;
        }
        Turn::Gone
    }

    /// A verb that needs a connection found none.
    pub(super) fn without_connection(&mut self, step: throng_base::StepId) {
        let never = "the step needs a connection, and there is none: `connect` comes first";
        let (cause, detail) = match self.loss.take() {
            Some(loss) => (Cause::Lost, String::from(loss)),
            None => (Cause::ScenarioFailed, never.into()),
        };
        self.failed(step, &Attempt::default(), cause, &detail);
        self.restart(cause == Cause::ScenarioFailed);
    }
}
