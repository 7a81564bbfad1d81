//! gRPC violations of a server.

use throng_base::Said;

use super::Code;
use crate::http1::{ContentError, Excerpt};

/// A gRPC violation of a server, which fails the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The first byte of a message is neither 0 nor 1.
    Flag(u8),
    TooLarge {
        bytes: u64,
        bytes_max: usize,
    },
    /// The stream ends inside a message.
    CutOff,
    /// A message is compressed, but the head does not declare how.
    Compressed,
    Encoding(Excerpt),
    Content(ContentError),
    /// `grpc-status` is not a number.
    Status(Excerpt),
    /// A call with one reply got none, but succeeded.
    NoReply,
    /// A call with one reply got another.
    SecondReply,
}

impl Violation {
    /// Whether it is not an error, but exceeds a limit.
    pub fn is_too_large(self) -> bool {
        matches!(self, Violation::TooLarge { .. })
    }

    /// The code that gRPC clients assign to it.
    pub fn code(self) -> Code {
        match self {
            Violation::TooLarge { .. } | Violation::Content(ContentError::TooLarge { .. }) => {
                Code::ResourceExhausted
            }
            Violation::Encoding(_) | Violation::NoReply | Violation::SecondReply => {
                Code::Unimplemented
            }
            Violation::Status(_) => Code::Unknown,
            _ => Code::Internal,
        }
    }
}

impl Violation {
    pub fn said(&self) -> Said {
        match self {
            Violation::Flag(flag) => {
                say!("a gRPC message starts with the invalid flag 0x{flag:02x}")
            }
            Violation::TooLarge { bytes, bytes_max } => {
                say!("a gRPC message of {bytes} bytes exceeds the limit of {bytes_max}")
            }
            Violation::CutOff => say!("the response ends in the middle of a gRPC message"),
            Violation::Compressed => {
                say!("a gRPC message is compressed, but `grpc-encoding` is missing")
            }
            Violation::Encoding(name) => say!("unknown grpc-encoding {name}"),
            Violation::Content(error) => say!("a gRPC message is not valid: {error}"),
            Violation::Status(value) => say!("the grpc-status is not valid: {value}"),
            Violation::NoReply => say!("the call succeeded without a reply"),
            Violation::SecondReply => say!("the call received more than one reply"),
        }
    }
}

impl From<ContentError> for Violation {
    fn from(error: ContentError) -> Violation {
        Violation::Content(error)
    }
}
