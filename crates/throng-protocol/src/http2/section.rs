//! The headers of one head or trailer section while they are read: lines of text, the fields that
//! affect the message, and the first error (RFC 9113, 8.2 and 8.3).

use std::ops::Range;

use super::malformed::Malformed;
use crate::http1::{ContentLength, Excerpt, IS_TOKEN};

/// Size of a field besides its name and its value (RFC 9113, 6.5.2).
const FIELD_OVERHEAD: usize = 32;
const COLON: &[u8] = b": ";
const LINE_END: &[u8] = b"\r\n";

/// The fields of a section that affect the message.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) status: Option<u16>,
    pub(super) length: ContentLength,
    /// Position of the last Content-Encoding in the lines.
    pub(super) encoding: Option<Range<usize>>,
    pub(super) has_set_cookie: bool,
    pub(super) fault: Option<Malformed>,
}

#[derive(Debug)]
pub(super) struct Section<'a> {
    lines: &'a mut Vec<u8>,
    is_trailers: bool,
    /// As defined by the RFC.
    bytes: usize,
    bytes_max: usize,
    pub(super) noted: Noted,
}

/// Parts of a field that must be checked, because they are not from the static table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unknown {
    pub(super) name: bool,
    pub(super) value: bool,
}

/// The bytes of a name: those of a token except upper-case letters (RFC 9113, 8.2.1).
static IN_NAME: [bool; 256] = {
    let mut table = IS_TOKEN;
    let mut byte = b'A';
    while byte <= b'Z' {
        table[byte as usize] = false;
        byte += 1;
    }
    table
};

/// Without line ends, and without surrounding blanks. Checks all bytes, which is faster than
/// stopping at an invalid one.
#[inline]
fn is_value(value: &[u8]) -> bool {
    let ends = |bad, byte: &u8| bad | matches!(byte, 0 | b'\r' | b'\n');
    !value.iter().fold(false, ends) && !matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t'])
}

/// Position of a field whose name is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    start: usize,
    name_end: usize,
}

impl<'a> Section<'a> {
    pub(super) fn new(lines: &'a mut Vec<u8>, is_trailers: bool, bytes_max: usize) -> Section<'a> {
        lines.clear();
        Section { lines, is_trailers, bytes: 0, bytes_max, noted: Noted::default() }
    }

    /// Starts a field: append its name to the text.
    pub(super) fn begin(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn text(&mut self) -> &mut Vec<u8> {
        self.lines
    }

    /// The name is complete: append the value to the text.
    pub(super) fn name_done(&mut self, start: usize) -> Line {
        let name_end = self.lines.len();
        self.lines.extend_from_slice(COLON);
        Line { start, name_end }
    }

    /// Name and value of the field whose value is complete.
    pub(super) fn field(&self, line: Line) -> (&[u8], &[u8]) {
        (&self.lines[line.start..line.name_end], &self.lines[line.name_end + COLON.len()..])
    }

    /// The value is complete. `None` if the section has become too large.
    #[inline]
    pub(super) fn value_done(&mut self, line: Line, unknown: Unknown) -> Option<()> {
        let (name, value) = self.field(line);
        let is_pseudo = name.first() == Some(&b':');
        self.bytes += name.len() + value.len() + FIELD_OVERHEAD;
        if self.bytes > self.bytes_max {
            return None;
        }
        if is_pseudo {
            self.pseudo(line);
            self.lines.truncate(line.start);
            return Some(());
        }
        self.check(line, unknown);
        self.note(line);
        self.lines.extend_from_slice(LINE_END);
        Some(())
    }

    fn pseudo(&mut self, line: Line) {
        let (name, value) = self.field(line);
        let digits = match *value {
            [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
                Some([hundreds, tens, ones].map(|digit| u16::from(digit - b'0')))
            }
            _ => None,
        };
        let status = digits.map(|[hundreds, tens, ones]| hundreds * 100 + tens * 10 + ones);
        let fault = if self.is_trailers {
            Malformed::PseudoInTrailers(Excerpt::of(name))
        } else if name != b":status" {
            Malformed::UnknownPseudo(Excerpt::of(name))
        } else if line.start > 0 {
            Malformed::PseudoBehindField(Excerpt::of(name))
        } else if self.noted.status.is_some() {
            Malformed::TwoStatuses
        } else if status.is_none() {
            Malformed::BadStatus(Excerpt::of(value))
        } else {
            self.noted.status = status;
            return;
        };
        self.noted.fault.get_or_insert(fault);
    }

    #[inline]
    fn check(&mut self, line: Line, unknown: Unknown) {
        let (name, value) = self.field(line);
        let bad_name = unknown.name
            && (name.is_empty() || !name.iter().all(|byte| IN_NAME[usize::from(*byte)]));
        if bad_name || (unknown.value && !is_value(value)) {
            self.bad_field(line, bad_name);
        }
    }

    #[cold]
    fn bad_field(&mut self, line: Line, bad_name: bool) {
        let name = self.field(line).0;
        let fault = match name.iter().any(u8::is_ascii_uppercase) {
            true if bad_name => Malformed::UpperCaseName(Excerpt::of(name)),
            _ if bad_name => Malformed::BadName(Excerpt::of(name)),
            _ => Malformed::BadValue(Excerpt::of(name)),
        };
        self.noted.fault.get_or_insert(fault);
    }

    /// The length and first byte of the name rule out nearly all fields that do not matter.
    #[inline]
    fn note(&mut self, line: Line) {
        let (name, value) =
            (&self.lines[line.start..line.name_end], &self.lines[line.name_end + COLON.len()..]);
        let noted = &mut self.noted;
        match (name.len(), name.first()) {
            (14, Some(b'c')) if name == b"content-length" => noted.length.add(value),
            (16, Some(b'c')) if name == b"content-encoding" => {
                noted.encoding = Some(line.name_end + COLON.len()..self.lines.len());
            }
            (10, Some(b's')) if name == b"set-cookie" => noted.has_set_cookie = true,
            (10, Some(b'c')) if name == b"connection" => noted.hop_by_hop(name),
            (7, Some(b'u')) if name == b"upgrade" => noted.hop_by_hop(name),
            (10, Some(b'k')) if name == b"keep-alive" => noted.hop_by_hop(name),
            (16, Some(b'p')) if name == b"proxy-connection" => noted.hop_by_hop(name),
            (17, Some(b't')) if name == b"transfer-encoding" => noted.hop_by_hop(name),
            _ => {}
        }
    }
}

impl Noted {
    #[cold]
    fn hop_by_hop(&mut self, name: &[u8]) {
        self.fault.get_or_insert(Malformed::ConnectionHeader(Excerpt::of(name)));
    }
}
