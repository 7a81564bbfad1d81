//! Something was asked of the target and is to be answered: by an HTTP answer, by a message, or by
//! room in the socket for what is sent. However it ends badly, it ends here.

use throng_base::{Said, Time};
use throng_metrics::Cause;
use throng_program::Statement;

use super::agenda::no_room;
use super::connection::Loss;
use super::outcome::Onward;
use super::task::{Active, Doing};
use crate::code::Instruction;
use crate::failure::Ended;
use crate::failure::Failure;
use crate::failure::Finding;
use crate::rare::Rare;
use crate::recorder::Attempt;
use crate::shard::Lane;

/// What was asked for, as far as it has come.
pub(super) struct Exchange {
    pub(super) first_byte: Time,
    pub(super) bytes_in: u64,
    /// As often as it was sent.
    pub(super) bytes_out: u64,
    /// Of an HTTP request, as it was written last.
    pub(super) request_bytes: u64,
    /// What only some exchanges need.
    pub(super) rare: Option<Box<Rare>>,
    /// What the reply carries; 0 where replies carry nothing.
    pub(super) number: u32,
    pub(super) status: u16,
    pub(super) keep_alive: bool,
    pub(super) awaits: Awaits,
}

/// What an exchange waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    /// The answer to an HTTP request, over a connection that may have been used before.
    Answer { reused: bool },
    /// A message, or an answer on a raw stream.
    Message,
    /// Room in the socket for its own message.
    Room,
}

impl Exchange {
    pub(super) fn new(awaits: Awaits) -> Exchange {
        Exchange {
            first_byte: Time::ZERO,
            bytes_in: 0,
            bytes_out: 0,
            request_bytes: 0,
            rare: None,
            number: 0,
            status: 0,
            keep_alive: false,
            awaits,
        }
    }

    pub(super) fn rare(&mut self, shard: &Lane) -> &mut Rare {
        self.rare.get_or_insert_with(|| shard.rare())
    }

    /// What was sent is in the ledger.
    pub(super) fn is_delivered(&mut self, sent: Option<(u16, u64)>, shard: &Lane) {
        if sent.is_some() {
            self.rare(shard).sent = sent;
        }
    }

    pub(super) fn came(&mut self, bytes: u64, now: Time) {
        if self.bytes_in == 0 {
            self.first_byte = now;
        }
        self.bytes_in += bytes;
    }

    pub(super) fn attempt(&self, now: Time, due: Time) -> Attempt {
        Attempt {
            latency: Some(now - due),
            first_byte: (self.first_byte > Time::ZERO).then(|| self.first_byte - due),
            code: self.status,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            retry_after_s: self.rare.as_ref().map_or(0, |rare| rare.retry_after_s),
        }
    }

    /// What it needed goes back to the shard.
    pub(super) fn forget(self, shard: &Lane) {
        if let Some(rare) = self.rare {
            shard.take_back(rare);
        }
    }

    /// What has come of it in time.
    fn progress(&self, waited: &str) -> Said {
        match (self.awaits, self.bytes_in, self.status) {
            (Awaits::Room, ..) => say!("the target has not read the message after {waited}"),
            (Awaits::Message, 0, _) => say!("no answer after {waited}"),
            (Awaits::Message, bytes, _) => {
                say!("{bytes} bytes, but no complete answer after {waited}")
            }
            (Awaits::Answer { .. }, 0, _) => say!("no byte of an answer after {waited}"),
            (Awaits::Answer { .. }, bytes, 0) => say!("{bytes} bytes of a head after {waited}"),
            (Awaits::Answer { .. }, bytes, status) => {
                say!("status {status} and {bytes} bytes after {waited}")
            }
        }
    }
}

impl Active<'_> {
    /// It did not end in time. Where messages do not say what they answer, what still comes could
    /// be taken for the next answer, so the connection is of no more use.
    pub(super) fn exchange_timed_out(&mut self, exchange: Exchange) {
        let waited = throng_base::units::format_duration(self.user.now - self.task.due);
        let detail = exchange.progress(&waited);
        let named = match self.instruction() {
            Instruction::Do(Statement::Expect(expect)) => !expect.message.is_any(),
            Instruction::Do(Statement::Request(request)) => {
                exchange.number > 0 || !request.answer.is_any()
            }
            _ => false,
        };
        // What it waits for may be among what we have dropped.
        let dropped = self.user.connection(self.task.line).map_or(0, |one| one.dropped());
        let onward = match exchange.awaits {
            Awaits::Answer { .. } if self.user.multiplexes(self.task.line) => {
                self.user.cancel(self.task.line, exchange.number);
                Onward::NextStep
            }
            Awaits::Answer { .. } => {
                self.user.drop_connection(self.task.line, Ended::TimedOut);
                Onward::NextStep
            }
            Awaits::Message if named => Onward::NextStep,
            Awaits::Message | Awaits::Room => {
                self.lose(Failure::new(Cause::Timeout, detail.clone()), Ended::TimedOut);
                Onward::Anew { refused: false }
            }
        };
        let finding = match self.instruction() {
            Instruction::Do(Statement::Expect(_)) if dropped > 0 => {
                let dropped = throng_base::units::format_count(dropped);
                let reason = say!("{dropped} messages were dropped");
                (Cause::MessagesDropped, no_room(reason.clone()))
            }
            _ => (Cause::Timeout, detail),
        };
        self.exchange_failed(exchange, finding, true, onward);
    }

    /// The connection of this task is of no more use to anybody. Its own step fails for that, and
    /// the user tells the others.
    pub(super) fn lose(&mut self, failure: Failure, ended: Ended) {
        let line = self.task.line;
        self.user.lose(line, Loss { failure, ended, unheard: false });
        if !self.task.is_body() {
            self.user.lines.get_mut(line).loss = None;
        }
    }

    /// What was asked for was wrong, or came too late (then it is timed), or never came.
    pub(super) fn exchange_failed(
        &mut self,
        exchange: Exchange,
        (cause, detail): Finding,
        timed: bool,
        onward: Onward,
    ) {
        let Some(step) = self.instruction().step() else { return };
        let mut attempt = exchange.attempt(self.user.now, self.task.due);
        match exchange.awaits {
            Awaits::Answer { .. } => {
                self.witness(cause, &exchange, None);
                self.task.detour = None;
            }
            Awaits::Message => {}
            Awaits::Room => attempt = Attempt::default(),
        }
        if !timed {
            attempt.latency = None;
        }
        self.withdraw(&exchange);
        let finding = (cause, exchange.traced(detail));
        exchange.forget(self.shard);
        self.step_failed(step, &attempt, finding, onward);
    }

    /// What was sent is not to be expected anywhere.
    pub(super) fn withdraw(&self, exchange: &Exchange) {
        if let Some((row, id)) = exchange.rare.as_ref().and_then(|rare| rare.sent) {
            self.user.withdraw_sent(row, id);
        }
    }

    /// The exchange that this task waits for; it does not any more.
    pub(super) fn take_exchange(&mut self) -> Option<Exchange> {
        match std::mem::replace(&mut self.task.doing, Doing::Step) {
            Doing::Exchange(exchange) => Some(exchange),
            other => {
                self.task.doing = other;
                None
            }
        }
    }

    /// What this task asked for is of no use any more.
    pub(super) fn withdraw_exchange(&mut self) {
        if let Some(exchange) = self.take_exchange() {
            self.withdraw(&exchange);
            exchange.forget(self.shard);
        }
    }
}
