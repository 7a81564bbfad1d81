//! Long-lived connections: `connect`, `send`, `expect`, `request`.

use std::time::Duration;

use throng_program::{
    Check, Connect, Expect, Instruction, Message, MessageKind, Pick, Request, Scheme, Send,
    StepKind, Text, Until, Want,
};

use crate::body::{read_hex, read_text};
use crate::checks::{self, Answer, read_checks};
use crate::headers::{check_path, is_token, read_step_headers};
use crate::json::{json_text, read_json_checks};
use crate::keys;
use crate::read::{Context, Fields, shorten};
use crate::save::read_saves;
use crate::steps::{Rows, read_failing, read_reconnect, read_timeout};
use crate::syntax::{Key, Kind, Node};
use crate::template::Escape;

pub(crate) fn read_connect(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    scheme: Option<Scheme>,
    rows: &mut Rows,
) -> Option<Instruction> {
    let websocket = scheme.is_none_or(|scheme| matches!(scheme, Scheme::Ws | Scheme::Wss));
    let node = fields.get("connect").filter(|node| !node.is_null());
    let path = match node {
        Some(node) if !websocket => {
            let error = cx
                .error("step-scheme", "a TCP connection has no path".into(), node.place)
                .label("only WebSocket has it");
            cx.fail(error.help("write `connect` alone"))
        }
        Some(node) => cx
            .template(node, "the path of the upgrade", Escape::Path)
            .filter(|path| check_path(cx, node, path).is_some()),
        None => Some(Text::literal("/")),
    };
    for name in ["headers", "protocols", "auth"] {
        if let Some(key) = fields.key(name).filter(|_| !websocket) {
            let message = format!("a TCP connection has no `{name}`");
            let error = cx.error("step-scheme", message, key.place).label("only WebSocket has it");
            cx.note(error.help("remove it"));
        }
    }
    let headers = if websocket { read_step_headers(cx, fields) } else { Vec::new() };
    let protocols = fields.get("protocols").map(|node| read_protocols(cx, node));
    let timeout = match fields.get("timeout") {
        Some(node) => cx.time_limit(node),
        None => Some(cx.defaults.connect_timeout.unwrap_or(Duration::from_secs(10))),
    };
    let step = rows.row(cx, fields, StepKind::Connect, None)?;
    let (path, timeout) = (path?, timeout?);
    let protocols = protocols.unwrap_or_default();
    let failing = read_failing(cx, fields);
    let reconnect = fields.get("reconnect").and_then(|node| read_reconnect(cx, node));
    let connect = Connect { step, path, headers, protocols, timeout, failing, reconnect };
    Some(Instruction::Connect(Box::new(connect)))
}

fn read_protocols(cx: &mut Context<'_>, node: &Node) -> Vec<String> {
    let nodes = match &node.kind {
        Kind::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut protocols = Vec::new();
    for node in nodes {
        match cx.text(node, "the name of a sub-protocol") {
            Some(name) if is_token(&name) => protocols.push(name),
            Some(name) => {
                let message = format!("`{}` cannot be the name of a sub-protocol", shorten(&name));
                let error = cx.error("bad-header", message, node.place).label("not a token");
                cx.note(error.help("write `protocols: [chat.v1]`: letters, digits, `.` and `-`"));
            }
            None => {}
        }
    }
    protocols
}

pub(crate) fn read_send(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    rows: &mut Rows,
) -> Option<Instruction> {
    let message = read_message(cx, fields.get("send")?);
    let step = rows.row(cx, fields, StepKind::Send, None)?;
    let failing = read_failing(cx, fields);
    Some(Instruction::Send(Box::new(Send { step, message: message?, failing })))
}

pub(crate) fn read_expect(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    rows: &mut Rows,
) -> Option<Instruction> {
    let mut checks = Vec::new();
    let until = read_expectation(cx, fields.get("expect")?, &mut checks);
    read_message_checks(cx, fields, &mut checks);
    let saves = read_saves(cx, fields, Answer::Message);
    let timeout = read_timeout(cx, fields);
    let step = rows.row(cx, fields, StepKind::Expect, None)?;
    let failing = read_failing(cx, fields);
    let (until, timeout) = (until?, timeout?);
    let expect = Expect { step, until, checks, saves, timeout, failing };
    Some(Instruction::Expect(Box::new(expect)))
}

pub(crate) fn read_request(
    cx: &mut Context<'_>,
    fields: &Fields<'_>,
    rows: &mut Rows,
) -> Option<Instruction> {
    let message = read_message(cx, fields.get("request")?);
    let mut checks = Vec::new();
    let until = match fields.get("expect") {
        Some(node) => read_expectation(cx, node, &mut checks),
        None => Some(Until::Any),
    };
    read_message_checks(cx, fields, &mut checks);
    let saves = read_saves(cx, fields, Answer::Message);
    let timeout = read_timeout(cx, fields);
    let step = rows.row(cx, fields, StepKind::Request, None)?;
    let (message, until, timeout) = (message?, until?, timeout?);
    let failing = read_failing(cx, fields);
    let request = Request { step, message, until, checks, saves, timeout, failing };
    Some(Instruction::Request(Box::new(request)))
}

fn read_message_checks(cx: &mut Context<'_>, fields: &Fields<'_>, checks: &mut Vec<Check>) {
    if let Some(node) = fields.get("check") {
        if matches!(&node.kind, Kind::Map(entries) if entries.is_empty()) {
            checks::empty_check(cx, node.place);
        }
        checks.extend(read_checks(cx, node, Answer::Message));
    }
}

const MESSAGE_HELP: &str = "write `{text: hello}`, `{json: {…}}`, `{hex: 00ff}` or `{file: path}`";

fn read_message(cx: &mut Context<'_>, node: &Node) -> Option<Message> {
    if !matches!(node.kind, Kind::Map(_)) {
        // The bare name of a declared message.
        if cx.has_protocol {
            return None;
        }
        return cx.wrong_type(node, "a message", MESSAGE_HELP);
    }
    let fields = Fields::read(cx, node, &keys::MESSAGE)?;
    let Some((key, node)) = fields.one_of(cx, &["text", "json", "hex", "binary", "file"]) else {
        return match fields.is_empty() {
            true => cx.wrong_type(node, "a message", MESSAGE_HELP),
            false => None,
        };
    };
    read_content(cx, key, node)
}

/// The message behind one of the keys `text`, `json`, `hex`, `binary` and `file`.
pub(crate) fn read_content(cx: &mut Context<'_>, key: &Key, node: &Node) -> Option<Message> {
    let text = |content| Message { kind: MessageKind::Text, content };
    let binary =
        |bytes: Vec<u8>| Message { kind: MessageKind::Binary, content: Text::literal(bytes) };
    match key.text.as_str() {
        "text" => read_text(cx, node, "a text message").map(text),
        "json" => json_text(cx, node).map(text),
        "file" => cx.file(node).map(|(_, bytes)| match std::str::from_utf8(&bytes) {
            Ok(content) => text(Text::literal(content)),
            Err(_) => binary(bytes.to_vec()),
        }),
        _ => read_hex(cx, node).map(binary),
    }
}

const EXPECT_HELP: &str = "write `any`, `{text: ok}`, `{json: {code: 0}}`, `{length: 4}`, \
                           `{delimiter: \"\\n\"}` or `{pattern: 'ok|error'}`";

/// Where the answer ends; what it has to contain is added to the checks.
fn read_expectation(cx: &mut Context<'_>, node: &Node, checks: &mut Vec<Check>) -> Option<Until> {
    if let Kind::Scalar { text, .. } = &node.kind
        && text == "any"
    {
        return Some(Until::Any);
    }
    if !matches!(&node.kind, Kind::Map(entries) if !entries.is_empty()) {
        return cx.wrong_type(node, "what the answer has to be", EXPECT_HELP);
    }
    let fields = Fields::read(cx, node, &keys::EXPECTATION)?;
    if let Some(node) = fields.get("text") {
        let text = cx.template(node, "a text", Escape::None)?;
        checks.push(Check { pick: Pick::Body, want: Want::Contains(text) });
    }
    if let Some(node) = fields.get("json") {
        cx.with_answer(|cx| read_json_checks(cx, node, checks));
    }
    let Some((key, node)) = fields.one_of(cx, &["any", "length", "delimiter", "pattern"]) else {
        return Some(Until::Any);
    };
    match key.text.as_str() {
        "length" => match cx.count(node)? {
            0 => cx.bad_value(node, "an answer of no bytes never comes", "write `{length: 4}`"),
            length => Some(Until::Length(length)),
        },
        "delimiter" => read_delimiter(cx, node),
        "pattern" => checks::read_regex(cx, node).map(Until::Pattern),
        _ => match cx.bool(node)? {
            true => Some(Until::Any),
            false => cx.bad_value(node, "`any` is either `true` or not there", EXPECT_HELP),
        },
    }
}

fn read_delimiter(cx: &mut Context<'_>, node: &Node) -> Option<Until> {
    let text = cx.text(node, "a delimiter")?;
    if text.is_empty() {
        return cx.bad_value(node, "a delimiter has at least one character", "write `\"\\n\"`");
    }
    if let Kind::Scalar { text: written, .. } = &node.kind
        && ["\\n", "\\r", "\\0", "\\t", "\\x"].iter().any(|escape| written.contains(escape))
        && !cx.written(node.place).starts_with('"')
    {
        let warning = cx
            .warning("literal-backslash", "this delimiter has a backslash".into(), node.place)
            .label("only double quotes make it a line end")
            .help("write `delimiter: \"\\r\\n\"`");
        cx.note(warning);
    }
    Some(Until::Delimiter(text.into_bytes().into()))
}
