//! Messages on long-lived connections: WebSocket messages and raw streams. The target may speak
//! at any time; what nobody asked for is counted as a push.

use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use throng_base::{Random, StepId, Time};
use throng_metrics::Cause;
use throng_program::{Check, Expect, Instruction, Message, MessageKind, Request, Save, Send};
use throng_protocol::stream;
use throng_protocol::websocket::{self, Opcode, WebSocketError, write_close, write_frame};

use super::flow::at_pc;
use super::link::{Connection, Ended, Later, Peer};
use super::outcome::Onward;
use super::stay::{Listening, Meant};
use super::{Doing, User};
use crate::connector::Failure;
use crate::prepared::{AnswerPlan, Plan};
use crate::recorder::Attempt;
use crate::scope::{UserScope, scope};
use crate::verify::{Finding, Look, Looked};

/// Messages kept for whoever asks next, with their bytes; more are pushes like any other.
const LATER_MAX: usize = 64;
const LATER_BYTES_MAX: usize = 1024 * 1024;
/// How long a message may wait for a target that does not read.
const SENDING_MAX: Duration = Duration::from_secs(30);

/// A message that is awaited.
#[derive(Clone, Copy, Default)]
pub(super) struct Awaited {
    bytes_in: u64,
    bytes_out: u64,
    first_byte: Time,
}

impl Awaited {
    fn attempt(&self, now: Time, due: Time) -> Attempt {
        Attempt {
            latency: Some(now - due),
            first_byte: (self.first_byte > Time::ZERO).then(|| self.first_byte - due),
            code: 0,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
        }
    }
}

/// What the sink of the frame machine found.
#[derive(Default)]
struct Heard {
    answer: Option<Result<usize, Finding>>,
    later: Vec<Later>,
    pushes: u64,
    pings: u64,
    pongs: Vec<u8>,
    /// For who listens to every step.
    told: Vec<Vec<u8>>,
    close: Option<Option<u16>>,
    /// The heartbeat that was due then is answered, by so many bytes.
    beat: Option<(Time, usize)>,
}

impl User {
    /// The verb `send`: done when the message is on its way.
    pub(super) fn send_only(&mut self, send: &Send, cx: &mut Context<'_>) {
        if self.connection.is_none() {
            return self.without_connection(send.step);
        }
        self.flight_begins();
        let sent = match self.send_message(&send.message, cx) {
            Ok(sent) => sent,
            Err(finding) => return self.not_written(send.step, finding),
        };
        self.wait_for(Doing::Sending, self.now + SENDING_MAX);
        match sent {
            Ok(_) if self.is_sent() => self.sent(),
            Ok(_) => {}
            Err(error) => self.broken(&error),
        }
    }

    /// The socket has taken the message.
    pub(super) fn sent(&mut self) {
        at_pc!(self, _shard, instruction, _plan);
        if let Instruction::Send(send) = instruction {
            self.step_ok(send.step, &Attempt::default());
        }
        self.next_step();
    }

    /// The connection was lost before the message was on its way.
    pub(super) fn sending_failed(&mut self, failure: &Failure) {
        at_pc!(self, _shard, instruction, _plan);
        if let Instruction::Send(send) = instruction {
            let finding = (failure.cause, failure.detail.clone());
            let onward = Onward::Anew { refused: false };
            self.step_failed(send.step, &Attempt::default(), finding, onward);
        }
    }

    pub(super) fn sending_timed_out(&mut self) {
        self.drop_connection(Ended::TimedOut);
        let waited = throng_base::units::format_duration(self.now - self.due);
        let detail = format!("the target has not read the message after {waited}");
        self.sending_failed(&Failure::new(Cause::Timeout, detail));
    }

    /// The verb `expect`: waits for the next message.
    pub(super) fn expect(&mut self, expect: &Expect) {
        if self.connection.is_none() {
            return self.without_connection(expect.step);
        }
        self.flight_begins();
        self.wait_for(Doing::Message(Awaited::default()), self.now + expect.timeout);
    }

    /// The verb `request`: sends and waits, timed as one.
    pub(super) fn request(&mut self, request: &Request, cx: &mut Context<'_>) {
        self.forget_later(cx);
        if self.connection.is_none() {
            return self.without_connection(request.step);
        }
        self.flight_begins();
        let sent = match self.send_message(&request.message, cx) {
            Ok(sent) => sent,
            Err(finding) => return self.not_written(request.step, finding),
        };
        let bytes_out = sent.as_ref().map_or(0, |bytes| *bytes);
        let awaited = Awaited { bytes_out, ..Awaited::default() };
        self.wait_for(Doing::Message(awaited), self.now + request.timeout);
        if let Err(error) = sent {
            self.broken(&error);
        }
    }

    /// What came before a request cannot be its answer.
    fn forget_later(&mut self, cx: &mut Context<'_>) {
        let later = self.connection.as_mut().and_then(|connection| connection.later.take());
        for one in later.into_iter().flat_map(|later| later.into_iter()) {
            match one {
                // The reader has to see all bytes, or it would lose its place in the stream.
                Later::Surplus(bytes) => self.received(&bytes, cx),
                Later::Bytes(_) | Later::Message(_) => {
                    self.shard.recorder.borrow_mut().messages.pushes += 1;
                }
            }
        }
    }

    /// A message could not be written: nothing was sent.
    fn not_written(&mut self, step: StepId, finding: Finding) {
        self.step_failed(step, &Attempt::default(), finding, Onward::NextStep);
    }

    /// Sends a message and returns the size of what it became; the outer error is a message that
    /// could not be written.
    pub(super) fn send_message(
        &mut self,
        message: &Message,
        cx: &mut Context<'_>,
    ) -> Result<std::io::Result<u64>, Finding> {
        let shard = Rc::clone(&self.shard);
        if let Some(fixed) = message.content.as_literal() {
            return Ok(self.send_content(message.kind, fixed, cx));
        }
        let mut content = shard.content_buffer.borrow_mut();
        content.clear();
        let mut scope = scope!(self, &shard);
        let written = message.content.render(&mut content, &mut scope);
        written.map_err(|fault| scope.finding(fault))?;
        Ok(self.send_content(message.kind, &content, cx))
    }

    fn send_content(
        &mut self,
        kind: MessageKind,
        content: &[u8],
        cx: &mut Context<'_>,
    ) -> std::io::Result<u64> {
        let shard = Rc::clone(&self.shard);
        shard.recorder.borrow_mut().messages.sent += 1;
        if shard.is_traced() {
            self.trace_sent(content);
        }
        let Some(Connection { peer: Peer::WebSocket(_), deflate, .. }) = self.connection else {
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
        self.send(&buffer, cx)?;
        Ok(buffer.len() as u64)
    }

    /// Begins or answers the close handshake.
    pub(super) fn send_close(&mut self, code: u16, cx: &mut Context<'_>) -> std::io::Result<()> {
        let mut frame = Vec::with_capacity(16);
        let mask = Some(self.random.next_u32().to_ne_bytes());
        write_close(&mut frame, Some(code), "", mask);
        self.send(&frame, cx)
    }

    /// Bytes of a WebSocket came.
    pub(super) fn frames_received(&mut self, bytes: &[u8], cx: &mut Context<'_>) {
        at_pc!(self, shard, instruction, plan);
        let looking = match &self.doing {
            Doing::Message(_) => looking(instruction, plan),
            _ => None,
        };
        let mut listening = Listening::new(&self.doing, instruction, plan);
        let Some(Connection { peer: Peer::WebSocket(reader), later, .. }) = &mut self.connection
        else {
            return;
        };
        let kept = later.as_ref().map_or(0, |later| later.len());
        let mut kept_bytes: usize =
            later.iter().flat_map(|later| later.iter()).map(Later::len).sum();
        let elapsed = self.now - self.due;
        let mut heard = Heard::default();
        // How often something comes must not change what the user draws.
        let mask = Random::new(self.id.0 ^ self.now.as_nanos()).next_u32().to_ne_bytes();
        let mut scope = scope!(self, &shard);
        let mut sink = |message: websocket::Message<'_>| {
            let payload = match message {
                websocket::Message::Text(text) => text.as_bytes(),
                websocket::Message::Binary(bytes) => bytes,
                websocket::Message::Ping(payload) => {
                    heard.pings += 1;
                    write_frame(&mut heard.pongs, Opcode::Pong, true, false, Some(mask), payload);
                    return;
                }
                websocket::Message::Pong(payload) => {
                    let due = listening.as_mut().and_then(|listening| listening.pong(payload));
                    heard.beat = heard.beat.or(due.map(|due| (due, payload.len())));
                    return;
                }
                websocket::Message::Close { code, .. } => {
                    heard.close = Some(code);
                    return;
                }
            };
            if shard.is_traced() {
                heard.told.push(payload.to_vec());
            }
            match &looking {
                Some(looking) if heard.answer.is_none() => {
                    let verdict = looking.judge(payload, elapsed, &mut scope);
                    heard.answer = Some(verdict.map(|()| payload.len()));
                }
                Some(_)
                    if kept + heard.later.len() < LATER_MAX
                        && kept_bytes + payload.len() <= LATER_BYTES_MAX =>
                {
                    kept_bytes += payload.len();
                    heard.later.push(Later::Message(payload.to_vec()));
                }
                _ => match listening.as_mut().map(|one| one.meant(payload, &mut scope)) {
                    Some(Meant::Answer(due)) => heard.beat = Some((due, payload.len())),
                    Some(Meant::Push) | None => heard.pushes += 1,
                },
            }
        };
        let limits = &shard.prepared.websocket_limits;
        let read = reader.receive(bytes, limits, &mut shard.inflater.borrow_mut(), &mut sink);
        self.act_on(heard, read, cx);
    }

    /// A message that came behind an answer is what the user waits for now.
    pub(super) fn kept_message(&mut self, payload: &[u8]) {
        at_pc!(self, shard, instruction, plan);
        self.now = shard.clock.now();
        if let Doing::Message(awaited) = &mut self.doing {
            awaited.came(payload.len(), self.now);
        }
        let elapsed = self.now - self.due;
        let mut scope = scope!(self, &shard);
        let verdict = looking(instruction, plan)
            .map_or(Ok(()), |looking| looking.judge(payload, elapsed, &mut scope));
        self.message_came(verdict);
    }

    fn act_on(&mut self, heard: Heard, read: Result<(), WebSocketError>, cx: &mut Context<'_>) {
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.messages.pings += heard.pings;
        recorder.messages.pushes += heard.pushes;
        let answers = u64::from(heard.answer.is_some());
        recorder.messages.received += heard.pushes + heard.later.len() as u64 + answers;
        recorder.messages.received += u64::from(heard.beat.is_some());
        drop(recorder);
        if heard.pushes > 0 {
            self.first_message();
        }
        if let Some((due, bytes)) = heard.beat {
            self.beat_answered(due, bytes);
        }
        heard.told.iter().for_each(|payload| self.trace_received(payload));
        if !heard.pongs.is_empty()
            && let Err(error) = self.send(&heard.pongs, cx)
        {
            return self.broken(&error);
        }
        if !heard.later.is_empty()
            && let Some(connection) = &mut self.connection
        {
            connection.later.get_or_insert_default().extend(heard.later);
        }
        if let Some(verdict) = heard.answer {
            if let (Doing::Message(awaited), Ok(length)) = (&mut self.doing, &verdict) {
                awaited.came(*length, self.now);
            }
            self.message_came(verdict.map(|_| ()));
        }
        if let Some(code) = heard.close {
            return self.closed_by_peer(code, cx);
        }
        if let Err(error) = read {
            let _ = self.send_close(error.close_code(), cx);
            let cause = match error {
                WebSocketError::FrameTooLarge { .. } | WebSocketError::MessageTooLarge { .. } => {
                    Cause::TooLarge
                }
                _ => Cause::Malformed,
            };
            self.lost(&Failure::new(cause, error.to_string()), Ended::ByUs);
        }
    }

    /// The target sent its close frame: it is answered, and the connection is over.
    fn closed_by_peer(&mut self, code: Option<u16>, cx: &mut Context<'_>) {
        if matches!(self.doing, Doing::Closing) {
            // It answers ours; the end of the stream follows.
            return;
        }
        let _ = self.send_close(code.filter(|code| *code != 1005).unwrap_or(1000), cx);
        let detail = match code {
            Some(code) => format!("the target closed the WebSocket with code {code}"),
            None => "the target closed the WebSocket without a code".into(),
        };
        self.lost(&Failure::new(Cause::ClosedEarly, detail), Ended::ByTarget);
    }

    /// Bytes of a raw stream came.
    pub(super) fn stream_received(&mut self, bytes: &[u8]) {
        at_pc!(self, shard, instruction, plan);
        if shard.is_traced() {
            self.trace_received(bytes);
        }
        let (Doing::Message(awaited), Some(looking)) =
            (&mut self.doing, looking(instruction, plan))
        else {
            return self.heard_unasked(bytes);
        };
        awaited.came(bytes.len(), self.now);
        let elapsed = self.now - self.due;
        let Some(Connection { peer: Peer::Stream(reader), later, .. }) = &mut self.connection
        else {
            return;
        };
        let mut verdict = Ok(());
        let limit = shard.prepared.program.limits.message_bytes_max;
        let mut scope = scope!(self, &shard);
        let mut sink = |answer: &[u8]| verdict = looking.judge(answer, elapsed, &mut scope);
        match reader.receive(bytes, looking.until, limit, looking.needs_bytes, &mut sink) {
            Ok(progress) if progress.complete => {
                if progress.consumed < bytes.len() {
                    let rest = bytes[progress.consumed..].to_vec();
                    later.get_or_insert_default().push_front(Later::Bytes(rest));
                }
                shard.recorder.borrow_mut().messages.received += 1;
                self.message_came(verdict);
            }
            Ok(_) => {}
            Err(error) => {
                self.lost(&Failure::new(Cause::TooLarge, error.to_string()), Ended::ByUs);
            }
        }
    }

    /// Bytes of a raw stream came while no step waits for any.
    fn heard_unasked(&mut self, bytes: &[u8]) {
        at_pc!(self, shard, instruction, plan);
        let listening = Listening::new(&self.doing, instruction, plan);
        let mut scope = scope!(self, &shard);
        shard.recorder.borrow_mut().messages.received += 1;
        match listening.map(|mut listening| listening.meant(bytes, &mut scope)) {
            Some(Meant::Answer(due)) => self.beat_answered(due, bytes.len()),
            Some(Meant::Push) | None => {
                shard.recorder.borrow_mut().messages.pushes += 1;
                self.first_message();
            }
        }
    }

    /// The awaited message is here.
    fn message_came(&mut self, verdict: Result<(), Finding>) {
        let Doing::Message(awaited) = std::mem::replace(&mut self.doing, Doing::Step) else {
            return;
        };
        at_pc!(self, _shard, instruction, plan);
        match verdict {
            Ok(()) => {
                self.refusals = 0;
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
        if let Some(step) = awaiting_step(instruction) {
            let mut attempt = awaited.attempt(self.now, self.due);
            attempt.latency = came.map(|came| came - self.due);
            self.step_failed(step, &attempt, finding, onward);
        }
    }

    /// No message in time. What still comes could be taken for the next answer, so the
    /// connection is of no more use.
    pub(super) fn message_timed_out(&mut self, awaited: Awaited) {
        let waited = throng_base::units::format_duration(self.now - self.due);
        let detail = match awaited.bytes_in {
            0 => format!("no answer after {waited}"),
            bytes => format!("{bytes} bytes, but no complete answer after {waited}"),
        };
        self.drop_connection(Ended::TimedOut);
        let onward = Onward::Anew { refused: false };
        self.message_failed(&awaited, (Cause::Timeout, detail), Some(self.now), onward);
    }
}

impl Awaited {
    fn came(&mut self, bytes: usize, now: Time) {
        if self.bytes_in == 0 {
            self.first_byte = now;
        }
        self.bytes_in += bytes as u64;
    }
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
    fn judge(
        &self,
        message: &[u8],
        elapsed: Duration,
        scope: &mut UserScope<'_>,
    ) -> Result<(), Finding> {
        let looked = Looked::new(None, message, elapsed);
        self.look.judge(self.checks, self.saves, &looked, scope)
    }
}

fn awaiting_step(instruction: &Instruction) -> Option<StepId> {
    match instruction {
        Instruction::Expect(expect) => Some(expect.step),
        Instruction::Request(request) => Some(request.step),
        _ => None,
    }
}
