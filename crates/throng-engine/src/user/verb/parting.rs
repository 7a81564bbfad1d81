//! Closing: users that are told to leave or to disconnect, and connections that the scenario
//! closes.

use std::task::Context;
use std::time::Duration;

use throng_base::Time;
use throng_program::{Parting, Statement};

use crate::failure::Ended;
use crate::prepared::code::Instruction;
use crate::recorder::{Attempt, Iteration};
use crate::user::Turn;
use crate::user::flow::Session;
use crate::user::task::{Active, Doing};
use crate::user::transaction::End;

/// Time limit of a WebSocket's close handshake after our close frame.
const GOODBYE_MAX: Duration = Duration::from_secs(5);

/// We end a connection, with the given close mode.
pub(in crate::user) fn end_by(
    active: &mut Active<'_>,
    line: u8,
    how: Parting,
    cx: &mut Context<'_>,
) {
    match how {
        Parting::Fin => close(active, line, cx),
        Parting::Reset => active.user.drop_connection(line, Ended::ResetByUs),
        Parting::Vanish => active.user.drop_connection(line, Ended::Vanished),
        Parting::HalfClose => active.user.drop_connection(line, Ended::HalfClosed),
    }
}

/// Closes a connection gracefully: a WebSocket by its close handshake, others by FIN. A task that
/// waits for the end of one already closes another without waiting.
pub(in crate::user) fn close(active: &mut Active<'_>, line: u8, cx: &mut Context<'_>) {
    let Some(connection) = active.user.lines.connection(line) else { return };
    let machine = &connection.machine;
    let (closes, awaits_end) = (machine.traits().closes, machine.awaits_end());
    if closes && active.user.outbound(line).close(1000, cx).is_ok() && awaits_end {
        active.user.life(line).goodbye_said();
        if !matches!(active.task.doing, Doing::Closing) {
            active.task.line = line;
            return active.wait_for(Doing::Closing, active.user.now + GOODBYE_MAX);
        }
    }
    if let Some(connection) = active.user.lines.connection_mut(line) {
        connection.transport.say_goodbye(cx);
    }
    active.user.drop_connection(line, Ended::ByUs);
}

impl Active<'_> {
    /// The connection is closed, after a wait that could last until then.
    pub(in crate::user) fn closed_in_order(&mut self, until: Time) -> Turn {
        self.task.deadline = Time::NEVER;
        self.task.doing = Doing::Step;
        // The next step's time does not include the close; a delay that it already has stays.
        self.task.due = match self.task.is_scheduled {
            true => self.task.due + GOODBYE_MAX.saturating_sub(until - self.user.now),
            false => self.task.due.max(self.user.now),
        };
        if self.user.rejoins {
            Session::new(self).rejoin();
        }
        Turn::Again
    }
}

impl Session<'_, '_> {
    /// Told to leave while waiting: whether the wait can be abandoned. A step that has started is
    /// finished, and so is a transaction: no target is left with half a purchase. A connection that
    /// is opening is abandoned, unless its user just arrived: every arrival gets a result.
    pub(in crate::user) fn leaves_now(&mut self) -> bool {
        let Active { shard, user, task, .. } = &*self.active;
        let can = match task.doing {
            Doing::Idle | Doing::Holding | Doing::Gate | Doing::Rendezvous(_) => true,
            Doing::Pause => !task.in_transaction(shard),
            Doing::Stay if awaits_end(self.active.instruction()) => false,
            Doing::Stay => !task.in_transaction(shard) || task.deadline == Time::NEVER,
            Doing::Opening(_) => {
                let arrives = user.once && task.pc == self.active.of_session().begin;
                !task.in_transaction(shard) && !arrives
            }
            _ => false,
        };
        if user.leaving || !can || user.holds_back() {
            return false;
        }
        self.active.user.now = self.active.shard.clock.now();
        self.break_off_step();
        self.take_leave(Iteration::Interrupted);
        true
    }

    /// The user has to continue elsewhere. A `stay` has done what it was meant to; any other
    /// running step will not finish.
    fn break_off_step(&mut self) {
        match (&self.active.task.doing, self.active.instruction()) {
            (Doing::Stay, Instruction::Do(Statement::Stay(stay))) if !stay.awaits_end => {
                self.active.step_ok(stay.step, &Attempt::default());
            }
            _ => self.active.interrupt(),
        }
        self.active.give_up();
    }

    /// Told to disconnect: whether the user can do so immediately.
    pub(in crate::user) fn parts_now(&self) -> bool {
        let Active { shard, user, task, .. } = &*self.active;
        let can = matches!(
            task.doing,
            Doing::Pause | Doing::Stay | Doing::Idle | Doing::Rendezvous(_) | Doing::Step
        );
        let may = !task.in_flight && !task.in_transaction(shard) && !user.leaving;
        can && may && user.is_online()
    }

    /// Closes the long-lived connections in the given close mode, and restarts the session.
    pub(in crate::user) fn part(&mut self, how: Parting, cx: &mut Context<'_>) {
        self.active.user.now = self.active.shard.clock.now();
        self.break_off_step();
        self.active.task.leave_transactions(End::CutOff, self.active.user);
        self.iteration_over(Iteration::Interrupted);
        self.active.shard.seats.borrow_mut().not_idle(self.active.user.slot);
        self.active.go_to(0);
        self.active.user.rejoins = true;
        for line in 0..self.active.user.lines.count() {
            if self.active.user.lines.get(line).is_online() {
                end_by(self.active, line, how, cx);
            }
        }
        self.active.user.fell_out = true;
        self.active.user.goes_away();
        if !matches!(self.active.task.doing, Doing::Closing) {
            self.rejoin();
        }
    }

    /// A user whose connection is gone returns as `reconnect` says.
    fn rejoin(&mut self) {
        self.active.user.rejoins = false;
        if let Some(retry) = self.reconnects() {
            self.reconnect(retry);
        }
    }
}

fn awaits_end(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Do(Statement::Stay(stay)) if stay.awaits_end)
}
