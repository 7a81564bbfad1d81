//! The sending side of a line: bytes, messages, and WebSocket frames.

mod mqtt;
mod redis;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use throng_base::Random;
use throng_expression::{EvaluationError, Value};
use throng_metrics::Cause;
use throng_program::{Check, Composed, ConnectOptions, Content, Message, MessageKind};
use throng_protocol::framed::{EncodeError, Protocol};
use throng_protocol::machine::{Answered, Fields, Machine};
use throng_protocol::protobuf::Schema;
use throng_protocol::{framed, protobuf};

use super::State;
use super::agenda::waiting_bytes;
use crate::connector::Handshake;
use crate::connector::protocol::Upgrade;
use crate::failure::Finding;
use crate::scope::{UserScope, scope};
use crate::trace::What;

/// The sending side of one line of a user.
pub(super) struct Outbound<'u> {
    pub(super) user: &'u mut State,
    pub(super) line: u8,
}

/// A message that was sent.
#[derive(Clone, Copy, Default)]
pub(super) struct Sent {
    pub(super) bytes: u64,
    /// Correlation number of the reply; 0 if the protocol has none.
    pub(super) number: u32,
    pub(super) delivery: Option<(u16, u64)>,
}

/// What acknowledges a message, as the step that waits for it looks at it.
pub(super) struct Acknowledgement<'a> {
    pub(super) status: Option<u16>,
    pub(super) content: &'a [u8],
    /// Of an acknowledgement that is a message itself.
    pub(super) fields: Fields<'a>,
    /// What is wrong with it whatever is looked at.
    pub(super) refusal: Option<Finding>,
}

impl<'a> Acknowledgement<'a> {
    /// None of what answers something else than a message.
    pub(super) fn of(answer: &'a Answered<'a>, checks: &[Check]) -> Option<Acknowledgement<'a>> {
        match answer {
            Answered::Mqtt(answer) => Some(mqtt::acknowledgement(answer, checks)),
            Answered::Redis(answer) => Some(redis::acknowledgement(answer, checks)),
            Answered::Sql(_) => None,
        }
    }
}

/// What a user sends first on a connection, before it is open: the upgrade to WebSocket, or what
/// only its protocol has, with the session of its last connection where that goes on.
pub(super) fn greeting(
    options: Option<&ConnectOptions>,
    upgrade: Option<Upgrade>,
    kept: Option<Machine>,
    scope: &mut UserScope<'_>,
) -> Result<Option<Handshake>, Finding> {
    match options {
        Some(ConnectOptions::Mqtt(client)) => {
            let greeting = mqtt::greeting(client, upgrade, kept, scope)?;
            Ok(Some(Handshake::Mqtt(greeting)))
        }
        Some(ConnectOptions::Call(_)) | None => Ok(upgrade.map(Handshake::WebSocket)),
    }
}

/// The value of a leaf, or its text, which is appended to `out`.
fn value_of<T>(
    message: &Composed<T>,
    leaf: u16,
    scope: &mut UserScope<'_>,
    out: &mut Vec<u8>,
) -> Result<Option<Value>, EvaluationError> {
    let text = &message.leaves[usize::from(leaf)];
    match text.as_expression() {
        Some(expression) => expression.evaluate(scope).map(Some),
        None => text.render(out, scope).map(|()| None),
    }
}

/// Writes a protobuf message.
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

fn not_encoded(error: EncodeError<EvaluationError>, scope: &UserScope<'_>) -> Finding {
    match error {
        EncodeError::Leaf(error) => scope.finding(error),
        EncodeError::Value { field, reason } => {
            (Cause::ExpressionFailed, say!("the field `{field}`: {}", reason))
        }
    }
}

/// Writes a message that is only bytes, as it is sent; returns the correlation number of its reply.
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

/// Appends a declared message; returns its kind and the correlation number of its reply.
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
        // 0 marks unsolicited messages.
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

impl Outbound<'_> {
    /// Sends bytes, and keeps what the socket does not take immediately.
    #[inline]
    pub(super) fn send(&mut self, own: &[u8], cx: &mut Context<'_>) -> io::Result<()> {
        self.send_with(own, None, cx)
    }

    /// Sends bytes, then shared ones that all users send, which are not copied.
    pub(super) fn send_with(
        &mut self,
        own: &[u8],
        shared: Option<&Arc<[u8]>>,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let State { lines, shard, agenda, now, .. } = &mut *self.user;
        let Some(connection) = lines.connection_mut(self.line) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let sent = connection.send(own, shared, (waiting_bytes(agenda), &shard.purse), *now, cx)?;
        shard.recorder.borrow_mut().interval.traffic.bytes_out += sent as u64;
        Ok(())
    }

    /// Writes what waits for the socket.
    pub(super) fn push(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let State { lines, shard, agenda, now, .. } = &mut *self.user;
        let Some(connection) = lines.connection_mut(self.line) else { return Ok(()) };
        let sent = connection.push((waiting_bytes(agenda), &shard.purse), *now, cx)?;
        shard.recorder.borrow_mut().interval.traffic.bytes_out += sent;
        Ok(())
    }

    /// Sends a message; the outer error is a message that could not be written. Its bytes stay in
    /// the shard's buffer for a moment, unless all users send the same.
    pub(super) fn message(
        &mut self,
        message: &Message,
        cx: &mut Context<'_>,
    ) -> Result<io::Result<Sent>, Finding> {
        let shard = Rc::clone(&self.user.shard);
        let (kind, number) = match &message.content {
            Content::Plain { kind, content } => {
                if let Some(fixed) = content.as_literal() {
                    let sent = self.content(*kind, fixed, message.cut, cx);
                    return Ok(sent.map(|bytes| Sent { bytes, ..Sent::default() }));
                }
                let mut written = shard.content_buffer.borrow_mut();
                written.clear();
                let mut scope = scope!(self.user, &shard);
                scope.render(content, &mut written)?;
                (*kind, 0)
            }
            Content::Declared(declared) => {
                let mut out = shard.content_buffer.borrow_mut();
                out.clear();
                encode(self.user, self.line, declared, &mut out)?
            }
            Content::Mqtt(order) => return self.order((order, message.cut), cx),
            Content::Redis(commands) => {
                return self.commands((commands, message.cut), cx);
            }
            Content::Proto(message) => {
                let mut out = shard.content_buffer.borrow_mut();
                out.clear();
                if let Some(schema) = shard.prepared.program.schema.as_deref() {
                    encode_proto(schema, message, &mut scope!(self.user, &shard), &mut out)?;
                }
                (MessageKind::Binary, 0)
            }
        };
        let content = shard.content_buffer.borrow();
        let sent = self.content(kind, &content, message.cut, cx);
        Ok(sent.map(|bytes| Sent { bytes, number, ..Sent::default() }))
    }

    fn content(
        &mut self,
        kind: MessageKind,
        content: &[u8],
        cut: Option<u32>,
        cx: &mut Context<'_>,
    ) -> io::Result<u64> {
        let shard = Rc::clone(&self.user.shard);
        shard.recorder.borrow_mut().interval.traffic.messages.sent += 1;
        let cut_to = |bytes: &[u8]| cut.map_or(bytes.len(), |cut| bytes.len().min(cut as usize));
        self.user.tell(|| What::Sent(self.user.shown(self.line, content)));
        let Some(connection) = self.user.lines.connection_mut(self.line) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let traits = connection.machine.traits();
        if !traits.frames {
            let content = &content[..cut_to(content)];
            self.send(content, cx)?;
            return Ok(content.len() as u64);
        }
        let is_text = kind == MessageKind::Text;
        let mask = match traits.masks {
            true => self.user.random.next_u32().to_ne_bytes(),
            false => [0; 4],
        };
        let mut buffer = shard.write_buffer.borrow_mut();
        buffer.clear();
        let mut deflater = shard.deflater.borrow_mut();
        connection.machine.message(is_text, content, mask, &mut deflater, &mut buffer);
        let cut = cut_to(&buffer);
        self.send(&buffer[..cut], cx)?;
        Ok(cut as u64)
    }

    /// Starts or answers the close handshake.
    pub(super) fn close(&mut self, code: u16, cx: &mut Context<'_>) -> io::Result<()> {
        let mask = self.user.random.next_u32().to_ne_bytes();
        self.write(cx, |machine, out| machine.close(code, mask, out)).map(drop)
    }

    /// Sends a ping; returns how many bytes it took.
    pub(super) fn ping(&mut self, payload: &[u8], cx: &mut Context<'_>) -> io::Result<u64> {
        let (mask, now) = (self.user.random.next_u32().to_ne_bytes(), self.user.now);
        self.write(cx, |machine, out| machine.ping(payload, now, mask, out))
    }

    /// Answers a ping. The number of pings must not change the random values that the user draws.
    pub(super) fn pong(&mut self, payload: &[u8], cx: &mut Context<'_>) -> io::Result<()> {
        let mask = Random::new(self.user.id.0 ^ self.user.now.as_nanos()).next_u32().to_ne_bytes();
        self.write(cx, |machine, out| machine.pong(payload, mask, out)).map(drop)
    }

    /// Sends what the machine of a connection writes; returns how many bytes that is.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut Machine, &mut Vec<u8>) -> bool,
    ) -> io::Result<u64> {
        let shard = Rc::clone(&self.user.shard);
        let mut frame = shard.write_buffer.borrow_mut();
        frame.clear();
        if let Some(connection) = self.user.lines.connection_mut(self.line) {
            write(&mut connection.machine, &mut frame);
        }
        self.send(&frame, cx)?;
        Ok(frame.len() as u64)
    }
}

/// How many bytes a message takes on a connection, including the delimiter of its protocol, as for
/// sent messages.
pub(super) fn wire_bytes(protocol: Option<&Protocol>, payload: &[u8]) -> u64 {
    (payload.len() + protocol.map_or(0, Protocol::delimiter_bytes)) as u64
}
