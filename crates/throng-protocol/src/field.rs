//! What a message says of itself beside its content.

/// A value of that, with its type where the protocol has types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    Null,
    Bool(bool),
    Number(i64),
    Float(f64),
    Bytes(&'a [u8]),
}
