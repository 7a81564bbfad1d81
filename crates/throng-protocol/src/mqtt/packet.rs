//! All packets, borrowed from their bytes.

use super::kind::{PacketType, Qos, Version};
use super::property::Properties;
use super::wire::Fields;

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Packet<'a> {
    Connect(Connect<'a>),
    Connack(Connack<'a>),
    Publish(Publish<'a>),
    Puback(Ack<'a>),
    Pubrec(Ack<'a>),
    Pubrel(Ack<'a>),
    Pubcomp(Ack<'a>),
    Subscribe(Subscribe<'a>),
    Suback(Codes<'a>),
    Unsubscribe(Unsubscribe<'a>),
    Unsuback(Codes<'a>),
    Pingreq,
    Pingresp,
    Disconnect(Farewell<'a>),
    Auth(Farewell<'a>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Connect<'a> {
    /// 3.1.1: clean session.
    pub clean_start: bool,
    /// 0: none.
    pub keep_alive_s: u16,
    pub client_id: &'a str,
    pub will: Option<Will<'a>>,
    pub user: Option<&'a str>,
    pub password: Option<&'a [u8]>,
    /// Only in MQTT 5, as in all packets.
    pub properties: Properties<'a>,
}

/// The message that the server publishes when the client is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Will<'a> {
    pub topic: &'a str,
    pub payload: &'a [u8],
    pub qos: Qos,
    pub retain: bool,
    pub properties: Properties<'a>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Connack<'a> {
    pub session_present: bool,
    pub code: u8,
    pub properties: Properties<'a>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Publish<'a> {
    pub topic: &'a str,
    pub payload: &'a [u8],
    pub qos: Qos,
    pub retain: bool,
    pub dup: bool,
    /// 0 with QoS 0.
    pub id: u16,
    pub properties: Properties<'a>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ack<'a> {
    pub id: u16,
    /// 0 in 3.1.1.
    pub code: u8,
    pub properties: Properties<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subscribe<'a> {
    pub id: u16,
    pub properties: Properties<'a>,
    /// Filters, each with a byte of options: at least one, all of them valid texts.
    pub(super) filters: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unsubscribe<'a> {
    pub id: u16,
    pub properties: Properties<'a>,
    pub(super) filters: &'a [u8],
}

/// One code for each filter; none in the UNSUBACK of 3.1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Codes<'a> {
    pub id: u16,
    pub properties: Properties<'a>,
    pub codes: &'a [u8],
}

/// The last packet of a connection, or a step of authentication.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Farewell<'a> {
    pub code: u8,
    pub properties: Properties<'a>,
}

/// How a subscription is served (3.8.3.1). 3.1.1 has only the QoS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscribeOptions {
    pub qos: Qos,
    /// The client does not receive its own messages.
    pub no_local: bool,
    /// Messages keep the retain flag of their publication.
    pub retain_as_published: bool,
    /// 0: retained messages are sent; 1: only if the subscription is new; 2: never.
    pub retain_handling: u8,
}

impl SubscribeOptions {
    pub fn new(qos: Qos) -> SubscribeOptions {
        SubscribeOptions { qos, ..SubscribeOptions::default() }
    }

    /// From its byte; `None` if it is invalid.
    pub(super) fn of_byte(byte: u8, version: Version) -> Option<SubscribeOptions> {
        let retain_handling = byte >> 4 & 3;
        let reserved = if version == Version::V3 { 0xfc } else { 0xc0 };
        if byte & reserved != 0 || retain_handling == 3 {
            return None;
        }
        Some(SubscribeOptions {
            qos: Qos::new(byte & 3)?,
            no_local: byte & 4 != 0,
            retain_as_published: byte & 8 != 0,
            retain_handling,
        })
    }

    pub(super) fn byte(self, version: Version) -> u8 {
        match version {
            Version::V3 => self.qos.level(),
            Version::V5 => {
                let flags = u8::from(self.no_local) << 2 | u8::from(self.retain_as_published) << 3;
                self.qos.level() | flags | (self.retain_handling & 3) << 4
            }
        }
    }
}

impl<'a> Subscribe<'a> {
    pub fn filters(self) -> impl Iterator<Item = (&'a str, SubscribeOptions)> {
        let mut rest = Fields(self.filters);
        std::iter::from_fn(move || {
            let filter = rest.text().ok()?;
            // The byte was checked when the packet was read, with its version.
            let options = SubscribeOptions::of_byte(rest.byte().ok()?, Version::V5)?;
            Some((filter, options))
        })
    }
}

impl<'a> Unsubscribe<'a> {
    pub fn filters(self) -> impl Iterator<Item = &'a str> {
        let mut rest = Fields(self.filters);
        std::iter::from_fn(move || rest.text().ok())
    }
}

impl Packet<'_> {
    pub fn packet_type(&self) -> PacketType {
        match self {
            Packet::Connect(_) => PacketType::Connect,
            Packet::Connack(_) => PacketType::Connack,
            Packet::Publish(_) => PacketType::Publish,
            Packet::Puback(_) => PacketType::Puback,
            Packet::Pubrec(_) => PacketType::Pubrec,
            Packet::Pubrel(_) => PacketType::Pubrel,
            Packet::Pubcomp(_) => PacketType::Pubcomp,
            Packet::Subscribe(_) => PacketType::Subscribe,
            Packet::Suback(_) => PacketType::Suback,
            Packet::Unsubscribe(_) => PacketType::Unsubscribe,
            Packet::Unsuback(_) => PacketType::Unsuback,
            Packet::Pingreq => PacketType::Pingreq,
            Packet::Pingresp => PacketType::Pingresp,
            Packet::Disconnect(_) => PacketType::Disconnect,
            Packet::Auth(_) => PacketType::Auth,
        }
    }
}
