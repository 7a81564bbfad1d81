//! Reason codes of MQTT 5 (2.4): their names, their blame, and their recorded numbers.

use super::{Beside, Meaning};
pub use crate::status::Blame;
use Blame::{Generator, Scenario, Target, TargetOrScenario};

/// The recorded number of reason code 0.
const STATUSES_BEGIN: u16 = 11_000;

/// Table 2.6 and the tables of the packets, sorted by code.
#[rustfmt::skip]
const CODES: [(u8, &str, Blame); 43] = [
    (0x00, "Success", Target),
    (0x01, "Granted QoS 1", Target),
    (0x02, "Granted QoS 2", Target),
    (0x04, "Disconnect with Will Message", Target),
    (0x10, "No matching subscribers", Target),
    (0x11, "No subscription existed", Scenario),
    (0x18, "Continue authentication", Target),
    (0x19, "Re-authenticate", Target),
    (0x80, "Unspecified error", Target),
    (0x81, "Malformed Packet", Generator),
    (0x82, "Protocol Error", Generator),
    (0x83, "Implementation specific error", Target),
    (0x84, "Unsupported Protocol Version", Scenario),
    (0x85, "Client Identifier not valid", Scenario),
    (0x86, "Bad User Name or Password", Scenario),
    (0x87, "Not authorized", TargetOrScenario),
    (0x88, "Server unavailable", Target),
    (0x89, "Server busy", Target),
    (0x8a, "Banned", TargetOrScenario),
    (0x8b, "Server shutting down", Target),
    (0x8c, "Bad authentication method", Scenario),
    (0x8d, "Keep Alive timeout", Generator),
    (0x8e, "Session taken over", Scenario),
    (0x8f, "Topic Filter invalid", Scenario),
    (0x90, "Topic Name invalid", Scenario),
    (0x91, "Packet Identifier in use", Generator),
    (0x92, "Packet Identifier not found", Generator),
    (0x93, "Receive Maximum exceeded", Generator),
    (0x94, "Topic Alias invalid", Generator),
    (0x95, "Packet too large", Scenario),
    (0x96, "Message rate too high", Scenario),
    (0x97, "Quota exceeded", TargetOrScenario),
    (0x98, "Administrative action", Target),
    (0x99, "Payload format invalid", Scenario),
    (0x9a, "Retain not supported", Scenario),
    (0x9b, "QoS not supported", Scenario),
    (0x9c, "Use another server", TargetOrScenario),
    (0x9d, "Server moved", TargetOrScenario),
    (0x9e, "Shared Subscriptions not supported", Scenario),
    (0x9f, "Connection rate exceeded", TargetOrScenario),
    (0xa0, "Maximum connect time", TargetOrScenario),
    (0xa1, "Subscription Identifiers not supported", Scenario),
    (0xa2, "Wildcard Subscriptions not supported", Scenario),
];

/// The recorded number of a reason code. Return codes of 3.1.1 use the equivalent reason code.
pub fn status(code: u8) -> u16 {
    STATUSES_BEGIN + u16::from(code)
}

/// The meaning of a recorded number.
pub fn meaning(status: u16) -> Option<Meaning> {
    let number = code_of(status)?;
    let (word, blame) = code(number)?;
    Some(Meaning { word, beside: Beside::Hexadecimal(number), blame })
}

/// The reason code of such a status.
pub fn code_of(status: u16) -> Option<u8> {
    u8::try_from(status.checked_sub(STATUSES_BEGIN)?).ok()
}

/// The name of a reason code, and whom it blames.
pub const fn code(number: u8) -> Option<(&'static str, Blame)> {
    let mut at = 0;
    while at < CODES.len() {
        let (known, name, blame) = CODES[at];
        if known == number {
            return Some((name, blame));
        }
        at += 1;
    }
    None
}

/// By its name in any case, or by its number in either notation: `0x87`, `135`.
pub fn named(text: &str) -> Option<u8> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let known = |number: &u8| code(*number).is_some();
    let named = |(_, name, _): &&(u8, &str, Blame)| name.eq_ignore_ascii_case(text);
    number.filter(known).or_else(|| CODES.iter().find(named).map(|(number, ..)| *number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_name_and_by_number() {
        assert_eq!(named("not authorized"), Some(0x87));
        assert_eq!([named("0x87"), named("135"), named("0x03")], [Some(0x87), Some(0x87), None]);
        assert_eq!(code(0x86), Some(("Bad User Name or Password", Scenario)));
        assert_eq!(code_of(status(0xff)), Some(0xff));
        assert_eq!([code_of(10_999), code_of(11_256)], [None, None]);
    }
}
