//! Numbers in packets: integers of any number of bytes, varints, bit fields.

/// The most bytes of a varint that holds 64 bits.
pub(crate) const VARINT_BYTES_MAX: usize = 10;

/// One to eight bytes as a number without a sign.
#[inline]
pub(crate) fn read_unsigned(bytes: &[u8], is_little: bool) -> u64 {
    match (bytes, is_little) {
        ([a], _) => u64::from(*a),
        ([a, b], false) => u64::from(u16::from_be_bytes([*a, *b])),
        ([a, b, c, d], false) => u64::from(u32::from_be_bytes([*a, *b, *c, *d])),
        ([a, b, c, d, e, f, g, h], false) => u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
        (_, false) => bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
        (_, true) => bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    }
}

/// A number of `width` bytes whose highest bit is the sign, as 64 bits.
#[inline]
pub(crate) fn extend_sign(raw: u64, width: u8) -> u64 {
    let shift = 64 - 8 * u32::from(width);
    (((raw << shift) as i64) >> shift) as u64
}

/// The lowest `width` bytes of `raw`.
#[inline]
pub(crate) fn write_unsigned(raw: u64, width: u8, is_little: bool, out: &mut Vec<u8>) {
    // Common widths are written without a copy of unknown length.
    match (width, is_little) {
        (1, _) => out.push(raw as u8),
        (2, false) => out.extend_from_slice(&(raw as u16).to_be_bytes()),
        (4, false) => out.extend_from_slice(&(raw as u32).to_be_bytes()),
        (8, false) => out.extend_from_slice(&raw.to_be_bytes()),
        (width, false) => out.extend_from_slice(&raw.to_be_bytes()[8 - usize::from(width)..]),
        (width, true) => out.extend_from_slice(&raw.to_le_bytes()[..usize::from(width)]),
    }
}

#[inline]
pub(crate) fn put_unsigned(raw: u64, is_little: bool, place: &mut [u8]) {
    let width = place.len();
    match (is_little, &mut *place) {
        (false, [a]) => *a = raw as u8,
        (false, [a, b]) => [*a, *b] = (raw as u16).to_be_bytes(),
        (false, [a, b, c, d]) => [*a, *b, *c, *d] = (raw as u32).to_be_bytes(),
        (false, _) => place.copy_from_slice(&raw.to_be_bytes()[8 - width..]),
        (true, _) => place.copy_from_slice(&raw.to_le_bytes()[..width]),
    }
}

/// The result of reading a varint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Varint {
    Complete {
        raw: u64,
        bytes: usize,
    },
    /// The bytes end inside it.
    Short,
    /// It has more bytes or bits than 64 bits need.
    Long,
}

#[inline]
pub(crate) fn read_varint(bytes: &[u8]) -> Varint {
    let mut raw = 0u64;
    for (index, byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        if index == VARINT_BYTES_MAX - 1 && *byte > 1 {
            return Varint::Long;
        }
        raw |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Varint::Complete { raw, bytes: index + 1 };
        }
    }
    match bytes.len() < VARINT_BYTES_MAX {
        true => Varint::Short,
        false => Varint::Long,
    }
}

/// The varint as bytes, and how many of them count.
pub(crate) fn varint_bytes(mut raw: u64) -> ([u8; VARINT_BYTES_MAX], usize) {
    let mut bytes = [0; VARINT_BYTES_MAX];
    let mut length = 0;
    loop {
        bytes[length] = (raw & 0x7f) as u8 | if raw > 0x7f { 0x80 } else { 0 };
        length += 1;
        raw >>= 7;
        if raw == 0 {
            return (bytes, length);
        }
    }
}

pub(crate) fn write_varint(raw: u64, out: &mut Vec<u8>) {
    let (bytes, length) = varint_bytes(raw);
    out.extend_from_slice(&bytes[..length]);
}

/// Inserts a varint at `at`.
pub(crate) fn insert_varint(raw: u64, at: usize, out: &mut Vec<u8>) {
    let (bytes, length) = varint_bytes(raw);
    out.splice(at..at, bytes[..length].iter().copied());
}

#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[inline]
pub(crate) fn unzigzag(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

/// `bits` bits (at most 64) from bit `first` on, counted from the highest bit of the first byte.
#[inline]
pub(crate) fn read_bits(bytes: &[u8], first: u32, bits: u32) -> u64 {
    let from = (first / 8) as usize;
    let until = (first + bits).div_ceil(8) as usize;
    let wide = bytes[from..until].iter().fold(0u128, |all, byte| all << 8 | u128::from(*byte));
    let behind = until as u32 * 8 - first - bits;
    ((wide >> behind) & ((1u128 << bits) - 1)) as u64
}

/// Sets the bits that are set in `raw`; those of the field must be clear.
pub(crate) fn put_bits(raw: u64, first: u32, bits: u32, bytes: &mut [u8]) {
    let from = (first / 8) as usize;
    let until = (first + bits).div_ceil(8) as usize;
    let behind = until as u32 * 8 - first - bits;
    let mut wide = u128::from(raw) << behind;
    for byte in bytes[from..until].iter_mut().rev() {
        *byte |= wide as u8;
        wide >>= 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_all_widths_are_read_as_they_are_written() {
        for width in 1..=8u8 {
            for is_little in [false, true] {
                let raw = 0xf1e2_d3c4_b5a6_9788u64 >> (64 - 8 * u32::from(width));
                let mut bytes = Vec::new();
                write_unsigned(raw, width, is_little, &mut bytes);
                assert_eq!(bytes.len(), usize::from(width));
                assert_eq!(read_unsigned(&bytes, is_little), raw);
                let mut place = vec![0; usize::from(width)];
                put_unsigned(raw, is_little, &mut place);
                assert_eq!(place, bytes);
            }
        }
        assert_eq!(extend_sign(0xff, 1) as i64, -1);
        assert_eq!(extend_sign(0x7f_ffff, 3) as i64, 0x7f_ffff);
        assert_eq!(extend_sign(0x80_0000, 3) as i64, -0x80_0000);
    }

    #[test]
    fn varints_hold_64_bits_and_no_more() {
        for raw in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            write_varint(raw, &mut bytes);
            let length = bytes.len();
            assert_eq!(read_varint(&bytes), Varint::Complete { raw, bytes: length });
            assert_eq!(read_varint(&bytes[..length - 1]), Varint::Short);
        }
        assert_eq!(read_varint(&[0xff; 10]), Varint::Long);
        assert_eq!(read_varint(&[0xff; 9]), Varint::Short);
        assert_eq!(read_varint(&[0x80; 11]), Varint::Long);
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!(zigzag(-2), 3);
    }

    #[test]
    fn bits_count_from_the_highest() {
        let mut bytes = [0; 9];
        put_bits(0b101, 0, 3, &mut bytes);
        put_bits(u64::MAX, 3, 64, &mut bytes);
        assert_eq!(bytes[0], 0b1011_1111);
        assert_eq!(read_bits(&bytes, 0, 3), 0b101);
        assert_eq!(read_bits(&bytes, 3, 64), u64::MAX);
        assert_eq!(read_bits(&bytes, 67, 5), 0);
    }
}
