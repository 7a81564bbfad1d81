//! Errors in a single packet, with the section of the standard.

use throng_base::Said;

use super::kind::PacketType;
use super::property_id::PropertyId;

/// An error in a packet, independent of when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    UnknownType(u8),
    Flags(u8),
    /// The remaining length has a fifth byte.
    LengthTooLong,
    LengthNotShortest,
    /// The packet ends in the middle of a field.
    CutOff,
    /// This many bytes follow the last field.
    LeftOver(usize),
    NotUtf8,
    /// A text contains U+0000.
    NulCharacter,
    PacketIdZero,
    QosThree,
    DupAtQosZero,
    ReasonCode(u8),
    PropertyUnknown(u32),
    PropertyMisplaced(PropertyId),
    PropertyTwice(PropertyId),
    PropertyValue(PropertyId),
    WildcardInTopic,
    TopicMissing,
    /// No topic filter, or no code for one.
    Empty,
    SubscribeOptions(u8),
    ConnectFlags(u8),
    ProtocolName,
    ProtocolLevel(u8),
    /// `announced`: the peer knew the limit.
    TooLarge {
        bytes: u32,
        bytes_max: u32,
        announced: bool,
    },
}

impl Flaw {
    /// The reason code of the DISCONNECT that reports it (MQTT 5, 3.14.2.1).
    pub(super) fn reason_code(self) -> u8 {
        match self {
            Flaw::TooLarge { .. } => 0x95,
            Flaw::PropertyMisplaced(_)
            | Flaw::PropertyTwice(_)
            | Flaw::PropertyValue(_)
            | Flaw::TopicMissing
            | Flaw::Empty => 0x82,
            _ => 0x81,
        }
    }

    /// The sections of MQTT 3.1.1 and of MQTT 5.
    pub(super) fn sections(self, packet: Option<PacketType>) -> (&'static str, &'static str) {
        match self {
            Flaw::UnknownType(_) => ("2.2.1", "2.1.2"),
            Flaw::Flags(_) if packet == Some(PacketType::Connack) => ("3.2.2.1", "3.2.2.1"),
            Flaw::Flags(_) => ("2.2.2", "2.1.3"),
            Flaw::LengthTooLong | Flaw::LengthNotShortest => ("2.2.3", "1.5.5"),
            Flaw::NotUtf8 | Flaw::NulCharacter => ("1.5.3", "1.5.4"),
            Flaw::PacketIdZero => ("2.3.1", "2.2.1"),
            Flaw::QosThree => ("3.3.1.2", "3.3.1.2"),
            Flaw::DupAtQosZero => ("3.3.1.1", "3.3.1.1"),
            Flaw::ReasonCode(_) => ("3.2.2.3", "2.4"),
            Flaw::PropertyUnknown(_)
            | Flaw::PropertyMisplaced(_)
            | Flaw::PropertyTwice(_)
            | Flaw::PropertyValue(_) => ("2.2.2", "2.2.2.2"),
            Flaw::WildcardInTopic => ("3.3.2.1", "3.3.2.1"),
            Flaw::TopicMissing => ("4.7.3", "3.3.2.1"),
            Flaw::ConnectFlags(_) => ("3.1.2.3", "3.1.2.3"),
            Flaw::ProtocolName => ("3.1.2.1", "3.1.2.1"),
            Flaw::ProtocolLevel(_) => ("3.1.2.2", "3.1.2.2"),
            Flaw::SubscribeOptions(_) => ("3.8.3", "3.8.3.1"),
            Flaw::TooLarge { .. } => ("2.2.3", "3.1.2.11.4"),
            Flaw::CutOff | Flaw::LeftOver(_) | Flaw::Empty => {
                let section = packet.map_or("2", PacketType::section);
                (section, section)
            }
        }
    }

    pub fn said(self) -> Said {
        match self {
            Flaw::UnknownType(number) => say!("the packet type {number} is reserved"),
            Flaw::Flags(flags) => say!("the flags 0x{flags:x} are reserved"),
            Flaw::LengthTooLong => say!("the remaining length has more than four bytes"),
            Flaw::LengthNotShortest => say!("the length is not encoded in the shortest form"),
            Flaw::CutOff => say!("the packet ends in the middle of a field"),
            Flaw::LeftOver(bytes) => say!("{bytes} bytes follow the last field"),
            Flaw::NotUtf8 => say!("a string is not valid UTF-8"),
            Flaw::NulCharacter => say!("a string contains the character U+0000"),
            Flaw::PacketIdZero => say!("the packet identifier is 0"),
            Flaw::QosThree => say!("the QoS is 3"),
            Flaw::DupAtQosZero => say!("a QoS 0 message has the DUP flag set"),
            Flaw::ReasonCode(code) => say!("0x{code:02x} is not a reason code of this packet"),
            Flaw::PropertyUnknown(id) => say!("0x{id:02x} is not a property"),
            Flaw::PropertyMisplaced(id) => {
                say!("the property `{}` does not belong to this packet", id.name())
            }
            Flaw::PropertyTwice(id) => say!("the property `{}` occurs twice", id.name()),
            Flaw::PropertyValue(id) => {
                say!("the property `{}` has a value that is not allowed", id.name())
            }
            Flaw::WildcardInTopic => say!("the topic name contains a wildcard"),
            Flaw::TopicMissing => say!("the topic name is missing"),
            Flaw::Empty => say!("the packet contains no topic filter"),
            Flaw::SubscribeOptions(byte) => {
                say!("the subscription options 0x{byte:02x} are not valid")
            }
            Flaw::ConnectFlags(flags) => say!("the connect flags 0x{flags:02x} are not valid"),
            Flaw::ProtocolName => say!("the protocol name is not `MQTT`"),
            Flaw::ProtocolLevel(level) => say!("the protocol level is {level}, not 4 or 5"),
            Flaw::TooLarge { bytes, bytes_max, .. } => {
                say!("the packet has {bytes} bytes, but the limit is {bytes_max}")
            }
        }
    }
}
