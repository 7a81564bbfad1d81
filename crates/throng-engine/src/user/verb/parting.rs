//! Going: users that are told to leave or to disconnect, and connections that end as a scenario has
//! it.

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

/// How long a WebSocket may take to end in order once we have said goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(5);

/// We end a connection, one way or another.
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

/// Ends a connection in order: a WebSocket by its close handshake, others by FIN. Whoever
/// waits for the end of one already says goodbye to another without waiting.
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
    /// The connection is closed, as it was to be until then.
    pub(in crate::user) fn closed_in_order(&mut self, until: Time) -> Turn {
        self.task.deadline = Time::NEVER;
        self.task.doing = Doing::Step;
        // The time that closing took is not the next step's; how late that is already is.
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
    /// Told to leave while waiting: whether what the user waits for can be given up. A step that
    /// was begun is finished, and so is a transaction: half a purchase is left with no target. A
    /// connection that is being opened is given up, but not that of who arrived a moment ago: each
    /// arrival has a result.
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

    /// The user has to go on elsewhere. Who stays has done what it was asked for; any other step
    /// that is begun will not end.
    fn break_off_step(&mut self) {
        match (&self.active.task.doing, self.active.instruction()) {
            (Doing::Stay, Instruction::Do(Statement::Stay(stay))) if !stay.awaits_end => {
                self.active.step_ok(stay.step, &Attempt::default());
            }
            _ => self.active.interrupt(),
        }
        self.active.give_up();
    }

    /// Told to fall out: whether what the user does can be left at once.
    pub(in crate::user) fn parts_now(&self) -> bool {
        let Active { shard, user, task, .. } = &*self.active;
        let can = matches!(
            task.doing,
            Doing::Pause | Doing::Stay | Doing::Idle | Doing::Rendezvous(_) | Doing::Step
        );
        let may = !task.in_flight && !task.in_transaction(shard) && !user.leaving;
        can && may && user.is_online()
    }

    /// The connections that last end in the way that is told, and the session begins anew.
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

    /// Whose connection is gone comes back, as `reconnect` has it.
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
