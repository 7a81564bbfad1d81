//! Messages on long-lived connections: WebSocket messages and raw streams. The target may speak
//! at any time; what nobody asked for is counted as a push.

use std::task::Context;
use std::time::Duration;

use throng_base::{StepId, Time};
use throng_metrics::Cause;
use throng_program::{Check, Expect, Instruction, Message, MessageKind, Request, Send};
use throng_protocol::websocket::{self, Opcode, WebSocketError, write_close, write_frame};

use super::flow::at_pc;
use super::link::{Connection, Ended, Later, Peer};
use super::{Doing, User};
use crate::connector::Failure;
use crate::prepared::{Plan, fixed_message};
use crate::recorder::Attempt;
use crate::verify::{Finding, verify};

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
    close: Option<Option<u16>>,
}

impl User {
    /// The verb `send`: done when the message is on its way.
    pub(super) fn send_only(&mut self, send: &Send, cx: &mut Context<'_>) {
        if self.connection.is_none() {
            return self.without_connection(send.step);
        }
        self.flight_begins();
        let sent = self.send_message(&send.message, cx);
        self.wait_for(Doing::Sending, self.now + SENDING_MAX);
        match sent {
            Ok(_) if self.is_sent() => self.sent(),
            Ok(_) => {}
            Err(error) => self.broken(&error),
        }
    }

    /// The socket has taken the message.
    pub(super) fn sent(&mut self) {
        at_pc!(self, shard, instruction, _plan);
        self.flight_ends();
        if let Instruction::Send(send) = instruction {
            shard.recorder.borrow_mut().ok(send.step, &Attempt::default());
        }
        self.next_step();
    }

    /// The connection was lost before the message was on its way.
    pub(super) fn sending_failed(&mut self, failure: &Failure) {
        at_pc!(self, _shard, instruction, _plan);
        self.flight_ends();
        if let Instruction::Send(send) = instruction {
            self.failed(send.step, &Attempt::default(), failure.cause, &failure.detail);
        }
        self.restart(false);
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
        let sent = self.send_message(&request.message, cx);
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

    /// Sends a message and returns the size of what it became.
    fn send_message(&mut self, message: &Message, cx: &mut Context<'_>) -> std::io::Result<u64> {
        let shard = std::rc::Rc::clone(&self.shard);
        shard.recorder.borrow_mut().messages.sent += 1;
        let mut rendered = Vec::new();
        let content = match fixed_message(message) {
            Some(bytes) => bytes,
            None => {
                message.content.render(&mut rendered, self.id, self.iterations);
                &rendered
            }
        };
        let Some(Connection { peer: Peer::WebSocket(_), deflate, .. }) = self.connection else {
            self.send(content, cx)?;
            return Ok(content.len() as u64);
        };
        let opcode = match message.kind {
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
        at_pc!(self, shard, instruction, _plan);
        let checks = match &self.doing {
            Doing::Message(_) => awaited_checks(instruction),
            _ => None,
        };
        let Some(Connection { peer: Peer::WebSocket(reader), later, .. }) = &mut self.connection
        else {
            return;
        };
        let kept = later.as_ref().map_or(0, |later| later.len());
        let mut kept_bytes: usize =
            later.iter().flat_map(|later| later.iter()).map(Later::len).sum();
        let elapsed = self.now - self.due;
        let mut heard = Heard::default();
        let mask = self.random.next_u32().to_ne_bytes();
        let mut sink = |message: websocket::Message<'_>| {
            let payload = match message {
                websocket::Message::Text(text) => text.as_bytes(),
                websocket::Message::Binary(bytes) => bytes,
                websocket::Message::Ping(payload) => {
                    heard.pings += 1;
                    write_frame(&mut heard.pongs, Opcode::Pong, true, false, Some(mask), payload);
                    return;
                }
                websocket::Message::Pong(_) => return,
                websocket::Message::Close { code, .. } => {
                    heard.close = Some(code);
                    return;
                }
            };
            match checks {
                Some(checks) if heard.answer.is_none() => {
                    let verdict = verify(checks, None, payload, elapsed);
                    heard.answer = Some(verdict.map(|()| payload.len()));
                }
                Some(_)
                    if kept + heard.later.len() < LATER_MAX
                        && kept_bytes + payload.len() <= LATER_BYTES_MAX =>
                {
                    kept_bytes += payload.len();
                    heard.later.push(Later::Message(payload.to_vec()));
                }
                _ => heard.pushes += 1,
            }
        };
        let limits = &shard.prepared.websocket_limits;
        let read = reader.receive(bytes, limits, &mut shard.inflater.borrow_mut(), &mut sink);
        self.act_on(heard, read, cx);
    }

    /// A message that came behind an answer is what the user waits for now.
    pub(super) fn kept_message(&mut self, payload: &[u8]) {
        at_pc!(self, _shard, instruction, _plan);
        self.now = self.shard.clock.now();
        let checks = awaited_checks(instruction).unwrap_or_default();
        if let Doing::Message(awaited) = &mut self.doing {
            awaited.came(payload.len(), self.now);
        }
        self.message_came(verify(checks, None, payload, self.now - self.due));
    }

    fn act_on(&mut self, heard: Heard, read: Result<(), WebSocketError>, cx: &mut Context<'_>) {
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.messages.pings += heard.pings;
        recorder.messages.pushes += heard.pushes;
        let answers = u64::from(heard.answer.is_some());
        recorder.messages.received += heard.pushes + heard.later.len() as u64 + answers;
        drop(recorder);
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
        let (Doing::Message(awaited), Plan::Answer(until)) = (&mut self.doing, plan) else {
            shard.recorder.borrow_mut().messages.pushes += 1;
            return;
        };
        awaited.came(bytes.len(), self.now);
        let checks = awaited_checks(instruction).unwrap_or_default();
        let elapsed = self.now - self.due;
        let Some(Connection { peer: Peer::Stream(reader), later, .. }) = &mut self.connection
        else {
            return;
        };
        let mut verdict = Ok(());
        let limit = shard.prepared.program.limits.message_bytes_max;
        let mut sink = |answer: &[u8]| verdict = verify(checks, None, answer, elapsed);
        match reader.receive(bytes, until, limit, !checks.is_empty(), &mut sink) {
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

    /// The awaited message is here.
    fn message_came(&mut self, verdict: Result<(), Finding>) {
        let Doing::Message(awaited) = std::mem::replace(&mut self.doing, Doing::Step) else {
            return;
        };
        at_pc!(self, shard, instruction, _plan);
        self.refusals = 0;
        match verdict {
            Ok(()) => {
                self.flight_ends();
                if let Some(step) = awaiting_step(instruction) {
                    let attempt = awaited.attempt(self.now, self.due);
                    shard.recorder.borrow_mut().ok(step, &attempt);
                }
            }
            Err((cause, detail)) => {
                self.message_failed(&awaited, cause, &detail, Some(self.now));
            }
        }
        self.next_step();
    }

    /// The awaited message was wrong (then `came` says when it came), or never came.
    pub(super) fn message_failed(
        &mut self,
        awaited: &Awaited,
        cause: Cause,
        detail: &str,
        came: Option<Time>,
    ) {
        at_pc!(self, _shard, instruction, _plan);
        self.flight_ends();
        if let Some(step) = awaiting_step(instruction) {
            let mut attempt = awaited.attempt(self.now, self.due);
            attempt.latency = came.map(|came| came - self.due);
            self.failed(step, &attempt, cause, detail);
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
        self.message_failed(&awaited, Cause::Timeout, &detail, Some(self.now));
        self.drop_connection(Ended::TimedOut);
        self.restart(false);
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

fn awaited_checks(instruction: &Instruction) -> Option<&[Check]> {
    match instruction {
        Instruction::Expect(expect) => Some(&expect.checks),
        Instruction::Request(request) => Some(&request.checks),
        _ => None,
    }
}

fn awaiting_step(instruction: &Instruction) -> Option<StepId> {
    match instruction {
        Instruction::Expect(expect) => Some(expect.step),
        Instruction::Request(request) => Some(request.step),
        _ => None,
    }
}
