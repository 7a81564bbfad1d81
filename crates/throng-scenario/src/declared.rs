//! Messages of a declared protocol: what a step gives for their fields, which of them are meant,
//! and the fields that checks and saves look at.

mod possible;

use std::sync::Arc;

use throng_expression::{Expression, Value};
use throng_program::{Check, Composed, Pick, Segment, Text, Want, Which};
use throng_protocol::framed::declaration::Role;
use throng_protocol::framed::{self, Given, MessageId, Protocol};

use crate::checks::{self, Answer, Meaning};
use crate::keys;
use crate::reach::Spoken;
use crate::read::{Context, Fields, shorten};
use crate::synonyms::did_you_mean;
use crate::syntax::{Key, Kind, Node, Place};
use crate::template::{Escape, text_of};

/// The most values that a step gives for the fields of a message.
const LEAVES_MAX: usize = 1_000;

/// The most names that a message lists.
const SHOWN_MAX: usize = 12;

/// What a message may be that is looked at.
#[derive(Clone, Debug)]
pub(crate) struct Kinds {
    pub(crate) protocol: Arc<Protocol>,
    /// Not empty.
    pub(crate) ids: Vec<MessageId>,
}

impl Kinds {
    /// These kinds, or all when none is named.
    pub(crate) fn new(protocol: &Arc<Protocol>, ids: &[MessageId]) -> Kinds {
        let ids = match ids {
            [] => protocol.messages().map(|(id, _)| id).collect(),
            ids => ids.to_vec(),
        };
        Kinds { protocol: protocol.clone(), ids }
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.ids.iter().any(|id| self.protocol.field(*id, path).is_ok())
    }
}

/// Whether it names a message, and is no other word of a step.
pub(crate) fn is_message(cx: &Context<'_>, name: &str) -> bool {
    matches!(&cx.spoken, Spoken::Declared(protocol) if protocol.message(name).is_some())
}

/// The message of this name.
pub(crate) fn find_message(
    cx: &mut Context<'_>,
    protocol: &Protocol,
    name: &str,
    place: Place,
) -> Option<MessageId> {
    if let Some(id) = protocol.message(name) {
        return Some(id);
    }
    let message = format!("the protocol has no message `{}`", shorten(name));
    let error = cx.error("unknown-message", message, place);
    let names: Vec<&str> = protocol.messages().map(|(_, info)| info.name.as_str()).collect();
    let error = error.label(match did_you_mean(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "not known here".into(),
    });
    let mut list: Vec<String> =
        names.iter().take(SHOWN_MAX + 1).map(|name| format!("`{name}`")).collect();
    if list.len() > SHOWN_MAX {
        list[SHOWN_MAX] = "…".into();
    }
    cx.fail(error.help(format!("there is {}", list.join(", "))))
}

/// A message as a step sends it: its name, and what is given for its fields.
pub(crate) fn read_declared(
    cx: &mut Context<'_>,
    protocol: &Protocol,
    name: &Key,
    fields: Option<&Node>,
    asks: bool,
) -> Option<Composed<framed::Template>> {
    let message = find_message(cx, protocol, &name.text, name.place)?;
    let fields = fields.filter(|node| !node.is_null());
    let mut leaves = Vec::new();
    let mut given = match fields {
        None => Given::Fields(Vec::new()),
        Some(node) => read_given(cx, node, &mut leaves)?,
    };
    if let Some(number) = protocol.correlator() {
        let (place, _) = place_of(fields, &[number.to_string()], name.place);
        match &mut given {
            Given::Fields(all) if all.iter().any(|(name, _)| name == number) && asks => {
                let message = format!("`{number}` of a request is chosen by throng");
                let error = cx.error("bad-field", message, place).label("its reply carries it");
                let help = "leave it out; a `send` may give it, to answer a request of the target";
                return cx.fail(error.help(help));
            }
            Given::Fields(all) if all.iter().all(|(name, _)| name != number) && !asks => {
                let carried = carried(cx, protocol, message, number, name.place);
                if let Some(text) = carried {
                    leaves.push(text);
                    all.push((number.to_string(), Given::Leaf((leaves.len() - 1) as u16)));
                }
            }
            _ => {}
        }
    }
    match protocol.prepare(message, &given) {
        Ok(template) => Some(Composed { template, leaves: leaves.into() }),
        Err(mistake) => {
            let (key, value) = place_of(fields, &mistake.path, name.place);
            let path = mistake.path.join(".");
            let is_unknown = !path.is_empty() && protocol.field(message, &path).is_err();
            let place = if is_unknown { key } else { value };
            let near = mistake.path.last().and_then(|word| near(protocol, message, word));
            let label = match near.filter(|_| is_unknown) {
                Some(near) => format!("did you mean `{near}`?"),
                None => label_of(&mistake.path),
            };
            let error = cx.error("bad-field", mistake.message, place);
            cx.fail(error.label(label).help(mistake.help))
        }
    }
}

/// In the body of a handler: the number of the message that came, where what is sent is a reply
/// to it.
fn carried(
    cx: &mut Context<'_>,
    protocol: &Protocol,
    message: MessageId,
    number: &str,
    place: Place,
) -> Option<Text> {
    let answers = &protocol.info(message).answers;
    if !cx.heard_kinds()?.ids.iter().any(|came| answers.contains(came)) {
        return None;
    }
    let value = cx.expression_of(&format!("message.{number}"), place)?;
    Some(Text { segments: vec![Segment::Value { value, escape: Escape::None }] })
}

/// The field that was perhaps meant.
fn near(protocol: &Protocol, message: MessageId, word: &str) -> Option<String> {
    let layout = protocol.layout(message);
    let names = layout.iter().filter_map(|row| row.path.split(['.', '[']).next_back());
    did_you_mean(word, names).map(str::to_string)
}

fn label_of(path: &[String]) -> String {
    match path.is_empty() {
        true => "of this message".into(),
        false => format!("the field `{}`", shorten(&path.join("."))),
    }
}

fn read_given(cx: &mut Context<'_>, node: &Node, leaves: &mut Vec<Text>) -> Option<Given> {
    match &node.kind {
        Kind::Map(_) => {
            let mut fields = Vec::new();
            let mut good = true;
            for (key, value) in cx.entries(node, "", "")? {
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
                true => text_of(Value::Null),
                false => cx.value_text(node)?,
            };
            // What is the same for all users is looked at once, and written once.
            if let Some(value) = constant(&leaf) {
                return Some(Given::Literal(value));
            }
            if leaves.len() >= LEAVES_MAX {
                let message = format!("a message has more than {LEAVES_MAX} values");
                let error = cx.error("too-many", message, node.place).label("one too many");
                return cx.fail(error.help("give a text or bytes instead of single values"));
            }
            leaves.push(leaf);
            Some(Given::Leaf((leaves.len() - 1) as u16))
        }
    }
}

/// The places of the name and of the value that a path leads to, as far as it was written.
fn place_of(node: Option<&Node>, path: &[String], otherwise: Place) -> (Place, Place) {
    // `items[2].price` may come as one part or as several.
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
fn constant(text: &Text) -> Option<Value> {
    match text.as_literal() {
        Some(bytes) => Some(match std::str::from_utf8(bytes) {
            Ok(text) => Value::from(text),
            Err(_) => Value::Bytes(bytes.into()),
        }),
        None => text.as_expression().and_then(Expression::as_constant).cloned(),
    }
}

/// Which messages are meant, and what to call them.
pub(crate) struct Meant {
    pub(crate) which: Which,
    pub(crate) name: Option<String>,
}

const PATTERN_HELP: &str =
    "write the name of a message, `{said: {from: 5}}`, a list of names, or `any`";

/// Reads `said`, `[done, failed]` or `{said: {from: 5}}`. The outer None: it is no pattern of
/// messages, but one of texts.
pub(crate) fn read_pattern(
    cx: &mut Context<'_>,
    protocol: &Arc<Protocol>,
    node: &Node,
) -> Option<Option<Meant>> {
    let meant = |ids: Vec<MessageId>, checks, name| {
        Some(Meant { which: Which { messages: ids.into(), checks }, name })
    };
    match &node.kind {
        Kind::Scalar { text, .. } if text == "any" && protocol.message(text).is_none() => {
            Some(meant(Vec::new(), Vec::new(), None))
        }
        Kind::Scalar { .. } => Some(cx.text(node, "the name of a message").and_then(|name| {
            let id = find_message(cx, protocol, &name, node.place)?;
            meant(vec![id], Vec::new(), Some(name))
        })),
        Kind::List(items) => Some(read_names(cx, protocol, node, items)),
        Kind::Map(entries) => {
            let is_text = |key: &Key| {
                protocol.message(&key.text).is_none()
                    && (keys::LOOKS.find(&key.text).is_some()
                        || keys::EXPECTATION.find(&key.text).is_some())
            };
            if !entries.is_empty() && entries.iter().all(|(key, _)| is_text(key)) {
                return None;
            }
            let entries = cx.entries(node, "", "").unwrap_or_default();
            let [(key, fields)] = entries[..] else {
                return Some(cx.wrong_type(node, "one message with its fields", PATTERN_HELP));
            };
            Some(read_one(cx, protocol, key, fields))
        }
    }
}

fn read_one(
    cx: &mut Context<'_>,
    protocol: &Arc<Protocol>,
    key: &Key,
    fields: &Node,
) -> Option<Meant> {
    let id = find_message(cx, protocol, &key.text, key.place)?;
    let kinds = Kinds::new(protocol, &[id]);
    let mut checks = Vec::new();
    if !fields.is_null() {
        if !matches!(fields.kind, Kind::Map(_)) {
            let help = format!("write `{{{}: {{field: value}}}}`", shorten(&key.text));
            return cx.wrong_type(fields, "a map of fields", &help);
        }
        let answer = Answer::Declared(&kinds);
        cx.with_answer_of(answer, |cx| read_field_map(cx, fields, &kinds, &mut checks));
    }
    let which = Which { messages: [id].into(), checks };
    Some(Meant { which, name: Some(key.text.clone()) })
}

fn read_names(
    cx: &mut Context<'_>,
    protocol: &Arc<Protocol>,
    node: &Node,
    items: &[Node],
) -> Option<Meant> {
    if items.is_empty() {
        let error = cx.error("empty", "there is no message to wait for".into(), node.place);
        return cx.fail(error.label("empty").help(PATTERN_HELP));
    }
    let mut ids = Vec::new();
    let mut names = Vec::new();
    for item in items {
        let name = cx.text(item, "the name of a message")?;
        let id = find_message(cx, protocol, &name, item.place)?;
        if !ids.contains(&id) {
            ids.push(id);
            names.push(name);
        }
    }
    let which = Which { messages: ids.into(), checks: Vec::new() };
    Some(Meant { which, name: Some(names.join(" or ")) })
}

/// The reply of a request: one of those that answer the message, or of those that `expect` names.
pub(crate) fn check_kind(kinds: &Kinds, wanted: &[MessageId]) -> Option<Check> {
    let selects = kinds.protocol.declaration().packet.iter();
    let selects = selects.clone().find(|field| field.role == Role::Selects)?;
    let path = |id: &MessageId| kinds.protocol.field(*id, &selects.id.value).ok();
    let paths: Vec<_> = wanted.iter().filter_map(path).collect();
    (!paths.is_empty()).then(|| Check { pick: Pick::Field(paths.into()), want: Want::Present })
}

/// The way to a field, in every kind that has it.
pub(crate) fn field_pick(
    cx: &mut Context<'_>,
    kinds: &Kinds,
    path: &str,
    place: Place,
) -> Option<Pick> {
    let mut found = Vec::new();
    let mut wrong = None;
    for id in &kinds.ids {
        match kinds.protocol.field(*id, path) {
            Ok(field) => found.push(field),
            Err(mistake) => wrong = wrong.or(Some(mistake)),
        }
    }
    let Some(mistake) = wrong.filter(|_| found.is_empty()) else {
        return Some(Pick::Field(found.into()));
    };
    let start = path.find(&mistake.part).unwrap_or(0);
    let place = cx.place_inside(place, path, start, start + mistake.part.len());
    let near = kinds.ids.iter().find_map(|id| near(&kinds.protocol, *id, &mistake.part));
    let error = cx.error("unknown-field", mistake.message, place);
    let error = error.label(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "not known here".into(),
    });
    cx.fail(error.help(mistake.help))
}

/// The fields of a map and what they have to be.
pub(crate) fn read_field_map(
    cx: &mut Context<'_>,
    node: &Node,
    kinds: &Kinds,
    out: &mut Vec<Check>,
) {
    let help = "write `{code: 0, items[0].price: > 5}`";
    let entries = cx.entries(node, "a map of fields", help).unwrap_or_default();
    if entries.is_empty() && matches!(node.kind, Kind::Map(_)) {
        let error = cx.error("empty", "there is no field to check".into(), node.place);
        cx.note(error.label("empty").help(help));
    }
    for (key, value) in entries {
        read_field(cx, value, &key.text, key.place, kinds, out);
    }
}

/// What the field at `path` has to be; maps and lists go deeper.
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
            for (key, value) in cx.entries(node, "", "").unwrap_or_default() {
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
            let want = match &node.kind {
                Kind::Scalar { .. } if node.is_null() => Some(Want::Null),
                Kind::Scalar { .. } => checks::read_want(cx, node, Meaning::Json),
                Kind::Map(entries) if !entries.is_empty() => read_operator(cx, node),
                _ => Some(Want::Present),
            };
            let Some(pick) = field_pick(cx, kinds, path, place) else { return };
            let want =
                want.and_then(|want| possible::of_field(cx, (node, path), kinds, &pick, want));
            out.extend(want.map(|want| Check { pick, want }));
        }
    }
}

fn read_operator(cx: &mut Context<'_>, node: &Node) -> Option<Want> {
    let fields = Fields::read(cx, node, &keys::TEXT_CHECK)?;
    let (key, value) = fields.one_of(cx, &["contains", "equals", "matches"])?;
    checks::read_operator(cx, key, value)
}

/// Warns where a word of checks and saves hides a field of the same name.
pub(crate) fn warn_hidden(cx: &mut Context<'_>, kinds: &Kinds, word: &str, place: Place) {
    let of_packet = kinds.protocol.declaration().packet.iter();
    let is_body = of_packet.clone().any(|field| field.id.value == word && field.role == Role::Body);
    if is_body || !kinds.has(word) {
        return;
    }
    let message = format!("`{word}` is the whole message here, and it has a field of that name");
    let warning = cx.warning("hidden-field", message, place).label("not the field");
    cx.note(warning.help(format!("write `field: {{{word}: …}}` for the field")));
}
