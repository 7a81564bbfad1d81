//! Targets and connections to them: `target`, `tls`, `connection`, `limits`.

mod database;

use std::path::PathBuf;

use throng_base::Said;
use throng_program::{
    ConnectionOptions, Family, HttpVersion, Limits, Login, Scheme, Target, Tls, redis,
};
use throng_protocol::websocket::DeflateOffer;

use crate::ast::{self, Field};
use crate::native::{self, UrlSays};
use crate::network::streams::read_streams;
use crate::network::{instance, lookup, route, source};
use crate::read::Context;
use crate::scope::{FileRole, Spoken, scheme_of};
use crate::syntax::{Kind, Node};
use crate::url::Url;
use crate::words::{listed, shorten};
use database::{how_to_use_tls, read_database};

const TARGET_HELP: Said = say!(
    "write `target: http://127.0.0.1:8080`, \
                           or `target: {{addresses: [http://a:80, http://b:80]}}`"
);

pub(crate) fn read_targets(cx: &mut Context<'_>, node: &Node) -> Vec<Target> {
    match &node.kind {
        Kind::Scalar { .. } => read_address(cx, node, 1).into_iter().collect(),
        Kind::List(_) => read_addresses(cx, node),
        Kind::Map(_) => match ast::Target::read(cx, node) {
            Some(fields) => {
                let mut targets = read_map(cx, &fields);
                if let Some(node) = fields.resolve.node() {
                    lookup::read(cx, node, &mut targets);
                }
                if let Some(node) = fields.instance.node() {
                    instance::read(cx, node, &mut targets);
                }
                targets
            }
            None => Vec::new(),
        },
    }
}

fn read_addresses(cx: &mut Context<'_>, list: &Node) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    let none = say!("there are no addresses");
    for item in cx.filled_list(list, say!("a list of URLs"), none, TARGET_HELP) {
        let target = read_weighted(cx, item);
        if let (Some(first), Some(target)) = (targets.first(), &target) {
            same_scheme(cx, item, first, target);
        }
        targets.extend(target);
    }
    targets
}

/// One address, or a list of them.
fn read_map(cx: &mut Context<'_>, fields: &ast::Target<'_>) -> Vec<Target> {
    let is_list = match ast::one_of(cx, &[fields.url, fields.addresses]) {
        Some((key, _)) => fields.addresses.is(key),
        None => !fields.unix_socket.is_there(),
    };
    if !is_list {
        let url = fields.need(cx, fields.url, ADDRESS_HELP);
        return read_target(cx, url, fields.unix_socket, 1).into_iter().collect();
    }
    let list = fields.need(cx, fields.addresses, TARGET_HELP);
    ast::one_of(cx, &[fields.addresses, fields.unix_socket]);
    list.map(|list| read_addresses(cx, list)).unwrap_or_default()
}

fn same_scheme(cx: &mut Context<'_>, node: &Node, first: &Target, target: &Target) {
    if first.scheme != target.scheme {
        let message = say!("all addresses of a target must have the same scheme");
        let label = say!("the first address uses `{}`", first.scheme.word());
        let help = say!("give a session its own `target`");
        cx.report("scheme-mismatch", node.place, message, label, help);
    }
}

fn read_weighted(cx: &mut Context<'_>, node: &Node) -> Option<Target> {
    if matches!(node.kind, Kind::Scalar { .. }) {
        return read_address(cx, node, 1);
    }
    let fields = ast::Address::read(cx, node)?;
    let weight = match fields.weight.node() {
        Some(node) => match cx.small_count(node)? {
            0 => {
                return cx.bad_value(
                    node,
                    say!("an address with weight 0 gets no users"),
                    say!("remove it"),
                );
            }
            weight => weight,
        },
        None => 1,
    };
    let url = fields.need(cx, fields.url, ADDRESS_HELP);
    read_target(cx, url, fields.unix_socket, weight)
}

const ADDRESS_HELP: Said = say!("write `{{url: http://127.0.0.1:8080, weight: 3}}`");

/// An address as a map.
fn read_target(
    cx: &mut Context<'_>,
    url: Option<&Node>,
    unix_socket: Field<'_>,
    weight: u32,
) -> Option<Target> {
    let target = url.and_then(|url| read_address(cx, url, weight));
    let Some(node) = unix_socket.node() else { return target };
    let socket = route::read_unix_socket(cx, node);
    let target = target?;
    if target.scheme == Scheme::Udp {
        let message = say!("datagrams are not supported over a Unix socket");
        return cx.bad_value(node, message, say!("remove it, or write a `tcp` URL"));
    }
    Some(Target { unix_socket: Some(socket?), ..target })
}

fn read_address(cx: &mut Context<'_>, node: &Node, weight: u32) -> Option<Target> {
    let text = cx.text(node, say!("a URL"))?;
    let bare = !text.contains("://");
    let parsed = match cx.scope.spoken {
        // The protocol determines the transport.
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
            let message = say!("`{}` is not a valid target URL", shorten(&text));
            let place = cx.place_of(node, &reason.part);
            return cx.refuse("bad-url", place, message, reason.message, reason.help);
        }
    };
    let native = native::of_scheme(Some(url.scheme));
    match native.url {
        UrlSays::Database => {
            let dialect = url.scheme.dialect().unwrap_or_default();
            return read_database(cx, node, (url, dialect), weight);
        }
        UrlSays::Login => return read_login(cx, node, (&text, url), weight),
        UrlSays::Place => {}
    }
    if url.user.is_some() {
        let error = cx
            .error(
                "bad-url",
                say!("a target URL cannot contain a user name or password"),
                node.place,
            )
            .label(say!("the URL contains an `@`"))
            .help(say!("write `auth: {{user: name, password: word}}` in the steps"));
        return cx.fail(error);
    }
    if !matches!(url.path.as_str(), "" | "/") {
        let place = cx.place_of(node, &url.path);
        let step = format!("{}{}", native.step, url.path.trim_start_matches('/'));
        let error = cx
            .error("target-path", say!("a target URL cannot have a path"), place)
            .label(say!("this belongs in a step"))
            .help(say!("write `target: {}` and `{}`", url.origin(), shorten(&step)));
        return cx.fail(error);
    }
    Some(Target { weight, ..Target::new(url.scheme, url.host, url.port) })
}

/// Credentials and database in a URL: `redis://user:password@host/3`.
fn read_login(
    cx: &mut Context<'_>,
    node: &Node,
    (text, url): (&str, Url),
    weight: u32,
) -> Option<Target> {
    let database = match url.path.trim_start_matches('/') {
        "" => 0,
        text => match text.parse() {
            Ok(database) => database,
            Err(_) => {
                let place = cx.place_of(node, text);
                let error = cx.error("bad-url", say!("this is not a database number"), place);
                return cx.fail(error.help(say!("write `redis://127.0.0.1/3`")));
            }
        },
    };
    let is_named = url.user.is_some();
    let (user, password) = url.user.unwrap_or_default();
    if is_named && password.is_empty() {
        let label = say!("the URL contains an `@`");
        let help = say!("write `redis://user:password@host`, or `redis://:password@host`");
        return cx.refuse("bad-url", node.place, say!("the URL contains no password"), label, help);
    }
    if !password.is_empty() {
        // The written form, which is not decoded, is a secret too.
        let login = text.split_once("//").and_then(|(_, rest)| rest.rsplit_once('@'));
        let written = login.and_then(|(login, _)| login.split_once(':'));
        cx.secrets.learn("target.password", written.map_or(&password, |(_, written)| written));
        cx.secrets.learn("target.password", &password);
    }
    let is_any = !password.is_empty() || database > 0;
    let login = is_any.then(|| Login::Redis(redis::Login { user, password, database }).into());
    Some(Target { weight, login, ..Target::new(url.scheme, url.host, url.port) })
}

pub(crate) fn read_tls(
    cx: &mut Context<'_>,
    scenario: &ast::Scenario<'_>,
    targets: &[Target],
    secures: bool,
) -> Tls {
    let mut tls = Tls::default();
    let Some(node) = scenario.tls.node() else { return tls };
    let Some(fields) = ast::Tls::read(cx, node) else { return tls };
    let is_secure = secures || targets.iter().any(Target::may_be_secure);
    if let Some(scheme) = targets.first().map(|one| one.scheme).filter(|_| !is_secure) {
        let warning = cx
            .warning("unused-tls", say!("`tls` has no effect here"), node.place)
            .label(match scheme.dialect() {
                Some(_) => say!("the target does not use TLS"),
                None => say!("the target uses `{}`, a scheme without TLS", scheme.word()),
            })
            .help(match scheme.dialect() {
                Some(dialect) => how_to_use_tls(dialect).clone(),
                None => {
                    let secure = Scheme::ALL.into_iter().filter(|one| one.is_secure());
                    let secure = listed(secure.map(Scheme::word));
                    say!("only {secure} targets use TLS, and tcp targets after a `secure` step")
                }
            });
        cx.note(warning);
    }
    if let Some(node) = fields.verify.node() {
        tls.verify = cx.bool(node).unwrap_or(true);
    }
    if let Some(node) = fields.resumption.node() {
        tls.resumption = cx.bool(node).unwrap_or(false);
    }
    if let Some(node) = fields.server_name.node() {
        tls.server_name = cx.text(node, say!("a host name"));
    }
    let ca = fields.ca.node().and_then(|node| cx.file(node, FileRole::Certificate));
    tls.ca = ca.map(|(path, _)| path);
    tls.identity = read_identity(cx, &fields);
    tls
}

/// A certificate and its key, which can be in one file.
fn read_identity(cx: &mut Context<'_>, fields: &ast::Tls<'_>) -> Option<(PathBuf, PathBuf)> {
    let mut file = |field: Field<'_>, role| field.node().and_then(|node| cx.file(node, role));
    let certificate = file(fields.certificate, FileRole::Certificate);
    let key = file(fields.key, FileRole::Key);
    match (certificate, fields.certificate.is_there(), fields.key.is_there()) {
        (Some((path, bytes)), true, false) => match has_key(&bytes) {
            true => Some((path.clone(), path)),
            false => {
                let help = say!(
                    "a client certificate requires a private key: set `key` (--key) to its file, \
                     or put both into one file"
                );
                fields.need(cx, fields.key, help);
                None
            }
        },
        (_, false, true) => {
            fields.need(
                cx,
                fields.certificate,
                say!("a private key requires its client certificate"),
            );
            None
        }
        (certificate, ..) => Some((certificate?.0, key?.0)),
    }
}

/// True if a PEM file contains a private key of any kind (RFC 7468).
fn has_key(bytes: &[u8]) -> bool {
    const LABEL: &[u8] = b"PRIVATE KEY-----";
    bytes.windows(LABEL.len()).any(|piece| piece == LABEL)
}

pub(crate) fn read_connection(
    cx: &mut Context<'_>,
    scenario: &ast::Scenario<'_>,
    targets: &[Target],
) -> ConnectionOptions {
    let mut options = ConnectionOptions::default();
    let connection = scenario.connection.node();
    if let Some(fields) = connection.and_then(|node| ast::Connection::read(cx, node)) {
        let mut flag = |field: Field<'_>, default| {
            field.node().map_or(default, |node| cx.bool(node).unwrap_or(default))
        };
        options.keep_alive = flag(fields.keep_alive, options.keep_alive);
        options.cookies = flag(fields.cookies, options.cookies);
        if let Some(time) = fields.timeout.node().and_then(|node| cx.time_limit(node)) {
            options.connect_timeout = time;
        }
        if let Some(node) = fields.deflate.node() {
            let words = [
                ("true", DeflateOffer::AsBrowsers),
                ("false", DeflateOffer::Nothing),
                ("no_context_takeover", DeflateOffer::NoContextTakeover),
            ];
            options.deflate = cx.word(node, &words).unwrap_or_default();
        }
        if let Some(node) = fields.resend.node() {
            let words = [("idempotent", true), ("never", false)];
            options.resend = cx.word(node, &words).unwrap_or(options.resend);
        }
        if let Some(node) = fields.family.node() {
            let words = [("v4", Family::V4), ("v6", Family::V6), ("any", Family::Any)];
            options.family = cx.word(node, &words).unwrap_or_default();
        }
        if let Some(node) = fields.http_version.node() {
            let words = HttpVersion::ALL.map(|version| (version.word(), version));
            options.http_version = cx.word(node, &words).unwrap_or_default();
        }
        if let Some(streams) = fields.streams.node().and_then(|node| read_streams(cx, node)) {
            options.streams = streams;
        }
        options.routing = route::read_routing(cx, &fields, targets);
        if let Some(node) = fields.sources.node() {
            options.sources.blocks = source::read_blocks(cx, node);
            source::warn_family(cx, node, &options.sources, targets);
        }
    }
    if let Some(node) = scenario.source.node() {
        source::read_source(cx, node, &mut options.sources);
        source::warn_family(cx, node, &options.sources, targets);
    }
    options
}

pub(crate) fn read_limits(cx: &mut Context<'_>, node: Option<&Node>) -> Limits {
    let mut limits = Limits::default();
    let fields = node.and_then(|node| ast::Limits::read(cx, node));
    let Some(fields) = fields else { return limits };
    let mut size = |field: Field<'_>| field.node().and_then(|node| cx.size(node));
    if let Some(bytes) = size(fields.head) {
        limits.head_bytes_max = bytes as usize;
    }
    if let Some(bytes) = size(fields.body) {
        limits.body_bytes_max = bytes;
    }
    if let Some(bytes) = size(fields.message) {
        limits.message_bytes_max = bytes as usize;
    }
    if let Some(number) = fields.redirects.node().and_then(|node| read_redirects(cx, node)) {
        limits.redirects_max = number;
        cx.redirects.limit = Some(number);
    }
    limits
}

/// Maximum number of redirects in a row; the same for all steps.
pub(crate) fn read_redirects(cx: &mut Context<'_>, node: &Node) -> Option<u8> {
    let count = cx.count(node)?;
    match u8::try_from(count) {
        Ok(count) => Some(count),
        Err(_) => cx.bad_value(node, say!("too many redirects"), say!("write at most 255")),
    }
}
