//! The Huffman code of RFC 7541, appendix B. It is canonical: only the code lengths are listed, and
//! the tables are computed from them at compile time.

/// The length of each byte's code in bits.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

const LENGTH_MIN: usize = 5;
const LENGTH_MAX: usize = 30;
/// Bits that are looked up in one step: two codes of nearly all text.
const PAIR_BITS: usize = 12;

/// The codes at the start of [`PAIR_BITS`] bits: one or two. None for a longer code.
#[derive(Clone, Copy)]
struct Pair {
    bytes: [u8; 2],
    count: u8,
    /// Length of all codes.
    bits: u8,
}

/// The tables computed from the lengths.
struct Tables {
    codes: [u32; 256],
    pairs: [Pair; 1 << PAIR_BITS],
    /// The bytes in the order of their codes.
    ordered: [u8; 256],
    /// By length: the first 32-bit number that does not start with a code of at most this length.
    ends: [u64; LENGTH_MAX + 1],
    /// By length: the first code, and the index of its byte in `ordered`.
    firsts: [(u32, u16); LENGTH_MAX + 1],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut made = Tables {
        codes: [0; 256],
        pairs: [Pair { bytes: [0; 2], count: 0, bits: 0 }; 1 << PAIR_BITS],
        ordered: [0; 256],
        ends: [0; LENGTH_MAX + 1],
        firsts: [(0, 0); LENGTH_MAX + 1],
    };
    let (mut code, mut place, mut length) = (0, 0, 1);
    while length <= LENGTH_MAX {
        code <<= 1;
        made.firsts[length] = (code, place as u16);
        let mut byte = 0;
        while byte < 256 {
            if LENGTHS[byte] as usize == length {
                made.codes[byte] = code;
                made.ordered[place] = byte as u8;
                code += 1;
                place += 1;
            }
            byte += 1;
        }
        made.ends[length] = (code as u64) << (32 - length);
        length += 1;
    }
    let mut bits = 0;
    while bits < 1 << PAIR_BITS {
        made.pairs[bits] = pair(&made, bits);
        bits += 1;
    }
    made
}

const fn pair(tables: &Tables, bits: usize) -> Pair {
    let mut pair = Pair { bytes: [0; 2], count: 0, bits: 0 };
    while pair.count < 2 {
        let window = (bits as u64) << (64 - PAIR_BITS) << pair.bits;
        match symbol_in(tables, window, PAIR_BITS - pair.bits as usize) {
            Some((byte, length)) => {
                pair.bytes[pair.count as usize] = byte;
                pair.count += 1;
                pair.bits += length as u8;
            }
            None => break,
        }
    }
    pair
}

/// The byte whose code the window starts with, and the length of the code, if that is at most
/// `length_max`. None for the end of string.
const fn symbol_in(tables: &Tables, window: u64, length_max: usize) -> Option<(u8, u32)> {
    let high = window >> 32;
    let mut length = LENGTH_MIN;
    while length <= length_max {
        if high < tables.ends[length] {
            let (first, place) = tables.firsts[length];
            let code = (high >> (32 - length)) as u32;
            return Some((tables.ordered[place as usize + (code - first) as usize], length as u32));
        }
        length += 1;
    }
    None
}

/// The coded length of `text`.
pub(super) fn coded_length(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Writes `text` coded, padded with ones to a whole byte.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut bits) = (0u64, 0);
    for byte in text {
        let length = u32::from(LENGTHS[usize::from(*byte)]);
        window = (window << length) | u64::from(TABLES.codes[usize::from(*byte)]);
        bits += length;
        while bits >= 8 {
            bits -= 8;
            out.push((window >> bits) as u8);
        }
    }
    if bits > 0 {
        out.push(((window << (8 - bits)) as u8) | (0xff >> bits));
    }
}

/// A string that is not valid Huffman code: it contains the code of the end of string, or its
/// padding violates RFC 7541, 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotHuffman;

/// Appends the decoded text to `out`.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), NotHuffman> {
    out.reserve(coded.len() * 8 / LENGTH_MIN + 1);
    let mut rest = coded;
    // Unused bits, from the highest on; those after them are zero.
    let (mut window, mut bits) = (0u64, 0u32);
    loop {
        if let Some(four) = rest.first_chunk::<4>().filter(|_| bits <= 32) {
            window |= u64::from(u32::from_be_bytes(*four)) << (32 - bits);
            bits += 32;
            rest = &rest[4..];
        } else {
            while let Some(byte) = rest.first().filter(|_| bits <= 56) {
                window |= u64::from(*byte) << (56 - bits);
                bits += 8;
                rest = &rest[1..];
            }
        }
        while bits >= PAIR_BITS as u32 {
            let pair = TABLES.pairs[(window >> (64 - PAIR_BITS)) as usize];
            if pair.count == 0 {
                if bits < LENGTH_MAX as u32 {
                    break;
                }
                let (byte, length) = symbol_in(&TABLES, window, LENGTH_MAX).ok_or(NotHuffman)?;
                out.push(byte);
                window <<= length;
                bits -= length;
                continue;
            }
            // Both are written whether there is a second or not: that is faster than a branch.
            let length = out.len() + usize::from(pair.count);
            out.extend_from_slice(&pair.bytes);
            out.truncate(length);
            window <<= pair.bits;
            bits -= u32::from(pair.bits);
        }
        if rest.is_empty() {
            return decode_end(window, bits, out);
        }
    }
}

/// The last codes, and the padding: fewer than eight bits, all ones.
fn decode_end(mut window: u64, mut bits: u32, out: &mut Vec<u8>) -> Result<(), NotHuffman> {
    while bits > 0 {
        let padded = window | (u64::MAX >> bits);
        match symbol_in(&TABLES, padded, bits.min(LENGTH_MAX as u32) as usize) {
            Some((byte, length)) => {
                out.push(byte);
                window <<= length;
                bits -= length;
            }
            None if bits < 8 && padded == u64::MAX => return Ok(()),
            None => return Err(NotHuffman),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use throng_base::Random;

    use super::*;

    fn coded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        assert_eq!(out.len(), coded_length(text));
        out
    }

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, NotHuffman> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    #[test]
    fn every_byte_is_decoded_at_every_position() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&coded(&all)), Ok(all));
        for byte in 0..=255 {
            for others in 0..9 {
                let text = [&[b'a'; 9][..others], &[byte, b'Z', byte]].concat();
                assert_eq!(decoded(&coded(&text)), Ok(text.clone()), "{byte} behind {others}");
            }
        }
        let mut random = Random::for_owner(7, 7);
        for _ in 0..2_000 {
            let text: Vec<u8> = (0..random.below(40)).map(|_| random.next_u64() as u8).collect();
            assert_eq!(decoded(&coded(&text)), Ok(text));
        }
    }

    #[test]
    fn codes_match_the_rfc() {
        for (byte, code, length) in [
            (0u8, 0x1ff8, 13),
            (b'\n', 0x3fff_fffc, 30),
            (b' ', 0x14, 6),
            (b'0', 0, 5),
            (b'A', 0x21, 6),
            (b'\\', 0x7fff0, 19),
            (b'z', 0x7b, 7),
            (b'~', 0x1ffd, 13),
            (200, 0x3ff_ffe2, 26),
            (249, 0xfff_fffe, 28),
            (255, 0x3ff_ffee, 26),
        ] {
            let byte = usize::from(byte);
            assert_eq!((TABLES.codes[byte], LENGTHS[byte]), (code, length), "{byte}");
        }
        assert_eq!(coded(b"www.example.com"), b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff");
    }

    #[test]
    fn padding_is_ones_and_shorter_than_a_byte() {
        assert_eq!(decoded(b""), Ok(Vec::new()));
        // `0` is 00000.
        assert_eq!(decoded(&[0b0000_0111]), Ok(b"0".to_vec()));
        for wrong in [
            &[0b0000_0110][..],
            &[0b0000_0111, 0xff],
            &[0xff],
            &[0xff; 4],
            &[0xff, 0xff, 0xff, 0xfc],
        ] {
            assert_eq!(decoded(wrong), Err(NotHuffman), "{wrong:x?}");
        }
    }
}
