//! What comes over a user's connection, and whose it is: an answer that is waited for, by the user
//! or by something it does besides; a heartbeat's; a handler's; or nobody's, which is a push.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Context;

use throng_metrics::Cause;
use throng_program::{Handler, Instruction, OnError};
use throng_protocol::framed::{Broken, EXCERPT_BYTES_MAX, Packet, PacketReader, Protocol};
use throng_protocol::websocket::{self, FrameReader, WebSocketError};

use super::flow::at_pc;
use super::link::{Connection, Ended, Later, Peer};
use super::outcome::{Onward, step_of};
use super::{Doing, User};
use crate::connector::Failure;
use crate::prepared::{HandlerPlan, Plan};
use crate::recorder::Attempt;
use crate::scope::scope;
use crate::shard::Shard;
use crate::verify::Looked;

/// Messages kept for whoever asks next, with their bytes; more are pushes like any other.
const LATER_MAX: usize = 64;
const LATER_BYTES_MAX: usize = 1024 * 1024;

impl User {
    /// What the connection speaks, where it is declared.
    pub(super) fn protocol(&self) -> Option<&Protocol> {
        self.shard.prepared.sessions[usize::from(self.session)].protocol.as_deref()
    }

    /// Whether replies say which request they answer.
    pub(super) fn correlates(&self) -> bool {
        self.protocol().is_some_and(Protocol::correlates)
    }

    /// Bytes of a WebSocket came.
    pub(super) fn frames_received(&mut self, bytes: &[u8], cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        let Some(Connection { peer: Peer::WebSocket(reader), deflate, .. }) = &mut self.connection
        else {
            return;
        };
        // Whoever gets a message may write to the connection: the reader is away meanwhile.
        let empty = FrameReader::new(websocket::Role::Client, *deflate);
        let mut reader = std::mem::replace(reader, empty);
        let mut close = None;
        let mut sink = |message: websocket::Message<'_>| {
            if self.connection.is_none() {
                return;
            }
            match message {
                websocket::Message::Text(text) => self.heard(text.as_bytes(), cx),
                websocket::Message::Binary(bytes) => self.heard(bytes, cx),
                websocket::Message::Ping(payload) => {
                    self.shard.recorder.borrow_mut().messages.pings += 1;
                    if let Err(error) = self.send_pong(payload, cx) {
                        self.broken(&error);
                    }
                }
                websocket::Message::Pong(payload) => {
                    if self.beats.is_answered_by_pong(payload) {
                        self.shard.recorder.borrow_mut().messages.received += 1;
                        self.beat_answered(payload.len());
                    }
                }
                websocket::Message::Close { code, .. } => close = Some(code),
            }
        };
        let limits = &shard.prepared.websocket_limits;
        let read = reader.receive(bytes, limits, &mut shard.inflater.borrow_mut(), &mut sink);
        match &mut self.connection {
            Some(Connection { peer: Peer::WebSocket(place), .. }) => *place = reader,
            _ => return,
        }
        if let Some(code) = close {
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

    /// Bytes of a declared protocol came.
    pub(super) fn packets_received(&mut self, bytes: &[u8], cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        let Some(protocol) = &shard.prepared.sessions[usize::from(self.session)].protocol else {
            return;
        };
        let Some(Connection { peer: Peer::Packets(reader), .. }) = &mut self.connection else {
            return;
        };
        let mut reader: PacketReader = std::mem::take(reader);
        let mut sink = |packet: &[u8]| {
            self.heard(packet, cx);
            self.connection.is_some()
        };
        let read = reader.read(protocol, bytes, &mut sink);
        match &mut self.connection {
            Some(Connection { peer: Peer::Packets(place), .. }) => *place = reader,
            _ => return,
        }
        if let Err(broken) = read {
            self.shard.recorder.borrow_mut().messages.broken += 1;
            // Nobody knows where the next packet begins.
            self.lost(&Failure::new(Cause::Malformed, broken.to_string()), Ended::ByUs);
        }
    }

    /// A message came.
    pub(super) fn heard(&mut self, payload: &[u8], cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        shard.recorder.borrow_mut().messages.received += 1;
        if shard.is_traced() {
            self.trace_received(payload);
        }
        self.hear(payload, true, cx);
    }

    /// Gives out a message that was kept.
    pub(super) fn hear_again(&mut self, payload: &[u8], cx: &mut Context<'_>) {
        self.hear(payload, false, cx);
    }

    /// Gives a message to whom it is for; `is_new` unless it was kept.
    fn hear(&mut self, payload: &[u8], is_new: bool, cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        let protocol = &shard.prepared.sessions[usize::from(self.session)].protocol;
        let mut decoded = shard.decoded.take();
        let packet = match protocol {
            None => None,
            Some(protocol) => match protocol.decode(payload, &mut decoded) {
                Ok(packet) => Some(packet),
                Err(broken) => {
                    shard.decoded.replace(decoded);
                    return self.packet_broken(&broken, payload);
                }
            },
        };
        let mut looked = Looked::new(None, payload, self.now - self.due);
        if let (Some(protocol), Some(packet)) = (protocol, packet) {
            looked.declared = Some((protocol, &decoded, packet.message));
        }
        if is_new {
            self.enter_received(&looked, packet);
        }
        self.give(looked, packet, cx);
        shard.decoded.replace(decoded);
    }

    fn give(&mut self, mut looked: Looked<'_>, packet: Option<Packet>, cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        if let Doing::Message(awaited) = self.doing {
            // Where messages do not say what they answer, handlers come first.
            let unsure = packet.is_none() && self.takes_any();
            let handled = unsure && self.handler_of(&shard, &looked, packet).is_some();
            let mut scope = scope!(self, &shard);
            if !handled && User::is_awaited(self.pc, &awaited, &looked, packet, &mut scope) {
                return self.answer_came(&looked, packet);
            }
        }
        if let Some(index) = self.body_that_awaits(&mut looked, packet) {
            return self.answer_body(index, &looked, packet, cx);
        }
        if packet.is_some() && self.answers_beat(&looked, packet) {
            return self.beat_answered(looked.document.bytes().len());
        }
        if let Some((handler, plan)) = self.handler_of(&shard, &looked, packet) {
            return self.handle(handler, plan, &looked, cx);
        }
        if packet.is_none() && self.answers_beat(&looked, packet) {
            return self.beat_answered(looked.document.bytes().len());
        }
        self.keep_or_pass(looked.document.bytes(), packet);
    }

    /// Whether the next message is the answer to what the user waits for, whatever it is.
    fn takes_any(&self) -> bool {
        at_pc!(self, _shard, instruction, _plan);
        matches!(instruction, Instruction::Request(request) if request.answer.is_any())
    }

    /// The first handler that the message is for: of a `stay`, then of the session.
    fn handler_of<'a>(
        &mut self,
        shard: &'a Shard,
        looked: &Looked<'_>,
        packet: Option<Packet>,
    ) -> Option<(&'a Handler, &'a HandlerPlan)> {
        let session = usize::from(self.session);
        let prepared = &shard.prepared;
        let own = &prepared.program.sessions[session];
        let pc = self.pc as usize;
        let (of_stay, plans) =
            match (&self.doing, own.code.get(pc), prepared.plans[session].get(pc)) {
                (Doing::Stay, Some(Instruction::Stay(stay)), Some(Plan::Stay(plan))) => {
                    (&*stay.handlers, &*plan.handlers)
                }
                _ => (&[][..], &[][..]),
            };
        let of_session = own.handlers.iter().zip(&prepared.sessions[session].hears.handlers);
        let mut all = of_stay.iter().zip(plans).chain(of_session);
        let mut scope = scope!(self, shard);
        all.find(|(handler, plan)| {
            let kinds = &handler.message.messages;
            let kind =
                kinds.is_empty() || packet.is_some_and(|packet| kinds.contains(&packet.message));
            kind && plan.which.fits(&handler.message.checks, looked, &mut scope)
        })
    }

    /// Nobody takes the message now.
    fn keep_or_pass(&mut self, payload: &[u8], packet: Option<Packet>) {
        let plan = &self.shard.prepared.sessions[usize::from(self.session)];
        let keeps = match packet {
            Some(packet) => plan.expected.contains(&packet.message),
            // What comes right behind an answer may be the next one.
            None => matches!(self.doing, Doing::Step),
        };
        let is_reply = packet.is_some_and(|packet| plan.is_reply(packet.message));
        let connection = self.connection.as_mut().filter(|_| keeps);
        if let Some(Connection { later, .. }) = connection {
            let later = later.get_or_insert_default();
            let bytes: usize = later.iter().map(Later::len).sum();
            if later.len() < LATER_MAX && bytes + payload.len() <= LATER_BYTES_MAX {
                later.push_back(Later::Message(payload.to_vec()));
                return;
            }
        }
        let mut recorder = self.shard.recorder.borrow_mut();
        match is_reply {
            true => recorder.messages.unasked += 1,
            false => {
                recorder.messages.pushes += 1;
                drop(recorder);
                self.first_message();
            }
        }
    }

    /// A user begins to listen: what was kept may be what it wants.
    pub(super) fn hear_later(&mut self, cx: &mut Context<'_>) {
        let later = self.connection.as_mut().and_then(|connection| connection.later.take());
        let Some(mut later) = later else { return };
        let mut passed = VecDeque::new();
        while matches!(self.doing, Doing::Message(_) | Doing::Stay)
            && let Some(one) = later.pop_front()
        {
            match one {
                Later::Surplus(bytes) | Later::Bytes(bytes) => self.received(&bytes, cx),
                Later::Message(payload) => self.hear(&payload, false, cx),
            }
            // What it is not for is kept again, behind what came before it.
            let again = self.connection.as_mut().and_then(|connection| connection.later.take());
            passed.extend(again.into_iter().flat_map(|again| *again));
        }
        passed.extend(*later);
        if !passed.is_empty()
            && let Some(connection) = &mut self.connection
        {
            connection.later = Some(Box::new(passed));
        }
    }

    /// A packet breaks the declaration; the next one can be read.
    fn packet_broken(&mut self, broken: &Broken, packet: &[u8]) {
        at_pc!(self, shard, instruction, _plan);
        let shown = &packet[..packet.len().min(EXCERPT_BYTES_MAX)];
        let hex: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        let more = if shown.len() < packet.len() { "…" } else { "" };
        let detail = format!("{broken}, in {hex}{more}");
        let mut recorder = shard.recorder.borrow_mut();
        recorder.messages.broken += 1;
        let code = &self.session().code;
        let Some(step) = step_of(instruction).or_else(|| code.iter().find_map(step_of)) else {
            return;
        };
        let (cause, attempt) = (Cause::Malformed, Attempt::default());
        recorder.failed(step, &attempt, cause, self.now, || detail.clone());
        drop(recorder);
        if shard.is_traced() {
            self.trace_ended(step, &attempt, Some((cause, &detail)));
        }
        // Whose it was cannot be known: the step goes on, unless the scenario ends it for this.
        let then = super::outcome::failing(instruction).then;
        if then != OnError::Count {
            self.interrupt();
        }
        match then {
            OnError::Count => {}
            OnError::Next => self.leave_iteration(Onward::NextStep),
            OnError::Leave => self.leave(Onward::NextStep),
            OnError::Stop => {
                self.stop_for(step, cause, &detail);
                self.leave(Onward::NextStep);
            }
        }
    }
}
