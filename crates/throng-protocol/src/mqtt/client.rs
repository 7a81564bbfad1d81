//! A session and its transport: a byte stream, or the binary messages of a WebSocket, which may
//! split packets anywhere (6.0).

use throng_base::{Said, Time};

use super::event::{Event, Lent};
use super::kind::{PacketType, Version};
use super::message::Message;
use super::packet::Codes;
use super::property::Properties;
use super::property_id::PropertyId;
use super::reason::Reason;
use super::session::{ID_NOT_FOUND, Session, Wishes};
use super::violation::Violation;
use crate::websocket::{
    self, FrameReader, Inflater, Opcode, WebSocketError, write_close, write_frame,
};

/// The client side of a connection. It outlives its connections, as its session does.
#[derive(Debug)]
pub struct Client {
    session: Session,
    carrier: Option<Box<Carrier>>,
}

const _: () = assert!(size_of::<Client>() <= 80);

/// The WebSocket below.
#[derive(Debug)]
struct Carrier {
    reader: FrameReader,
    /// The unread part of its last message starts at `at`.
    held: Vec<u8>,
    at: usize,
}

/// An event. Its data is in the room: see [`Message::of`] for a message.
#[derive(Clone, Copy, Debug)]
pub enum Came {
    Message,
    /// With the server's explanation; see [`MqttAnswer`].
    Answered {
        id: u16,
        packet: PacketType,
        reason: &'static Reason,
        lower: usize,
    },
    Pong,
    /// From the WebSocket below, with its payload; must be answered.
    Ping,
    /// The server closes: with the status of its reason, or with a WebSocket code.
    Closed {
        code: Option<u16>,
    },
}

/// The reply to a numbered packet.
#[derive(Clone, Copy, Debug)]
pub struct MqttAnswer<'a> {
    /// The packet identifier; 0 for the connection.
    pub id: u16,
    pub packet: PacketType,
    pub reason: &'static Reason,
    /// The server's explanation.
    pub text: &'a str,
    /// How many subscriptions have a lower QoS than requested.
    pub lower: usize,
}

/// A violation of one of the two standards by the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    Mqtt(Violation),
    WebSocket(WebSocketError),
    /// Packets must be in binary messages (6.0).
    Text,
}

/// Buffers that a client borrows while it reads; one for all connections of a thread.
#[derive(Debug, Default)]
pub struct Room {
    whole: Vec<u8>,
    topic: String,
}

/// Capacity that is kept.
const ROOM_BYTES_MAX: usize = 256 * 1024;

impl Room {
    /// Releases the memory of an exceptionally large packet.
    #[inline]
    pub fn trim(&mut self) {
        if self.whole.capacity() > ROOM_BYTES_MAX {
            self.whole = Vec::new();
        }
    }
}

/// Parameters of reading bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'l> {
    pub now: Time,
    pub limits: &'l websocket::Limits,
}

impl Client {
    pub fn new(version: Version, wishes: Wishes) -> Client {
        Client { session: Session::new(version, wishes), carrier: None }
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The new connection is a WebSocket.
    pub fn is_carried(&mut self, reader: FrameReader) {
        self.carrier = Some(Box::new(Carrier { reader, held: Vec::new(), at: 0 }));
    }

    /// The connection has ended. True if the session outlives it.
    pub fn lost(&mut self) -> bool {
        self.carrier = None;
        self.session.lost();
        self.session.is_persistent()
    }

    pub fn heap_bytes(&self) -> usize {
        let carrier = self.carrier.as_ref();
        let carrier = carrier.map_or(0, |it| it.reader.heap_bytes() + it.held.capacity());
        carrier + self.session.heap_bytes()
    }

    /// Sends packets as the connection carries them.
    pub fn say<T>(
        &mut self,
        mask: [u8; 4],
        out: &mut Vec<u8>,
        speak: impl FnOnce(&mut Session, &mut Vec<u8>) -> T,
    ) -> T {
        if self.carrier.is_none() {
            return speak(&mut self.session, out);
        }
        let mut packets = Vec::new();
        let said = speak(&mut self.session, &mut packets);
        self.frame(&packets, mask, out);
        said
    }

    /// Writes packets as the connection carries them.
    pub fn frame(&self, packets: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
        match &self.carrier {
            Some(_) if packets.is_empty() => {}
            Some(_) => write_frame(out, Opcode::Binary, true, false, Some(mask), packets),
            None => out.extend_from_slice(packets),
        }
    }

    /// Answers a ping of the WebSocket below.
    pub fn pong(&self, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
        if self.carrier.is_some() {
            write_frame(out, Opcode::Pong, true, false, Some(mask), payload);
        }
    }

    /// Disconnects. The server publishes no will.
    pub fn disconnect(&mut self, mask: [u8; 4], out: &mut Vec<u8>) {
        self.say(mask, out, |session, out| session.disconnect(Default::default(), out));
        if self.carrier.is_some() {
            write_close(out, Some(1000), "", Some(mask));
        }
    }

    /// Reads up to the next event for the caller. Its data is in `room`, and data to send is
    /// appended to `out`.
    ///
    /// # Errors
    /// A violation of one of the standards. Nothing is read after it.
    pub fn next(
        &mut self,
        rest: &mut &[u8],
        Reading { now, limits }: Reading<'_>,
        inflater: &mut Inflater,
        (own, room): (&mut Room, &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> Result<Option<Came>, ClientError> {
        room.clear();
        let packet_bytes_max = u32::try_from(limits.message_bytes_max).unwrap_or(u32::MAX);
        let Client { session, carrier } = self;
        let Room { whole, topic } = own;
        let Some(carrier) = carrier else {
            loop {
                let lent = Lent { whole, topic, out, now, packet_bytes_max };
                match session.next(rest, lent).map_err(ClientError::Mqtt)? {
                    None => return Ok(None),
                    Some(event) => {
                        if let Some(came) = meaning(event, room) {
                            return Ok(Some(came));
                        }
                    }
                }
            }
        };
        // These bytes need no protection from intermediaries.
        let mask = (now.as_nanos() as u32).to_ne_bytes();
        loop {
            let mut packets = &carrier.held[carrier.at..];
            if packets.is_empty() {
                carrier.forget();
                match carrier.reader.next(rest, limits, inflater, whole) {
                    Ok(None) => return Ok(None),
                    Ok(Some(websocket::Message::Binary(bytes))) => {
                        carrier.held.extend_from_slice(bytes);
                        continue;
                    }
                    Ok(Some(message)) => match of_carrier(message, room)? {
                        None => continue,
                        came => return Ok(came),
                    },
                    Err(error) => return Err(ClientError::WebSocket(error)),
                }
            }
            let mut said = Vec::new();
            let lent = Lent { whole, topic, out: &mut said, now, packet_bytes_max };
            let read = session.next(&mut packets, lent);
            let left = packets.len();
            let came = read.map(|event| event.and_then(|event| meaning(event, room)));
            carrier.at = carrier.held.len() - left;
            if !said.is_empty() {
                write_frame(out, Opcode::Binary, true, false, Some(mask), &said);
            }
            if let Some(came) = came.map_err(ClientError::Mqtt)? {
                return Ok(Some(came));
            }
        }
    }
}

impl Carrier {
    /// The message was read completely.
    fn forget(&mut self) {
        self.at = 0;
        if self.held.capacity() > 0 {
            self.held = Vec::new();
        }
    }
}

/// The meaning of a session event for the caller; `None` if only the session needs it.
fn meaning(event: Event<'_>, room: &mut Vec<u8>) -> Option<Came> {
    let answered = |id, packet, reason, lower| Came::Answered { id, packet, reason, lower };
    let mut told = |properties: Properties<'_>| {
        let text = properties.text(PropertyId::ReasonString).unwrap_or_default();
        room.extend_from_slice(text.as_bytes());
    };
    Some(match event {
        Event::Message(publish) => {
            Message::write(&publish, room);
            Came::Message
        }
        Event::Connected { properties, .. } => {
            told(properties);
            answered(0, PacketType::Connack, Reason::SUCCESS, 0)
        }
        Event::Refused { reason, properties } => {
            told(properties);
            answered(0, PacketType::Connack, reason, 0)
        }
        Event::Published { id, reason } => answered(id, PacketType::Puback, reason, 0),
        Event::Subscribed { codes, lower } => {
            told(codes.properties);
            answered(codes.id, PacketType::Suback, worst(PacketType::Suback, codes), lower)
        }
        Event::Unsubscribed(codes) => {
            told(codes.properties);
            answered(codes.id, PacketType::Unsuback, worst(PacketType::Unsuback, codes), 0)
        }
        Event::Pong => Came::Pong,
        Event::Disconnected { reason, properties } => {
            told(properties);
            if room.is_empty() {
                room.extend_from_slice(reason.name.as_bytes());
            }
            Came::Closed { code: Some(reason.status()) }
        }
        // No step waits for it, and it is counted that way.
        Event::Unreleased(_) => {
            let reason = Reason::of(Version::V5, PacketType::Pubcomp, ID_NOT_FOUND)?;
            answered(0, PacketType::Pubrel, reason, 0)
        }
        // Nothing continues an authentication that no scenario can start.
        Event::Auth { .. } | Event::Duplicate(_) | Event::Received(_) | Event::Released(_) => {
            return None;
        }
    })
}

/// The first error code; otherwise the first code.
fn worst(packet: PacketType, codes: Codes<'_>) -> &'static Reason {
    let of = |code: &u8| Reason::of(Version::V5, packet, *code);
    let error = codes.codes.iter().find(|code| **code >= 0x80);
    let unknown = Reason::of(Version::V5, packet, 0x80).unwrap_or(Reason::SUCCESS);
    match (error, codes.codes.first()) {
        // A code outside of the tables has no further meaning.
        (Some(error), _) => of(error).unwrap_or(unknown),
        (None, Some(first)) => of(first).unwrap_or(Reason::SUCCESS),
        (None, None) => Reason::SUCCESS,
    }
}

fn of_carrier(
    message: websocket::Message<'_>,
    room: &mut Vec<u8>,
) -> Result<Option<Came>, ClientError> {
    Ok(match message {
        websocket::Message::Text(_) => return Err(ClientError::Text),
        websocket::Message::Ping(payload) => {
            room.extend_from_slice(payload);
            Some(Came::Ping)
        }
        websocket::Message::Close { code, reason } => {
            room.extend_from_slice(reason.as_bytes());
            Some(Came::Closed { code })
        }
        websocket::Message::Binary(_) | websocket::Message::Pong(_) => None,
    })
}

impl ClientError {
    pub fn said(&self) -> Said {
        match self {
            ClientError::Mqtt(violation) => violation.said(),
            ClientError::WebSocket(error) => Said::of_others(error.to_string()),
            ClientError::Text => {
                say!(
                    "MQTT packets arrived in a WebSocket text message instead of a binary one \
                     (section 6.0)"
                )
            }
        }
    }
}
