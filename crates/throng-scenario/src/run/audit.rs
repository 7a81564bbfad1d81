//! The target's own view of its users and counts: `audits: [{name: presence, views: {…}}]`.

use std::time::Duration;

use throng_base::{Said, StepId};
use throng_extract::JsonPath;
use throng_program::{
    Action, Audit, AuditWhat, Books, HttpSource, IDS, RedisKind, Scheme, Source, StepInfo, Target,
    TimedEvent, UserName, View,
};
use throng_redis::RedisAddress;

use crate::ast;
use crate::message::headers::read_plain_headers;
use crate::reach::Reaches;
use crate::read::Context;
use crate::run::events::read_command;
use crate::syntax::{Kind, Node};
use crate::url::Url;
use crate::words::shorten;

/// Each audit has a thread.
const AUDITS_MAX: usize = 16;
/// Per audit.
const VIEWS_MAX: usize = 8;
const EVERY_MIN: Duration = Duration::from_secs(1);
const WITHIN: Duration = Duration::from_secs(10);
const BATCH: u64 = 500;
const BATCH_MAX: u64 = 10_000;
const NAME_CHARS_MAX: usize = 64;
/// Marks the number of a user in a text until it is split.
const HOLE: &str = "\u{1}";
const HELP: Said = say!(
    "write `audits: [{{name: presence, views: {{redis: {{redis: \"redis://127.0.0.1\", set: online, \
     id: \"d${{user.id}}\"}}}}}}]`"
);

/// Facts about the scenario for reading audits.
struct Known<'a> {
    steps: &'a [StepInfo],
    targets: &'a [Target],
    /// No user has a long-lived connection.
    is_http: bool,
}

pub(crate) fn read_audits(
    cx: &mut Context<'_>,
    fields: &ast::Scenario<'_>,
    steps: &[StepInfo],
    reaches: &Reaches,
) -> Vec<Audit> {
    let is_http = reaches.asked_only().is_some();
    let known = &Known { steps, targets: &reaches.targets, is_http };
    let Some(node) = fields.audits.node() else { return Vec::new() };
    let items = cx.items(node, say!("a list of audits"), HELP).unwrap_or_default();
    if let Some(one) = items.get(AUDITS_MAX) {
        let help = say!("an audit can have at most 8 views");
        cx.too_many(one.place, say!("more than 16 audits"), help);
    }
    let mut audits: Vec<Audit> = Vec::new();
    for item in items.iter().take(AUDITS_MAX) {
        let Some(audit) = read_audit(cx, item, known) else { continue };
        if audits.iter().any(|other| other.name == audit.name) {
            let message = say!("two audits are named `{}`", shorten(&audit.name));
            let help = say!("give it another `name`");
            cx.report("duplicate-name", item.place, message, say!("the second one"), help);
        }
        audits.push(audit);
    }
    audits
}

/// Reports audits that are never started.
pub(crate) fn check_done(
    cx: &mut Context<'_>,
    fields: &ast::Scenario<'_>,
    audits: &[Audit],
    events: &[TimedEvent],
) {
    let Some(Kind::List(items)) = fields.audits.node().map(|node| &node.kind) else { return };
    if cx.mistakes.has_errors() {
        return;
    }
    for ((number, audit), node) in (0..).zip(audits).zip(items) {
        let by_event = events.iter().any(|event| event.action == Action::Audit(number));
        if !by_event && !audit.at_end && audit.every.is_none() && audit.at.is_empty() {
            let help = say!(
                "write `every: 30s`, `at: [5m, 10m]` or `at_end: true`, or an event with `audit: \
                 {}`",
                shorten(&audit.name)
            );
            cx.bad_value::<()>(node, say!("this audit never runs"), help);
        }
    }
}

fn read_audit(cx: &mut Context<'_>, node: &Node, known: &Known<'_>) -> Option<Audit> {
    let fields = ast::Audit::read(cx, node)?;
    let name = fields.need(cx, fields.name, HELP).and_then(|node| read_name(cx, node));
    let every = fields.every.node().and_then(|node| read_every(cx, node));
    let at = fields.at.node().map(|node| read_times(cx, node)).unwrap_or_default();
    let at_end = fields.at_end.node().and_then(|node| cx.bool(node));
    let within = fields.agree_within.node().and_then(|node| cx.duration(node));
    let what = match ast::one_of(cx, &[fields.views, fields.count]) {
        Some((key, node)) if key.text == "views" => {
            let views = read_views(cx, node, known);
            if known.is_http {
                let message = say!("no user of this scenario has a long-lived connection");
                let help = say!(
                    "a presence audit requires a `connect` step; to audit an HTTP service, use \
                     `count`"
                );
                return cx.bad_value(node, message, help);
            }
            AuditWhat::Presence { views, within: within.unwrap_or(WITHIN) }
        }
        Some((_, node)) => {
            let help = say!("write `equals: ok(\"POST /orders\")`, with the name of a step");
            let equals = fields.need(cx, fields.equals, help);
            let step = equals.and_then(|node| read_equals(cx, node, known));
            let (books, (step, step_name)) = (read_books(cx, node)?, step?);
            AuditWhat::Count { books, step, step_name }
        }
        None => return fields.need(cx, fields.views, HELP).and(None),
    };
    // The default is at the end of the run.
    let at_end = at_end.unwrap_or(every.is_none() && at.is_empty());
    Some(Audit { name: name?, every, at, at_end, what })
}

fn read_name(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    let name = cx.text(node, say!("a name"))?;
    match is_name(&name) {
        true => Some(name),
        false => {
            let help = say!("a name has at most 64 characters: letters, digits, `-` and `_`");
            cx.bad_value(node, say!("this is not a valid name"), help)
        }
    }
}

/// A name that thresholds can use.
fn is_name(name: &str) -> bool {
    let is_good = |c: char| c.is_alphanumeric() || "-_".contains(c);
    !name.is_empty() && name.chars().all(is_good) && name.chars().count() <= NAME_CHARS_MAX
}

fn read_every(cx: &mut Context<'_>, node: &Node) -> Option<Duration> {
    let every = cx.duration(node)?;
    if every < EVERY_MIN {
        let message = say!("an audit can run at most once per second");
        return cx.bad_value(node, message, say!("write `every: 30s`"));
    }
    Some(every)
}

fn read_times(cx: &mut Context<'_>, node: &Node) -> Vec<Duration> {
    match &node.kind {
        Kind::List(items) => items.iter().filter_map(|item| cx.duration(item)).collect(),
        _ => cx.duration(node).into_iter().collect(),
    }
}

fn read_views(cx: &mut Context<'_>, node: &Node, known: &Known<'_>) -> Vec<View> {
    let entries = cx.entries(node, say!("a map of views"), HELP).unwrap_or_default();
    let mut views = Vec::new();
    for (key, node) in entries {
        if views.len() == VIEWS_MAX {
            cx.too_many(key.place, say!("more than 8 views"), say!("write another audit"));
            break;
        }
        if !is_name(&key.text) {
            let error = cx.error("bad-value", say!("this is not a valid name"), key.place);
            let help = say!("a name has at most 64 characters: letters, digits, `-` and `_`");
            cx.note(error.help(help));
        }
        views.extend(read_view(cx, key.text.clone(), node, known));
    }
    if views.is_empty() && !cx.mistakes.has_errors() {
        cx.empty(node.place, say!("there are no views"), HELP);
    }
    views
}

fn read_view(cx: &mut Context<'_>, name: String, node: &Node, known: &Known<'_>) -> Option<View> {
    let fields = ast::AuditView::read(cx, node)?;
    let nodes = fields.nodes.node().map(|node| read_nodes(cx, node, known)).unwrap_or_default();
    let (source, names) = match ast::one_of(cx, &[fields.redis, fields.http, fields.run]) {
        Some((key, node)) if key.text == "redis" => {
            let url = read_redis(cx, node);
            let (kind, names) = read_redis_kind(cx, &fields)?;
            (Source::Redis { url: url?, kind }, names)
        }
        Some((key, node)) => {
            let source = match key.text.as_str() {
                "run" => read_command(cx, node).map(Source::Run),
                _ => read_http(cx, node, &fields).map(Source::Http),
            };
            let names = fields.need(cx, fields.id, ID_HELP);
            let names = names.and_then(|node| read_user_name(cx, node));
            (source?, names?)
        }
        None => return fields.need(cx, fields.redis, HELP).and(None),
    };
    Some(View { name, source, names, nodes })
}

const ID_HELP: Said = say!("write the name of a user in the view: `id: \"d${{user.id}}\"`");

/// The Redis structure that contains users, and its name.
fn read_redis_kind(
    cx: &mut Context<'_>,
    fields: &ast::AuditView<'_>,
) -> Option<(RedisKind, UserName)> {
    let kinds = [fields.scan, fields.mget, fields.set, fields.sorted_set];
    let Some((key, node)) = ast::one_of(cx, &kinds) else {
        let help = say!(
            "write `scan: \"online:${{user.id}}\"`, `mget: \"online:${{user.id}}\"`, `set: KEY` or \
             `sorted_set: KEY`"
        );
        return fields.need(cx, fields.scan, help).and(None);
    };
    let (word, node) = (key.text.clone(), node);
    match word.as_str() {
        "scan" => Some((RedisKind::Scan, read_user_name(cx, node)?)),
        "mget" => Some((RedisKind::Mget, read_user_name(cx, node)?)),
        _ => {
            let names = fields.need(cx, fields.id, ID_HELP);
            let names = names.and_then(|node| read_user_name(cx, node));
            let key = cx.text(node, say!("a key"))?;
            let age_max = fields.max_age.node().and_then(|node| cx.duration(node));
            let kind = match word.as_str() {
                "set" => RedisKind::Set { key },
                _ => RedisKind::SortedSet { key, age_max },
            };
            Some((kind, names?))
        }
    }
}

/// A text with the number of a user.
fn read_user_name(cx: &mut Context<'_>, node: &Node) -> Option<UserName> {
    let text = hollow(cx, node, "user.id")?;
    match text.split(HOLE).collect::<Vec<_>>().as_slice() {
        [before, after] => {
            Some(UserName { before: (*before).to_string(), after: (*after).to_string() })
        }
        _ => {
            let message = say!("the text must contain `${{user.id}}` exactly once");
            cx.bad_value(
                node,
                message,
                say!("write the name of a user at the target: `d${{user.id}}`"),
            )
        }
    }
}

/// The text with the marker in place of `${inner}`.
fn hollow(cx: &mut Context<'_>, node: &Node, inner: &str) -> Option<String> {
    let Kind::Scalar { text, plain } = &node.kind else {
        return cx.text(node, say!("a text"));
    };
    let text = text.replace(&format!("${{ {inner} }}"), HOLE);
    let text = text.replace(&format!("${{{inner}}}"), HOLE);
    let kind = Kind::Scalar { text, plain: *plain };
    cx.text(&Node { place: node.place, kind }, say!("a text"))
}

fn read_redis(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    let url = cx.text(node, say!("the address of a Redis server"))?;
    match url.parse::<RedisAddress>() {
        Ok(address) => {
            if let Some(password) = address.password() {
                cx.secrets.learn("redis.password", password);
            }
            Some(url)
        }
        Err(reason) => {
            let message = say!("this is not the address of a Redis server");
            let help = say!("write `redis: \"redis://127.0.0.1:6379\"`");
            cx.refuse("bad-url", node.place, message, reason, help)
        }
    }
}

fn read_http(cx: &mut Context<'_>, node: &Node, fields: &ast::AuditView<'_>) -> Option<HttpSource> {
    let urls: Option<Vec<String>> = match &node.kind {
        Kind::List(items) => items.iter().map(|item| read_url(cx, item)).collect(),
        _ => read_url(cx, node).map(|url| vec![url]),
    };
    let headers = fields.headers.node().map(|node| read_plain_headers(cx, node));
    let json = fields.json.node().map_or(JsonPath::parse("$[*]").ok(), |node| read_path(cx, node));
    let batch = fields.batch.node().and_then(|node| read_batch(cx, node)).unwrap_or(BATCH);
    let (urls, json) = (urls?, json?);
    Some(HttpSource { urls, headers: headers.unwrap_or_default(), json, batch: batch as usize })
}

fn read_batch(cx: &mut Context<'_>, node: &Node) -> Option<u64> {
    let batch = cx.count(node)?;
    if batch == 0 || batch > BATCH_MAX {
        let message = say!("a request can ask for 1 to 10000 users");
        return cx.bad_value(node, message, say!("write `batch: 500`"));
    }
    Some(batch)
}

fn read_url(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    let text = hollow(cx, node, "ids")?;
    let reason = match Url::parse(&text.replace(HOLE, "1")) {
        Ok(url) if matches!(url.scheme, Scheme::Http | Scheme::Https) => {
            return Some(text.replace(HOLE, IDS));
        }
        Ok(_) => say!("views use `http` or `https`"),
        Err(reason) => reason.message,
    };
    let help = say!("write `http: \"http://10.0.0.1:8080/online\"`");
    cx.refuse("bad-url", node.place, say!("this is not the URL of a view"), reason, help)
}

fn read_path(cx: &mut Context<'_>, node: &Node) -> Option<JsonPath> {
    let text = cx.text(node, say!("a JSON path"))?;
    match JsonPath::parse(&text) {
        Ok(path) => Some(path),
        Err(reason) => {
            let message = say!("`{}` is not a JSON path", shorten(&text));
            let help = say!("write `json: \"$.online[*]\"`");
            cx.refuse("bad-value", node.place, message, reason.message, help)
        }
    }
}

/// The name of each node in a view, and its address among the targets.
fn read_nodes(cx: &mut Context<'_>, node: &Node, known: &Known<'_>) -> Vec<(String, u16)> {
    let help = say!("write `nodes: {{a: \"10.0.0.1:9100\", b: \"10.0.0.2:9100\"}}`");
    let mut nodes = Vec::new();
    for (key, value) in cx.entries(node, say!("a map of nodes"), help).unwrap_or_default() {
        let Some(address) = cx.text(value, say!("an address of the target")) else { continue };
        let is_it = |target: &Target| {
            let full = format!("{}:{}", target.host, target.port);
            address == full || address == target.authority() || address == target.written()
        };
        match known.targets.iter().position(is_it) {
            Some(index) => nodes.push((key.text.clone(), index as u16)),
            None if known.targets.is_empty() => {}
            None => {
                let message = say!("`{}` is not an address of the target", shorten(&address));
                let all = known.targets.iter().map(|it| format!("{}:{}", it.host, it.port));
                let all = all.collect::<Vec<_>>().join("`, `");
                cx.bad_value::<()>(value, message, say!("the addresses are `{all}`"));
            }
        }
    }
    nodes
}

/// `ok("POST /orders")`.
fn read_equals(cx: &mut Context<'_>, node: &Node, known: &Known<'_>) -> Option<(StepId, String)> {
    let text = cx.text(node, say!("a count"))?;
    let help = say!("write `equals: ok(\"POST /orders\")`, with the name of a step");
    let inner = text.trim().strip_prefix("ok(").and_then(|rest| rest.strip_suffix(')'));
    let Some(inner) = inner else {
        let message = say!("`{}` is not a value that throng counts", shorten(&text));
        return cx.bad_value(node, message, help);
    };
    let name = inner.trim().trim_matches(['"', '\'']);
    let is_it = |step: &StepInfo| step.kind.is_attempt() && step.name == name;
    match known.steps.iter().position(is_it) {
        Some(index) => Some((StepId(index as u16), name.to_string())),
        None => {
            let message = say!("there is no step `{}`", shorten(name));
            cx.bad_value(node, message, help)
        }
    }
}

fn read_books(cx: &mut Context<'_>, node: &Node) -> Option<Books> {
    let fields = ast::AuditCount::read(cx, node)?;
    let help = say!("write `count: {{redis: \"redis://127.0.0.1\", command: \"SCARD orders\"}}`");
    match ast::one_of(cx, &[fields.redis, fields.http, fields.run]) {
        Some((key, node)) if key.text == "redis" => {
            let url = read_redis(cx, node);
            let command = fields.need(cx, fields.command, help);
            let command = command.and_then(|node| cx.text(node, say!("a Redis command")))?;
            let command: Vec<String> = command.split_whitespace().map(str::to_string).collect();
            Some(Books::Redis { url: url?, command })
        }
        Some((key, node)) if key.text == "run" => read_command(cx, node).map(Books::Run),
        Some((_, node)) => {
            let url = read_url(cx, node);
            let headers = fields.headers.node().map(|node| read_plain_headers(cx, node));
            let json =
                fields.json.node().map_or(Some(None), |node| read_path(cx, node).map(Some))?;
            Some(Books::Http { url: url?, headers: headers.unwrap_or_default(), json })
        }
        None => fields.need(cx, fields.redis, help).and(None),
    }
}
