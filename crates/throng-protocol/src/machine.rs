//! What a connection speaks, as one machine: bytes go in and messages come out, messages go in and
//! bytes come out. It never sees a user, and whoever drives it never sees a frame.
//!
//! To add a protocol is to add a variant here, with what it can do ([`Traits`]).

use crate::events::{EventError, EventMessage, EventReader, Resume};
use crate::framed::{Broken, PacketReader, Records};
use crate::grpc::{CallError, CallStream};
use crate::http1::{self, ResponseReader};
use crate::http2;
use crate::stream::StreamReader;
use crate::websocket::{
    self, Deflater, FrameReader, Inflater, Opcode, WebSocketError, write_close, write_frame,
    write_message_deflated,
};

/// What is spoken on one connection, and how far the last message has come.
#[derive(Debug)]
pub enum Machine {
    /// Requests, each with its answer: what comes is read by whoever asked.
    Http1(ResponseReader),
    /// The same, many at a time: each is a stream of its own.
    Http2(Box<http2::Client>),
    WebSocket(FrameReader),
    /// Bytes without messages: whoever waits for an answer says where it ends.
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

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    Message(&'a [u8]),
    /// To be answered by [`Machine::pong`].
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    /// The peer takes leave, with this code if it gave one, and its reason or nothing.
    Closed {
        code: Option<u16>,
        reason: &'a str,
    },
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
    WebSocket(WebSocketError),
    Declared(Broken),
    Events(EventError),
    /// Or a status other than OK.
    Call(CallError),
}

/// What machines borrow while they read; one for all connections of a thread.
pub struct Reading<'a> {
    pub limits: &'a websocket::Limits,
    pub http_limits: &'a http1::Limits,
    pub inflater: &'a mut Inflater,
    /// How messages are told apart where the carrier does not, or joins them.
    pub records: Option<Records<'a>>,
    /// For what HTTP/2 carries, with the buffer for what the machine answers by itself.
    pub http2: http2::Lent<'a>,
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

    /// Reads bytes and gives out the messages in them, as long as `sink` goes on.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        reading: &mut Reading<'_>,
        sink: &mut impl FnMut(Event<'_>) -> bool,
    ) -> Result<(), Violation> {
        match self {
            Machine::WebSocket(reader) => {
                let mut goes_on = true;
                let mut sink = |message: websocket::Message<'_>| {
                    goes_on = goes_on
                        && match (event_of(&message), reading.records) {
                            (Event::Message(joined), Some(records)) => {
                                let mut goes_on = true;
                                records.split(joined, &mut |record| {
                                    goes_on = sink(Event::Message(record));
                                    goes_on
                                });
                                goes_on
                            }
                            (event, _) => sink(event),
                        };
                };
                let read = reader.receive(bytes, reading.limits, reading.inflater, &mut sink);
                read.map_err(Violation::WebSocket)
            }
            Machine::Declared(reader) => match reading.records {
                Some(records) => {
                    let mut sink = |packet: &[u8]| sink(Event::Message(packet));
                    reader.read(records, bytes, &mut sink).map(drop).map_err(Violation::Declared)
                }
                None => Ok(()),
            },
            Machine::Events(reader) => {
                let bytes_max = reading.limits.message_bytes_max;
                let mut event = |message: &[u8]| sink(Event::Message(message));
                let (limits, http2) = (reading.http_limits, &mut reading.http2);
                let read = reader.receive(bytes, limits, http2, bytes_max, &mut event);
                if read.map_err(Violation::Events)? {
                    sink(Event::Closed { code: None, reason: "" });
                }
                Ok(())
            }
            Machine::Call(call) => {
                let (bytes_max, mut goes_on) = (reading.limits.message_bytes_max, true);
                let mut message = |message: &[u8]| {
                    goes_on = goes_on && sink(Event::Message(message));
                };
                let read = call.receive(bytes, &mut reading.http2, bytes_max, &mut message);
                if read.map_err(Violation::Call)? {
                    sink(Event::Closed { code: None, reason: "" });
                }
                Ok(())
            }
            Machine::Http1(_) | Machine::Http2(_) | Machine::Bytes(_) => Ok(()),
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

    /// One of the same kind that has read nothing: it stands for this one where what comes is
    /// answered while it is read.
    pub fn stand_in(&self) -> Machine {
        match self {
            Machine::Http1(_) => Machine::Http1(ResponseReader::new()),
            Machine::WebSocket(reader) => {
                let deflate = reader.deflate();
                Machine::WebSocket(FrameReader::new(websocket::Role::Client, deflate))
            }
            Machine::Http2(_) | Machine::Bytes(_) => Machine::Bytes(StreamReader::new()),
            Machine::Declared(_) => Machine::Declared(PacketReader::new()),
            Machine::Events(_) => Machine::Events(EventReader::default()),
            Machine::Call(call) => Machine::Call(call.stand_in()),
        }
    }

    /// Whether the peer has taken leave: it is the one that ends the connection then.
    pub fn is_left(&self) -> bool {
        matches!(self, Machine::WebSocket(reader) if reader.is_done())
    }

    /// Takes the place of what stood in for it, and sends what that one has kept.
    pub fn take_over(&mut self, stand_in: Machine, out: &mut Vec<u8>) {
        if let (Machine::Call(call), Machine::Call(stand_in)) = (self, stand_in) {
            call.take_over(stand_in, out);
        }
    }
}

fn event_of<'a>(message: &websocket::Message<'a>) -> Event<'a> {
    match message {
        websocket::Message::Text(text) => Event::Message(text.as_bytes()),
        websocket::Message::Binary(bytes) => Event::Message(bytes),
        websocket::Message::Ping(payload) => Event::Ping(payload),
        websocket::Message::Pong(payload) => Event::Pong(payload),
        websocket::Message::Close { code, reason } => Event::Closed { code: *code, reason },
    }
}

impl Violation {
    /// With what code the connection is closed, where it is closed with one.
    pub fn close_code(&self) -> Option<u16> {
        match self {
            Violation::WebSocket(error) => Some(error.close_code()),
            Violation::Declared(_) | Violation::Events(_) | Violation::Call(_) => None,
        }
    }

    /// Whether it is not wrong, but larger than it may be.
    pub fn is_too_large(&self) -> bool {
        use WebSocketError::{FrameTooLarge, MessageTooLarge};
        let large =
            |error: &WebSocketError| matches!(error, FrameTooLarge { .. } | MessageTooLarge { .. });
        match self {
            Violation::WebSocket(error) => large(error),
            Violation::Events(EventError::Http2(violation)) => violation.is_too_large(),
            Violation::Events(error) => matches!(error, EventError::TooLarge { .. }),
            Violation::Call(CallError::Http2(violation)) => violation.is_too_large(),
            Violation::Call(CallError::Grpc(violation)) => violation.is_too_large(),
            Violation::Declared(_) | Violation::Call(_) => false,
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
