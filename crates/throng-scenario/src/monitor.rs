//! Sources of series beside the run: `monitor: [{url: …, metrics: [node_load1]}]`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_base::Said;
use throng_program::{Metric, Monitor, NODE_EXPORTER_PORT, Scheme, Selector, host_metrics};

use crate::ast;
use crate::headers::read_plain_headers;
use crate::read::Context;
use crate::syntax::{Key, Kind, Node};
use crate::url::Url;
use crate::words::shorten;

/// Each has a thread.
const MONITORS_MAX: usize = 16;
/// Of a source.
const METRICS_MAX: usize = 64;
const EVERY: Duration = Duration::from_secs(5);
const EVERY_MIN: Duration = Duration::from_secs(1);
const NAME_CHARS_MAX: usize = 64;
const HELP: Said =
    say!("write `monitor: [{{url: \"http://127.0.0.1:9100/metrics\", metrics: [node_load1]}}]`");
const METRICS_HELP: Said =
    say!("write `metrics: [node_load1, 'node_cpu_seconds_total{{mode=\"idle\"}}']`");

pub(crate) fn read_monitors(cx: &mut Context<'_>, fields: &ast::Scenario<'_>) -> Vec<Monitor> {
    let Some(node) = fields.monitor.node() else { return Vec::new() };
    let items = cx.items(node, say!("a list of sources"), HELP).unwrap_or_default();
    if items.is_empty() && matches!(node.kind, Kind::List(_)) {
        let error = cx.error("empty", say!("the list of sources is empty"), node.place);
        cx.note(error.label(say!("empty")).help(HELP));
    }
    if let Some(one) = items.get(MONITORS_MAX) {
        let message = say!("more than 16 sources");
        let error = cx.error("too-many", message, one.place).label(say!("this exceeds the limit"));
        cx.note(error.help(say!(
            "collect these metrics with one Prometheus server, and use that server as the source"
        )));
    }
    let mut monitors: Vec<Monitor> = Vec::new();
    for item in items.iter().take(MONITORS_MAX) {
        let Some(monitor) = read_monitor(cx, item) else { continue };
        if monitors.iter().any(|other| other.name == monitor.name) {
            let message = say!("two sources are named `{}`", shorten(&monitor.name));
            let error = cx.error("duplicate-name", message, item.place);
            let error = error.label(say!("the second one"));
            cx.note(error.help(say!("give it another `name`")));
        }
        monitors.push(monitor);
    }
    monitors
}

fn read_monitor(cx: &mut Context<'_>, node: &Node) -> Option<Monitor> {
    let fields = ast::Monitor::read(cx, node)?;
    // Of an agent it has been said that there is none yet: what exporters need is not missing.
    let is_agent = |(key, _): &(Key, Node)| key.text == "agent";
    if matches!(&node.kind, Kind::Map(entries) if entries.iter().any(is_agent)) {
        return None;
    }
    let url = match ast::one_of(cx, &[fields.url, fields.node]) {
        Some((key, node)) if key.text == "node" => read_node(cx, node),
        Some((_, node)) => read_url(cx, node),
        None => fields.need(cx, fields.url, HELP).and_then(|node| read_url(cx, node)),
    };
    let metrics = fields.metrics.node().map(|node| read_metrics(cx, node));
    let metrics = metrics.unwrap_or_else(host_metrics);
    let name = fields.name.node().and_then(|node| read_name(cx, node));
    let every = fields.every.node().and_then(|node| read_every(cx, node)).unwrap_or(EVERY);
    let headers = fields.headers.node().map(|node| read_plain_headers(cx, node));
    let url = url?;
    let mut headers = headers.unwrap_or_default();
    authorize(cx, &url, &mut headers);
    let origin = url.origin();
    let host = origin.split_once("://").map_or(origin.as_str(), |(_, host)| host);
    Some(Monitor {
        name: name.unwrap_or_else(|| host.to_string()),
        url: format!("{origin}{}", url.path),
        headers,
        every,
        metrics,
    })
}

/// The user and the password of a URL, as the header that carries them.
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
    let error = cx.error("bad-url", message, node.place).label(reason.0);
    cx.fail(error.help(reason.1))
}

/// The address of a host that runs node_exporter, with a port if it is another one.
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
    let items = cx.items(node, say!("a list of metrics"), METRICS_HELP).unwrap_or_default();
    if items.is_empty() && matches!(node.kind, Kind::List(_)) {
        let error = cx.error("empty", say!("there are no metrics"), node.place);
        cx.note(error.label(say!("empty")).help(METRICS_HELP));
    }
    if let Some(one) = items.get(METRICS_MAX) {
        let message = say!("more than 64 metrics");
        let error = cx.error("too-many", message, one.place).label(say!("this exceeds the limit"));
        cx.note(error.help(say!("keep the metrics that show the bottlenecks of the service")));
    }
    items.iter().take(METRICS_MAX).filter_map(|item| read_metric(cx, item)).collect()
}

fn read_metric(cx: &mut Context<'_>, node: &Node) -> Option<Metric> {
    if !matches!(node.kind, Kind::Map(_)) {
        let selector = read_selector(cx, node)?;
        return Some(Metric { name: None, selector, is_sum: false, is_optional: false });
    }
    let fields = ast::Metric::read(cx, node)?;
    let selector = fields.need(cx, fields.metric, METRICS_HELP);
    let selector = selector.and_then(|node| read_selector(cx, node));
    let name = fields.name.node().and_then(|node| read_name(cx, node));
    let is_sum = fields.sum.node().and_then(|node| cx.bool(node)).unwrap_or(false);
    Some(Metric { name, selector: selector?, is_sum, is_optional: false })
}

fn read_selector(cx: &mut Context<'_>, node: &Node) -> Option<Selector> {
    let text = cx.text(node, say!("a metric"))?;
    match Selector::parse(&text) {
        Ok(selector) => Some(selector),
        Err(reason) => {
            let message = say!("`{}` is not a valid metric selector", shorten(&text));
            let error = cx.error("bad-value", message, node.place).label(reason);
            cx.fail(error.help(say!(
                "write a name, with labels if needed: `node_cpu_seconds_total{{mode=\"idle\"}}`"
            )))
        }
    }
}
