//! Notations for bytes: hexadecimal digits, and text with escapes.

use std::fmt;

/// Why a text is not hexadecimal. Positions count bytes from the start of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HexError {
    NotHex {
        position: usize,
        found: char,
    },
    /// A group has an odd number of digits; the position is that of its last digit.
    HalfByte {
        position: usize,
    },
}

impl HexError {
    pub fn position(&self) -> usize {
        match self {
            HexError::NotHex { position, .. } | HexError::HalfByte { position } => *position,
        }
    }
}

impl fmt::Display for HexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HexError::NotHex { position, found } => {
                write!(f, "`{}` at {position} is not a hexadecimal digit", found.escape_debug())
            }
            HexError::HalfByte { position } => {
                write!(f, "the digit at {position} is single: a byte has two digits")
            }
        }
    }
}

impl std::error::Error for HexError {}

/// Reads `de ad be ef`, `0xdeadbeef`, `DE:AD:BE:EF` or `dead-beef`: groups of whole bytes, each
/// with or without `0x`, separated by white space, `:`, `-` or `,`.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, HexError> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high: Option<(u8, usize)> = None;
    let mut group_start = true;
    let mut characters = text.char_indices().peekable();
    while let Some((position, found)) = characters.next() {
        let prefix = |(_, next): &(usize, char)| matches!(next, 'x' | 'X');
        if group_start && found == '0' && characters.next_if(prefix).is_some() {
            group_start = false;
            // A prefix requires digits; otherwise the end or the separator is the error.
            match characters.peek() {
                Some((_, digit)) if digit.is_ascii_hexdigit() => continue,
                Some(&(position, found)) => return Err(HexError::NotHex { position, found }),
                None => return Err(HexError::NotHex { position: position + 1, found: 'x' }),
            }
        }
        if found.is_whitespace() || matches!(found, ':' | '-' | ',') {
            if let Some((_, position)) = high {
                return Err(HexError::HalfByte { position });
            }
            group_start = true;
            continue;
        }
        let Some(digit) = found.to_digit(16) else {
            return Err(HexError::NotHex { position, found });
        };
        group_start = false;
        high = match high {
            None => Some((digit as u8, position)),
            Some((high, _)) => {
                bytes.push(high << 4 | digit as u8);
                None
            }
        };
    }
    match high {
        Some((_, position)) => Err(HexError::HalfByte { position }),
        None => Ok(bytes),
    }
}

/// A backslash that does not start an escape. The position counts bytes from the start of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EscapeError {
    pub position: usize,
}

impl fmt::Display for EscapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position;
        write!(
            f,
            r#"the `\` at {position} does not start an escape; known: \r \n \t \0 \\ \" \' \x41"#
        )
    }
}

impl std::error::Error for EscapeError {}

/// Reads text with the escapes `\r`, `
/// `, `\t`, `\0`, `\\`, `\"`, `\'` and `\x41`; everything else is copied as UTF-8.
pub fn unescape(text: &str) -> Result<Vec<u8>, EscapeError> {
    let text = text.as_bytes();
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
        let position = at + found;
        bytes.extend_from_slice(&text[at..position]);
        let escape = &text[position + 1..];
        let (byte, length) = read_escape(escape).ok_or(EscapeError { position })?;
        bytes.push(byte);
        at = position + 1 + length;
    }
    bytes.extend_from_slice(&text[at..]);
    Ok(bytes)
}

/// The byte of an escape, and the length of the escape after its backslash.
fn read_escape(escape: &[u8]) -> Option<(u8, usize)> {
    Some(match escape {
        [b'r', ..] => (b'\r', 1),
        [b'n', ..] => (b'\n', 1),
        [b't', ..] => (b'\t', 1),
        [b'0', ..] => (0, 1),
        [same @ (b'\\' | b'"' | b'\''), ..] => (*same, 1),
        [b'x', high, low, ..] => (digit(*high)? << 4 | digit(*low)?, 3),
        _ => return None,
    })
}

fn digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_in_all_notations() {
        let beef = [0xde, 0xad, 0xbe, 0xef];
        for text in [
            "deadbeef",
            "de ad be ef",
            "0xdeadbeef",
            "0XDEADBEEF",
            "0xde 0xad, 0xbe\n0xef",
            "DE:AD:BE:EF",
            "dead-beef",
            "  dead beef  ",
        ] {
            assert_eq!(parse_hex(text).as_deref(), Ok(&beef[..]), "{text}");
        }
        assert_eq!(parse_hex(""), Ok(vec![]));
        assert_eq!(parse_hex("00 0a"), Ok(vec![0, 10]));
    }

    #[test]
    fn hex_errors_have_a_position() {
        let not_hex = |position, found| HexError::NotHex { position, found };
        let half = |position| HexError::HalfByte { position };
        for (text, error) in [
            ("dg", not_hex(1, 'g')),
            ("de ax", not_hex(4, 'x')),
            ("de0xad", not_hex(3, 'x')),
            ("äb", not_hex(0, 'ä')),
            ("deäb", not_hex(2, 'ä')),
            ("0x", not_hex(1, 'x')),
            ("0x ab", not_hex(2, ' ')),
            ("0x0x", not_hex(3, 'x')),
            ("d", half(0)),
            ("ab c de", half(3)),
            ("abc", half(2)),
        ] {
            assert_eq!(parse_hex(text), Err(error), "{text}");
        }
        assert_eq!(not_hex(1, '\n').to_string(), r"`\n` at 1 is not a hexadecimal digit");
        assert_eq!((half(3).position(), not_hex(1, 'x').position()), (3, 1));
        assert_eq!(half(3).to_string(), "the digit at 3 is single: a byte has two digits");
    }

    #[test]
    fn escapes_become_bytes() {
        for (text, bytes) in [
            (r"PING\r\n\x00", &b"PING\r\n\0"[..]),
            (r"\t\0\\\'\x7f\xFF", b"\t\0\\'\x7f\xff"),
            ("\\\"quoted\\\"", b"\"quoted\""),
            ("plain é", "plain é".as_bytes()),
            ("", b""),
        ] {
            assert_eq!(unescape(text).as_deref(), Ok(bytes), "{text}");
        }
        for (text, position) in [(r"ab\q", 2), (r"\", 0), (r"\x4", 0), (r"é\xg0", 2), (r"\é", 0)]
        {
            assert_eq!(unescape(text), Err(EscapeError { position }), "{text}");
        }
    }

    #[test]
    fn fuzz_both_readers_return_what_was_written() {
        let corpus: &[&[u8]] = &[b"de ad 0xbe:ef", br"PING\r\n\x00\\", b"\\x4\xc3\xa4"];
        throng_fuzz::mutations(corpus, |input, _| {
            let text = String::from_utf8_lossy(input);
            let _ = parse_hex(&text);
            let _ = unescape(&text);
            let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(parse_hex(&hex).as_deref(), Ok(input));
            assert_eq!(unescape(&input.escape_ascii().to_string()).as_deref(), Ok(input));
        });
    }
}
