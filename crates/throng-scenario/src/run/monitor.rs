//! Series from other sources during the run: `monitor: [{url: …, metrics: [node_load1]}]`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_base::Said;
use throng_program::monitor::{JsonValue, Origin, Page, SshHost};
use throng_program::{Metric, Monitor, NODE_EXPORTER_PORT, Scheme, Selector, host_metrics};

use crate::ast;
use crate::message::headers::read_plain_headers;
use crate::message::json::read_path;
use crate::read::Context;
use crate::syntax::{Kind, Node};
use crate::url::Url;
use crate::words::shorten;

/// Each source has a thread.
const MONITORS_MAX: usize = 16;
/// Per source.
const METRICS_MAX: usize = 64;
const EVERY: Duration = Duration::from_secs(5);
/// For a host, whose readings do not cost a request each.
const HOST_EVERY: Duration = Duration::from_secs(1);
const EVERY_MIN: Duration = Duration::from_secs(1);
const NAME_CHARS_MAX: usize = 64;
const WORD_BYTES_MAX: usize = 500;
const HELP: Said =
    say!("write `monitor: [{{url: \"http://127.0.0.1:9100/metrics\", metrics: [node_load1]}}]`");
const METRICS_HELP: Said =
    say!("write `metrics: [node_load1, 'node_cpu_seconds_total{{mode=\"idle\"}}']`");

pub(crate) fn read_monitors(cx: &mut Context<'_>, fields: &ast::Scenario<'_>) -> Vec<Monitor> {
    let Some(node) = fields.monitor.node() else { return Vec::new() };
    let items =
        cx.filled_list(node, say!("a list of sources"), say!("the list of sources is empty"), HELP);
    if let Some(one) = items.get(MONITORS_MAX) {
        let help = say!(
            "collect these metrics with one Prometheus server, and use that server as the source"
        );
        cx.too_many(one.place, say!("more than 16 sources"), help);
    }
    let mut monitors: Vec<Monitor> = Vec::new();
    for item in items.iter().take(MONITORS_MAX) {
        let Some(monitor) = read_monitor(cx, item) else { continue };
        if monitors.iter().any(|other| other.name == monitor.name) {
            let message = say!("two sources are named `{}`", shorten(&monitor.name));
            let help = say!("give it another `name`");
            cx.report("duplicate-name", item.place, message, say!("the second one"), help);
        }
        monitors.push(monitor);
    }
    monitors
}

fn read_monitor(cx: &mut Context<'_>, node: &Node) -> Option<Monitor> {
    let fields = ast::Monitor::read(cx, node)?;
    let name = fields.name.node().and_then(|node| read_name(cx, node));
    let every = fields.every.node().and_then(|node| read_every(cx, node));
    let metrics = fields.metrics.node().map(|node| read_metrics(cx, node));
    let found =
        ast::one_of(cx, &[fields.url, fields.node, fields.host, fields.joined, fields.json]);
    let kind = found.map_or("url", |(key, _)| key.text.as_str());
    check_beside(cx, &fields, kind);
    let (origin, called) = match (kind, found) {
        ("host", Some((_, node))) => {
            let host = read_host(cx, node, &fields)?;
            (Origin::Host(host.clone()), host.login)
        }
        ("joined", Some((_, node))) => {
            let name = read_joined(cx, node)?;
            (Origin::Joined(name.clone()), name)
        }
        ("json", Some((_, node))) => {
            let url = read_url(cx, node);
            let (page, called) = read_page(cx, url, &fields);
            let help = say!("write `values: {{clients: clientsLen}}`");
            let values = fields.need(cx, fields.values, help);
            let values = values.map(|node| read_values(cx, node))?;
            (Origin::Json(page?, values), called)
        }
        (_, found) => {
            let url = match found {
                Some((key, node)) if key.text == "node" => read_node(cx, node),
                Some((_, node)) => read_url(cx, node),
                None => fields.need(cx, fields.url, HELP).and_then(|node| read_url(cx, node)),
            };
            let (page, called) = read_page(cx, url, &fields);
            (Origin::Page(page?), called)
        }
    };
    let default = match origin {
        Origin::Host(_) | Origin::Joined(_) => HOST_EVERY,
        Origin::Page(_) | Origin::Json(..) => EVERY,
    };
    let (name, every) = (name.unwrap_or(called), every.unwrap_or(default));
    Some(Monitor { name, origin, every, metrics: metrics.unwrap_or_else(host_metrics) })
}

/// Reports keys that do not apply to a source of this kind.
fn check_beside(cx: &mut Context<'_>, fields: &ast::Monitor<'_>, kind: &str) {
    let host = [
        fields.processes,
        fields.ports,
        fields.redis,
        fields.nginx,
        fields.haproxy,
        fields.prometheus,
    ];
    let host = host.into_iter().map(|field| (field, kind == "host", "host"));
    let rest = [
        (fields.values, kind == "json", "json"),
        (fields.headers, !["host", "joined"].contains(&kind), "url"),
        (fields.metrics, kind != "json", "url"),
    ];
    for (field, is_right, owner) in host.chain(rest) {
        if let Some((key, _)) = field.entry()
            && !is_right
        {
            let message = say!("`{}` has no effect here", key.text);
            let label = say!("only a source with `{owner}` can have this key");
            let help = say!("remove it, or use `{owner}` for this source");
            cx.report("bad-value", key.place, message, label, help);
        }
    }
}

/// A metrics page with headers, and its default name.
fn read_page(
    cx: &mut Context<'_>,
    url: Option<Url>,
    fields: &ast::Monitor<'_>,
) -> (Option<Page>, String) {
    let headers = fields.headers.node().map(|node| read_plain_headers(cx, node));
    let Some(url) = url else { return (None, String::new()) };
    let mut headers = headers.unwrap_or_default();
    authorize(cx, &url, &mut headers);
    let origin = url.origin();
    let host = origin.split_once("://").map_or(origin.as_str(), |(_, host)| host);
    (Some(Page { url: format!("{origin}{}", url.path), headers }), host.to_string())
}

/// A host reached by ssh, and what to read there.
fn read_host(cx: &mut Context<'_>, node: &Node, fields: &ast::Monitor<'_>) -> Option<SshHost> {
    let text = cx.text(node, say!("the address of a host"))?;
    let (login, port) = match text.rsplit_once(':') {
        Some((login, port)) if !login.contains(':') || login.ends_with(']') => {
            (login, port.parse().ok().filter(|port| *port > 0).map(Some))
        }
        _ => (text.as_str(), Some(None)),
    };
    // A leading `-` would be an option of ssh.
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "._-@:[]%".contains(c);
    let is_login = !login.is_empty() && !login.starts_with('-') && login.chars().all(is_letter);
    let Some(port) = port.filter(|_| is_login) else {
        let message = say!("`{}` is not the address of a host", shorten(&text));
        let help = say!("write `host: user@shop-1`, or `host: user@shop-1:2222` with another port");
        return cx.bad_value(node, message, help);
    };
    let given = [
        ("--process", fields.processes),
        ("--port", fields.ports),
        ("--redis", fields.redis),
        ("--nginx", fields.nginx),
        ("--haproxy", fields.haproxy),
        ("--prometheus", fields.prometheus),
    ];
    let mut options = Vec::new();
    for (option, field) in given {
        let Some(node) = field.node() else { continue };
        let items = node.one_or_more();
        for item in items {
            let word = match option {
                "--port" => read_port(cx, item).map(|port| port.to_string()),
                _ => read_word(cx, item),
            };
            options.extend(word.map(|word| format!("{option}={word}")));
        }
    }
    let login = login.replace(['[', ']'], "");
    Some(SshHost { login, port, options })
}

/// The token name of a fleet.
fn read_joined(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    let name = cx.text(node, say!("a name"))?;
    let is_of = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_of) {
        let message = say!("`{}` is not the name of a token", shorten(&name));
        let help = say!("write the name as in `throng fleet token shop-1`: `joined: shop-1`");
        return cx.bad_value(node, message, help);
    }
    Some(name)
}

/// A word for a command line.
fn read_word(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    let word = cx.text(node, say!("a text"))?;
    if word.is_empty() || word.contains(char::is_control) || word.len() > WORD_BYTES_MAX {
        return cx.bad_value(node, say!("this is empty or too long"), say!("write one line"));
    }
    Some(word)
}

fn read_port(cx: &mut Context<'_>, node: &Node) -> Option<u16> {
    let port = cx.count(node)?;
    match u16::try_from(port) {
        Ok(port @ 1..) => Some(port),
        _ => cx.bad_value(node, say!("this is not a port"), say!("write `ports: [8080]`")),
    }
}

/// `values` of a JSON document.
fn read_values(cx: &mut Context<'_>, node: &Node) -> Vec<JsonValue> {
    let help = say!("write `values: {{clients: clientsLen}}`");
    let entries = cx.entries(node, say!("a map of names and paths"), help).unwrap_or_default();
    let mut values = Vec::new();
    for &(key, node) in entries.iter().take(METRICS_MAX) {
        let (path, is_counter) = match &node.kind {
            Kind::Map(_) => {
                let Some(fields) = ast::JsonValue::read(cx, node) else { continue };
                let help = say!("write `{{json: stats.done, counter: true}}`");
                let is_counter = fields.counter.node().and_then(|node| cx.bool(node));
                (fields.need(cx, fields.json, help), is_counter.unwrap_or(false))
            }
            _ => (Some(node), false),
        };
        let Some(node) = path else { continue };
        let Some(text) = cx.text(node, say!("a path")) else { continue };
        if let Some(path) = read_path(cx, &text, node.place) {
            values.push(JsonValue { name: key.text.clone(), text, path, is_counter });
        }
    }
    if let Some((key, _)) = entries.get(METRICS_MAX) {
        let help = say!("keep the metrics that show the bottlenecks of the service");
        cx.too_many(key.place, say!("more than 64 metrics"), help);
    }
    values
}

/// Moves the credentials of a URL to a header.
pub(crate) fn authorize(cx: &mut Context<'_>, url: &Url, headers: &mut Vec<(String, String)>) {
    let is_authorized = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
    if let Some((user, password)) = &url.user
        && !headers.iter().any(is_authorized)
    {
        let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        cx.secrets.add_header(&value);
        headers.push(("Authorization".to_string(), value));
    }
}

fn read_url(cx: &mut Context<'_>, node: &Node) -> Option<Url> {
    let text = cx.text(node, say!("the URL of an exporter"))?;
    let reason = match Url::parse(&text) {
        Ok(url) if matches!(url.scheme, Scheme::Http | Scheme::Https) => return Some(url),
        Ok(_) => (say!("exporters use `http` or `https`"), HELP),
        Err(reason) => (reason.message, reason.help),
    };
    let message = say!("`{}` is not the URL of an exporter", shorten(&text));
    cx.refuse("bad-url", node.place, message, reason.0, reason.1)
}

/// The address of node_exporter on a host, with an optional port.
fn read_node(cx: &mut Context<'_>, node: &Node) -> Option<Url> {
    let text = cx.text(node, say!("the address of a host"))?;
    let help = say!("write `node: 10.0.0.5`, or `node: 10.0.0.5:9101` with another port");
    let is_address = !text.contains(['/', '?', '#', '@']);
    let url = match text.parse::<std::net::Ipv6Addr>() {
        Ok(address) => format!("http://[{address}]:{NODE_EXPORTER_PORT}/metrics"),
        Err(_) if text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
            format!("http://{text}/metrics")
        }
        Err(_) => format!("http://{text}:{NODE_EXPORTER_PORT}/metrics"),
    };
    match Url::parse(&url) {
        Ok(url) if is_address => Some(url),
        _ => {
            let message = say!("`{}` is not the address of a host", shorten(&text));
            cx.bad_value(node, message, help)
        }
    }
}

fn read_every(cx: &mut Context<'_>, node: &Node) -> Option<Duration> {
    let every = cx.duration(node)?;
    if every < EVERY_MIN {
        let message = say!("a source can be read at most once per second");
        return cx.bad_value(node, message, say!("write `every: 5s`"));
    }
    Some(every)
}

fn read_name(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    let name = cx.text(node, say!("a name"))?;
    let is_bad = name.trim().is_empty() || name.contains(char::is_control);
    if is_bad || name.chars().count() > NAME_CHARS_MAX {
        let help = say!("a name can have at most 64 characters and no line breaks");
        return cx.bad_value(node, say!("this is not a valid name"), help);
    }
    Some(name)
}

fn read_metrics(cx: &mut Context<'_>, node: &Node) -> Vec<Metric> {
    let items =
        cx.filled_list(node, say!("a list of metrics"), say!("there are no metrics"), METRICS_HELP);
    if let Some(one) = items.get(METRICS_MAX) {
        let help = say!("keep the metrics that show the bottlenecks of the service");
        cx.too_many(one.place, say!("more than 64 metrics"), help);
    }
    items.iter().take(METRICS_MAX).filter_map(|item| read_metric(cx, item)).collect()
}

fn read_metric(cx: &mut Context<'_>, node: &Node) -> Option<Metric> {
    if !matches!(node.kind, Kind::Map(_)) {
        let selector = read_selector(cx, node)?;
        let (is_sum, is_counter, is_optional) = (false, false, false);
        return Some(Metric { name: None, selector, is_sum, is_counter, is_optional });
    }
    let fields = ast::Metric::read(cx, node)?;
    let selector = fields.need(cx, fields.metric, METRICS_HELP);
    let selector = selector.and_then(|node| read_selector(cx, node));
    let name = fields.name.node().and_then(|node| read_name(cx, node));
    let is_sum = fields.sum.node().and_then(|node| cx.bool(node)).unwrap_or(false);
    let is_counter = fields.counter.node().and_then(|node| cx.bool(node)).unwrap_or(false);
    Some(Metric { name, selector: selector?, is_sum, is_counter, is_optional: false })
}

fn read_selector(cx: &mut Context<'_>, node: &Node) -> Option<Selector> {
    let text = cx.text(node, say!("a metric"))?;
    match Selector::parse(&text) {
        Ok(selector) => Some(selector),
        Err(reason) => {
            let message = say!("`{}` is not a valid metric selector", shorten(&text));
            let help = say!(
                "write a name, with labels if needed: `node_cpu_seconds_total{{mode=\"idle\"}}`"
            );
            cx.refuse("bad-value", node.place, message, reason, help)
        }
    }
}
