//! Reads the head of a response in one pass over its bytes: the hot path of the load tester. It
//! reads only the few headers that determine where the body ends and whether the connection stays
//! open.

use memchr::memchr;

use super::error::HttpError;
use super::excerpt::Excerpt;
use super::headers::{self, Headers, list_elements, trim_blanks};

/// The properties of a request that determine where its response ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestKind {
    #[default]
    Normal,
    /// It asks for another protocol: a 101 ends at its head, and that protocol follows.
    Upgrade,
    /// The response has no body, whatever its headers say.
    Head,
    /// A 2xx response ends at its head; what follows is the tunnel.
    Connect,
}

/// How the end of a body is determined (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// Without a body: HEAD, 1xx, 204, 304, a tunnel.
    None,
    Length(u64),
    Chunked,
    /// Until the end of the connection, or of the stream in HTTP/2.
    UntilClose,
}

/// The head of a response, borrowed from the bytes it was read from.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub status: u16,
    /// 1, or 2 for responses of [`crate::http2`].
    pub version_major: u8,
    /// 0 for HTTP/1.0 and HTTP/2, 1 for HTTP/1.1.
    pub version_minor: u8,
    /// The connection may carry another request after this response.
    pub keep_alive: bool,
    /// 101: another protocol follows.
    pub upgrade: bool,
    pub has_set_cookie: bool,
    pub framing: BodyFraming,
    pub headers: Headers<'a>,
    pub reason: &'a [u8],
    /// The last Content-Encoding line. For several, see [`super::ContentDecoder::for_head`].
    pub content_encoding: Option<&'a [u8]>,
    /// The length of the head with all its line ends.
    pub bytes: usize,
}

const PROTOCOL: &[u8] = b"HTTP/";
/// `HTTP/1.1 200`
const STATUS_LINE_BYTES_MIN: usize = 12;

/// A head at the start of `bytes`, or `None` if it is incomplete. Errors are reported when it is
/// complete, so that the result does not depend on how the bytes are split; only bytes that are not
/// HTTP are rejected immediately.
#[inline]
pub(super) fn read(bytes: &[u8], method: RequestKind) -> Result<Option<Head<'_>>, HttpError> {
    match scan(bytes, method) {
        Err(error) if !matches!(error, HttpError::NotHttp(_)) && end(&[], bytes).is_none() => {
            Ok(None)
        }
        verdict => verdict,
    }
}

/// The error in a head that will never be completed; `None` if only its end is missing.
pub(super) fn fault(bytes: &[u8]) -> Option<HttpError> {
    let unfolded = unfolded(bytes);
    scan(unfolded.as_deref().unwrap_or(bytes), RequestKind::Normal).err()
}

/// A head with folded headers unfolded, at the same length: the line ends in them become spaces
/// (RFC 9112 section 5.2). `None` if no header is folded.
#[cold]
pub(super) fn unfolded(bytes: &[u8]) -> Option<Vec<u8>> {
    let headers = memchr(b'\n', bytes)? + 1;
    let mut head = bytes[..end(&[], bytes).unwrap_or(bytes.len())].to_vec();
    unfold(head.get_mut(headers..)?).then_some(head)
}

/// The same for header lines alone. The first one cannot be a continuation.
#[cold]
pub(super) fn unfold(lines: &mut [u8]) -> bool {
    let (mut start, mut is_folded) = (0, false);
    while let Some(length) = memchr(b'\n', &lines[start..]) {
        let line_end = start + length;
        if matches!(lines.get(line_end + 1), Some(b' ' | b'\t')) {
            is_folded = true;
            lines[line_end] = b' ';
            if length > 0 && lines[line_end - 1] == b'\r' {
                lines[line_end - 1] = b' ';
            }
        }
        start = line_end + 1;
    }
    is_folded
}

/// `Err` if no HTTP/1 response starts like this.
pub(super) fn check_protocol(bytes: &[u8]) -> Result<(), HttpError> {
    let length = bytes.len().min(PROTOCOL.len());
    if bytes[..length] == PROTOCOL[..length] {
        Ok(())
    } else {
        Err(HttpError::NotHttp(Excerpt::of(bytes)))
    }
}

/// How many of the `fresh` bytes belong to a head or trailer section that started with `kept`: up
/// to and including the LF of the first empty line.
pub(super) fn end(kept: &[u8], fresh: &[u8]) -> Option<usize> {
    // The byte `back` bytes before position `at`; the section starts as if after a line end.
    let before = |at: usize, back: usize| {
        let position = (kept.len() + at).checked_sub(back)?;
        kept.get(position).or_else(|| fresh.get(position - kept.len())).copied()
    };
    let is_line_end = |byte: Option<u8>| matches!(byte, None | Some(b'\n'));
    let mut start = 0;
    while let Some(found) = memchr(b'\n', &fresh[start..]) {
        let at = start + found;
        let previous = before(at, 1);
        if is_line_end(previous) || (previous == Some(b'\r') && is_line_end(before(at, 2))) {
            return Some(at + 1);
        }
        start = at + 1;
    }
    None
}

/// One pass: the status line, then each header's name eight bytes at a time, its value by memchr.
#[inline]
fn scan(bytes: &[u8], method: RequestKind) -> Result<Option<Head<'_>>, HttpError> {
    let Some((status_line, headers_start)) = status_line(bytes)? else { return Ok(None) };
    let mut seen = Seen::default();
    let mut start = headers_start;
    let blank_bytes = loop {
        let line = &bytes[start..];
        let name_length = headers::name_length(line);
        match line.get(name_length) {
            Some(b':') if name_length > 0 => {}
            Some(b'\n') if name_length == 0 => break 1,
            Some(b'\r') if name_length == 0 && line.get(1) == Some(&b'\n') => break 2,
            Some(b'\r') if name_length == 0 && line.len() == 1 => return Ok(None),
            Some(_) => return Err(bad_header(line)),
            None => return Ok(None),
        }
        let value = &line[name_length + 1..];
        let Some(value_length) = headers::line_length(value) else { return Ok(None) };
        seen.header(&line[..name_length], &value[..value_length]);
        start += name_length + value_length + 2;
    };
    let headers = Headers::of_lines(&bytes[headers_start..start]);
    seen.head(status_line, headers, start + blank_bytes, method).map(Some)
}

#[cold]
fn bad_header(line: &[u8]) -> HttpError {
    HttpError::BadHeader(Excerpt::of(first_line(line)))
}

fn first_line(bytes: &[u8]) -> &[u8] {
    let line = &bytes[..memchr(b'\n', bytes).unwrap_or(bytes.len())];
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[derive(Clone, Copy)]
struct StatusLine<'a> {
    status: u16,
    version_minor: u8,
    reason: &'a [u8],
}

/// The status line and the start of the headers, or `None` if it is incomplete.
#[inline]
fn status_line(bytes: &[u8]) -> Result<Option<(StatusLine<'_>, usize)>, HttpError> {
    let bad = || HttpError::BadStatusLine(Excerpt::of(first_line(bytes)));
    let Some(fixed) = bytes.first_chunk::<STATUS_LINE_BYTES_MIN>() else {
        check_protocol(bytes)?;
        return if memchr(b'\n', bytes).is_some() { Err(bad()) } else { Ok(None) };
    };
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor, b' ', a, b, c] = *fixed else {
        check_protocol(bytes)?;
        return Err(bad());
    };
    let digits = [minor, a, b, c].map(|byte| byte.wrapping_sub(b'0'));
    if digits.iter().any(|digit| *digit > 9) || digits[1] == 0 {
        return Err(bad());
    }
    let [version_minor, hundreds, tens, ones] = digits;
    let status = u16::from(hundreds) * 100 + u16::from(tens) * 10 + u16::from(ones);
    let rest = &bytes[STATUS_LINE_BYTES_MIN..];
    let Some(length) = headers::line_length(rest) else { return Ok(None) };
    let rest = rest[..length].strip_suffix(b"\r").unwrap_or(&rest[..length]);
    let reason = match rest {
        [] => rest,
        [b' ', reason @ ..] => reason,
        _ => return Err(bad()),
    };
    let line = StatusLine { status, version_minor, reason };
    Ok(Some((line, STATUS_LINE_BYTES_MIN + length + 1)))
}

/// What the headers so far declare about the message.
#[derive(Default)]
struct Seen<'a> {
    length: ContentLength,
    transfer_coding: TransferCoding,
    close: bool,
    keep_alive: bool,
    has_set_cookie: bool,
    content_encoding: Option<&'a [u8]>,
}

/// The combined Content-Length headers of a head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContentLength {
    length: Option<u64>,
    fault: Option<HttpError>,
}

impl ContentLength {
    /// The length, if there is one. An error counts only if the length is needed.
    #[inline]
    pub(crate) fn get(&self) -> Result<Option<u64>, HttpError> {
        self.fault.map_or(Ok(self.length), Err)
    }

    #[inline]
    pub(crate) fn add(&mut self, value: &[u8]) {
        match decimal(value) {
            Some(length) if self.length.is_none() => self.length = Some(length),
            _ => self.add_unusual(value),
        }
    }

    /// Several lengths, in one line or in several, count as one if they are equal (RFC 9112 section
    /// 6.3). An error counts only if the length is needed.
    #[cold]
    fn add_unusual(&mut self, value: &[u8]) {
        for element in value.split(|byte| *byte == b',') {
            let fault = match (decimal(trim_blanks(element)), self.length) {
                (None, _) => HttpError::BadContentLength(Excerpt::of(value)),
                (Some(other), Some(first)) if first != other => {
                    HttpError::ConflictingLength { first, other }
                }
                (Some(length), _) => {
                    self.length = Some(length);
                    continue;
                }
            };
            self.fault.get_or_insert(fault);
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum TransferCoding {
    #[default]
    None,
    /// The last coding is chunked.
    Chunked,
    /// The last coding is another one.
    Other,
}

impl<'a> Seen<'a> {
    /// The length and first byte of the name rule out nearly all headers that do not matter.
    #[inline]
    fn header(&mut self, name: &'a [u8], value: &'a [u8]) {
        match (name.len(), name[0] | 0x20) {
            (14, b'c') if is_named(name, b"Content-Length") => {
                self.length.add(trim_blanks(value));
            }
            (10, b'c') if is_named(name, b"Connection") => {
                self.connection(trim_blanks(value));
            }
            (17, b't') if is_named(name, b"Transfer-Encoding") => {
                self.transfer_encoding(value);
            }
            (16, b'c') if is_named(name, b"Content-Encoding") => {
                self.content_encoding = Some(trim_blanks(value));
            }
            (10, b's') if is_named(name, b"Set-Cookie") => self.has_set_cookie = true,
            _ => {}
        }
    }

    #[inline]
    fn connection(&mut self, value: &[u8]) {
        if value == b"keep-alive" {
            self.keep_alive = true;
        } else {
            for token in list_elements(value) {
                self.close |= token.eq_ignore_ascii_case(b"close");
                self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }

    /// `identity` was a transfer coding once (RFC 2616 section 3.6) and means none.
    fn transfer_encoding(&mut self, value: &[u8]) {
        for coding in list_elements(value) {
            if coding.eq_ignore_ascii_case(b"chunked") {
                self.transfer_coding = TransferCoding::Chunked;
            } else if !coding.eq_ignore_ascii_case(b"identity") {
                self.transfer_coding = TransferCoding::Other;
            }
        }
    }

    #[inline]
    fn head(
        self,
        line: StatusLine<'a>,
        headers: Headers<'a>,
        bytes: usize,
        method: RequestKind,
    ) -> Result<Head<'a>, HttpError> {
        let framing = self.framing(line.status, method)?;
        // A transfer coding in HTTP/1.0 is faulty framing: do not reuse the connection (RFC 9112
        // section 6.1).
        let may_stay = if line.version_minor == 0 {
            self.keep_alive && self.transfer_coding == TransferCoding::None
        } else {
            true
        };
        Ok(Head {
            status: line.status,
            version_major: 1,
            version_minor: line.version_minor,
            keep_alive: may_stay && !self.close && framing != BodyFraming::UntilClose,
            upgrade: line.status == 101,
            has_set_cookie: self.has_set_cookie,
            framing,
            headers,
            reason: line.reason,
            content_encoding: self.content_encoding,
            bytes,
        })
    }

    #[inline]
    fn framing(&self, status: u16, method: RequestKind) -> Result<BodyFraming, HttpError> {
        let tunnel = method == RequestKind::Connect && (200..300).contains(&status);
        if method == RequestKind::Head || matches!(status, 100..=199 | 204 | 304) || tunnel {
            return Ok(BodyFraming::None);
        }
        match self.transfer_coding {
            TransferCoding::Chunked => Ok(BodyFraming::Chunked),
            TransferCoding::Other => Ok(BodyFraming::UntilClose),
            TransferCoding::None => {
                Ok(self.length.get()?.map_or(BodyFraming::UntilClose, BodyFraming::Length))
            }
        }
    }
}

/// Most servers write names as in the RFC, and equality is the faster comparison.
#[inline]
fn is_named<const N: usize>(name: &[u8], usual: &[u8; N]) -> bool {
    name == usual || name.eq_ignore_ascii_case(usual)
}

/// A number of decimal digits only.
#[inline]
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}
