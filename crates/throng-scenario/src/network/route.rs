//! Where connections go instead of the resolved address of a target: `connection: {resolve: …,
//! connect_to: …}`, `unix_socket` of a target, and the corresponding flags of curl.

use std::net::IpAddr;

use throng_base::Said;
use throng_program::{ConnectTo, Endpoints, Proxy, Resolve, Routing, Scheme, Target, UnixSocket};

use crate::ast;
use crate::read::Context;
use crate::scope::FileRole;
use crate::syntax::{Key, Kind, Node};
use crate::url::{Url, check_host};
use crate::words::shorten;

const RESOLVE_HELP: Said = say!("write `resolve: {{\"shop.example:443\": 127.0.0.1}}`");
const CONNECT_TO_HELP: Said =
    say!("write `connect_to: {{\"shop.example:443\": \"127.0.0.1:8443\"}}`");

const PROXY_HELP: Said = say!("write `http://proxy.example:3128`");
/// The default port of a proxy in curl.
const CURL_PROXY_PORT: u16 = 1080;

/// What is wrong, and what is valid.
#[derive(Debug, PartialEq, Eq)]
struct RouteError {
    message: Said,
    help: Said,
}

fn wrong<T>(message: Said, help: Said) -> Result<T, RouteError> {
    Err(RouteError { message, help })
}

/// `connection: {resolve: …, connect_to: …}`
pub(crate) fn read_routing(
    cx: &mut Context<'_>,
    fields: &ast::Connection<'_>,
    all: &[Target],
) -> Routing {
    let mut routing = Routing::default();
    let targets = || all.iter().filter(|target| target.unix_socket.is_none());
    if let Some(node) = fields.proxy.node() {
        routing.proxy = read_proxy(cx, node);
        if targets().any(|target| target.scheme == Scheme::Udp) {
            let message = say!("datagrams are not supported through a proxy");
            let help = say!("remove it, or remove the `udp` target");
            let _: Option<()> = cx.bad_value(node, message, help);
        }
        if !all.is_empty() && targets().next().is_none() {
            let label = say!("has no effect");
            let help = say!("connections to a Unix socket do not use a proxy");
            cx.warn("unused-route", node.place, say!("no connection uses the proxy"), label, help);
        }
    }
    if let Some(node) = fields.connect_to.node() {
        let entries = cx.entries(node, say!("a map of hosts and ports"), CONNECT_TO_HELP);
        for (key, value) in entries.unwrap_or_default() {
            let from = read_endpoints(cx, key, CONNECT_TO_HELP);
            let to = read_other(cx, value);
            routing.connect_to.extend(from.zip(to).map(|(from, to)| ConnectTo { from, to }));
        }
        warn_unused(cx, node, "connect_to", |place| {
            targets().any(|target| place.include(&target.host, target.port))
        });
    }
    if let Some(node) = fields.resolve.node() {
        let entries = cx.entries(node, say!("a map of hosts and addresses"), RESOLVE_HELP);
        for (key, value) in entries.unwrap_or_default() {
            let of = read_endpoints(cx, key, RESOLVE_HELP);
            let addresses = read_addresses(cx, value);
            routing.resolve.extend(of.zip(addresses).map(|(of, to)| Resolve { of, addresses: to }));
        }
        let ends: Vec<(&str, u16)> = targets().map(|target| routing.next_hop(target)).collect();
        warn_unused(cx, node, "resolve", |place| {
            ends.iter().any(|(host, port)| place.include(host, *port))
        });
    }
    routing
}

/// A URL, or a map with the URL and credentials.
fn read_proxy(cx: &mut Context<'_>, node: &Node) -> Option<Proxy> {
    if matches!(node.kind, Kind::Scalar { .. }) {
        return read_proxy_url(cx, node);
    }
    let fields = ast::Proxy::read(cx, node)?;
    let url = fields.need(cx, fields.url, PROXY_HELP);
    let proxy = url.and_then(|url| read_proxy_url(cx, url));
    let user = fields.user.node().and_then(|node| cx.text(node, say!("a name")));
    let password = fields.password.node().and_then(|node| cx.text(node, say!("a password")));
    if password.is_some() {
        fields.need(cx, fields.user, say!("add the `user` for this password"));
    }
    let proxy = proxy?;
    match (user, &proxy.user, fields.user.key()) {
        (Some(_), Some(_), Some(key)) => {
            let message = say!("the URL also contains a user name");
            let help = say!("keep one of them");
            cx.refuse("conflicting-keys", key.place, message, say!("the second one"), help)
        }
        (Some(name), _, Some(key)) if name.contains(':') => {
            let label = say!("not allowed");
            let help = say!("write the password as `password`");
            cx.refuse("bad-value", key.place, say!("a user name cannot contain `:`"), label, help)
        }
        (Some(name), _, _) => {
            Some(Proxy { user: Some((name, password.unwrap_or_default())), ..proxy })
        }
        _ => Some(proxy),
    }
}

fn read_proxy_url(cx: &mut Context<'_>, node: &Node) -> Option<Proxy> {
    let text = cx.text(node, say!("a proxy URL"))?;
    match parse_proxy(&text) {
        Ok(proxy) => Some(proxy),
        Err(reason) => {
            let message = say!("`{}` is not a valid proxy URL", shorten(&text));
            cx.refuse("bad-url", node.place, message, reason.message, reason.help)
        }
    }
}

/// `/run/app.sock`, or `@name` for an abstract socket.
pub(crate) fn read_unix_socket(cx: &mut Context<'_>, node: &Node) -> Option<UnixSocket> {
    const HELP: Said =
        say!("write `unix_socket: /run/app.sock`, or `@name` for an abstract socket");
    let text = cx.text(node, say!("the path of a socket"))?;
    let socket = match text.strip_prefix('@') {
        Some(name) => UnixSocket::Abstract(name.to_string()),
        None => UnixSocket::Path(cx.named_path(node.place, &text, FileRole::Socket)),
    };
    let bytes = match &socket {
        UnixSocket::Abstract(name) => name.len(),
        UnixSocket::Path(path) => path.as_os_str().len(),
    };
    match bytes {
        _ if matches!(text.as_str(), "" | "@") => {
            cx.bad_value(node, say!("a socket requires a name"), HELP)
        }
        _ if text.contains('\0') => {
            cx.bad_value(node, say!("the name of a socket cannot contain a NUL byte"), HELP)
        }
        bytes if bytes > UnixSocket::NAME_BYTES_MAX => cx.bad_value(
            node,
            say!("a socket path can have at most 107 bytes"),
            say!("create a symbolic link with a shorter path to the socket's directory"),
        ),
        _ => Some(socket),
    }
}

/// Converts the value of `--unix-socket` for a scenario.
pub fn unix_socket_of_curl(path: &str) -> String {
    match path.starts_with('@') {
        true => format!("./{path}"),
        false => path.to_string(),
    }
}

/// Converts the value of `--abstract-unix-socket` for a scenario.
pub fn abstract_socket_of_curl(name: &str) -> String {
    format!("@{name}")
}

fn read_endpoints(cx: &mut Context<'_>, key: &Key, help: Said) -> Option<Endpoints> {
    match parse_endpoints(&key.text) {
        Ok(endpoints) => Some(endpoints),
        Err(reason) => {
            let message = say!("`{}` is not a valid host and port", shorten(&key.text));
            cx.refuse("bad-value", key.place, message, reason.message, help)
        }
    }
}

/// Where connections go instead.
fn read_other(cx: &mut Context<'_>, node: &Node) -> Option<Endpoints> {
    let text = cx.text(node, say!("a host and port"))?;
    let (reason, help) = match parse_endpoints(&text) {
        Ok(Endpoints { host: None, port: None }) => (say!("this is empty"), CONNECT_TO_HELP),
        Ok(endpoints) => return Some(endpoints),
        Err(reason) => (reason.message, reason.help),
    };
    let message = say!("`{}` is not a valid host and port", shorten(&text));
    cx.refuse("bad-value", node.place, message, reason, help)
}

/// One address, or a list of them.
fn read_addresses(cx: &mut Context<'_>, node: &Node) -> Option<Vec<IpAddr>> {
    let items = cx.some_items(node, say!("there are no addresses"), RESOLVE_HELP)?;
    items.iter().map(|item| read_address(cx, item)).collect()
}

fn read_address(cx: &mut Context<'_>, node: &Node) -> Option<IpAddr> {
    let text = cx.text(node, say!("an address"))?;
    match parse_address(&text) {
        Ok(address) => Some(address),
        Err(reason) => {
            let message = say!("`{}` is not an IP address", shorten(&text));
            cx.refuse("bad-value", node.place, message, reason.message, reason.help)
        }
    }
}

/// Warns of entries that no connection uses.
fn warn_unused(cx: &mut Context<'_>, node: &Node, name: &str, used: impl Fn(&Endpoints) -> bool) {
    for (key, _) in node.entries() {
        if parse_endpoints(&key.text).is_ok_and(|place| !used(&place)) {
            let text = shorten(&key.text);
            let message = say!("no connection uses the entry `{text}` in `{name}`");
            let help = say!("write the host and port exactly as in the target");
            cx.warn("unused-route", key.place, message, say!("has no effect"), help);
        }
    }
}

/// `host:port`, `host`, `:port` or `*:port`, or `*`.
fn parse_endpoints(text: &str) -> Result<Endpoints, RouteError> {
    let text = text.trim();
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, behind))) => (host, behind),
        Some(None) => {
            return wrong(
                say!("the `]` at the end of the address is missing"),
                say!("write `[::1]:8080`"),
            );
        }
        None if text.parse::<std::net::Ipv6Addr>().is_ok() => (text, ""),
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match port.strip_prefix(':').filter(|port| *port != "*") {
        None if matches!(port, "" | ":*") => None,
        None => return wrong(say!("the port must follow a `:`"), say!("write `[::1]:8080`")),
        Some(port) => match port.parse() {
            Ok(number @ 1..) => Some(number),
            _ => return wrong(say!("the port is not valid"), say!("ports range from 1 to 65535")),
        },
    };
    if matches!(host, "" | "*") {
        return Ok(Endpoints { host: None, port });
    }
    check_host(host, host)
        .map_err(|error| RouteError { message: error.message, help: error.help })?;
    Ok(Endpoints { host: Some(host.to_ascii_lowercase()), port })
}

/// `http://proxy.example:3128`; the scheme is optional, the port is not.
fn parse_proxy(text: &str) -> Result<Proxy, RouteError> {
    let (scheme, rest) = text.trim().split_once("://").unwrap_or(("http", text.trim()));
    if !scheme.eq_ignore_ascii_case("http") {
        return wrong(say!("only `http://` proxies are supported"), PROXY_HELP);
    }
    // A scheme without a default port: proxies have none.
    let url = Url::parse(&format!("tcp://{rest}")).map_err(|error| {
        let is_portless = Url::parse(&format!("http://{rest}")).is_ok();
        let help = if is_portless { PROXY_HELP } else { error.help };
        RouteError { message: error.message, help }
    })?;
    if !matches!(url.path.as_str(), "" | "/") {
        return wrong(say!("a proxy URL cannot have a path"), PROXY_HELP);
    }
    Ok(Proxy { host: url.host, port: url.port, user: url.user })
}

/// Converts the value of `--proxy` for a scenario: the URL without credentials, and the
/// credentials. The default port is that of curl, 1080.
pub fn proxy_of_curl(text: &str) -> Result<BenchProxy, (Said, Said)> {
    let text = text.trim();
    let with_port = format!("{}:{CURL_PROXY_PORT}", text.trim_end_matches('/'));
    let parsed = parse_proxy(text);
    let is_portless = parsed.is_err() && parse_proxy(&with_port).is_ok();
    let proxy = if is_portless { parse_proxy(&with_port) } else { parsed };
    let proxy = proxy.map_err(|error| (error.message, error.help))?;
    Ok(BenchProxy { url: format!("http://{}", proxy.authority()), user: proxy.user })
}

fn parse_address(text: &str) -> Result<IpAddr, RouteError> {
    let text = text.trim();
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    plain.parse().or_else(|_| match plain.parse::<std::net::SocketAddr>() {
        Ok(_) => wrong(
            say!("the address contains a port"),
            say!(
                "for another port, write `connect_to: {{\"shop.example:443\": \
                  \"127.0.0.1:8443\"}}`"
            ),
        ),
        Err(_) => wrong(
            say!("this is not an IPv4 or IPv6 address"),
            say!(
                "for a host name, write `connect_to: {{\"shop.example:443\": \
                 \"other.example:443\"}}`"
            ),
        ),
    })
}

/// Converts the value of `--resolve` for a scenario: `HOST:PORT` and its addresses. The error says
/// what is wrong and what is valid.
pub fn resolve_of_curl(text: &str) -> Result<(String, Vec<String>), (Said, Said)> {
    const HELP: Said = say!("write `HOST:PORT:ADDRESS`, or `HOST:PORT:ADDRESS,ADDRESS`");
    // With the `+`, the entry expires in curl.
    let text = text.strip_prefix('+').unwrap_or(text);
    let place = split_host(text).and_then(|(host, rest)| Some((host, rest.split_once(':')?)));
    let Some((host, (port, addresses))) = place else {
        return Err((say!("the host, the port or the address is missing"), HELP));
    };
    let key = format!("{host}:{port}");
    if host.is_empty() {
        return Err((say!("the host is missing"), HELP));
    }
    parse_endpoints(&key).map_err(|error| (error.message, HELP))?;
    let addresses: Vec<String> = addresses.split(',').map(|one| one.trim().to_string()).collect();
    for address in &addresses {
        parse_address(address).map_err(|error| (error.message, HELP))?;
    }
    Ok((key, addresses))
}

/// Converts the value of `--connect-to` for a scenario. An omitted part on the left means any, on
/// the right that of the target.
pub fn connect_to_of_curl(text: &str) -> Result<(String, String), (Said, Said)> {
    const HELP: Said = say!("write `HOST:PORT:OTHER_HOST:OTHER_PORT`; parts may be empty");
    let missing = || (say!("a colon is missing"), HELP);
    let (host, rest) = split_host(text).ok_or_else(missing)?;
    let (port, rest) = rest.split_once(':').ok_or_else(missing)?;
    let (other_host, other_port) = split_host(rest).ok_or_else(missing)?;
    let from = written(host, port);
    let to = match (other_host, other_port) {
        // To itself: later entries are not used.
        ("", "") if from != "*" => from.clone(),
        ("", "") => return Err((say!("this is empty"), HELP)),
        _ => written(other_host, other_port),
    };
    for text in [&from, &to] {
        parse_endpoints(text).map_err(|error| (error.message, HELP))?;
    }
    Ok((from, to))
}

/// The host, including the brackets of IPv6, and the text after the colon.
fn split_host(text: &str) -> Option<(&str, &str)> {
    match text.starts_with('[') {
        true => {
            let end = text.find(']')? + 1;
            Some((&text[..end], text[end..].strip_prefix(':')?))
        }
        false => text.split_once(':'),
    }
}

fn written(host: &str, port: &str) -> String {
    match (host, port) {
        ("", "") => "*".to_string(),
        ("", port) => format!("*:{port}"),
        (host, "") => host.to_string(),
        (host, port) => format!("{host}:{port}"),
    }
}

/// A proxy from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchProxy {
    /// `http://proxy.example:3128`
    pub url: String,
    pub user: Option<(String, String)>,
}

#[cfg(test)]
mod tests;
