//! Collects bytes, however they are split, until a reply is complete.

use std::fmt;

use memchr::memmem;
use regex::bytes::Regex;

/// The end of a reply. A reply has at least one byte, except for `Length(0)`.
#[derive(Clone, Debug)]
pub enum Until {
    /// Whatever arrives first, in any amount.
    Any,
    /// After this many bytes.
    Length(u64),
    /// After the first delimiter.
    Delimiter(Box<Delimiter>),
    /// After the first match. All received bytes are searched again whenever more arrive: a pattern
    /// that can match less of fewer bytes (`\d+`, `$`) may end early.
    Pattern(Regex),
}

impl Until {
    /// Until these bytes; `None` if they are empty.
    pub fn delimiter(bytes: &[u8]) -> Option<Until> {
        Delimiter::new(bytes).map(|delimiter| Until::Delimiter(Box::new(delimiter)))
    }
}

/// The bytes that end a reply, at least one, prepared for searching.
#[derive(Clone, Debug)]
pub struct Delimiter {
    finder: memmem::Finder<'static>,
}

impl Delimiter {
    /// `None` if `bytes` is empty, which would match everywhere.
    pub fn new(bytes: &[u8]) -> Option<Delimiter> {
        (!bytes.is_empty()).then(|| Delimiter { finder: memmem::Finder::new(bytes).into_owned() })
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.finder.needle()
    }

    /// The end of the first delimiter in `bytes`.
    fn end(&self, bytes: &[u8]) -> Option<usize> {
        let start = match self.finder.needle() {
            [byte] => memchr::memchr(*byte, bytes),
            _ => self.finder.find(bytes),
        };
        start.map(|start| start + self.finder.needle().len())
    }
}

/// A reply that is waited for.
#[derive(Clone, Copy, Debug)]
pub struct AwaitedReply<'a> {
    pub until: &'a Until,
    pub bytes_max: usize,
    /// The reply is needed. Otherwise it is returned empty, only what is needed to find its end is
    /// kept, and [`Until::Length`] has no limit, because it is only counted.
    pub is_kept: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The reply did not end within `limit` bytes.
    TooLarge { limit: u64 },
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::TooLarge { limit } => {
                write!(f, "the reply is longer than the limit of {limit} bytes")
            }
        }
    }
}

impl std::error::Error for StreamError {}

/// Reads the replies of one connection. Owns heap memory only for an incomplete reply.
#[derive(Debug, Default)]
pub struct StreamReader {
    /// The reply so far, or its last bytes if it is not kept.
    pub(super) buffer: Vec<u8>,
    /// How many bytes of the reply have arrived.
    pub(super) seen: u64,
}

const _: () = assert!(size_of::<StreamReader>() <= 32);

/// The end of a reply in the bytes just received, if it is there.
type End = Option<usize>;

impl StreamReader {
    pub fn new() -> StreamReader {
        StreamReader::default()
    }

    /// Reads the bytes of the reply, which is returned when it is complete; the rest is left. A
    /// reply that is complete in `bytes` is not copied; otherwise it is in `room`.
    ///
    /// `answer` must not change until the reply is complete.
    pub fn next<'a: 'r, 'r>(
        &mut self,
        bytes: &mut &'a [u8],
        answer: AwaitedReply<'_>,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<&'r [u8]>, StreamError> {
        let AwaitedReply { until, bytes_max, is_kept } = answer;
        let end = match until {
            Until::Any => (!bytes.is_empty()).then_some(bytes.len()),
            Until::Length(length) => self.length_end(*length, bytes, bytes_max, is_kept)?,
            Until::Delimiter(_) | Until::Pattern(_) => {
                self.searched_end(until, bytes, bytes_max)?
            }
        };
        let Some(end) = end else {
            self.hold(std::mem::take(bytes), until, is_kept);
            return Ok(None);
        };
        let (last, rest) = bytes.split_at(end);
        *bytes = rest;
        let StreamReader { mut buffer, .. } = std::mem::take(self);
        if !is_kept {
            return Ok(Some(&[]));
        }
        if buffer.is_empty() {
            return Ok(Some(last));
        }
        buffer.extend_from_slice(last);
        *room = buffer;
        Ok(Some(room))
    }

    /// The heap memory of the reader: none between two replies.
    pub fn heap_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    fn length_end(
        &self,
        length: u64,
        bytes: &[u8],
        limit: usize,
        keep: bool,
    ) -> Result<End, StreamError> {
        if keep && length > limit as u64 {
            return Err(StreamError::TooLarge { limit: limit as u64 });
        }
        let missing = usize::try_from(length.saturating_sub(self.seen)).ok();
        Ok(missing.filter(|missing| *missing <= bytes.len()))
    }

    /// Searches for the end within the limit.
    fn searched_end(
        &mut self,
        until: &Until,
        bytes: &[u8],
        limit: usize,
    ) -> Result<End, StreamError> {
        let left = (limit as u64).saturating_sub(self.seen);
        let allowed = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let window = &bytes[..allowed];
        let end = match until {
            Until::Delimiter(delimiter) => self.delimiter_end(delimiter, window),
            Until::Pattern(pattern) => self.pattern_end(pattern, window),
            Until::Any | Until::Length(_) => None,
        };
        if end.is_none() && allowed < bytes.len() {
            return Err(StreamError::TooLarge { limit: limit as u64 });
        }
        Ok(end)
    }

    /// Searches where old and new bytes meet, then in the new ones; nothing is searched twice.
    fn delimiter_end(&mut self, delimiter: &Delimiter, window: &[u8]) -> End {
        let overlap = delimiter.as_bytes().len() - 1;
        let old = self.buffer.len();
        let tail = old.min(overlap);
        if tail > 0 {
            self.buffer.extend_from_slice(&window[..window.len().min(overlap)]);
            let end = delimiter.end(&self.buffer[old - tail..]);
            self.buffer.truncate(old);
            if let Some(end) = end {
                return Some(end - tail);
            }
        }
        delimiter.end(window)
    }

    fn pattern_end(&mut self, pattern: &Regex, window: &[u8]) -> End {
        let old = self.buffer.len();
        if old == 0 {
            return match_end(pattern, window, 0);
        }
        self.buffer.extend_from_slice(window);
        let end = match_end(pattern, &self.buffer, old);
        self.buffer.truncate(old);
        end
    }

    /// Adds all of `bytes` to an incomplete reply.
    fn hold(&mut self, bytes: &[u8], until: &Until, keep: bool) {
        self.seen += bytes.len() as u64;
        let held = match until {
            Until::Pattern(_) => usize::MAX,
            _ if keep => usize::MAX,
            Until::Delimiter(delimiter) => delimiter.as_bytes().len() - 1,
            Until::Any | Until::Length(_) => 0,
        };
        let new = &bytes[bytes.len().saturating_sub(held)..];
        let surplus = (self.buffer.len() + new.len()).saturating_sub(held);
        self.buffer.drain(..surplus.min(self.buffer.len()));
        self.buffer.extend_from_slice(new);
    }
}

/// The end of the first match that is not empty at the very start, after the first `old` bytes.
/// Only a pattern that looks past its end (`\B`) finds a match there that did not exist before.
fn match_end(pattern: &Regex, bytes: &[u8], old: usize) -> End {
    let end = pattern.find_iter(bytes).map(|found| found.end()).find(|end| *end > 0);
    end.map(|end| end.saturating_sub(old))
}
