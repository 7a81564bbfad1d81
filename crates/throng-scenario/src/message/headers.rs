//! Headers of a request (RFC 9110). Control characters are refused, so no value can start another
//! header or request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_base::Said;
use throng_base::diagnostic::did_you_mean;
use throng_program::{DigestAuth, Segment, Text};

use crate::ast::{self, Field};
use crate::read::Context;
use crate::read::template::{Escape, TextPart, read_parts};
use crate::synonyms::near_label;
use crate::syntax::{Kind, Node, Place};
use crate::words::{METHODS, shorten, switch};

pub(crate) type Headers = Vec<(String, Text)>;

/// Headers that are part of the framing; a wrong one would falsify all results.
const RESERVED: &[(&str, Said)] = &[
    ("transfer-encoding", say!("throng sends bodies with `Content-Length`")),
    ("sec-websocket-key", say!("throng generates a new key for each upgrade")),
    ("sec-websocket-version", say!("throng sends this header itself")),
    ("sec-websocket-extensions", say!("write `connection: {{deflate: true}}` for compression")),
    ("sec-websocket-protocol", say!("write `protocols: [name]`")),
    ("upgrade", say!("throng sends this header with `connect`")),
];

/// The characters of methods and header names (RFC 9110, 5.6.2).
pub(crate) fn is_token(text: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(good)
}

/// Whether a header value may contain the byte (RFC 9110, 5.5).
fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

/// Reads a map of names and values; a list is a header that is sent several times.
pub(crate) fn read_headers(cx: &mut Context<'_>, node: &Node) -> Headers {
    let mut headers = Vec::new();
    let help = say!("write `headers: {{Accept: text/html}}`");
    for (key, value) in cx.entries(node, say!("a map of headers"), help).unwrap_or_default() {
        if !check_name(cx, &key.text, key.place) {
            continue;
        }
        let values = value.one_or_more();
        for value in values {
            if let Some(text) = header_value(cx, value) {
                headers.push((key.text.clone(), text));
            }
        }
    }
    headers
}

/// Headers whose values are the same for the whole run.
pub(crate) fn read_plain_headers(cx: &mut Context<'_>, node: &Node) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    let help = say!("write `headers: {{Accept: text/html}}`");
    for (key, value) in cx.entries(node, say!("a map of headers"), help).unwrap_or_default() {
        let is_good = check_name(cx, &key.text, key.place);
        if let Some(text) = cx.text(value, say!("the value of a header")).filter(|_| is_good) {
            match text.bytes().find(|byte| !is_value_byte(*byte)) {
                None => headers.push((key.text.clone(), text)),
                Some(byte) => drop(bad_value::<()>(cx, value.place, byte)),
            }
        }
    }
    headers
}

fn check_name(cx: &mut Context<'_>, name: &str, place: Place) -> bool {
    if !is_token(name) {
        let message = say!("`{}` is not a valid header name", shorten(name));
        let help = say!(
            "a header name consists of letters, digits and `-`: \
                                 `Content-Type`"
        );
        cx.report("bad-header", place, message, say!("not a header name"), help);
        return false;
    }
    let reserved = RESERVED.iter().find(|(reserved, _)| name.eq_ignore_ascii_case(reserved));
    if let Some((_, help)) = reserved {
        let label = say!("throng sets this header itself");
        let help = help.clone();
        cx.report("bad-header", place, say!("the header `{name}` cannot be set"), label, help);
    }
    reserved.is_none()
}

fn header_value(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    let text = match &node.kind {
        // A header can be empty.
        Kind::Scalar { .. } if node.is_null() => Text::default(),
        _ => cx.template(node, say!("the value of a header"), Escape::Header)?,
    };
    let bad = text.segments.iter().find_map(|segment| match segment {
        Segment::Literal(bytes) => bytes.iter().find(|byte| !is_value_byte(**byte)),
        _ => None,
    });
    match bad {
        None => Some(text),
        Some(byte) => bad_value(cx, node.place, *byte),
    }
}

fn bad_value<T>(cx: &mut Context<'_>, place: Place, byte: u8) -> Option<T> {
    let message = say!("a header value cannot contain line breaks or control characters");
    let error = cx
        .error("bad-header", message, place)
        .label(say!("the value contains `{}`", byte.escape_ascii()))
        .help(say!("write each header under its own name; a list sends the header several times"));
    cx.fail(error)
}

pub(crate) fn has(headers: &Headers, name: &str) -> bool {
    headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// The headers of a step, `auth`, and the defaults that the step does not override; and the
/// credentials, if they are not a header.
pub(crate) fn read_step_headers(
    cx: &mut Context<'_>,
    (headers, auth): (Field<'_>, Field<'_>),
) -> (Headers, Option<Box<DigestAuth>>) {
    let mut digest = None;
    let mut headers = headers.node().map(|node| read_headers(cx, node)).unwrap_or_default();
    if let Some(node) = auth.node() {
        let value = read_auth(cx, node);
        if has(&headers, "authorization") {
            let message = say!("both `auth` and the header `Authorization` are given");
            let help = say!("keep one of them");
            cx.report("conflicting-keys", node.place, message, say!("the second one"), help);
        } else {
            match value {
                Some(Auth::Basic(value)) => headers.push(("Authorization".into(), value)),
                Some(Auth::Digest(value)) => digest = Some(value),
                None => {}
            }
        }
    }
    let in_time = cx.scope.in_time;
    let is_own = |name: &str| {
        has(&headers, name) || (digest.is_some() && name.eq_ignore_ascii_case("authorization"))
    };
    let missing = cx.scope.defaults.headers.iter().filter(|(name, _)| !is_own(name));
    let missing = missing.map(|(name, value)| {
        let mut value = value.clone();
        let needs = if in_time { Vec::new() } else { cx.session.not_there(&value) };
        // If no earlier step saves them, an earlier iteration may have.
        if !needs.is_empty() {
            value.segments.insert(0, Segment::Given(needs.into()));
        }
        (name.clone(), value)
    });
    let missing: Headers = missing.collect();
    headers.extend(missing);
    (headers, digest)
}

/// The meaning of `auth`.
enum Auth {
    /// The value of a header.
    Basic(Text),
    Digest(Box<DigestAuth>),
}

/// The cookies of a step, if it can have any, and the defaults that it does not override.
pub(crate) fn read_step_cookies(cx: &mut Context<'_>, own: Option<Field<'_>>) -> Headers {
    let own = own.and_then(Field::node);
    let mut cookies = own.map(|node| read_cookies(cx, node)).unwrap_or_default();
    let missing: Headers = cx
        .scope
        .defaults
        .cookies
        .iter()
        .filter(|(name, _)| !cookies.iter().any(|(other, _)| other == name))
        .cloned()
        .collect();
    cookies.extend(missing);
    cookies
}

/// A map of cookies (RFC 6265, 4.1.1); no value can start another cookie.
pub(crate) fn read_cookies(cx: &mut Context<'_>, node: &Node) -> Headers {
    if matches!(&node.kind, Kind::Scalar { text, .. } if switch(text).is_some()) {
        let message = say!("`cookies` takes names and values, not true or false");
        let help = say!("write `connection: {{cookies: false}}` if users must not keep cookies");
        cx.report("wrong-type", node.place, message, say!("this is a boolean"), help);
        return Vec::new();
    }
    let help = say!("write `cookies: {{session: \"${{saved.session}}\"}}`");
    let mut cookies = Vec::new();
    for (key, value) in cx.entries(node, say!("a map of cookies"), help.clone()).unwrap_or_default()
    {
        if check_cookie_name(cx, &key.text, key.place, help.clone()).is_none() {
            continue;
        }
        let Some(text) = header_value(cx, value) else { continue };
        let broken = |segment: &Segment| match segment {
            Segment::Literal(bytes) => bytes.iter().any(|byte| b"; ,\"\\\t".contains(byte)),
            Segment::Value { .. } | Segment::Given(_) => false,
        };
        if text.segments.iter().any(broken) {
            let message = say!(
                "the value of a cookie cannot contain spaces, `,`, `;`, `\"` or \
                                `\\`"
            );
            let help = say!("encode the value: `\"${{url.encode(vars.name)}}\"`");
            let _: Option<()> = cx.bad_value(value, message, help);
            continue;
        }
        cookies.push((key.text.clone(), text));
    }
    cookies
}

pub(crate) fn check_cookie_name(
    cx: &mut Context<'_>,
    name: &str,
    place: Place,
    help: Said,
) -> Option<()> {
    if is_token(name) {
        return Some(());
    }
    let message = say!("`{}` is not a valid cookie name", shorten(name));
    cx.refuse("bad-header", place, message, say!("not a valid HTTP token"), help)
}

fn is_bearer(key: &str) -> bool {
    ["bearer", "token", "jwt", "oauth2"].iter().any(|word| key.eq_ignore_ascii_case(word))
}

/// Basic authentication (RFC 7617), or digest authentication (RFC 7616).
fn read_auth(cx: &mut Context<'_>, node: &Node) -> Option<Auth> {
    let help = say!("write `auth: {{user: name, password: word}}`");
    if let Kind::Map(entries) = &node.kind
        && let Some((key, _)) = entries.iter().find(|(key, _)| is_bearer(&key.text))
    {
        let message = say!("`{}` is not a key of `auth`", shorten(&key.text));
        let label = say!("`auth` takes a user name and a password, not a token");
        let help = say!("write `headers: {{Authorization: \"Bearer ${{saved.token}}\"}}`");
        return cx.refuse("unknown-key", key.place, message, label, help);
    }
    let fields = ast::Auth::read(cx, node)?;
    let user_node = fields.need(cx, fields.user, help.clone())?;
    let user = read_word(cx, user_node)?;
    let password_node = fields.password.node();
    let password = match password_node {
        Some(node) => read_word(cx, node)?,
        None => Text::default(),
    };
    let colon = |segment: &Segment| match segment {
        Segment::Literal(bytes) => bytes.contains(&b':'),
        Segment::Value { .. } | Segment::Given(_) => false,
    };
    if user.segments.iter().any(colon) {
        let message = say!("a user name cannot contain `:`");
        return cx.bad_value(user_node, message, help);
    }
    let is_digest = match fields.scheme.node() {
        Some(node) => cx.word(node, &[("basic", false), ("digest", true)])?,
        None => false,
    };
    if is_digest {
        return Some(Auth::Digest(Box::new(DigestAuth { user, password })));
    }
    if let (Some(user), Some(password)) = (user.as_literal(), password.as_literal()) {
        let both = [user, b":", password].concat();
        return Some(Auth::Basic(Text::literal(format!("Basic {}", STANDARD.encode(both)))));
    }
    // Both are valid expressions, so their combination is valid too.
    let mut source = String::from("base64(");
    write_concatenation(cx, user_node, &mut source)?;
    source.push_str(" + bytes(':')");
    if let Some(node) = password_node {
        source.push_str(" + ");
        write_concatenation(cx, node, &mut source)?;
    }
    source.push(')');
    let value = cx.compile_expression(node, &source, 0)?;
    let value = Segment::Value { value, escape: Escape::Header };
    let segments = vec![Segment::Literal(b"Basic ".as_slice().into()), value];
    Some(Auth::Basic(Text { segments }))
}

/// A text with `${…}` as one expression, whose value is bytes: binary values are preserved.
fn write_concatenation(cx: &mut Context<'_>, node: &Node, out: &mut String) -> Option<()> {
    let Kind::Scalar { text, .. } = &node.kind else { return None };
    out.push_str("bytes('')");
    for part in read_parts(cx, node, text)? {
        match part {
            TextPart::Literal(literal) => {
                let mut quoted = Vec::new();
                throng_expression::escape_json(literal.as_bytes(), &mut quoted);
                let quoted = String::from_utf8_lossy(&quoted).into_owned();
                out.push_str(&format!(" + bytes(\"{quoted}\")"));
            }
            TextPart::Expression { inner, .. } => out.push_str(&format!(" + bytes({inner}\n)")),
        }
    }
    Some(())
}

fn read_word(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    crate::read::template::read_text(cx, node, say!("a name or password"))
}

pub(crate) fn check_method(cx: &mut Context<'_>, node: &Node, method: &str) -> Option<()> {
    if METHODS.contains(&method) {
        return Some(());
    }
    let upper = method.to_ascii_uppercase();
    let near = did_you_mean(&upper, METHODS).filter(|near| *near != method);
    let message = match method {
        "CONNECT" => say!("the method `CONNECT` is not supported: it is only for proxies"),
        _ if !is_token(method) => say!("`{}` is not an HTTP method", shorten(method)),
        _ if METHODS.contains(&upper.as_str()) && upper != method => {
            say!("`{method}` is not a method: methods are written in capitals")
        }
        _ => return Some(()),
    };
    let help =
        say!("write `http: GET /path`; any other word in capitals is sent unchanged as the method");
    let place = cx.place_of(node, method);
    cx.refuse("bad-method", place, message, near_label(near, say!("here")), help)
}

/// A path and query that are valid in a request line.
pub(crate) fn check_path(cx: &mut Context<'_>, node: &Node, path: &Text) -> Option<()> {
    let first = path.segments.first();
    // A leading expression is checked at run time.
    let slash = match first {
        Some(Segment::Literal(bytes)) => bytes.starts_with(b"/"),
        Some(Segment::Value { .. } | Segment::Given(_)) => true,
        None => false,
    };
    let good = |segment: &Segment| match segment {
        Segment::Literal(bytes) => bytes.iter().all(|b| (0x21..=0x7e).contains(b) && *b != b'#'),
        _ => true,
    };
    if slash && path.segments.iter().all(good) {
        return Some(());
    }
    let literal: Vec<u8> = path
        .segments
        .iter()
        .flat_map(|segment| match segment {
            Segment::Literal(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        })
        .collect();
    let shown = String::from_utf8_lossy(&literal).into_owned();
    let (message, help) = if shown.contains("://") && !slash {
        (say!("a step takes a path, not a URL"), path_of_url(&shown))
    } else if !slash {
        (
            say!("a path must start with `/`"),
            say!("write `/{}`", shorten(shown.trim_start_matches('/'))),
        )
    } else if literal.contains(&b'#') {
        (say!("a fragment is never sent"), say!("remove the part that starts with `#`"))
    } else {
        let right = crate::url::encode_path(&shown);
        (
            say!("a path cannot contain spaces, control characters or non-ASCII characters"),
            say!("write `{}`", shorten(&right)),
        )
    };
    let place = cx.place_of(node, &shown);
    cx.refuse("bad-path", place, message, say!("not a path"), help)
}

fn path_of_url(shown: &str) -> Said {
    match crate::url::Url::parse(shown) {
        Ok(url) => {
            let path = if url.path.is_empty() { "/" } else { &url.path };
            say!(
                "write the host in `target: {}`, or in `targets` if there are several; here, \
                 write only the path `{path}`",
                url.origin()
            )
        }
        Err(_) => say!("write the host in `target`; here, write only the path `/…`"),
    }
}

/// The headers that a session adds to all its requests, and the defaults that it does not override.
/// A header with a saved value, such as a token, is sent as soon as the user has the value: in the
/// first iteration, after the step that saves it.
pub(crate) fn read_session_headers(cx: &mut Context<'_>, node: Option<&Node>) -> Headers {
    let read = |node| cx.in_time(|cx| read_headers(cx, node));
    let own = node.map(read).unwrap_or_default();
    let outer = cx.scope.defaults.headers.iter();
    let mut all: Headers = outer.filter(|(name, _)| !has(&own, name)).cloned().collect();
    all.extend(own);
    all
}
