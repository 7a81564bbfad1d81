//! Versions, packet types and QoS levels.

/// The version of the standard that a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// MQTT 3.1.1, protocol level 4.
    V3,
    /// MQTT 5.0, protocol level 5.
    #[default]
    V5,
}

impl Version {
    pub fn level(self) -> u8 {
        match self {
            Version::V3 => 4,
            Version::V5 => 5,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Version::V3 => "3.1.1",
            Version::V5 => "5.0",
        }
    }
}

/// The type of a packet: the upper half of its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketType {
    Connect = 1,
    Connack,
    Publish,
    Puback,
    Pubrec,
    Pubrel,
    Pubcomp,
    Subscribe,
    Suback,
    Unsubscribe,
    Unsuback,
    Pingreq,
    Pingresp,
    Disconnect,
    Auth,
}

/// In the order of their numbers, from 1, with their sections.
const TYPES: [(PacketType, &str, &str); 15] = [
    (PacketType::Connect, "CONNECT", "3.1"),
    (PacketType::Connack, "CONNACK", "3.2"),
    (PacketType::Publish, "PUBLISH", "3.3"),
    (PacketType::Puback, "PUBACK", "3.4"),
    (PacketType::Pubrec, "PUBREC", "3.5"),
    (PacketType::Pubrel, "PUBREL", "3.6"),
    (PacketType::Pubcomp, "PUBCOMP", "3.7"),
    (PacketType::Subscribe, "SUBSCRIBE", "3.8"),
    (PacketType::Suback, "SUBACK", "3.9"),
    (PacketType::Unsubscribe, "UNSUBSCRIBE", "3.10"),
    (PacketType::Unsuback, "UNSUBACK", "3.11"),
    (PacketType::Pingreq, "PINGREQ", "3.12"),
    (PacketType::Pingresp, "PINGRESP", "3.13"),
    (PacketType::Disconnect, "DISCONNECT", "3.14"),
    (PacketType::Auth, "AUTH", "3.15"),
];

impl PacketType {
    /// The type in a first byte. 3.1.1 has no AUTH.
    pub(super) fn of(first: u8, version: Version) -> Option<PacketType> {
        let (found, ..) = TYPES.get(usize::from(first >> 4).checked_sub(1)?)?;
        (*found != PacketType::Auth || version == Version::V5).then_some(*found)
    }

    pub fn name(self) -> &'static str {
        TYPES[self as usize - 1].1
    }

    /// The section that defines it, of both standards.
    pub(super) fn section(self) -> &'static str {
        TYPES[self as usize - 1].2
    }

    /// The lower half of the first byte, which is fixed for every type but PUBLISH.
    pub(super) fn flags(self) -> Option<u8> {
        match self {
            PacketType::Publish => None,
            PacketType::Pubrel | PacketType::Subscribe | PacketType::Unsubscribe => Some(2),
            _ => Some(0),
        }
    }

    /// Its bit in sets of types.
    pub(super) const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// How often a message is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Qos {
    #[default]
    AtMostOnce,
    AtLeastOnce,
    ExactlyOnce,
}

impl Qos {
    pub fn new(level: u8) -> Option<Qos> {
        match level {
            0 => Some(Qos::AtMostOnce),
            1 => Some(Qos::AtLeastOnce),
            2 => Some(Qos::ExactlyOnce),
            _ => None,
        }
    }

    pub fn level(self) -> u8 {
        self as u8
    }
}
