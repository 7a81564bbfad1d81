//! The header lines of one head or trailer section, parsed only on demand. No map: a load tester
//! reads few headers of few responses.

use memchr::memchr;

/// Raw header lines that are known to be well-formed: each `name:value`, ended by LF or CRLF.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'a> {
    lines: &'a [u8],
}

impl<'a> Headers<'a> {
    /// `lines` must have passed [`check_lines`], the head's own scan or the checks of
    /// [`crate::http2`].
    pub fn of_lines(lines: &'a [u8]) -> Headers<'a> {
        Headers { lines }
    }

    /// The raw lines.
    pub fn as_bytes(self) -> &'a [u8] {
        self.lines
    }

    pub fn is_empty(self) -> bool {
        self.lines.is_empty()
    }

    /// Names and values in order; values without surrounding blanks.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.each_line().map_while(|line| {
            let colon = memchr(b':', line)?;
            Some((&line[..colon], trim_blanks(&line[colon + 1..])))
        })
    }

    /// The value of the first header with this name, in any case.
    pub fn get(self, name: &str) -> Option<&'a [u8]> {
        self.get_all(name).next()
    }

    /// The values of all headers with this name, in any case.
    pub fn get_all(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let values = self.each_line().filter_map(|line| value_if_named(line, name.as_bytes()));
        values.map(trim_blanks)
    }

    /// Lines without their LF, but with their CR.
    fn each_line(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.lines;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            Some(line)
        })
    }
}

fn value_if_named<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let first_is_same =
        line.first().map(|byte| byte | 0x20) == name.first().map(|byte| byte | 0x20);
    if !first_is_same || line.get(name.len()) != Some(&b':') {
        return None;
    }
    let (found, value) = line.split_at(name.len());
    found.eq_ignore_ascii_case(name).then(|| &value[1..])
}

/// The bytes without surrounding blanks (and the CR of the line end).
#[inline]
pub(super) fn trim_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t' | b'\r'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The elements of a comma-separated list (RFC 9110 5.6.1), without the empty ones.
pub(super) fn list_elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim_blanks).filter(|element| !element.is_empty())
}

/// `Err` with the first line that is not `token:value`.
pub(super) fn check_lines(lines: &[u8]) -> Result<(), &[u8]> {
    let is_broken = |line: &&[u8]| {
        let length = name_length(line);
        length == 0 || line.get(length) != Some(&b':')
    };
    Headers { lines }.each_line().find(is_broken).map_or(Ok(()), Err)
}

/// Eight times the byte 1, and the highest bit of each byte.
const EACH: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * EACH;
/// Lines up to this length are measured without memchr.
const SHORT_LINE_BYTES_MAX: usize = 40;

/// How many bytes at the start are visible ASCII other than a colon. Slightly more permissive than
/// a token (RFC 9110 section 5.6.2), and eight bytes at a time.
#[inline]
pub(super) fn name_length(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(eight) = bytes[length..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight);
        // A byte that is a colon, is below 0x21 or above 0x7f gets its high bit set. A borrow may
        // set bits above such a byte too, but only the lowest one is used.
        let colon = word ^ (u64::from(b':') * EACH);
        let ends = (colon.wrapping_sub(EACH) & !colon) | word.wrapping_sub(0x21 * EACH) | word;
        let ends = ends & HIGH;
        if ends != 0 {
            return length + (ends.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let tail = &bytes[length..];
    length + tail.iter().position(|byte| !is_in_name(*byte)).unwrap_or(tail.len())
}

/// The position of the first LF. Most lines are short: for these, eight bytes at a time without a
/// call are faster than memchr, which finds the end of the others.
#[inline]
pub(super) fn line_length(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    while length < SHORT_LINE_BYTES_MAX {
        let Some(eight) = bytes[length..].first_chunk::<8>() else { break };
        let different = u64::from_le_bytes(*eight) ^ (u64::from(b'\n') * EACH);
        // May be wrong above an LF, but only the lowest one is used.
        let found = different.wrapping_sub(EACH) & !different & HIGH;
        if found != 0 {
            return Some(length + (found.trailing_zeros() / 8) as usize);
        }
        length += 8;
    }
    memchr(b'\n', &bytes[length..]).map(|at| length + at)
}

fn is_in_name(byte: u8) -> bool {
    (0x21..0x80).contains(&byte) && byte != b':'
}

/// RFC 9110, 5.6.2.
pub(crate) const IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128u8 {
        table[byte as usize] = byte.is_ascii_alphanumeric()
            || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+')
            || matches!(byte, b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};
