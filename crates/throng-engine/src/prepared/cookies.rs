//! Which cookies of a user belong to a request: by its host, and by whether its connection is
//! secure.

use std::borrow::Cow;
use std::net::IpAddr;

use throng_program::Target;
use throng_protocol::http1::Jar;

/// The host and security for which a jar is read.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Without a port.
    pub(crate) host: &'a str,
    pub(crate) secure: bool,
    pub(crate) unix_seconds: u64,
}

impl<'a> Place<'a> {
    /// The place of a request whose scenario sets this Host header: a server with several names
    /// separates their cookies by it.
    pub(crate) fn named(self, host: Option<&'a [u8]>) -> Place<'a> {
        Place { host: host.and_then(host_of).unwrap_or(self.host), ..self }
    }
}

/// The cookies of a user, as seen from the URL of a response.
pub(crate) struct SeenFrom<'a> {
    pub(crate) jar: &'a Jar,
    pub(crate) place: Place<'a>,
    pub(crate) path: Cow<'a, str>,
}

impl SeenFrom<'_> {
    pub(crate) fn value(&self, name: &str) -> Option<&[u8]> {
        let Place { host, secure, unix_seconds } = self.place;
        self.jar.value(name, (host, &self.path), secure, unix_seconds)
    }
}

/// The name in the value of a Host header.
fn host_of(value: &[u8]) -> Option<&str> {
    let value = std::str::from_utf8(value).ok()?.trim();
    let name = match value.strip_prefix('[') {
        Some(address) => address.split(']').next()?,
        None => value.split(':').next()?,
    };
    (!name.is_empty()).then_some(name)
}

/// Whether a target cannot be eavesdropped on: over TLS, or on this computer, as browsers define it
/// (W3C Secure Contexts, 3.1).
pub(crate) fn is_secure(target: &Target) -> bool {
    target.scheme.is_secure() || target.unix_socket.is_some() || is_loopback(target.host_alone())
}

fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_header_names_a_host() {
        for (value, host) in [
            ("a.example", Some("a.example")),
            ("a.example:8080", Some("a.example")),
            ("[::1]:80", Some("::1")),
            ("[::1]", Some("::1")),
            (" a.example ", Some("a.example")),
            ("", None),
            (":80", None),
        ] {
            assert_eq!(host_of(value.as_bytes()), host, "{value}");
        }
        assert_eq!(host_of(b"\xff"), None);
    }

    #[test]
    fn this_computer_is_as_secure_as_tls() {
        for host in ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "notlocalhost", "10.0.0.1", "::2", "0.0.0.0", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
