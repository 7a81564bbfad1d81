//! Content codings of bodies (RFC 9110 section 8.4): gzip, deflate and br, one or two deep. Used
//! only if the body is needed; a decoder can be reset and reused.

mod gzip;
mod inflate;
mod stages;

use std::fmt;

use super::excerpt::Excerpt;
use super::head::Head;
use super::headers::list_elements;
use inflate::Fault;
use stages::Stage;

/// How many codings may be applied to one body.
const CODINGS_MAX: usize = 2;
/// Bytes decoded per step.
const STEP_BYTES: usize = 16 * 1024;

/// Why a body could not be decoded. The coding is named as in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentError {
    UnknownCoding(Excerpt),
    TooManyCodings { count_max: usize },
    Corrupt { coding: &'static str },
    CutOff { coding: &'static str },
    TooLarge { bytes_max: u64 },
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentError::UnknownCoding(name) => write!(f, "unknown Content-Encoding {name}"),
            ContentError::TooManyCodings { count_max } => {
                write!(f, "body has more than {count_max} content encodings")
            }
            ContentError::Corrupt { coding } => write!(f, "body is not valid {coding}"),
            ContentError::CutOff { coding } => {
                write!(f, "body ends in the middle of the {coding} data")
            }
            ContentError::TooLarge { bytes_max } => {
                write!(f, "decoded body is over the limit of {bytes_max} bytes")
            }
        }
    }
}

impl std::error::Error for ContentError {}

/// Decodes the codings of one body, piece by piece.
#[derive(Debug)]
pub struct ContentDecoder {
    /// The coding that was applied last.
    outer: Measured,
    inner: Option<Measured>,
    bytes_max: u64,
}

/// `identity` is reserved for this (RFC 9110 section 8.4.1); some servers write `none`.
fn is_no_coding(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"identity") || name.eq_ignore_ascii_case(b"none")
}

impl ContentDecoder {
    /// A decoder for a Content-Encoding value; `None` if there is nothing to decode. At most
    /// `bytes_max` bytes are decoded, also between two codings.
    pub fn new(encoding: &[u8], bytes_max: u64) -> Result<Option<ContentDecoder>, ContentError> {
        ContentDecoder::of_codings(list_elements(encoding), bytes_max)
    }

    /// A decoder for all the Content-Encoding lines of a response.
    pub fn for_head(
        head: &Head<'_>,
        bytes_max: u64,
    ) -> Result<Option<ContentDecoder>, ContentError> {
        if head.content_encoding.is_none() {
            return Ok(None);
        }
        let lines = head.headers.get_all("content-encoding");
        ContentDecoder::of_codings(lines.flat_map(list_elements), bytes_max)
    }

    fn of_codings<'a>(
        names: impl Iterator<Item = &'a [u8]>,
        bytes_max: u64,
    ) -> Result<Option<ContentDecoder>, ContentError> {
        let mut outer: Option<Measured> = None;
        let mut inner = None;
        for name in names.filter(|name| !is_no_coding(name)) {
            let Some(stage) = Stage::named(name) else {
                return Err(ContentError::UnknownCoding(Excerpt::of(name)));
            };
            if inner.is_some() {
                return Err(ContentError::TooManyCodings { count_max: CODINGS_MAX });
            }
            inner = outer.replace(Measured { stage, decoded: 0, step: Vec::new() });
        }
        Ok(outer.map(|outer| ContentDecoder { outer, inner, bytes_max }))
    }

    /// Decodes more of the body; `sink` gets the output, piece by piece, and may stop.
    pub fn write<E: From<ContentError>>(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let ContentDecoder { outer, inner, bytes_max } = self;
        match inner {
            None => outer.write(bytes, *bytes_max, sink),
            Some(inner) => {
                outer.write(bytes, *bytes_max, &mut |piece| inner.write(piece, *bytes_max, sink))
            }
        }
    }

    /// The body has ended. An empty body is complete, as for a HEAD request.
    pub fn finish(&self) -> Result<(), ContentError> {
        self.outer.finish()?;
        self.inner.as_ref().map_or(Ok(()), Measured::finish)
    }

    /// Prepares for another body with the same codings.
    pub fn reset(&mut self) {
        self.outer.reset();
        if let Some(inner) = &mut self.inner {
            inner.reset();
        }
    }
}

/// A stage and its output so far.
#[derive(Debug)]
struct Measured {
    stage: Stage,
    decoded: u64,
    /// The output of the stage, a step at a time.
    step: Vec<u8>,
}

impl Measured {
    fn write<E: From<ContentError>>(
        &mut self,
        bytes: &[u8],
        bytes_max: u64,
        sink: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.step.resize(STEP_BYTES, 0);
        let mut rest = bytes;
        loop {
            let corrupt = ContentError::Corrupt { coding: self.stage.name() };
            let (consumed, produced) =
                self.stage.step(rest, &mut self.step).map_err(|Fault| corrupt)?;
            let room = bytes_max - self.decoded;
            let kept = room.min(produced as u64);
            self.decoded += kept;
            sink(&self.step[..kept as usize])?;
            if produced as u64 > room {
                return Err(ContentError::TooLarge { bytes_max }.into());
            }
            rest = &rest[consumed..];
            if rest.is_empty() && produced < STEP_BYTES {
                return Ok(());
            }
            if consumed == 0 && produced == 0 {
                return Err(corrupt.into());
            }
        }
    }

    fn finish(&self) -> Result<(), ContentError> {
        if self.stage.is_complete() {
            Ok(())
        } else {
            Err(ContentError::CutOff { coding: self.stage.name() })
        }
    }

    fn reset(&mut self) {
        self.stage.reset();
        self.decoded = 0;
    }
}

#[cfg(test)]
mod tests;
