//! The opening handshake of RFC 6455, section 4: writes the request, checks the response.
//!
//! It does not parse HTTP; the response is given as a status and pairs of header bytes.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use throng_base::Random;

use super::agreement::{Deflate, DeflateOffer, Parameters};
use super::refusal::{UpgradeError, shown};
use crate::http1::IS_TOKEN;

#[cfg(test)]
mod tests;

/// RFC 6455, 1.3.
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The value of `Sec-WebSocket-Key`: 16 random bytes in base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key([u8; 24]);

impl Key {
    pub fn new(bytes: [u8; 16]) -> Key {
        let mut text = [0; 24];
        let written = STANDARD.encode_slice(bytes, &mut text);
        debug_assert_eq!(written, Ok(24), "16 bytes are 24 characters of base64");
        Key(text)
    }

    pub fn random(random: &mut Random) -> Key {
        let bytes = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        Key::new(bytes.to_be_bytes())
    }

    pub fn as_bytes(&self) -> &[u8; 24] {
        &self.0
    }

    /// The server's expected `Sec-WebSocket-Accept` (RFC 6455, 4.2.2).
    pub fn expected_accept(&self) -> [u8; 28] {
        let mut hash = sha1_smol::Sha1::new();
        hash.update(&self.0);
        hash.update(ACCEPT_SUFFIX);
        let mut text = [0; 28];
        let written = STANDARD.encode_slice(hash.digest().bytes(), &mut text);
        debug_assert_eq!(written, Ok(28), "20 bytes are 28 characters of base64");
        text
    }
}

/// Whether the handshake writes this header itself, so that [`write_upgrade`] skips a given one. A
/// request copied from a browser contains them all. Sub-protocols have their own argument.
pub fn is_own_header(name: &str) -> bool {
    const OWN: [&str; 7] = [
        "host",
        "upgrade",
        "connection",
        "sec-websocket-key",
        "sec-websocket-version",
        "sec-websocket-protocol",
        "sec-websocket-extensions",
    ];
    OWN.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Appends the upgrade request. After an error `out` is unchanged.
///
/// `host` is the value of `Host`, with the port unless it is the default. Headers for which
/// [`is_own_header`] is true are skipped.
pub fn write_upgrade<'h, P: AsRef<str>>(
    out: &mut Vec<u8>,
    host: &str,
    path_and_query: &str,
    key: &Key,
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
    protocols: &[P],
    offer: DeflateOffer,
) -> Result<(), RequestError> {
    let start = out.len();
    let request = Request { host, path_and_query, key, protocols, offer };
    let written = request.write(out, headers);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

struct Request<'a, P> {
    host: &'a str,
    path_and_query: &'a str,
    key: &'a Key,
    protocols: &'a [P],
    offer: DeflateOffer,
}

impl<P: AsRef<str>> Request<'_, P> {
    fn write<'h>(
        &self,
        out: &mut Vec<u8>,
        headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
    ) -> Result<(), RequestError> {
        let path = self.path_and_query.as_bytes();
        if path.first() != Some(&b'/') || !path.iter().all(u8::is_ascii_graphic) {
            return Err(RequestError::Path(shown(path)));
        }
        let host = self.host.as_bytes();
        if host.is_empty() || !host.iter().all(u8::is_ascii_graphic) {
            return Err(RequestError::Host(shown(host)));
        }
        append(out, &[b"GET ", path, b" HTTP/1.1\r\nHost: ", host]);
        out.extend_from_slice(b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
        append(out, &[b"Sec-WebSocket-Key: ", &self.key.0, b"\r\n"]);
        out.extend_from_slice(b"Sec-WebSocket-Version: 13\r\n");
        for (index, protocol) in self.protocols.iter().enumerate() {
            let protocol = protocol.as_ref().as_bytes();
            if !is_token(protocol) {
                return Err(RequestError::Protocol(shown(protocol)));
            }
            let before: &[u8] = if index == 0 { b"Sec-WebSocket-Protocol: " } else { b", " };
            append(out, &[before, protocol]);
        }
        if !self.protocols.is_empty() {
            out.extend_from_slice(b"\r\n");
        }
        if let Some(offer) = self.offer.header() {
            append(out, &[b"Sec-WebSocket-Extensions: ", offer.as_bytes(), b"\r\n"]);
        }
        for (name, value) in headers {
            if !is_own_header(name) {
                write_header(out, name.as_bytes(), value)?;
            }
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

fn write_header(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), RequestError> {
    if !is_token(name) {
        return Err(RequestError::HeaderName(shown(name)));
    }
    // A line break in a value would start another header (RFC 9110, 5.5).
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(RequestError::HeaderValue(shown(name)));
    }
    append(out, &[name, b": ", value, b"\r\n"]);
    Ok(())
}

fn append(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// The result of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Index of the chosen sub-protocol among those offered.
    pub protocol: Option<usize>,
    /// The compression of messages, if permessage-deflate is in use.
    pub deflate: Option<Deflate>,
}

/// Checks the response to an upgrade request (RFC 6455, 4.1; RFC 7692, 7.1).
///
/// A server that chooses none of the offered sub-protocols is accepted, as in the RFC.
pub fn check_upgrade<'h, P: AsRef<str>>(
    status: u16,
    headers: impl IntoIterator<Item = (&'h [u8], &'h [u8])>,
    expected_accept: &[u8; 28],
    protocols: &[P],
    offer: DeflateOffer,
) -> Result<Accepted, UpgradeError> {
    if status != 101 {
        return Err(UpgradeError::Status(status));
    }
    let mut seen = SeenHeaders::default();
    for (name, value) in headers {
        seen.header(name, value.trim_ascii(), expected_accept, protocols)?;
    }
    if !seen.upgrade {
        return Err(UpgradeError::UpgradeMissing);
    }
    if !seen.connection {
        return Err(UpgradeError::ConnectionMissing);
    }
    if !seen.accept {
        return Err(UpgradeError::AcceptMissing);
    }
    let deflate = match (seen.deflate, offer) {
        (None, _) => None,
        (Some(_), DeflateOffer::Nothing) => {
            return Err(UpgradeError::ExtensionNotOffered("permessage-deflate".into()));
        }
        (Some(parameters), offer) => Some(parameters.agreed(offer)?),
    };
    Ok(Accepted { protocol: seen.protocol, deflate })
}

/// The headers read so far.
#[derive(Default)]
struct SeenHeaders {
    upgrade: bool,
    connection: bool,
    accept: bool,
    protocol: Option<usize>,
    deflate: Option<Parameters>,
}

impl SeenHeaders {
    fn header<P: AsRef<str>>(
        &mut self,
        name: &[u8],
        value: &[u8],
        expected_accept: &[u8; 28],
        protocols: &[P],
    ) -> Result<(), UpgradeError> {
        if name.eq_ignore_ascii_case(b"upgrade") {
            if !value.eq_ignore_ascii_case(b"websocket") {
                return Err(UpgradeError::UpgradeOther(shown(value)));
            }
            self.upgrade = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            let mut tokens = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            self.connection |= tokens.any(|token| token.eq_ignore_ascii_case(b"upgrade"));
        } else if name.eq_ignore_ascii_case(b"sec-websocket-accept") {
            if value != expected_accept {
                return Err(UpgradeError::AcceptWrong);
            }
            self.accept = true;
        } else if name.eq_ignore_ascii_case(b"sec-websocket-protocol") {
            let chosen = protocols.iter().position(|offered| offered.as_ref().as_bytes() == value);
            let chosen = chosen.ok_or_else(|| UpgradeError::ProtocolNotOffered(shown(value)))?;
            if self.protocol.replace(chosen).is_some() {
                return Err(UpgradeError::ProtocolTwice);
            }
        } else if name.eq_ignore_ascii_case(b"sec-websocket-extensions") {
            self.extensions(value)?;
        }
        Ok(())
    }

    fn extensions(&mut self, value: &[u8]) -> Result<(), UpgradeError> {
        let broken = || UpgradeError::ExtensionSyntax(shown(value));
        let mut text = Text { rest: value };
        loop {
            // A list may have empty elements (RFC 9110, 5.6.1.2).
            while text.accept(b',') {}
            if text.at_end() {
                return Ok(());
            }
            let name = text.token().ok_or_else(broken)?;
            if name != b"permessage-deflate" {
                return Err(UpgradeError::ExtensionNotOffered(shown(name)));
            }
            let mut parameters = Parameters::default();
            while text.accept(b';') {
                let name = text.token().ok_or_else(broken)?;
                let value = match text.accept(b'=') {
                    true => Some(text.value().ok_or_else(broken)?),
                    false => None,
                };
                parameters.take(name, value)?;
            }
            if !text.at_end() && !text.accept(b',') {
                return Err(broken());
            }
            if self.deflate.replace(parameters).is_some() {
                return Err(UpgradeError::DeflateTwice);
            }
        }
    }
}

/// Reads the grammar of RFC 6455, 9.1.
struct Text<'a> {
    rest: &'a [u8],
}

impl<'a> Text<'a> {
    fn at_end(&mut self) -> bool {
        self.rest = self.rest.trim_ascii_start();
        self.rest.is_empty()
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.strip_prefix(&[byte]) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn token(&mut self) -> Option<&'a [u8]> {
        self.rest = self.rest.trim_ascii_start();
        let is_end = |byte: &u8| !IS_TOKEN[usize::from(*byte)];
        let length = self.rest.iter().position(is_end).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at_checked(length).filter(|_| length > 0)?;
        self.rest = rest;
        Some(token)
    }

    /// A token, or a quoted token. Escapes are rejected; no value needs them.
    fn value(&mut self) -> Option<&'a [u8]> {
        if !self.accept(b'"') {
            return self.token();
        }
        let value = self.token()?;
        self.rest = self.rest.strip_prefix(b"\"")?;
        Some(value)
    }
}

fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| IS_TOKEN[usize::from(*byte)])
}

/// Why an upgrade request cannot be written. The scenario or its data is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    Host(Box<str>),
    Path(Box<str>),
    HeaderName(Box<str>),
    /// Contains the header's name.
    HeaderValue(Box<str>),
    Protocol(Box<str>),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Host(text) => write!(f, "`{text}` is not a host"),
            RequestError::Path(text) => {
                write!(f, "the path `{text}` must start with `/` and must not contain spaces")
            }
            RequestError::HeaderName(text) => write!(f, "`{text}` is not a header name"),
            RequestError::HeaderValue(name) => {
                write!(
                    f,
                    "the value of the header `{name}` contains a line break or control character"
                )
            }
            RequestError::Protocol(text) => write!(f, "`{text}` is not a sub-protocol name"),
        }
    }
}

impl std::error::Error for RequestError {}
