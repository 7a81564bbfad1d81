//! What comes over a connection that lasts, and whose it is: an answer that a task waits for; a
//! heartbeat's; a handler's; or nobody's, which is a push.

pub(in crate::user) mod acknowledged;

use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use throng_base::Said;
use throng_metrics::Cause;
use throng_program::{Content, Handler, OnError, Statement};
use throng_protocol::framed::{Broken, MessageId, Packet, Protocol, Records};
use throng_protocol::grpc::CallError;
use throng_protocol::machine::Violation;

use crate::code::Instruction;
use crate::connector::sql_failure;
use crate::failure::{Ended, Failure, http_failure, http2_failure, shown};
use crate::looked::{Looked, PartsOfReply};
use crate::prepared::{AnswerPlan, HandlerPlan, Plan};
use crate::recorder::Attempt;
use crate::scope::scope;
use crate::shard::Lane;
use crate::trace::What;
use crate::user::connection::{Came, Connection, Later};
use crate::user::exchange::{Awaits, Exchange};
use crate::user::outcome::Onward;
use crate::user::task::{Doing, Task, Which, at};
use crate::user::{State, User};

/// Where a message comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Target,
    /// From a packet that contains packets.
    Packet,
    /// All packets of a push.
    Push,
    /// From what was kept for whoever asks next.
    Kept,
}

/// What could be read of a message that is broken: its kind, and the number that it carries.
type Read = (Option<MessageId>, Option<u64>);

/// As a code, a close of a WebSocket without one (RFC 6455, 7.1.5).
const NO_CODE: u16 = 1005;

impl User {
    pub(in crate::user) fn ping(
        &mut self,
        shard: &Lane,
        line: u8,
        payload: &[u8],
        cx: &mut Context<'_>,
    ) {
        shard.recorder.borrow_mut().messages.pings += 1;
        if let Err(error) = self.state.send_pong(line, payload, cx) {
            self.broken(shard, line, &error, cx);
        }
    }

    /// What came breaks the protocol: what follows cannot be read.
    pub(in crate::user) fn violated(
        &mut self,
        shard: &Lane,
        line: u8,
        violation: &Violation,
        cx: &mut Context<'_>,
    ) {
        let detail = match violation {
            Violation::Http(error) => {
                return self.lost(shard, line, http_failure(error), Ended::ByUs, cx);
            }
            Violation::Http2(violation) => {
                return self.lost(shard, line, http2_failure(violation), Ended::ByUs, cx);
            }
            Violation::Sql(error) => {
                return self.lost(shard, line, sql_failure(error), Ended::ByTarget, cx);
            }
            Violation::Declared(broken) => in_words(broken),
            violation => violation.said(),
        };
        if let Some(code) = violation.close_code() {
            let _ = self.state.send_close(line, code, cx);
        }
        if matches!(violation, Violation::Declared(_)) {
            shard.recorder.borrow_mut().messages.broken += 1;
            // Whoever waits for a message fails with the connection, and for this reason.
            if self.awaiting(line).next().is_none() {
                self.state.count_broken(detail.clone());
            }
        }
        let (cause, ended) = match violation {
            Violation::Call(CallError::Status(_)) => (Cause::GrpcStatus, Ended::ByTarget),
            violation if violation.is_reset() => (Cause::Reset, Ended::ByTarget),
            violation if violation.is_too_large() => (Cause::TooLarge, Ended::ByUs),
            violation if violation.is_foreign() => (Cause::WrongScheme, Ended::ByUs),
            _ => (Cause::Malformed, Ended::ByUs),
        };
        self.lost(shard, line, Failure::new(cause, detail), ended, cx);
    }

    /// The target sent its close frame: it is answered, and the connection is over.
    pub(in crate::user) fn closed_by_peer(
        &mut self,
        shard: &Lane,
        line: u8,
        (code, reason): (Option<u16>, &str),
        cx: &mut Context<'_>,
    ) {
        if self.session.is_closing(line) {
            // It answers ours; the end of the stream follows, or ours of a call that has ended.
            if self.state.lines.connection(line).is_some_and(Connection::is_call) {
                self.state.drop_connection(line, Ended::ByUs);
            }
            return;
        }
        let answer = code.filter(|code| *code != NO_CODE).unwrap_or(1000);
        let _ = self.state.send_close(line, answer, cx);
        let Some(Connection { machine, .. }) = self.state.lines.connection(line) else { return };
        let status = if machine.traits().codes { code.unwrap_or(NO_CODE) } else { 0 };
        let detail = machine.closed(code, &shown(reason.as_bytes()));
        let failure = Failure { status, ..Failure::new(Cause::of_close(status), detail) };
        self.lost(shard, line, failure, Ended::ByTarget, cx);
    }

    /// A message came.
    pub(in crate::user) fn heard(
        &mut self,
        shard: &Lane,
        line: u8,
        payload: &[u8],
        cx: &mut Context<'_>,
    ) {
        self.state.tell(|| What::Received(self.state.shown(line, payload)));
        self.hear(shard, line, payload, From::Target, cx);
    }

    /// Gives a message to whom it is for.
    pub(super) fn hear(
        &mut self,
        shard: &Lane,
        line: u8,
        payload: &[u8],
        from: From,
        cx: &mut Context<'_>,
    ) {
        let protocol = &self.state.link_in(shard, line).protocol;
        let (whole, mut behind) = (payload, Vec::new());
        let mut payload = payload;
        if let (Some(protocol), From::Kept | From::Push) = (protocol, from) {
            (payload, behind) = protocol.apart(whole);
        }
        let mut decoded = shard.decoded.take();
        let read = protocol.as_ref().map(|protocol| protocol.decode(payload, &mut decoded));
        let packets = protocol.as_ref().and_then(|protocol| protocol.packets(payload, &decoded));
        if let (Some(protocol), Some(Ok(_)), Some(packets)) = (protocol, &read, packets)
            && from == From::Target
        {
            // Only those in it are messages.
            Records::Declared(protocol).split(packets, &mut |packet| {
                self.hear(shard, line, packet, From::Packet, cx);
                self.state.lines.connection(line).is_some()
            });
            shard.decoded.replace(decoded);
            return;
        }
        if matches!(from, From::Target | From::Packet) {
            shard.recorder.borrow_mut().messages.received += 1;
        }
        let packet = match (read, packets) {
            (None, _) => None,
            (Some(Ok(packet)), None) => Some(packet),
            (Some(read), _) => {
                let broken = read.err().unwrap_or_else(nested);
                let read = (decoded.message(), decoded.correlation());
                shard.decoded.replace(decoded);
                return self.packet_broken(shard, line, &broken, read, cx);
            }
        };
        let others;
        let parts = self.state.lines.get(line).parts(payload);
        let mut looked = Looked::message(payload, parts, self.state.now - self.session.due);
        if let (Some(protocol), Some(packet)) = (protocol, packet) {
            if matches!(from, From::Target | From::Packet)
                && let Some(push) = goes_together(&mut self.state, line, protocol, packet, payload)
            {
                shard.decoded.replace(decoded);
                return push.map_or((), |push| self.hear(shard, line, &push, From::Push, cx));
            }
            looked.declared = Some((protocol, &decoded, packet.message));
            if !behind.is_empty() {
                others = PartsOfReply::of_push(protocol, &behind);
                (looked.parts, looked.whole) = (Some(&others), Some(whole));
            }
        }
        looked.proto = self.state.link_in(shard, line).reply(&shard.prepared);
        if from != From::Kept {
            let link = self.state.link_in(shard, line);
            let mut scope = scope!(self.state, shard);
            self.state.audiences.received(link, &looked, packet, &mut scope);
            looked.between = self.state.message_came(line);
        }
        self.give(shard, line, looked, packet, cx);
        shard.decoded.replace(decoded);
    }

    fn give(
        &mut self,
        shard: &Lane,
        line: u8,
        mut looked: Looked<'_>,
        packet: Option<Packet>,
        cx: &mut Context<'_>,
    ) {
        if self.session.is_closing(line) {
            // It is for nobody any more.
            shard.recorder.borrow_mut().messages.pushes += 1;
            return;
        }
        // Where messages do not say what they answer, handlers come before whoever takes anything.
        let unsure = packet.is_none() && self.awaiting(line).next().is_some();
        let handled = unsure && self.handler_of(shard, line, &looked, packet).is_some();
        if let Some(which) = self.who_awaits(shard, line, &mut looked, packet, handled) {
            return self.with(which, shard, cx, |active| active.answer_came(looked, packet));
        }
        let stay = self.session.pc;
        if packet.is_some() && self.state.answers_beat(line, stay, &looked, packet) {
            let bytes = self.state.wire_bytes(line, looked.whole());
            return self.beat_answered(line, bytes);
        }
        if let Some((handler, plan)) = self.handler_of(shard, line, &looked, packet) {
            return self.handle(shard, line, (handler, plan), &looked, cx);
        }
        if packet.is_none() && self.state.answers_beat(line, stay, &looked, packet) {
            let bytes = self.state.wire_bytes(line, looked.whole());
            return self.beat_answered(line, bytes);
        }
        if !self.state.link_in(shard, line).has_records() {
            self.note_joined(shard, line, &looked);
        }
        self.keep_or_pass(shard, line, &looked, packet);
    }

    /// A message that no task takes may contain the expected one among other records.
    fn note_joined(&mut self, shard: &Lane, line: u8, looked: &Looked<'_>) {
        if self.awaiting(line).next().is_none() || !looked.document.is_joined_json() {
            return;
        }
        let others = self.state.agenda.iter_mut().flat_map(|agenda| agenda.tasks_mut());
        for task in std::iter::once(&mut self.session).chain(others) {
            if task.awaits(line, Awaits::Message)
                && let Doing::Exchange(exchange) = &mut task.doing
            {
                exchange.rare(shard).joined += 1;
            }
        }
    }

    /// The tasks that wait for a message over this connection.
    fn awaiting(&self, line: u8) -> impl Iterator<Item = &Task> {
        let others = self.state.agenda.iter().flat_map(|agenda| agenda.tasks());
        std::iter::once(&self.session)
            .chain(others)
            .filter(move |one| one.awaits(line, Awaits::Message))
    }

    /// Whose answer the message is. Where replies do not say what they answer, who asked first is
    /// answered first. A task that takes whatever comes next does not where a handler is `handled`.
    fn who_awaits(
        &mut self,
        shard: &Lane,
        line: u8,
        looked: &mut Looked<'_>,
        packet: Option<Packet>,
        handled: bool,
    ) -> Option<Which> {
        let state = &mut self.state;
        // What it asks with is the state's as well: it is away meanwhile.
        let agenda = state.agenda.take();
        let mut first: Option<(Which, throng_base::Time)> = None;
        let others = agenda.iter().flat_map(|agenda| agenda.tasks()).enumerate();
        let others = others.map(|(place, task)| (Which::Other(place), task));
        for (which, task) in std::iter::once((Which::Session, &self.session)).chain(others) {
            let Some(exchange) = task.exchange_on(line) else { continue };
            let earlier = first.is_none_or(|(_, due)| task.due < due);
            if exchange.awaits != Awaits::Message || !earlier {
                continue;
            }
            if handled && takes_any(at(shard, state.session, task.pc).0) {
                continue;
            }
            looked.elapsed = state.now - task.due;
            if state.is_awaited((line, task.pc), exchange, looked, packet) {
                first = Some((which, task.due));
            }
        }
        state.agenda = agenda;
        let due = first.map_or(self.session.due, |(_, due)| due);
        looked.elapsed = state.now - due;
        first.map(|(which, _)| which)
    }

    /// The first handler that the message is for: of a `stay`, then of the link.
    fn handler_of<'a>(
        &mut self,
        shard: &'a Lane,
        line: u8,
        looked: &Looked<'_>,
        packet: Option<Packet>,
    ) -> Option<(&'a Handler, &'a HandlerPlan)> {
        let session = usize::from(self.state.session);
        let prepared = &shard.prepared;
        let link = self.state.lines.get(line).link;
        let own = prepared.program.sessions[session].links.get(usize::from(link));
        let of_stay = match (&self.session.doing, at(shard, self.state.session, self.session.pc)) {
            (Doing::Stay, (Instruction::Do(Statement::Stay(stay)), Plan::Stay(plan)))
                if stay.link == link =>
            {
                (&*stay.handlers, &*plan.handlers)
            }
            _ => (&[][..], &[][..]),
        };
        let of_link = own.map_or(&[][..], |link| &link.handlers);
        let of_link = of_link.iter().zip(&prepared.link(self.state.session, line).hears.handlers);
        let mut all = of_stay.0.iter().zip(of_stay.1).chain(of_link);
        let mut scope = scope!(self.state, shard);
        all.find(|(handler, plan)| {
            let kinds = &handler.message.messages;
            let kind =
                kinds.is_empty() || packet.is_some_and(|packet| kinds.contains(&packet.message));
            kind && plan.which.fits(&handler.message.checks, looked, &mut scope)
        })
    }

    /// No step takes the message now.
    fn keep_or_pass(
        &mut self,
        shard: &Lane,
        line: u8,
        looked: &Looked<'_>,
        packet: Option<Packet>,
    ) {
        let link = self.state.link_in(shard, line);
        let is_reply = packet.is_some_and(|packet| link.is_reply(packet.message));
        // What comes right behind an answer may be the next one, and so may what comes while the
        // user asks something elsewhere; replies to what was sent may come while the user thinks.
        let (goes_on, asks) = match &self.session.doing {
            Doing::Step => (true, true),
            Doing::Exchange(_) if self.session.line != line => (link.expected.any, true),
            Doing::Exchange(_) => (self.is_any_next(shard), true),
            Doing::Opening(_) => (link.expected.any, true),
            _ => (false, false),
        };
        let keeps = match packet {
            Some(packet) => {
                let any = link.expected.any && goes_on;
                any || (asks || is_reply) && link.expected.has(packet.message)
            }
            None if goes_on => true,
            // What a message causes may come before its acknowledgement.
            None => {
                asks && {
                    let mut scope = scope!(self.state, shard);
                    let mut patterns = link.expected.patterns();
                    patterns.any(|(look, checks)| look.fits(checks, looked, &mut scope))
                }
            }
        };
        match (keeps, self.state.lines.connection_mut(line)) {
            (true, Some(connection)) => {
                let dropped = connection.keep_message(looked.whole(), is_reply);
                shard.recorder.borrow_mut().messages.dropped += dropped;
            }
            (true, None) => self.state.keep_left(line, looked.whole(), is_reply),
            (false, _) => self.state.pass(line, is_reply),
        }
    }

    /// Whether the session takes any message right after the response that it waits for.
    fn is_any_next(&self, shard: &Lane) -> bool {
        let (next, _) = at(shard, self.state.session, self.session.pc + 1);
        matches!(next, Instruction::Do(Statement::Expect(expect)) if expect.message.is_any())
            && next.link() == Some(self.state.lines.get(self.session.line).link)
    }

    /// A packet breaks the declaration; the next one can be read. Where it is known who waits for
    /// it, that step has failed; whose any other was is not known, and it is counted alone.
    fn packet_broken(
        &mut self,
        shard: &Lane,
        line: u8,
        broken: &Broken,
        read: Read,
        cx: &mut Context<'_>,
    ) {
        shard.recorder.borrow_mut().messages.broken += 1;
        let detail = in_words(broken);
        let finding = (Cause::Malformed, detail.clone());
        if let Some(which) = self.who_awaits_broken(shard, line, read) {
            let protocol = self.state.link_in(shard, line).protocol.as_ref().zip(read.0);
            let goes_on = protocol.is_some_and(|(protocol, message)| protocol.goes_on(message));
            return self.with(which, shard, cx, |active| {
                let asks = matches!(active.instruction(), Instruction::Do(Statement::Request(_)));
                match &mut active.task.doing {
                    // What follows belongs to the same reply.
                    Doing::Exchange(exchange) if goes_on && asks => exchange.found(finding, shard),
                    _ => active.message_came(Err(finding)),
                }
            });
        }
        let stay = self.session.pc;
        if self.state.is_broken_beat(line, stay, read) {
            return self.beat_broken(line, finding);
        }
        self.state.count_broken(detail.clone());
        let mut session = self.session(shard);
        // A step that cannot fail has no word about it: then it is what goes for the session.
        let instruction = session.instruction();
        let failing = match instruction.step() {
            Some(_) => instruction.failing(),
            None => session.of_session().all.first().map(|it| it.failing()).unwrap_or_default(),
        };
        if failing.then == OnError::Stop
            && let Some(step) = shard.prepared.program.broken
        {
            session.stop_for(step, Cause::Malformed, detail.clone());
        }
        let awaits = session.task.awaits(line, Awaits::Message);
        match failing.then {
            OnError::Next if awaits && session.user.running => {
                session.withdraw_exchange();
                session.interrupt();
                session.leave_iteration(Onward::NextStep);
            }
            OnError::Leave | OnError::Stop if awaits => {
                session.withdraw_exchange();
                session.interrupt();
                session.leave(Onward::NextStep);
            }
            then => session.answer_unasked(then),
        }
    }

    /// Whose answer the broken message is, as far as that is known.
    fn who_awaits_broken(&self, shard: &Lane, line: u8, read: Read) -> Option<Which> {
        let is_sole = self.is_sole_exchange(line);
        let is_its = |task: &Task| {
            task.awaits(line, Awaits::Message)
                && task.exchange_on(line).is_some_and(|exchange| {
                    let (instruction, _) = at(shard, self.state.session, task.pc);
                    let its = self.state.is_broken_answer(line, instruction, exchange, read);
                    its.unwrap_or(is_sole)
                })
        };
        if is_its(&self.session) {
            return Some(Which::Session);
        }
        self.state.agenda.as_ref()?.tasks().iter().position(is_its).map(Which::Other)
    }

    /// Whether one message is waited for, and the protocol has neither numbers nor messages that
    /// come unasked: then the next one is it, whatever can be read of it.
    fn is_sole_exchange(&self, line: u8) -> bool {
        let is_silent = |protocol: &Protocol| {
            !protocol.correlates() && protocol.messages().all(|(_, info)| !info.push)
        };
        self.state.protocol(line).is_some_and(is_silent)
            && !self.state.lines.get(line).beats.waits()
            && self.awaiting(line).count() == 1
    }
}

impl State {
    /// How long after the one before a message came, on a stream of them.
    fn message_came(&mut self, line: u8) -> Option<Duration> {
        let now = self.now;
        match self.lines.connection_mut(line)?.message_came(now) {
            Came::Untimed => None,
            Came::Behind(time) => Some(time),
            Came::First { step, time } => {
                self.shard.recorder.borrow_mut().first_event(step, time);
                None
            }
        }
    }

    /// Whether the message is the one that the step there waits for.
    fn is_awaited(
        &mut self,
        (line, pc): (u8, u32),
        exchange: &Exchange,
        looked: &Looked<'_>,
        packet: Option<Packet>,
    ) -> bool {
        let shard = Rc::clone(&self.shard);
        let (instruction, plan) = at(&shard, self.session, pc);
        let link = self.link_in(&shard, line);
        let mut scope = scope!(self, &shard);
        let which = match plan {
            Plan::Answer(AnswerPlan { which, .. }) => Some(which),
            _ => None,
        };
        match (instruction, packet) {
            (Instruction::Do(Statement::Request(request)), _)
                if request.message.content.verb().is_some() =>
            {
                false
            }
            (Instruction::Do(Statement::Request(request)), None) => {
                which.is_none_or(|which| which.fits(&request.answer.checks, looked, &mut scope))
            }
            (Instruction::Do(Statement::Request(request)), Some(packet)) => {
                let unasked = link.comes_unasked(packet.message);
                match (&request.message.content, packet.correlation) {
                    (Content::Declared(_), Some(carried)) => {
                        exchange.number > 0 && carried == u64::from(exchange.number) && !unasked
                    }
                    (Content::Declared(declared), None) => {
                        link.answers(packet.message, declared.template.message)
                    }
                    // To bytes that are no message of the protocol, whatever is no push.
                    _ => !unasked,
                }
            }
            (Instruction::Do(Statement::Expect(expect)), packet) => {
                let kinds = &expect.message.messages;
                let kind = kinds.is_empty()
                    || packet.is_some_and(|packet| kinds.contains(&packet.message));
                let fits = |which: &crate::look::Look| {
                    which.fits(&expect.message.checks, looked, &mut scope)
                };
                kind && which.is_some_and(fits)
            }
            _ => false,
        }
    }

    /// Whether the message that the step there waits for is the one that is broken; None where
    /// what was read of it does not say.
    fn is_broken_answer(
        &self,
        line: u8,
        instruction: &Instruction,
        exchange: &Exchange,
        (message, carried): Read,
    ) -> Option<bool> {
        let link = self.link(line);
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

    /// A message that is nobody's.
    pub(in crate::user) fn pass(&mut self, line: u8, is_reply: bool) {
        let mut recorder = self.shard.recorder.borrow_mut();
        match is_reply {
            true => recorder.messages.unasked += 1,
            false => {
                recorder.messages.pushes += 1;
                drop(recorder);
                self.first_message(line);
            }
        }
    }

    /// Bytes that break the declaration, in a row of their own.
    #[allow(clippy::needless_pass_by_value)] // A sentence is handed over to what holds it.
    fn count_broken(&mut self, detail: Said) {
        if let Some(step) = self.shard.prepared.program.broken {
            self.failed_apart(step, &Attempt::default(), &(Cause::Malformed, detail.clone()));
        }
    }

    /// Keeps a message of a connection that is over for a step behind, where one may take it.
    fn keep_left(&mut self, line: u8, payload: &[u8], is_reply: bool) {
        match self.lines.get_mut(line).loss.as_mut().and_then(|loss| loss.left.as_mut()) {
            Some(left) => left.later.push(Later::Message { payload: payload.to_vec(), is_reply }),
            None => self.pass(line, is_reply),
        }
    }
}

/// Whether a packet is one of several of a push: then all of them, if it is the last one.
fn goes_together(
    state: &mut State,
    line: u8,
    protocol: &Protocol,
    packet: Packet,
    bytes: &[u8],
) -> Option<Option<Vec<u8>>> {
    let connection = state.lines.connection_mut(line)?;
    let (begun, message) = (connection.begun_push(), packet.message);
    let is_part = |first: &MessageId| protocol.parts_of_push(*first).any(|it| it == message);
    let first = match begun.filter(is_part) {
        None if !packet.goes_on || !protocol.comes_unasked(message) => return None,
        first => first.unwrap_or(message),
    };
    let mut packets = connection.take_push().unwrap_or_default();
    if first == message && begun.is_some() {
        // Of the one before, the rest does not come any more.
        packets.clear();
        state.pass(line, false);
    }
    protocol.join(&mut packets, bytes);
    if !packet.goes_on {
        return Some(Some(packets));
    }
    state.lines.connection_mut(line)?.keep_push(first, packets);
    Some(None)
}

/// Whether the next message is the answer that is waited for, whatever it is.
fn takes_any(instruction: &Instruction) -> bool {
    matches!(instruction, Instruction::Do(Statement::Request(request)) if request.answer.is_any())
}

/// Packets in packets in packets: nothing that a server sends, and a way to make much of few bytes.
fn nested() -> Broken {
    let reason = say!("it contains packets that contain packets");
    Broken { position: 0, field: String::new(), reason, is_lost: false, excerpt: Box::default() }
}

/// What is broken, and the bytes it is in.
fn in_words(broken: &Broken) -> Said {
    let hex: String = broken.excerpt.iter().map(|byte| format!("{byte:02x}")).collect();
    match hex.is_empty() {
        true => broken.said(),
        false => say!("{}, in the packet {hex}", broken.said()),
    }
}
