//! Reason codes of MQTT 5 (2.4) and return codes of MQTT 3.1.1 (3.2.2.3, 3.9.3): their names, their
//! packets, and the responsible side.

use throng_base::mqtt;
pub use throng_base::mqtt::Blame;

use super::kind::{PacketType, Version};

/// The meaning of a code.
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

const fn reason(code: u8, packets: u16) -> Reason {
    match mqtt::code(code) {
        Some((name, blame)) => Reason { code, name, blame, packets },
        None => panic!(),
    }
}

const fn returned(code: u8, name: &'static str, packets: u16, blame: Blame) -> Reason {
    Reason { code, name, blame, packets }
}

use Blame::{Scenario, Target, TargetOrScenario};

/// MQTT 5, table 2.6 and those of the packets.
#[rustfmt::skip]
const REASONS: [Reason; 43] = [
    reason(0x00, ALL),
    reason(0x01, SUBACK),
    reason(0x02, SUBACK),
    reason(0x04, DISCONNECT),
    reason(0x10, PUBACK),
    reason(0x11, UNSUBACK),
    reason(0x18, AUTH),
    reason(0x19, AUTH),
    reason(0x80, FAILED),
    reason(0x81, CONNACK | DISCONNECT),
    reason(0x82, CONNACK | DISCONNECT),
    reason(0x83, FAILED),
    reason(0x84, CONNACK),
    reason(0x85, CONNACK),
    reason(0x86, CONNACK),
    reason(0x87, FAILED),
    reason(0x88, CONNACK),
    reason(0x89, CONNACK | DISCONNECT),
    reason(0x8a, CONNACK),
    reason(0x8b, DISCONNECT),
    reason(0x8c, CONNACK | DISCONNECT),
    reason(0x8d, DISCONNECT),
    reason(0x8e, DISCONNECT),
    reason(0x8f, SUBACK | UNSUBACK | DISCONNECT),
    reason(0x90, CONNACK | PUBACK | DISCONNECT),
    reason(0x91, PUBACK | SUBACK | UNSUBACK),
    reason(0x92, RELEASE),
    reason(0x93, DISCONNECT),
    reason(0x94, DISCONNECT),
    reason(0x95, CONNACK | DISCONNECT),
    reason(0x96, DISCONNECT),
    reason(0x97, CONNACK | PUBACK | SUBACK | DISCONNECT),
    reason(0x98, DISCONNECT),
    reason(0x99, CONNACK | PUBACK | DISCONNECT),
    reason(0x9a, CONNACK | DISCONNECT),
    reason(0x9b, CONNACK | DISCONNECT),
    reason(0x9c, CONNACK | DISCONNECT),
    reason(0x9d, CONNACK | DISCONNECT),
    reason(0x9e, SUBACK | DISCONNECT),
    reason(0x9f, CONNACK | DISCONNECT),
    reason(0xa0, DISCONNECT),
    reason(0xa1, SUBACK | DISCONNECT),
    reason(0xa2, SUBACK | DISCONNECT),
];

/// MQTT 3.1.1, table 3.1 and 3.9.3.
#[rustfmt::skip]
const RETURNS: [Reason; 10] = [
    returned(0x00, "Connection Accepted", CONNACK, Target),
    returned(0x00, "Granted QoS 0", SUBACK, Target),
    returned(0x01, "Unacceptable protocol version", CONNACK, Scenario),
    returned(0x01, "Granted QoS 1", SUBACK, Target),
    returned(0x02, "Identifier rejected", CONNACK, Scenario),
    returned(0x02, "Granted QoS 2", SUBACK, Target),
    returned(0x03, "Server unavailable", CONNACK, Target),
    returned(0x04, "Bad user name or password", CONNACK, Scenario),
    returned(0x05, "Not authorized", CONNACK, TargetOrScenario),
    returned(0x80, "Failure", SUBACK, TargetOrScenario),
];

/// The MQTT 5 equivalents of the return codes of 3.1.1 from 1 on.
const RETURNED: [u8; 5] = [0x84, 0x85, 0x88, 0x86, 0x87];

impl Reason {
    pub const SUCCESS: &'static Reason = &REASONS[0];

    /// The meaning of a code in a packet; `None` if it is not allowed there.
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

    /// Its number among the statuses of all protocols.
    pub fn status(&self) -> u16 {
        let code = match self.code {
            code @ 1..=5 if self.is_error() => RETURNED[usize::from(code) - 1],
            code => code,
        };
        mqtt::status(code)
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.code >= 0x80 || self.packets == CONNACK && self.code > 0
    }
}
