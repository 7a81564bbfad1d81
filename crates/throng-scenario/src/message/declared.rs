//! Messages of a declared protocol: those that a step sends, and patterns that select received
//! ones.

use std::sync::Arc;

use throng_base::Said;
use throng_program::{Check, Composed, Extractor, Matcher, Segment, Text, Which};
use throng_protocol::framed::{self, Given, MessageId, Protocol};

use crate::keys;
use crate::message::answer::Answer;
use crate::message::fields::{place_of, read_field_map, read_fields, wrong_field};
use crate::read::Context;
use crate::read::template::Escape;
use crate::scope::{Kinds, Spoken};
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::shorten;

/// True if it names a message and is not another keyword of the step.
pub(crate) fn is_message(cx: &Context<'_>, name: &str) -> bool {
    matches!(cx.scope.spoken, Spoken::Declared(protocol) if protocol.message(name).is_some())
}

/// Finds the message with this name.
pub(crate) fn find_message(
    cx: &mut Context<'_>,
    protocol: &Protocol,
    name: &str,
    place: Place,
) -> Option<MessageId> {
    if let Some(id) = protocol.message(name) {
        return Some(id);
    }
    let message = say!("the protocol has no message `{}`", shorten(name));
    let names: Vec<&str> = protocol.messages().map(|(_, info)| info.name.as_str()).collect();
    let names = (name, names.into_iter());
    cx.unknown("unknown-message", place, message, names, say!("unknown"), Said::default())
}

/// A message that a step sends: its name and the values of its fields.
pub(crate) fn read_declared(
    cx: &mut Context<'_>,
    protocol: &Arc<Protocol>,
    name: &Key,
    fields: Option<&Node>,
    asks: bool,
) -> Option<Composed<framed::Template>> {
    let message = find_message(cx, protocol, &name.text, name.place)?;
    let fields = fields.filter(|node| !node.is_null());
    let (mut given, mut leaves) = read_fields(cx, fields)?;
    if let Some(number) = protocol.correlator(message) {
        let (place, _) = place_of(fields, &[number.to_string()], name.place);
        match &mut given {
            Given::Fields(all) if all.iter().any(|(name, _)| name == number) && asks => {
                return sets_it(cx, number, place);
            }
            Given::Fields(all) if all.iter().all(|(name, _)| name != number) && !asks => {
                let carried = carried(cx, protocol, message, name.place);
                if let Some(text) = carried {
                    leaves.push(text);
                    all.push((number.to_string(), Given::Leaf((leaves.len() - 1) as u16)));
                }
            }
            _ => {}
        }
    }
    if let (Some((list, item)), true) = (protocol.correlated_item(message), asks) {
        let path = [list.to_string(), item.to_string()];
        let items = match &given {
            Given::Fields(all) => all.iter().find(|(name, _)| name == list).map(|(_, given)| given),
            _ => None,
        };
        if let Some(Given::Fields(items)) = items
            && items.iter().any(|(name, _)| name.eq_ignore_ascii_case(item))
        {
            let (place, _) = place_of(fields, &path, name.place);
            return sets_it(cx, &path.join("."), place);
        }
    }
    match protocol.prepare(message, &given) {
        Ok(template) if !asks => {
            Some(Composed { template: protocol.unasked(template), leaves: leaves.into() })
        }
        Ok(template) => Some(Composed { template, leaves: leaves.into() }),
        Err(mistake) => {
            let kinds = Kinds::declared(protocol, &[message]);
            wrong_field(cx, &kinds, (fields, name.place), mistake)
        }
    }
}

fn sets_it<T>(cx: &mut Context<'_>, field: &str, place: Place) -> Option<T> {
    let label = say!("the reply has the same value");
    let help = say!("remove it; set it only in a `send` that replies to a request from the target");
    cx.refuse("bad-field", place, say!("throng sets `{field}` in requests"), label, help)
}

/// In a handler: the number of the received message, if the sent message replies to it.
fn carried(
    cx: &mut Context<'_>,
    protocol: &Protocol,
    message: MessageId,
    place: Place,
) -> Option<Text> {
    let answers = &protocol.info(message).answers;
    let kinds = cx.session.heard_kinds()?;
    let came = kinds.ids().iter().find(|came| answers.contains(came))?;
    let number = protocol.correlator(*came)?.to_owned();
    let value = cx.expression_of(&format!("message.{number}"), place)?;
    Some(Text { segments: vec![Segment::Value { value, escape: Escape::None }] })
}

/// The selected messages, and a name for them.
pub(crate) struct Meant {
    pub(crate) which: Which,
    pub(crate) name: Option<String>,
}

const PATTERN_HELP: Said =
    say!("write a message name, `{{said: {{from: 5}}}}`, a list of names, or `any`");

/// Reads `said`, `[done, failed]` or `{said: {from: 5}}`. The outer None means a pattern for text,
/// not for declared messages.
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
        Kind::Scalar { .. } => {
            Some(cx.text(node, say!("the name of a message")).and_then(|name| {
                let id = find_message(cx, protocol, &name, node.place)?;
                meant(vec![id], Vec::new(), Some(name))
            }))
        }
        Kind::List(items) => Some(read_names(cx, protocol, node, items)),
        Kind::Map(entries) => {
            let is_text = |key: &Key| {
                protocol.message(&key.text).is_none()
                    && (keys::CONDITIONS.find(&key.text).is_some()
                        || keys::EXPECTATION.find(&key.text).is_some())
            };
            if !entries.is_empty() && entries.iter().all(|(key, _)| is_text(key)) {
                return None;
            }
            let entries = cx.entries(node, Said::default(), Said::default()).unwrap_or_default();
            let [(key, fields)] = entries[..] else {
                return Some(cx.wrong_type(node, say!("a message with its fields"), PATTERN_HELP));
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
    let kinds = Kinds::declared(protocol, &[id]);
    let mut checks = Vec::new();
    if !fields.is_null() {
        if !matches!(fields.kind, Kind::Map(_)) {
            let help = say!("write `{{{}: {{field: value}}}}`", shorten(&key.text));
            return cx.wrong_type(fields, say!("a map of fields"), help);
        }
        let answer = Answer::Fields(&kinds);
        answer.read(cx, |cx| read_field_map(cx, fields, &kinds, &mut checks));
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
        let message = say!("there is no message to wait for");
        return cx.refuse("empty", node.place, message, say!("empty"), PATTERN_HELP);
    }
    let mut ids = Vec::new();
    let mut names = Vec::new();
    for item in items {
        let name = cx.text(item, say!("the name of a message"))?;
        let id = find_message(cx, protocol, &name, item.place)?;
        if !ids.contains(&id) {
            ids.push(id);
            names.push(name);
        }
    }
    let which = Which { messages: ids.into(), checks: Vec::new() };
    Some(Meant { which, name: Some(names.join(" or ")) })
}

/// The reply of a request: one of the declared replies, or of those that `expect` names.
pub(crate) fn check_kind(protocol: &Protocol, wanted: &[MessageId]) -> Check {
    let names: Vec<&str> = wanted.iter().map(|id| &*protocol.info(*id).name).collect();
    Check { extractor: Extractor::Kind(wanted.into(), names.join("/")), matcher: Matcher::Present }
}
