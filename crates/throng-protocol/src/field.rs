//! Named fields of a message besides its content.

/// The value of a field, with its type if the protocol has types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    Null,
    Bool(bool),
    Number(i64),
    Float(f64),
    Bytes(&'a [u8]),
}
