//! Errors in one response, one variant per cause, with the section of the RFC.

use std::fmt;

use super::frame::ErrorCode;
use crate::http1::Excerpt;

/// An error in one response (RFC 9113, 8.1.1). The connection and its other streams continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    UpperCaseName(Excerpt),
    BadName(Excerpt),
    /// Contains the name.
    BadValue(Excerpt),
    ConnectionHeader(Excerpt),
    UnknownPseudo(Excerpt),
    PseudoBehindField(Excerpt),
    PseudoInTrailers(Excerpt),
    TwoStatuses,
    NoStatus,
    BadStatus(Excerpt),
    /// 101 has no meaning in HTTP/2.
    SwitchingProtocols,
    /// A 1xx response that ends its stream.
    InformationalEnd,
    TrailersWithoutEnd,
    DataBeforeHead,
    DataWithoutBody,
    LengthMismatch {
        expected: u64,
        received: u64,
    },
    /// The peer raised the window of a stream above 2^31-1.
    WindowOverflow,
    /// A WINDOW_UPDATE of zero for a stream.
    ZeroIncrement,
}

impl Malformed {
    pub(super) fn error_code(&self) -> ErrorCode {
        match self {
            Malformed::WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Malformed::UpperCaseName(name) => {
                write!(f, "header name {name} has upper-case letters (RFC 9113, 8.2.1)")
            }
            Malformed::BadName(name) => write!(f, "bad header name {name} (RFC 9113, 8.2.1)"),
            Malformed::BadValue(name) => {
                write!(
                    f,
                    "the value of header {name} has bytes that are not allowed (RFC 9113, 8.2.1)"
                )
            }
            Malformed::ConnectionHeader(name) => {
                write!(f, "header {name} is not allowed in HTTP/2 (RFC 9113, 8.2.2)")
            }
            Malformed::UnknownPseudo(name) => {
                write!(f, "{name} is not a pseudo-header of responses (RFC 9113, 8.3.2)")
            }
            Malformed::PseudoBehindField(name) => {
                write!(f, "pseudo-header {name} follows another header (RFC 9113, 8.3)")
            }
            Malformed::PseudoInTrailers(name) => {
                write!(f, "pseudo-header {name} in trailers (RFC 9113, 8.1)")
            }
            Malformed::TwoStatuses => f.write_str("`:status` occurs twice (RFC 9113, 8.3)"),
            Malformed::NoStatus => f.write_str("`:status` is missing (RFC 9113, 8.3.2)"),
            Malformed::BadStatus(value) => write!(f, "bad `:status` {value} (RFC 9113, 8.3.2)"),
            Malformed::SwitchingProtocols => {
                f.write_str("status 101 is not allowed in HTTP/2 (RFC 9113, 8.6)")
            }
            Malformed::InformationalEnd => {
                f.write_str("an informational (1xx) response ends the stream (RFC 9113, 8.1)")
            }
            Malformed::TrailersWithoutEnd => {
                f.write_str("a second head that does not end the stream (RFC 9113, 8.1)")
            }
            Malformed::DataBeforeHead => {
                f.write_str("DATA before the response head (RFC 9113, 8.1)")
            }
            Malformed::DataWithoutBody => {
                f.write_str("DATA for a response without a body (RFC 9113, 8.1.1)")
            }
            Malformed::LengthMismatch { expected, received } => write!(
                f,
                "Content-Length is {expected}, but the body has {received} bytes \
                 (RFC 9113, 8.1.1)"
            ),
            Malformed::WindowOverflow => {
                f.write_str("the window of a stream is above 2^31-1 (RFC 9113, 6.9.1)")
            }
            Malformed::ZeroIncrement => {
                f.write_str("WINDOW_UPDATE of a stream by 0 (RFC 9113, 6.9)")
            }
        }
    }
}
