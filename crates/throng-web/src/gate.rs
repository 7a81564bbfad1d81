//! Access control of a page and its controls: the token in the printed URL is required, unless
//! nothing can be changed and the page is open. Pages of other origins have no access, even if
//! their host name resolves to this host (DNS rebinding), and refusals do not say why.

use std::net::IpAddr;

use hyper::Method;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

use crate::server::{Reply, Request};

const TOKEN_BYTES: usize = 16;
/// The header with the token for requests that change something: forms of other pages cannot send
/// it.
pub const TOKEN_HEADER: &str = "x-throng-token";

/// A secret of 128 bits, as hex.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// None if the system provides no randomness.
    pub fn fresh() -> Option<Token> {
        let mut bytes = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// See the module's description.
pub struct Gate {
    /// None if no token is required.
    token: Option<Token>,
    /// Names of this host besides its addresses and `localhost`.
    names: Vec<String>,
}

impl Gate {
    /// Without a token, every client that reaches this server has access.
    pub fn new(token: Option<Token>, names: &[&str]) -> Gate {
        Gate { token, names: names.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// True if the request is allowed: with the token in the query or in the form that scrapers
    /// send, or, if it changes something, in a header.
    pub fn lets(&self, request: &Request) -> bool {
        let bearer = || request.header("authorization")?.strip_prefix("Bearer ");
        let given = match request.method {
            Method::GET => request.asked("token").or(request.header(TOKEN_HEADER)).or(bearer()),
            _ => request.header(TOKEN_HEADER),
        };
        let host = request.header("host").unwrap_or_default();
        let is_own = |origin: &str| origin.strip_prefix("http://") == Some(host);
        self.is_this_host(host)
            && request.headers.get("origin").is_none_or(|it| it.to_str().is_ok_and(is_own))
            && self.token.as_ref().is_none_or(|token| given.is_some_and(|given| token.is(given)))
    }

    /// Other names may be registered by anyone and are refused; addresses are accepted.
    fn is_this_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let name = name.to_ascii_lowercase();
        bare.parse::<IpAddr>().is_ok() || name == "localhost" || self.names.contains(&name)
    }

    /// The same reply for any reason.
    pub fn refusal() -> Reply {
        Reply::text(403, "open the link that throng printed\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unique_and_compared() {
        let (one, other) = (Token::fresh().unwrap(), Token::fresh().unwrap());
        assert_ne!(one.text(), other.text());
        assert_eq!(one.text().len(), 32);
        assert!(one.is(one.text()) && !one.is(other.text()) && !one.is(""));
        assert!(!one.is(&one.text()[..31]) && !one.is(&format!("{}0", one.text())));
    }

    #[test]
    fn foreign_host_names_are_refused() {
        let gate = Gate::new(Token::fresh(), &["Box"]);
        for own in ["127.0.0.1:80", "localhost:8080", "[::1]:9", "[::1]", "10.0.0.7", "box:1"] {
            assert!(gate.is_this_host(own), "{own}");
        }
        for other in ["evil.example:80", "", "127.0.0.1.evil.example", "localhost.evil.example"] {
            assert!(!gate.is_this_host(other), "{other}");
        }
    }
}
