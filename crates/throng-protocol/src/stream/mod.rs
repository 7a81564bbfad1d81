//! Raw TCP: where one answer ends and the next begins. What is said, nobody here understands.
//!
//! - [`StreamReader`] collects bytes until an answer is complete, as an [`Until`] says.
//! - [`text`] turns what people write into bytes: hexadecimal and escapes.

mod reader;
pub mod text;

#[cfg(test)]
mod tests;

pub use reader::{Answer, Delimiter, StreamError, StreamReader, Until};
pub use text::{EscapeError, HexError, parse_hex, unescape};
