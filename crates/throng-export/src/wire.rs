//! Protocol Buffers fields, as far as Prometheus messages need them. Field numbers are at most 15,
//! so that a tag is one byte.

/// A length-delimited field: a string or a message.
pub(crate) fn field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

pub(crate) fn number(out: &mut Vec<u8>, number: u8, value: u64) {
    out.push(number << 3);
    varint(out, value);
}

pub(crate) fn double(out: &mut Vec<u8>, number: u8, value: f64) {
    out.push(number << 3 | 1);
    out.extend(value.to_le_bytes());
}

/// A signed number, encoded for `sint32` and `sint64`.
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// The content of a packed field of numbers.
pub(crate) fn packed(values: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut out = Vec::new();
    values.for_each(|value| varint(&mut out, value));
    out
}

pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
