//! URLs in targets and command lines: scheme, host, port, and the rest (RFC 3986).

use throng_base::Said;
use throng_program::Scheme;

use crate::native::{self, UrlSays};

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub scheme: Scheme,
    /// `name:password`, decoded.
    pub user: Option<(String, String)>,
    /// A name or an address; an IPv6 address without brackets.
    pub host: String,
    pub port: u16,
    /// Path and query; empty if the URL ends with the host. The fragment is never sent.
    pub path: String,
}

/// Why a text is not a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    pub message: Said,
    /// The part that is wrong.
    pub part: String,
    pub help: Said,
}

fn wrong<T>(message: Said, part: &str, help: Said) -> Result<T, UrlError> {
    Err(UrlError { message, part: part.into(), help })
}

fn schemes() -> Said {
    let [others @ .., last] = Scheme::ALL.map(|scheme| format!("`{}`", scheme.word()));
    let others = Said::listed(others.map(Said::of_others));
    say!("valid schemes are {others} and {last}")
}

impl Url {
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        let Some((word, rest)) = text.split_once("://") else {
            let help = say!("write `http://{0}`, `ws://{0}` or `tcp://{0}`", text.trim());
            return wrong(say!("the URL has no scheme"), text, help);
        };
        let Some(scheme) = Scheme::named(word) else {
            return wrong(say!("the URL has an unknown scheme"), word, schemes());
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = match native::of_scheme(Some(scheme)).keeps_hash {
            true => path,
            false => path.split('#').next().unwrap_or(""),
        };
        let path = match path.starts_with('?') {
            true => format!("/{path}"),
            false => path.to_string(),
        };
        let (user, host_port) = match authority.rsplit_once('@') {
            Some((user, host_port)) => (Some(user_info(user)), host_port),
            None => (None, authority),
        };
        let (host, port) = split_port(host_port)?;
        let (host, zone) = match host.split_once('%') {
            Some((address, zone)) if address.contains(':') => (address, zone),
            _ => (host, ""),
        };
        // The folder of a Unix socket can follow instead.
        let url = native::of_scheme(Some(scheme)).url;
        let is_local = host.is_empty() && url == UrlSays::Database;
        let host = if is_local { "localhost" } else { host };
        check_host(host, host_port)?;
        let port = match (port, scheme.default_port()) {
            ("", Some(port)) => port,
            ("", None) => {
                let help = say!("write `{}://{host_port}:9000`", scheme.word());
                return wrong(say!("the URL has no port"), host_port, help);
            }
            (port, _) => match port.parse() {
                Ok(number @ 1..) => number,
                _ => {
                    return wrong(
                        say!("the port is not valid"),
                        port,
                        say!("ports range from 1 to 65535"),
                    );
                }
            },
        };
        let mut host = host.to_ascii_lowercase();
        if let Some(zone) = zone_of(zone) {
            host = format!("{host}%{zone}");
        }
        Ok(Url { scheme, user, host, port, path })
    }

    /// The URL without credentials and path, as in a target.
    pub fn origin(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match self.scheme.default_port() == Some(self.port) {
            true => format!("{}://{host}", self.scheme.word()),
            false => format!("{}://{host}:{}", self.scheme.word(), self.port),
        }
    }
}

fn split_port(host_port: &str) -> Result<(&str, &str), UrlError> {
    if let Some(rest) = host_port.strip_prefix('[') {
        let Some((host, after)) = rest.split_once(']') else {
            let help = say!("write an IPv6 address in brackets: `http://[::1]:8080`");
            return wrong(say!("the `]` at the end of the address is missing"), host_port, help);
        };
        let (address, zone) = host.split_once('%').map_or((host, "x"), |(host, zone)| (host, zone));
        if address.parse::<std::net::Ipv6Addr>().is_err() || zone_of(zone).is_none() {
            return wrong(say!("this is not an IPv6 address"), host, say!("write `[::1]`"));
        }
        return match (after.is_empty(), after.strip_prefix(':')) {
            (true, _) => Ok((host, "")),
            (_, Some(port)) => Ok((host, port)),
            _ => {
                wrong(say!("the port must follow a `:`"), after, say!("write `http://[::1]:8080`"))
            }
        };
    }
    match host_port.matches(':').count() {
        0 => Ok((host_port, "")),
        1 => Ok(host_port.split_once(':').unwrap_or((host_port, ""))),
        _ => {
            let help = say!("write an IPv6 address in brackets: `http://[::1]:8080`");
            wrong(say!("the host has too many colons"), host_port, help)
        }
    }
}

/// The zone of an IPv6 address: the name or number of an interface; `%25eth0` is the same as
/// `%eth0` (RFC 6874, 2).
fn zone_of(text: &str) -> Option<&str> {
    let zone = text.strip_prefix("25").filter(|rest| !rest.is_empty()).unwrap_or(text);
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (!zone.is_empty() && zone.chars().all(good)).then_some(zone)
}

pub(crate) fn check_host(host: &str, part: &str) -> Result<(), UrlError> {
    if host.is_empty() {
        return wrong(say!("the URL has no host"), part, say!("write `http://127.0.0.1:8080`"));
    }
    if !host.is_ascii() {
        let help = say!("write the name in the form that DNS uses (`xn--…`)");
        let message = say!("the host name contains characters that DNS does not allow");
        return wrong(message, host, help);
    }
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    match host.chars().find(|c| !good(*c)) {
        Some(c) => {
            let help = say!("remove `{}`", c.escape_default());
            wrong(say!("the host name has an invalid character"), host, help)
        }
        None => Ok(()),
    }
}

fn user_info(text: &str) -> (String, String) {
    let (name, password) = text.split_once(':').unwrap_or((text, ""));
    (percent_decode(name), percent_decode(password))
}

pub(crate) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = bytes.get(i + 1..i + 3).and_then(|two| std::str::from_utf8(two).ok());
        match (bytes[i], hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                i += 3;
            }
            (byte, _) => {
                out.push(byte);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Percent-encodes for a form or query (WHATWG URL, form encoding).
pub(crate) fn form_encode(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => out.push(*byte),
            b' ' => out.push(b'+'),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

/// Percent-encodes for a request line: controls, spaces and non-ASCII characters.
pub fn encode_path(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            0x21..=0x7e => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_into_their_parts() {
        for (text, scheme, host, port, path) in [
            ("http://a", Scheme::Http, "a", 80, ""),
            ("HTTPS://A.example:8443/x?y#z", Scheme::Https, "a.example", 8443, "/x?y"),
            ("ws://[::1]:9/acc", Scheme::Ws, "::1", 9, "/acc"),
            ("wss://[::1]", Scheme::Wss, "::1", 443, ""),
            ("http://[FE80::1%Eth0]:8", Scheme::Http, "fe80::1%Eth0", 8, ""),
            ("http://[fe80::1%25eth0]", Scheme::Http, "fe80::1%eth0", 80, ""),
            ("tcp://127.0.0.1:9000", Scheme::Tcp, "127.0.0.1", 9000, ""),
            ("http://a?q=1", Scheme::Http, "a", 80, "/?q=1"),
            ("grpc://a:50051", Scheme::Grpc, "a", 50051, ""),
            ("grpcs://a", Scheme::Grpcs, "a", 443, ""),
            ("mqtt://a/room/1", Scheme::Mqtt, "a", 1883, "/room/1"),
            ("mqtts://a", Scheme::Mqtts, "a", 8883, ""),
            ("postgresql://ann:pw@a/db?x=1", Scheme::Postgres, "a", 5432, "/db?x=1"),
            ("mariadb://ann:pw@a/db", Scheme::MySql, "a", 3306, "/db"),
            ("postgres:///db?host=/tmp", Scheme::Postgres, "localhost", 5432, "/db?host=/tmp"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.scheme, url.host.as_str(), url.port), (scheme, host, port), "{text}");
            assert_eq!(url.path, path, "{text}");
        }
        let url = Url::parse("http://me:p%40ss@h/").unwrap();
        assert_eq!(url.user, Some(("me".into(), "p@ss".into())));
        assert_eq!(Url::parse("ws://[::1]:80/x").unwrap().origin(), "ws://[::1]");
    }

    #[test]
    fn bad_urls_are_refused() {
        for text in [
            "",
            "a",
            "://",
            "http://",
            "http:///x",
            "ftp://a",
            "http://a:0",
            "http://a:70000",
            "http://a:b:c",
            "http://[::1",
            "http://[zz]",
            "http://[::1%]",
            "http://[::1%a/b]",
            "http://a%eth0",
            "http://[::1]x",
            "tcp://a",
            "grpc://a",
            "http://a b",
            "http://ä.de",
            "http://a\r\nb",
            "http://::1/",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn form_and_path_encodings() {
        let mut out = Vec::new();
        form_encode("a b&ü".as_bytes(), &mut out);
        assert_eq!(out, b"a+b%26%C3%BC");
        assert_eq!(encode_path("/a b?ü=1%20"), "/a%20b?%C3%BC=1%20");
    }
}
