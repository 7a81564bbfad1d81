//! Reads the responses of one connection, in pieces of any size. Only the bytes of an incomplete
//! head or trailer section are kept.

use memchr::memchr;

use super::Limits;
use super::error::HttpError;
use super::excerpt::Excerpt;
use super::head::{self, BodyFraming, Head, RequestKind};
use super::headers::{Headers, check_lines, trim_blanks};

/// Some servers send an extra empty line before a response (RFC 9112 section 2.2).
const LEADING_BYTES_MAX: u8 = 8;

/// A piece of a response. A response is any number of `Informational`, one `Head`, any number of
/// `Body`, at most one `Trailers`, and `End`.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A 1xx response other than 101.
    Informational(Head<'a>),
    Head(Head<'a>),
    /// Bytes of the body, never empty, without chunk framing but not content-decoded.
    Body(&'a [u8]),
    /// The headers after a chunked body, if there are any.
    Trailers(Headers<'a>),
    /// Another response follows, or another protocol.
    End,
}

/// Reads responses one after another. Unusable after an error.
#[derive(Debug, Default)]
pub struct ResponseReader {
    /// The start of an incomplete head or trailer section.
    partial: Vec<u8>,
    /// In a body or chunk: bytes left. In a chunk's size line: the size read so far.
    left: u64,
    /// Bytes of the body, without chunk framing.
    received: u64,
    /// Bytes of the chunk size line so far.
    line_bytes: u16,
    state: State,
    method: RequestKind,
    informational: u16,
    /// Empty-line bytes before the status line.
    leading: u8,
    /// The body may be of any size.
    is_unlimited: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    Length,
    UntilClose,
    /// Before the first digit of a chunk size.
    ChunkSizeStart,
    ChunkSize,
    /// Blanks between the size and the end of the line.
    ChunkSizeBlank,
    ChunkExtension,
    /// The CR of the size line has arrived.
    ChunkLineFeed,
    ChunkData,
    /// All bytes of a chunk have arrived.
    ChunkEnd,
    ChunkEndLineFeed,
    Trailers,
    /// Everything but the end of the response was returned.
    End,
}

impl ResponseReader {
    pub fn new() -> ResponseReader {
        ResponseReader::default()
    }

    /// The next response answers a request of this kind; without this call, a normal one.
    pub fn expect(&mut self, method: RequestKind) {
        self.method = method;
    }

    /// The body of the next response is not kept, and may have any size.
    pub fn expect_any_size(&mut self) {
        self.is_unlimited = true;
    }

    /// True between responses.
    pub fn is_idle(&self) -> bool {
        self.state == State::Head && self.partial.is_empty() && self.informational == 0
    }

    /// Reads `bytes` up to the next piece of the response; `None` if they end before. A section
    /// that arrived in pieces is in `room`.
    pub fn next<'a: 'r, 'r>(
        &mut self,
        bytes: &mut &'a [u8],
        limits: &Limits,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, HttpError> {
        loop {
            match self.state {
                State::End => {
                    self.finish();
                    return Ok(Some(Event::End));
                }
                // The size is known to exceed the limit before the body arrives.
                State::Length => self.check_body(self.left, limits)?,
                _ => {}
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            match self.state {
                State::Head if !self.partial.is_empty() => {
                    if self.read_head_piece(bytes, limits.head_bytes_max)? {
                        *room = std::mem::take(&mut self.partial);
                        return self.begin(room, limits).map(|(event, _)| Some(event));
                    }
                }
                State::Head if matches!(bytes[0], b'\r' | b'\n') => self.skip_leading(bytes)?,
                State::Head => return self.read_head(bytes, limits, room),
                State::Length => return Ok(Some(self.body(bytes, State::End))),
                State::ChunkData => return Ok(Some(self.body(bytes, State::ChunkEnd))),
                State::UntilClose => {
                    let bytes_max = self.body_bytes_max(limits);
                    self.left = bytes_max.saturating_sub(self.received);
                    if self.left == 0 {
                        return Err(HttpError::BodyTooLarge { bytes_max });
                    }
                    return Ok(Some(self.body(bytes, State::UntilClose)));
                }
                State::Trailers => {
                    if self.read_trailers(bytes, limits.head_bytes_max)? {
                        *room = std::mem::take(&mut self.partial);
                        return Ok(Some(Event::Trailers(Headers::of_lines(without_end(room)))));
                    }
                }
                _ => self.read_chunk_framing(bytes, limits)?,
            }
        }
    }

    /// The peer has closed. `Ok(true)`: that ended a body, the response is complete. `Ok(false)`:
    /// it closed between responses.
    pub fn close(&mut self) -> Result<bool, HttpError> {
        let verdict = match self.state {
            State::Head if self.is_idle() => Ok(false),
            State::Head => Err(head::fault(&self.partial)
                .unwrap_or(HttpError::CutOffInHead { bytes: self.partial.len() as u64 })),
            State::UntilClose => Ok(true),
            State::Length => Err(HttpError::CutOffInBody {
                received: self.received,
                expected: Some(self.received + self.left),
            }),
            _ => Err(HttpError::CutOffInBody { received: self.received, expected: None }),
        };
        self.finish();
        verdict
    }

    fn finish(&mut self) {
        *self = ResponseReader::default();
    }

    /// Reads the start of a head; keeps an incomplete one.
    #[inline]
    fn read_head<'a: 'r, 'r>(
        &mut self,
        bytes: &mut &'a [u8],
        limits: &Limits,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<Event<'r>>, HttpError> {
        let window = &bytes[..bytes.len().min(limits.head_bytes_max)];
        let (event, length) = match head::read(window, self.method) {
            Ok(Some(head)) => (self.begin_body(head, limits)?, head.bytes),
            Ok(None) if bytes.len() >= limits.head_bytes_max => {
                return Err(HttpError::HeadTooLarge { bytes_max: limits.head_bytes_max });
            }
            Ok(None) => {
                self.partial = std::mem::take(bytes).to_vec();
                return Ok(None);
            }
            Err(_) => {
                *room = window.to_vec();
                self.begin(room, limits)?
            }
        };
        *bytes = &bytes[length..];
        Ok(Some(event))
    }

    #[cold]
    fn skip_leading(&mut self, rest: &mut &[u8]) -> Result<(), HttpError> {
        while let [b'\r' | b'\n', after @ ..] = *rest {
            if self.leading == LEADING_BYTES_MAX {
                return Err(HttpError::NotHttp(Excerpt::of(rest)));
            }
            self.leading += 1;
            *rest = after;
        }
        Ok(())
    }

    /// Adds to an incomplete head; true when it is complete.
    #[cold]
    fn read_head_piece(&mut self, rest: &mut &[u8], bytes_max: usize) -> Result<bool, HttpError> {
        let complete = self.keep_section(rest, bytes_max);
        head::check_protocol(&self.partial)?;
        complete.ok_or(HttpError::HeadTooLarge { bytes_max })
    }

    /// Parses a complete head, with folded headers if any; returns its length, too.
    #[cold]
    fn begin<'a>(
        &mut self,
        room: &'a mut Vec<u8>,
        limits: &Limits,
    ) -> Result<(Event<'a>, usize), HttpError> {
        let too_large = HttpError::HeadTooLarge { bytes_max: limits.head_bytes_max };
        if let Err(error) = head::read(room, self.method) {
            let is_header = matches!(error, HttpError::BadHeader(_));
            *room = is_header.then(|| head::unfolded(room)).flatten().ok_or(error)?;
        }
        let head = head::read(room, self.method)?.ok_or(too_large)?;
        Ok((self.begin_body(head, limits)?, head.bytes))
    }

    /// Moves bytes from `rest` to `partial` up to the end of the section. True when that has
    /// arrived, `None` if it cannot arrive within `bytes_max`.
    fn keep_section(&mut self, rest: &mut &[u8], bytes_max: usize) -> Option<bool> {
        let room = bytes_max.saturating_sub(self.partial.len()).min(rest.len());
        let end = head::end(&self.partial, &rest[..room]);
        let (section, after) = rest.split_at(end.unwrap_or(room));
        self.partial.extend_from_slice(section);
        *rest = after;
        match end {
            Some(_) => Some(true),
            None if self.partial.len() >= bytes_max => None,
            None => Some(false),
        }
    }

    #[inline]
    fn begin_body<'a>(&mut self, head: Head<'a>, limits: &Limits) -> Result<Event<'a>, HttpError> {
        if head.upgrade && self.method != RequestKind::Upgrade {
            return Err(HttpError::UnaskedUpgrade);
        }
        if head.status < 200 && !head.upgrade {
            if self.informational == limits.informational_max {
                let count_max = limits.informational_max;
                return Err(HttpError::TooManyInformational { count_max });
            }
            self.informational += 1;
            self.leading = 0;
            return Ok(Event::Informational(head));
        }
        self.state = match head.framing {
            BodyFraming::None | BodyFraming::Length(0) => State::End,
            BodyFraming::Length(length) => {
                self.left = length;
                State::Length
            }
            BodyFraming::Chunked => State::ChunkSizeStart,
            BodyFraming::UntilClose => State::UntilClose,
        };
        Ok(Event::Head(head))
    }

    fn body_bytes_max(&self, limits: &Limits) -> u64 {
        if self.is_unlimited { u64::MAX } else { limits.body_bytes_max }
    }

    /// `more` bytes of body are expected.
    fn check_body(&self, more: u64, limits: &Limits) -> Result<(), HttpError> {
        let bytes_max = self.body_bytes_max(limits);
        if more > bytes_max.saturating_sub(self.received) {
            return Err(HttpError::BodyTooLarge { bytes_max });
        }
        Ok(())
    }

    /// The part of the body that has arrived; `then` is the state after its end.
    #[inline]
    fn body<'a>(&mut self, bytes: &mut &'a [u8], then: State) -> Event<'a> {
        let length = self.left.min(bytes.len() as u64);
        let (body, after) = bytes.split_at(length as usize);
        self.left -= length;
        self.received += length;
        *bytes = after;
        if self.left == 0 {
            self.state = then;
        }
        Event::Body(body)
    }

    /// Reads the framing between chunks byte by byte, because it is short; extensions are skipped.
    fn read_chunk_framing(&mut self, rest: &mut &[u8], limits: &Limits) -> Result<(), HttpError> {
        while let [byte, after @ ..] = *rest {
            let byte = *byte;
            match self.state {
                State::ChunkEnd | State::ChunkEndLineFeed => self.read_chunk_end(byte)?,
                State::ChunkExtension => {
                    let length = memchr(b'\n', rest).unwrap_or(rest.len());
                    self.count_line(length, limits)?;
                    *rest = &rest[length..];
                    if !rest.is_empty() {
                        self.state = State::ChunkLineFeed;
                    }
                    continue;
                }
                State::ChunkSizeStart
                | State::ChunkSize
                | State::ChunkSizeBlank
                | State::ChunkLineFeed => {
                    self.count_line(1, limits)?;
                    self.read_chunk_size(byte, limits)?;
                }
                _ => return Ok(()),
            }
            *rest = after;
        }
        Ok(())
    }

    fn count_line(&mut self, bytes: usize, limits: &Limits) -> Result<(), HttpError> {
        let line_bytes = usize::from(self.line_bytes) + bytes;
        // Whatever the limit is, the count must fit its type.
        let bytes_max = limits.chunk_line_bytes_max.min(usize::from(u16::MAX));
        if line_bytes > bytes_max {
            return Err(HttpError::ChunkLineTooLong { bytes_max });
        }
        self.line_bytes = u16::try_from(line_bytes).unwrap_or(u16::MAX);
        Ok(())
    }

    fn read_chunk_size(&mut self, byte: u8, limits: &Limits) -> Result<(), HttpError> {
        let bad = HttpError::BadChunkSize { byte };
        let after_digit = self.state != State::ChunkSizeStart;
        let in_digits = matches!(self.state, State::ChunkSizeStart | State::ChunkSize);
        match (byte, char::from(byte).to_digit(16)) {
            (b'\n', _) if after_digit => return self.begin_chunk(limits),
            _ if self.state == State::ChunkLineFeed => return Err(bad),
            (_, Some(digit)) if in_digits => {
                let shifted = self.left.checked_mul(16).ok_or(bad)?;
                self.left = shifted | u64::from(digit);
                self.state = State::ChunkSize;
            }
            (b'\r', _) if after_digit => self.state = State::ChunkLineFeed,
            (b' ' | b'\t', _) if after_digit => self.state = State::ChunkSizeBlank,
            (b';', _) if after_digit => self.state = State::ChunkExtension,
            _ => return Err(bad),
        }
        Ok(())
    }

    /// The size line is complete.
    fn begin_chunk(&mut self, limits: &Limits) -> Result<(), HttpError> {
        self.line_bytes = 0;
        self.check_body(self.left, limits)?;
        self.state = if self.left == 0 { State::Trailers } else { State::ChunkData };
        Ok(())
    }

    fn read_chunk_end(&mut self, byte: u8) -> Result<(), HttpError> {
        self.state = match (self.state, byte) {
            (_, b'\n') => State::ChunkSizeStart,
            (State::ChunkEnd, b'\r') => State::ChunkEndLineFeed,
            _ => return Err(HttpError::BadChunkEnd { byte }),
        };
        Ok(())
    }

    /// Whether the trailers are complete, and not empty.
    fn read_trailers(&mut self, rest: &mut &[u8], bytes_max: usize) -> Result<bool, HttpError> {
        if self.partial.is_empty() && rest.starts_with(b"\r\n") {
            *rest = &rest[2..];
            self.state = State::End;
            return Ok(false);
        }
        let complete = self.keep_section(rest, bytes_max);
        if !complete.ok_or(HttpError::TrailersTooLarge { bytes_max })? {
            return Ok(false);
        }
        if check_lines(without_end(&self.partial)).is_err() {
            head::unfold(&mut self.partial);
        }
        let lines = without_end(&self.partial);
        check_lines(lines).map_err(|line| HttpError::BadHeader(Excerpt::of(trim_blanks(line))))?;
        self.state = State::End;
        Ok(!lines.is_empty())
    }
}

/// The lines of a section, without the final empty one.
fn without_end(section: &[u8]) -> &[u8] {
    let lines = section.strip_suffix(b"\n").unwrap_or(section);
    lines.strip_suffix(b"\r").unwrap_or(lines)
}
