//! HPACK (RFC 7541): header compression of HTTP/2.
//!
//! - [`write_field`] and related functions write stateless fields: their output can be stored, and
//!   copied into any header block of any connection.
//! - [`Encoder`] writes fields with the dynamic table of one connection.
//! - [`Decoder`] reads header blocks as lines of text.

mod decode;
mod encode;
mod huffman;
mod integer;
mod table;

#[cfg(test)]
mod tests;

use std::fmt;

pub(super) use decode::{Decoder, Refusal};
pub(super) use encode::Encoder;
pub use encode::{write_field, write_name, write_secret, write_value};

/// An error in a header block. The tables of both ends differ from here on, so that nothing more
/// can be read on the connection (RFC 9113, 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// It ends in the middle of a field.
    Cut,
    NumberTooLarge,
    NoSuchIndex(usize),
    NotHuffman,
    /// The table would exceed the size that we allow.
    TableTooLarge {
        size: usize,
        size_max: u16,
    },
    /// A table size update after a field.
    SizeBehindField,
}

impl fmt::Display for HpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HpackError::Cut => write!(f, "it ends in the middle of a field"),
            HpackError::NumberTooLarge => write!(f, "a number is too large (RFC 7541, 5.1)"),
            HpackError::NoSuchIndex(index) => {
                write!(f, "there is no field with the index {index} (RFC 7541, 2.3.3)")
            }
            HpackError::NotHuffman => write!(f, "invalid Huffman code (RFC 7541, 5.2)"),
            HpackError::TableTooLarge { size, size_max } => {
                write!(f, "table size {size} is over the limit of {size_max} (RFC 7541, 6.3)")
            }
            HpackError::SizeBehindField => {
                write!(f, "a table size update follows a field (RFC 7541, 4.2)")
            }
        }
    }
}
