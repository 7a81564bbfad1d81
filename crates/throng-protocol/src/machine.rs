//! What a connection speaks, as one machine: bytes go in and messages come out, messages go in and
//! bytes come out. It never sees a user, and whoever drives it never sees a frame.
//!
//! To add a protocol is to add a variant here, with what it can do ([`Traits`]).

use throng_base::{Said, Time};

use crate::events::{EventError, EventMessage, EventReader, Resume};
pub use crate::field::Field;
use crate::framed::{Broken, PacketReader};
use crate::grpc::{CallError, CallStream};
use crate::http1::{HttpError, ResponseReader};
use crate::http2::{self, Token};
pub use crate::input::{Answered, Ends, Event, Input, Limits};
use crate::mqtt::{self, Came, ClientError, Reading};
use crate::redis;
use crate::sql::{self, SqlError};
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
    Mqtt(Box<mqtt::Client>),
    Redis(Box<redis::Client>),
    Sql(Box<sql::Client>),
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
    /// A pong repeats the payload of its ping.
    pub echoes: bool,
    /// It takes leave by a message, which is answered.
    pub closes: bool,
    /// The peer closes it with a code.
    pub codes: bool,
    /// A client that stops says so; otherwise its peer treats the connection as lost.
    pub goodbyes: bool,
    /// Messages are put into frames of its own.
    pub frames: bool,
    /// These are masked by chance.
    pub masks: bool,
}

/// A message taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    pub content: &'a [u8],
    pub fields: Fields<'a>,
}

/// What a message says of itself beside its content, where its protocol has that: by name, as
/// headers.
#[derive(Clone, Copy, Debug, Default)]
pub enum Fields<'a> {
    #[default]
    None,
    Event(EventMessage<'a>),
    Mqtt(mqtt::Message<'a>),
    Redis(redis::Message<'a>),
    Reply(redis::Answer<'a>),
    Sql(sql::Reply<'a>),
}

impl<'a> Fields<'a> {
    /// A field that has something in it.
    pub fn get(self, name: &str) -> Option<Field<'a>> {
        let named = |(own, field): (&str, Field<'a>)| (own == name).then_some(field);
        let field = match self {
            Fields::None => None,
            Fields::Event(event) => of_event(event).into_iter().find_map(named),
            Fields::Mqtt(message) => message.field(name),
            Fields::Redis(message) => message.fields().into_iter().find_map(named),
            Fields::Reply(answer) => return answer.field(name),
            // A text without characters is one.
            Fields::Sql(reply) => return reply.field(name),
        };
        field.filter(|field| *field != Field::Bytes(b""))
    }

    /// All of them.
    pub fn each(self, visit: &mut dyn FnMut(&'a str, Field<'a>)) {
        let visit_one = |(name, field)| visit(name, field);
        match self {
            Fields::None | Fields::Sql(_) => {}
            Fields::Event(event) => of_event(event).into_iter().for_each(visit_one),
            Fields::Mqtt(message) => message.fields().for_each(visit_one),
            Fields::Redis(message) => message.fields().into_iter().for_each(visit_one),
            Fields::Reply(answer) => answer.fields().for_each(visit_one),
        }
    }
}

fn of_event<'a>(EventMessage { name, id, .. }: EventMessage<'a>) -> [(&'static str, Field<'a>); 2] {
    [("event", Field::Bytes(name)), ("id", Field::Bytes(id))]
}

/// How the messages of a machine are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Plain,
    Event,
    Mqtt,
    Redis,
}

impl Form {
    /// Takes a message apart that was given out.
    pub fn parts(self, message: &[u8]) -> Parts<'_> {
        match self {
            Form::Plain => Parts { content: message, fields: Fields::None },
            Form::Event => {
                let event = EventMessage::of(message);
                Parts { content: event.data, fields: Fields::Event(event) }
            }
            Form::Mqtt => {
                let message = mqtt::Message::of(message);
                Parts { content: message.payload, fields: Fields::Mqtt(message) }
            }
            Form::Redis => {
                let message = redis::Message::of(message);
                Parts { content: message.payload, fields: Fields::Redis(message) }
            }
        }
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
    Mqtt(ClientError),
    Redis(redis::Violation),
    /// Or the server ends the connection with an error.
    Sql(SqlError),
}

/// What machines borrow while they read; one for all connections of a thread.
#[derive(Debug, Default)]
pub struct Lent {
    pub limits: Limits,
    inflater: Inflater,
    /// What an event is about that does not lie in the input: it came in pieces, or was decoded.
    room: Vec<u8>,
    mqtt: mqtt::Room,
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
        self.mqtt.trim();
    }
}

impl Machine {
    pub fn traits(&self) -> Traits {
        let none = Traits::default();
        match self {
            Machine::Http1(_) => Traits { answers: true, ..none },
            Machine::Http2(_) => Traits { answers: true, multiplexes: true, ..none },
            Machine::WebSocket(_) => {
                let frames = Traits { frames: true, masks: true, echoes: true, ..none };
                Traits { messages: true, pings: true, closes: true, codes: true, ..frames }
            }
            Machine::Call(_) => Traits { messages: true, closes: true, frames: true, ..none },
            Machine::Mqtt(_) => {
                let leaves = Traits { closes: true, codes: true, goodbyes: true, ..none };
                Traits { messages: true, pings: true, masks: true, ..leaves }
            }
            Machine::Bytes(_) => none,
            Machine::Sql(_) => Traits { answers: true, closes: true, goodbyes: true, ..none },
            Machine::Declared(_) | Machine::Events(_) | Machine::Redis(_) => {
                Traits { messages: true, ..none }
            }
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
        let Lent { limits, inflater, room, mqtt } = lent;
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
            Machine::Mqtt(client) => {
                let reading = Reading { now: input.now, limits: &limits.websocket };
                let read = client.next(&mut rest, reading, inflater, (mqtt, room), out);
                read.map_err(Violation::Mqtt)?.map(event_of_mqtt)
            }
            Machine::Redis(client) => {
                let read = client.next(&mut rest, limits.websocket.message_bytes_max, room);
                read.map_err(Violation::Redis)?.map(event_of_redis)
            }
            Machine::Call(call) => {
                return call.next(input, limits, room, out).map_err(Violation::Call);
            }
            Machine::Sql(client) => {
                let bytes_max = limits.websocket.message_bytes_max;
                let read = client.next(&mut rest, bytes_max, room, out);
                read.map_err(Violation::Sql)?.map(Event::Sql)
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

    pub fn form(&self) -> Form {
        match self {
            Machine::Events(_) => Form::Event,
            Machine::Mqtt(_) => Form::Mqtt,
            Machine::Redis(_) => Form::Redis,
            _ => Form::Plain,
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
    pub fn ping(&mut self, payload: &[u8], now: Time, mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        match self {
            Machine::WebSocket(_) => {
                write_frame(out, Opcode::Ping, true, false, Some(mask), payload);
            }
            Machine::Mqtt(client) => client.say(mask, out, |session, out| session.ping(now, out)),
            _ => return false,
        }
        true
    }

    /// Writes the answer to a ping.
    pub fn pong(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        match self {
            Machine::WebSocket(_) => {
                write_frame(out, Opcode::Pong, true, false, Some(mask), payload);
            }
            Machine::Mqtt(client) => client.pong(payload, mask, out),
            _ => return false,
        }
        true
    }

    /// When [`Machine::keep_alive`] has something to do.
    #[inline]
    pub fn due(&self) -> Time {
        match self {
            Machine::Mqtt(client) => client.session().due(),
            _ => Time::NEVER,
        }
    }

    /// Says what keeps the connection alive, where it is due.
    ///
    /// # Errors
    /// The peer has not answered the last time.
    pub fn keep_alive(
        &mut self,
        now: Time,
        mask: [u8; 4],
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        let Machine::Mqtt(client) = self else { return Ok(()) };
        let kept = client.say(mask, out, |session, out| session.keep_alive(now, out));
        kept.map(drop).map_err(|violation| Violation::Mqtt(ClientError::Mqtt(violation)))
    }

    /// Whether the peer answers our leave: it is waited for.
    pub fn awaits_end(&self) -> bool {
        match self {
            Machine::Call(call) => call.sends(),
            // The client closes (MQTT 5, 3.14.4).
            Machine::Mqtt(_) | Machine::Sql(_) => false,
            _ => self.traits().closes,
        }
    }

    /// Writes the leave that is taken; false where it is taken without a word.
    pub fn close(&mut self, code: u16, mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        match self {
            Machine::WebSocket(_) => write_close(out, Some(code), "", Some(mask)),
            Machine::Call(call) if call.sends() => call.half_close(out),
            Machine::Mqtt(client) => client.disconnect(mask, out),
            Machine::Sql(client) => client.terminate(out),
            // All has been said, and the target need not end by itself.
            Machine::Call(call) => call.cancel(out),
            _ => return false,
        }
        true
    }

    /// The connection is lost. True if the machine continues on the next connection.
    pub fn lost(&mut self) -> bool {
        match self {
            Machine::Mqtt(client) => client.lost(),
            _ => false,
        }
    }

    /// How the peer closed the connection, in words.
    pub fn closed(&self, code: Option<u16>, reason: &str) -> Said {
        match (self, code) {
            (Machine::Events(_), _) => say!("the target ended the event stream"),
            (Machine::Call(_), _) => say!("the target ended the gRPC call"),
            (Machine::Redis(_), _) => say!("the Redis server closed the connection: {reason}"),
            (Machine::Mqtt(_), Some(code)) if throng_base::mqtt::code_of(code).is_some() => {
                say!("the MQTT server ended the connection: {reason}")
            }
            (_, Some(code)) if reason.is_empty() => {
                say!("the target closed the WebSocket with code {code}")
            }
            (_, Some(code)) => {
                say!("the target closed the WebSocket with code {code}: {reason}")
            }
            (_, None) => say!("the target closed the WebSocket without a code"),
        }
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
            Machine::Mqtt(client) => client.session().half(),
            Machine::Redis(client) => client.half(),
            Machine::Sql(client) => client.half(),
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
            Machine::Mqtt(client) => client.heap_bytes(),
            Machine::Redis(client) => client.heap_bytes(),
            Machine::Sql(client) => client.heap_bytes(),
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

fn event_of_mqtt(came: Came<'_>) -> Event<'_> {
    match came {
        Came::Message(message) => Event::Message(message),
        Came::Answered(answer) => Event::Answered(Answered::Mqtt(answer)),
        Came::Pong => Event::Pong(b""),
        Came::Ping(payload) => Event::Ping(payload),
        Came::Closed { code, reason } => Event::Closed { code, reason },
    }
}

fn event_of_redis(came: redis::Came<'_>) -> Event<'_> {
    match came {
        redis::Came::Message(message) => Event::Message(message),
        redis::Came::Answer(answer) => Event::Answered(Answered::Redis(answer)),
        redis::Came::Refused(reason) => {
            let reason = std::str::from_utf8(reason).unwrap_or_default();
            Event::Closed { code: None, reason }
        }
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
            Violation::Mqtt(error) => error.said(),
            Violation::Redis(violation) => violation.said(),
            Violation::Sql(error) => error.said(),
        }
    }

    /// With what code the connection is closed, where it is closed with one.
    pub fn close_code(&self) -> Option<u16> {
        match self {
            Violation::WebSocket(error) | Violation::Mqtt(ClientError::WebSocket(error)) => {
                Some(error.close_code())
            }
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
            Violation::WebSocket(error) | Violation::Mqtt(ClientError::WebSocket(error)) => {
                large(error)
            }
            Violation::Mqtt(ClientError::Mqtt(violation)) => violation.is_our_limit(),
            Violation::Redis(violation) => violation.is_our_limit(),
            Violation::Events(EventError::Http2(violation)) => violation.is_too_large(),
            Violation::Events(error) => matches!(error, EventError::TooLarge { .. }),
            Violation::Call(CallError::Http2(violation)) => violation.is_too_large(),
            Violation::Call(CallError::Grpc(violation)) => violation.is_too_large(),
            Violation::Sql(error) => error.is_too_large(),
            _ => false,
        }
    }

    /// Whether the port speaks something else that is known.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Violation::Redis(redis::Violation::Foreign(_)))
    }

    /// Whether it is not wrong either: the peer gave up what it had begun.
    pub fn is_reset(&self) -> bool {
        matches!(
            self,
            Violation::Events(EventError::Reset(_)) | Violation::Call(CallError::Reset(_))
        )
    }
}
