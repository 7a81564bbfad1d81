//! What comes over a user's connection, and whose it is: an answer that is waited for, by the user
//! or by something it does besides; a heartbeat's; a handler's; or nobody's, which is a push.

use std::rc::Rc;
use std::task::Context;

use throng_metrics::Cause;
use throng_program::{Content, Handler, Instruction, OnError};
use throng_protocol::framed::{Broken, MessageId, Packet, PacketReader, Protocol};
use throng_protocol::websocket::{self, FrameReader, WebSocketError};

use super::backlog::Backlog;
use super::flow::at_pc;
use super::link::{Connection, Ended, Later, Peer};
use super::outcome::{Onward, failing, step_of};
use super::talk::Awaited;
use super::{Doing, User};
use crate::connector::Failure;
use crate::prepared::{HandlerPlan, Plan};
use crate::recorder::Attempt;
use crate::scope::scope;
use crate::shard::Shard;
use crate::verify::Looked;

/// Where a message comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Target,
    /// From what was kept for whoever asks next.
    Kept,
}

impl User {
    /// What the connection speaks, where it is declared.
    pub(super) fn protocol(&self) -> Option<&Protocol> {
        self.shard.prepared.sessions[usize::from(self.session)].links[0].protocol.as_deref()
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
                        self.beat_answered(payload.len() as u64);
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
        let Some(protocol) = &shard.prepared.sessions[usize::from(self.session)].links[0].protocol
        else {
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
            let detail = in_words(&broken);
            // Whoever waits for a message fails with the connection, and for this reason.
            if !matches!(self.doing, Doing::Message(_)) && self.bodies_that_await() == 0 {
                self.count_broken(&detail);
            }
            // Nobody knows where the next packet begins.
            self.lost(&Failure::new(Cause::Malformed, detail), Ended::ByUs);
        }
    }

    /// A message came.
    pub(super) fn heard(&mut self, payload: &[u8], cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        shard.recorder.borrow_mut().messages.received += 1;
        if shard.is_traced() {
            self.trace_received(payload);
        }
        self.hear(payload, From::Target, cx);
    }

    /// Looks once more at a message that was good when it came.
    pub(super) fn look_again(&mut self, payload: &[u8], look: impl FnOnce(&mut User, &Looked<'_>)) {
        let shard = Rc::clone(&self.shard);
        let protocol = &shard.prepared.sessions[usize::from(self.session)].links[0].protocol;
        let mut decoded = shard.decoded.take();
        let packet = protocol.as_ref().map(|protocol| protocol.decode(payload, &mut decoded));
        let mut looked = Looked::new(None, payload, self.now - self.due);
        if let (Some(protocol), Some(Ok(packet))) = (protocol, packet) {
            looked.declared = Some((protocol, &decoded, packet.message));
        }
        look(self, &looked);
        shard.decoded.replace(decoded);
    }

    /// How many bytes a message took on the connection, as far as the messages of the protocol
    /// have them: with the delimiter behind it, as what is sent.
    pub(super) fn wire_bytes(&self, payload: &[u8]) -> u64 {
        let delimiter = self.protocol().map_or(0, Protocol::delimiter_bytes);
        (payload.len() + delimiter) as u64
    }

    /// Gives a message to whom it is for.
    fn hear(&mut self, payload: &[u8], from: From, cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        let protocol = &shard.prepared.sessions[usize::from(self.session)].links[0].protocol;
        let mut decoded = shard.decoded.take();
        let packet = match protocol {
            None => None,
            Some(protocol) => match protocol.decode(payload, &mut decoded) {
                Ok(packet) => Some(packet),
                Err(broken) => {
                    let read = (decoded.message(), decoded.correlation());
                    shard.decoded.replace(decoded);
                    return self.packet_broken(&broken, read, cx);
                }
            },
        };
        let mut looked = Looked::new(None, payload, self.now - self.due);
        if let (Some(protocol), Some(packet)) = (protocol, packet) {
            looked.declared = Some((protocol, &decoded, packet.message));
        }
        if from == From::Target {
            self.enter_received(&looked, packet);
        }
        self.give(looked, packet, cx);
        shard.decoded.replace(decoded);
    }

    fn give(&mut self, mut looked: Looked<'_>, packet: Option<Packet>, cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        if matches!(self.doing, Doing::Closing) {
            // It is for nobody any more.
            shard.recorder.borrow_mut().messages.pushes += 1;
            return;
        }
        // Where messages do not say what they answer, handlers come before whoever takes anything.
        let awaits = matches!(self.doing, Doing::Message(_)) || self.does_something_besides();
        let unsure = packet.is_none() && awaits;
        let handled = unsure && self.handler_of(&shard, &looked, packet).is_some();
        let mut is_own = false;
        if let Doing::Message(awaited) = self.doing {
            at_pc!(self, _shard, instruction, _plan);
            let handled = handled && takes_any(Some(instruction));
            let mut scope = scope!(self, &shard);
            is_own = !handled && User::is_awaited(self.pc, &awaited, &looked, packet, &mut scope);
        }
        let own_elapsed = looked.elapsed;
        match self.body_that_awaits(&mut looked, packet, handled) {
            Some((index, due)) if !is_own || due < self.due => {
                return self.answer_body(index, &looked, packet, cx);
            }
            _ if is_own => {
                looked.elapsed = own_elapsed;
                return self.answer_came(&looked, packet);
            }
            _ => {}
        }
        if packet.is_some() && self.answers_beat(&looked, packet) {
            return self.beat_answered(self.wire_bytes(looked.document.bytes()));
        }
        if let Some((handler, plan)) = self.handler_of(&shard, &looked, packet) {
            return self.handle(handler, plan, &looked, cx);
        }
        if packet.is_none() && self.answers_beat(&looked, packet) {
            return self.beat_answered(self.wire_bytes(looked.document.bytes()));
        }
        self.keep_or_pass(looked.document.bytes(), packet);
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
        let of_session =
            own.links[0].handlers.iter().zip(&prepared.sessions[session].links[0].hears.handlers);
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
        let plan = &self.shard.prepared.sessions[usize::from(self.session)].links[0];
        let is_reply = packet.is_some_and(|packet| plan.is_reply(packet.message));
        // What comes right behind an answer may be the next one, and replies to what was sent may
        // come while the user thinks.
        let steps = matches!(self.doing, Doing::Step | Doing::Message(_) | Doing::Sending(_));
        let keeps = match packet {
            Some(packet) => {
                let any = plan.expects_any && matches!(self.doing, Doing::Step);
                any || (steps || is_reply) && plan.expected.contains(&packet.message)
            }
            None => matches!(self.doing, Doing::Step),
        };
        match keeps {
            true => self.keep_message(payload, is_reply),
            false => self.pass(is_reply),
        }
    }

    /// A message that is nobody's.
    fn pass(&mut self, is_reply: bool) {
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
        let mut later = self.take_kept();
        let mut passed = Backlog::default();
        while matches!(self.doing, Doing::Message(_) | Doing::Stay)
            && let Some(one) = later.pop()
        {
            match one {
                Later::Surplus(bytes) => self.received(&bytes, cx),
                Later::Bytes { bytes, from } => {
                    let from = from + self.stream_received(&bytes[from..], cx);
                    if from < bytes.len() {
                        later.push_first(Later::Bytes { bytes, from });
                    }
                }
                Later::Message { payload, .. } => self.hear(&payload, From::Kept, cx),
            }
            // What it is not for is kept again, behind what came before it.
            passed = passed.followed_by(self.take_kept());
        }
        self.keep_all_again(passed.followed_by(later));
    }

    /// A packet breaks the declaration; the next one can be read. Where it is known who waits for
    /// it, that step has failed; whose any other was is not known, and it is counted alone.
    fn packet_broken(
        &mut self,
        broken: &Broken,
        read: (Option<MessageId>, Option<u64>),
        cx: &mut Context<'_>,
    ) {
        self.shard.recorder.borrow_mut().messages.broken += 1;
        let detail = in_words(broken);
        let is_sole = self.is_sole_exchange();
        if let Doing::Message(awaited) = &self.doing
            && self.is_broken_answer(self.pc, awaited, read).unwrap_or(is_sole)
        {
            return self.answer_broken((Cause::Malformed, detail));
        }
        if let Some(index) = self.body_with_broken(read, is_sole) {
            return self.break_body(index, (Cause::Malformed, detail), cx);
        }
        if self.is_broken_beat(read) {
            return self.beat_broken((Cause::Malformed, detail));
        }
        self.count_broken(&detail);
        at_pc!(self, _shard, instruction, _plan);
        // A step that cannot fail has no word about it: then it is what goes for the session.
        let failing = match step_of(instruction) {
            Some(_) => failing(instruction),
            None => self.session().code.first().map(failing).unwrap_or_default(),
        };
        if failing.then == OnError::Stop
            && let Some(step) = self.shard.prepared.program.broken
        {
            self.stop_for(step, Cause::Malformed, &detail);
        }
        let awaited = match &self.doing {
            Doing::Message(awaited) => Some(*awaited),
            _ => None,
        };
        match (awaited, failing.then) {
            (Some(awaited), OnError::Next) if self.running => {
                self.withdraw(&awaited);
                self.interrupt();
                self.leave_iteration(Onward::NextStep);
            }
            (Some(awaited), OnError::Leave | OnError::Stop) => {
                self.withdraw(&awaited);
                self.interrupt();
                self.leave(Onward::NextStep);
            }
            (_, then) => self.answer_unasked(then),
        }
    }

    /// Whether one message is waited for, and the protocol has neither numbers nor messages that
    /// come unasked: then the next one is it, whatever can be read of it.
    fn is_sole_exchange(&self) -> bool {
        let own = usize::from(matches!(self.doing, Doing::Message(_)));
        let is_silent = |protocol: &Protocol| {
            !protocol.correlates() && protocol.messages().all(|(_, info)| !info.push)
        };
        self.protocol().is_some_and(is_silent)
            && !self.beats.waits()
            && own + self.bodies_that_await() == 1
    }

    /// Whether the message that the step there waits for is the one that is broken; None where
    /// what was read of it does not say.
    pub(super) fn is_broken_answer(
        &self,
        pc: u32,
        awaited: &Awaited,
        (message, carried): (Option<MessageId>, Option<u64>),
    ) -> Option<bool> {
        let session = usize::from(self.session);
        let prepared = &self.shard.prepared;
        let plan = &prepared.sessions[session].links[0];
        match prepared.program.sessions[session].code.get(pc as usize)? {
            Instruction::Request(request) => match &request.message.content {
                _ if message.is_some_and(|message| plan.comes_unasked(message)) => Some(false),
                Content::Declared(_) if awaited.number() > 0 => {
                    Some(carried == Some(u64::from(awaited.number())))
                }
                Content::Declared(declared) => {
                    message.map(|message| plan.answers(message, declared.template.message))
                }
                Content::Plain { .. } => message.map(|_| true),
            },
            Instruction::Expect(expect) => {
                let kinds = &expect.message.messages;
                message.map(|message| kinds.is_empty() || kinds.contains(&message))
            }
            _ => Some(false),
        }
    }

    /// Bytes that break the declaration, in a row of their own.
    fn count_broken(&mut self, detail: &str) {
        let Some(step) = self.shard.prepared.program.broken else { return };
        let (cause, attempt) = (Cause::Malformed, Attempt::default());
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.begun(step);
        recorder.failed(step, &attempt, cause, self.now, || detail.to_string());
        drop(recorder);
        if self.shard.is_traced() {
            self.trace_ended(step, &attempt, Some((cause, detail)));
        }
    }
}

/// Whether the next message is the answer that is waited for, whatever it is.
pub(super) fn takes_any(instruction: Option<&Instruction>) -> bool {
    matches!(instruction, Some(Instruction::Request(request)) if request.answer.is_any())
}

/// What is broken, and the bytes it is in.
// sentences
fn in_words(broken: &Broken) -> String {
    let hex: String = broken.excerpt.iter().map(|byte| format!("{byte:02x}")).collect();
    match hex.is_empty() {
        true => broken.to_string(),
        false => format!("{broken}, in the packet {hex}"),
    }
}
