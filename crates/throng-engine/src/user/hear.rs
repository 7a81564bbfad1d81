//! What comes over a user's connection, and whose it is: an answer that is waited for, by the user
//! or by something it does besides; a heartbeat's; a handler's; or nobody's, which is a push.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Context;

use throng_metrics::Cause;
use throng_program::{Content, Handler, Instruction, OnError};
use throng_protocol::framed::{Broken, MessageId, Packet, PacketReader, Protocol};
use throng_protocol::websocket::{self, FrameReader, WebSocketError};

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

/// Messages kept for whoever asks next, with their bytes; of more, the oldest are pushes.
const LATER_MAX: usize = 64;
const LATER_BYTES_MAX: usize = 1024 * 1024;

/// Where a message comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Target,
    /// From what was kept for whoever asks next.
    Kept,
    /// From a handler, whose body was busy.
    Handler,
}

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
            let detail = in_words(&broken);
            if !matches!(self.doing, Doing::Message(_)) {
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

    /// Gives out a message that has waited for a body.
    pub(super) fn hear_waited(&mut self, payload: &[u8], cx: &mut Context<'_>) {
        self.hear(payload, From::Handler, cx);
    }

    /// Gives a message to whom it is for.
    fn hear(&mut self, payload: &[u8], from: From, cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        let protocol = &shard.prepared.sessions[usize::from(self.session)].protocol;
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
        self.give(looked, packet, from, cx);
        shard.decoded.replace(decoded);
    }

    fn give(
        &mut self,
        mut looked: Looked<'_>,
        packet: Option<Packet>,
        from: From,
        cx: &mut Context<'_>,
    ) {
        let shard = Rc::clone(&self.shard);
        let waited = from == From::Handler;
        if waited {
            if let Some((handler, plan)) = self.handler_of(&shard, &looked, packet) {
                self.handle(handler, plan, &looked, waited, cx);
            }
            return;
        }
        // Where messages do not say what they answer, handlers come before whoever takes anything.
        if matches!(self.doing, Doing::Closing) {
            // It is for nobody any more.
            shard.recorder.borrow_mut().messages.pushes += 1;
            return;
        }
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
            return self.beat_answered(looked.document.bytes().len());
        }
        if let Some((handler, plan)) = self.handler_of(&shard, &looked, packet) {
            return self.handle(handler, plan, &looked, waited, cx);
        }
        if packet.is_none() && self.answers_beat(&looked, packet) {
            return self.beat_answered(looked.document.bytes().len());
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
        if !keeps || payload.len() > LATER_BYTES_MAX {
            return self.pass(is_reply);
        }
        let Some(Connection { later, .. }) = &mut self.connection else { return };
        let later = later.get_or_insert_default();
        later.push_back(Later::Message { payload: payload.to_vec(), is_reply });
        let mut bytes: usize = later.iter().map(Later::len).sum();
        // What came first is asked for least.
        let mut passed = Vec::new();
        while later.len() > LATER_MAX || bytes > LATER_BYTES_MAX {
            let Some(first) = later.pop_front() else { break };
            bytes -= first.len();
            passed.push(matches!(first, Later::Message { is_reply: true, .. }));
        }
        passed.into_iter().for_each(|is_reply| self.pass(is_reply));
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
        let later = self.connection.as_mut().and_then(|connection| connection.later.take());
        let Some(mut later) = later else { return };
        let mut passed = VecDeque::new();
        while matches!(self.doing, Doing::Message(_) | Doing::Stay)
            && let Some(one) = later.pop_front()
        {
            match one {
                Later::Surplus(bytes) | Later::Bytes(bytes) => self.received(&bytes, cx),
                Later::Message { payload, .. } => self.hear(&payload, From::Kept, cx),
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

    /// A packet breaks the declaration; the next one can be read. Where it says which request it
    /// answers, that one has failed; whose any other was is not known, and it is counted alone.
    fn packet_broken(
        &mut self,
        broken: &Broken,
        read: (Option<MessageId>, Option<u64>),
        cx: &mut Context<'_>,
    ) {
        self.shard.recorder.borrow_mut().messages.broken += 1;
        let detail = in_words(broken);
        if let Doing::Message(awaited) = &self.doing
            && self.is_broken_reply(self.pc, awaited, read)
        {
            return self.answer_broken((Cause::Malformed, detail));
        }
        if let Some(index) = self.body_with_broken_reply(read) {
            return self.break_body(index, (Cause::Malformed, detail), cx);
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

    /// Whether the reply that the step there waits for is the one that is broken.
    pub(super) fn is_broken_reply(
        &self,
        pc: u32,
        awaited: &Awaited,
        (message, carried): (Option<MessageId>, Option<u64>),
    ) -> bool {
        let session = usize::from(self.session);
        let prepared = &self.shard.prepared;
        let code = &prepared.program.sessions[session].code;
        let Some(Instruction::Request(request)) = code.get(pc as usize) else { return false };
        let Content::Declared(declared) = &request.message.content else { return false };
        match (awaited.number(), carried, message) {
            (0, _, Some(message)) => {
                prepared.sessions[session].answers(message, declared.template.message)
            }
            (0, ..) => false,
            (number, carried, _) => carried == Some(u64::from(number)),
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
