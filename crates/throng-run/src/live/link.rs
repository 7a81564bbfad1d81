//! The address of a live page: its port, and a link with a token that is printed once.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use throng_base::{Diagnostic, Said};
use throng_web::{Gate, Server, Token};

use crate::Operator;

/// A bound port.
pub struct Link {
    pub server: Server,
    pub gate: Gate,
    pub url: String,
}

/// Who may open the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Requires the token.
    Token,
    /// Requires the token only from other hosts.
    TokenFromOutside,
}

impl Link {
    /// Binds an address, a port of the loopback interface, or both. `flag` is the option that
    /// contains the address.
    pub fn open(address: &str, flag: &'static str) -> Result<Link, Box<Diagnostic>> {
        Link::take(address, "/", Access::Token).map_err(|cause| {
            let message = say!("the page cannot be served on `{address}`");
            let help = say!("set {flag} to an address of this host and a free port");
            let told = Diagnostic::error("live-failed", message).note(say!("cause: {cause}"));
            Box::new(told.help(help))
        })
    }

    /// Like [`Link::open`], but serves `path` and returns only the cause of an error.
    pub fn take(address: &str, path: &str, access: Access) -> Result<Link, Said> {
        let of = |error: &std::io::Error| Said::of_error(error);
        let all = whole(address);
        let found = all.to_socket_addrs().map_err(|error| of(&error))?.collect::<Vec<_>>();
        let server = Server::bind(found.as_slice()).map_err(|error| of(&error))?;
        let bound = server.address();
        let is_open = access == Access::TokenFromOutside && bound.ip().is_loopback();
        let token = match is_open {
            true => None,
            false => Some(
                Token::fresh().ok_or_else(|| say!("the system did not provide random numbers"))?,
            ),
        };
        let own_name = throng_host::facts(env!("CARGO_PKG_VERSION")).hostname.unwrap_or_default();
        let host = match bound.ip() {
            ip if ip.is_unspecified() && !own_name.is_empty() => own_name.clone(),
            IpAddr::V6(ip) => format!("[{ip}]"),
            ip => ip.to_string(),
        };
        let query = token.as_ref().map(|it| format!("?token={}", it.text())).unwrap_or_default();
        let url = format!("http://{host}:{}{path}{query}", bound.port());
        let given = all.rsplit_once(':').map_or("", |(name, _)| name);
        let gate = Gate::new(token, &[&own_name, given]);
        Ok(Link { server, gate, url })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Prints the link, and who else can use it.
    pub fn print(&self, what: &Said, errors: &dyn Operator) {
        let (url, ip) = (&self.url, self.address().ip());
        errors.say(say!("{what}: {url}"));
        if !ip.is_loopback() {
            errors.say(say!(
                "warning: {} is not a loopback address: anyone on the network with the link can \
                 see this page and use its controls; the connection is not encrypted",
                ip.to_string()
            ));
        }
    }
}

/// Adds the missing part of an address; port 0 stands for any free port.
pub fn whole(address: &str) -> String {
    match address {
        port if port.bytes().all(|byte| byte.is_ascii_digit()) => format!("127.0.0.1:{port}"),
        address if address.parse::<Ipv6Addr>().is_ok() => format!("[{address}]:0"),
        address if address.contains(':') => address.to_string(),
        address => format!("{address}:0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_address_is_completed() {
        let all = [
            ("8080", "127.0.0.1:8080"),
            ("10.0.0.7", "10.0.0.7:0"),
            ("::1", "[::1]:0"),
            ("[::1]:80", "[::1]:80"),
            ("box:80", "box:80"),
            ("box", "box:0"),
        ];
        for (given, wanted) in all {
            assert_eq!(whole(given), wanted);
        }
    }
}
