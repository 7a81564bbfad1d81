//! Protocol violations of a peer, one variant per cause, with the section of the RFC. All are the
//! fault of the peer.

use std::fmt;

use super::frame::{ErrorCode, FrameKind};
use super::hpack::HpackError;
use super::malformed::Malformed;
use crate::http1::{Excerpt, HttpError};

/// Why nothing more is read on a connection, or why one response failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The first frame is not SETTINGS. How much is shown depends on how much had arrived.
    NotHttp2(Excerpt),
    FrameTooLarge {
        size: u32,
        size_max: u32,
    },
    /// A frame whose kind requires another size.
    FrameSize {
        kind: FrameKind,
        size: u32,
    },
    /// A frame on stream 0 that requires a stream, on a stream that must be on stream 0, or on one
    /// that we have not opened.
    StreamId {
        kind: FrameKind,
        id: u32,
    },
    StreamClosed {
        kind: FrameKind,
        id: u32,
    },
    Padding(FrameKind),
    /// Another frame inside a header block.
    HeaderBlockCut(FrameKind),
    ContinuationWithoutHeaders,
    Push,
    Setting {
        id: u16,
        value: u32,
    },
    AckWithoutSettings,
    ZeroIncrement,
    WindowOverflow,
    /// More data than our window allows.
    WindowIgnored,
    Compression(HpackError),
    ManyContinuations {
        count_max: u16,
    },
    /// Too many frames of a kind that causes work without progress.
    Flood(FrameKind),
    /// It does not read our answers, and keeps asking.
    AnswersUnread {
        bytes_max: u32,
    },
    /// A second GOAWAY that allows more streams than the first.
    GoAwayRaised {
        first: u32,
        second: u32,
    },
    /// Closed before the first byte of this response.
    ClosedBeforeHead,
    /// Violations that exist in every version of HTTP.
    Http(HttpError),
    Malformed(Malformed),
}

impl From<Malformed> for Violation {
    fn from(malformed: Malformed) -> Violation {
        Violation::Malformed(malformed)
    }
}

impl Violation {
    /// Whether it is not an error, but exceeds a limit.
    pub fn is_too_large(&self) -> bool {
        use HttpError::{BodyTooLarge, HeadTooLarge, TrailersTooLarge};
        let Violation::Http(error) = self else { return false };
        matches!(error, HeadTooLarge { .. } | TrailersTooLarge { .. } | BodyTooLarge { .. })
    }

    /// Whether the peer speaks HTTP/1 instead: it is not faulty, but does not support HTTP/2.
    pub fn is_http1(&self) -> bool {
        matches!(self, Violation::NotHttp2(begin) if begin.as_bytes().starts_with(b"HTTP/1."))
    }

    /// Whether the peer closed in the middle of an exchange.
    pub fn is_cut_off(&self) -> bool {
        matches!(
            self,
            Violation::ClosedBeforeHead | Violation::Http(HttpError::CutOffInBody { .. })
        )
    }

    /// The error code sent to the peer.
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Violation::FrameTooLarge { .. } | Violation::FrameSize { .. } => {
                ErrorCode::FRAME_SIZE_ERROR
            }
            Violation::StreamClosed { .. } => ErrorCode::STREAM_CLOSED,
            Violation::WindowOverflow | Violation::WindowIgnored => ErrorCode::FLOW_CONTROL_ERROR,
            // The size of a window has a code of its own (RFC 9113, 6.5.2).
            Violation::Setting { id: 4, .. } => ErrorCode::FLOW_CONTROL_ERROR,
            Violation::Compression(_) => ErrorCode::COMPRESSION_ERROR,
            Violation::ManyContinuations { .. }
            | Violation::Flood(_)
            | Violation::AnswersUnread { .. }
            | Violation::Http(
                HttpError::HeadTooLarge { .. } | HttpError::TooManyInformational { .. },
            ) => ErrorCode::ENHANCE_YOUR_CALM,
            Violation::Http(HttpError::BodyTooLarge { .. }) => ErrorCode::CANCEL,
            Violation::Malformed(malformed) => malformed.error_code(),
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Violation::NotHttp2(begin) if self.is_http1() => {
                write!(f, "the target responds with HTTP/1, not HTTP/2: {begin} (RFC 9113, 3.4)")
            }
            Violation::NotHttp2(begin) => {
                write!(f, "response is not HTTP/2, it starts with {begin} (RFC 9113, 3.4)")
            }
            Violation::FrameTooLarge { size, size_max } => {
                write!(f, "a frame of {size} bytes, the limit is {size_max} (RFC 9113, 4.2)")
            }
            Violation::FrameSize { kind, size } => {
                // Their sections are in the order of their numbers.
                write!(f, "{kind} cannot have {size} bytes (RFC 9113, 6.{})", kind.0 + 1)
            }
            Violation::StreamId { kind, id } => {
                write!(f, "{kind} on stream {id} is not allowed (RFC 9113, 5.1)")
            }
            Violation::StreamClosed { kind, id } => {
                write!(f, "{kind} on stream {id}, which is closed (RFC 9113, 5.1)")
            }
            Violation::Padding(kind) => {
                write!(f, "{kind} has more padding than payload (RFC 9113, 6.1)")
            }
            Violation::HeaderBlockCut(kind) => {
                write!(f, "{kind} instead of CONTINUATION (RFC 9113, 6.2)")
            }
            Violation::ContinuationWithoutHeaders => {
                f.write_str("CONTINUATION without HEADERS before it (RFC 9113, 6.10)")
            }
            Violation::Push => {
                f.write_str("PUSH_PROMISE, which throng has disabled (RFC 9113, 8.4)")
            }
            Violation::Setting { id, value } => {
                write!(f, "setting {id:#x} cannot be {value} (RFC 9113, 6.5.2)")
            }
            Violation::AckWithoutSettings => {
                f.write_str("an acknowledgment of SETTINGS that were not sent (RFC 9113, 6.5)")
            }
            Violation::ZeroIncrement => {
                f.write_str("WINDOW_UPDATE of the connection by 0 (RFC 9113, 6.9)")
            }
            Violation::WindowOverflow => {
                f.write_str("the window of the connection is above 2^31-1 (RFC 9113, 6.9.1)")
            }
            Violation::WindowIgnored => {
                f.write_str("more DATA than the flow-control window allows (RFC 9113, 6.9.1)")
            }
            Violation::Compression(error) => {
                write!(f, "header block cannot be decoded: {error} (RFC 9113, 4.3)")
            }
            Violation::ManyContinuations { count_max } => write!(
                f,
                "more than {count_max} CONTINUATION frames for one head (RFC 9113, 10.5.1)"
            ),
            Violation::Flood(kind) => write!(f, "too many {kind} frames (RFC 9113, 10.5)"),
            Violation::AnswersUnread { bytes_max } => write!(
                f,
                "it leaves {bytes_max} bytes of requested acknowledgments unread (RFC 9113, 10.5)"
            ),
            Violation::GoAwayRaised { first, second } => write!(
                f,
                "GOAWAY up to stream {second} after one up to stream {first} (RFC 9113, 6.8)"
            ),
            Violation::ClosedBeforeHead => f.write_str("closed before the response started"),
            Violation::Http(error) => error.fmt(f),
            Violation::Malformed(malformed) => malformed.fmt(f),
        }
    }
}

impl std::error::Error for Violation {}
