//! What is sent over the connections that last: messages, and the frames of a WebSocket.

pub(super) mod mqtt;
mod redis;

use std::io;
use std::rc::Rc;
use std::task::Context;

use throng_base::Random;
use throng_expression::{Fault, Value};
use throng_metrics::Cause;
use throng_program::mqtt::Order;
use throng_program::redis::Commands;
use throng_program::{Composed, Content, Message, MessageKind};
use throng_protocol::framed::{EncodeError, Protocol};
use throng_protocol::machine::Machine;
use throng_protocol::protobuf::Schema;
use throng_protocol::{framed, protobuf};

use super::State;
use super::connection::Connection;
use crate::failure::Finding;
use crate::scope::{UserScope, scope};
use crate::trace::{Shown, What};

/// A message that is on its way.
#[derive(Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) bytes: u64,
    /// What its reply will carry; 0 where replies carry nothing.
    pub(super) number: u32,
    pub(super) delivery: Option<(u16, u64)>,
}

/// The value of a leaf, or its text behind what is there.
fn value_of<T>(
    message: &Composed<T>,
    leaf: u16,
    scope: &mut UserScope<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<Value>, Fault> {
    let text = &message.leaves[usize::from(leaf)];
    match text.as_expression() {
        Some(expression) => expression.evaluate(scope).map(Some),
        None => text.render(out, scope).map(|()| None),
    }
}

/// Writes a message of protobuf.
pub(super) fn encode_proto(
    schema: &Schema,
    message: &Composed<protobuf::Template>,
    scope: &mut UserScope<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Finding> {
    let mut leaf = |leaf: u16, out: &mut Vec<u8>| value_of(message, leaf, scope, out);
    let encoded = schema.encode(&message.template, &mut leaf, out);
    encoded.map_err(|error| not_encoded(error, scope))
}

fn not_encoded(error: EncodeError<Fault>, scope: &UserScope<'_>) -> Finding {
    match error {
        EncodeError::Leaf(fault) => scope.finding(fault),
        EncodeError::Value { field, reason } => {
            (Cause::ExpressionFailed, say!("the field `{field}`: {}", reason))
        }
    }
}

/// Sends a packet of MQTT. What a message contains lies in the shard's buffer behind that, unless
/// it is the same for all users.
fn send_order(
    state: &mut State,
    line: u8,
    (order, cut): (&Order, Option<u32>),
    cx: &mut Context<'_>,
) -> Result<io::Result<Sent>, Finding> {
    let shard = Rc::clone(&state.shard);
    shard.recorder.borrow_mut().messages.sent += 1;
    let Some(Connection { machine: Machine::Mqtt(client), .. }) =
        &mut state.lines.get_mut(line).connection
    else {
        return Ok(Err(io::ErrorKind::NotConnected.into()));
    };
    let mut out = shard.write_buffer.borrow_mut();
    out.clear();
    let number = mqtt::write_order(order, client, &mut scope!(state, &shard), &mut out)?;
    let cut = cut.map_or(out.len(), |cut| out.len().min(cut as usize));
    let sent = state.send(line, &out[..cut], cx);
    Ok(sent.map(|()| Sent { bytes: cut as u64, number: u32::from(number), ..Sent::default() }))
}

/// Sends commands of Redis in one write.
fn send_commands(
    state: &mut State,
    line: u8,
    (commands, cut): (&Commands, Option<u32>),
    cx: &mut Context<'_>,
) -> Result<io::Result<Sent>, Finding> {
    let shard = Rc::clone(&state.shard);
    let mut buffer = shard.write_buffer.borrow_mut();
    let bytes = match commands.fixed() {
        Some(fixed) => fixed,
        None => {
            buffer.clear();
            redis::write(commands, &mut scope!(state, &shard), &mut buffer)?;
            &buffer
        }
    };
    let is_traced = shard.is_traced();
    state.tell(|| What::Sent(Shown::of(&redis::in_lines(bytes))));
    shard.recorder.borrow_mut().messages.sent += u64::from(commands.count);
    let Some(Connection { machine: Machine::Redis(client), .. }) =
        &mut state.lines.get_mut(line).connection
    else {
        return Ok(Err(io::ErrorKind::NotConnected.into()));
    };
    let number = client.ask(commands.replies, commands.is_read || is_traced);
    let cut = cut.map_or(bytes.len(), |cut| bytes.len().min(cut as usize));
    let sent = state.send(line, &bytes[..cut], cx);
    Ok(sent.map(|()| Sent { bytes: cut as u64, number, ..Sent::default() }))
}

/// Writes a message of bytes alone, as it goes over the connection; gives the number that its
/// reply carries.
pub(super) fn encode_plain(
    state: &mut State,
    line: u8,
    message: &Message,
    out: &mut Vec<u8>,
) -> Result<u32, Finding> {
    let (shard, begin) = (Rc::clone(&state.shard), out.len());
    let number = match &message.content {
        Content::Plain { content, .. } => {
            scope!(state, &shard).render(content, out)?;
            0
        }
        Content::Declared(declared) => encode(state, line, declared, out)?.1,
        _ => 0,
    };
    out.truncate(message.cut.map_or(out.len(), |cut| out.len().min(begin + cut as usize)));
    Ok(number)
}

/// Writes a declared message behind what is there; gives its kind, and the number that its
/// reply carries.
fn encode(
    state: &mut State,
    line: u8,
    declared: &Composed<framed::Template>,
    out: &mut Vec<u8>,
) -> Result<(MessageKind, u32), Finding> {
    let shard = Rc::clone(&state.shard);
    let Some(protocol) = &state.link_in(&shard, line).protocol else {
        let detail = say!("the session has no protocol");
        return Err((Cause::GeneratorFailed, detail));
    };
    let most = protocol.correlation_max(declared.template.message);
    let number = match u32::try_from(most).unwrap_or(u32::MAX) {
        0 => 0,
        _ if declared.template.gives_correlation() => 0,
        // 0 is for what nobody has asked for.
        most => {
            state.number = if state.number >= most { 1 } else { state.number + 1 };
            state.number
        }
    };
    let mut scope = scope!(state, &shard);
    let mut leaf = |leaf: u16, out: &mut Vec<u8>| value_of(declared, leaf, &mut scope, out);
    let encoded = protocol.encode(&declared.template, u64::from(number), &mut leaf, out);
    let kind = match protocol.declaration().is_text {
        true => MessageKind::Text,
        false => MessageKind::Binary,
    };
    encoded.map(|()| (kind, number)).map_err(|error| not_encoded(error, &scope))
}

impl State {
    /// Sends a message; the outer error is a message that could not be written. What was sent lies
    /// in the shard's buffer for a moment, unless it is the same for all users.
    pub(super) fn send_message(
        &mut self,
        line: u8,
        message: &Message,
        cx: &mut Context<'_>,
    ) -> Result<io::Result<Sent>, Finding> {
        let shard = Rc::clone(&self.shard);
        let (kind, number) = match &message.content {
            Content::Plain { kind, content } => {
                if let Some(fixed) = content.as_literal() {
                    let sent = self.send_content(line, *kind, fixed, message.cut, cx);
                    return Ok(sent.map(|bytes| Sent { bytes, ..Sent::default() }));
                }
                let mut written = shard.content_buffer.borrow_mut();
                written.clear();
                let mut scope = scope!(self, &shard);
                scope.render(content, &mut written)?;
                (*kind, 0)
            }
            Content::Declared(declared) => {
                let mut out = shard.content_buffer.borrow_mut();
                out.clear();
                encode(self, line, declared, &mut out)?
            }
            Content::Mqtt(order) => return send_order(self, line, (order, message.cut), cx),
            Content::Redis(commands) => {
                return send_commands(self, line, (commands, message.cut), cx);
            }
            Content::Proto(message) => {
                let mut out = shard.content_buffer.borrow_mut();
                out.clear();
                if let Some(schema) = shard.prepared.program.schema.as_deref() {
                    encode_proto(schema, message, &mut scope!(self, &shard), &mut out)?;
                }
                (MessageKind::Binary, 0)
            }
        };
        let content = shard.content_buffer.borrow();
        let sent = self.send_content(line, kind, &content, message.cut, cx);
        Ok(sent.map(|bytes| Sent { bytes, number, ..Sent::default() }))
    }

    fn send_content(
        &mut self,
        line: u8,
        kind: MessageKind,
        content: &[u8],
        cut: Option<u32>,
        cx: &mut Context<'_>,
    ) -> io::Result<u64> {
        let shard = Rc::clone(&self.shard);
        shard.recorder.borrow_mut().messages.sent += 1;
        let cut_to = |bytes: &[u8]| cut.map_or(bytes.len(), |cut| bytes.len().min(cut as usize));
        self.tell(|| What::Sent(self.shown(line, content)));
        let Some(connection) = &mut self.lines.get_mut(line).connection else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let traits = connection.machine.traits();
        if !traits.frames {
            let content = &content[..cut_to(content)];
            self.send(line, content, cx)?;
            return Ok(content.len() as u64);
        }
        let is_text = kind == MessageKind::Text;
        let mask = match traits.masks {
            true => self.random.next_u32().to_ne_bytes(),
            false => [0; 4],
        };
        let mut buffer = shard.write_buffer.borrow_mut();
        buffer.clear();
        let mut deflater = shard.deflater.borrow_mut();
        connection.machine.message(is_text, content, mask, &mut deflater, &mut buffer);
        let cut = cut_to(&buffer);
        self.send(line, &buffer[..cut], cx)?;
        Ok(cut as u64)
    }

    /// Begins or answers the close handshake.
    pub(super) fn send_close(
        &mut self,
        line: u8,
        code: u16,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let mask = self.random.next_u32().to_ne_bytes();
        self.write(line, cx, |machine, out| machine.close(code, mask, out)).map(drop)
    }

    /// A ping; how many bytes it took.
    pub(super) fn send_ping(
        &mut self,
        line: u8,
        payload: &[u8],
        cx: &mut Context<'_>,
    ) -> io::Result<u64> {
        let (mask, now) = (self.random.next_u32().to_ne_bytes(), self.now);
        self.write(line, cx, |machine, out| machine.ping(payload, now, mask, out))
    }

    /// Answers a ping. How often something comes must not change what the user draws.
    pub(super) fn send_pong(
        &mut self,
        line: u8,
        payload: &[u8],
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let mask = Random::new(self.id.0 ^ self.now.as_nanos()).next_u32().to_ne_bytes();
        self.write(line, cx, |machine, out| machine.pong(payload, mask, out)).map(drop)
    }

    /// Sends what the machine of a connection writes; how many bytes it is.
    fn write(
        &mut self,
        line: u8,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut Machine, &mut Vec<u8>) -> bool,
    ) -> io::Result<u64> {
        let shard = Rc::clone(&self.shard);
        let mut frame = shard.write_buffer.borrow_mut();
        frame.clear();
        if let Some(connection) = &mut self.lines.get_mut(line).connection {
            write(&mut connection.machine, &mut frame);
        }
        self.send(line, &frame, cx)?;
        Ok(frame.len() as u64)
    }

    /// How many bytes a message took on the connection, as far as the messages of the protocol
    /// have them: with the delimiter behind it, as what is sent.
    pub(super) fn wire_bytes(&self, line: u8, payload: &[u8]) -> u64 {
        let delimiter = self.protocol(line).map_or(0, Protocol::delimiter_bytes);
        (payload.len() + delimiter) as u64
    }
}
