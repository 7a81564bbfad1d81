//! gRPC over HTTP/2 as a client speaks it (github.com/grpc/grpc, `doc/PROTOCOL-HTTP2.md`), but for
//! HTTP/2 itself and for what is in the messages, which [`crate::protobuf`] knows.
//!
//! - [`request_fields`] and [`Timeout`]: the headers of a call; [`metadata`]: those of its caller.
//! - [`write_message`]: a message with its prefix, compressed on request.
//! - [`Response`]: head, data and trailers in, messages and a [`Status`] out.
//! - [`CallStream`]: the same over a connection of its own, messages to and fro.
//! - [`reflection`]: how a server is asked for its descriptors.

pub mod metadata;
pub mod reflection;

mod message;
mod request;
mod response;
mod status;
mod stream;
#[cfg(test)]
mod tests;
mod violation;

pub use message::{Encoding, MessageReader, PREFIX_BYTES, Packed, write_message};
pub use request::{CONTENT_TYPE, Timeout, request_fields};
pub use response::Response;
pub use status::{Origin, Status};
pub use stream::{CallError, CallStream};
pub use throng_base::grpc::Code;
pub use violation::Violation;

/// What a message may have at most unless a scenario says otherwise, as in grpc-go and grpc-java.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
