//! Raw TCP: where one reply ends and the next starts. The content is not interpreted.
//!
//! - [`StreamReader`] collects bytes until a reply is complete, as defined by an [`Until`].
//! - [`text`] converts notations to bytes: hexadecimal and escapes.

mod reader;
pub mod text;

#[cfg(test)]
mod tests;

pub use reader::{AwaitedReply, Delimiter, StreamError, StreamReader, Until};
pub use text::{EscapeError, HexError, parse_hex, unescape};
