//! What a connection speaks, as one machine: bytes go in and messages come out, messages go in and
//! bytes come out. It never sees a user, and whoever drives it never sees a frame.
//!
//! To add a protocol is to add a variant here, with what it can do ([`Traits`]).

use throng_base::Said;

use crate::events::{EventError, EventMessage, EventReader, Resume};
use crate::framed::{Broken, PacketReader};
use crate::grpc::{CallError, CallStream};
use crate::http1::{HttpError, ResponseReader};
use crate::http2::{self, Token};
pub use crate::input::{Ends, Event, Input, Limits};
use crate::stream::{StreamError, StreamReader, Until};
use crate::websocket::{
    Deflater, FrameReader, Inflater, Message, Opcode, WebSocketError, write_close, write_frame,
    write_message_deflated,
};

/// What is spoken on one connection, and how far the last message has come.
#[derive(Debug)]
pub enum Machine {
    /// Requests, each with its answer.
    Http1(ResponseReader),
    /// The same, many at a time: each is a stream of its own.
    Http2(Box<http2::Client>),
    WebSocket(FrameReader),
    /// Bytes without messages: whoever waits for an answer says where it ends ([`Ends`]).
    Bytes(StreamReader),
    /// The packets of a declared protocol, or records that end with a delimiter.
    Declared(PacketReader),
    /// Server-sent events: one answer of HTTP, from its head on.
    Events(EventReader),
    /// A gRPC call that stays open: one stream of HTTP/2.
    Call(CallStream),
}

/// What a machine can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// It answers requests one after another, and says nothing else.
    pub answers: bool,
    /// It answers many of them at the same time.
    pub multiplexes: bool,
    /// What comes is cut into messages, which come unasked too.
    pub messages: bool,
    /// It has pings of its own, which are answered by pongs.
    pub pings: bool,
    /// It takes leave by a message, which is answered.
    pub closes: bool,
    /// Messages are put into frames of its own.
    pub frames: bool,
    /// These are masked by chance.
    pub masks: bool,
}

/// A message taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    pub content: &'a [u8],
    /// What it says of itself beside its content, where its protocol has that: by name, as headers.
    pub fields: Option<[(&'static str, &'a [u8]); 2]>,
}

impl<'a> Parts<'a> {
    /// Of a message of an event stream.
    pub fn of_event(message: &'a [u8]) -> Parts<'a> {
        let EventMessage { name, id, data } = EventMessage::of(message);
        Parts { content: data, fields: Some([("event", name), ("id", id)]) }
    }
}

/// What breaks the protocol. Nothing can be read behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    Http(HttpError),
    Http2(http2::Violation),
    WebSocket(WebSocketError),
    Bytes(StreamError),
    Declared(Broken),
    Events(EventError),
    /// Or a status other than OK.
    Call(CallError),
}

/// What machines borrow while they read; one for all connections of a thread.
#[derive(Debug, Default)]
pub struct Lent {
    pub limits: Limits,
    inflater: Inflater,
    /// What an event is about that does not lie in the input: it came in pieces, or was decoded.
    room: Vec<u8>,
}

/// So much room is kept.
const ROOM_BYTES_MAX: usize = 256 * 1024;

impl Lent {
    pub fn new(limits: Limits) -> Lent {
        Lent { limits, ..Lent::default() }
    }

    /// Gives back the memory of an exceptional message.
    #[inline]
    pub fn trim(&mut self) {
        if self.room.capacity() > ROOM_BYTES_MAX {
            self.room = Vec::new();
        }
    }
}

impl Machine {
    pub fn traits(&self) -> Traits {
        let none = Traits::default();
        match self {
            Machine::Http1(_) => Traits { answers: true, ..none },
            Machine::Http2(_) => Traits { answers: true, multiplexes: true, ..none },
            Machine::WebSocket(_) => {
                let frames = Traits { frames: true, masks: true, ..none };
                Traits { messages: true, pings: true, closes: true, ..frames }
            }
            Machine::Call(_) => Traits { messages: true, closes: true, frames: true, ..none },
            Machine::Bytes(_) => none,
            Machine::Declared(_) | Machine::Events(_) => Traits { messages: true, ..none },
        }
    }

    /// Reads up to the next event; None when the input is used up before. What has to be sent for
    /// it is added to `out`. Behind an error nothing follows.
    #[inline(always)] // Once per event: it would be moved once more.
    pub fn next<'a: 'r, 'r>(
        &mut self,
        input: &mut Input<'a>,
        lent: &'r mut Lent,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, Violation> {
        let Lent { limits, inflater, room } = lent;
        let mut rest = input.rest();
        let event = match self {
            Machine::Http1(reader) => {
                let part = reader.next(&mut rest, &limits.http1, room).map_err(Violation::Http)?;
                let of_one = |part| http2::Event::Reply { token: Token(0), part };
                part.map(|part| Event::Http(of_one(part)))
            }
            Machine::Http2(client) => {
                let read = client.next(input.now, &mut rest, &limits.http2, room, out);
                read.map_err(Violation::Http2)?.map(Event::Http)
            }
            Machine::WebSocket(reader) => {
                let read = reader.next(&mut rest, &limits.websocket, inflater, room);
                read.map_err(Violation::WebSocket)?.map(event_of)
            }
            Machine::Declared(reader) => match input.ends {
                Ends::Records(records) => {
                    let read = reader.next(records, &mut rest, room);
                    read.map_err(Violation::Declared)?.map(Event::Message)
                }
                _ => input.whole(&mut rest),
            },
            Machine::Bytes(reader) => match input.ends {
                Ends::Answer(answer) if !matches!(answer.until, Until::Any) => {
                    let read = reader.next(&mut rest, answer, room);
                    read.map_err(Violation::Bytes)?.map(Event::Message)
                }
                _ => input.whole(&mut rest),
            },
            Machine::Events(reader) => {
                return reader.next(input, limits, room, out).map_err(Violation::Events);
            }
            Machine::Call(call) => {
                return call.next(input, limits, room, out).map_err(Violation::Call);
            }
        };
        input.leave(rest);
        Ok(event)
    }

    /// The peer has closed. True when that is the end of an answer; an error when one is cut off.
    pub fn end(&mut self) -> Result<bool, HttpError> {
        match self {
            Machine::Http1(reader) => reader.close(),
            Machine::Events(reader) => reader.close(),
            _ => Ok(false),
        }
    }

    /// The socket has taken all that was written so far. True when more has been written now.
    #[inline]
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        match self {
            Machine::Http2(client) => client.drained(out),
            Machine::Events(reader) => reader.drained(out),
            Machine::Call(call) => call.drained(out),
            _ => false,
        }
    }

    /// How much of what was sent waits for the peer to make room for it.
    #[inline]
    pub fn backlog(&self) -> usize {
        match self {
            Machine::Call(call) => call.backlog(),
            _ => 0,
        }
    }

    /// Takes a message apart that it has given out.
    pub fn parts<'a>(&self, message: &'a [u8]) -> Parts<'a> {
        match self {
            Machine::Events(_) => Parts::of_event(message),
            _ => Parts { content: message, fields: None },
        }
    }

    /// Writes a message as it goes over the wire. Where none can be sent any more, nothing is
    /// written.
    pub fn message(
        &mut self,
        is_text: bool,
        content: &[u8],
        mask: [u8; 4],
        deflater: &mut Deflater,
        out: &mut Vec<u8>,
    ) {
        let reader = match self {
            Machine::WebSocket(reader) => reader,
            Machine::Call(call) => {
                call.message(content, out);
                return;
            }
            _ => return out.extend_from_slice(content),
        };
        let opcode = if is_text { Opcode::Text } else { Opcode::Binary };
        match reader.deflate() {
            Some(deflate) => {
                let window_bits = deflate.own_window_bits;
                write_message_deflated(out, opcode, Some(mask), content, window_bits, deflater);
            }
            None => write_frame(out, opcode, true, false, Some(mask), content),
        }
    }

    /// Writes a ping; false where there are none.
    pub fn ping(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        self.control(Opcode::Ping, payload, mask, out)
    }

    /// Writes the answer to a ping.
    pub fn pong(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        self.control(Opcode::Pong, payload, mask, out)
    }

    fn control(&self, opcode: Opcode, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        let pings = self.traits().pings;
        if pings {
            write_frame(out, opcode, true, false, Some(mask), payload);
        }
        pings
    }

    /// Whether the peer answers our leave: it is waited for.
    pub fn awaits_end(&self) -> bool {
        match self {
            Machine::Call(call) => call.sends(),
            _ => self.traits().closes,
        }
    }

    /// Writes the leave that is taken; false where it is taken without a word.
    pub fn close(&mut self, code: u16, mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        match self {
            Machine::WebSocket(_) => write_close(out, Some(code), "", Some(mask)),
            Machine::Call(call) if call.sends() => call.half_close(out),
            // All has been said, and the target need not end by itself.
            Machine::Call(call) => call.cancel(out),
            _ => return false,
        }
        true
    }

    /// What a client that has lost the connection comes back with.
    pub fn resume(&self) -> Option<Resume> {
        match self {
            Machine::Events(reader) => reader.resume(),
            _ => None,
        }
    }

    /// How many bytes of a message have come that is not complete.
    pub fn half(&self) -> usize {
        match self {
            Machine::Declared(reader) => reader.held().len(),
            _ => 0,
        }
    }

    /// What it keeps of what came.
    pub fn heap_bytes(&self) -> usize {
        match self {
            // The body is the answer's; its head is small.
            Machine::Http1(_) => 0,
            Machine::Http2(client) => client.heap_bytes(),
            Machine::WebSocket(reader) => reader.heap_bytes(),
            Machine::Bytes(reader) => reader.heap_bytes(),
            Machine::Declared(reader) => reader.heap_bytes(),
            Machine::Events(reader) => reader.heap_bytes(),
            Machine::Call(call) => call.heap_bytes(),
        }
    }

    /// Whether the peer has taken leave: it is the one that ends the connection then.
    pub fn is_left(&self) -> bool {
        matches!(self, Machine::WebSocket(reader) if reader.is_done())
    }
}

fn event_of(message: Message<'_>) -> Event<'_> {
    match message {
        Message::Text(text) => Event::Message(text.as_bytes()),
        Message::Binary(bytes) => Event::Message(bytes),
        Message::Ping(payload) => Event::Ping(payload),
        Message::Pong(payload) => Event::Pong(payload),
        Message::Close { code, reason } => Event::Closed { code, reason },
    }
}

impl Violation {
    pub fn said(&self) -> Said {
        match self {
            Violation::Http(error) => Said::of_others(error.to_string()),
            Violation::Http2(violation) => Said::of_others(violation.to_string()),
            Violation::WebSocket(error) => Said::of_others(error.to_string()),
            Violation::Bytes(error) => Said::of_others(error.to_string()),
            Violation::Declared(broken) => broken.said(),
            Violation::Events(error) => Said::of_others(error.to_string()),
            Violation::Call(error) => error.said(),
        }
    }

    /// With what code the connection is closed, where it is closed with one.
    pub fn close_code(&self) -> Option<u16> {
        match self {
            Violation::WebSocket(error) => Some(error.close_code()),
            _ => None,
        }
    }

    /// Whether it is not wrong, but larger than it may be.
    pub fn is_too_large(&self) -> bool {
        use WebSocketError::{FrameTooLarge, MessageTooLarge};
        let large =
            |error: &WebSocketError| matches!(error, FrameTooLarge { .. } | MessageTooLarge { .. });
        match self {
            Violation::Bytes(StreamError::TooLarge { .. }) => true,
            Violation::WebSocket(error) => large(error),
            Violation::Events(EventError::Http2(violation)) => violation.is_too_large(),
            Violation::Events(error) => matches!(error, EventError::TooLarge { .. }),
            Violation::Call(CallError::Http2(violation)) => violation.is_too_large(),
            Violation::Call(CallError::Grpc(violation)) => violation.is_too_large(),
            _ => false,
        }
    }

    /// Whether it is not wrong either: the peer gave up what it had begun.
    pub fn is_reset(&self) -> bool {
        matches!(
            self,
            Violation::Events(EventError::Reset(_)) | Violation::Call(CallError::Reset(_))
        )
    }
}
