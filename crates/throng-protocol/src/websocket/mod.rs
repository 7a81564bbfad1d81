//! WebSocket (RFC 6455) with permessage-deflate (RFC 7692): frames and the opening handshake.
//!
//! - [`FrameReader`] takes bytes as they arrive and returns complete messages; an idle connection
//!   owns no buffer.
//! - [`frame`] writes frames; [`deflate`] compresses and inflates for a shard.
//! - [`agreement`] negotiates compression.
//! - [`handshake`] writes the upgrade request and checks the response. It does not parse HTTP.

pub mod agreement;
pub mod deflate;
mod error;
pub mod frame;
pub mod handshake;
mod reader;
mod refusal;

#[cfg(test)]
mod tests;

pub use agreement::{Deflate, DeflateOffer};
pub use deflate::{Deflater, Inflater, write_message_deflated};
pub use error::WebSocketError;
pub(crate) use error::closed;
pub use frame::{Opcode, write_close, write_frame};
pub use handshake::{Accepted, Key, RequestError, check_upgrade, write_upgrade};
pub use reader::{FrameReader, Limits, Message, Role};
pub use refusal::UpgradeError;
