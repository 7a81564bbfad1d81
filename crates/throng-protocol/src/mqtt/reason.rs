//! Reason codes of MQTT 5 (2.4) and return codes of MQTT 3.1.1 (3.2.2.3, 3.9.3): their names, where
//! they may stand, and who has to act.

use super::kind::{PacketType, Version};

/// Where the fix belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    Target,
    Scenario,
    /// One of them, and nobody can tell from outside.
    TargetOrScenario,
    /// The peer says that we broke the protocol.
    Generator,
}

/// What a code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    pub code: u8,
    pub name: &'static str,
    pub blame: Blame,
    packets: u16,
}

const CONNACK: u16 = PacketType::Connack.bit();
const PUBACK: u16 = PacketType::Puback.bit() | PacketType::Pubrec.bit();
const RELEASE: u16 = PacketType::Pubrel.bit() | PacketType::Pubcomp.bit();
const SUBACK: u16 = PacketType::Suback.bit();
const UNSUBACK: u16 = PacketType::Unsuback.bit();
const DISCONNECT: u16 = PacketType::Disconnect.bit();
const AUTH: u16 = PacketType::Auth.bit();
const ALL: u16 = FAILED | RELEASE | AUTH;
const FAILED: u16 = CONNACK | PUBACK | SUBACK | UNSUBACK | DISCONNECT;

const fn reason(code: u8, name: &'static str, packets: u16, blame: Blame) -> Reason {
    Reason { code, name, blame, packets }
}

use Blame::{Generator, Scenario, Target, TargetOrScenario};

/// MQTT 5, table 2.6 and those of the packets.
#[rustfmt::skip]
const REASONS: [Reason; 43] = [
    reason(0x00, "Success", ALL, Target),
    reason(0x01, "Granted QoS 1", SUBACK, Target),
    reason(0x02, "Granted QoS 2", SUBACK, Target),
    reason(0x04, "Disconnect with Will Message", DISCONNECT, Target),
    reason(0x10, "No matching subscribers", PUBACK, Target),
    reason(0x11, "No subscription existed", UNSUBACK, Scenario),
    reason(0x18, "Continue authentication", AUTH, Target),
    reason(0x19, "Re-authenticate", AUTH, Target),
    reason(0x80, "Unspecified error", FAILED, Target),
    reason(0x81, "Malformed Packet", CONNACK | DISCONNECT, Generator),
    reason(0x82, "Protocol Error", CONNACK | DISCONNECT, Generator),
    reason(0x83, "Implementation specific error", FAILED, Target),
    reason(0x84, "Unsupported Protocol Version", CONNACK, Scenario),
    reason(0x85, "Client Identifier not valid", CONNACK, Scenario),
    reason(0x86, "Bad User Name or Password", CONNACK, Scenario),
    reason(0x87, "Not authorized", FAILED, TargetOrScenario),
    reason(0x88, "Server unavailable", CONNACK, Target),
    reason(0x89, "Server busy", CONNACK | DISCONNECT, Target),
    reason(0x8a, "Banned", CONNACK, TargetOrScenario),
    reason(0x8b, "Server shutting down", DISCONNECT, Target),
    reason(0x8c, "Bad authentication method", CONNACK | DISCONNECT, Scenario),
    reason(0x8d, "Keep Alive timeout", DISCONNECT, Generator),
    reason(0x8e, "Session taken over", DISCONNECT, Scenario),
    reason(0x8f, "Topic Filter invalid", SUBACK | UNSUBACK | DISCONNECT, Scenario),
    reason(0x90, "Topic Name invalid", CONNACK | PUBACK | DISCONNECT, Scenario),
    reason(0x91, "Packet Identifier in use", PUBACK | SUBACK | UNSUBACK, Generator),
    reason(0x92, "Packet Identifier not found", RELEASE, Generator),
    reason(0x93, "Receive Maximum exceeded", DISCONNECT, Generator),
    reason(0x94, "Topic Alias invalid", DISCONNECT, Generator),
    reason(0x95, "Packet too large", CONNACK | DISCONNECT, Scenario),
    reason(0x96, "Message rate too high", DISCONNECT, Scenario),
    reason(0x97, "Quota exceeded", CONNACK | PUBACK | SUBACK | DISCONNECT, TargetOrScenario),
    reason(0x98, "Administrative action", DISCONNECT, Target),
    reason(0x99, "Payload format invalid", CONNACK | PUBACK | DISCONNECT, Scenario),
    reason(0x9a, "Retain not supported", CONNACK | DISCONNECT, Scenario),
    reason(0x9b, "QoS not supported", CONNACK | DISCONNECT, Scenario),
    reason(0x9c, "Use another server", CONNACK | DISCONNECT, TargetOrScenario),
    reason(0x9d, "Server moved", CONNACK | DISCONNECT, TargetOrScenario),
    reason(0x9e, "Shared Subscriptions not supported", SUBACK | DISCONNECT, Scenario),
    reason(0x9f, "Connection rate exceeded", CONNACK | DISCONNECT, TargetOrScenario),
    reason(0xa0, "Maximum connect time", DISCONNECT, TargetOrScenario),
    reason(0xa1, "Subscription Identifiers not supported", SUBACK | DISCONNECT, Scenario),
    reason(0xa2, "Wildcard Subscriptions not supported", SUBACK | DISCONNECT, Scenario),
];

/// MQTT 3.1.1, table 3.1 and 3.9.3.
#[rustfmt::skip]
const RETURNS: [Reason; 10] = [
    reason(0x00, "Connection Accepted", CONNACK, Target),
    reason(0x00, "Granted QoS 0", SUBACK, Target),
    reason(0x01, "Unacceptable protocol version", CONNACK, Scenario),
    reason(0x01, "Granted QoS 1", SUBACK, Target),
    reason(0x02, "Identifier rejected", CONNACK, Scenario),
    reason(0x02, "Granted QoS 2", SUBACK, Target),
    reason(0x03, "Server unavailable", CONNACK, Target),
    reason(0x04, "Bad user name or password", CONNACK, Scenario),
    reason(0x05, "Not authorized", CONNACK, TargetOrScenario),
    reason(0x80, "Failure", SUBACK, TargetOrScenario),
];

impl Reason {
    /// What a code means in a packet; none if it may not stand there.
    pub fn of(version: Version, packet: PacketType, code: u8) -> Option<&'static Reason> {
        let means = |reason: &&Reason| reason.code == code && reason.packets & packet.bit() != 0;
        match version {
            Version::V5 => {
                let first = REASONS.binary_search_by_key(&code, |reason| reason.code).ok()?;
                Some(&REASONS[first]).filter(means)
            }
            Version::V3 => RETURNS.iter().find(means),
        }
    }

    /// Whether it says that something failed.
    pub fn is_error(&self) -> bool {
        self.code >= 0x80 || self.packets == CONNACK && self.code > 0
    }
}
