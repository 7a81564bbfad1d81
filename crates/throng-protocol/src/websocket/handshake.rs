//! The opening handshake of RFC 6455, section 4: writes the request, checks the answer.
//!
//! It does not read HTTP; the answer comes as a status and as pairs of header bytes.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use throng_base::Random;

#[cfg(test)]
mod tests;

/// RFC 6455, 1.3.
const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Without context takeover on both sides no connection owns a (de)compressor (RFC 7692, 7.1.1).
const DEFLATE_OFFER: &str =
    "permessage-deflate; client_no_context_takeover; server_no_context_takeover";
/// How much of a server's text an error shows.
const SHOWN_BYTES_MAX: usize = 40;

/// What `Sec-WebSocket-Key` carries: 16 random bytes in base64.
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

    /// What the server must answer in `Sec-WebSocket-Accept` (RFC 6455, 4.2.2).
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

/// Whether the handshake writes this header itself, so that [`write_upgrade`] leaves out a given
/// one. A request copied from a browser brings them all. Sub-protocols have their own argument.
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

/// Appends the upgrade request. After an error `out` is as it was.
///
/// `host` is the value of `Host`, with the port where it is not the usual one. Headers for which
/// [`is_own_header`] is true are left out.
pub fn write_upgrade<'h, P: AsRef<str>>(
    out: &mut Vec<u8>,
    host: &str,
    path_and_query: &str,
    key: &Key,
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
    protocols: &[P],
    offer_deflate: bool,
) -> Result<(), RequestError> {
    let start = out.len();
    let request = Request { host, path_and_query, key, protocols, offer_deflate };
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
    offer_deflate: bool,
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
        if self.offer_deflate {
            append(out, &[b"Sec-WebSocket-Extensions: ", DEFLATE_OFFER.as_bytes(), b"\r\n"]);
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
    // A line break in a value would begin a header that nobody wrote (RFC 9110, 5.5).
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

/// What the server agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Which of the offered sub-protocols.
    pub protocol: Option<usize>,
    /// Whether permessage-deflate is in use, without context takeover on both sides.
    pub deflate: bool,
}

/// Checks the answer to an upgrade request (RFC 6455, 4.1; RFC 7692, 7.1).
///
/// A server that chooses none of the offered sub-protocols is accepted, as the RFC has it.
pub fn check_upgrade<'h, P: AsRef<str>>(
    status: u16,
    headers: impl IntoIterator<Item = (&'h [u8], &'h [u8])>,
    expected_accept: &[u8; 28],
    protocols: &[P],
    offered_deflate: bool,
) -> Result<Accepted, UpgradeError> {
    if status != 101 {
        return Err(UpgradeError::Status(status));
    }
    let mut seen = Seen::default();
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
    if seen.deflate && !offered_deflate {
        return Err(UpgradeError::ExtensionNotOffered("permessage-deflate".into()));
    }
    Ok(Accepted { protocol: seen.protocol, deflate: seen.deflate })
}

/// What the headers read so far say.
#[derive(Default)]
struct Seen {
    upgrade: bool,
    connection: bool,
    accept: bool,
    protocol: Option<usize>,
    deflate: bool,
}

impl Seen {
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
            let mut parameters = DeflateParameters::default();
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
            if self.deflate {
                return Err(UpgradeError::DeflateTwice);
            }
            if !parameters.server_no_context_takeover {
                return Err(UpgradeError::DeflateKeepsContext);
            }
            self.deflate = true;
        }
    }
}

/// RFC 7692, 7.1. Each parameter may come once.
#[derive(Default)]
struct DeflateParameters {
    server_no_context_takeover: bool,
    client_no_context_takeover: bool,
    server_max_window_bits: bool,
}

impl DeflateParameters {
    fn take(&mut self, name: &[u8], value: Option<&[u8]>) -> Result<(), UpgradeError> {
        let (seen, valid) = match name {
            b"server_no_context_takeover" => {
                (&mut self.server_no_context_takeover, value.is_none())
            }
            b"client_no_context_takeover" => {
                (&mut self.client_no_context_takeover, value.is_none())
            }
            // A smaller window is of no concern: we can inflate them all.
            b"server_max_window_bits" => (
                &mut self.server_max_window_bits,
                matches!(value, Some([b'8' | b'9'] | [b'1', b'0'..=b'5'])),
            ),
            // Among them `client_max_window_bits`, which must be offered before it is asked for.
            _ => return Err(UpgradeError::DeflateParameter(shown(name))),
        };
        if !valid || std::mem::replace(seen, true) {
            return Err(UpgradeError::DeflateParameter(shown(name)));
        }
        Ok(())
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
        let is_end = |byte: &u8| !is_token_byte(*byte);
        let length = self.rest.iter().position(is_end).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at_checked(length).filter(|_| length > 0)?;
        self.rest = rest;
        Some(token)
    }

    /// A token, or a token in quotes. One with escapes inside is refused; no value needs them.
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
    !bytes.is_empty() && bytes.iter().all(|byte| is_token_byte(*byte))
}

/// RFC 9110, 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A start of what somebody wrote, safe to print.
fn shown(bytes: &[u8]) -> Box<str> {
    let mut text = String::new();
    for byte in bytes {
        if text.len() >= SHOWN_BYTES_MAX {
            text.push('…');
            break;
        }
        match byte {
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.extend(byte.escape_ascii().map(char::from)),
        }
    }
    text.into()
}

/// Why an upgrade request cannot be written. The scenario or its data is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    Host(Box<str>),
    Path(Box<str>),
    HeaderName(Box<str>),
    /// Holds the header's name.
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

/// Why an answer to an upgrade request is refused. The server is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeError {
    Status(u16),
    UpgradeMissing,
    UpgradeOther(Box<str>),
    ConnectionMissing,
    AcceptMissing,
    AcceptWrong,
    ProtocolNotOffered(Box<str>),
    ProtocolTwice,
    ExtensionNotOffered(Box<str>),
    ExtensionSyntax(Box<str>),
    DeflateTwice,
    DeflateKeepsContext,
    /// A parameter that is unknown, not offered, given twice, or has an impossible value.
    DeflateParameter(Box<str>),
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpgradeError::Status(status) => {
                write!(f, "the upgrade got status {status} instead of 101")
            }
            UpgradeError::UpgradeMissing => f.write_str("the response has no `Upgrade` header"),
            UpgradeError::UpgradeOther(text) => {
                write!(f, "the server upgraded to `{text}`, not to `websocket`")
            }
            UpgradeError::ConnectionMissing => {
                f.write_str("the response has no `Connection: Upgrade`")
            }
            UpgradeError::AcceptMissing => {
                f.write_str("the response has no `Sec-WebSocket-Accept` header")
            }
            UpgradeError::AcceptWrong => {
                f.write_str("`Sec-WebSocket-Accept` does not match the key that was sent")
            }
            UpgradeError::ProtocolNotOffered(text) => {
                write!(f, "the server chose the sub-protocol `{text}`, which was not offered")
            }
            UpgradeError::ProtocolTwice => {
                f.write_str("the response has more than one `Sec-WebSocket-Protocol` header")
            }
            UpgradeError::ExtensionNotOffered(text) => {
                write!(f, "the server chose the extension `{text}`, which was not offered")
            }
            UpgradeError::ExtensionSyntax(text) => {
                write!(f, "`Sec-WebSocket-Extensions` is not valid: `{text}`")
            }
            UpgradeError::DeflateTwice => {
                f.write_str("the server chose `permessage-deflate` more than once")
            }
            UpgradeError::DeflateKeepsContext => f.write_str(
                "the server requires `permessage-deflate` without `server_no_context_takeover`",
            ),
            UpgradeError::DeflateParameter(text) => {
                write!(
                    f,
                    "the server set `{text}` of `permessage-deflate` in a way that was not offered"
                )
            }
        }
    }
}

impl std::error::Error for UpgradeError {}
