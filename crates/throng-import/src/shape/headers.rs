//! Removes headers that throng sends itself, or that only browsers send.

use crate::Format;
use crate::model::{Body, Exchange, LeftOut, Recording};
use crate::text::Text;

/// Headers of a connection, of a cache, or of a browser's internal use.
const DROPPED: [&str; 26] = [
    "accept-encoding",
    "cache-control",
    "connection",
    "content-length",
    "cookie",
    "dnt",
    "expect",
    "host",
    "http2-settings",
    "if-modified-since",
    "if-none-match",
    "keep-alive",
    "postman-token",
    "pragma",
    "priority",
    "proxy-connection",
    "purpose",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "upgrade-insecure-requests",
    "x-client-data",
    "x-forwarded-for",
];

pub(super) fn clean(recording: &mut Recording, format: Format) {
    let is_recorded = matches!(format, Format::Har);
    let mut cookies: Vec<String> = Vec::new();
    let mut given: Vec<String> = Vec::new();
    let mut invalid = 0;
    let mut methods: Vec<String> = Vec::new();
    recording.each_exchange(|exchange| {
        if !is_method(&exchange.method) {
            methods.push(std::mem::replace(&mut exchange.method, "GET".into()));
        }
        if is_recorded {
            remember(exchange, &mut cookies, &mut given);
        }
        invalid += clean_list(&mut exchange.headers, is_recorded);
        if is_recorded && matches!(exchange.method.as_str(), "GET" | "HEAD") {
            exchange.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("referer"));
        }
        drop_type_of_body(exchange);
    });
    recording.each_socket(|socket| {
        invalid += clean_list(&mut socket.headers, is_recorded);
        socket.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("sec-websocket-"));
        let offered = socket.protocols.len();
        socket.protocols.retain(|name| is_token(name));
        invalid += offered - socket.protocols.len();
    });
    for method in methods {
        let what = say!("`{}` is not an HTTP method", method.escape_debug().to_string());
        recording.left_out.push(LeftOut::of_all(1, what));
    }
    if !cookies.is_empty() {
        let what = say!("cookies from before the recording: {}", cookies.join(", "));
        recording.left_out.push(LeftOut::of_all(cookies.len(), what));
    }
    if invalid > 0 {
        let what = say!("headers whose names or values are not valid in HTTP");
        recording.left_out.push(LeftOut::of_all(invalid, what));
    }
}

/// True if a request may have this method: a token (RFC 9110, 9.1), as tools write it.
fn is_method(method: &str) -> bool {
    let is_good = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-' || c == '_';
    method != "CONNECT" && !method.is_empty() && method.chars().all(is_good)
}

/// Cookies that no response has set: throng stores those that a target sets.
fn remember(exchange: &Exchange, cookies: &mut Vec<String>, given: &mut Vec<String>) {
    for (name, value) in &exchange.headers {
        if name.eq_ignore_ascii_case("cookie") {
            let names = value.to_string();
            let names = names.split(';').filter_map(|one| one.split('=').next()).map(str::trim);
            for name in names.filter(|name| !name.is_empty()) {
                let is_new = !given.iter().chain(&*cookies).any(|known| known == name);
                if is_new && cookies.len() < 100 {
                    cookies.push(name.to_string());
                }
            }
        }
    }
    let headers = exchange.response.iter().flat_map(|response| &response.headers);
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("set-cookie") {
            // Recorders merge several into one header, on separate lines.
            let names = value.lines().filter_map(|line| line.split('=').next());
            given.extend(names.map(|name| name.trim().to_string()));
        }
    }
}

/// Returns the number of headers that are not valid.
fn clean_list(headers: &mut Vec<(String, Text)>, is_recorded: bool) -> usize {
    let is_dropped = |name: &str| {
        let name = name.to_ascii_lowercase();
        let is_browser = name.starts_with("sec-fetch-") || name.starts_with("sec-ch-");
        let is_own = matches!(
            name.as_str(),
            "content-length" | "host" | "transfer-encoding" | "connection" | "upgrade"
        );
        is_own
            || name.starts_with(':')
            || is_recorded && (is_browser || DROPPED.contains(&name.as_str()))
    };
    headers.retain(|(name, _)| !is_dropped(name));
    let before = headers.len();
    let is_value =
        |value: &Text| value.to_string().bytes().all(|b| b == b'\t' || (b >= 0x20 && b != 0x7f));
    headers.retain(|(name, value)| is_token(name) && is_value(value));
    before - headers.len()
}

fn is_token(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(good)
}

/// `json` and `form` set their type.
fn drop_type_of_body(exchange: &mut Exchange) {
    let own = match &exchange.body {
        Body::Json(_) => "application/json",
        Body::Form(_) => "application/x-www-form-urlencoded",
        // The boundary is regenerated.
        Body::Multipart(_) => "multipart/form-data",
        _ => return,
    };
    exchange.headers.retain(|(name, value)| {
        let value = value.to_string().to_ascii_lowercase();
        let kind = value.split(';').next().unwrap_or_default().trim();
        !(name.eq_ignore_ascii_case("content-type") && kind == own)
    });
}
