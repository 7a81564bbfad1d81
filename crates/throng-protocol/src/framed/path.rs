//! Paths of fields, resolved once: to nodes of the table, and on into JSON and protobuf.

use throng_base::diagnostic::did_you_mean;

use super::declaration::ProtoType;
use super::table::{NONE, Node, Proto, Repeats, Shape, Table};
use super::{FieldPath, MessageId, PathMistake, Range};

/// Characters of a path.
const PATH_CHARS_MAX: usize = 1024;

/// One step of a resolved path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Node(u32),
    Item(u32),
}

/// One step inside JSON or protobuf.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Inner {
    Key(Box<str>),
    Index(u32),
    /// The index of a field of the message.
    Proto(u32),
}

/// A part of a written path.
#[derive(Debug, PartialEq)]
enum Part<'a> {
    Name(&'a str),
    Index(u32),
}

/// Finds the field that `path` names in the packets of a message.
pub(super) fn resolve(
    table: &Table,
    message: MessageId,
    path: &str,
) -> Result<FieldPath, PathMistake> {
    let parts = parts(path)?;
    let mut resolver =
        Resolver { table, message, list: None, node: NONE, is_item: false, steps: Vec::new() };
    let mut inner = Vec::new();
    let mut left = parts.iter();
    while let Some(part) = left.next() {
        resolver.step(part)?;
        if !resolver.is_within_value() {
            continue;
        }
        let node = table.node(resolver.node);
        inner = match node.shape {
            Shape::Json(_) => left.by_ref().map(json_step).collect(),
            Shape::Proto(proto, _) => proto_steps(&table.protos, proto, left.as_slice())?,
            _ => continue,
        };
        break;
    }
    let record = match resolver.steps.iter().any(|step| matches!(step, Step::Item(_))) {
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
    })
}

/// What values the field has that a path leads to.
pub(super) fn range(table: &Table, path: &FieldPath) -> Range {
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
    /// The list that names are looked up in; None: the message's and the packet's.
    list: Option<u32>,
    node: u32,
    /// One item of a repeated field was chosen.
    is_item: bool,
    steps: Vec<Step>,
}

impl<'a> Resolver<'a> {
    fn step(&mut self, part: &Part<'_>) -> Result<(), PathMistake> {
        match part {
            Part::Index(index) => self.index(*index),
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
                    Some(node) => format!("`{}` is no list", node.name),
                    None => "a path begins with the name of a field".to_owned(),
                },
                part: format!("[{index}]"),
                help: "an index in brackets chooses an item of a field with `repeat`".to_owned(),
            }),
        }
    }

    fn name(&mut self, name: &str) -> Result<(), PathMistake> {
        if let Some(node) = self.current()
            && node.repeat != Repeats::Once
            && !self.is_item
        {
            return Err(PathMistake {
                message: format!("`{}` is a list, and `{name}` is a field of its items", node.name),
                part: name.to_owned(),
                help: format!("choose an item: `{}[0].{name}`", node.name),
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
                    message: format!("`{}` is {word} and has no fields", node.name),
                    part: name.to_owned(),
                    help: "only structures, JSON and protobuf have fields in them".to_owned(),
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
            message: format!("there is no field `{name}`"),
            part: name.to_owned(),
            help: suggestion(name, &names),
        }
    }

    /// What follows is a path into one JSON or protobuf value.
    fn is_within_value(&self) -> bool {
        self.current().is_some_and(|node| node.repeat == Repeats::Once || self.is_item)
    }
}

/// Which name may have been meant, or which there are.
// sentences
pub(super) fn suggestion(name: &str, names: &[&str]) -> String {
    match did_you_mean(name, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if names.is_empty() => "there are no fields".to_owned(),
        None => format!("there are `{}`", names.join("`, `")),
    }
}

fn json_step(part: &Part<'_>) -> Inner {
    match part {
        Part::Name(name) => Inner::Key((*name).into()),
        Part::Index(index) => Inner::Index(*index),
    }
}

fn proto_steps(
    protos: &[Proto],
    message: u32,
    parts: &[Part<'_>],
) -> Result<Vec<Inner>, PathMistake> {
    let mut steps = Vec::new();
    // The message whose fields are looked up, the type of what was reached, a list or a map.
    let mut within = Some(message as usize);
    let mut open: Option<(&ProtoType, bool)> = None;
    for part in parts {
        let step = match (part, within, open) {
            (Part::Index(index), None, Some((ty, true))) => {
                within = message_of(ty);
                open = Some((ty, false));
                Inner::Index(*index)
            }
            (Part::Name(name), None, Some((ProtoType::Map(entry), _))) => {
                let value = protos[*entry].fields.iter().find(|field| field.number == 2);
                within = value.and_then(|value| message_of(&value.ty));
                open = value.map(|value| (&value.ty, false));
                Inner::Key((*name).into())
            }
            (Part::Name(name), Some(proto), _) => {
                let fields = &protos[proto].fields;
                let Some(index) = fields.iter().position(|field| field.name == *name) else {
                    let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
                    return Err(PathMistake {
                        message: format!("`{}` has no field `{name}`", protos[proto].name),
                        part: (*name).to_owned(),
                        help: suggestion(name, &names),
                    });
                };
                let field = &fields[index];
                within = if field.repeated { None } else { message_of(&field.ty) };
                let is_list = field.repeated && !matches!(field.ty, ProtoType::Map(_));
                open = Some((&field.ty, is_list));
                Inner::Proto(index as u32)
            }
            (part, ..) => {
                let part = match part {
                    Part::Name(name) => (*name).to_owned(),
                    Part::Index(index) => format!("[{index}]"),
                };
                let message = format!("`{part}` leads to nothing in the protobuf message");
                let help = "an index chooses an item of a repeated field, a name a field of a \
                            message or an entry of a map"
                    .to_owned();
                return Err(PathMistake { message, part, help });
            }
        };
        steps.push(step);
    }
    Ok(steps)
}

fn message_of(ty: &ProtoType) -> Option<usize> {
    match ty {
        ProtoType::Message(message) => Some(*message),
        _ => None,
    }
}

/// `a.b[2].c` in its parts.
fn parts(path: &str) -> Result<Vec<Part<'_>>, PathMistake> {
    let wrong = |part: &str| PathMistake {
        message: format!("`{path}` is no path of a field"),
        part: part.to_owned(),
        help: "a path is names with dots between them and indexes in brackets: `items[0].price`"
            .to_owned(),
    };
    if path.chars().count() > PATH_CHARS_MAX {
        return Err(wrong(path));
    }
    let mut parts = Vec::new();
    for piece in path.split('.') {
        let (name, indexes) = match piece.find('[') {
            Some(at) => piece.split_at(at),
            None => (piece, ""),
        };
        // Only a list that is JSON as a whole begins with an index, and it has a name before it.
        if name.is_empty() {
            return Err(wrong(piece));
        }
        parts.push(Part::Name(name));
        let mut rest = indexes;
        while let Some(behind) = rest.strip_prefix('[') {
            let Some((index, behind)) = behind.split_once(']') else { return Err(wrong(piece)) };
            parts.push(Part::Index(index.parse().map_err(|_| wrong(piece))?));
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(wrong(piece));
        }
    }
    Ok(parts)
}
