//! Who may see a page and steer a run from it: whoever has the token, which is in the URL that is
//! printed; or everybody, if nothing can be changed there. A page of another origin cannot, even
//! where its name is made to lead here (DNS rebinding), and nobody is told more than that.

use std::net::IpAddr;

use hyper::Method;
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;

use crate::server::{Reply, Request};

const TOKEN_BYTES: usize = 16;
/// Where a request that changes something has the token: no form of another page can send it.
pub const TOKEN_HEADER: &str = "x-throng-token";

/// A secret of 128 bits, as hex.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// None where the system has no randomness to give.
    pub fn fresh() -> Option<Token> {
        let mut bytes = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// In a time that does not depend on how much of it is right.
    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// See the module's description.
pub struct Gate {
    /// None where none is needed.
    token: Option<Token>,
    /// Names of this host besides its addresses and `localhost`.
    names: Vec<String>,
}

impl Gate {
    /// Without a token, whoever reaches this server may see it.
    pub fn new(token: Option<Token>, names: &[&str]) -> Gate {
        Gate { token, names: names.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// Whether to answer: with the token in the query or as scrapers send it, or, where it changes
    /// something, in a header.
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

    /// A name that anybody may have registered is none of this host's; an address is its own.
    fn is_this_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let name = name.to_ascii_lowercase();
        bare.parse::<IpAddr>().is_ok() || name == "localhost" || self.names.contains(&name)
    }

    /// The same for whatever is wrong.
    pub fn refusal() -> Reply {
        Reply::text(403, "open the link that throng printed\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_told_apart() {
        let (one, other) = (Token::fresh().unwrap(), Token::fresh().unwrap());
        assert_ne!(one.text(), other.text());
        assert_eq!(one.text().len(), 32);
        assert!(one.is(one.text()) && !one.is(other.text()) && !one.is(""));
        assert!(!one.is(&one.text()[..31]) && !one.is(&format!("{}0", one.text())));
    }

    #[test]
    fn names_of_others_are_not_this_host() {
        let gate = Gate::new(Token::fresh(), &["Box"]);
        for own in ["127.0.0.1:80", "localhost:8080", "[::1]:9", "[::1]", "10.0.0.7", "box:1"] {
            assert!(gate.is_this_host(own), "{own}");
        }
        for other in ["evil.example:80", "", "127.0.0.1.evil.example", "localhost.evil.example"] {
            assert!(!gate.is_this_host(other), "{other}");
        }
    }
}
