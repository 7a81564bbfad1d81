//! Why a response could not be read: one variant per cause, in words for the error table. All are
//! caused by the peer or the network between.

use std::fmt;

use super::excerpt::Excerpt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// The first bytes cannot start an HTTP/1 response. How many are shown depends on how many had
    /// arrived.
    NotHttp(Excerpt),
    /// It starts with `HTTP/` but is not `HTTP/1.x NNN reason`.
    BadStatusLine(Excerpt),
    /// A header or trailer line is not `name: value`.
    BadHeader(Excerpt),
    /// A Content-Length that is not a number below 2^64.
    BadContentLength(Excerpt),
    /// Content-Lengths that differ.
    ConflictingLength {
        first: u64,
        other: u64,
    },
    HeadTooLarge {
        bytes_max: usize,
    },
    TrailersTooLarge {
        bytes_max: usize,
    },
    BodyTooLarge {
        bytes_max: u64,
    },
    /// The line before a chunk is not a hexadecimal size; the byte is the first wrong one.
    BadChunkSize {
        byte: u8,
    },
    /// A chunk is not followed by a line end.
    BadChunkEnd {
        byte: u8,
    },
    ChunkLineTooLong {
        bytes_max: usize,
    },
    TooManyInformational {
        count_max: u16,
    },
    /// Status 101 without a request that asks for another protocol (RFC 9110 section 15.2.2).
    UnaskedUpgrade,
    /// Closed after this many bytes of a head; 0 if only 1xx responses had arrived.
    CutOffInHead {
        bytes: u64,
    },
    /// Closed before the end of the body; what was expected is unknown for chunks.
    CutOffInBody {
        received: u64,
        expected: Option<u64>,
    },
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            HttpError::NotHttp(start) => write!(f, "response is not HTTP, it starts with {start}"),
            HttpError::BadStatusLine(line) => write!(f, "bad status line {line}"),
            HttpError::BadHeader(line) => write!(f, "bad header line {line}"),
            HttpError::BadContentLength(value) => write!(f, "bad Content-Length {value}"),
            HttpError::ConflictingLength { first, other } => {
                write!(f, "Content-Length is both {first} and {other}")
            }
            HttpError::HeadTooLarge { bytes_max } => {
                write!(f, "response head is over the limit of {bytes_max} bytes")
            }
            HttpError::TrailersTooLarge { bytes_max } => {
                write!(f, "trailers are over the limit of {bytes_max} bytes")
            }
            HttpError::BodyTooLarge { bytes_max } => {
                write!(f, "response body is over the limit of {bytes_max} bytes")
            }
            HttpError::BadChunkSize { byte } => {
                write!(f, "bad chunk size: `{}` is unexpected", byte.escape_ascii())
            }
            HttpError::BadChunkEnd { byte } => {
                write!(f, "chunk is followed by `{}` instead of a line end", byte.escape_ascii())
            }
            HttpError::ChunkLineTooLong { bytes_max } => {
                write!(f, "chunk size line is over the limit of {bytes_max} bytes")
            }
            HttpError::TooManyInformational { count_max } => {
                write!(f, "more than {count_max} informational (1xx) responses in a row")
            }
            HttpError::UnaskedUpgrade => {
                write!(f, "status 101, but no protocol upgrade was requested")
            }
            HttpError::CutOffInHead { bytes: 0 } => {
                write!(f, "closed after an informational (1xx) response, before the final one")
            }
            HttpError::CutOffInHead { bytes } => {
                write!(f, "closed in the middle of the response head, after {bytes} bytes")
            }
            HttpError::CutOffInBody { received, expected: Some(expected) } => {
                write!(
                    f,
                    "closed in the middle of the body: {received} of {expected} bytes received"
                )
            }
            HttpError::CutOffInBody { received, expected: None } => {
                write!(f, "closed in the middle of a chunked body, after {received} bytes")
            }
        }
    }
}

impl std::error::Error for HttpError {}
