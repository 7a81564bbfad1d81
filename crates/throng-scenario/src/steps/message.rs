//! Long-lived connections: `connect`, `send`, `expect`, `request`.

use std::sync::Arc;
use std::time::Duration;

use throng_base::Said;
use throng_program::{
    Check, Connect, Content, EventRequest, Expect, Extractor, Matcher, Message, Request, Segment,
    Send, Statement, StepKind, Text, Until, Which,
};
use throng_protocol::framed::{MessageId, Protocol};

use crate::ast::{self, Field, Map as _};
use crate::builtin::{self, read_message_of_call};
use crate::keys;
use crate::message::answer::Answer;
use crate::message::body::read_body;
use crate::message::checks::read_checks;
use crate::message::declared::{self, check_kind, is_message, read_declared};
use crate::message::headers::{
    Headers, check_path, is_token, read_step_cookies, read_step_headers,
};
use crate::message::json::read_json_checks;
use crate::message::save::read_saves;
use crate::native;
use crate::reach::Reach;
use crate::read::Context;
use crate::read::template::Escape;
use crate::scope::Kinds;
use crate::step::content::read_content;
use crate::step::failing::{read_failing, read_reconnect, read_timeout};
use crate::step::rows::Rows;
use crate::step::via::Via;
use crate::steps::conditions::{read_headers, read_pattern, read_reply_conditions};
use crate::steps::ends::read_close;
use crate::steps::http::read_request_line;
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::{self, shorten};

pub(crate) fn read_connect(
    cx: &mut Context<'_>,
    fields: &ast::Connect<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let Via { link, reach } = via;
    let line = read_opening(cx, fields, reach);
    refuse_strangers(cx, fields, reach);
    let (mut headers, cookies) = match reach.opens_with("headers") {
        true => (read_upgrade_headers(cx, fields), read_step_cookies(cx, None)),
        false => (Vec::new(), Vec::new()),
    };
    let (method, path) = line.unzip();
    let request = match reach.is_event_stream() {
        true => event_request(cx, method.flatten(), fields, &mut headers),
        false => None,
    };
    let mut protocols = fields.protocols.node().map(|node| read_protocols(cx, node));
    if let Some(named) = reach.native().by_name.filter(|_| reach.is_websocket()) {
        protocols.get_or_insert_with(|| vec![Text::literal(named.subprotocol)]);
    }
    let timeout = match fields.timeout.node() {
        Some(node) => cx.time_limit(node),
        None => Some(cx.scope.defaults.connect_timeout.unwrap_or(Duration::from_secs(10))),
    };
    let step = rows.row(cx, fields, StepKind::Connect, None)?;
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let reconnect = fields.reconnect.node().and_then(|node| read_reconnect(cx, node));
    let mut connect = Connect {
        step,
        link,
        path: path.unwrap_or_default(),
        headers,
        cookies,
        request: request.map(Box::new),
        protocols: protocols.unwrap_or_default(),
        options: None,
        timeout: timeout?,
        failing,
        reconnect,
    };
    builtin::ALL.iter().try_for_each(|one| (one.opens)(cx, fields, reach, &mut connect))?;
    Some(Statement::Connect(Arc::new(connect)))
}

/// The value of `connect`: the path, optionally preceded by the method.
fn read_opening(
    cx: &mut Context<'_>,
    fields: &ast::Connect<'_>,
    reach: &Reach,
) -> Option<(Option<String>, Text)> {
    let Some(node) = fields.connect.node().filter(|node| !node.is_null()) else {
        let path = reach.native().by_name.map_or("/", |named| named.path);
        return Some((None, Text::literal(path)));
    };
    if !reach.opens_with("connect") {
        let label = say!("supported only with WebSocket");
        let help = say!("write `connect` without a path");
        return cx.refuse("step-scheme", node.place, reach.has_no_path(), label, help);
    }
    if reach.called().is_some() {
        return Some((None, Text::default()));
    }
    if has_method(node) && reach.is_event_stream() {
        return read_request_line(cx, node).map(|(method, path)| (Some(method), path));
    }
    if has_method(node) {
        let message = say!("a WebSocket upgrade request has no method");
        let help = say!("write only the path, or add `events: true` for an event stream");
        return cx.refuse("bad-path", node.place, message, say!("it is always a GET"), help);
    }
    let path = cx.template(node, say!("the upgrade path"), Escape::Path)?;
    check_path(cx, node, &path)?;
    Some((None, path))
}

/// Reports keys that this kind of connection does not support.
fn refuse_strangers(cx: &mut Context<'_>, fields: &ast::Connect<'_>, reach: &Reach) {
    // The value of `connect` itself is checked by its reader.
    let opens = |key: &&Key| key.text != "connect" && native::of_key(&key.text).is_some();
    for key in fields.all().filter_map(Field::key).filter(opens) {
        if !reach.opens_with(&key.text) {
            let error = cx.error("step-scheme", reach.has_no(&key.text), key.place);
            let (label, help) = instead_of(&key.text, reach);
            cx.note(error.label(label).help(help));
        }
    }
}

/// The diagnostic for a key of other connections: label and help.
fn instead_of(key: &str, reach: &Reach) -> (Said, Said) {
    if let Some((_, label, help)) = reach.native().instead.iter().find(|row| row.0 == key) {
        return ((*label).clone(), (*help).clone());
    }
    let native = native::of_key(key).unwrap_or(&native::WEBSOCKET);
    match native.by_name.filter(|_| reach.is_websocket()) {
        Some(named) => {
            (native.not_spoken(), say!("add `protocol: {}` next to `target`", named.word))
        }
        None => (native.only.clone(), say!("remove it")),
    }
}

fn bodies<'n>(fields: &ast::Connect<'n>) -> [Field<'n>; 3] {
    [fields.json, fields.form, fields.body]
}

/// True if a method precedes the path.
fn has_method(node: &Node) -> bool {
    let Kind::Scalar { text, .. } = &node.kind else { return false };
    text.split_once(char::is_whitespace).is_some_and(|(method, _)| {
        !method.is_empty() && method.chars().all(|c| c.is_ascii_uppercase())
    })
}

/// The request of an event stream, if it is not a GET without a body.
fn event_request(
    cx: &mut Context<'_>,
    method: Option<String>,
    fields: &ast::Connect<'_>,
    headers: &mut Headers,
) -> Option<EventRequest> {
    let is_get = method.as_deref().is_none_or(|method| method == "GET");
    let given = bodies(fields);
    if let Some(key) = given.iter().find_map(|field| field.key()).filter(|_| is_get) {
        let message = say!("a GET request has no body");
        let label = say!("the request is a GET");
        let help = say!("write the method: `connect: POST /chat`");
        return cx.refuse("conflicting-keys", key.place, message, label, help);
    }
    let body = read_body(cx, &given, headers);
    method.filter(|_| !is_get).map(|method| EventRequest { method, body })
}

/// The headers of the request that opens a connection.
fn read_upgrade_headers(cx: &mut Context<'_>, fields: &ast::Connect<'_>) -> Headers {
    let (headers, digest) = read_step_headers(cx, (fields.headers, fields.auth));
    if let (Some(_), Some(node)) = (digest, fields.auth.node()) {
        let message = say!("digest authentication is supported only in `http` steps");
        let help = say!(
            "log in with an `http` step and send the token that it returns, or leave out `scheme`"
        );
        let _: Option<()> = cx.bad_value(node, message, help);
    }
    headers
}

fn read_protocols(cx: &mut Context<'_>, node: &Node) -> Vec<Text> {
    let nodes = node.one_or_more();
    let mut protocols = Vec::new();
    for node in nodes {
        let Some(name) = cx.template(node, say!("the name of a subprotocol"), Escape::None) else {
            continue;
        };
        let literal = |segment: &Segment| match segment {
            Segment::Literal(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Segment::Value { .. } | Segment::Given(_) => None,
        };
        let wrong = name.segments.iter().filter_map(literal).find(|part| !is_token(part));
        let wrong = wrong.or_else(|| name.segments.is_empty().then(String::new));
        match wrong {
            None => protocols.push(name),
            Some(name) => {
                let message = say!("`{}` is not a valid subprotocol name", shorten(&name));
                let help = say!("write `protocols: [chat.v1]`: letters, digits, `.` and `-`");
                cx.report("bad-header", node.place, message, say!("not a valid HTTP token"), help);
            }
        }
    }
    protocols
}

pub(crate) fn read_send(
    cx: &mut Context<'_>,
    fields: &ast::Send<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let link = via.link;
    let spoken = read_message(cx, fields.send, fields.cut, false);
    let name = spoken.as_ref().and_then(|spoken| spoken.name.as_deref());
    let step = rows.row(cx, fields, StepKind::Send, name)?;
    let timeout = read_timeout(cx, fields.timeout);
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let (spoken, timeout) = (spoken?, timeout?);
    rows.speak(step, link, spoken.id);
    let message = spoken.message;
    Some(Statement::Send(Arc::new(Send { step, link, message, timeout, failing })))
}

pub(crate) fn read_expect(
    cx: &mut Context<'_>,
    fields: &ast::Expect<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let Via { link, reach } = via;
    let node = fields.expect.node()?;
    if let Some(close) = close_of(cx, node, reach) {
        return read_close(cx, fields, close, via, rows);
    }
    let mut checks = Vec::new();
    let meant = read_pattern(cx, reach, node);
    let (until, message, name) = match meant {
        // A call has one kind of message, so the pattern names none.
        Some(Some(meant)) => {
            let name = meant.name.filter(|_| reach.called().is_none());
            (Some(Until::Any), meant.which, name)
        }
        Some(None) => (None, Which::default(), None),
        None => {
            let mut which = Which::default();
            // A byte stream has no message boundaries: any received data is the response.
            let until = match reach.has_messages() {
                false => read_expectation(cx, node, &mut checks),
                true => read_message_conditions(cx, node, &mut which.checks),
            };
            (until, which, None)
        }
    };
    let kinds = reach.kinds(&message.messages);
    let answer = kinds.as_ref().map_or(Answer::Message, Answer::Fields);
    checks.extend(read_checks(cx, fields.check, answer));
    let saves = read_saves(cx, *fields.save, answer);
    let timeout = read_timeout(cx, fields.timeout);
    let step = rows.row(cx, fields, StepKind::Expect, name.as_deref())?;
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let (until, timeout) = (until?, timeout?);
    let expect = Expect { step, link, message, until, checks, saves, timeout, failing };
    Some(Statement::Expect(Arc::new(expect)))
}

pub(crate) fn read_request(
    cx: &mut Context<'_>,
    fields: &ast::Request<'_>,
    via: Via<'_>,
    rows: &mut Rows,
) -> Option<Statement> {
    let Via { link, reach } = via;
    let spoken = read_message(cx, fields.request, fields.cut, true);
    let mut checks = Vec::new();
    let kinds = match (reach.declared(), &spoken) {
        (Some(protocol), Some(spoken)) => {
            let place = fields.request.place_or(fields.place);
            let replies = check_replies(cx, protocol, spoken, place);
            Some(Kinds::declared(protocol, &replies))
        }
        (Some(_), None) => None,
        (None, _) => reach.kinds(&[]),
    };
    let until = match (fields.expect.node(), &kinds) {
        (Some(node), Some(Kinds::Declared { protocol, ids })) => {
            read_reply(cx, node, (protocol, ids), &mut checks)
        }
        (Some(node), Some(kinds)) => read_reply_conditions(cx, kinds, node).map(|meant| {
            checks.extend(meant.which.checks);
            Until::Any
        }),
        (Some(_), None) if reach.declared().is_some() => Some(Until::Any),
        (Some(node), None) => read_expectation(cx, node, &mut checks),
        (None, _) => Some(Until::Any),
    };
    let which = read_match(cx, fields.r#match, reach);
    // For a request with a mistake the replies are unknown.
    if kinds.is_some() || reach.declared().is_none() {
        let answer = kinds.as_ref().map_or(Answer::Message, Answer::Fields);
        checks.extend(read_checks(cx, fields.check, answer));
    }
    let answer = kinds.as_ref().map_or(Answer::Message, Answer::Fields);
    let saves = match kinds.is_some() || reach.declared().is_none() {
        true => read_saves(cx, *fields.save, answer),
        false => Vec::new(),
    };
    let timeout = read_timeout(cx, fields.timeout);
    let name = spoken.as_ref().and_then(|spoken| spoken.name.as_deref());
    let step = rows.row(cx, fields, StepKind::Request, name)?;
    let (spoken, until, timeout, answer) = (spoken?, until?, timeout?, which?);
    rows.speak(step, link, spoken.id);
    let failing = read_failing(cx, fields.on_error, fields.retry);
    let message = spoken.message;
    let request = Request { step, link, message, answer, until, checks, saves, timeout, failing };
    Some(Statement::Request(Arc::new(request)))
}

/// Which message is the response, if messages do not identify it themselves.
fn read_match(cx: &mut Context<'_>, field: Field<'_>, reach: &Reach) -> Option<Which> {
    let mut which = Which::default();
    let Some((Key { place, .. }, node)) = field.entry() else { return Some(which) };
    let place = *place;
    if reach.declared().is_some() {
        let message = say!("the protocol already defines which message is the reply");
        let help = say!("remove `match`");
        return cx.refuse("conflicting-keys", place, message, say!("cannot be chosen here"), help);
    }
    if !reach.has_messages() {
        let message = say!("a byte stream has no separate messages");
        let label = say!("all received bytes count as the reply");
        let help = say!("use `expect` to define where the reply ends, or declare a protocol");
        return cx.refuse("step-scheme", place, message, label, help);
    }
    match read_pattern(cx, reach, node) {
        Some(meant) => meant.map(|meant| meant.which),
        None => {
            read_message_conditions(cx, node, &mut which.checks)?;
            Some(which)
        }
    }
}

/// The possible replies to a request; none is a mistake.
fn check_replies(
    cx: &mut Context<'_>,
    protocol: &Protocol,
    spoken: &Spoken,
    place: Place,
) -> Vec<MessageId> {
    let replies = spoken.id.map(|id| protocol.info(id).answered_by.to_vec()).unwrap_or_default();
    if !replies.is_empty() {
        return replies;
    }
    let name = spoken.name.as_deref().map(shorten);
    let (message, help) = match &name {
        Some(name) => (
            say!("no message is a reply to `{name}`"),
            say!("write `- send: {name}`, or add `answers: {name}` to its reply in the protocol"),
        ),
        None => (
            say!("no message is a reply to raw bytes"),
            say!("write `- send: {{…}}`; add `- expect: any` if a message must follow"),
        ),
    };
    cx.report("no-reply", place, message, say!("no reply can arrive"), help);
    Vec::new()
}

/// The expected reply of a request: one of its replies, and its fields.
fn read_reply(
    cx: &mut Context<'_>,
    node: &Node,
    (protocol, ids): (&Arc<Protocol>, &[MessageId]),
    checks: &mut Vec<Check>,
) -> Option<Until> {
    let Some(meant) = declared::read_pattern(cx, protocol, node) else {
        return read_expectation(cx, node, checks);
    };
    let which = meant?.which;
    let foreign = which.messages.iter().find(|id| !ids.contains(id));
    if let Some(id) = foreign {
        let name = &protocol.info(*id).name;
        let replies = words::names(ids.iter().map(|id| &*protocol.info(*id).name));
        let message = say!("`{name}` is not a reply to this request");
        let label = say!("this message is never the reply");
        let help = say!("the replies to this request are {replies}");
        return cx.refuse("no-reply", node.place, message, label, help);
    }
    if !which.messages.is_empty() && ids.iter().any(|id| !which.messages.contains(id)) {
        checks.push(check_kind(protocol, &which.messages));
    }
    checks.extend(which.checks);
    Some(Until::Any)
}

const MESSAGE_HELP: Said =
    say!("write `{{text: hello}}`, `{{json: {{…}}}}`, `{{hex: 00ff}}` or `{{file: path}}`");

const DECLARED_HELP: Said =
    say!("write `join`, `{{join: {{room: 42}}}}`, or raw bytes: `{{hex: 00ff}}`");

/// A message in a step.
pub(crate) struct Spoken {
    pub(crate) message: Message,
    /// For a declared protocol.
    pub(crate) id: Option<MessageId>,
    pub(crate) name: Option<String>,
}

/// The message under the verb of a step, and where it is truncated.
fn read_message(
    cx: &mut Context<'_>,
    message: Field<'_>,
    cut: Field<'_>,
    asks: bool,
) -> Option<Spoken> {
    let spoken = read_spoken(cx, message.node()?, asks);
    let cut = match cut.entry() {
        Some((key, _)) if matches!(cx.scope.spoken, crate::scope::Spoken::Call(_)) => {
            let message = native::of_call().has_no(&key.text);
            let label = say!("its messages cannot be split");
            let help = say!("remove it, or send bytes to a `tcp` target");
            return cx.refuse("step-scheme", key.place, message, label, help);
        }
        Some((_, node)) => match cx.size(node).map(u32::try_from)? {
            Ok(cut) => Some(cut),
            Err(_) => {
                return cx.bad_value(
                    node,
                    say!("no message is that long"),
                    say!("write `cut: 5B`"),
                );
            }
        },
        None => None,
    };
    let mut spoken = spoken?;
    spoken.message.cut = cut;
    Some(spoken)
}

/// A message: one of the declared protocol by name, or raw bytes. A request carries a number that
/// throng chooses.
pub(crate) fn read_spoken(cx: &mut Context<'_>, node: &Node, asks: bool) -> Option<Spoken> {
    match cx.scope.spoken.clone() {
        crate::scope::Spoken::Declared(protocol) => read_of_protocol(cx, &protocol, node, asks),
        crate::scope::Spoken::Call(called) => {
            let message = read_message_of_call(cx, node, &called)?;
            let content = Content::Proto(Box::new(message));
            Some(Spoken { message: Message { content, cut: None }, id: None, name: None })
        }
        // Its messages are unknown; the mistake is reported at the declaration.
        crate::scope::Spoken::Unknown => None,
        _ => read_raw(cx, node, MESSAGE_HELP),
    }
}

fn read_of_protocol(
    cx: &mut Context<'_>,
    protocol: &Arc<Protocol>,
    node: &Node,
    asks: bool,
) -> Option<Spoken> {
    let (key, fields) = match &node.kind {
        Kind::Scalar { .. } if !node.is_null() => {
            let text = cx.text(node, say!("the name of a message"))?;
            (Key { text, place: node.place }, None)
        }
        Kind::Map(entries) => {
            let is_raw =
                |key: &Key| !is_message(cx, &key.text) && keys::MESSAGE.find(&key.text).is_some();
            if entries.iter().any(|(key, _)| is_raw(key)) {
                return read_raw(cx, node, DECLARED_HELP);
            }
            match cx.entries(node, Said::default(), Said::default())?[..] {
                [(key, fields)] => (key.clone(), Some(fields)),
                _ => {
                    return cx.wrong_type(node, say!("a message with its fields"), DECLARED_HELP);
                }
            }
        }
        _ => return cx.wrong_type(node, say!("a message"), DECLARED_HELP),
    };
    let declared = read_declared(cx, protocol, &key, fields, asks)?;
    let id = declared.template.message;
    let content = Content::Declared(Box::new(declared));
    Some(Spoken { message: Message { content, cut: None }, id: Some(id), name: Some(key.text) })
}

fn read_raw(cx: &mut Context<'_>, node: &Node, help: Said) -> Option<Spoken> {
    if !matches!(node.kind, Kind::Map(_)) {
        return cx.wrong_type(node, say!("a message"), help);
    }
    let fields = ast::Message::read(cx, node)?;
    let ways = [fields.text, fields.json, fields.hex, fields.binary, fields.file, fields.garbage];
    let Some((key, node)) = ast::one_of(cx, &ways) else {
        return match node.is_empty() {
            true => cx.wrong_type(node, say!("a message"), help),
            false => None,
        };
    };
    let message = read_content(cx, key, node)?;
    Some(Spoken { message, id: None, name: None })
}

const EXPECT_HELP: Said = say!(
    "write `any`, `{{text: ok}}`, `{{json: {{code: 0}}}}`, `{{length: 4}}`, \
                           `{{delimiter: \"\\n\"}}` or `{{pattern: 'ok|error'}}`"
);

/// A pattern for an expected message; others that arrive meanwhile are pushes.
fn read_message_conditions(
    cx: &mut Context<'_>,
    node: &Node,
    checks: &mut Vec<Check>,
) -> Option<Until> {
    let until = read_expectation(cx, node, checks)?;
    if let Until::Pattern(regex) = &until {
        checks.push(Check { extractor: Extractor::Body, matcher: Matcher::Matches(regex.clone()) });
    }
    Some(until)
}

/// The value of `close`, if it is the only key and not a message.
fn close_of<'n>(cx: &Context<'_>, node: &'n Node, reach: &Reach) -> Option<&'n Node> {
    let Kind::Map(entries) = &node.kind else { return None };
    match entries.as_slice() {
        [(key, node)] if key.text == "close" => {
            (reach.called().is_none() && !is_message(cx, "close")).then_some(node)
        }
        _ => None,
    }
}

/// The end of the response; required content is added to the checks.
fn read_expectation(cx: &mut Context<'_>, node: &Node, checks: &mut Vec<Check>) -> Option<Until> {
    if let Kind::Scalar { text, .. } = &node.kind
        && text == "any"
    {
        return Some(Until::Any);
    }
    if !matches!(&node.kind, Kind::Map(entries) if !entries.is_empty()) {
        // It names a message of an unknown protocol.
        if matches!(cx.scope.spoken, crate::scope::Spoken::Unknown) {
            return None;
        }
        return cx.wrong_type(node, say!("`any` or a map with a condition"), EXPECT_HELP);
    }
    let fields = ast::Expectation::read(cx, node)?;
    if let Some(node) = fields.text.node() {
        let text = cx.template(node, say!("text"), Escape::None)?;
        checks.push(Check { extractor: Extractor::Body, matcher: Matcher::Contains(text) });
    }
    if let Some(node) = fields.json.node() {
        cx.with_answer(|cx| read_json_checks(cx, node, checks));
    }
    read_headers(cx, (fields.event, fields.all()), checks)?;
    if let Some(key) = fields.close.key() {
        let message = say!("`close` can only be used alone, in an `expect` step");
        let label = say!("`close` does not match messages");
        let help = say!("write `- expect: {{close: 4001}}`");
        return cx.refuse("conflicting-keys", key.place, message, label, help);
    }
    let Some((key, node)) =
        ast::one_of(cx, &[fields.any, fields.length, fields.delimiter, fields.pattern])
    else {
        return Some(Until::Any);
    };
    match key.text.as_str() {
        "length" => match cx.count(node)? {
            0 => cx.bad_value(
                node,
                say!("a message of zero bytes never arrives"),
                say!("write `{{length: 4}}`"),
            ),
            length => Some(Until::Length(length)),
        },
        "delimiter" => crate::message::matchers::read_delimiter(cx, node).map(Until::Delimiter),
        "pattern" => crate::message::matchers::read_regex(cx, node).map(Until::Pattern),
        _ => match cx.bool(node)? {
            true => Some(Until::Any),
            false => cx.bad_value(node, say!("`any` must be `true` or omitted"), EXPECT_HELP),
        },
    }
}
