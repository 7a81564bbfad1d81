//! Field paths, resolved once: to nodes of the table, and further into JSON and protobuf.

use throng_base::diagnostic::did_you_mean;

use throng_base::Said;

use super::table::{NONE, Node, Repeats, Shape, Table};
use super::wanted::Inner;
use super::{FieldPath, MessageId, PathMistake, Range};
use crate::fields::{Part, Parts, name_is_missing};

/// One step of a resolved path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Node(u32),
    Item(u32),
    /// The item of a list with this name.
    Named(Box<str>),
}

/// Finds the field that `path` names in the packets of a message.
pub(super) fn resolve(
    table: &Table,
    message: MessageId,
    path: &str,
) -> Result<FieldPath, PathMistake> {
    let mut parts = Parts::new(path)?;
    if path.is_empty() {
        return Err(name_is_missing(path));
    }
    let mut resolver =
        Resolver { table, message, list: None, node: NONE, is_item: false, steps: Vec::new() };
    let (mut inner, mut proto) = (Vec::new(), None);
    while let Some(part) = parts.next()? {
        resolver.step(part)?;
        if !resolver.is_within_value() {
            continue;
        }
        match table.node(resolver.node).shape {
            Shape::Json(_) => {
                while let Some(part) = parts.next()? {
                    inner.push(json_step(part));
                }
            }
            Shape::Proto(message, _) if !parts.rest().is_empty() => {
                proto = Some(Box::new(table.schema.field(message, parts.rest())?));
                break;
            }
            _ => {}
        }
    }
    let record = match resolver.steps.iter().any(|step| !matches!(step, Step::Node(_))) {
        true => NONE,
        false => table.node(resolver.node).record,
    };
    Ok(FieldPath {
        message,
        written: path.into(),
        node: resolver.node,
        record,
        steps: resolver.steps.into(),
        inner: inner.into(),
        proto,
    })
}

/// The values that the field at a path can have.
pub(super) fn range(table: &Table, path: &FieldPath) -> Range {
    if let Some(path) = &path.proto {
        return table.schema.range(path);
    }
    let node = table.node(path.node);
    let is_list = node.repeat != Repeats::Once && !matches!(path.steps.last(), Some(Step::Item(_)));
    match &node.shape {
        _ if is_list => Range::Any,
        Shape::Float32 | Shape::Float64 => Range::Float,
        Shape::Bool => Range::Bool,
        Shape::Text(_) => Range::Text,
        Shape::Bytes(_) => Range::Bytes,
        _ if node.is_whole_number() => {
            let (low, high) = match &node.constant {
                Some(constant) => (node.whole(constant.raw), node.whole(constant.raw)),
                None => node.range(),
            };
            let names = node.labels.iter().map(|(name, value)| (name.to_string(), *value));
            Range::Whole { low, high, names: names.collect() }
        }
        _ => Range::Any,
    }
}

struct Resolver<'a> {
    table: &'a Table,
    message: MessageId,
    /// The list in which names are looked up; `None`: the message's and the packet's.
    list: Option<u32>,
    node: u32,
    /// One item of a repeated field was selected.
    is_item: bool,
    steps: Vec<Step>,
}

impl<'a> Resolver<'a> {
    fn step(&mut self, part: Part<'_>) -> Result<(), PathMistake> {
        match part {
            Part::Index(index) => self.index(index),
            Part::Name(name) => self.name(name),
        }
    }

    fn current(&self) -> Option<&'a Node> {
        (self.node != NONE).then(|| self.table.node(self.node))
    }

    fn index(&mut self, index: u32) -> Result<(), PathMistake> {
        match self.current() {
            Some(node) if node.repeat != Repeats::Once && !self.is_item => {
                self.is_item = true;
                self.steps.push(Step::Item(index));
                Ok(())
            }
            found => Err(PathMistake {
                message: match found {
                    Some(node) => say!("`{}` is not a list", node.name),
                    None => say!("a path must start with a field name"),
                },
                part: format!("[{index}]"),
                help: say!("an index in brackets selects an item of a field with `repeat`"),
            }),
        }
    }

    fn name(&mut self, name: &str) -> Result<(), PathMistake> {
        if let Some(node) = self.current()
            && node.repeat != Repeats::Once
            && !self.is_item
        {
            if let Some(by) = node.by {
                self.steps.extend([Step::Named(name.into()), Step::Node(by.value)]);
                self.node = by.value;
                self.list = match self.table.node(by.value).shape {
                    Shape::List(list) => Some(list),
                    _ => None,
                };
                return Ok(());
            }
            return Err(PathMistake {
                message: say!("`{}` is a list, and `{name}` is a field of its items", node.name),
                part: name.to_owned(),
                help: say!("select an item: `{}[0].{name}`", node.name),
            });
        }
        let table = self.table;
        let found = match (self.list, self.current()) {
            (Some(list), _) => table.find(list, name),
            (None, None) => {
                let body = table.messages[usize::from(self.message.0)].list;
                let found = table.find(body, name);
                if let (Some(_), Some(node)) = (found, table.body) {
                    self.steps.push(Step::Node(node));
                }
                found.or_else(|| table.find(0, name))
            }
            (None, Some(node)) => {
                let word = table.word(self.node);
                return Err(PathMistake {
                    message: say!("`{}` has the type {word}, so it has no fields", node.name),
                    part: name.to_owned(),
                    help: say!("only structures, JSON and protobuf contain fields"),
                });
            }
        };
        let Some(found) = found else { return Err(self.unknown(name)) };
        self.node = found;
        self.is_item = false;
        self.steps.push(Step::Node(found));
        self.list = match table.node(found).shape {
            Shape::List(list) => Some(list),
            Shape::Body => Some(table.messages[usize::from(self.message.0)].list),
            _ => None,
        };
        Ok(())
    }

    fn unknown(&self, name: &str) -> PathMistake {
        let table = self.table;
        let mut names: Vec<&str> = Vec::new();
        match self.list {
            Some(list) => names.extend(table.members(list).map(|(_, node)| &*node.name)),
            None => {
                let body = table.messages[usize::from(self.message.0)].list;
                names.extend(table.members(body).map(|(_, node)| &*node.name));
                names.extend(table.members(0).map(|(_, node)| &*node.name));
            }
        }
        PathMistake {
            message: say!("there is no field `{name}`"),
            part: name.to_owned(),
            help: suggestion(name, &names),
        }
    }

    /// Whether the rest is a path into a JSON or protobuf value.
    fn is_within_value(&self) -> bool {
        self.current().is_some_and(|node| node.repeat == Repeats::Once || self.is_item)
    }
}

/// Suggests a similar name, or lists all names.
pub(super) fn suggestion(name: &str, names: &[&str]) -> Said {
    match did_you_mean(name, names.iter().copied()) {
        Some(meant) => say!("did you mean `{meant}`?"),
        None if names.is_empty() => say!("there are no fields"),
        None => say!("available: `{}`", names.join("`, `")),
    }
}

pub(super) fn json_step(part: Part<'_>) -> Inner {
    match part {
        Part::Name(name) => Inner::Key(name.into()),
        Part::Index(index) => Inner::Index(index),
    }
}
