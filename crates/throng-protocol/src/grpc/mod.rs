//! gRPC over HTTP/2, client side (github.com/grpc/grpc, `doc/PROTOCOL-HTTP2.md`), without HTTP/2
//! itself and the content of messages, which is in [`crate::protobuf`].
//!
//! - [`request_fields`] and [`Timeout`]: the headers of a call; [`metadata`]: those of its caller.
//! - [`write_message`]: a message with its prefix, compressed on request.
//! - [`Response`]: head, data and trailers in, messages and a [`Status`] out.
//! - [`CallStream`]: a call with a connection of its own, with messages in both directions.
//! - [`reflection`]: asks a server for its descriptors.

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

/// Maximum message size unless a scenario sets another, as in grpc-go and grpc-java.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
