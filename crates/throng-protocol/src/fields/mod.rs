//! Fields of messages, whatever they are written as: their paths, what is given for them, and what
//! they can hold. What [`crate::framed`] and [`crate::protobuf`] share.

pub(crate) mod coerce;
pub(crate) mod number;
mod path;

use throng_base::Said;
use throng_expression::Value;

pub(crate) use path::{Part, Parts, name_is_missing};

/// The values that a field can have.
#[derive(Clone, Debug, PartialEq)]
pub enum Range {
    /// Whole numbers, some of which may have names.
    Whole {
        low: i128,
        high: i128,
        names: Vec<(String, i64)>,
    },
    /// The names of an enum with their numbers; a number without a name stays a number.
    Named(Vec<(String, i64)>),
    Float,
    Bool,
    Text,
    Bytes,
    /// Nobody knows: lists, structures, and JSON.
    Any,
}

/// Why a path leads to no field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMistake {
    pub message: Said,
    /// The part that is wrong.
    pub part: String,
    pub help: Said,
}

/// What a scenario gives for a message: leaves are numbered in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    Leaf(u16),
    Fields(Vec<(String, Given)>),
    Items(Vec<Given>),
    /// A value that is known beforehand: it is checked by `prepare`, and written only once.
    Literal(Value),
}

/// Why what is given for a message is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenMistake {
    /// The path of the field that is wrong or missing, from the message on.
    pub path: Vec<String>,
    pub message: Said,
    pub help: Said,
}

/// Why a message was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError<E> {
    /// The value of this field does not fit: the path, and one sentence.
    Value { field: String, reason: Said },
    /// What gives the values failed.
    Leaf(E),
}
