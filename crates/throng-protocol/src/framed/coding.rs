//! Numbers of variable size.

use throng_base::Said;

use crate::fields::number::{Varint, read_unsigned, read_varint, unzigzag, write_varint, zigzag};

/// The most characters of a number in decimal digits, with its sign.
const DIGITS_MAX: usize = 20;

/// The encoding of a number.
#[derive(Clone, Debug, PartialEq)]
pub enum Coding {
    /// Unsigned LEB128, as in protobuf; at most ten bytes.
    Varint,
    /// The same for signed numbers, zigzag.
    ZigZag,
    /// A length in BER and DER (X.690, 8.1.3): one byte up to 127, otherwise the number of bytes
    /// that follow.
    Ber,
    /// A length-encoded integer of MySQL.
    Lenenc,
    /// Decimal digits, terminated by these bytes; a sign may precede them.
    Decimal(Box<[u8]>),
    /// Decimal digits up to the first byte that is none; 0 has no digits.
    Digits,
}

impl Coding {
    pub fn word(&self) -> &'static str {
        match self {
            Coding::Varint => "varint",
            Coding::ZigZag => "zigzag",
            Coding::Ber => "ber",
            Coding::Lenenc => "lenenc",
            Coding::Decimal(_) | Coding::Digits => "decimal",
        }
    }

    /// The fewest bytes of a number.
    pub fn bytes_min(&self) -> usize {
        match self {
            Coding::Varint | Coding::ZigZag | Coding::Ber | Coding::Lenenc => 1,
            Coding::Decimal(end) => 1 + end.len(),
            Coding::Digits => 0,
        }
    }

    pub(super) fn is_signed(&self) -> bool {
        matches!(self, Coding::ZigZag | Coding::Decimal(_))
    }

    pub(super) fn read(&self, bytes: &[u8]) -> Varint {
        let Some(first) = bytes.first() else { return Varint::Short };
        let (width, is_little) = match (self, first) {
            (Coding::Varint, _) => return read_varint(bytes),
            (Coding::ZigZag, _) => match read_varint(bytes) {
                Varint::Complete { raw, bytes } => {
                    return Varint::Complete { raw: unzigzag(raw) as u64, bytes };
                }
                other => return other,
            },
            (Coding::Decimal(end), _) => return decimal(bytes, end),
            (Coding::Digits, _) => return plain_digits(bytes),
            (Coding::Ber, ..=0x7f) | (Coding::Lenenc, ..=0xfa) => {
                return Varint::Complete { raw: u64::from(*first), bytes: 1 };
            }
            (Coding::Ber, 0x81..=0x88) => (usize::from(first & 0x0f), false),
            (Coding::Lenenc, 0xfc) => (2, true),
            (Coding::Lenenc, 0xfd) => (3, true),
            (Coding::Lenenc, 0xfe) => (8, true),
            _ => return Varint::Long,
        };
        match bytes.get(1..=width) {
            Some(rest) => {
                Varint::Complete { raw: read_unsigned(rest, is_little), bytes: 1 + width }
            }
            None => Varint::Short,
        }
    }

    /// The message for bytes that are not a number.
    pub(super) fn wrong(&self, bytes: &[u8]) -> Said {
        match self {
            Coding::Varint | Coding::ZigZag => {
                say!("the number uses more bytes than a 64-bit value needs")
            }
            Coding::Decimal(end) => {
                let length = digits(bytes);
                let rest = &bytes[length..];
                // Up to the wrong byte, however many have arrived.
                let right = end.iter().zip(rest).take_while(|(a, b)| a == b).count();
                let wrong = usize::from(right < end.len());
                let shown = &bytes[..bytes.len().min(length + right + wrong).min(DIGITS_MAX + 1)];
                say!("expected a decimal number, not `{}`", shown.escape_ascii())
            }
            Coding::Digits => say!(
                "the number `{}` does not fit into 64 bits",
                bytes[..bytes.len().min(DIGITS_MAX + 1)].escape_ascii()
            ),
            Coding::Ber | Coding::Lenenc => {
                let first = bytes.first().copied().unwrap_or_default();
                say!("the byte {first:#04x} does not begin a number of the type `{}`", self.word())
            }
        }
    }

    pub(super) fn write(&self, raw: u64, out: &mut Vec<u8>) {
        let bytes = raw.to_be_bytes();
        let significant = &bytes[(raw.leading_zeros() / 8).min(7) as usize..];
        match self {
            Coding::Varint => write_varint(raw, out),
            Coding::ZigZag => write_varint(zigzag(raw as i64), out),
            Coding::Decimal(end) => {
                out.extend_from_slice((raw as i64).to_string().as_bytes());
                out.extend_from_slice(end);
            }
            Coding::Digits if raw == 0 => {}
            Coding::Digits => out.extend_from_slice(raw.to_string().as_bytes()),
            Coding::Ber if raw < 0x80 => out.push(raw as u8),
            Coding::Ber => {
                out.push(0x80 | significant.len() as u8);
                out.extend_from_slice(significant);
            }
            Coding::Lenenc => {
                let (first, width) = match raw {
                    0..0xfb => return out.push(raw as u8),
                    0xfb..0x1_0000 => (0xfc, 2),
                    0x1_0000..0x100_0000 => (0xfd, 3),
                    _ => (0xfe, 8),
                };
                out.push(first);
                out.extend_from_slice(&raw.to_le_bytes()[..width]);
            }
        }
    }
}

/// The number of digits, with a sign.
fn digits(bytes: &[u8]) -> usize {
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    sign + bytes[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Digits need a byte behind them that is none.
fn plain_digits(bytes: &[u8]) -> Varint {
    let length = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length > DIGITS_MAX {
        return Varint::Long;
    }
    if length == bytes.len() {
        return Varint::Short;
    }
    let number = std::str::from_utf8(&bytes[..length]).ok().map(|text| match text {
        "" => Ok(0),
        text => text.parse(),
    });
    match number {
        Some(Ok(raw)) => Varint::Complete { raw, bytes: length },
        _ => Varint::Long,
    }
}

fn decimal(bytes: &[u8], end: &[u8]) -> Varint {
    let length = digits(bytes);
    let rest = &bytes[length..];
    if length > DIGITS_MAX || !rest.starts_with(end) && !end.starts_with(rest) {
        return Varint::Long;
    }
    if !rest.starts_with(end) {
        return Varint::Short;
    }
    let number = std::str::from_utf8(&bytes[..length]).ok().and_then(|text| text.parse().ok());
    match number {
        Some(number) => {
            let number: i64 = number;
            Varint::Complete { raw: number as u64, bytes: length + end.len() }
        }
        None => Varint::Long,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written_and_need_all_their_bytes() {
        let decimal = Coding::Decimal((*b"\r\n").into());
        for (raw, digits) in [(0, ""), (7, "7"), (u64::MAX, "18446744073709551615")] {
            let mut written = Vec::new();
            Coding::Digits.write(raw, &mut written);
            assert_eq!(written, digits.as_bytes());
            assert_eq!(Coding::Digits.read(&written), Varint::Short, "more digits may follow");
            let read = Coding::Digits.read(format!("{digits}[1").as_bytes());
            assert_eq!(read, Varint::Complete { raw, bytes: digits.len() });
        }
        let cases: [(&Coding, u64, &[u8]); 13] = [
            (&Coding::Ber, 0, b"\0"),
            (&Coding::Ber, 127, b"\x7f"),
            (&Coding::Ber, 128, b"\x81\x80"),
            (&Coding::Ber, 0x1234, b"\x82\x12\x34"),
            (&Coding::Ber, u64::MAX, b"\x88\xff\xff\xff\xff\xff\xff\xff\xff"),
            (&Coding::Lenenc, 250, b"\xfa"),
            (&Coding::Lenenc, 251, b"\xfc\xfb\0"),
            (&Coding::Lenenc, 0x1_0000, b"\xfd\0\0\x01"),
            (&Coding::Lenenc, 1 << 24, b"\xfe\0\0\0\x01\0\0\0\0"),
            (&decimal, 0, b"0\r\n"),
            (&decimal, 1234, b"1234\r\n"),
            (&decimal, -1i64 as u64, b"-1\r\n"),
            (&decimal, i64::MIN as u64, b"-9223372036854775808\r\n"),
        ];
        for (coding, raw, bytes) in cases {
            let mut written = Vec::new();
            coding.write(raw, &mut written);
            assert_eq!(written, bytes, "{coding:?} {raw}");
            assert_eq!(coding.read(bytes), Varint::Complete { raw, bytes: bytes.len() });
            for cut in 0..bytes.len() {
                assert_eq!(coding.read(&bytes[..cut]), Varint::Short, "{coding:?} {raw} {cut}");
            }
        }
        let wrong: [(&Coding, &[u8]); 10] = [
            (&Coding::Digits, b"18446744073709551616,"),
            (&Coding::Digits, b"000000000000000000001"),
            (&Coding::Ber, b"\x80"),
            (&Coding::Ber, b"\x89"),
            (&Coding::Lenenc, b"\xfb"),
            (&Coding::Lenenc, b"\xff"),
            (&decimal, b"\r\n"),
            (&decimal, b"1 \r\n"),
            (&decimal, b"9223372036854775808\r\n"),
            (&decimal, b"000000000000000000001"),
        ];
        for (coding, bytes) in wrong {
            assert_eq!(coding.read(bytes), Varint::Long, "{coding:?} {bytes:?}");
            assert!(!coding.wrong(bytes).english().is_empty());
        }
    }
}
