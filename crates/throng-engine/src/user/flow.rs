//! Which instruction comes next: iterations, leaving, beginning anew.

use std::task::Context;
use std::time::Duration;

use throng_base::{Time, UserId};
use throng_metrics::Cause;
use throng_program::{Retry, Statement};

use super::opening::secure::secure;
use super::outcome::Onward;
use super::sql::execute;
use super::task::{Active, Begun, Doing, GONE, Task};
use super::transaction::End;
use super::{State, Turn, User};
use crate::code::Instruction;
use crate::prepared::{LoadPlan, Plan};
use crate::recorder::{Attempt, Iteration};
use crate::shard::Lane;

/// How a user holds back after connections that did not open: from this, doubled each time, to
/// that. It keeps a closed target from being asked 100,000 times a second.
const BACK_OFF_MIN: Duration = Duration::from_millis(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);
/// So many refusals in a row is a target worth that breaks the protocol.
const BREAKS_REFUSALS: u8 = 6;

/// The session of a new user of a load.
pub(super) fn choose(load: &LoadPlan, id: UserId) -> u16 {
    load.session_of(id.0 - load.first_user) as u16
}

impl User {
    /// Does the instruction at the program counter.
    pub(super) fn step(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Turn {
        let mut session = self.session(shard);
        if let Some(turn) = session.comes_first(cx) {
            return turn;
        }
        if session.begins_pass() {
            session.hand_over();
            self.begin_branches(shard, cx);
            return Turn::Again;
        }
        if session.task.pc >= session.of_session().last {
            session.task.pc = GONE;
            return session.finish(cx);
        }
        if shard.is_watched() && !session.task.in_flight && !session.watched_step() {
            return Turn::Again;
        }
        if let Instruction::Do(Statement::Request(request)) = session.instruction()
            && let line = session.user.line_of(request.link)
            && let Some(connection) = session.user.connection_mut(line)
            && let Some(surplus) = connection.take_surplus()
        {
            // It came right behind the answer to the upgrade, before anything was asked.
            self.received(shard, line, &surplus, cx);
            return Turn::Again;
        }
        session.instruct(cx);
        self.settle(shard, cx);
        match self.session.doing {
            Doing::Exchange(_) | Doing::Stay => self.hear_kept(shard, self.session.line, cx),
            Doing::Join => self.begin_branches(shard, cx),
            _ => {}
        }
        Turn::Again
    }
}

/// How long it took is reckoned when it is over.
const FINISHED: Iteration = Iteration::Finished(None);

impl Active<'_> {
    /// What comes before the next instruction of the session: leaving, falling out, and the
    /// borders of iterations.
    fn comes_first(&mut self, cx: &mut Context<'_>) -> Option<Turn> {
        if self.user.leaving {
            return None;
        }
        let (begin, end) = (self.of_session().begin, self.of_session().end);
        if self.task.pc == end {
            self.end_iteration(FINISHED);
            return Some(Turn::Again);
        }
        let may = !self.task.in_flight && !self.in_transaction();
        let must_leave = self.shard.seats.borrow().must_leave(self.user.slot);
        if may && must_leave && !self.is_owed() {
            match self.user.holds_back() {
                true => self.wait_for(Doing::Idle, Time::NEVER),
                false => self.take_leave(Iteration::Interrupted),
            }
            return Some(Turn::Again);
        }
        if may
            && let Some(how) = self.user.parting.take()
            && self.parts_now()
        {
            self.part(how, cx);
            return Some(Turn::Again);
        }
        if self.task.pc == begin && !self.user.running {
            return Some(self.ask_for_iteration());
        }
        None
    }

    /// Whether a user that has to leave does something before. What keeps the books of the step
    /// before it and takes no time: or fewer would be counted than were done. And the first step of
    /// a start that was counted, which on a late host may come after the end of the load: so each
    /// start has a result.
    fn is_owed(&self) -> bool {
        let next = self.at_pc().0;
        let is_book = matches!(
            next,
            Instruction::Do(Statement::Tally { .. } | Statement::Set { .. } | Statement::Log(_))
        );
        let is_first = self.task.is_scheduled && self.task.pc == self.of_session().begin;
        let has_arrived = self.user.once && self.user.iterations == 0;
        has_arrived || self.user.running && (is_book || is_first)
    }

    /// Whether an iteration has begun that another task is to do, as the user does several at once.
    fn begins_pass(&self) -> bool {
        let is_begun = self.user.running && self.task.pc == self.of_session().begin;
        is_begun && self.shard.prepared.program.connection.streams > 1
    }

    /// Leaves the iteration that has begun to a task of its own. The session asks for the next one
    /// until as many are on their way as there may be.
    fn hand_over(&mut self) {
        self.user.running = false;
        let iteration = self.user.iterations;
        let agenda = self.user.agenda.get_or_insert_default();
        agenda.tasks_mut().push(Task::pass(self.task, iteration));
        let streams = usize::from(self.shard.prepared.program.connection.streams);
        match (self.user.once, agenda.passes() < streams) {
            (true, _) => self.leave_done(),
            (false, true) => self.go_to(self.task.pc),
            (false, false) => self.wait_for(Doing::Join, Time::NEVER),
        }
    }

    pub(super) fn instruct(&mut self, cx: &mut Context<'_>) {
        match self.at_pc() {
            (Instruction::Do(Statement::Http(http)), Plan::Http(plan)) => self.http(http, plan, cx),
            (Instruction::Do(Statement::Call(call)), Plan::Call(plan)) => self.call(call, plan, cx),
            (Instruction::Do(Statement::Sql(sql)), Plan::Sql(plan)) => execute(self, sql, plan, cx),
            (Instruction::Do(Statement::Connect(connect)), plan) => self.connect(connect, plan),
            (Instruction::Do(Statement::Disconnect { link, how }), _) => {
                self.pass_on();
                let line = self.user.line_of(*link);
                self.end_by(line, *how, cx);
            }
            (Instruction::Do(Statement::Secure(one)), _) => secure(self, one),
            (Instruction::Do(Statement::Send(send)), _) => self.send_only(send, cx),
            (Instruction::Do(Statement::Expect(expect)), _) => self.expect(expect),
            (Instruction::Do(Statement::Request(request)), _) => self.request(request, cx),
            (Instruction::Do(Statement::Stay(stay)), Plan::Stay(plan)) => self.stay(stay, plan),
            (Instruction::Parallel(branches), _) => self.parallel(branches),
            (Instruction::Return, _) => self.return_from_body(),
            (Instruction::Do(Statement::Slow { link, slow }), _) => {
                let (now, line) = (self.user.now, self.user.line_of(*link));
                if let Some(connection) = self.user.connection_mut(line) {
                    connection.slow_down(*slow, now);
                }
                self.pass_on();
            }
            // Each of these has its plan: they are made together.
            (Instruction::Do(Statement::Stay(_)), _) => self.next_step(),
            (Instruction::Do(one), _) if one.opens_itself() => self.next_step(),
            (other, _) => self.control(other),
        }
    }

    /// Goes on with the next instruction, which is due when this one ended.
    pub(super) fn next_step(&mut self) {
        self.go_to(self.task.pc + 1);
    }

    /// The same behind one that takes no time: in an iteration that started late, what follows is
    /// as late.
    fn pass_on(&mut self) {
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

    /// The time of thinking or staying is over.
    pub(super) fn pause_over(&mut self, until: Time) {
        if let Instruction::Do(Statement::Stay(stay)) = self.instruction() {
            if stay.awaits_end {
                return self.end_missed(stay);
            }
            self.step_ok(stay.step, &Attempt::default());
        }
        self.paused();
        // One without length; any other in a late iteration was caught up with.
        match until <= self.task.due {
            true => self.pass_on(),
            false => self.next_step(),
        }
    }

    fn ask_for_iteration(&mut self) -> Turn {
        if self.user.once {
            self.shard.iteration_begins();
            self.start_iteration(self.task.due);
            return Turn::Again;
        }
        match self.shard.next_iteration(self.user.slot, self.task.due, self.user.now) {
            Some(due) => self.start_iteration(due),
            None => self.wait_for(Doing::Idle, Time::NEVER),
        }
        Turn::Again
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
        self.user.running = true;
        self.user.iterations += 1;
        self.task.doing = Doing::Step;
        if let Some(memory) = &mut self.user.memory {
            memory.forget_rows(&self.shard.prepared.program);
        }
        if self.shard.is_traced() {
            self.user.trace_iteration(None);
        }
    }

    /// The running iteration is over, if there is one.
    pub(super) fn iteration_over(&mut self, how: Iteration) {
        if std::mem::take(&mut self.user.running) {
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
            if self.shard.is_traced() {
                self.user.trace_iteration(Some(finished));
            }
        }
    }

    /// Goes on behind the running iteration, whether it ran through or not.
    pub(super) fn end_iteration(&mut self, how: Iteration) {
        self.leave_transactions(End::Whole);
        self.iteration_over(how);
        match self.user.once {
            true => self.leave_done(),
            false => self.go_to(self.of_session().begin),
        }
    }

    /// Leaves between two iterations; what came is done with before.
    fn leave_done(&mut self) {
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
        self.leave_transactions(End::Whole);
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
        self.leave_transactions(End::CutOff);
        self.iteration_over(how);
        self.go_to(self.of_session().end);
    }

    /// Told to leave while waiting: whether what the user waits for can be given up. A step that
    /// was begun is finished, and so is a transaction: half a purchase is left with no target. A
    /// connection that is being opened is given up, but not that of who arrived a moment ago: each
    /// arrival has a result.
    pub(super) fn leaves_now(&mut self) -> bool {
        let can = match self.task.doing {
            Doing::Idle | Doing::Holding | Doing::Gate | Doing::Rendezvous(_) => true,
            Doing::Pause => !self.in_transaction(),
            Doing::Stay if self.awaits_end() => false,
            Doing::Stay => !self.in_transaction() || self.task.deadline == Time::NEVER,
            Doing::Opening(_) => {
                let arrives = self.user.once && self.task.pc == self.of_session().begin;
                !self.in_transaction() && !arrives
            }
            _ => false,
        };
        let is_busy = self.user.holds_back();
        if self.user.leaving || !can || is_busy {
            return false;
        }
        self.user.now = self.shard.clock.now();
        self.break_off_step();
        self.take_leave(Iteration::Interrupted);
        true
    }

    fn awaits_end(&self) -> bool {
        matches!(self.instruction(), Instruction::Do(Statement::Stay(stay)) if stay.awaits_end)
    }

    /// The user has to go on elsewhere. Who stays has done what it was asked for; any other step
    /// that is begun will not end.
    pub(super) fn break_off_step(&mut self) {
        match (&self.task.doing, self.instruction()) {
            (Doing::Stay, Instruction::Do(Statement::Stay(stay))) if !stay.awaits_end => {
                self.step_ok(stay.step, &Attempt::default());
            }
            _ => self.interrupt(),
        }
        self.give_up();
    }

    /// A step that cannot be done without a connection has lost it, or never got one: the session
    /// begins anew, after a pause that grows with every refusal in a row.
    pub(super) fn restart(&mut self, refused: bool) {
        self.leave_transactions(End::CutOff);
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

    /// The session is over: its connections are ended in order, then the user is gone.
    fn finish(&mut self, cx: &mut Context<'_>) -> Turn {
        self.leave_transactions(End::Whole);
        match self.user.lines.first_open() {
            Some(line) => {
                self.close(line, cx);
                Turn::Again
            }
            None => Turn::Gone,
        }
    }

    /// Whether a user takes leave without the connection that its session opens: it never opened,
    /// or the user has closed it. Steps over it are skipped.
    pub(super) fn has_left(&self, line: u8) -> bool {
        let place = self.user.lines.get(line);
        self.user.leaving
            && place.connection.is_none()
            && place.loss.is_none()
            && self.user.link_in(self.shard, line).lasts
    }

    /// A verb that needs a connection found none.
    pub(super) fn without_connection(&mut self, step: throng_base::StepId) {
        if self.has_left(self.task.line) {
            return self.next_step();
        }
        self.begin(step);
        let never = say!("the step requires a connection, but none is open: use `connect` first");
        let (code, (cause, detail)) = match &self.user.lines.get(self.task.line).loss {
            Some(loss) => {
                use Cause::{Malformed, MemoryLimit, TooLarge};
                let cause = match loss.cause() {
                    cause @ (Malformed | TooLarge | MemoryLimit | Cause::HeartbeatLost) => cause,
                    cause if cause.has_reason_code() => cause,
                    _ => Cause::Lost,
                };
                (loss.code(), (cause, loss.in_words()))
            }
            None => (0, (Cause::ScenarioFailed, never)),
        };
        // What the session can still take of it is not for a body to drop.
        if !self.task.is_body() {
            self.user.take_loss(self.task.line);
        }
        // Who speaks another language does so the next time, too.
        let breaks = matches!(cause, Cause::Malformed | Cause::TooLarge);
        if breaks {
            self.user.refusals = self.user.refusals.max(BREAKS_REFUSALS);
        }
        let onward = Onward::Anew { refused: breaks || cause == Cause::ScenarioFailed };
        self.step_failed(step, &Attempt { code, ..Attempt::default() }, (cause, detail), onward);
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
