//! Headers that a request may carry (RFC 9110): no control character gets in, so that no value can
//! begin a header or a request of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_base::diagnostic::did_you_mean;
use throng_program::{Segment, Text};

use crate::keys;
use crate::read::{Context, Fields, shorten};
use crate::syntax::{Kind, Node, Place};

pub(crate) type Headers = Vec<(String, Text)>;

/// Headers that are part of the framing; a wrong one would make every figure wrong.
const RESERVED: &[(&str, &str)] = &[
    ("transfer-encoding", "bodies are sent with Content-Length"),
    ("sec-websocket-key", "throng makes a new one for every upgrade"),
    ("sec-websocket-version", "throng sends it itself"),
    ("sec-websocket-extensions", "write `connection: {deflate: true}` for compression"),
    ("sec-websocket-protocol", "write `protocols: [name]`"),
    ("upgrade", "throng sends it itself with `connect`"),
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

/// Reads a map of names and values; a value may be a list, for headers that come several times.
pub(crate) fn read_headers(cx: &mut Context<'_>, node: &Node) -> Headers {
    let mut headers = Vec::new();
    let help = "write `headers: {Accept: text/html}`";
    for (key, value) in cx.entries(node, "a map of headers", help).unwrap_or_default() {
        if !check_name(cx, &key.text, key.place) {
            continue;
        }
        let values = match &value.kind {
            Kind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(value),
        };
        for value in values {
            if let Some(text) = header_value(cx, value) {
                headers.push((key.text.clone(), text));
            }
        }
    }
    headers
}

fn check_name(cx: &mut Context<'_>, name: &str, place: Place) -> bool {
    if !is_token(name) {
        let message = format!("`{}` cannot be the name of a header", shorten(name));
        let error = cx.error("bad-header", message, place).label("not a header name");
        cx.note(error.help("a header name has letters, digits and `-`: `Content-Type`"));
        return false;
    }
    let reserved = RESERVED.iter().find(|(reserved, _)| name.eq_ignore_ascii_case(reserved));
    if let Some((_, help)) = reserved {
        let message = format!("the header `{name}` cannot be set");
        let error = cx.error("bad-header", message, place).label("throng speaks for itself here");
        cx.note(error.help(*help));
    }
    reserved.is_none()
}

fn header_value(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    let text = match &node.kind {
        // A header without a value is possible.
        Kind::Scalar { .. } if node.is_null() => Text::default(),
        _ => cx.template(node, "the value of a header")?,
    };
    let bad = text.segments.iter().find_map(|segment| match segment {
        Segment::Literal(bytes) => bytes.iter().find(|byte| !is_value_byte(**byte)),
        _ => None,
    });
    match bad {
        None => Some(text),
        Some(byte) => {
            let message = "a header value has no line ends and no control characters".to_string();
            let error = cx
                .error("bad-header", message, node.place)
                .label(format!("it contains `{}`", byte.escape_ascii()))
                .help("write each header under its own name; a list sends one name several times");
            cx.fail(error)
        }
    }
}

pub(crate) fn has(headers: &Headers, name: &str) -> bool {
    headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// The headers of a step, `auth` and the defaults that it does not set itself.
pub(crate) fn read_step_headers(cx: &mut Context<'_>, fields: &Fields<'_>) -> Headers {
    let mut headers = fields.get("headers").map(|node| read_headers(cx, node)).unwrap_or_default();
    if let Some(node) = fields.get("auth") {
        let value = read_auth(cx, node);
        if has(&headers, "authorization") {
            let message = "`auth` and the header `Authorization` say the same".to_string();
            let error = cx.error("conflicting-keys", message, node.place);
            cx.note(error.label("the second of the two").help("keep one of them"));
        } else if let Some(value) = value {
            headers.push(("Authorization".into(), value));
        }
    }
    let missing: Headers =
        cx.defaults.headers.iter().filter(|(name, _)| !has(&headers, name)).cloned().collect();
    headers.extend(missing);
    headers
}

/// Basic authentication (RFC 7617).
fn read_auth(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    let fields = Fields::read(cx, node, &keys::AUTH)?;
    let help = "write `auth: {user: name, password: word}`";
    let user_node = fields.need(cx, "user", help)?;
    let user = literal(cx, user_node)?;
    let password = match fields.get("password") {
        Some(node) => literal(cx, node)?,
        None => String::new(),
    };
    if user.contains(':') {
        let message = "a user's name has no colon in basic authentication";
        return cx.bad_value(user_node, message, help);
    }
    Some(Text::literal(format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))))
}

fn literal(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Scalar { text, plain: false } if text.is_empty() => Some(String::new()),
        _ => cx.text(node, "a name or password"),
    }
}

const METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY"];

pub(crate) fn check_method(cx: &mut Context<'_>, node: &Node, method: &str) -> Option<()> {
    if METHODS.contains(&method) {
        return Some(());
    }
    let upper = method.to_ascii_uppercase();
    let near = did_you_mean(&upper, METHODS).filter(|near| *near != method);
    let message = match method {
        "CONNECT" => "`CONNECT` is for proxies".to_string(),
        _ if !is_token(method) => format!("`{}` is not a method", shorten(method)),
        _ if METHODS.contains(&upper.as_str()) && upper != method => {
            format!("`{method}` is not a method: they are written in capitals")
        }
        _ => return Some(()),
    };
    let mut error = cx.error("bad-method", message, cx.place_of(node, method));
    if let Some(near) = near {
        error = error.label(format!("did you mean `{near}`?"));
    }
    cx.fail(error.help("write `http: GET /path`; any other word in capitals is sent as it is"))
}

/// A path and query that can stand in a request line.
pub(crate) fn check_path(cx: &mut Context<'_>, node: &Node, path: &Text) -> Option<()> {
    let first = path.segments.first();
    let slash = matches!(first, Some(Segment::Literal(bytes)) if bytes.starts_with(b"/"));
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
        ("a step has only a path".to_string(), path_of_url(&shown))
    } else if !slash {
        (
            "a path begins with `/`".to_string(),
            format!("write `/{}`", shorten(shown.trim_start_matches('/'))),
        )
    } else if literal.contains(&b'#') {
        ("a fragment is never sent".to_string(), "leave out what begins with `#`".to_string())
    } else {
        let right = crate::url::encode_path(&shown);
        (
            "a path has no spaces, controls or non-ASCII letters".to_string(),
            format!("write `{}`", shorten(&right)),
        )
    };
    let error = cx.error("bad-path", message, cx.place_of(node, &shown)).label("not a path");
    cx.fail(error.help(help))
}

fn path_of_url(shown: &str) -> String {
    match crate::url::Url::parse(shown) {
        Ok(url) => {
            let path = if url.path.is_empty() { "/" } else { &url.path };
            format!("`target: {}` has the host; write the path `{path}`", url.origin())
        }
        Err(_) => "the host stands in `target`; write the path `/…`".to_string(),
    }
}
