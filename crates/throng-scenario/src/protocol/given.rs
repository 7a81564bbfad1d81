//! A message from the command line, written as in a scenario, `join: {room: 42}`: parsed as YAML
//! with the place of each value, checked and encoded by the protocol.

use std::convert::Infallible;
use std::sync::Arc;

use throng_base::diagnostic::did_you_mean;
use throng_base::{Diagnostic, Said, Source, Span};
use throng_expression::Value;
use throng_protocol::framed::{EncodeError, Given, MessageId, Protocol};

use crate::synonyms::near_label;
use crate::syntax::{self, Key, Kind, Node, Place};
use crate::words;

/// Maximum length of the text.
const TEXT_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    pub message: MessageId,
    /// Including the delimiter, if packets have one.
    pub bytes: Vec<u8>,
}

/// Encodes a message that a user has written.
pub fn encode(protocol: &Protocol, text: &str, sequence: u64) -> Result<Encoded, Box<Diagnostic>> {
    let source = Source::new("command line", text);
    let reader = ValueReader { source: &source, protocol };
    let (message, fields) = reader.message()?;
    let nothing = Node { place: Place::default(), kind: Kind::Map(Vec::new()) };
    let given = reader.given(fields.as_ref().unwrap_or(&nothing))?;
    let template = protocol.prepare(message, &given).map_err(|mistake| {
        let (start, end) = place_of(fields.as_ref(), &mistake.path, text.len());
        // For an unknown field, its name is wrong, not its value.
        let is_unknown = protocol.field(message, &mistake.path.join(".")).is_err();
        let (start, end) = match is_unknown {
            true => key_of(fields.as_ref(), &mistake.path).unwrap_or((start, end)),
            false => (start, end),
        };
        let error = reader.error("bad-field", mistake.message, start, end);
        let label = match mistake.path.is_empty() {
            true => say!("this message"),
            false => say!("the field `{}`", mistake.path.join(".")),
        };
        Box::new(error.label(label).help(mistake.help))
    })?;
    let most = protocol.correlation_max(message);
    if most > 0 && sequence > most {
        let message = say!("`--seq {sequence}` is too large: the maximum is {most}");
        let error = Diagnostic::error("bad-field", message);
        return Err(Box::new(error.help(say!("give a smaller number, or omit it"))));
    }
    let mut bytes = Vec::new();
    let mut none = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(Some(Value::Null));
    match protocol.encode(&template, sequence, &mut none, &mut bytes) {
        Ok(()) => Ok(Encoded { message, bytes }),
        Err(EncodeError::Leaf(never)) => match never {},
        Err(EncodeError::Value { field, reason }) => {
            let path: Vec<String> = field.split('.').map(str::to_string).collect();
            let (start, end) = place_of(fields.as_ref(), &path, text.len());
            let error = reader.error("bad-field", reason, start, end);
            let error = error.label(say!("the field `{field}`"));
            Err(Box::new(error.help(say!("`throng protocol FILE` describes each field"))))
        }
    }
}

struct ValueReader<'r> {
    source: &'r Arc<Source>,
    protocol: &'r Protocol,
}

const MESSAGE_HELP: Said = say!("write a message as in a scenario: `join: {{room: 42}}`");

impl ValueReader<'_> {
    fn error(&self, code: &'static str, message: Said, start: usize, end: usize) -> Diagnostic {
        let source = self.source.clone();
        Diagnostic::error(code, message).at(Span { source, start, end })
    }

    /// The message and the values for its fields.
    fn message(&self) -> Result<(MessageId, Option<Node>), Box<Diagnostic>> {
        let end = self.source.text.len();
        let wrong = |message: Said| {
            Err(Box::new(self.error("bad-field", message, 0, end).help(MESSAGE_HELP)))
        };
        if end > TEXT_BYTES_MAX {
            return wrong(say!("the message has more than {TEXT_BYTES_MAX} bytes"));
        }
        let root = syntax::parse(self.source, 0).map_err(|it| Box::new(it.help(MESSAGE_HELP)))?;
        let (name, fields) = match root {
            None => return wrong(say!("no message is given")),
            Some(Node { kind: Kind::Scalar { text, .. }, place }) => (Key { text, place }, None),
            Some(Node { kind: Kind::Map(entries), .. }) => {
                let mut entries = entries.into_iter();
                match (entries.next(), entries.next()) {
                    (Some((name, fields)), None) => (name, Some(fields)),
                    (None, _) => return wrong(say!("no message is given")),
                    (_, Some(_)) => {
                        return wrong(say!("only one message can be encoded at a time"));
                    }
                }
            }
            Some(_) => return wrong(say!("a list is not a message")),
        };
        let Some(message) = self.protocol.message(&name.text) else {
            return Err(self.unknown(&name));
        };
        let fields = fields.filter(|node| !node.is_null());
        match &fields {
            Some(Node { kind: Kind::Scalar { .. } | Kind::List(_), place }) => {
                let text = say!("the fields of a message must be a map");
                let error = self.error("bad-field", text, place.start(), place.end());
                Err(Box::new(error.help(MESSAGE_HELP)))
            }
            _ => Ok((message, fields)),
        }
    }

    fn unknown(&self, name: &Key) -> Box<Diagnostic> {
        let names: Vec<&str> =
            self.protocol.messages().map(|(_, info)| info.name.as_str()).collect();
        let message = say!("the protocol has no message `{}`", name.text);
        let error = self.error("unknown-message", message, name.place.start(), name.place.end());
        let near = did_you_mean(&name.text, names.iter().copied());
        let error = error.label(near_label(near, say!("unknown")));
        Box::new(error.help(say!("available: {}", words::names(names))))
    }

    fn given(&self, node: &Node) -> Result<Given, Box<Diagnostic>> {
        match &node.kind {
            Kind::Map(entries) => {
                let mut fields = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    fields.push((key.text.clone(), self.given(value)?));
                }
                Ok(Given::Fields(fields))
            }
            Kind::List(items) => {
                let items = items.iter().map(|item| self.given(item));
                Ok(Given::Items(items.collect::<Result<_, _>>()?))
            }
            Kind::Scalar { text, .. } if text.contains("${") => {
                let text =
                    say!("an expression cannot be evaluated here: there is no user and no run");
                let error = self.error("bad-field", text, node.place.start(), node.place.end());
                Err(Box::new(error.help(say!("write the value itself"))))
            }
            Kind::Scalar { text, plain: true } => Ok(Given::Literal(Value::parse_plain(text))),
            Kind::Scalar { text, plain: false } => Ok(Given::Literal(Value::from(text.as_str()))),
        }
    }
}

/// The place of the value at a path, as deep as it was written.
fn place_of(fields: Option<&Node>, path: &[String], end: usize) -> (usize, usize) {
    let mut place = fields.map_or((0, end), |node| (node.place.start(), node.place.end()));
    let mut here = fields;
    for part in path {
        let mut names = part.split('[');
        let name = names.next().unwrap_or_default();
        if let (false, Some(Kind::Map(entries))) = (name.is_empty(), here.map(|node| &node.kind)) {
            let Some((key, value)) = entries.iter().find(|(key, _)| key.text == name) else {
                return place;
            };
            place = match value.place.end() > value.place.start() {
                true => (value.place.start(), value.place.end()),
                false => (key.place.start(), key.place.end()),
            };
            here = Some(value);
        }
        for index in names.map(|index| index.trim_end_matches(']').parse::<usize>()) {
            let (Ok(index), Some(Kind::List(items))) = (index, here.map(|node| &node.kind)) else {
                return place;
            };
            let Some(item) = items.get(index) else { return place };
            place = (item.place.start(), item.place.end());
            here = Some(item);
        }
    }
    place
}

/// The place of the last name of a path.
fn key_of(fields: Option<&Node>, path: &[String]) -> Option<(usize, usize)> {
    let (mut here, mut found) = (fields?, None);
    for part in path {
        let Kind::Map(entries) = &here.kind else { return found };
        let (key, value) = entries.iter().find(|(key, _)| key.text == *part)?;
        found = Some((key.place.start(), key.place.end()));
        here = value;
    }
    found
}

#[cfg(test)]
mod tests;
