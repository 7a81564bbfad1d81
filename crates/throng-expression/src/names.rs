//! Resolves the names of an expression, and builds the tree of a dotted path.

use throng_base::diagnostic::did_you_mean;

use throng_base::Said;

use crate::error::CompileError;
use crate::functions;
use crate::node::Node;
use crate::scope::Answer;
use crate::value::Value;

/// Resolves the names of a scenario. Implemented by the compiler of scenarios.
pub trait Names {
    /// The meaning of a dotted path of names; `path` is for example `["vars", "room"]`, `["data",
    /// "accounts", "ssoid"]`, `["saved", "token", "id"]`, `["user", "id"]` or `["item"]`. Returns
    /// how many parts of the path were used; the others select fields of the value.
    fn resolve(&mut self, path: &[&str]) -> Result<(Name, usize), UnknownName>;
}

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    Constant(Value),
    UserId,
    Iteration,
    Slot(u16),
    /// A value that all users share, and that is known when the load starts.
    Setup(u16),
    Field {
        source: u16,
        column: u16,
    },
    Row(u16),
    Answer(Answer),
}

/// Why a path has no meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownName {
    pub message: Said,
    /// Shown beside the marked name: `did you mean …`.
    pub label: Option<Said>,
    pub help: Said,
}

/// A path as written.
pub(crate) struct Path<'a> {
    pub parts: &'a [&'a str],
    /// The position of each part in the text.
    pub spans: &'a [(usize, usize)],
}

impl Path<'_> {
    pub(crate) fn start(&self) -> usize {
        self.spans.first().map_or(0, |span| span.0)
    }

    pub(crate) fn end(&self) -> usize {
        self.spans.last().map_or(0, |span| span.1)
    }

    /// The tree of the path, and its doubts: a constant without the field.
    pub(crate) fn node(
        &self,
        names: &mut dyn Names,
        doubts: &mut Vec<CompileError>,
    ) -> Result<Node, Box<CompileError>> {
        let (name, used) = names.resolve(self.parts).map_err(|unknown| self.unknown(unknown))?;
        let used = used.clamp(1, self.parts.len());
        let mut node = match name {
            Name::Constant(value) => Node::Constant(value),
            Name::UserId => Node::UserId,
            Name::Iteration => Node::Iteration,
            Name::Slot(slot) => {
                Node::Slot { slot, name: self.parts[..used].join(".").into_boxed_str() }
            }
            Name::Setup(value) => {
                Node::Setup { value, name: self.parts[..used].join(".").into_boxed_str() }
            }
            Name::Field { source, column } => Node::Field { source, column },
            Name::Row(source) => Node::Row(source),
            Name::Answer(part) => Node::Answer(part),
        };
        for index in used..self.parts.len() {
            let field = self.parts[index];
            node = match node {
                Node::Constant(value) => match value.get(field) {
                    Some(found) => Node::Constant(found.clone()),
                    None => {
                        doubts.push(*self.no_field(&value, index));
                        let operand = Box::new(Node::Constant(value));
                        Node::Select { operand, field: field.into() }
                    }
                },
                other => Node::Select { operand: Box::new(other), field: field.into() },
            };
        }
        Ok(node)
    }

    fn unknown(&self, unknown: UnknownName) -> Box<CompileError> {
        let error = CompileError::new("unknown-name", self.start(), self.end());
        let whole = self.parts.join(".");
        if let Some(function) = functions::find(&whole) {
            let signature = function.signature();
            return error
                .message(say!("`{whole}` is a function"))
                .label(say!("write `{signature}`"))
                .help(function.doc.clone());
        }
        error.message(unknown.message).label(unknown.label.unwrap_or_default()).help(unknown.help)
    }

    fn no_field(&self, value: &Value, index: usize) -> Box<CompileError> {
        let field = self.parts[index];
        let (start, end) = self.spans[index];
        let owner = self.parts[..index].join(".");
        let error = CompileError::new("unknown-name", start, end);
        let Value::Map(entries) = value else {
            let found = value.type_name();
            let error = error.message(say!("`{owner}` is {found} and has no field `{field}`"));
            return match functions::find(field) {
                Some(_) => error.label(say!("did you mean `{field}()`?")),
                None => error,
            };
        };
        let names: Vec<&str> = entries.iter().map(|(name, _)| &**name).collect();
        let near = did_you_mean(field, names.iter().copied());
        error
            .message(say!("`{owner}` has no field `{field}`"))
            .label(near.map_or_else(Said::default, |near| say!("did you mean `{near}`?")))
            .help(say!("available: {}", quoted(&names)))
    }
}

/// Most names that a message lists.
const SHOWN_NAMES_MAX: usize = 12;

fn quoted(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(SHOWN_NAMES_MAX).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > SHOWN_NAMES_MAX { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
