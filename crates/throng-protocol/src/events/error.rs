//! Why a response is not an event stream, and why reading one must stop.

use std::fmt;

use crate::http1::{ContentError, Excerpt, HttpError};
use crate::http2::{ErrorCode, Violation};

/// Why a response is not an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEvents {
    Status(u16),
    ContentTypeMissing,
    ContentType(Excerpt),
}

impl fmt::Display for NotEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotEvents::Status(status) => {
                write!(f, "the event stream request got status {status} instead of 200")
            }
            NotEvents::ContentTypeMissing => {
                f.write_str("the response has no `Content-Type` header")
            }
            NotEvents::ContentType(kind) => {
                write!(f, "the response is {kind}, not `text/event-stream`")
            }
        }
    }
}

impl std::error::Error for NotEvents {}

/// Why an event stream cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventError {
    TooLarge {
        bytes_max: usize,
    },
    NotEvents(NotEvents),
    Http(HttpError),
    Http2(Violation),
    Content(ContentError),
    /// The peer reset the stream.
    Reset(ErrorCode),
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventError::TooLarge { bytes_max } => {
                write!(f, "an event is over the limit of {bytes_max} bytes")
            }
            EventError::NotEvents(error) => error.fmt(f),
            EventError::Http(error) => error.fmt(f),
            EventError::Http2(violation) => violation.fmt(f),
            EventError::Content(error) => error.fmt(f),
            EventError::Reset(code) => write!(f, "the target reset the stream: {code}"),
        }
    }
}

impl std::error::Error for EventError {}

impl From<ContentError> for EventError {
    fn from(error: ContentError) -> EventError {
        EventError::Content(error)
    }
}
