//! How the items of CBOR (RFC 8949, 3) and MessagePack begin: their types, and their numbers or
//! lengths.

/// What an item is, as far as its first bytes say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Head {
    Null,
    Bool(bool),
    Whole(i128),
    Float(f64),
    /// So many bytes follow; None: pieces up to a break.
    Text(Option<u64>),
    Bytes(Option<u64>),
    /// So many items or entries follow; None: up to a break.
    List(Option<u64>),
    Map(Option<u64>),
    /// Says more about the item behind it.
    Tag,
    Break,
    /// An extension of MessagePack, or a simple value of CBOR: its type, and the bytes that follow.
    Foreign {
        kind: i16,
        bytes: u64,
    },
}

/// Why the first bytes of an item say nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flaw {
    /// More bytes are needed.
    Short,
    /// No item begins with this byte.
    Reserved,
}

/// A number of so many bytes behind the first byte of an item, and the bytes of both.
fn number(bytes: &[u8], width: usize) -> Result<(u64, usize), Flaw> {
    let digits = bytes.get(1..1 + width).ok_or(Flaw::Short)?;
    Ok((digits.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)), 1 + width))
}

/// The head that begins with the first byte, and its bytes.
pub(super) fn cbor(bytes: &[u8]) -> Result<(Head, usize), Flaw> {
    let first = *bytes.first().ok_or(Flaw::Short)?;
    let (argument, used) = match first & 31 {
        small @ 0..=23 => (Some(u64::from(small)), 1),
        width @ 24..=27 => {
            let (number, used) = number(bytes, 1 << (width - 24))?;
            (Some(number), used)
        }
        31 => (None, 1),
        _ => return Err(Flaw::Reserved),
    };
    let head = match (first >> 5, argument) {
        (0, Some(number)) => Head::Whole(i128::from(number)),
        (1, Some(number)) => Head::Whole(-1 - i128::from(number)),
        (2, length) => Head::Bytes(length),
        (3, length) => Head::Text(length),
        (4, count) => Head::List(count),
        (5, count) => Head::Map(count),
        (6, Some(_)) => Head::Tag,
        (7, None) => Head::Break,
        (7, Some(number)) => match first & 31 {
            20 => Head::Bool(false),
            21 => Head::Bool(true),
            // Null and undefined.
            22 | 23 => Head::Null,
            24 if number < 32 => return Err(Flaw::Reserved),
            25 => Head::Float(half(number as u16)),
            26 => Head::Float(f64::from(f32::from_bits(number as u32))),
            27 => Head::Float(f64::from_bits(number)),
            _ => Head::Foreign { kind: number as i16, bytes: 0 },
        },
        _ => return Err(Flaw::Reserved),
    };
    Ok((head, used))
}

/// A number of 16 bits (IEEE 754 binary16).
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// The same for MessagePack.
pub(super) fn message_pack(bytes: &[u8]) -> Result<(Head, usize), Flaw> {
    let first = *bytes.first().ok_or(Flaw::Short)?;
    let small = |mask: u8| Some(u64::from(first & mask));
    let unsigned = |width| number(bytes, width);
    let signed = |width: usize| {
        let (number, used) = number(bytes, width)?;
        let shift = 64 - 8 * width;
        Ok((Head::Whole(i128::from((number << shift) as i64 >> shift)), used))
    };
    // The type of an extension is behind its length.
    let extension = |length: u64, used: usize| {
        let kind = *bytes.get(used).ok_or(Flaw::Short)? as i8;
        Ok((Head::Foreign { kind: i16::from(kind), bytes: length }, used + 1))
    };
    let sized = |first_of_sizes: u8, head: fn(Option<u64>) -> Head| {
        let (length, used) = unsigned(1 << (first - first_of_sizes))?;
        Ok((head(Some(length)), used))
    };
    Ok(match first {
        0x00..=0x7f => (Head::Whole(i128::from(first)), 1),
        0x80..=0x8f => (Head::Map(small(0x0f)), 1),
        0x90..=0x9f => (Head::List(small(0x0f)), 1),
        0xa0..=0xbf => (Head::Text(small(0x1f)), 1),
        0xc0 => (Head::Null, 1),
        0xc1 => return Err(Flaw::Reserved),
        0xc2 => (Head::Bool(false), 1),
        0xc3 => (Head::Bool(true), 1),
        0xc4..=0xc6 => return sized(0xc4, Head::Bytes),
        0xc7..=0xc9 => {
            let (length, used) = unsigned(1 << (first - 0xc7))?;
            return extension(length, used);
        }
        0xca => {
            let (bits, used) = unsigned(4)?;
            (Head::Float(f64::from(f32::from_bits(bits as u32))), used)
        }
        0xcb => {
            let (bits, used) = unsigned(8)?;
            (Head::Float(f64::from_bits(bits)), used)
        }
        0xcc..=0xcf => {
            let (number, used) = unsigned(1 << (first - 0xcc))?;
            (Head::Whole(i128::from(number)), used)
        }
        0xd0..=0xd3 => return signed(1 << (first - 0xd0)),
        0xd4..=0xd8 => return extension(1 << (first - 0xd4), 1),
        0xd9..=0xdb => return sized(0xd9, Head::Text),
        0xdc..=0xdd => {
            let (count, used) = unsigned(2 << (first - 0xdc))?;
            (Head::List(Some(count)), used)
        }
        0xde..=0xdf => {
            let (count, used) = unsigned(2 << (first - 0xde))?;
            (Head::Map(Some(count)), used)
        }
        0xe0..=0xff => (Head::Whole(i128::from(first as i8)), 1),
    })
}

/// Appends the head of an item of CBOR with as few bytes as possible.
pub(super) fn write_cbor(major: u8, number: u64, out: &mut Vec<u8>) {
    let (small, width) = match number {
        0..24 => (number as u8, 0),
        24..0x100 => (24, 1),
        0x100..0x1_0000 => (25, 2),
        0x1_0000..0x1_0000_0000 => (26, 4),
        _ => (27, 8),
    };
    out.push(major << 5 | small);
    out.extend_from_slice(&number.to_be_bytes()[8 - width..]);
}

/// The same for lengths of MessagePack: small ones are in the first byte, others behind the one of
/// `sizes` for 8, 16 or 32 bits. There is none for more than 4 GiB.
pub(super) fn write_message_pack(
    small: Option<(u8, u64)>,
    sizes: [Option<u8>; 3],
    number: u64,
    out: &mut Vec<u8>,
) {
    if let Some((first, most)) = small
        && number <= most
    {
        return out.push(first | number as u8);
    }
    for (first, width) in sizes.into_iter().zip([1, 2, 4]) {
        if let Some(first) = first
            && number >> (8 * width) == 0
        {
            out.push(first);
            out.extend_from_slice(&number.to_be_bytes()[8 - width..]);
            return;
        }
    }
}
