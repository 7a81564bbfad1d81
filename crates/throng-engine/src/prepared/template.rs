//! HTTP requests as templates: constant bytes around the parts that differ per user, made once per
//! program, so that a request costs little more than a copy.

use std::borrow::Cow;
use std::io::Write as _;
use std::ops::Range;

use throng_expression::{EvaluationError, Scope};
use throng_program::{Body, Http, Text};
use throng_protocol::http1::{self, InvalidByte, Jar};

use crate::prepared::cookies::CookiePlace;

/// A request of the program; rendered with the [`Http`] it was made from.
#[derive(Debug)]
pub(crate) struct Template {
    constant: Vec<u8>,
    pieces: Vec<Piece>,
    /// It goes to another host than the scenario says.
    elsewhere: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Constant(Range<usize>),
    Host,
    Path,
    /// The value of a header, by its number.
    Header(u16),
    /// The value of the Host header: that of the connection until its values are saved.
    OwnHost(u16),
    /// The value of a header that is not sent: its random values are drawn nevertheless.
    Unsent(u16),
    /// A complete header that is omitted when empty.
    HeaderIfAny(u16),
    /// A complete header that is omitted until its values are saved.
    HeaderIfGiven(u16),
    Cookies,
    /// The Content-Length header; omitted if the body turns out to be empty, unless `always`.
    Length {
        digits: usize,
        always: bool,
    },
    /// Where extra headers go, and the end of the head.
    HeadEnd,
    Body,
}

/// How a request differs from the one in the scenario when it follows a redirect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detour<'a> {
    pub(crate) path: Option<&'a str>,
    /// The method becomes GET, and the body is dropped.
    pub(crate) as_get: bool,
    /// It goes to another host, which must not get what is only for the first: credentials, the
    /// cookies of the scenario, and the host name.
    pub(crate) elsewhere: bool,
}

/// Extra headers of a request besides those of the scenario.
pub(crate) struct Extras<'a> {
    pub(crate) authority: &'a str,
    pub(crate) jar: Option<(&'a Jar, CookiePlace<'a>)>,
    /// Name and value of another header.
    pub(crate) trace: Option<(&'a str, &'a [u8])>,
}

/// The parts of a written request's destination that differ per user.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentTo {
    /// Path and query.
    pub(crate) path: Vec<u8>,
    /// The value of the Host header that the scenario sets.
    pub(crate) host: Vec<u8>,
}

impl SentTo {
    pub(crate) fn clear(&mut self) {
        self.path.clear();
        self.host.clear();
    }
}

/// The value of the Host header that the scenario sets, if any.
pub(crate) fn own_host<'a>(http: &'a Http, sent_to: Option<&'a SentTo>) -> Option<&'a [u8]> {
    let (_, text) = http.headers.iter().find(|(name, _)| is_host(name))?;
    text.as_literal().or_else(|| sent_to.map(|sent_to| &sent_to.host[..]))
}

/// Whether a header is meant only for the host that the scenario names.
fn is_for_one_host(name: &str) -> bool {
    is_host(name) || name.eq_ignore_ascii_case("authorization")
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

impl<'a> Extras<'a> {
    /// The jar, opened for this host if the scenario sets one.
    pub(crate) fn jar_of(&self, host: Option<&'a [u8]>) -> Option<(&'a Jar, CookiePlace<'a>)> {
        self.jar.map(|(jar, place)| (jar, place.named(host)))
    }
}

/// Where the parts of a written request are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The Cookie header with its line end; empty at its position if there is none.
    pub(crate) cookies: Range<usize>,
    /// Before the empty line.
    pub(crate) head_end: usize,
}

/// A body of at least this size is not copied into each request if all users share it: below, a
/// second buffer costs the socket as much as the copy.
const SHARED_BYTES_MIN: usize = 16 * 1024;

/// The shared body, which is sent without a copy and is not part of the template.
pub(crate) fn shared_body(http: &Http) -> Option<&[u8]> {
    match &http.body {
        Body::Text(text) => text.as_literal().filter(|bytes| bytes.len() >= SHARED_BYTES_MIN),
        Body::None => None,
    }
}

/// What a user's number, token or name may add to the length of a body, for the digits of its
/// Content-Length. A wrong guess costs moving the body by a byte.
const VARIABLE_BYTES: usize = 16;

impl Template {
    pub(crate) fn new(http: &Http, keep_alive: bool, detour: Detour<'_>) -> Template {
        let (constant, pieces, elsewhere) = (Vec::new(), Vec::new(), detour.elsewhere);
        let mut template = Template { constant, pieces, elsewhere };
        let body = match (&http.body, detour.as_get) {
            (Body::Text(text), false) => Some(text),
            _ => None,
        };
        let method = if detour.as_get { "GET" } else { &http.method };
        template.request_line(http, method, detour.path);
        template.headers(http, keep_alive, detour.as_get);
        template.length(http, method, body);
        template.pieces.push(Piece::Cookies);
        template.pieces.push(Piece::HeadEnd);
        match body.map(|text| (text.as_literal(), text)) {
            Some((Some(_), _)) if shared_body(http).is_some() => {}
            Some((Some(bytes), _)) => template.constant(|out| out.extend_from_slice(bytes)),
            Some((None, _)) => template.pieces.push(Piece::Body),
            None => {}
        }
        template
    }

    /// Appends what is the same for all users.
    fn constant(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.constant.len();
        write(&mut self.constant);
        let end = self.constant.len();
        match self.pieces.last_mut() {
            Some(Piece::Constant(last)) => last.end = end,
            _ if begin < end => self.pieces.push(Piece::Constant(begin..end)),
            _ => {}
        }
    }

    fn request_line(&mut self, http: &Http, method: &str, path: Option<&str>) {
        let literal = http.path.as_literal().map(String::from_utf8_lossy);
        match path.map(Cow::Borrowed).or(literal) {
            Some(path) => self.constant(|out| http1::write_request_line(out, method, &path)),
            None => {
                self.constant(|out| {
                    out.extend_from_slice(method.as_bytes());
                    out.push(b' ');
                });
                self.pieces.push(Piece::Path);
                self.constant(|out| out.extend_from_slice(b" HTTP/1.1\r\n"));
            }
        }
    }

    fn headers(&mut self, http: &Http, keep_alive: bool, as_get: bool) {
        let has = |name: &str| http.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        if !has("host") || self.elsewhere {
            self.constant(|out| out.extend_from_slice(b"Host: "));
            self.pieces.push(Piece::Host);
            self.constant(|out| out.extend_from_slice(b"\r\n"));
        }
        for (index, (name, text)) in http.headers.iter().enumerate() {
            let about_body = name.get(..8).is_some_and(|it| it.eq_ignore_ascii_case("content-"));
            if is_cookie(name) || (as_get && about_body) {
                continue;
            }
            if self.elsewhere && is_for_one_host(name) {
                self.pieces.push(Piece::Unsent(index as u16));
                continue;
            }
            self.header(index as u16, name, text);
        }
        if !has("user-agent") {
            let agent = concat!("throng/", env!("CARGO_PKG_VERSION"));
            self.constant(|out| http1::write_header(out, "User-Agent", agent.as_bytes()));
        }
        if !has("accept") {
            self.constant(|out| http1::write_header(out, "Accept", b"*/*"));
        }
        if !keep_alive && !has("connection") {
            self.constant(|out| http1::write_header(out, "Connection", b"close"));
        }
    }

    fn header(&mut self, index: u16, name: &str, text: &Text) {
        // Of the headers that throng adds itself, one without a value is not sent, as in curl.
        let own = ["accept", "user-agent"];
        let is_own = own.iter().any(|own| name.eq_ignore_ascii_case(own));
        match text.as_literal() {
            Some(b"") if is_own => {}
            Some(value) => self.constant(|out| http1::write_header(out, name, value)),
            None if text.needs().is_some() && !is_host(name) => {
                self.pieces.push(Piece::HeaderIfGiven(index));
            }
            None if is_own => self.pieces.push(Piece::HeaderIfAny(index)),
            None => {
                self.constant(|out| {
                    out.extend_from_slice(name.as_bytes());
                    out.extend_from_slice(b": ");
                });
                self.pieces.push(match is_host(name) {
                    true => Piece::OwnHost(index),
                    false => Piece::Header(index),
                });
                self.constant(|out| out.extend_from_slice(b"\r\n"));
            }
        }
    }

    fn length(&mut self, http: &Http, method: &str, body: Option<&Text>) {
        let said = |name: &str| {
            let own = http.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
            own && method == http.method
        };
        if said("content-length") || said("transfer-encoding") {
            return;
        }
        let always = matches!(method, "POST" | "PUT" | "PATCH");
        match body.map(|text| (text.as_literal(), text)) {
            Some((None, text)) => {
                let digits = guess(text).to_string().len();
                self.pieces.push(Piece::Length { digits, always });
            }
            literal => {
                let bytes = literal.and_then(|(bytes, _)| bytes).unwrap_or_default();
                if always || !bytes.is_empty() {
                    self.constant(|out| http1::write_content_length(out, bytes.len() as u64));
                }
            }
        }
    }

    /// Appends the request to `out`, and the variable parts of its path and host to `sent_to`.
    ///
    /// If a cookie of the scenario has the same name as one that the target has set, the scenario's
    /// is sent, because it was given explicitly.
    pub(crate) fn render(
        &self,
        http: &Http,
        extras: &Extras<'_>,
        scope: &mut dyn Scope,
        sent_to: &mut SentTo,
        out: &mut Vec<u8>,
    ) -> Result<Parts, EvaluationError> {
        let mut parts = Parts::default();
        let mut length = None;
        for piece in &self.pieces {
            match piece {
                Piece::Constant(range) => out.extend_from_slice(&self.constant[range.clone()]),
                Piece::Host => out.extend_from_slice(extras.authority.as_bytes()),
                Piece::Path => write_path(&http.path, out, &mut sent_to.path, scope)?,
                Piece::Header(index) => {
                    write_value(&http.headers[usize::from(*index)].1, out, scope)?;
                }
                Piece::OwnHost(index) => {
                    let begin = out.len();
                    let text = &http.headers[usize::from(*index)].1;
                    write_if_given(text, extras.authority, out, scope)?;
                    sent_to.host.extend_from_slice(&out[begin..]);
                }
                Piece::Unsent(index) => {
                    let begin = out.len();
                    write_if_given(&http.headers[usize::from(*index)].1, "", out, scope)?;
                    out.truncate(begin);
                }
                Piece::HeaderIfAny(index) => {
                    let (name, text) = &http.headers[usize::from(*index)];
                    write_header_if_any(name, text, out, scope)?;
                }
                Piece::HeaderIfGiven(index) => {
                    let (name, text) = &http.headers[usize::from(*index)];
                    if text.is_given(scope) {
                        write_header_if_any(name, text, out, scope)?;
                    }
                }
                Piece::Cookies => {
                    let begin = out.len();
                    write_own_cookies(&http.headers, &http.cookies, out, scope)?;
                    if self.elsewhere {
                        out.truncate(begin);
                    }
                    let literal = || http.path.as_literal().unwrap_or_default();
                    let path = &sent_to.path[..];
                    let path = if path.is_empty() { literal() } else { path };
                    let host = own_host(http, Some(sent_to)).filter(|_| !self.elsewhere);
                    finish_cookies(extras.jar_of(host), path, begin, out);
                    parts.cookies = begin..out.len();
                }
                Piece::Length { digits, always } => {
                    length = Some((out.len(), *digits, *always));
                    http1::write_content_length(out, 10u64.pow(*digits as u32 - 1));
                }
                Piece::HeadEnd => {
                    if let Some((name, value)) = extras.trace {
                        http1::write_header(out, name, value);
                    }
                    parts.head_end = out.len();
                    http1::write_head_end(out);
                }
                Piece::Body => {
                    let begin = out.len();
                    if let Body::Text(text) = &http.body {
                        text.render(out, scope)?;
                    }
                    if let Some(length) = length {
                        patch_length(length, out.len() - begin, &mut parts, out);
                    }
                }
            }
        }
        Ok(parts)
    }
}

/// The length of a text's literals, plus a guess for each of its expressions.
fn guess(text: &Text) -> usize {
    let one = |segment: &throng_program::Segment| match segment {
        throng_program::Segment::Literal(bytes) => bytes.len(),
        throng_program::Segment::Value { .. } => VARIABLE_BYTES,
        throng_program::Segment::Given(_) => 0,
    };
    text.segments.iter().map(one).sum()
}

/// Writes the true length over the guessed one at `at`.
fn patch_length(
    (at, digits, always): (usize, usize, bool),
    body: usize,
    parts: &mut Parts,
    out: &mut Vec<u8>,
) {
    let begin = at + "Content-Length: ".len();
    let mut number = [0; 20];
    let mut left = &mut number[..];
    // A 64-bit number has at most 20 digits.
    let _ = write!(left, "{body}");
    let unused = left.len();
    let number = &number[..20 - unused];
    let (before, after) = match body == 0 && !always {
        true => {
            let end = begin + digits + "\r\n".len();
            out.drain(at..end);
            (end - at, 0)
        }
        false if number.len() == digits => {
            out[begin..begin + digits].copy_from_slice(number);
            return;
        }
        false => {
            out.splice(begin..begin + digits, number.iter().copied());
            (digits, number.len())
        }
    };
    for place in [&mut parts.cookies.start, &mut parts.cookies.end, &mut parts.head_end] {
        *place = *place + after - before;
    }
}

fn write_path(
    text: &Text,
    out: &mut Vec<u8>,
    path: &mut Vec<u8>,
    scope: &mut dyn Scope,
) -> Result<(), EvaluationError> {
    text.render(path, scope)?;
    if matches!(path.first(), None | Some(b'?')) {
        path.insert(0, b'/');
    }
    let allowed = |byte: u8| byte > b' ' && byte != 0x7f;
    if let Some(byte) = path.iter().copied().find(|byte| !allowed(*byte)) {
        return Err(EvaluationError(say!("a path cannot contain the character `{}`", shown(byte))));
    }
    out.extend_from_slice(path);
    Ok(())
}

/// Writes the value of a header; a value that would end the header is an error, whatever its
/// origin.
fn write_value(
    text: &Text,
    out: &mut Vec<u8>,
    scope: &mut dyn Scope,
) -> Result<(), EvaluationError> {
    let begin = out.len();
    text.render(out, scope)?;
    http1::validate_header_value(&out[begin..]).map_err(|InvalidByte(byte)| {
        EvaluationError(say!("a header cannot contain the character `{}`", shown(byte)))
    })
}

fn shown(byte: u8) -> impl std::fmt::Display {
    char::from(byte).escape_default()
}

/// Writes a header whose values may not be saved yet, and what is sent then.
fn write_if_given(
    text: &Text,
    otherwise: &str,
    out: &mut Vec<u8>,
    scope: &mut dyn Scope,
) -> Result<(), EvaluationError> {
    match text.is_given(scope) {
        true => write_value(text, out, scope),
        false => {
            out.extend_from_slice(otherwise.as_bytes());
            Ok(())
        }
    }
}

fn write_header_if_any(
    name: &str,
    text: &Text,
    out: &mut Vec<u8>,
    scope: &mut dyn Scope,
) -> Result<(), EvaluationError> {
    let begin = out.len();
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let value = out.len();
    write_value(text, out, scope)?;
    match out.len() == value {
        true => out.truncate(begin),
        false => out.extend_from_slice(b"\r\n"),
    }
    Ok(())
}

pub(crate) fn is_cookie(name: &str) -> bool {
    name.eq_ignore_ascii_case("cookie")
}

/// Starts the single Cookie header with the cookies of the scenario, without a line end; writes
/// nothing if there are none.
pub(crate) fn write_own_cookies(
    headers: &[(String, Text)],
    cookies: &[(String, Text)],
    out: &mut Vec<u8>,
    scope: &mut dyn Scope,
) -> Result<(), EvaluationError> {
    let mut before: &[u8] = b"Cookie: ";
    for (_, text) in headers.iter().filter(|(name, _)| is_cookie(name)) {
        if !text.is_given(scope) {
            continue;
        }
        out.extend_from_slice(before);
        write_value(text, out, scope)?;
        before = b"; ";
    }
    for (name, text) in cookies {
        out.extend_from_slice(before);
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        let value = out.len();
        write_value(text, out, scope)?;
        if out[value..].contains(&b';') {
            let error = say!("the value of a cookie cannot contain the character `;`");
            return Err(EvaluationError(error));
        }
        before = b"; ";
    }
    Ok(())
}

/// Completes the Cookie header that may have started at `begin` with the cookies of the jar.
pub(crate) fn finish_cookies(
    jar: Option<(&Jar, CookiePlace<'_>)>,
    path: &[u8],
    begin: usize,
    out: &mut Vec<u8>,
) {
    let own = begin..out.len();
    if let Some((jar, place)) = jar {
        let path = String::from_utf8_lossy(path);
        jar.write_header(out, place.host, &path, place.secure, place.unix_seconds);
    }
    if own.is_empty() {
        return;
    }
    let mut read = own.end + "Cookie: ".len();
    let line_end = out.len().saturating_sub("\r\n".len());
    // What is kept moves forward over the header name, which exists already.
    let mut kept = own.end;
    while read < line_end {
        let pair = read..out[read..line_end]
            .iter()
            .position(|byte| *byte == b';')
            .map_or(line_end, |length| read + length);
        read = pair.end + "; ".len();
        if has_cookie(&out[own.start + "Cookie: ".len()..own.end], name_of(&out[pair.clone()])) {
            continue;
        }
        out[kept..kept + 2].copy_from_slice(b"; ");
        out.copy_within(pair.clone(), kept + 2);
        kept += 2 + pair.len();
    }
    out.truncate(kept);
    out.extend_from_slice(b"\r\n");
}

fn has_cookie(pairs: &[u8], name: &[u8]) -> bool {
    pairs.split(|byte| *byte == b';').any(|pair| name_of(pair.trim_ascii()) == name)
}

fn name_of(pair: &[u8]) -> &[u8] {
    pair.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// Whether all users send the same.
pub(crate) fn is_same_for_all(http: &Http) -> bool {
    let literal = |text: &Text| text.as_literal().is_some();
    literal(&http.path)
        && http.headers.iter().chain(&http.cookies).all(|(_, value)| literal(value))
        && match &http.body {
            Body::None => true,
            Body::Text(text) => literal(text),
        }
}

#[cfg(test)]
mod tests;
