//! The session of a user: which instruction it does next, and the borders of its iterations.

use std::task::Context;
use std::time::Duration;

use throng_base::Time;
use throng_program::Statement;

use super::flow::FINISHED;
use super::task::{Active, Doing, GONE, Task};
use super::transaction::End;
use super::watched::verb;
use super::{Turn, User};
use crate::prepared::code::Instruction;
use crate::recorder::Iteration;
use crate::shard::Lane;
use crate::trace::What;

/// How often a user that stands at the gate asks again.
const GATE: Duration = Duration::from_millis(10);

impl Active<'_> {
    /// The instruction at the program counter is about to be done, for the first time or again.
    /// False when the user has to wait at the gate.
    #[cold]
    pub(super) fn watched_step(&mut self) -> bool {
        let instruction = self.instruction();
        let Some(verb) = verb(instruction) else { return true };
        let waits = !matches!(instruction, Instruction::TransactionBegin { .. });
        if waits
            && let Some(gate) = &self.shard.gate
            && !gate.pass()
        {
            self.wait_for(Doing::Gate, self.user.now + GATE);
            return false;
        }
        let (pc, retry) = (self.task.pc, u32::from(self.task.retries));
        self.user.tell(|| What::StepBegins { step: instruction.step(), verb, pc, retry });
        true
    }

    /// What comes before the next instruction of the session: leaving, falling out, and the
    /// borders of iterations.
    pub(super) fn comes_first(&mut self, cx: &mut Context<'_>) -> Option<Turn> {
        if self.user.leaving {
            return None;
        }
        let (begin, end) = (self.of_session().begin, self.of_session().end);
        if self.task.pc == end {
            self.end_iteration(FINISHED);
            return Some(Turn::Again);
        }
        let may = !self.task.in_flight && !self.task.in_transaction(self.shard);
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
    pub(super) fn is_owed(&self) -> bool {
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
    pub(super) fn begins_pass(&self) -> bool {
        let is_begun = self.user.running && self.task.pc == self.of_session().begin;
        is_begun && self.shard.prepared.program.connection.streams > 1
    }

    /// Leaves the iteration that has begun to a task of its own. The session asks for the next one
    /// until as many are on their way as there may be.
    pub(super) fn hand_over(&mut self) {
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

    pub(super) fn ask_for_iteration(&mut self) -> Turn {
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

    /// The session is over: its connections are ended in order, then the user is gone.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) -> Turn {
        self.task.leave_transactions(End::Whole, self.user);
        match self.user.lines.first_open() {
            Some(line) => {
                self.close(line, cx);
                Turn::Again
            }
            None => Turn::Gone,
        }
    }
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
            && let Some(connection) = session.user.lines.connection_mut(line)
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
