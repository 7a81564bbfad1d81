//! The protocol of a connection as one machine: bytes go in and messages come out, messages go in
//! and bytes come out. It knows no users, and its caller knows no frames.
//!
//! To add a protocol, add a row to [`Machine`], and implement [`ProtocolMachine`] in a file of its
//! own.

mod bytes;
mod declared;
mod events;
mod grpc;
mod http1;
mod http2;
mod mqtt;
mod protocol;
mod redis;
mod sql;
mod websocket;

use throng_base::{Said, Time};

use crate::events::{EventMessage, EventReader, Resume};
pub use crate::field::Field;
use crate::framed::PacketReader;
use crate::grpc::CallStream;
use crate::http1::{HttpError, ResponseReader};
pub use crate::input::{Answered, Ends, Event, Input, Limits};
use crate::stream::StreamReader;
use crate::websocket::{Deflater, FrameReader, Inflater};
pub use protocol::{Breach, Nature, ProtocolMachine, Traits};

/// The protocols: how a connection stores the machine of each, and that machine.
macro_rules! machines {
    (($d:tt) $($(#[$doc:meta])* $name:ident($held:ty), $machine:ty;)*) => {
        /// The protocol of one connection, and the progress of its current message.
        #[derive(Debug)]
        pub enum Machine {
            $($(#[$doc])* $name($held),)*
        }

        /// How messages are parsed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Form {
            $($name,)*
        }

        /// A protocol violation. Nothing can be read after it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Violation {
            $($name(<$machine as ProtocolMachine>::Breach),)*
        }

        impl Machine {
            /// Reads up to the next event; `None` if the input ends before. Data to send is
            /// appended to `out`. After an error nothing follows.
            #[inline(always)] // Once per event: otherwise it would be copied again.
            pub fn next<'a: 'r, 'r>(
                &mut self,
                input: &mut Input<'a>,
                lent: &'r mut Lent,
                out: &mut Vec<u8>,
            ) -> Result<Option<Event<'r>>, Violation> {
                match self {
                    $(Machine::$name(own) => {
                        <$machine as ProtocolMachine>::next(own, input, lent, out)
                            .map_err(Violation::$name)
                    })*
                }
            }

            /// Writes a keep-alive message if it is due.
            ///
            /// # Errors
            /// The peer has not answered the last one.
            pub fn keep_alive(
                &mut self,
                now: Time,
                mask: [u8; 4],
                out: &mut Vec<u8>,
            ) -> Result<(), Violation> {
                match self {
                    $(Machine::$name(own) => {
                        <$machine as ProtocolMachine>::keep_alive(own, now, mask, out)
                            .map_err(Violation::$name)
                    })*
                }
            }

            pub fn form(&self) -> Form {
                match self {
                    $(Machine::$name(_) => Form::$name,)*
                }
            }
        }

        impl Form {
            /// Splits a message that was returned.
            pub fn parts(self, message: &[u8]) -> Parts<'_> {
                match self {
                    $(Form::$name => <$machine as ProtocolMachine>::parts(message),)*
                }
            }
        }

        impl Violation {
            fn breach(&self) -> &dyn Breach {
                match self {
                    $(Violation::$name(breach) => breach,)*
                }
            }
        }

        /// Calls a method of the connection's machine.
        macro_rules! own {
            ($d machine:ident . $d method:ident ( $d($d argument:expr),* )) => {
                match $d machine {
                    $(Machine::$name(own) => {
                        <$machine as ProtocolMachine>::$d method(own $d(, $d argument)*)
                    })*
                }
            };
        }
    };
}

machines! { ($)
    /// Requests, each with its response.
    Http1(ResponseReader), ResponseReader;
    /// The same, many at a time: each is a stream of its own.
    Http2(Box<crate::http2::Client>), crate::http2::Client;
    WebSocket(FrameReader), FrameReader;
    /// Bytes without messages: the step that waits for a reply defines its end ([`Ends`]).
    Bytes(StreamReader), StreamReader;
    /// The packets of a declared protocol, or records that end with a delimiter.
    Declared(PacketReader), PacketReader;
    /// Server-sent events: one HTTP response, starting with its head.
    Events(EventReader), EventReader;
    /// A gRPC call that stays open: one HTTP/2 stream.
    Call(CallStream), CallStream;
    Mqtt(Box<crate::mqtt::Client>), crate::mqtt::Client;
    Redis(Box<crate::redis::Client>), crate::redis::Client;
    Sql(Box<crate::sql::Client>), crate::sql::Client;
}

/// A message, split into its parts.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    pub content: &'a [u8],
    pub fields: Fields<'a>,
}

/// Named fields of a message besides its content, if its protocol has any, such as headers.
#[derive(Clone, Copy, Debug, Default)]
pub enum Fields<'a> {
    #[default]
    None,
    Event(EventMessage<'a>),
    Mqtt(crate::mqtt::Message<'a>),
    Redis(crate::redis::Message<'a>),
    Reply(crate::redis::RedisAnswer<'a>),
    Sql(crate::sql::Reply<'a>),
}

impl<'a> Fields<'a> {
    /// A field that is not empty.
    pub fn get(self, name: &str) -> Option<Field<'a>> {
        let named = |(own, field): (&str, Field<'a>)| (own == name).then_some(field);
        let field = match self {
            Fields::None => None,
            Fields::Event(event) => event.fields().into_iter().find_map(named),
            Fields::Mqtt(message) => message.field(name),
            Fields::Redis(message) => message.fields().into_iter().find_map(named),
            Fields::Reply(answer) => return answer.field(name),
            // An empty text is a value.
            Fields::Sql(reply) => return reply.field(name),
        };
        field.filter(|field| *field != Field::Bytes(b""))
    }

    /// All of them.
    pub fn each(self, visit: &mut dyn FnMut(&'a str, Field<'a>)) {
        let visit_one = |(name, field)| visit(name, field);
        match self {
            Fields::None | Fields::Sql(_) => {}
            Fields::Event(event) => event.fields().into_iter().for_each(visit_one),
            Fields::Mqtt(message) => message.fields().for_each(visit_one),
            Fields::Redis(message) => message.fields().into_iter().for_each(visit_one),
            Fields::Reply(answer) => answer.fields().for_each(visit_one),
        }
    }
}

/// Buffers that machines borrow while they read; one for all connections of a thread.
#[derive(Debug, Default)]
pub struct Lent {
    pub limits: Limits,
    inflater: Inflater,
    /// Data of an event that is not in the input: it arrived in pieces, or was decoded.
    room: Vec<u8>,
    mqtt: crate::mqtt::Room,
}

/// Capacity that is kept.
const ROOM_BYTES_MAX: usize = 256 * 1024;

impl Lent {
    pub fn new(limits: Limits) -> Lent {
        Lent { limits, ..Lent::default() }
    }

    /// Releases the memory of an exceptionally large message.
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
        own!(self.traits())
    }

    /// Whether its messages answer what opened it: the first is timed, and each behind another.
    #[inline]
    pub fn is_stream(&self) -> bool {
        own!(self.is_stream())
    }

    /// The peer has closed. True if that ends a response; an error if one is cut off.
    pub fn end(&mut self) -> Result<bool, HttpError> {
        own!(self.end())
    }

    /// The socket has taken everything written. True if more was written now.
    #[inline]
    pub fn drained(&mut self, out: &mut Vec<u8>) -> bool {
        own!(self.drained(out))
    }

    /// How many sent bytes wait for the peer to make room.
    #[inline]
    pub fn backlog(&self) -> usize {
        own!(self.backlog())
    }

    /// Writes a message in wire format. If none can be sent anymore, nothing is written.
    pub fn message(
        &mut self,
        is_text: bool,
        content: &[u8],
        mask: [u8; 4],
        deflater: &mut Deflater,
        out: &mut Vec<u8>,
    ) {
        own!(self.message(is_text, content, mask, deflater, out));
    }

    /// Writes a ping; false if the protocol has none.
    pub fn ping(&mut self, payload: &[u8], now: Time, mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        own!(self.ping(payload, now, mask, out))
    }

    /// Writes the answer to a ping.
    pub fn pong(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        own!(self.pong(payload, mask, out))
    }

    /// When [`Machine::keep_alive`] is due.
    #[inline]
    pub fn due(&self) -> Time {
        own!(self.due())
    }

    /// Rolls back the transaction that is open, if there is one.
    pub fn roll_back(&mut self, out: &mut Vec<u8>) {
        own!(self.roll_back(out));
    }

    /// Whether the peer answers our close, so that it is waited for.
    pub fn awaits_end(&self) -> bool {
        own!(self.awaits_end())
    }

    /// Writes the close; false if the protocol has no message for it.
    pub fn close(&mut self, code: u16, mask: [u8; 4], out: &mut Vec<u8>) -> bool {
        own!(self.close(code, mask, out))
    }

    /// The connection is lost. True if the machine continues on the next connection.
    pub fn lost(&mut self) -> bool {
        own!(self.lost())
    }

    /// Describes how the peer closed the connection.
    pub fn closed(&self, code: Option<u16>, reason: &str) -> Said {
        own!(self.closed(code, reason))
    }

    /// What a client needs to resume a lost stream.
    pub fn resume(&self) -> Option<Resume> {
        own!(self.resume())
    }

    /// Bytes of an incomplete message.
    pub fn half(&self) -> usize {
        own!(self.half())
    }

    /// Its heap memory for received data.
    pub fn heap_bytes(&self) -> usize {
        own!(self.heap_bytes())
    }

    /// Whether the peer has sent its close: then it also ends the connection.
    pub fn is_left(&self) -> bool {
        own!(self.is_left())
    }
}

impl Violation {
    pub fn said(&self) -> Said {
        self.breach().said()
    }

    pub fn nature(&self) -> Nature<'_> {
        self.breach().nature()
    }

    /// The code with which the connection is closed, if the protocol has one.
    pub fn close_code(&self) -> Option<u16> {
        self.breach().close_code()
    }
}
