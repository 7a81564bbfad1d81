//! Protobuf messages by compiled descriptors, for calls and packets.
//!
//! - [`Schema`]: tables of messages and methods, created once from descriptors.
//! - [`Schema::prepare`] checks what a scenario gives for a message, by the names and types of
//!   proto3 JSON; [`Schema::encode`] writes it repeatedly.
//! - [`Schema::check`] checks that bytes are a message; [`Schema::value`] returns a field, found
//!   once by [`Schema::field`], without a tree of the rest.

mod decode;
mod editions;
mod encode;
mod leaves;
mod link;
mod path;
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

/// Most nested messages.
pub const DEPTH_MAX: usize = 64;

/// Most values that one read of a message creates.
pub const VALUES_MAX: usize = 100_000;

/// A message of a scenario, ready to be written repeatedly. Parts that all users share are encoded
/// in it.
#[derive(Clone, Debug)]
pub struct Template {
    message: MessageType,
    ops: Arc<[leaves::Op]>,
    bytes: Arc<[u8]>,
    /// The fields of the leaves, for error messages.
    paths: Arc<[Box<str>]>,
}

impl Template {
    pub fn message(&self) -> MessageType {
        self.message
    }

    /// The bytes of a message that all users share.
    pub fn constant(&self) -> Option<&[u8]> {
        match &self.ops[..] {
            [] | [leaves::Op::Bytes { .. }] => Some(&self.bytes),
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

/// Why a value is not written: the path to the field, and a sentence.
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
}

impl Schema {
    /// Checks names, types and shapes of what is given for a message; a leaf is checked when it has
    /// its value.
    pub fn prepare(&self, message: MessageType, given: &Given) -> Result<Template, GivenMistake> {
        let (mut bytes, mut leaves) = (Vec::new(), leaves::Leaves::default());
        let mut writer = write::Writer { schema: self, out: &mut bytes, leaves: Some(&mut leaves) };
        writer.message(message.0, write::Input::of(given), DEPTH_MAX).map_err(
            |Refused { path, reason, help }| GivenMistake { path, message: reason, help },
        )?;
        leaves.flush(bytes.len());
        let (ops, paths) = (leaves.ops.into(), leaves.paths.into());
        Ok(Template { message, ops, bytes: bytes.into(), paths })
    }

    /// Appends a message. `leaf` returns the value of a leaf, or appends it as text to the buffer
    /// and returns `None`. After an error nothing is appended.
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

    /// Appends a message whose value was not known in advance.
    pub(crate) fn write(
        &self,
        message: MessageType,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let mut writer = write::Writer { schema: self, out, leaves: None };
        writer.message(message.0, write::Input::Value(value), DEPTH_MAX)
    }

    /// Checks that `bytes` are the message, with all nested ones. Allocates nothing.
    pub fn check(&self, message: MessageType, bytes: &[u8]) -> Result<(), Wrong> {
        decode::check(self, message.0, bytes, DEPTH_MAX)
    }

    pub fn field(&self, message: MessageType, path: &str) -> Result<FieldPath, PathMistake> {
        path::resolve(self, message, path)
    }

    /// The values that a field may have, besides null for a missing one.
    pub fn range(&self, path: &FieldPath) -> Range {
        path::range(self, path)
    }

    /// The value of a field of a checked message: for a missing field its default, or null if it
    /// has none; `None` if there is no such item or key. Fails if it has more than [`VALUES_MAX`]
    /// values.
    pub fn value(&self, bytes: &[u8], path: &FieldPath) -> Result<Option<Value>, Wrong> {
        decode::find(self, path.message.0, bytes, &path.steps)
    }

    /// The checked message: a map of all its fields, by their names in the file.
    pub fn message_value(&self, message: MessageType, bytes: &[u8]) -> Result<Value, Wrong> {
        decode::whole(self, message.0, bytes)
    }
}
