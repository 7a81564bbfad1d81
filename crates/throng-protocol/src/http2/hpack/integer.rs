//! Integers and strings of HPACK (RFC 7541, 5).

use super::HpackError;
use super::huffman;

/// Larger numbers have no meaning here: lengths, indices and table sizes are all smaller.
const NUMBER_MAX: u64 = (1 << 31) - 1;
/// The bit of a Huffman-coded string.
const CODED: u8 = 0x80;

/// Writes `number` in the lowest `prefix_bits` of `first` and the following bytes.
pub(super) fn write_number(out: &mut Vec<u8>, first: u8, prefix_bits: u32, number: usize) {
    let mask = (1usize << prefix_bits) - 1;
    if number < mask {
        return out.push(first | number as u8);
    }
    out.push(first | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes a number off `rest`, which starts in the lowest bits of its first byte.
#[inline]
pub(super) fn read_number(rest: &mut &[u8], prefix_bits: u32) -> Result<usize, HpackError> {
    let (first, after) = rest.split_first().ok_or(HpackError::Cut)?;
    *rest = after;
    let mask = ((1u32 << prefix_bits) - 1) as u8;
    let number = usize::from(first & mask);
    if number < usize::from(mask) { Ok(number) } else { read_long_number(rest, number as u64) }
}

fn read_long_number(rest: &mut &[u8], mut number: u64) -> Result<usize, HpackError> {
    for place in 0..5 {
        let (byte, after) = rest.split_first().ok_or(HpackError::Cut)?;
        *rest = after;
        number += u64::from(byte & 0x7f) << (7 * place);
        if number > NUMBER_MAX {
            break;
        }
        if byte & 0x80 == 0 {
            return Ok(number as usize);
        }
    }
    Err(HpackError::NumberTooLarge)
}

/// Writes a string in the shorter of its two forms.
pub(super) fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::coded_length(text);
    if coded < text.len() {
        write_number(out, CODED, 7, coded);
        huffman::encode(text, out);
    } else {
        write_number(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}

/// Takes a string off `rest` and appends its text to `out`.
#[inline]
pub(super) fn read_string(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_coded = rest.first().is_some_and(|first| first & CODED != 0);
    let length = read_number(rest, 7)?;
    let (text, after) = rest.split_at_checked(length).ok_or(HpackError::Cut)?;
    *rest = after;
    if is_coded {
        return huffman::decode(text, out).map_err(|_| HpackError::NotHuffman);
    }
    out.extend_from_slice(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541, C.1, and the edges.
    #[test]
    fn numbers_are_written_and_read() {
        for (number, prefix_bits, want) in [
            (10, 5, &[10][..]),
            (1337, 5, &[31, 154, 10]),
            (42, 8, &[42]),
            (30, 5, &[30]),
            (31, 5, &[31, 0]),
            (126, 7, &[126]),
            (127, 7, &[127, 0]),
            (255, 7, &[127, 128, 1]),
            (254, 8, &[254]),
            (255, 8, &[255, 0]),
            (NUMBER_MAX as usize, 4, &[15, 240, 255, 255, 255, 7]),
        ] {
            let mut out = Vec::new();
            write_number(&mut out, 0, prefix_bits, number);
            assert_eq!(out, want);
            let mut rest = &out[..];
            assert_eq!(read_number(&mut rest, prefix_bits), Ok(number));
            assert!(rest.is_empty());
            let mut cut = &out[..out.len() - 1];
            assert_eq!(read_number(&mut cut, prefix_bits), Err(HpackError::Cut));
        }
    }

    #[test]
    fn numbers_that_never_end_are_refused() {
        for mut endless in
            [&[31, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0][..], &[31, 255, 255, 255, 255, 15]]
        {
            assert_eq!(read_number(&mut endless, 5), Err(HpackError::NumberTooLarge));
        }
    }
}
