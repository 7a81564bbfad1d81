//! Violations of a peer on a WebSocket. All are the fault of the peer, except for the two limits,
//! which are ours.

use std::fmt;

use throng_base::Said;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebSocketError {
    /// A reserved bit is set that no negotiated extension defines, or on a frame that must not have
    /// it. Contains the three bits as a number, RSV1 being 4.
    ReservedBits(u8),
    ReservedOpcode(u8),
    ControlFragmented,
    ControlTooLong(u64),
    /// A continuation frame without a message.
    ContinuationWithoutStart,
    /// A new message inside an unfinished one.
    MessageInsideMessage,
    /// A server masked a frame.
    Masked,
    /// A client did not mask a frame.
    NotMasked,
    /// A length is encoded in more bytes than necessary.
    LengthNotMinimal(u64),
    /// A 64-bit length whose highest bit is set.
    LengthTooLarge,
    FrameTooLarge {
        size: u64,
        limit: u64,
    },
    /// `size` is what is known so far; the message may be larger.
    MessageTooLarge {
        size: u64,
        limit: u64,
    },
    TextNotUtf8,
    CloseReasonNotUtf8,
    /// A close frame with one byte of payload, which is not a code.
    CloseCodeCut,
    CloseCodeForbidden(u16),
    /// A message marked as compressed cannot be inflated.
    CompressionBroken,
}

impl WebSocketError {
    /// The code for our close frame (RFC 6455, 7.4.1).
    pub fn close_code(&self) -> u16 {
        match self {
            WebSocketError::TextNotUtf8
            | WebSocketError::CloseReasonNotUtf8
            | WebSocketError::CompressionBroken => 1007,
            WebSocketError::FrameTooLarge { .. } | WebSocketError::MessageTooLarge { .. } => 1009,
            _ => 1002,
        }
    }
}

impl fmt::Display for WebSocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebSocketError::ReservedBits(bits) => {
                write!(f, "a frame has reserved bits set that were not negotiated ({bits:03b})")
            }
            WebSocketError::ReservedOpcode(opcode) => {
                write!(f, "a frame has the reserved opcode {opcode:#x}")
            }
            WebSocketError::ControlFragmented => f.write_str("a control frame is fragmented"),
            WebSocketError::ControlTooLong(size) => {
                write!(f, "a control frame is longer than 125 bytes (length field {size})")
            }
            WebSocketError::ContinuationWithoutStart => {
                f.write_str("a continuation frame without a message before it")
            }
            WebSocketError::MessageInsideMessage => {
                f.write_str("a new message started before the previous one was complete")
            }
            WebSocketError::Masked => f.write_str("a frame of the server is masked"),
            WebSocketError::NotMasked => f.write_str("a frame of the client is not masked"),
            WebSocketError::LengthNotMinimal(size) => {
                write!(f, "the frame length {size} is not encoded in the shortest form")
            }
            WebSocketError::LengthTooLarge => {
                f.write_str("the highest bit of a 64-bit frame length is set")
            }
            WebSocketError::FrameTooLarge { size, limit } => {
                write!(f, "a frame has {size} bytes, the limit is {limit}")
            }
            WebSocketError::MessageTooLarge { size, limit } => {
                write!(f, "a message has at least {size} bytes, the limit is {limit}")
            }
            WebSocketError::TextNotUtf8 => f.write_str("a text message is not valid UTF-8"),
            WebSocketError::CloseReasonNotUtf8 => {
                f.write_str("the reason in a close frame is not valid UTF-8")
            }
            WebSocketError::CloseCodeCut => {
                f.write_str("a close frame has one byte of payload, which is not a close code")
            }
            WebSocketError::CloseCodeForbidden(code) => {
                write!(f, "a close frame has the code {code}, which must not be sent")
            }
            WebSocketError::CompressionBroken => {
                f.write_str("a compressed message cannot be decompressed")
            }
        }
    }
}

impl std::error::Error for WebSocketError {}

/// Describes how the target closed a WebSocket.
pub(crate) fn closed(code: Option<u16>, reason: &str) -> Said {
    match code {
        Some(code) if reason.is_empty() => {
            say!("the target closed the WebSocket with code {code}")
        }
        Some(code) => say!("the target closed the WebSocket with code {code}: {reason}"),
        None => say!("the target closed the WebSocket without a code"),
    }
}
