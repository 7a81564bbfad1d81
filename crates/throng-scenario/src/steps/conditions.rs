//! Patterns that select received messages.

use throng_base::Said;
use throng_program::{Check, Escape, Extractor, Matcher, Text, Which};

use crate::ast::{self, Field, Map as _};
use crate::builtin;
use crate::message::answer::Answer;
use crate::message::declared::{self, Meant};
use crate::message::fields::read_field_map;
use crate::message::json::read_json_checks;
use crate::message::matchers::read_regex;
use crate::reach::Reach;
use crate::read::Context;
use crate::scope::{Kinds, Spoken};
use crate::syntax::{Kind, Node};
use crate::words::shorten;

/// A pattern of declared messages. The outer None means a pattern of texts.
pub(crate) fn read_pattern(
    cx: &mut Context<'_>,
    reach: &Reach,
    node: &Node,
) -> Option<Option<Meant>> {
    match &reach.spoken {
        Spoken::Declared(protocol) => declared::read_pattern(cx, protocol, node),
        Spoken::Call(called) => Some(read_reply_conditions(cx, &called.replies(), node)),
        _ => None,
    }
}

/// The expected fields of a reply on a streaming call: `any`, or `{text: hello}`.
pub(crate) fn read_reply_conditions(
    cx: &mut Context<'_>,
    replies: &Kinds,
    node: &Node,
) -> Option<Meant> {
    let mut meant = Meant { which: Which::default(), name: None };
    match &node.kind {
        Kind::Scalar { text, .. } if text == "any" => return Some(meant),
        Kind::Map(_) => {}
        _ => {
            let help = say!("write `any`, or fields of the reply: `{{text: hello}}`");
            return cx.wrong_type(node, say!("a reply pattern"), help);
        }
    }
    let checks = &mut meant.which.checks;
    let answer = Answer::Fields(replies);
    answer.read(cx, |cx| read_field_map(cx, node, replies, checks));
    meant.name = checks.first().and_then(name_of_field);
    // After a mistake it must not become a pattern that always matches.
    (!checks.is_empty()).then_some(meant)
}

/// A pattern of messages, and its name.
pub(crate) fn read_conditions(cx: &mut Context<'_>, node: &Node) -> Option<Meant> {
    const HELP: Said = say!(
        "write `any`, `{{json: {{cmd: msg}}}}`, `{{text: hello}}` or `{{pattern: 'msg|push'}}`"
    );
    let mut meant = Meant { which: Which::default(), name: None };
    if !matches!(&node.kind, Kind::Map(entries) if !entries.is_empty()) {
        let is_word = |word| matches!(&node.kind, Kind::Scalar { text, .. } if text == word);
        return match is_word("any") {
            true => Some(meant),
            // It names a message of an unknown protocol.
            false if matches!(cx.scope.spoken, Spoken::Unknown) => None,
            false => cx.wrong_type(node, say!("a message pattern"), HELP),
        };
    }
    let fields = ast::Looks::read(cx, node)?;
    if let Some(node) = fields.any.node() {
        if !cx.bool(node)? {
            return cx.bad_value(node, say!("`any` must be `true` or omitted"), HELP);
        }
        ast::one_of(cx, &fields.all().collect::<Vec<_>>());
    }
    let checks = &mut meant.which.checks;
    if let Some(node) = fields.text.node() {
        let text = cx.template(node, say!("text"), Escape::None)?;
        meant.name = name_of(&text);
        checks.push(Check { extractor: Extractor::Body, matcher: Matcher::Contains(text) });
    }
    if let Some(node) = fields.json.node() {
        let before = checks.len();
        cx.with_answer(|cx| read_json_checks(cx, node, checks));
        meant.name = meant.name.or(checks.get(before).and_then(name_of_field));
    }
    if let Some(node) = fields.pattern.node() {
        let regex = read_regex(cx, node)?;
        meant.name = meant.name.or_else(|| Some(regex.as_str().to_string()));
        checks.push(Check { extractor: Extractor::Body, matcher: Matcher::Matches(regex) });
    }
    let before = checks.len();
    read_headers(cx, (fields.event, fields.all()), checks)?;
    if let Some(Check { matcher: Matcher::Equals(name) | Matcher::Topic(name), .. }) =
        checks.get(before)
    {
        meant.name = name_of(name).or(meant.name);
    }
    // After a mistake it must not become a pattern that always matches.
    (!meant.which.checks.is_empty() || fields.any.is_there()).then_some(meant)
}

fn name_of(text: &Text) -> Option<String> {
    let literal = String::from_utf8_lossy(text.as_literal()?);
    (!literal.trim().is_empty()).then(|| shorten(&literal))
}

/// `cmd=msg`
fn name_of_field(check: &Check) -> Option<String> {
    let path = match &check.extractor {
        Extractor::Json(path) => path.to_string(),
        Extractor::Proto(path) => path.written.to_string(),
        _ => return None,
    };
    let value = match &check.matcher {
        Matcher::Equals(text) => name_of(text)?,
        Matcher::Number(_, number) => number.to_text().to_string(),
        Matcher::Bool(value) => value.to_string(),
        _ => return Some(shorten(&path)),
    };
    Some(format!("{}={value}", shorten(&path)))
}

/// The conditions of a pattern on metadata, outside of the content.
pub(crate) fn read_headers<'n>(
    cx: &mut Context<'_>,
    (event, all): (Field<'n>, impl Iterator<Item = Field<'n>>),
    checks: &mut Vec<Check>,
) -> Option<()> {
    read_event_name(cx, event, checks)?;
    builtin::read_conditions(cx, all, checks)
}

/// The event name that a pattern requires, if any.
fn read_event_name(cx: &mut Context<'_>, field: Field<'_>, checks: &mut Vec<Check>) -> Option<()> {
    let Some((key, node)) = field.entry() else { return Some(()) };
    if !matches!(cx.scope.spoken, Spoken::Events | Spoken::Unknown) {
        let message = say!("only events of an event stream have a name");
        let help = say!("check `json` or `text`, or write `events: true` in the `connect` step");
        return cx.refuse("step-scheme", key.place, message, say!("not an event stream"), help);
    }
    let name = cx.template(node, say!("the name of an event"), Escape::None)?;
    checks.push(Check {
        extractor: Extractor::Header("event".into()),
        matcher: Matcher::Equals(name),
    });
    Some(())
}
