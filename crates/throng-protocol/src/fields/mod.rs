//! Fields of messages in any format: their paths, the values given for them, and the values they
//! can hold. Shared by [`crate::framed`] and [`crate::protobuf`].

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
    /// Unknown: lists, structures, and JSON.
    Any,
}

/// Why a path does not lead to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMistake {
    pub message: Said,
    /// The invalid part.
    pub part: String,
    pub help: Said,
}

/// What a scenario gives for a message: leaves are numbered in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    Leaf(u16),
    Fields(Vec<(String, Given)>),
    Items(Vec<Given>),
    /// A constant: `prepare` checks it and writes it once.
    Literal(Value),
}

/// Why the values for a message are rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenMistake {
    /// The path of the wrong or missing field, starting at the message.
    pub path: Vec<String>,
    pub message: Said,
    pub help: Said,
}

/// Why a message was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError<E> {
    /// The value of this field does not fit: the path, and one sentence.
    Value { field: String, reason: Said },
    /// The source of the values failed.
    Leaf(E),
}
