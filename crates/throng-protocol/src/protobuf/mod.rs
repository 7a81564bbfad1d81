//! Messages of protobuf by compiled descriptors, as calls send them and packets carry them.
//!
//! - [`Schema`]: tables of messages and methods, made once of descriptors.
//! - [`Schema::prepare`] checks what a scenario gives for a message, by the names and types of
//!   proto3 JSON; [`Schema::encode`] writes it again and again.
//! - [`Schema::check`] looks whether bytes are a message; [`Schema::value`] takes out a field,
//!   found once by [`Schema::field`], without a tree of the rest.

mod decode;
mod editions;
mod encode;
mod link;
mod path;
mod prepare;
mod schema;
#[cfg(test)]
mod tests;
mod well_known;
pub(crate) mod wire;
mod write;

use std::sync::Arc;

use throng_base::Said;
use throng_expression::Value;

pub use crate::fields::{EncodeError, Given, GivenMistake, PathMistake, Range};
pub use editions::{descriptor, descriptor_set};
pub use link::{NotLinked, link};
pub use schema::{CallKind, MessageType, Method, MethodId, Schema, Unknown};
pub use wire::Wrong;

/// Messages within each other.
pub const DEPTH_MAX: usize = 64;

/// The most values that one look at a message makes.
pub const VALUES_MAX: usize = 100_000;

/// A message as a scenario sends it, ready to be written again and again. What is the same for all
/// users lies in it as it is written.
#[derive(Clone, Debug)]
pub struct Template {
    message: MessageType,
    ops: Arc<[encode::Op]>,
    bytes: Arc<[u8]>,
    /// The fields of the leaves, for what is said of their values.
    paths: Arc<[Box<str>]>,
}

impl Template {
    pub fn message(&self) -> MessageType {
        self.message
    }

    /// The bytes of a message that is the same for all users.
    pub fn constant(&self) -> Option<&[u8]> {
        match &self.ops[..] {
            [] | [encode::Op::Bytes { .. }] => Some(&self.bytes),
            _ => None,
        }
    }
}

/// A field of one message type, found by its path: `code`, `items[2].price`, `labels.colour`,
/// `labels["a.b"]`. The empty path is the whole message.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldPath {
    pub message: MessageType,
    pub written: Box<str>,
    steps: Box<[path::Step]>,
}

/// Why a value is not written: the names down to the field, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) path: Vec<String>,
    pub(crate) reason: Said,
    help: Said,
}

impl Refused {
    fn new(reason: Said) -> Refused {
        let help =
            say!("write the value as in proto3 JSON: numbers, text, `true`, bytes as base64");
        Refused { path: Vec::new(), reason, help }
    }

    fn within(mut self, name: &str) -> Refused {
        self.path.insert(0, name.to_owned());
        self
    }

    fn at(mut self, index: usize) -> Refused {
        self.path.insert(0, index.to_string());
        self
    }
}

impl Schema {
    /// Checks names, types and shapes of what is given for a message; a leaf is checked when it has
    /// its value.
    pub fn prepare(&self, message: MessageType, given: &Given) -> Result<Template, GivenMistake> {
        prepare::prepare(self, message, given)
    }

    /// Appends a message. `leaf` gives the value of a leaf, or appends it as text to the buffer and
    /// gives None. After an error nothing is appended.
    #[allow(clippy::type_complexity)]
    pub fn encode<E>(
        &self,
        template: &Template,
        leaf: &mut dyn FnMut(u16, &mut Vec<u8>) -> Result<Option<Value>, E>,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError<E>> {
        let begin = out.len();
        let result = encode::encode(self, template, leaf, out);
        if result.is_err() {
            out.truncate(begin);
        }
        result
    }

    /// Appends a message whose value is known only now.
    pub(crate) fn write(
        &self,
        message: MessageType,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        write::message(self, message.0, value, out, DEPTH_MAX)
    }

    /// Whether `bytes` are the message, with all that is in it. Allocates nothing.
    pub fn check(&self, message: MessageType, bytes: &[u8]) -> Result<(), Wrong> {
        decode::check(self, message.0, bytes, DEPTH_MAX)
    }

    pub fn field(&self, message: MessageType, path: &str) -> Result<FieldPath, PathMistake> {
        path::resolve(self, message, path)
    }

    /// The values that a field may have, besides null where it is missing.
    pub fn range(&self, path: &FieldPath) -> Range {
        path::range(self, path)
    }

    /// The value of a field of a message that was checked: its default where it is missing and has
    /// one, null where it has none; None where there is no such item or key. An error where it has
    /// more than [`VALUES_MAX`] values.
    pub fn value(&self, bytes: &[u8], path: &FieldPath) -> Result<Option<Value>, Wrong> {
        decode::find(self, path.message.0, bytes, &path.steps)
    }

    /// The whole message that was checked: a map of all its fields, by their names in the file.
    pub fn message_value(&self, message: MessageType, bytes: &[u8]) -> Result<Value, Wrong> {
        decode::whole(self, message.0, bytes)
    }
}
