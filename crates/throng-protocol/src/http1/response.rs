//! The machine that reads the responses of one connection, in whatever pieces they come.
//! It keeps bytes only of a head or a trailer section that came cut.

use memchr::memchr;

use super::Limits;
use super::error::HttpError;
use super::excerpt::Excerpt;
use super::head::{self, BodyFraming, Head, RequestKind};
use super::headers::{Headers, check_lines, trim_blanks};

/// Some servers send an empty line too many before a response (RFC 9112 section 2.2).
const LEADING_BYTES_MAX: u8 = 8;

/// A piece of a response. A response is any number of `Informational`, one `Head`, any number of
/// `Body`, at most one `Trailers`.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A 1xx response other than 101.
    Informational(Head<'a>),
    Head(Head<'a>),
    /// Bytes of the body, never none, without chunk framing but not content-decoded.
    Body(&'a [u8]),
    /// The headers after a chunked body, if there are any.
    Trailers(Headers<'a>),
}

/// How far [`ResponseReader::receive`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that belong to this response; all of them unless it is complete.
    pub consumed: usize,
    pub complete: bool,
}

/// Reads one response after the other. After an error it is of no more use.
#[derive(Debug, Default)]
pub struct ResponseReader {
    /// The beginning of a head or trailer section whose end has not come yet.
    partial: Vec<u8>,
    /// Of the body or chunk: bytes to come. In a chunk's size line: the size read so far.
    left: u64,
    /// Of the body, without chunk framing.
    received: u64,
    /// Bytes of the chunk size line so far.
    line_bytes: u16,
    state: State,
    method: RequestKind,
    informational: u16,
    /// Empty-line bytes before the status line.
    leading: u8,
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
    /// Blanks between the size and what ends the line.
    ChunkSizeBlank,
    ChunkExtension,
    /// The CR of the size line has come.
    ChunkLineFeed,
    ChunkData,
    /// All bytes of a chunk have come.
    ChunkEnd,
    ChunkEndLineFeed,
    Trailers,
}

impl ResponseReader {
    pub fn new() -> ResponseReader {
        ResponseReader::default()
    }

    /// The next response answers a request of this kind. Without this call it is a normal one.
    pub fn expect(&mut self, method: RequestKind) {
        self.method = method;
    }

    /// True between responses: nothing of one has been read.
    pub fn is_idle(&self) -> bool {
        self.state == State::Head && self.partial.is_empty() && self.informational == 0
    }

    /// Reads bytes and tells `sink` what they are. Stops where the response is complete: what
    /// follows (the next response, another protocol) is not consumed.
    #[inline]
    pub fn receive(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> Result<Progress, HttpError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let complete = match self.state {
                State::Head => self.read_head(&mut rest, limits, sink)?,
                State::Length => self.read_length(&mut rest, sink),
                State::UntilClose => self.read_until_close(&mut rest, limits, sink)?,
                State::ChunkData => self.read_chunk_data(&mut rest, sink),
                State::Trailers => self.read_trailers(&mut rest, limits, sink)?,
                _ => self.read_chunk_framing(&mut rest, limits)?,
            };
            if complete {
                self.finish();
                return Ok(Progress { consumed: bytes.len() - rest.len(), complete: true });
            }
        }
        Ok(Progress { consumed: bytes.len(), complete: false })
    }

    /// The peer has closed. `Ok(true)`: that ended a body, the response is complete.
    /// `Ok(false)`: it closed between responses. There is nothing left to tell `_sink` at present,
    /// as all bytes of a body are told when they come.
    pub fn close(
        &mut self,
        _sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> Result<bool, HttpError> {
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

    #[inline]
    fn read_head(
        &mut self,
        rest: &mut &[u8],
        limits: &Limits,
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> Result<bool, HttpError> {
        if !self.partial.is_empty() {
            return self.read_head_piece(rest, limits, sink);
        }
        if matches!(rest[0], b'\r' | b'\n') {
            self.skip_leading(rest)?;
            return Ok(false);
        }
        let window = &rest[..rest.len().min(limits.head_bytes_max)];
        match head::read(window, self.method) {
            Ok(Some(head)) => {
                *rest = &rest[head.bytes..];
                return self.begin_body(head, limits, sink);
            }
            Ok(None) => {}
            Err(error) => {
                let (length, complete) = self.begin_folded(window, error, limits, sink)?;
                *rest = &rest[length..];
                return Ok(complete);
            }
        }
        if rest.len() >= limits.head_bytes_max {
            return Err(HttpError::HeadTooLarge { bytes_max: limits.head_bytes_max });
        }
        self.partial = std::mem::take(rest).to_vec();
        Ok(false)
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

    /// Adds to a head that came cut, and reads it when its end has come.
    #[cold]
    fn read_head_piece(
        &mut self,
        rest: &mut &[u8],
        limits: &Limits,
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> Result<bool, HttpError> {
        let complete = self.keep_section(rest, limits.head_bytes_max);
        head::check_protocol(&self.partial)?;
        let too_large = HttpError::HeadTooLarge { bytes_max: limits.head_bytes_max };
        if !complete.ok_or(too_large)? {
            return Ok(false);
        }
        let partial = std::mem::take(&mut self.partial);
        match head::read(&partial, self.method) {
            Ok(Some(head)) => self.begin_body(head, limits, sink),
            Ok(None) => Err(too_large),
            Err(error) => {
                self.begin_folded(&partial, error, limits, sink).map(|(_, complete)| complete)
            }
        }
    }

    /// Reads a head whose headers may go over several lines; `error` is what is wrong with it
    /// otherwise. Returns how long it is, and whether the response is complete with it.
    #[cold]
    fn begin_folded(
        &mut self,
        bytes: &[u8],
        error: HttpError,
        limits: &Limits,
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> Result<(usize, bool), HttpError> {
        let is_header = matches!(error, HttpError::BadHeader(_));
        let unfolded = is_header.then(|| head::unfolded(bytes)).flatten().ok_or(error)?;
        let head = head::read(&unfolded, self.method)?.ok_or(error)?;
        let length = head.bytes;
        Ok((length, self.begin_body(head, limits, sink)?))
    }

    /// Moves bytes from `rest` to `partial` up to the end of the section. True when that has come,
    /// `None` when it cannot come within `bytes_max`.
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
    fn begin_body(
        &mut self,
        head: Head<'_>,
        limits: &Limits,
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> Result<bool, HttpError> {
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
            sink(Event::Informational(head));
            return Ok(false);
        }
        let framing = head.framing;
        sink(Event::Head(head));
        match framing {
            BodyFraming::None | BodyFraming::Length(0) => return Ok(true),
            BodyFraming::Length(length) => {
                self.check_body(length, limits)?;
                self.left = length;
                self.state = State::Length;
            }
            BodyFraming::Chunked => self.state = State::ChunkSizeStart,
            BodyFraming::UntilClose => self.state = State::UntilClose,
        }
        Ok(false)
    }

    /// `more` bytes of body are to come.
    fn check_body(&self, more: u64, limits: &Limits) -> Result<(), HttpError> {
        let bytes_max = limits.body_bytes_max;
        if more > bytes_max.saturating_sub(self.received) {
            return Err(HttpError::BodyTooLarge { bytes_max });
        }
        Ok(())
    }

    #[inline]
    fn read_length(
        &mut self,
        rest: &mut &[u8],
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> bool {
        self.pass_on(rest, self.left, sink);
        self.left == 0
    }

    fn read_chunk_data(
        &mut self,
        rest: &mut &[u8],
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> bool {
        self.pass_on(rest, self.left, sink);
        if self.left == 0 {
            self.state = State::ChunkEnd;
        }
        false
    }

    fn read_until_close(
        &mut self,
        rest: &mut &[u8],
        limits: &Limits,
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> Result<bool, HttpError> {
        self.left = limits.body_bytes_max.saturating_sub(self.received);
        if self.left == 0 {
            return Err(HttpError::BodyTooLarge { bytes_max: limits.body_bytes_max });
        }
        self.pass_on(rest, self.left, sink);
        Ok(false)
    }

    /// Tells at most `bytes_max` bytes of body.
    #[inline]
    fn pass_on(
        &mut self,
        rest: &mut &[u8],
        bytes_max: u64,
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) {
        let length = bytes_max.min(rest.len() as u64);
        let (body, after) = rest.split_at(length as usize);
        self.left -= length;
        self.received += length;
        *rest = after;
        sink(Event::Body(body));
    }

    /// Reads what stands between chunks, byte by byte as it is short; an extension is skipped.
    fn read_chunk_framing(&mut self, rest: &mut &[u8], limits: &Limits) -> Result<bool, HttpError> {
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
                _ => return Ok(false),
            }
            *rest = after;
        }
        Ok(false)
    }

    fn count_line(&mut self, bytes: usize, limits: &Limits) -> Result<(), HttpError> {
        let line_bytes = usize::from(self.line_bytes) + bytes;
        // Whatever the limit is, what is counted has to fit.
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

    fn read_trailers(
        &mut self,
        rest: &mut &[u8],
        limits: &Limits,
        sink: &mut (impl FnMut(Event<'_>) + ?Sized),
    ) -> Result<bool, HttpError> {
        if self.partial.is_empty() && rest.starts_with(b"\r\n") {
            *rest = &rest[2..];
            return Ok(true);
        }
        let bytes_max = limits.head_bytes_max;
        let complete = self.keep_section(rest, bytes_max);
        if !complete.ok_or(HttpError::TrailersTooLarge { bytes_max })? {
            return Ok(false);
        }
        let mut section = std::mem::take(&mut self.partial);
        if check_lines(without_end(&section)).is_err() {
            head::unfold(&mut section);
        }
        let lines = without_end(&section);
        check_lines(lines).map_err(|line| HttpError::BadHeader(Excerpt::of(trim_blanks(line))))?;
        if !lines.is_empty() {
            sink(Event::Trailers(Headers::of_lines(lines)));
        }
        Ok(true)
    }
}

/// The lines of a section, without the empty one that ends it.
fn without_end(section: &[u8]) -> &[u8] {
    let lines = section.strip_suffix(b"\n").unwrap_or(section);
    lines.strip_suffix(b"\r").unwrap_or(lines)
}
