//! What a user says on its connection, and how it waits for what it wants to hear: `send`,
//! `request`, `expect`. What comes is given out in [`super::hear`].

use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use throng_base::{Random, StepId, Time};
use throng_metrics::Cause;
use throng_program::{
    Check, Content, Declared, Expect, Instruction, Message, MessageKind, Request, Save, Send,
};
use throng_protocol::framed::{EncodeError, Packet};
use throng_protocol::stream;
use throng_protocol::websocket::{self, Opcode, write_close, write_frame};

use super::besides::no_room;
use super::flow::at_pc;
use super::link::{Connection, Ended, Later, Peer};
use super::outcome::Onward;
use super::{Doing, User};
use crate::connector::Failure;
use crate::evidence::{EVIDENCE_BYTES_MAX, Exchange};
use crate::prepared::{AnswerPlan, Plan, Prepared};
use crate::recorder::Attempt;
use crate::scope::{UserScope, scope};
use crate::trace::Shown;
use crate::verify::{Finding, Look, Looked};

/// How long a message may wait for a target that does not read.
const SENDING_MAX: Duration = Duration::from_secs(30);

/// A message that is awaited.
#[derive(Clone, Copy)]
pub(super) struct Awaited {
    bytes_in: u64,
    bytes_out: u64,
    first_byte: Time,
    /// What the reply carries, where replies carry something.
    number: u32,
    /// What was sent is in this row of the ledger, if it is below [`NO_ROW`].
    row: u16,
    /// What tells it apart there.
    id: u64,
}

const NO_ROW: u16 = u16::MAX;

/// A message that is on its way.
#[derive(Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) bytes: u64,
    /// What its reply will carry; 0 where replies carry nothing.
    pub(super) number: u32,
    pub(super) delivery: Option<(u16, u64)>,
}

impl User {
    /// The verb `send`: done when the message is on its way.
    pub(super) fn send_only(&mut self, send: &Send, cx: &mut Context<'_>) {
        if self.connection.is_none() {
            return self.without_connection(send.step);
        }
        self.flight_begins(send.step);
        let sent = match self.send_step(send.step, &send.message, cx) {
            Ok(sent) => sent,
            Err(finding) => return self.not_written(send.step, finding),
        };
        let (row, id) = sent.as_ref().ok().and_then(|sent| sent.delivery).unwrap_or((NO_ROW, 0));
        let bytes_out = sent.as_ref().map_or(0, |sent| sent.bytes);
        let sending = Doing::Sending(Awaited { row, id, bytes_out, ..Awaited::NOTHING });
        self.wait_for(sending, self.now + SENDING_MAX);
        match sent {
            Ok(_) if self.is_sent() => self.sent(),
            Ok(_) => {}
            Err(error) => self.broken(&error),
        }
    }

    /// The socket has taken the message.
    pub(super) fn sent(&mut self) {
        at_pc!(self, _shard, instruction, _plan);
        let bytes_out = match &self.doing {
            Doing::Sending(sent) => sent.bytes_out,
            _ => 0,
        };
        if let Instruction::Send(send) = instruction {
            self.step_ok(send.step, &Attempt { bytes_out, ..Attempt::default() });
        }
        self.next_step();
    }

    /// The connection was lost before the message was on its way.
    pub(super) fn sending_failed(&mut self, sent: &Awaited, failure: &Failure) {
        at_pc!(self, _shard, instruction, _plan);
        self.withdraw(sent);
        if let Instruction::Send(send) = instruction {
            let finding = (failure.cause, failure.detail.clone());
            let onward = Onward::Anew { refused: false };
            self.step_failed(send.step, &Attempt::default(), finding, onward);
        }
    }

    pub(super) fn sending_timed_out(&mut self, sent: Awaited) {
        let waited = throng_base::units::format_duration(self.now - self.due);
        let detail = format!("the target has not read the message after {waited}");
        let failure = Failure::new(Cause::Timeout, detail);
        match self.in_body {
            true => {
                self.doing = Doing::Sending(sent);
                self.lost(&failure, Ended::TimedOut);
            }
            false => {
                self.drop_connection(Ended::TimedOut);
                self.sending_failed(&sent, &failure);
            }
        }
    }

    /// The verb `expect`: waits for the next message that is meant.
    pub(super) fn expect(&mut self, expect: &Expect, cx: &mut Context<'_>) {
        if self.connection.is_none() {
            return self.without_connection(expect.step);
        }
        self.flight_begins(expect.step);
        self.wait_for(Doing::Message(Awaited::NOTHING), self.now + expect.timeout);
        if !self.in_body {
            self.hear_later(cx);
        }
    }

    /// The verb `request`: sends and waits, timed as one.
    pub(super) fn request(&mut self, request: &Request, cx: &mut Context<'_>) {
        if self.protocol().is_none() && !self.in_body {
            self.forget_later(cx);
        }
        if self.connection.is_none() {
            return self.without_connection(request.step);
        }
        self.flight_begins(request.step);
        let sent = match self.send_step(request.step, &request.message, cx) {
            Ok(sent) => sent,
            Err(finding) => return self.not_written(request.step, finding),
        };
        let Sent { bytes, number, delivery } = *sent.as_ref().unwrap_or(&Sent::default());
        let (row, id) = delivery.unwrap_or((NO_ROW, 0));
        let awaited = Awaited { bytes_out: bytes, number, row, id, ..Awaited::NOTHING };
        self.wait_for(Doing::Message(awaited), self.now + request.timeout);
        if let Err(error) = sent {
            self.broken(&error);
        }
    }

    /// What came before a request cannot be its answer.
    fn forget_later(&mut self, cx: &mut Context<'_>) {
        let mut later = self.take_kept();
        while let Some(one) = later.pop() {
            match one {
                // The reader has to see all bytes, or it would lose its place in the stream.
                Later::Surplus(bytes) => self.received(&bytes, cx),
                Later::Bytes { .. } | Later::Message { .. } => {
                    self.shard.recorder.borrow_mut().messages.pushes += 1;
                }
            }
        }
    }

    /// A message could not be written: nothing was sent.
    fn not_written(&mut self, step: StepId, finding: Finding) {
        self.step_failed(step, &Attempt::default(), finding, Onward::NextStep);
    }

    /// Sends the message of a step, which may have to be delivered to others.
    fn send_step(
        &mut self,
        step: StepId,
        message: &Message,
        cx: &mut Context<'_>,
    ) -> Result<std::io::Result<Sent>, Finding> {
        let sent = self.send_message(message, cx)?;
        let row = self.shard.prepared.delivery_of(step);
        Ok(match (sent, row) {
            // What is cut on purpose reaches nobody.
            (Ok(sent), Some(row)) if message.cut.is_none() => {
                let delivery = self.enter_sent_message(row, message);
                Ok(Sent { delivery, ..sent })
            }
            (sent, _) => sent,
        })
    }

    /// Sends a message; the outer error is a message that could not be written. What was sent lies
    /// in the shard's buffer for a moment, unless it is the same for all users.
    pub(super) fn send_message(
        &mut self,
        message: &Message,
        cx: &mut Context<'_>,
    ) -> Result<std::io::Result<Sent>, Finding> {
        let shard = Rc::clone(&self.shard);
        let (kind, number) = match &message.content {
            Content::Plain { kind, content } => {
                if let Some(fixed) = content.as_literal() {
                    let sent = self.send_content(*kind, fixed, message.cut, cx);
                    return Ok(sent.map(|bytes| Sent { bytes, ..Sent::default() }));
                }
                let mut written = shard.content_buffer.borrow_mut();
                written.clear();
                let mut scope = scope!(self, &shard);
                let rendered = content.render(&mut written, &mut scope);
                rendered.map_err(|fault| scope.finding(fault))?;
                (*kind, 0)
            }
            Content::Declared(declared) => (MessageKind::Binary, self.encode(declared)?),
        };
        let content = shard.content_buffer.borrow();
        let sent = self.send_content(kind, &content, message.cut, cx);
        Ok(sent.map(|bytes| Sent { bytes, number, ..Sent::default() }))
    }

    /// Writes a declared message into the shard's buffer; gives the number that its reply carries.
    fn encode(&mut self, declared: &Declared) -> Result<u32, Finding> {
        let shard = Rc::clone(&self.shard);
        let Some(protocol) = &shard.prepared.sessions[usize::from(self.session)].links[0].protocol
        else {
            // sentences
            let detail = "the session has no protocol".to_string();
            return Err((Cause::GeneratorFailed, detail));
        };
        let number = match u32::try_from(protocol.correlation_max()).unwrap_or(u32::MAX) {
            0 => 0,
            _ if declared.template.gives_correlation() => 0,
            // 0 is for what nobody has asked for.
            most => {
                self.number = if self.number >= most { 1 } else { self.number + 1 };
                self.number
            }
        };
        let mut out = shard.content_buffer.borrow_mut();
        out.clear();
        let mut scope = scope!(self, &shard);
        let mut leaf = |leaf: u16, out: &mut Vec<u8>| {
            let text = &declared.leaves[usize::from(leaf)];
            match text.as_expression() {
                Some(expression) => expression.evaluate(&mut scope).map(Some),
                None => text.render(out, &mut scope).map(|()| None),
            }
        };
        let template = &declared.template;
        match protocol.encode(template, u64::from(number), &mut leaf, &mut out) {
            Ok(()) => Ok(number),
            Err(EncodeError::Leaf(fault)) => Err(scope.finding(fault)),
            Err(EncodeError::Value { field, reason }) => {
                let detail = format!("the field `{field}`: {reason}");
                Err((Cause::ExpressionFailed, detail))
            }
        }
    }

    fn send_content(
        &mut self,
        kind: MessageKind,
        content: &[u8],
        cut: Option<u32>,
        cx: &mut Context<'_>,
    ) -> std::io::Result<u64> {
        let shard = Rc::clone(&self.shard);
        shard.recorder.borrow_mut().messages.sent += 1;
        let cut_to = |bytes: &[u8]| cut.map_or(bytes.len(), |cut| bytes.len().min(cut as usize));
        if shard.is_traced() {
            self.trace_sent(content);
        }
        let Some(Connection { peer: Peer::WebSocket(_), deflate, .. }) = self.connection else {
            let content = &content[..cut_to(content)];
            self.send(content, cx)?;
            return Ok(content.len() as u64);
        };
        let opcode = match kind {
            MessageKind::Text => Opcode::Text,
            MessageKind::Binary => Opcode::Binary,
        };
        let mask = Some(self.random.next_u32().to_ne_bytes());
        let mut buffer = shard.write_buffer.borrow_mut();
        buffer.clear();
        if deflate {
            let mut deflater = shard.deflater.borrow_mut();
            websocket::write_message_deflated(&mut buffer, opcode, mask, content, &mut deflater);
        } else {
            write_frame(&mut buffer, opcode, true, false, mask, content);
        }
        let cut = cut_to(&buffer);
        self.send(&buffer[..cut], cx)?;
        Ok(cut as u64)
    }

    /// Begins or answers the close handshake.
    pub(super) fn send_close(&mut self, code: u16, cx: &mut Context<'_>) -> std::io::Result<()> {
        let mut frame = Vec::with_capacity(16);
        let mask = Some(self.random.next_u32().to_ne_bytes());
        write_close(&mut frame, Some(code), "", mask);
        self.send(&frame, cx)
    }

    /// Answers a ping. How often something comes must not change what the user draws.
    pub(super) fn send_pong(
        &mut self,
        payload: &[u8],
        cx: &mut Context<'_>,
    ) -> std::io::Result<()> {
        let mask = Random::new(self.id.0 ^ self.now.as_nanos()).next_u32().to_ne_bytes();
        let mut frame = Vec::with_capacity(payload.len() + 16);
        write_frame(&mut frame, Opcode::Pong, true, false, Some(mask), payload);
        self.send(&frame, cx)
    }

    /// Bytes of a raw stream came: how many of them were used. The others are the next answer's.
    pub(super) fn stream_received(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> usize {
        at_pc!(self, shard, instruction, plan);
        let Some(looking) =
            looking(instruction, plan).filter(|_| matches!(self.doing, Doing::Message(_)))
        else {
            self.heard(bytes, cx);
            return bytes.len();
        };
        let elapsed = self.now - self.due;
        let Some(Connection { peer: Peer::Stream(reader), .. }) = &mut self.connection else {
            return bytes.len();
        };
        let mut verdict = Ok(());
        let limit = shard.prepared.program.limits.message_bytes_max;
        let mut scope = scope!(self, &shard);
        let mut sink = |answer: &[u8]| {
            let looked = Looked::new(None, answer, elapsed);
            verdict = looking.judge(&looked, &mut scope);
        };
        let read = reader.receive(bytes, looking.until, limit, looking.needs_bytes, &mut sink);
        let used = read.map_or(bytes.len(), |progress| progress.consumed);
        if shard.is_traced() {
            self.trace_received(&bytes[..used]);
        }
        if let Doing::Message(awaited) = &mut self.doing {
            awaited.came(used as u64, self.now);
        }
        match read {
            Ok(progress) if progress.complete => {
                shard.recorder.borrow_mut().messages.received += 1;
                self.message_came(verdict);
            }
            Ok(_) => {}
            Err(error) => {
                self.lost(&Failure::new(Cause::TooLarge, error.to_string()), Ended::ByUs);
            }
        }
        used
    }

    /// Whether the message is the one that the step there waits for.
    pub(super) fn is_awaited(
        pc: u32,
        awaited: &Awaited,
        looked: &Looked<'_>,
        packet: Option<Packet>,
        scope: &mut UserScope<'_>,
    ) -> bool {
        let session = usize::from(scope.session);
        let prepared = &scope.shard.prepared;
        let code = &prepared.program.sessions[session].code;
        match (code.get(pc as usize), prepared.plans[session].get(pc as usize)) {
            (Some(Instruction::Request(request)), plan) => {
                match (packet, &request.message.content) {
                    (None, _) => match plan {
                        Some(Plan::Answer(plan)) => {
                            plan.which.fits(&request.answer.checks, looked, scope)
                        }
                        _ => true,
                    },
                    (
                        Some(packet @ Packet { correlation: Some(carried), .. }),
                        Content::Declared(_),
                    ) => {
                        let unasked =
                            prepared.sessions[session].links[0].comes_unasked(packet.message);
                        awaited.number > 0 && carried == u64::from(awaited.number) && !unasked
                    }
                    (Some(packet), Content::Declared(declared)) => prepared.sessions[session].links
                        [0]
                    .answers(packet.message, declared.template.message),
                    // To bytes that are no message of the protocol, whatever is no push.
                    (Some(packet), Content::Plain { .. }) => {
                        !prepared.sessions[session].links[0].comes_unasked(packet.message)
                    }
                }
            }
            (Some(Instruction::Expect(expect)), Some(Plan::Answer(AnswerPlan { which, .. }))) => {
                let kinds = &expect.message.messages;
                let kind = kinds.is_empty()
                    || packet.is_some_and(|packet| kinds.contains(&packet.message));
                kind && which.fits(&expect.message.checks, looked, scope)
            }
            _ => false,
        }
    }

    /// The message that the user waits for is here.
    pub(super) fn answer_came(&mut self, looked: &Looked<'_>, packet: Option<Packet>) {
        at_pc!(self, shard, instruction, plan);
        let bytes = self.wire_bytes(looked.document.bytes());
        if let Doing::Message(awaited) = &mut self.doing {
            awaited.came(bytes, self.now);
        }
        let mut scope = scope!(self, &shard);
        let verdict = match wrong_reply(&shard.prepared, self.session, instruction, packet) {
            Some(finding) => Err(finding),
            None => looking(instruction, plan)
                .map_or(Ok(()), |looking| looking.judge(looked, &mut scope)),
        };
        if let (Err((cause, _)), Some(step)) = (&verdict, awaiting_step(instruction)) {
            let mut recorder = shard.recorder.borrow_mut();
            if recorder.is_new(step, *cause, 0) {
                let received = Shown::first(looked.document.bytes(), EVIDENCE_BYTES_MAX);
                recorder.exchange = Exchange { sent: None, received: Some(received) };
            }
        }
        self.message_came(verdict);
    }

    /// The reply that is waited for came, and breaks the declaration.
    pub(super) fn answer_broken(&mut self, finding: Finding) {
        self.message_came(Err(finding));
    }

    fn message_came(&mut self, verdict: Result<(), Finding>) {
        let Doing::Message(awaited) = std::mem::replace(&mut self.doing, Doing::Step) else {
            return;
        };
        at_pc!(self, _shard, instruction, plan);
        match verdict {
            Ok(()) => {
                // That a login was answered is not enough: who is sent away behind each of them
                // waits longer and longer.
                if self.is_online() {
                    self.refusals = 0;
                }
                if matches!(plan, Plan::Answer(AnswerPlan { logs_in: true, .. })) {
                    self.logged_in();
                }
                if let Instruction::Expect(expect) = instruction {
                    self.trace_saves(&expect.saves);
                }
                if let Instruction::Request(request) = instruction {
                    self.trace_saves(&request.saves);
                }
                if let Some(step) = awaiting_step(instruction) {
                    self.step_ok(step, &awaited.attempt(self.now, self.due));
                }
                self.next_step();
            }
            Err(finding) => {
                self.message_failed(&awaited, finding, Some(self.now), Onward::NextStep);
            }
        }
    }

    /// The awaited message was wrong (then `came` says when it came), or never came.
    pub(super) fn message_failed(
        &mut self,
        awaited: &Awaited,
        finding: Finding,
        came: Option<Time>,
        onward: Onward,
    ) {
        at_pc!(self, _shard, instruction, _plan);
        self.withdraw(awaited);
        if let Some(step) = awaiting_step(instruction) {
            let mut attempt = awaited.attempt(self.now, self.due);
            attempt.latency = came.map(|came| came - self.due);
            self.step_failed(step, &attempt, finding, onward);
        }
    }

    /// What was sent is not to be expected anywhere.
    pub(super) fn withdraw(&self, awaited: &Awaited) {
        if awaited.row != NO_ROW {
            self.withdraw_sent(awaited.row, awaited.id);
        }
    }

    /// No message in time. Where messages do not say what they answer, what still comes could be
    /// taken for the next answer, so the connection is of no more use.
    pub(super) fn message_timed_out(&mut self, awaited: Awaited) {
        at_pc!(self, _shard, instruction, _plan);
        let waited = throng_base::units::format_duration(self.now - self.due);
        let detail = match awaited.bytes_in {
            0 => format!("no answer after {waited}"),
            bytes => format!("{bytes} bytes, but no complete answer after {waited}"),
        };
        let named = match instruction {
            Instruction::Expect(expect) => !expect.message.is_any(),
            Instruction::Request(request) => awaited.number > 0 || !request.answer.is_any(),
            _ => false,
        };
        if !named && self.in_body {
            self.doing = Doing::Message(awaited);
            return self.lost(&Failure::new(Cause::Timeout, detail), Ended::TimedOut);
        }
        // What it waits for may be among what we have dropped.
        let finding = match (instruction, self.dropped()) {
            (Instruction::Expect(_), dropped) if dropped > 0 => {
                let dropped = throng_base::units::format_count(dropped);
                // sentences
                let reason = format!("{dropped} messages were dropped");
                (Cause::MessagesDropped, no_room(&reason))
            }
            _ => (Cause::Timeout, detail),
        };
        let onward = match named {
            true => Onward::NextStep,
            false => {
                self.drop_connection(Ended::TimedOut);
                Onward::Anew { refused: false }
            }
        };
        self.message_failed(&awaited, finding, Some(self.now), onward);
    }
}

impl Awaited {
    /// What the reply carries; 0 where replies carry nothing.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    const NOTHING: Awaited = Awaited {
        bytes_in: 0,
        bytes_out: 0,
        first_byte: Time::ZERO,
        number: 0,
        row: NO_ROW,
        id: 0,
    };

    pub(super) fn came(&mut self, bytes: u64, now: Time) {
        if self.bytes_in == 0 {
            self.first_byte = now;
        }
        self.bytes_in += bytes;
    }

    fn attempt(&self, now: Time, due: Time) -> Attempt {
        Attempt {
            latency: Some(now - due),
            first_byte: (self.first_byte > Time::ZERO).then(|| self.first_byte - due),
            code: 0,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            ..Attempt::default()
        }
    }
}

/// A reply that carries the number of the request, but is of a kind that answers something else.
fn wrong_reply(
    prepared: &Prepared,
    session: u16,
    instruction: &Instruction,
    packet: Option<Packet>,
) -> Option<Finding> {
    let plan = &prepared.sessions[usize::from(session)].links[0];
    let (Some(packet), Some(protocol), Instruction::Request(request)) =
        (packet, &plan.protocol, instruction)
    else {
        return None;
    };
    let Content::Declared(declared) = &request.message.content else { return None };
    if plan.answers(packet.message, declared.template.message) {
        return None;
    }
    let came = &protocol.info(packet.message).name;
    let sent = &protocol.info(declared.template.message).name;
    let detail = format!("`{came}` came, which is no answer to `{sent}`");
    Some((Cause::Malformed, detail))
}

/// What is looked at in the awaited message.
struct Looking<'a> {
    checks: &'a [Check],
    saves: &'a [Save],
    look: &'a Look,
    until: &'a stream::Until,
    /// Somebody looks at it: it has to be kept until it is complete.
    needs_bytes: bool,
}

fn looking<'a>(instruction: &'a Instruction, plan: &'a Plan) -> Option<Looking<'a>> {
    let (checks, saves) = match instruction {
        Instruction::Expect(expect) => (&expect.checks, &expect.saves),
        Instruction::Request(request) => (&request.checks, &request.saves),
        _ => return None,
    };
    let Plan::Answer(AnswerPlan { until, look, .. }) = plan else { return None };
    let needs_bytes = !checks.is_empty() || !saves.is_empty();
    Some(Looking { checks, saves, look, until, needs_bytes })
}

impl Looking<'_> {
    fn judge(&self, looked: &Looked<'_>, scope: &mut UserScope<'_>) -> Result<(), Finding> {
        self.look.judge(self.checks, self.saves, looked, scope)
    }
}

fn awaiting_step(instruction: &Instruction) -> Option<StepId> {
    match instruction {
        Instruction::Expect(expect) => Some(expect.step),
        Instruction::Request(request) => Some(request.step),
        _ => None,
    }
}
