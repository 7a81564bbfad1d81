//! Messages on long-lived connections: WebSocket messages and raw streams. The target may speak
//! at any time; what nobody asked for is counted as a push.

use std::task::Context;

use throng_base::{StepId, Time};
use throng_metrics::Cause;
use throng_program::{Check, Expect, Instruction, Message, MessageKind, Request, Send};
use throng_protocol::websocket::{self, Opcode, WebSocketError, write_close, write_frame};

use super::flow::at_pc;
use super::link::{Connection, Ended, Peer};
use super::{Doing, User};
use crate::connector::Failure;
use crate::prepared::{Plan, fixed_message};
use crate::recorder::Attempt;
use crate::verify::{Finding, verify};

/// Messages kept for whoever asks next; more are pushes like any other.
const LATER_MAX: usize = 64;

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
    later: Vec<Vec<u8>>,
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
        match self.send_message(&send.message, cx) {
            Ok(bytes_out) => {
                let attempt = Attempt { bytes_out, ..Attempt::default() };
                self.shard.recorder.borrow_mut().ok(send.step, &attempt);
                self.next_step();
            }
            Err(error) => {
                let failure = crate::connector::io_failure(&error);
                self.failed(send.step, &Attempt::default(), failure.cause, &failure.detail);
                self.drop_connection(Ended::Reset);
                self.restart(false);
            }
        }
    }

    /// The verb `expect`: waits for the next message.
    pub(super) fn expect(&mut self, expect: &Expect) {
        if self.connection.is_none() {
            return self.without_connection(expect.step);
        }
        self.flight_begins();
        self.wait_for(Doing::Message(Awaited::default()), self.due + expect.timeout);
    }

    /// The verb `request`: sends and waits, timed as one.
    pub(super) fn request(&mut self, request: &Request, cx: &mut Context<'_>) {
        let Some(connection) = &mut self.connection else {
            return self.without_connection(request.step);
        };
        // What came before the request cannot be its answer.
        let old = connection.later.take().map_or(0, |later| later.len() as u64);
        self.shard.recorder.borrow_mut().messages.pushes += old;
        self.flight_begins();
        let sent = self.send_message(&request.message, cx);
        let bytes_out = sent.as_ref().map_or(0, |bytes| *bytes);
        let awaited = Awaited { bytes_out, ..Awaited::default() };
        self.wait_for(Doing::Message(awaited), self.due + request.timeout);
        if let Err(error) = sent {
            self.broken(&error);
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
        let checks = match &mut self.doing {
            Doing::Message(awaited) => {
                awaited.came(bytes.len(), self.now);
                awaited_checks(instruction)
            }
            _ => None,
        };
        let Some(Connection { peer: Peer::WebSocket(reader), .. }) = &mut self.connection else {
            return;
        };
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
                Some(_) if heard.later.len() < LATER_MAX => heard.later.push(payload.to_vec()),
                _ => heard.pushes += 1,
            }
        };
        let limits = &shard.prepared.websocket_limits;
        let read = reader.receive(bytes, limits, &mut shard.inflater.borrow_mut(), &mut sink);
        self.act_on(heard, read, cx);
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
                    later.get_or_insert_default().push_front(bytes[progress.consumed..].to_vec());
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
