//! HTTP/1.1, client side (RFC 9110, 9112): requests out, responses in.
//!
//! - [`ResponseReader`] reads responses; [`Head`] and [`Headers`] are its hot path.
//! - [`request`]: writes and validates requests.
//! - [`digest`]: digest authentication.
//! - [`cookies`]: a user's jar. [`content`]: gzip, deflate and br bodies.

pub mod content;
mod cookie_date;
pub mod cookies;
pub mod digest;
mod error;
mod excerpt;
mod head;
mod headers;
pub mod request;
mod response;
mod retry_after;

pub use content::{ContentDecoder, ContentError};
pub use cookies::{CookieLimits, Jar, Refusal, Stored};
pub use error::HttpError;
pub use excerpt::Excerpt;
pub(crate) use head::ContentLength;
pub use head::{BodyFraming, Head, RequestKind};
pub use headers::Headers;
pub(crate) use headers::IS_TOKEN;
pub use request::{
    InvalidByte, basic_authorization, validate_header_value, validate_target, write_connect,
    write_content_length, write_head_end, write_header, write_request_line,
};
pub use response::{Event, ResponseReader};
pub use retry_after::retry_after;

/// Limits of a response. Reaching one is an [`HttpError`] of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Status line and headers with their line ends; as much again for trailers.
    pub head_bytes_max: usize,
    /// The body without its chunk framing and before content decoding; `u64::MAX` is no limit.
    pub body_bytes_max: u64,
    /// A line that starts a chunk, with its extensions and line end.
    pub chunk_line_bytes_max: usize,
    /// How many 1xx responses may come before the final one.
    pub informational_max: u16,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head_bytes_max: 64 * 1024,
            body_bytes_max: u64::MAX,
            chunk_line_bytes_max: 4 * 1024,
            informational_max: 1_000,
        }
    }
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
pub(crate) mod tests;
