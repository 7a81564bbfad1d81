//! `stay`: a user on its connection, its heartbeat, and what the target may say meanwhile.

use std::time::Duration;

use throng_program::{
    Beat, Check, Handler, Heartbeat, Instruction, Pick, Scheme, Stay, StepKind, Text, Want,
};

use crate::checks::read_regex;
use crate::json::read_json_checks;
use crate::keys;
use crate::message::read_content;
use crate::read::{Context, Fields, shorten};
use crate::steps::failing::read_loss;
use crate::steps::pause::{Wait, WaitKind};
use crate::steps::rows::Rows;
use crate::syntax::{Kind, Node};
use crate::template::Escape;

/// When a heartbeat is lost, unless the next one is due before.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// The most that a user listens for at a time.
const HANDLERS_MAX: usize = 100;

const HEARTBEAT_HELP: &str =
    "write `heartbeat: {ping: true, every: 30s}` or `heartbeat: {text: hello, every: 30s}`";

const ON_HELP: &str = "write `on: [{message: {json: {cmd: msg}}, name: broadcast}]`";

pub(super) fn read_stay(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    scheme: Option<Scheme>,
    rows: &mut Rows,
    waits: &mut Vec<Wait>,
) -> Option<Instruction> {
    let node = fields.get("stay")?;
    let forever = matches!(&node.kind, Kind::Scalar { text, .. } if text == "forever");
    let time = match forever {
        true => None,
        false => Some(cx.duration(node)?),
    };
    if let Some(time) = time {
        waits.push(Wait { kind: WaitKind::Stay, time, place: node.place });
    }
    let step = rows.row(cx, fields, StepKind::Stay, None)?;
    let failing = read_loss(cx, fields);
    let (mut heartbeat, mut handlers) = (None, Vec::new());
    if !has_no_connection(cx, fields, scheme) {
        if let Some(node) = fields.get("heartbeat") {
            heartbeat = Some(read_heartbeat(cx, node, scheme, rows)?);
        }
        if let Some(node) = fields.get("on") {
            handlers = read_handlers(cx, node, rows);
        }
    }
    Some(Instruction::Stay(Box::new(Stay { step, time, heartbeat, handlers, failing })))
}

/// Users of HTTP have no connection on which something could be said; this says so.
fn has_no_connection(cx: &mut Context<'_>, fields: &Fields<'_>, scheme: Option<Scheme>) -> bool {
    let Some(scheme) = scheme.filter(|one| matches!(one, Scheme::Http | Scheme::Https)) else {
        return false;
    };
    for name in ["heartbeat", "on"] {
        let Some(key) = fields.key(name) else { continue };
        let message = format!("`{name}` does not go with a `{}` target", scheme.word());
        let error = cx.error("step-scheme", message, key.place);
        let error = error.label(format!("the target is `{}://`", scheme.word()));
        cx.note(error.help("it needs a target with `ws://`, `wss://`, `tcp://` or `tls://`"));
    }
    true
}

fn read_heartbeat(
    cx: &mut Context<'_>,
    node: &Node,
    scheme: Option<Scheme>,
    rows: &mut Rows,
) -> Option<Heartbeat> {
    if !matches!(node.kind, Kind::Map(_)) {
        return cx.wrong_type(node, "a heartbeat", HEARTBEAT_HELP);
    }
    let fields = Fields::read(cx, node, &keys::HEARTBEAT)?;
    let beat = read_beat(cx, &fields, scheme);
    let every = fields.need(cx, "every", HEARTBEAT_HELP).and_then(|node| cx.time_limit(node));
    let lost_after = every.and_then(|every| read_lost_after(cx, &fields, every));
    let answer = read_answer(cx, &fields, lost_after == Some(None));
    let step = rows.row(cx, &fields, StepKind::Heartbeat, None);
    Some(Heartbeat {
        step: step?,
        beat: beat?,
        every: every?,
        answer: answer?,
        lost_after: lost_after?,
    })
}

fn read_beat(cx: &mut Context<'_>, fields: &Fields<'_>, scheme: Option<Scheme>) -> Option<Beat> {
    let keys = ["ping", "text", "json", "hex", "binary", "file"];
    let Some((key, node)) = fields.one_of(cx, &keys) else {
        // A private protocol has messages of its own, which are answered elsewhere.
        if !cx.has_protocol && !keys.iter().any(|key| fields.is_meant(key)) {
            let message = "a heartbeat sends nothing yet".to_string();
            let error = cx.error("missing-key", message, fields.place);
            cx.note(error.label("no message").help(HEARTBEAT_HELP));
        }
        return None;
    };
    if key.text != "ping" {
        return read_content(cx, key, node).map(Beat::Message);
    }
    if !cx.bool(node)? {
        return cx.bad_value(node, "`ping` is either `true` or not there", HEARTBEAT_HELP);
    }
    if let Some(scheme) = scheme.filter(|one| !matches!(one, Scheme::Ws | Scheme::Wss)) {
        let message = format!("`ping` does not go with a `{}` target", scheme.word());
        let error = cx.error("step-scheme", message, key.place).label("only WebSocket has it");
        return cx.fail(error.help("write a message: `heartbeat: {text: hello, every: 30s}`"));
    }
    Some(Beat::Ping)
}

/// None where no answer is expected.
fn read_lost_after(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    every: Duration,
) -> Option<Option<Duration>> {
    let Some(node) = fields.get("lost_after") else { return Some(Some(every.min(LOST_AFTER))) };
    if matches!(&node.kind, Kind::Scalar { text, .. } if text == "never") {
        return Some(None);
    }
    let lost_after = cx.time_limit(node)?;
    if lost_after > every {
        let message = "the next heartbeat is due before this one is lost";
        return cx.bad_value(node, message, "write at most the time of `every`");
    }
    Some(Some(lost_after))
}

fn read_answer(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    is_unanswered: bool,
) -> Option<Vec<Check>> {
    let Some(node) = fields.get("expect") else { return Some(Vec::new()) };
    let place = fields.key("expect").map_or(node.place, |key| key.place);
    // sentences
    let other = match is_unanswered {
        true => Some(("`lost_after: never` and `expect` exclude each other", "no answer counts")),
        false if fields.get("ping").is_some() => {
            Some(("`ping` and `expect` exclude each other", "the answer of a ping is the pong"))
        }
        false => None,
    };
    if let Some((message, label)) = other {
        let error = cx.error("conflicting-keys", message.to_string(), place);
        return cx.fail(error.label(label).help("keep the one that is meant"));
    }
    read_looks(cx, node).map(|looks| looks.checks)
}

fn read_handlers(cx: &mut Context<'_>, node: &Node, rows: &mut Rows) -> Vec<Handler> {
    let items = cx.items(node, "a list of messages", ON_HELP).unwrap_or_default();
    if items.is_empty() && matches!(node.kind, Kind::List(_)) {
        let error = cx.error("empty", "there is no message to listen for".into(), node.place);
        cx.note(error.label("empty").help(ON_HELP));
    }
    if let Some(item) = items.get(HANDLERS_MAX) {
        let message = format!("more than {HANDLERS_MAX} messages to listen for");
        let error = cx.error("too-many", message, item.place).label("this one is too much");
        cx.note(error.help("`message: any` counts all that no other takes"));
    }
    let mut handlers: Vec<Handler> = Vec::new();
    for item in items.iter().take(HANDLERS_MAX) {
        let takes_all = handlers.iter().any(|handler| handler.message.is_empty());
        let Some(handler) = read_handler(cx, item, rows) else { continue };
        if takes_all {
            let message = "an item before takes every message".to_string();
            let warning = cx.warning("never-runs", message, item.place);
            cx.note(warning.label("no message ever comes here").help("write `message: any` last"));
        }
        handlers.push(handler);
    }
    handlers
}

fn read_handler(cx: &mut Context<'_>, node: &Node, rows: &mut Rows) -> Option<Handler> {
    let fields = Fields::read(cx, node, &keys::HANDLER)?;
    let looks = fields.need(cx, "message", ON_HELP).and_then(|node| read_looks(cx, node))?;
    let step = rows.row(cx, &fields, StepKind::Message, looks.name.as_deref())?;
    Some(Handler { step, message: looks.checks })
}

/// What a message looks like, and what to call it.
#[derive(Default)]
struct Looks {
    checks: Vec<Check>,
    name: Option<String>,
}

fn read_looks(cx: &mut Context<'_>, node: &Node) -> Option<Looks> {
    const HELP: &str =
        "write `any`, `{json: {cmd: msg}}`, `{text: hello}` or `{pattern: 'msg|push'}`";
    if !matches!(&node.kind, Kind::Map(entries) if !entries.is_empty()) {
        let is_word = |word| matches!(&node.kind, Kind::Scalar { text, .. } if text == word);
        return match is_word("any") {
            true => Some(Looks::default()),
            // The bare name of a declared message.
            false if cx.has_protocol => None,
            false => cx.wrong_type(node, "what a message looks like", HELP),
        };
    }
    let fields = Fields::read(cx, node, &keys::LOOKS)?;
    if let Some(node) = fields.get("any") {
        if !cx.bool(node)? {
            return cx.bad_value(node, "`any` is either `true` or not there", HELP);
        }
        fields.one_of(cx, &["any", "text", "json", "pattern"]);
    }
    let mut looks = Looks::default();
    if let Some(node) = fields.get("text") {
        let text = cx.template(node, "a text", Escape::None)?;
        looks.name = name_of(&text);
        looks.checks.push(Check { pick: Pick::Body, want: Want::Contains(text) });
    }
    if let Some(node) = fields.get("json") {
        let before = looks.checks.len();
        cx.with_answer(|cx| read_json_checks(cx, node, &mut looks.checks));
        looks.name = looks.name.or(looks.checks.get(before).and_then(name_of_field));
    }
    if let Some(node) = fields.get("pattern") {
        let regex = read_regex(cx, node)?;
        looks.name = looks.name.or_else(|| Some(regex.as_str().to_string()));
        looks.checks.push(Check { pick: Pick::Body, want: Want::Matches(regex) });
    }
    // What is wrong inside was said already; it is not a message that always fits.
    (!looks.checks.is_empty() || fields.get("any").is_some()).then_some(looks)
}

fn name_of(text: &Text) -> Option<String> {
    let literal = String::from_utf8_lossy(text.as_literal()?);
    (!literal.trim().is_empty()).then(|| shorten(&literal))
}

/// `cmd=msg`
fn name_of_field(check: &Check) -> Option<String> {
    let Pick::Json(path) = &check.pick else { return None };
    let value = match &check.want {
        Want::Equals(text) => name_of(text)?,
        Want::Number(_, number) => number.to_string(),
        Want::Bool(value) => value.to_string(),
        _ => return Some(shorten(&path.to_string())),
    };
    Some(format!("{}={value}", shorten(&path.to_string())))
}
