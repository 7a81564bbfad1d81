//! Routes what arrives over a long-lived connection: to a task that waits for it, to a heartbeat,
//! to a handler; anything else is a push.

pub(in crate::user) mod answered;
mod message;

use std::time::Duration;

use throng_base::Said;
use throng_metrics::Cause;
use throng_program::{Content, OnError, Statement};
use throng_protocol::framed::{Broken, MessageId, Packet, Protocol, Records};
use throng_protocol::machine::{Nature, Violation};

use crate::connector::protocol::violation_failure;
use crate::failure::{Ended, Failure, shown};
use crate::looked::{Looked, PartsOfReply};
use crate::prepared::LinkPlan;
use crate::prepared::code::Instruction;
use crate::recorder::Attempt;
use crate::scope::scope;
use crate::trace::What;
use crate::user::connection::{Came, Connection};
use crate::user::exchange::{Awaits, Exchange};
use crate::user::flow::Session;
use crate::user::listen::Inbound;
use crate::user::listen::dispatch::message::Message;
use crate::user::outcome::Onward;
use crate::user::task::{Doing, Task, Which, at};
use crate::user::verb::messages;
use crate::user::{State, User};

/// Source of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Target,
    /// From a packet that contains packets.
    Packet,
    /// All packets of a push.
    Push,
    /// From the messages kept for a later step.
    Kept,
}

/// What could be read of a malformed message: its kind, and its correlation number.
type Read = (Option<MessageId>, Option<u64>);

/// Code for a WebSocket close frame without a code (RFC 6455, 7.1.5).
const NO_CODE: u16 = 1005;

impl User {
    /// The tasks that wait for a message on this connection.
    fn awaiting(&self, line: u8) -> impl Iterator<Item = &Task> {
        let others = self.state.tasks();
        std::iter::once(&self.session)
            .chain(others)
            .filter(move |one| one.awaits(line, Awaits::Message))
    }
}

impl Inbound<'_, '_> {
    pub(super) fn ping(&mut self, payload: &[u8]) {
        self.shard.recorder.borrow_mut().interval.traffic.messages.pings += 1;
        if let Err(error) = self.user.state.outbound(self.line).pong(payload, self.cx) {
            self.broken(&error);
        }
    }

    /// The input violates the protocol: what follows cannot be read.
    pub(super) fn violated(&mut self, violation: &Violation) {
        let mut failure = violation_failure(violation);
        if let Violation::Declared(broken) = violation {
            failure.detail = in_words(broken);
        }
        if let Some(code) = violation.close_code() {
            let _ = self.user.state.outbound(self.line).close(code, self.cx);
        }
        if matches!(violation, Violation::Declared(_)) {
            self.shard.recorder.borrow_mut().interval.traffic.messages.broken += 1;
            // A task that waits for a message fails with the connection, for this reason.
            if self.user.awaiting(self.line).next().is_none() {
                self.count_broken(&failure.detail);
            }
        }
        let ended = match violation.nature() {
            Nature::Reset | Nature::Status(_) => Ended::ByTarget,
            _ => Ended::ByUs,
        };
        self.lost(failure, ended);
    }

    /// The target sent its close frame: answers it, and ends the connection.
    pub(super) fn closed_by_peer(&mut self, (code, reason): (Option<u16>, &str)) {
        if self.user.session.is_closing(self.line) {
            // It answers ours; the end of the stream follows, or ours.
            let connection = self.user.state.lines.connection(self.line);
            if connection.is_some_and(|one| one.machine.traits().hangs_up) {
                self.user.state.drop_connection(self.line, Ended::ByUs);
            }
            return;
        }
        let answer = code.filter(|code| *code != NO_CODE).unwrap_or(1000);
        let _ = self.user.state.outbound(self.line).close(answer, self.cx);
        let Some(Connection { machine, .. }) = self.user.state.lines.connection(self.line) else {
            return;
        };
        let status = if machine.traits().codes { code.unwrap_or(NO_CODE) } else { 0 };
        let detail = machine.closed(code, &shown(reason.as_bytes()));
        let failure = Failure { status, ..Failure::new(Cause::of_close(status), detail) };
        self.lost(failure, Ended::ByTarget);
    }

    pub(super) fn heard(&mut self, payload: &[u8]) {
        self.user.state.tell(|| What::Received(self.user.state.shown(self.line, payload)));
        self.hear(payload, From::Target);
    }

    /// Routes a message to its task.
    pub(super) fn hear(&mut self, payload: &[u8], from: From) {
        let protocol = &self.user.state.link_in(self.shard, self.line).protocol;
        let (whole, mut behind) = (payload, Vec::new());
        let mut payload = payload;
        if let (Some(protocol), From::Kept | From::Push) = (protocol, from) {
            (payload, behind) = protocol.apart(whole);
        }
        let mut decoded = self.shard.decoded.take().unwrap_or_default();
        let read = protocol.as_ref().map(|protocol| protocol.decode(payload, &mut decoded));
        let packets = protocol.as_ref().and_then(|protocol| protocol.packets(payload, &decoded));
        if let (Some(protocol), Some(Ok(_)), Some(packets)) = (protocol, &read, packets)
            && from == From::Target
        {
            // Only the packets inside are messages.
            Records::Declared(protocol).split(packets, &mut |packet| {
                self.hear(packet, From::Packet);
                self.user.state.lines.connection(self.line).is_some()
            });
            self.shard.decoded.set(Some(decoded));
            return;
        }
        if matches!(from, From::Target | From::Packet) {
            self.shard.recorder.borrow_mut().interval.traffic.messages.received += 1;
        }
        let packet = match (read, packets) {
            (None, _) => None,
            (Some(Ok(packet)), None) => Some(packet),
            (Some(read), _) => {
                let broken = read.err().unwrap_or_else(nested);
                let read = (decoded.message(), decoded.correlation());
                self.shard.decoded.set(Some(decoded));
                return self.packet_broken(&broken, read);
            }
        };
        let others;
        let parts = self.user.state.lines.get(self.line).parts(payload);
        let mut looked =
            Looked::message(payload, parts, self.user.state.now - self.user.session.due);
        if let (Some(protocol), Some(packet)) = (protocol, packet) {
            if matches!(from, From::Target | From::Packet)
                && let Some(push) = self.goes_together(protocol, packet, payload)
            {
                self.shard.decoded.set(Some(decoded));
                return push.map_or((), |push| self.hear(&push, From::Push));
            }
            looked.declared = Some((protocol, &decoded, packet.message));
            if !behind.is_empty() {
                others = PartsOfReply::of_push(protocol, &behind);
                (looked.parts, looked.whole) = (Some(&others), Some(whole));
            }
        }
        looked.proto = self.user.state.link_in(self.shard, self.line).reply(&self.shard.prepared);
        if from != From::Kept {
            let link = self.user.state.link_in(self.shard, self.line);
            let mut scope = scope!(self.user.state, self.shard);
            self.user.state.audiences.received(link, &looked, packet, &mut scope);
            looked.between = self.since_last();
        }
        Message { inbound: self, looked: &mut looked, packet }.give();
        self.shard.decoded.set(Some(decoded));
    }

    /// Adds a packet to its push, if it belongs to one; returns all of them with the last.
    fn goes_together(
        &mut self,
        protocol: &Protocol,
        packet: Packet,
        bytes: &[u8],
    ) -> Option<Option<Vec<u8>>> {
        let state = &mut self.user.state;
        let connection = state.lines.connection_mut(self.line)?;
        let (begun, message) = (connection.begun_push(), packet.message);
        let is_part = |first: &MessageId| protocol.parts_of_push(*first).any(|it| it == message);
        let first = match begun.filter(is_part) {
            None if !packet.goes_on || !protocol.comes_unasked(message) => return None,
            first => first.unwrap_or(message),
        };
        let mut packets = connection.take_push().unwrap_or_default();
        if first == message && begun.is_some() {
            // The rest of the push before never arrives.
            packets.clear();
            self.shard.recorder.borrow_mut().interval.traffic.messages.pushes += 1;
            state.life(self.line).first_message();
        }
        protocol.join(&mut packets, bytes);
        if !packet.goes_on {
            return Some(Some(packets));
        }
        self.user.state.lines.connection_mut(self.line)?.keep_push(first, packets);
        Some(None)
    }

    /// A packet violates the declaration; the next one can be read. If the task that waits for it
    /// is known, its step has failed; otherwise the packet is only counted.
    fn packet_broken(&mut self, broken: &Broken, read: Read) {
        self.shard.recorder.borrow_mut().interval.traffic.messages.broken += 1;
        let detail = in_words(broken);
        let finding = (Cause::Malformed, detail.clone());
        if let Some(which) = self.who_awaits_broken(read) {
            let protocol =
                self.user.state.link_in(self.shard, self.line).protocol.as_ref().zip(read.0);
            let goes_on = protocol.is_some_and(|(protocol, message)| protocol.goes_on(message));
            return self.user.with(which, self.shard, self.cx, |active| {
                let asks = matches!(active.instruction(), Instruction::Do(Statement::Request(_)));
                match &mut active.task.doing {
                    // What follows belongs to the same reply.
                    Doing::Exchange(exchange) if goes_on && asks => {
                        exchange.found(finding, self.shard);
                    }
                    _ => messages::message_came(active, Err(finding)),
                }
            });
        }
        let stay = self.user.session.pc;
        if self.user.state.heartbeats(self.line).is_broken_answer(stay, read) {
            return self.beat_broken(finding);
        }
        self.count_broken(&detail);
        let mut session = self.user.session(self.shard);
        // A step that cannot fail does not specify a reaction: that of the session applies.
        let instruction = session.instruction();
        let failing = match instruction.step() {
            Some(_) => instruction.failing(),
            None => session.of_session().all.first().map(|it| it.failing()).unwrap_or_default(),
        };
        if failing.then == OnError::Stop
            && let Some(step) = self.shard.prepared.program.broken
        {
            session.stop_for(step, Cause::Malformed, detail.clone());
        }
        let awaits = session.task.awaits(self.line, Awaits::Message);
        match failing.then {
            OnError::Next if awaits && session.user.running => {
                session.withdraw_exchange();
                session.interrupt();
                Session::new(&mut session).leave_iteration(Onward::NextStep);
            }
            OnError::Leave | OnError::Stop if awaits => {
                session.withdraw_exchange();
                session.interrupt();
                Session::new(&mut session).leave(Onward::NextStep);
            }
            then => Session::new(&mut session).answer_unasked(then),
        }
    }

    /// The task whose reply the malformed message is, if that can be determined.
    fn who_awaits_broken(&self, read: Read) -> Option<Which> {
        let is_silent = |protocol: &Protocol| {
            !protocol.correlates() && protocol.messages().all(|(_, info)| !info.push)
        };
        // If only one message is waited for, and the protocol has neither correlation numbers nor
        // unsolicited messages, the next message is the reply, whatever can be read of it.
        let is_sole = self.user.state.protocol(self.line).is_some_and(is_silent)
            && !self.user.state.lines.get(self.line).beats.waits()
            && self.user.awaiting(self.line).count() == 1;
        let is_its = |task: &Task| {
            task.awaits(self.line, Awaits::Message)
                && task.exchange_on(self.line).is_some_and(|exchange| {
                    let (instruction, _) = at(self.shard, self.user.state.session, task.pc);
                    let its = is_broken_answer(
                        self.user.state.link(self.line),
                        instruction,
                        exchange,
                        read,
                    );
                    its.unwrap_or(is_sole)
                })
        };
        self.user.find(is_its)
    }

    /// Time since the previous message of a stream.
    fn since_last(&mut self) -> Option<Duration> {
        let State { lines, now, .. } = &mut self.user.state;
        match lines.connection_mut(self.line)?.message_came(*now) {
            Came::Untimed => None,
            Came::Behind(time) => Some(time),
            Came::First { step, time } => {
                self.shard.recorder.borrow_mut().first_event(step, time);
                None
            }
        }
    }

    /// Counts bytes that violate the declaration, in a row of their own.
    fn count_broken(&mut self, detail: &Said) {
        if let Some(step) = self.shard.prepared.program.broken {
            let finding = (Cause::Malformed, detail.clone());
            self.user.state.failed_apart(step, &Attempt::default(), &finding);
        }
    }
}

/// Whether the malformed message is the one that this step waits for; `None` if the readable part
/// does not show it.
fn is_broken_answer(
    link: &LinkPlan,
    instruction: &Instruction,
    exchange: &Exchange,
    (message, carried): Read,
) -> Option<bool> {
    match instruction {
        Instruction::Do(Statement::Request(request)) => match &request.message.content {
            _ if message.is_some_and(|message| link.comes_unasked(message)) => Some(false),
            Content::Declared(_) if exchange.number > 0 => {
                Some(carried == Some(u64::from(exchange.number)))
            }
            Content::Declared(declared) => {
                message.map(|message| link.answers(message, declared.template.message))
            }
            _ => message.map(|_| true),
        },
        Instruction::Do(Statement::Expect(expect)) => {
            let kinds = &expect.message.messages;
            message.map(|message| kinds.is_empty() || kinds.contains(&message))
        }
        _ => Some(false),
    }
}

/// Packets nested more deeply than any server sends; each level would multiply the work per byte.
fn nested() -> Broken {
    let reason = say!("it contains packets that contain packets");
    Broken { position: 0, field: String::new(), reason, is_lost: false, excerpt: Box::default() }
}

/// What is malformed, and in which bytes.
fn in_words(broken: &Broken) -> Said {
    let hex: String = broken.excerpt.iter().map(|byte| format!("{byte:02x}")).collect();
    match hex.is_empty() {
        true => broken.said(),
        false => say!("{}, in the packet {hex}", broken.said()),
    }
}
