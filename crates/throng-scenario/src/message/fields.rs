//! Messages with fields, of a declared protocol or of Protobuf: the values that a step gives for
//! fields, and the fields that checks and saves select.

mod possible;

use std::sync::Arc;

use throng_base::Said;
use throng_expression::{Expression, Value};
use throng_program::{Check, Composed, Extractor, Matcher, Text};
use throng_protocol::framed::declaration::Role;
use throng_protocol::framed::{Given, GivenMistake};
use throng_protocol::protobuf::{self, MessageType, Schema};

use crate::ast;
use crate::keys;
use crate::message::matchers::Meaning;
use crate::read::Context;
use crate::scope::Kinds;
use crate::synonyms::near_label;
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::shorten;

/// Maximum number of values that a step gives for the fields of a message.
const LEAVES_MAX: usize = 1_000;

/// Maximum number of names listed in a diagnostic.
pub(crate) const SHOWN_MAX: usize = 12;

/// The message that a step gives, with the values that differ between users.
pub(crate) fn read_fields(
    cx: &mut Context<'_>,
    fields: Option<&Node>,
) -> Option<(Given, Vec<Text>)> {
    let mut leaves = Vec::new();
    let given = match fields.filter(|node| !node.is_null()) {
        None => Given::Fields(Vec::new()),
        Some(node) => read_given(cx, node, &mut leaves)?,
    };
    Some((given, leaves))
}

/// A Protobuf message that a step sends; without fields it is empty.
pub(crate) fn read_proto(
    cx: &mut Context<'_>,
    schema: &Arc<Schema>,
    message: MessageType,
    (fields, place): (Option<&Node>, Place),
) -> Option<Composed<protobuf::Template>> {
    let (given, leaves) = read_fields(cx, fields)?;
    let prepared = schema.prepare(message, &given);
    let kinds = Kinds::Proto { schema: schema.clone(), message };
    match prepared {
        Ok(template) => Some(Composed { template, leaves: leaves.into() }),
        Err(mistake) => wrong_field(cx, &kinds, (fields, place), mistake),
    }
}

/// Reports a wrong value at its place.
pub(crate) fn wrong_field<T>(
    cx: &mut Context<'_>,
    kinds: &Kinds,
    (fields, otherwise): (Option<&Node>, Place),
    mistake: GivenMistake,
) -> Option<T> {
    let (key, value) = place_of(fields, &mistake.path, otherwise);
    let path = joined(&mistake.path);
    let is_unknown = !path.is_empty() && !kinds.has(&path);
    let place = if is_unknown { key } else { value };
    let near = mistake.path.last().and_then(|word| kinds.near(word));
    let label = near_label(near.filter(|_| is_unknown), label_of(&mistake.path));
    cx.refuse("bad-field", place, mistake.message, label, mistake.help)
}

/// A path as text; numbers are indices.
fn joined(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        match part.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.push_str(&format!("[{part}]")),
            false if text.is_empty() => text.push_str(part),
            false => text.push_str(&format!(".{part}")),
        }
    }
    text
}

fn label_of(path: &[String]) -> Said {
    match path.is_empty() {
        true => say!("in this message"),
        false => say!("the field `{}`", shorten(&path.join("."))),
    }
}

fn read_given(cx: &mut Context<'_>, node: &Node, leaves: &mut Vec<Text>) -> Option<Given> {
    match &node.kind {
        Kind::Map(_) => {
            let mut fields = Vec::new();
            let mut good = true;
            for (key, value) in cx.entries(node, Said::default(), Said::default())? {
                let name = cx.key_text(key);
                match name.zip(read_given(cx, value, leaves)) {
                    Some(field) => fields.push(field),
                    None => good = false,
                }
            }
            good.then_some(Given::Fields(fields))
        }
        Kind::List(items) => {
            let mut all = Vec::with_capacity(items.len());
            let mut good = true;
            for item in items {
                match read_given(cx, item, leaves) {
                    Some(given) => all.push(given),
                    None => good = false,
                }
            }
            good.then_some(Given::Items(all))
        }
        Kind::Scalar { .. } => {
            let leaf = match node.is_null() {
                true => Text::constant(Value::Null),
                false => cx.value_text(node)?,
            };
            // Values that are the same for all users are checked and encoded at compile time.
            if let Some(value) = constant(&leaf) {
                return Some(Given::Literal(value));
            }
            if leaves.len() >= LEAVES_MAX {
                let message = say!("a message has more than {LEAVES_MAX} values");
                let label = say!("this exceeds the limit");
                let help = say!("write text or bytes instead of separate values");
                return cx.refuse("too-many", node.place, message, label, help);
            }
            leaves.push(leaf);
            Some(Given::Leaf((leaves.len() - 1) as u16))
        }
    }
}

/// The places of the name and of the value at a path, as deep as it was written.
pub(crate) fn place_of(node: Option<&Node>, path: &[String], otherwise: Place) -> (Place, Place) {
    // `items[2].price` may be one part or several.
    let parts = path.iter().flat_map(|part| part.split(['.', '[']));
    let parts = parts.map(|part| part.trim_end_matches(']')).filter(|part| !part.is_empty());
    let mut place = (otherwise, otherwise);
    let mut here = node;
    for part in parts {
        here = match here.map(|node| &node.kind) {
            Some(Kind::Map(entries)) => match entries.iter().find(|(key, _)| key.text == part) {
                Some((key, value)) => {
                    place = match &value.kind {
                        Kind::Scalar { .. } if !value.is_null() => (key.place, value.place),
                        _ => (key.place, key.place),
                    };
                    Some(value)
                }
                None => None,
            },
            Some(Kind::List(items)) => {
                let index = part.parse::<usize>().ok();
                let item = index.and_then(|index| items.get(index));
                place = item.map_or(place, |item| (item.place, item.place));
                item
            }
            _ => None,
        };
        if here.is_none() {
            break;
        }
    }
    place
}

/// The value when it is the same for all users.
pub(crate) fn constant(text: &Text) -> Option<Value> {
    match text.as_literal() {
        Some(bytes) => Some(match std::str::from_utf8(bytes) {
            Ok(text) => Value::from(text),
            Err(_) => Value::Bytes(bytes.into()),
        }),
        None => text.as_expression().and_then(Expression::as_constant).cloned(),
    }
}

/// The path to a field, in each kind that has it.
pub(crate) fn field_extractor(
    cx: &mut Context<'_>,
    kinds: &Kinds,
    path: &str,
    place: Place,
) -> Option<Extractor> {
    let mistake = match kinds.find(path) {
        Ok(extractor) => return Some(extractor),
        Err(mistake) => mistake,
    };
    let start = path.find(&mistake.part).unwrap_or(0);
    let place = cx.place_inside(place, path, start, start + mistake.part.len());
    let label = near_label(kinds.near(&mistake.part), say!("unknown"));
    cx.refuse("unknown-field", place, mistake.message, label, mistake.help)
}

/// The fields of a map and their expected values.
pub(crate) fn read_field_map(
    cx: &mut Context<'_>,
    node: &Node,
    kinds: &Kinds,
    out: &mut Vec<Check>,
) {
    let help = say!("write `{{code: 0, items[0].price: > 5}}`");
    let entries =
        cx.filled_map(node, say!("a map of fields"), say!("there is no field to check"), help);
    for (key, value) in entries {
        read_field(cx, value, &key.text, key.place, kinds, out);
    }
}

/// The expected value of the field at `path`; maps and lists are nested fields.
pub(crate) fn read_field(
    cx: &mut Context<'_>,
    node: &Node,
    path: &str,
    place: Place,
    kinds: &Kinds,
    out: &mut Vec<Check>,
) {
    let is_operator = |key: &Key| {
        keys::TEXT_CHECK.find(&key.text).is_some() && !kinds.has(&format!("{path}.{}", key.text))
    };
    match &node.kind {
        Kind::Map(entries) if entries.iter().any(|(key, _)| !is_operator(key)) => {
            for (key, value) in
                cx.entries(node, Said::default(), Said::default()).unwrap_or_default()
            {
                let inner = format!("{path}.{}", key.text);
                read_field(cx, value, &inner, key.place, kinds, out);
            }
        }
        Kind::List(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                read_field(cx, item, &format!("{path}[{i}]"), item.place, kinds, out);
            }
        }
        _ => {
            let matcher = match &node.kind {
                Kind::Scalar { .. } if node.is_null() => Some(Matcher::Null),
                Kind::Scalar { .. } => {
                    crate::message::matchers::read_matcher(cx, node, Meaning::Json)
                }
                Kind::Map(entries) if !entries.is_empty() => read_operator(cx, node),
                _ => Some(Matcher::Present),
            };
            let Some(extractor) = field_extractor(cx, kinds, path, place) else { return };
            let matcher = matcher.and_then(|matcher| {
                possible::of_field(cx, (node, path), kinds, &extractor, matcher)
            });
            out.extend(matcher.map(|matcher| Check { extractor, matcher }));
        }
    }
}

fn read_operator(cx: &mut Context<'_>, node: &Node) -> Option<Matcher> {
    let fields = ast::TextCheck::read(cx, node)?;
    let (key, value) = ast::one_of(cx, &[fields.contains, fields.equals, fields.matches])?;
    crate::message::matchers::read_operator(cx, key, value)
}

/// Warns if a keyword of checks and saves hides a field of the same name.
pub(crate) fn warn_hidden(cx: &mut Context<'_>, kinds: &Kinds, word: &str, place: Place) {
    let is_body = match kinds {
        Kinds::Declared { protocol, .. } => {
            let mut of_packet = protocol.declaration().packet.iter();
            of_packet.any(|field| field.id.value == word && field.role == Role::Body)
        }
        Kinds::Proto { .. } => false,
    };
    if is_body || !kinds.has(word) {
        return;
    }
    let message = match word {
        "status" | "header" => {
            say!("`{word}` refers to the call here, but the reply also has a field with this name")
        }
        _ => say!(
            "`{word}` refers to the whole message here, but the message also has a field with \
             this name"
        ),
    };
    let help = say!("write `field: {{{word}: …}}` to refer to the field");
    cx.warn("hidden-field", place, message, say!("does not refer to the field"), help);
}
