//! The session of a user: its next instruction, and the start and end of its iterations.

use std::task::Context;
use std::time::Duration;

use throng_base::Time;
use throng_program::Statement;

use super::flow::{FINISHED, Session};
use super::task::{Active, Doing, GONE, Task};
use super::transaction::End;
use super::verb::close_mode::close;
use super::watched::verb;
use super::{Turn, User};
use crate::prepared::code::Instruction;
use crate::recorder::Iteration;
use crate::shard::Lane;
use crate::trace::What;

/// How often a user that an observer has paused asks whether it may continue.
const GATE: Duration = Duration::from_millis(10);

impl Session<'_, '_> {
    /// The current instruction is about to run, for the first time or again. False if an observer
    /// has paused the user.
    #[cold]
    pub(super) fn watched_step(&mut self) -> bool {
        let instruction = self.active.instruction();
        let Some(verb) = verb(instruction) else { return true };
        let waits = !matches!(instruction, Instruction::TransactionBegin { .. });
        if waits
            && let Some(gate) = &self.active.shard.gate
            && !gate.pass()
        {
            self.active.wait_for(Doing::Gate, self.active.user.now + GATE);
            return false;
        }
        let (pc, retry) = (self.active.task.pc, u32::from(self.active.task.retries));
        self.active.user.tell(|| What::StepBegins { step: instruction.step(), verb, pc, retry });
        true
    }

    /// Handles what precedes the next instruction of the session: leaving, disconnecting, and the
    /// start and end of iterations.
    pub(super) fn comes_first(&mut self, cx: &mut Context<'_>) -> Option<Turn> {
        if self.active.user.leaving {
            return None;
        }
        let (begin, end) = (self.active.of_session().begin, self.active.of_session().end);
        if self.active.task.pc == end {
            self.end_iteration(FINISHED);
            return Some(Turn::Again);
        }
        let may =
            !self.active.task.in_flight && !self.active.task.in_transaction(self.active.shard);
        let must_leave = self.active.shard.slots.borrow().must_leave(self.active.user.slot);
        if may && must_leave && !self.is_owed() {
            match self.active.user.holds_back() {
                true => self.active.wait_for(Doing::Idle, Time::NEVER),
                false => self.take_leave(Iteration::Interrupted),
            }
            return Some(Turn::Again);
        }
        if may
            && let Some(how) = self.active.user.close_mode.take()
            && self.parts_now()
        {
            self.part(how, cx);
            return Some(Turn::Again);
        }
        if self.active.task.pc == begin && !self.active.user.running {
            return Some(self.ask_for_iteration());
        }
        None
    }

    /// Whether a user that has to leave must do something first. Instantaneous instructions that
    /// record the step before them, or fewer results than attempts would be counted. And the first
    /// step of a counted start, which on a slow host may follow the end of the load: every start
    /// gets a result.
    pub(super) fn is_owed(&self) -> bool {
        let Active { user, task, .. } = &*self.active;
        let is_book = matches!(
            self.active.instruction(),
            Instruction::Do(Statement::Tally { .. } | Statement::Set { .. } | Statement::Log(_))
        );
        let is_first = task.is_scheduled && task.pc == self.active.of_session().begin;
        let has_arrived = user.once && user.iterations == 0;
        has_arrived || user.running && (is_book || is_first)
    }

    /// Whether an iteration has started for another task, because the user runs several in
    /// parallel.
    pub(super) fn begins_pass(&self) -> bool {
        let Active { shard, user, task, .. } = &*self.active;
        let is_begun = user.running && task.pc == self.active.of_session().begin;
        is_begun && shard.prepared.program.connection.streams > 1
    }

    /// Leaves the started iteration to a task of its own. The session asks for the next one until
    /// the maximum is running.
    pub(super) fn hand_over(&mut self) {
        self.active.user.running = false;
        let iteration = self.active.user.iterations;
        let agenda = self.active.user.agenda.get_or_insert_default();
        agenda.tasks.push(Task::pass(self.active.task, iteration));
        let streams = usize::from(self.active.shard.prepared.program.connection.streams);
        match (self.active.user.once, agenda.passes() < streams) {
            (true, _) => self.leave_done(),
            (false, true) => self.active.go_to(self.active.task.pc),
            (false, false) => self.active.wait_for(Doing::Join, Time::NEVER),
        }
    }

    pub(super) fn ask_for_iteration(&mut self) -> Turn {
        if self.active.user.once {
            self.active.shard.iteration_begins();
            self.start_iteration(self.active.task.due);
            return Turn::Again;
        }
        match self.active.shard.next_iteration(
            self.active.user.slot,
            self.active.task.due,
            self.active.user.now,
        ) {
            Some(due) => self.start_iteration(due),
            None => self.active.wait_for(Doing::Idle, Time::NEVER),
        }
        Turn::Again
    }

    /// The session is over: closes its connections, then ends the user.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) -> Turn {
        self.active.task.leave_transactions(End::Whole, self.active.user);
        match self.active.user.lines.first_open() {
            Some(line) => {
                close(self.active, line, cx);
                Turn::Again
            }
            None => Turn::Gone,
        }
    }
}

impl User {
    /// Runs the current instruction.
    pub(super) fn step(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Turn {
        let mut session = self.session(shard);
        if let Some(turn) = Session::new(&mut session).comes_first(cx) {
            return turn;
        }
        if Session::new(&mut session).begins_pass() {
            Session::new(&mut session).hand_over();
            self.begin_branches(shard, cx);
            return Turn::Again;
        }
        if session.task.pc >= session.of_session().last {
            session.task.pc = GONE;
            return Session::new(&mut session).finish(cx);
        }
        if shard.is_watched()
            && !session.task.in_flight
            && !Session::new(&mut session).watched_step()
        {
            return Turn::Again;
        }
        if let Instruction::Do(Statement::Request(request)) = session.instruction()
            && let line = session.user.line_of(request.link)
            && let Some(connection) = session.user.lines.connection_mut(line)
            && let Some(surplus) = connection.take_surplus()
        {
            // It followed the response to the upgrade, before anything was asked.
            self.inbound(line, shard, cx).received(&surplus);
            return Turn::Again;
        }
        session.instruct(cx);
        self.settle(shard, cx);
        match self.session.doing {
            Doing::Exchange(_) | Doing::Stay => {
                let line = self.session.line;
                self.inbound(line, shard, cx).hear_kept();
            }
            Doing::Join => self.begin_branches(shard, cx),
            _ => {}
        }
        Turn::Again
    }
}
