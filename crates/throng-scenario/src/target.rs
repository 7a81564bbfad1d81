//! What is loaded and how it is reached: `target`, `tls`, `connection`, `limits`.

use throng_base::Said;
use throng_program::{ConnectionOptions, Family, HttpVersion, Limits, Scheme, Target, Tls};

use crate::keys;
use crate::read::{Context, Fields};
use crate::route;
use crate::scope::{Spoken, scheme_of};
use crate::source;
use crate::streams::read_streams;
use crate::syntax::{Kind, Node};
use crate::url::Url;
use crate::words::shorten;

const TARGET_HELP: Said = say!(
    "write `target: http://127.0.0.1:8080`, \
                           or `target: {{addresses: [http://a:80, http://b:80]}}`"
);

pub(crate) fn read_targets(cx: &mut Context<'_>, node: &Node) -> Vec<Target> {
    match &node.kind {
        Kind::Scalar { .. } => read_address(cx, node, 1).into_iter().collect(),
        Kind::List(_) => read_addresses(cx, node),
        Kind::Map(_) => match Fields::read(cx, node, &keys::TARGET) {
            Some(fields) => read_map(cx, &fields),
            None => Vec::new(),
        },
    }
}

fn read_addresses(cx: &mut Context<'_>, list: &Node) -> Vec<Target> {
    let items = cx.items(list, say!("a list of URLs"), TARGET_HELP);
    if let Some([]) = items {
        let error = cx.error("empty", say!("there is no address"), list.place);
        cx.note(error.label(say!("empty")).help(TARGET_HELP));
    }
    let mut targets: Vec<Target> = Vec::new();
    for item in items.unwrap_or_default() {
        let target = read_weighted(cx, item);
        if let (Some(first), Some(target)) = (targets.first(), &target) {
            same_scheme(cx, item, first, target);
        }
        targets.extend(target);
    }
    targets
}

/// One address, or a list of them.
fn read_map(cx: &mut Context<'_>, fields: &Fields<'_>) -> Vec<Target> {
    let is_list = match fields.one_of(cx, &["url", "addresses"]) {
        Some((key, _)) => key.text == "addresses",
        None => fields.get("unix_socket").is_none(),
    };
    if !is_list {
        return read_target(cx, fields, 1).into_iter().collect();
    }
    let list = fields.need(cx, "addresses", TARGET_HELP);
    fields.one_of(cx, &["addresses", "unix_socket"]);
    list.map(|list| read_addresses(cx, list)).unwrap_or_default()
}

fn same_scheme(cx: &mut Context<'_>, node: &Node, first: &Target, target: &Target) {
    if first.scheme != target.scheme {
        let message = say!("all addresses of a target have the same scheme");
        let error = cx.error("scheme-mismatch", message, node.place);
        cx.note(
            error
                .label(say!("the first one has `{}`", first.scheme.word()))
                .help(say!("give a session a `target` of its own")),
        );
    }
}

fn read_weighted(cx: &mut Context<'_>, node: &Node) -> Option<Target> {
    if matches!(node.kind, Kind::Scalar { .. }) {
        return read_address(cx, node, 1);
    }
    let fields = Fields::read(cx, node, &keys::ADDRESS)?;
    let weight = match fields.get("weight") {
        Some(node) => match cx.small_count(node)? {
            0 => {
                return cx.bad_value(
                    node,
                    say!("an address of weight 0 gets no user"),
                    say!("remove it"),
                );
            }
            weight => weight,
        },
        None => 1,
    };
    read_target(cx, &fields, weight)
}

/// An address that is written as a map.
fn read_target(cx: &mut Context<'_>, fields: &Fields<'_>, weight: u32) -> Option<Target> {
    let url = fields.need(cx, "url", say!("write `{{url: http://127.0.0.1:8080, weight: 3}}`"));
    let target = url.and_then(|url| read_address(cx, url, weight));
    let Some(node) = fields.get("unix_socket") else { return target };
    let socket = route::read_unix_socket(cx, node);
    let target = target?;
    if target.scheme == Scheme::Udp {
        let message = say!("datagrams do not go through a unix socket");
        return cx.bad_value(node, message, say!("leave it out, or write a `tcp` URL"));
    }
    Some(Target { unix_socket: Some(socket?), ..target })
}

fn read_address(cx: &mut Context<'_>, node: &Node, weight: u32) -> Option<Target> {
    let text = cx.text(node, say!("a URL"))?;
    let bare = !text.contains("://");
    let parsed = match &cx.spoken {
        // The protocol says the transport.
        Spoken::Declared(protocol) if bare => {
            let scheme = scheme_of(protocol.declaration().transport);
            Url::parse(&format!("{}://{text}", scheme.word()))
        }
        Spoken::Unknown if bare => return None,
        _ => Url::parse(&text),
    };
    let url = match parsed {
        Ok(url) => url,
        Err(reason) => {
            let message = say!("`{}` is not the URL of a target", shorten(&text));
            let place = cx.place_of(node, &reason.part);
            let error = cx.error("bad-url", message, place).label(reason.message);
            return cx.fail(error.help(reason.help));
        }
    };
    if url.user.is_some() {
        let error = cx
            .error("bad-url", say!("a target has no user and password"), node.place)
            .label(say!("there is an `@` in it"))
            .help(say!("write `auth: {{user: name, password: word}}` at the steps"));
        return cx.fail(error);
    }
    if !matches!(url.path.as_str(), "" | "/") {
        let place = cx.place_of(node, &url.path);
        let step = match url.scheme {
            Scheme::Ws | Scheme::Wss => format!("connect: {}", url.path),
            Scheme::Grpc | Scheme::Grpcs => format!("grpc: {}", url.path.trim_start_matches('/')),
            _ => format!("http: GET {}", url.path),
        };
        let error = cx
            .error("target-path", say!("the URL of a target has no path"), place)
            .label(say!("this belongs into a step"))
            .help(say!("write `target: {}` and `{}`", url.origin(), shorten(&step)));
        return cx.fail(error);
    }
    Some(Target { scheme: url.scheme, host: url.host, port: url.port, weight, unix_socket: None })
}

pub(crate) fn read_tls(cx: &mut Context<'_>, node: &Node, targets: &[Target]) -> Tls {
    let mut tls = Tls::default();
    let Some(fields) = Fields::read(cx, node, &keys::TLS) else { return tls };
    let is_secure = targets.iter().any(|target| target.scheme.is_secure());
    if let Some(scheme) = targets.first().map(|one| one.scheme).filter(|_| !is_secure) {
        let warning = cx
            .warning("unused-tls", say!("`tls` changes nothing here"), node.place)
            .label(say!("the target speaks `{}`, without TLS", scheme.word()))
            .help(say!("TLS is spoken with `https`, `wss`, `tls` and `grpcs` targets"));
        cx.note(warning);
    }
    if let Some(node) = fields.get("verify") {
        tls.verify = cx.bool(node).unwrap_or(true);
    }
    if let Some(node) = fields.get("resumption") {
        tls.resumption = cx.bool(node).unwrap_or(false);
    }
    if let Some(node) = fields.get("server_name") {
        tls.server_name = cx.text(node, say!("a host name"));
    }
    let mut file = |name| fields.get(name).and_then(|node| cx.file(node)).map(|(path, _)| path);
    tls.ca = file("ca");
    let (certificate, key) = (file("certificate"), file("key"));
    match (fields.get("certificate"), fields.get("key")) {
        (Some(_), None) => {
            fields.need(cx, "key", say!("a client certificate has a key file"));
        }
        (None, Some(_)) => {
            fields.need(cx, "certificate", say!("the key is that of a client certificate"));
        }
        _ => {}
    }
    tls.identity = certificate.zip(key);
    tls
}

pub(crate) fn read_connection(
    cx: &mut Context<'_>,
    node: Option<&Node>,
    source: Option<&Node>,
    targets: &[Target],
) -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    if let Some(fields) = node.and_then(|node| Fields::read(cx, node, &keys::CONNECTION)) {
        let mut flag = |name, default| match fields.get(name) {
            Some(node) => cx.bool(node).unwrap_or(default),
            None => default,
        };
        options.keep_alive = flag("keep_alive", options.keep_alive);
        options.deflate = flag("deflate", options.deflate);
        options.cookies = flag("cookies", options.cookies);
        if let Some(time) = fields.get("timeout").and_then(|node| cx.time_limit(node)) {
            options.connect_timeout = time;
        }
        if let Some(node) = fields.get("resend") {
            let words = [("idempotent", true), ("never", false)];
            options.resend = cx.word(node, &words).unwrap_or(options.resend);
        }
        if let Some(node) = fields.get("family") {
            let words = [("v4", Family::V4), ("v6", Family::V6), ("any", Family::Any)];
            options.family = cx.word(node, &words).unwrap_or_default();
        }
        if let Some(node) = fields.get("http_version") {
            let words = HttpVersion::ALL.map(|version| (version.word(), version));
            options.http_version = cx.word(node, &words).unwrap_or_default();
        }
        if let Some(streams) = fields.get("streams").and_then(|node| read_streams(cx, node)) {
            options.streams = streams;
        }
        options.routing = route::read_routing(cx, &fields, targets);
        if let Some(node) = fields.get("sources") {
            options.sources.blocks = source::read_blocks(cx, node);
            source::warn_family(cx, node, &options.sources, targets);
        }
    }
    if let Some(node) = source {
        source::read_source(cx, node, &mut options.sources);
        source::warn_family(cx, node, &options.sources, targets);
    }
    options
}

pub(crate) fn read_limits(cx: &mut Context<'_>, node: &Node) -> Limits {
    let mut limits = Limits::default();
    let Some(fields) = Fields::read(cx, node, &keys::LIMITS) else { return limits };
    let mut size = |name| fields.get(name).and_then(|node| cx.size(node));
    if let Some(bytes) = size("head") {
        limits.head_bytes_max = bytes as usize;
    }
    if let Some(bytes) = size("body") {
        limits.body_bytes_max = bytes;
    }
    if let Some(bytes) = size("message") {
        limits.message_bytes_max = bytes as usize;
    }
    if let Some(number) = fields.get("redirects").and_then(|node| read_redirects(cx, node)) {
        limits.redirects_max = number;
        cx.redirects.limit = Some(number);
    }
    limits
}

/// A number of redirects in a row; it is one for all steps.
pub(crate) fn read_redirects(cx: &mut Context<'_>, node: &Node) -> Option<u8> {
    let count = cx.count(node)?;
    match u8::try_from(count) {
        Ok(count) => Some(count),
        Err(_) => cx.bad_value(node, say!("too many redirects"), say!("write at most 255")),
    }
}
