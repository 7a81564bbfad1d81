//! Declared protocols with complete packets: written values are read again, and malformed packets
//! are reported.

use std::convert::Infallible;

use throng_expression::Value;

use super::declaration::*;
use super::*;

mod binary;
mod contradictions;
mod documents;
mod frames;
mod fuzz;
mod kinds;
mod layers;
mod named;
mod packets;
mod parts;
mod records;
mod samples;
mod xml;

use samples::*;

/// What a scenario gives, from values.
pub(super) fn fields(entries: &[(&str, Value)]) -> Given {
    let entries =
        entries.iter().map(|(name, value)| ((*name).to_owned(), Given::Literal(value.clone())));
    Given::Fields(entries.collect())
}

/// The same with every value behind a leaf.
pub(super) fn leaves(entries: &[(&str, Value)]) -> Given {
    let entries = entries
        .iter()
        .enumerate()
        .map(|(index, (name, _))| ((*name).to_owned(), Given::Leaf(index as u16)));
    Given::Fields(entries.collect())
}

pub(super) fn try_write(
    protocol: &Protocol,
    message: &str,
    entries: &[(&str, Value)],
    correlation: u64,
) -> Result<Vec<u8>, String> {
    let message = protocol.message(message).unwrap();
    let mut all = Vec::new();
    for given in [leaves(entries), fields(entries)] {
        let template = match protocol.prepare(message, &given) {
            Ok(template) => template,
            Err(mistake) => {
                all.push(Err(format!("{}: {}", mistake.path.join("."), mistake.message.english())));
                continue;
            }
        };
        let mut out = b"before".to_vec();
        let mut leaf = |leaf: u16, out: &mut Vec<u8>| match &entries[usize::from(leaf)].1 {
            // Half of the texts are appended as the templates of scenarios are.
            Value::Text(text) if leaf.is_multiple_of(2) => {
                out.extend_from_slice(text.as_bytes());
                Ok::<_, Infallible>(None)
            }
            value => Ok(Some(value.clone())),
        };
        let result = protocol.encode(&template, correlation, &mut leaf, &mut out);
        assert!(out.starts_with(b"before"));
        all.push(match result {
            Ok(()) => Ok(out[6..].to_vec()),
            Err(EncodeError::Value { field, reason }) => {
                assert_eq!(out.len(), 6, "something was appended");
                Err(format!("{field}: {}", reason.english()))
            }
            Err(EncodeError::Leaf(_)) => unreachable!(),
        });
    }
    assert_eq!(all[0], all[1], "leaves and literals are written alike");
    all.swap_remove(0)
}

pub(super) fn write(
    protocol: &Protocol,
    message: &str,
    entries: &[(&str, Value)],
    correlation: u64,
) -> Vec<u8> {
    try_write(protocol, message, entries, correlation).unwrap()
}

pub(super) fn get(protocol: &Protocol, packet: &[u8], path: &str) -> Option<Value> {
    let mut decoded = Decoded::default();
    let read = protocol.decode(packet, &mut decoded).unwrap();
    let path = protocol.field(read.message, path).unwrap();
    protocol.value(packet, &decoded, &path)
}

/// What is wrong with a packet.
pub(super) fn wrong(protocol: &Protocol, packet: &[u8]) -> String {
    protocol.decode(packet, &mut Decoded::default()).unwrap_err().said().english()
}
