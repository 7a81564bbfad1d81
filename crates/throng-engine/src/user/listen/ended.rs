//! Connections that end: closed by the target, broken, or no longer needed.

use std::io;

use throng_metrics::Cause;
use throng_program::Statement;
use throng_protocol::machine::Machine;

use crate::failure::{Ended, Failure, Finding, http_failure, lost_failure};
use crate::prepared::code::Instruction;
use crate::user::connection::{Connection, Left, Loss, NOTHING_ASKED};
use crate::user::exchange::Awaits;
use crate::user::line::ended_by;
use crate::user::listen::Inbound;
use crate::user::task::{Doing, at};
use crate::user::verb::http::answer_complete;

/// Most instantaneous steps that are skipped to find the step that waits.
const INSTANT_MAX: usize = 64;

/// Code for a WebSocket that ends without a close frame (RFC 6455, 7.1.5).
const NO_CLOSE: u16 = 1006;

impl Inbound<'_, '_> {
    /// The target closed its side; `is_cut` if TLS does not confirm that this is the end of the
    /// data.
    pub(super) fn ended_by_target(&mut self, is_cut: bool) {
        let reader =
            match self.user.state.lines.connection_mut(self.line).map(|one| &mut one.machine) {
                Some(Machine::Http1(reader)) => Some(reader.close()),
                _ => None,
            };
        if !matches!(reader, Some(Ok(true)))
            && let Some(error) = self.take_unsendable(|_| true)
        {
            return self.broken(&error);
        }
        if self.user.session.is_closing(self.line) {
            // A WebSocket ends after our close frame.
            self.user.state.drop_connection(self.line, Ended::ByUs);
            let until = self.user.session.deadline;
            self.user.session(self.shard).closed_in_order(until);
            return;
        }
        match (self.user.who_awaits_answer(self.line), reader) {
            // The body ends only with the connection (RFC 9112, 9.8).
            (Some(_), Some(Ok(true))) if is_cut => {
                let detail = say!(
                    "the connection was closed without a TLS close_notify, so the response may be \
                     incomplete"
                );
                let failure = Failure::new(Cause::ClosedEarly, detail);
                self.lost(failure, Ended::ByTarget);
            }
            (Some(which), Some(Ok(true))) => {
                self.user.state.drop_connection(self.line, Ended::ByTarget);
                self.user.with(which, self.shard, self.cx, |active| {
                    answer_complete(active, false, None);
                });
            }
            (Some(_), Some(Err(error))) => {
                let failure = http_failure(&error);
                self.lost(failure, Ended::ByTarget);
            }
            _ => {
                let connection = self.user.state.lines.connection(self.line);
                let detail = connection.and_then(Connection::half_a_packet);
                let detail = detail.unwrap_or(NOTHING_ASKED);
                let has_code = connection.is_some_and(|one| one.machine.traits().codes);
                let status = if has_code { NO_CLOSE } else { 0 };
                let failure = Failure { status, ..Failure::new(Cause::ClosedEarly, detail) };
                self.lost(failure, Ended::ByTarget);
            }
        }
    }

    /// Reading or writing failed.
    pub(super) fn broken(&mut self, error: &io::Error) {
        let failure = lost_failure(error);
        // TLS ended without a close alert: a close that TLS does not trust.
        if failure.cause == Cause::ClosedEarly {
            return self.ended_by_target(true);
        }
        let ended = ended_by(failure.cause);
        if self.user.session.is_closing(self.line) {
            self.user.state.drop_connection(self.line, ended);
            let until = self.user.session.deadline;
            self.user.session(self.shard).closed_in_order(until);
            return;
        }
        self.lost(failure, ended);
    }

    /// The connection is gone, in the middle of an exchange or while idle.
    pub(super) fn lost(&mut self, failure: Failure, ended: Ended) {
        let unheard = self.is_unheard(ended);
        let (left, refused) = match self.take_left(ended) {
            Ok(left) => (left, None),
            Err(finding) => (None, Some(Failure::from(finding))),
        };
        let messages = left.as_ref().map_or(0, |left| left.later.len());
        let is_wanted = self.wants_end(messages, &failure, ended);
        // A task that expects what arrived before the end misses it because of our limit.
        let failure = refused.unwrap_or(failure);
        let dropped = self.user.state.lines.get(self.line).dropped();
        self.user.state.lose(self.line, Loss { failure, ended, unheard, is_wanted, dropped, left });
        self.user.settle(self.shard, self.cx);
    }

    /// Takes the messages that later steps may use although the connection is gone.
    fn take_left(&mut self, ended: Ended) -> Result<Option<Left>, Finding> {
        // A step that waits now did not take them.
        let waits =
            matches!(self.user.session.doing, Doing::Exchange(_) | Doing::Stay | Doing::Closing)
                && self.user.session.line == self.line;
        if ended != Ended::ByTarget || waits || self.user.state.link(self.line).expected.is_empty()
        {
            return Ok(None);
        }
        match self.user.state.lines.connection_mut(self.line) {
            Some(connection) => connection.take_left(&self.shard.purse),
            None => Ok(None),
        }
    }

    /// Whether the session waits for this end, now or after steps that take messages which have
    /// arrived already.
    fn wants_end(&self, mut messages: usize, failure: &Failure, ended: Ended) -> bool {
        if ended != Ended::ByTarget || !matches!(self.user.session.doing, Doing::Stay | Doing::Step)
        {
            return false;
        }
        // Instantaneous steps may be between the last message and the step that waits.
        let mut pc = self.user.session.pc;
        for _ in 0..INSTANT_MAX {
            match at(self.shard, self.user.state.session, pc).0 {
                Instruction::Do(Statement::Expect(expect))
                    if messages > 0 && self.user.state.line_of(expect.link) == self.line =>
                {
                    messages -= 1;
                    pc += 1;
                }
                Instruction::Do(Statement::Stay(stay)) => {
                    let fits = stay.ends.as_ref().is_some_and(|ends| ends.has(failure.status));
                    return fits && self.user.state.line_of(stay.link) == self.line;
                }
                instruction if instruction.is_instant() => pc += 1,
                _ => return false,
            }
        }
        false
    }

    /// Whether the target closed an idle connection just as we reused it: a clean end (RFC 9112,
    /// 9.3.1) without any byte of a response, and the target's host has acknowledged nothing of the
    /// request. If it acknowledged the request before it closed, the target itself dropped it.
    fn is_unheard(&mut self, ended: Ended) -> bool {
        let Some(which) = self.user.who_awaits_answer(self.line) else { return false };
        if self.user.state.lines.get(self.line).multiplexes() {
            return false;
        }
        let Some(exchange) = self.user.exchange_of(which) else { return false };
        let idle = exchange.awaits == Awaits::Answer { reused: true }
            && exchange.bytes_in == 0
            && ended == Ended::ByTarget;
        let bytes = exchange.request_bytes();
        idle && self
            .user
            .state
            .lines
            .connection(self.line)
            .is_some_and(|one| one.took_nothing(bytes))
    }
}
