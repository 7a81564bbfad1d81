//! HTTP/2, client side (RFC 9113, RFC 7541): requests out, responses in, many at a time.
//!
//! - [`Client`] is a connection: [`Client::open`], [`Client::ask`], [`Client::next`]. Heads and
//!   headers are those of [`crate::http1`], so that later code does not depend on the version.
//! - [`write_request`] and related functions write header blocks. A block is stateless: one that
//!   all users share is written once and sent unchanged on every connection. With six headers that
//!   takes a tenth of the time of the dynamic table (40 instead of 480 ns), for 150 more bytes per
//!   request.
//! - [`Lasting`] is a connection with a single exchange: a stream of events or messages.
//! - [`Violation`] is an error of a peer, on a connection or on one of its streams.

mod client;
mod credit;
mod error;
mod frame;
mod hpack;
mod lasting;
mod malformed;
mod section;
mod translate;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use client::Client;
pub use error::Violation;
pub use frame::{ErrorCode, FrameKind};
pub use hpack::{HpackError, write_field, write_name, write_secret, write_value};
pub use lasting::Lasting;
pub use malformed::Malformed;
pub use translate::write_block;

use crate::http1::{Event as Part, Excerpt, RequestKind};

/// Limits of a connection, and what we announce. Reaching a limit is a [`Violation`] of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the headers of one section as defined by the RFC: 32 bytes each besides name and
    /// value. A header block may have as many bytes before it is decoded.
    pub head_bytes_max: usize,
    /// How many 1xx responses may precede the final one.
    pub informational_max: u16,
    /// How many CONTINUATION frames one head may have.
    pub continuations_max: u16,
    /// How many consecutive frames may make no progress: SETTINGS, PING, RST_STREAM, WINDOW_UPDATE,
    /// PRIORITY, empty DATA, unknown ones. Frames with progress, our requests and elapsed time
    /// compensate for them.
    pub control_frames_max: u16,
    /// Bytes of our answers (acknowledgements, resets) that the peer may leave unread.
    pub unread_bytes_max: u32,
    /// Size of the table of response headers, as defined by the RFC.
    pub header_table_bytes: u16,
    /// How much of one body, and of all together, may be in flight to us; both windows are opened
    /// again when half used.
    pub stream_window_bytes: u32,
    pub connection_window_bytes: u32,
}

impl Default for Limits {
    /// The windows are those that Chrome announces.
    fn default() -> Limits {
        Limits {
            head_bytes_max: 64 * 1024,
            informational_max: 1_000,
            continuations_max: 16,
            control_frames_max: 1_000,
            unread_bytes_max: 64 * 1024,
            header_table_bytes: 2048,
            stream_window_bytes: 6 * 1024 * 1024,
            connection_window_bytes: 15 * 1024 * 1024,
        }
    }
}

/// Identifies an exchange on its connection: the ID of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub kind: RequestKind,
    /// Pseudo-headers and headers, written by [`write_request`] and [`write_field`].
    pub block: &'a [u8],
    /// Further headers with names in lower case. They are written with the dynamic table: for long
    /// values that stay the same on this connection and differ on others, such as a token.
    pub indexed: &'a [(&'a [u8], &'a [u8])],
    pub body: Body<'a>,
    /// Maximum size of the response body.
    pub body_bytes_max: u64,
}

/// A body, or a piece of one. Data without a window is kept until there is one: shared data by
/// reference, other data as a copy.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    None,
    Bytes(&'a [u8]),
    Shared(&'a Arc<[u8]>),
    /// Follows by [`Client::send`].
    Open,
}

impl<'a> Body<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            Body::Bytes(bytes) => bytes,
            Body::Shared(bytes) => bytes,
            Body::None | Body::Open => &[],
        }
    }
}

/// Why no request can be sent on a connection. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The peer allows no more concurrent streams. One must end first.
    Streams { max: u32 },
    /// The peer sent GOAWAY: a new connection is needed; open streams continue.
    GoingAway,
    /// All stream IDs are used up: a new connection is needed.
    IdsUsedUp,
    /// After a violation, or the end.
    Closed,
}

/// A stream that is not open, or whose request is complete: nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOpen;

/// An event. A response ends with its part [`Part::End`]; `Reset` or `Failed` may end it earlier.
/// Afterwards its token is invalid.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    Reply {
        token: Token,
        part: Part<'a>,
    },
    /// The peer reset the stream. A request that it certainly has not processed may be resent (RFC
    /// 9113, 8.7).
    Reset {
        token: Token,
        code: ErrorCode,
        unprocessed: bool,
    },
    /// The response is malformed, or the connection ended in it. We have reset the stream.
    Failed {
        token: Token,
        violation: Violation,
    },
    /// No more requests on this connection. `Reset` follows for streams above `last`.
    GoAway {
        last: Token,
        code: ErrorCode,
        debug: Excerpt,
    },
    /// The peer's limit of concurrent streams; `u32::MAX` is no limit. The first of these shows
    /// that the peer speaks HTTP/2.
    Settings {
        streams_max: u32,
        is_first: bool,
    },
    /// The answer to [`Client::ping`].
    Pong {
        data: [u8; 8],
    },
}

/// Writes the pseudo-headers of a request (RFC 9113, 8.3.1). An empty path is written as `/`.
pub fn write_request(out: &mut Vec<u8>, method: &str, scheme: &str, authority: &str, path: &str) {
    write_field(out, ":method", method.as_bytes());
    write_field(out, ":scheme", scheme.as_bytes());
    write_field(out, ":authority", authority.as_bytes());
    let slash = if path.is_empty() || path.starts_with('?') { "/" } else { "" };
    write_field(out, ":path", format!("{slash}{path}").as_bytes());
}
