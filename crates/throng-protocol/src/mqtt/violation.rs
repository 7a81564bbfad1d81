//! Violations of the standard by a peer.

use throng_base::Said;

use super::flaw::Flaw;
use super::kind::{PacketType, Version};

/// A violation of the standard by a peer, which fails the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    pub version: Version,
    /// `None` if even the type of the packet is unknown.
    pub packet: Option<PacketType>,
    pub breach: Breach,
}

/// An error in a packet, or a packet at the wrong time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    Malformed(Flaw),
    BeforeConnack,
    SecondConnack,
    /// Only clients send it.
    FromServer,
    /// The peer has a session although a clean start was requested, or refuses with one.
    SessionPresent,
    /// No request with this packet identifier waits.
    UnknownId(u16),
    /// Another packet is expected for this packet identifier.
    WrongReply(u16),
    CodeCount {
        codes: usize,
        filters: usize,
    },
    QosNotAsked {
        granted: u8,
        asked: u8,
    },
    AliasUnknown(u16),
    AliasTooHigh {
        alias: u16,
        alias_max: u16,
    },
    /// More unacknowledged messages than this.
    ReceiveMaximum(u16),
    PongWithoutPing,
    /// No reply to a PINGREQ within the keep-alive time, in seconds.
    KeepAlive(u16),
    AuthWithoutMethod,
}

impl Violation {
    /// The reason code of the DISCONNECT that an MQTT 5 client sends (3.14.2.1).
    pub fn reason_code(&self) -> u8 {
        match self.breach {
            Breach::Malformed(flaw) => flaw.reason_code(),
            Breach::ReceiveMaximum(_) => 0x93,
            Breach::AliasTooHigh { .. } => 0x94,
            _ => 0x82,
        }
    }

    /// Whether it only exceeds a limit that we did not announce to the peer. Everything else is the
    /// fault of the peer.
    pub fn is_our_limit(&self) -> bool {
        matches!(self.breach, Breach::Malformed(Flaw::TooLarge { announced: false, .. }))
    }

    /// The section of the standard in [`Violation::version`] that forbids it.
    pub fn section(&self) -> &'static str {
        let (three, five) = match self.breach {
            Breach::Malformed(flaw) => flaw.sections(self.packet),
            Breach::BeforeConnack | Breach::SecondConnack => ("3.2", "3.2"),
            Breach::FromServer => ("2.2.1", "2.1.2"),
            Breach::SessionPresent => ("3.2.2.2", "3.2.2.1.1"),
            Breach::CodeCount { .. } | Breach::QosNotAsked { .. } => ("3.9.3", "3.9.3"),
            Breach::AliasUnknown(_) | Breach::AliasTooHigh { .. } => ("3.3.2", "3.3.2.3.4"),
            Breach::ReceiveMaximum(_) => ("4.4", "3.3.4"),
            Breach::PongWithoutPing => ("3.13", "3.13"),
            Breach::KeepAlive(_) => ("3.1.2.10", "3.1.2.10"),
            Breach::AuthWithoutMethod => ("2.2.1", "4.12"),
            Breach::UnknownId(_) | Breach::WrongReply(_) => match self.packet {
                Some(PacketType::Puback) => ("4.3.2", "4.3.2"),
                Some(PacketType::Suback) => ("3.8.4", "3.8.4"),
                Some(PacketType::Unsuback) => ("3.10.4", "3.10.4"),
                _ => ("4.3.3", "4.3.3"),
            },
        };
        match self.version {
            Version::V3 => three,
            Version::V5 => five,
        }
    }

    /// The message for reports: the packet, the error, and the section.
    pub fn said(&self) -> Said {
        let (version, section) = (self.version.name(), self.section());
        let breach = self.breach.said();
        match self.packet {
            Some(packet) => {
                let packet = packet.name();
                say!("{packet}: {breach} (MQTT {version}, section {section})")
            }
            None => say!("{breach} (MQTT {version}, section {section})"),
        }
    }
}

impl Breach {
    fn said(self) -> Said {
        match self {
            Breach::Malformed(flaw) => flaw.said(),
            Breach::BeforeConnack => say!("the packet arrived before CONNACK"),
            Breach::SecondConnack => say!("a second CONNACK arrived"),
            Breach::FromServer => say!("only clients send this packet"),
            Breach::SessionPresent => {
                say!("the server must not resume a session here")
            }
            Breach::UnknownId(id) => say!("no packet with the identifier {id} is in flight"),
            Breach::WrongReply(id) => {
                say!("a different packet is expected for the packet identifier {id}")
            }
            Breach::CodeCount { codes, filters } => {
                say!("the packet has {codes} reason codes for {filters} topic filters")
            }
            Breach::QosNotAsked { granted, asked } => {
                say!("QoS {granted} was granted, but only QoS {asked} was requested")
            }
            Breach::AliasUnknown(alias) => say!("the topic alias {alias} was never defined"),
            Breach::AliasTooHigh { alias, alias_max } => {
                say!("the topic alias is {alias}, but the announced maximum is {alias_max}")
            }
            Breach::ReceiveMaximum(count) => {
                say!("more messages are unacknowledged than the announced maximum of {count}")
            }
            Breach::PongWithoutPing => say!("a PINGRESP arrived without a PINGREQ"),
            Breach::KeepAlive(seconds) => {
                say!("no PINGRESP arrived within the keep-alive time of {seconds} s")
            }
            Breach::AuthWithoutMethod => {
                say!("AUTH arrived, but CONNECT contained no authentication method")
            }
        }
    }
}
