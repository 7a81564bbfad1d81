//! Connections that end: closed by the target, broken, or of no more use.

use std::io;
use std::rc::Rc;
use std::task::Context;

use throng_metrics::Cause;
use throng_program::Statement;
use throng_protocol::machine::Machine;

use crate::failure::{Ended, Failure, Finding, http_failure, lost_failure};
use crate::prepared::code::Instruction;
use crate::shard::Lane;
use crate::user::User;
use crate::user::connection::{Connection, Left, Loss, NOTHING_ASKED};
use crate::user::exchange::{Awaits, Exchange};
use crate::user::line::ended_by;
use crate::user::task::{Doing, Which, at};

/// So many steps that take no time are looked over for the one that waits.
const INSTANT_MAX: usize = 64;

/// As a code, the end of a WebSocket without a close (RFC 6455, 7.1.5).
const NO_CLOSE: u16 = 1006;

impl User {
    /// Whose request is to be answered over this line.
    pub(in crate::user) fn who_awaits_answer(&self, line: u8) -> Option<Which> {
        let awaits = |exchange: &Exchange| matches!(exchange.awaits, Awaits::Answer { .. });
        if self.session.exchange_on(line).is_some_and(awaits) {
            return Some(Which::Session);
        }
        let others = self.state.agenda.as_ref()?.tasks();
        let place = others.iter().position(|task| task.exchange_on(line).is_some_and(awaits))?;
        Some(Which::Other(place))
    }

    pub(in crate::user) fn exchange_of(&mut self, which: Which) -> Option<&mut Exchange> {
        let task = match which {
            Which::Session => &mut self.session,
            Which::Other(place) => self.state.agenda.as_mut()?.tasks_mut().get_mut(place)?,
        };
        match &mut task.doing {
            Doing::Exchange(exchange) => Some(exchange),
            _ => None,
        }
    }

    /// The target closed its side; `is_cut` where TLS does not say that this is the end of what it
    /// sent.
    pub(in crate::user) fn ended_by_target(
        &mut self,
        shard: &Lane,
        line: u8,
        is_cut: bool,
        cx: &mut Context<'_>,
    ) {
        let reader = match self.state.lines.connection_mut(line).map(|one| &mut one.machine) {
            Some(Machine::Http1(reader)) => Some(reader.close()),
            _ => None,
        };
        if !matches!(reader, Some(Ok(true)))
            && let Some(error) = self.take_unsendable(line)
        {
            return self.broken(shard, line, &error, cx);
        }
        if self.session.is_closing(line) {
            // A WebSocket ends after our goodbye.
            self.state.drop_connection(line, Ended::ByUs);
            let until = self.session.deadline;
            self.session(shard).closed_in_order(until);
            return;
        }
        match (self.who_awaits_answer(line), reader) {
            // Only the end of the connection is the end of its body (RFC 9112, 9.8).
            (Some(_), Some(Ok(true))) if is_cut => {
                let detail = say!(
                    "the connection was closed without a TLS close_notify, so the response may be \
                     incomplete"
                );
                let failure = Failure::new(Cause::ClosedEarly, detail);
                self.lost(shard, line, failure, Ended::ByTarget, cx);
            }
            (Some(which), Some(Ok(true))) => {
                self.state.drop_connection(line, Ended::ByTarget);
                self.with(which, shard, cx, |active| active.answer_complete(false, None));
            }
            (Some(_), Some(Err(error))) => {
                let failure = http_failure(&error);
                self.lost(shard, line, failure, Ended::ByTarget, cx);
            }
            _ => {
                let half = self.state.lines.connection(line).and_then(Connection::half_a_packet);
                let detail = half.unwrap_or(NOTHING_ASKED);
                let machine =
                    self.state.lines.connection(line).map(|connection| &connection.machine);
                let has_code = machine.is_some_and(|machine| machine.traits().codes);
                let status = if has_code { NO_CLOSE } else { 0 };
                let failure = Failure { status, ..Failure::new(Cause::ClosedEarly, detail) };
                self.lost(shard, line, failure, Ended::ByTarget, cx);
            }
        }
    }

    /// Why a request was not sent to its end, once nothing more is to be read.
    fn take_unsendable(&mut self, line: u8) -> Option<io::Error> {
        let which = self.who_awaits_answer(line)?;
        self.exchange_of(which)?.rare.as_mut()?.unsendable.take()
    }

    /// Reading or writing failed.
    pub(in crate::user) fn broken(
        &mut self,
        shard: &Lane,
        line: u8,
        error: &io::Error,
        cx: &mut Context<'_>,
    ) {
        let failure = lost_failure(error);
        // TLS ended without its last word: a close that TLS does not trust.
        if failure.cause == Cause::ClosedEarly {
            return self.ended_by_target(shard, line, true, cx);
        }
        let ended = ended_by(failure.cause);
        if self.session.is_closing(line) {
            self.state.drop_connection(line, ended);
            let until = self.session.deadline;
            self.session(shard).closed_in_order(until);
            return;
        }
        self.lost(shard, line, failure, ended, cx);
    }

    /// The connection is gone in the middle of something, or of nothing.
    pub(in crate::user) fn lost(
        &mut self,
        shard: &Lane,
        line: u8,
        failure: Failure,
        ended: Ended,
        cx: &mut Context<'_>,
    ) {
        let unheard = self.is_unheard(line, ended);
        let (left, refused) = match self.take_left(line, ended) {
            Ok(left) => (left, None),
            Err((cause, detail)) => (None, Some(Failure::new(cause, detail))),
        };
        let messages = left.as_ref().map_or(0, |left| left.later.len());
        let is_wanted = self.wants_end(shard, (line, messages), &failure, ended);
        // Whoever wants what came before the end misses it because of us.
        let failure = refused.unwrap_or(failure);
        let dropped = self.state.lines.get(line).dropped();
        self.state.lose(line, Loss { failure, ended, unheard, is_wanted, dropped, left });
        self.settle(shard, cx);
    }

    /// What the next steps of the session may take, although the connection is over.
    pub(in crate::user) fn take_left(
        &mut self,
        line: u8,
        ended: Ended,
    ) -> Result<Option<Left>, Finding> {
        // A step that waits here now did not take them.
        let waits = matches!(self.session.doing, Doing::Exchange(_) | Doing::Stay | Doing::Closing)
            && self.session.line == line;
        if ended != Ended::ByTarget || waits || self.state.link(line).expected.is_empty() {
            return Ok(None);
        }
        let purse = Rc::clone(&self.state.shard.purse);
        match self.state.lines.connection_mut(line) {
            Some(connection) => connection.take_left(&purse),
            None => Ok(None),
        }
    }

    /// Whether the session waits for the connection to end so, or does next, behind steps that take
    /// messages which have come already.
    fn wants_end(
        &self,
        shard: &Lane,
        (line, messages): (u8, usize),
        failure: &Failure,
        ended: Ended,
    ) -> bool {
        if ended != Ended::ByTarget || !matches!(self.session.doing, Doing::Stay | Doing::Step) {
            return false;
        }
        // What takes no time may stand between the last message and the step that waits.
        let mut pc = self.session.pc;
        let mut messages = messages;
        for _ in 0..INSTANT_MAX {
            match at(shard, self.state.session, pc).0 {
                Instruction::Do(Statement::Expect(expect))
                    if messages > 0 && self.state.line_of(expect.link) == line =>
                {
                    messages -= 1;
                    pc += 1;
                }
                Instruction::Do(Statement::Stay(stay)) => {
                    let fits = stay.ends.as_ref().is_some_and(|ends| ends.has(failure.status));
                    return fits && self.state.line_of(stay.link) == line;
                }
                Instruction::Do(
                    Statement::Set { .. } | Statement::Tally { .. } | Statement::Log(_),
                )
                | Instruction::TransactionBegin { .. }
                | Instruction::TransactionEnd { .. } => pc += 1,
                _ => return false,
            }
        }
        false
    }

    /// Whether the target closed an idle connection just as we used it again: it ended in order
    /// (RFC 9112, 9.3.1), without a byte of an answer, and the target's host acknowledges nothing
    /// of the request. One that it had taken before it closed was dropped by the target.
    fn is_unheard(&mut self, line: u8, ended: Ended) -> bool {
        let Some(which) = self.who_awaits_answer(line) else { return false };
        if self.state.lines.get(line).multiplexes() {
            return false;
        }
        let Some(exchange) = self.exchange_of(which) else { return false };
        let idle = exchange.awaits == Awaits::Answer { reused: true }
            && exchange.bytes_in == 0
            && ended == Ended::ByTarget;
        let bytes = exchange.request_bytes();
        idle && self.state.lines.connection(line).is_some_and(|one| one.took_nothing(bytes))
    }
}
