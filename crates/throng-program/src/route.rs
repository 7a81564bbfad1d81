//! Where connections to a target go, if not to the addresses of its name. The name itself is
//! unchanged in Host, in SNI, and for certificates.

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::Target;

/// A pattern of hosts and ports; `None` is any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// In lower case; an IPv6 address without brackets.
    pub host: Option<String>,
    pub port: Option<u16>,
}

impl Endpoints {
    pub fn include(&self, host: &str, port: u16) -> bool {
        self.host.as_deref().is_none_or(|own| own.eq_ignore_ascii_case(host))
            && self.port.is_none_or(|own| own == port)
    }
}

/// Like `--connect-to` of curl: connections go to another host or port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectTo {
    pub from: Endpoints,
    /// `None` keeps that of the target.
    pub to: Endpoints,
}

/// Like `--resolve` of curl: the addresses of a name, which is not looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolve {
    pub of: Endpoints,
    pub addresses: Vec<IpAddr>,
}

/// A unix socket on which a service listens instead of a port (unix(7)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnixSocket {
    Path(PathBuf),
    /// Without a file.
    Abstract(String),
}

impl UnixSocket {
    /// Size of `sun_path` without the NUL at its start or end.
    pub const NAME_BYTES_MAX: usize = 107;

    /// As passed to the kernel: an abstract name starts with NUL.
    pub fn sun_path(&self) -> PathBuf {
        match self {
            UnixSocket::Path(path) => path.clone(),
            UnixSocket::Abstract(name) => OsString::from(format!("\0{name}")).into(),
        }
    }
}

/// As in the scenario: `/run/app.sock`, or `@name`.
impl fmt::Display for UnixSocket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnixSocket::Path(path) => path.display().fmt(out),
            UnixSocket::Abstract(name) => write!(out, "@{name}"),
        }
    }
}

/// An HTTP proxy for connections: it is asked for a tunnel (RFC 9110, 9.3.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    pub host: String,
    pub port: u16,
    /// User name and password for the proxy.
    pub user: Option<(String, String)>,
}

/// All routing rules: first `connect_to`, then `resolve`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// The first that matches a host and port applies.
    pub connect_to: Vec<ConnectTo>,
    /// One that names the host goes before one for any host.
    pub resolve: Vec<Resolve>,
    /// For all targets except unix sockets. It resolves the name of a target itself.
    pub proxy: Option<Proxy>,
}

impl Proxy {
    pub fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

/// `host:port`, an IPv6 address in brackets.
pub fn authority(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

impl Routing {
    /// The proxy of connections to a target, if any.
    pub fn proxy_of(&self, target: &Target) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|_| target.unix_socket.is_none())
    }

    /// The host and port of the first hop to a target: the proxy, or the target.
    pub fn next_hop<'r>(&'r self, target: &'r Target) -> (&'r str, u16) {
        match self.proxy_of(target) {
            Some(proxy) => (&proxy.host, proxy.port),
            None => self.endpoint(&target.host, target.port),
        }
    }

    /// The host and port to which connections to this one are made.
    pub fn endpoint<'r>(&'r self, host: &'r str, port: u16) -> (&'r str, u16) {
        match self.connect_to.iter().find(|one| one.from.include(host, port)) {
            Some(one) => (one.to.host.as_deref().unwrap_or(host), one.to.port.unwrap_or(port)),
            None => (host, port),
        }
    }

    /// The configured addresses of a host and port; `None` means that the name is looked up.
    pub fn addresses(&self, host: &str, port: u16) -> Option<&[IpAddr]> {
        let fitting = || self.resolve.iter().filter(|one| one.of.include(host, port));
        let named = fitting().find(|one| one.of.host.is_some());
        named.or_else(|| fitting().next()).map(|one| one.addresses.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(host: &str, port: u16) -> Endpoints {
        let host = Some(host.to_string()).filter(|host| !host.is_empty());
        Endpoints { host, port: Some(port).filter(|port| *port > 0) }
    }

    #[test]
    fn the_first_matching_rule_applies() {
        let way = |from, to| ConnectTo { from, to };
        let routing = Routing {
            connect_to: vec![
                way(endpoints("a", 80), endpoints("", 8080)),
                way(endpoints("a", 0), endpoints("b", 0)),
                way(endpoints("", 443), endpoints("::1", 8443)),
            ],
            ..Routing::default()
        };
        for (host, port, to) in [
            ("A", 80, ("A", 8080)),
            ("a", 81, ("b", 81)),
            ("c", 443, ("::1", 8443)),
            ("c", 80, ("c", 80)),
        ] {
            assert_eq!(routing.endpoint(host, port), to, "{host}:{port}");
        }
    }

    #[test]
    fn addresses_of_a_named_host_go_before_those_of_any_host() {
        let resolve = |of, address: &str| Resolve { of, addresses: vec![address.parse().unwrap()] };
        let routing = Routing {
            resolve: vec![
                resolve(endpoints("", 443), "127.0.0.1"),
                resolve(endpoints("a", 0), "127.0.0.2"),
            ],
            ..Routing::default()
        };
        for (host, port, address) in
            [("a", 443, Some("127.0.0.2")), ("b", 443, Some("127.0.0.1")), ("b", 80, None)]
        {
            let found = routing.addresses(host, port).map(|all| all[0].to_string());
            assert_eq!(found.as_deref(), address, "{host}:{port}");
        }
    }
}
