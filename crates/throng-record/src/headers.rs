//! Changes of a proxy to headers (RFC 9110, 7.6): headers of one connection are not forwarded. For
//! recorded requests, it also asks for bodies that it can decode.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Headers of one connection (RFC 9110, 7.6.1), besides those that `Connection` names.
const OF_CONNECTION: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];
/// Content codings that the recorder can decode.
const CODINGS: [&str; 4] = ["gzip", "deflate", "br", "identity"];

/// True if a request asks for a WebSocket (RFC 6455, 4.1).
pub(crate) fn asks_for_socket(headers: &HeaderMap) -> bool {
    let has = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|it| it.trim().eq_ignore_ascii_case(word))
    };
    has(header::UPGRADE, "websocket") && has(header::CONNECTION, "upgrade")
}

/// Removes headers of one connection.
pub(crate) fn drop_own(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    named.iter().for_each(|name| drop(headers.remove(name)));
    OF_CONNECTION.iter().for_each(|name| drop(headers.remove(*name)));
}

/// HTTP/2 sends cookies one by one (RFC 9113, 8.2.3); other versions have one header.
pub(crate) fn join_cookies(headers: &mut HeaderMap) {
    let parts: Vec<&[u8]> =
        headers.get_all(header::COOKIE).iter().map(|it| it.as_bytes()).collect();
    if parts.len() > 1
        && let Ok(joined) = HeaderValue::from_bytes(&parts.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, joined);
    }
}

/// Asks for a complete body in a supported coding: the content of the browser's cache is not
/// available for correlation.
pub(crate) fn ask_for_readable(headers: &mut HeaderMap) {
    for name in [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE] {
        headers.remove(name);
    }
    let Some(accepted) = headers.get(header::ACCEPT_ENCODING).and_then(|it| it.to_str().ok())
    else {
        return;
    };
    let is_known = |coding: &&str| {
        let name = coding.split(';').next().unwrap_or_default();
        CODINGS.iter().any(|known| known.eq_ignore_ascii_case(name.trim()))
    };
    let kept: Vec<&str> = accepted.split(',').map(str::trim).filter(is_known).collect();
    let kept = if kept.is_empty() { "identity".to_string() } else { kept.join(", ") };
    if let Ok(kept) = HeaderValue::try_from(kept) {
        headers.insert(header::ACCEPT_ENCODING, kept);
    }
}

/// `X-Api-Key` for `x-api-key`, the usual spelling.
pub(crate) fn title(name: &str) -> String {
    let mut is_begin = true;
    name.chars()
        .map(|c| {
            let c = if is_begin { c.to_ascii_uppercase() } else { c };
            is_begin = c == '-';
            c
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(pair).collect()
    }

    fn lines(headers: &HeaderMap) -> Vec<String> {
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn headers_of_one_connection_are_not_forwarded() {
        let mut headers = map(&[
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("proxy-authorization", "Basic eA=="),
            ("transfer-encoding", "chunked"),
            ("x-end", "2"),
        ]);
        drop_own(&mut headers);
        assert_eq!(lines(&headers), ["x-end: 2"]);
    }

    #[test]
    fn a_decodable_body_is_requested() {
        let mut headers = map(&[
            ("accept-encoding", "gzip, deflate, br;q=0.9, zstd"),
            ("if-none-match", "\"x\""),
            ("cookie", "a=1"),
            ("cookie", "b=2"),
        ]);
        ask_for_readable(&mut headers);
        join_cookies(&mut headers);
        assert_eq!(
            lines(&headers),
            ["accept-encoding: gzip, deflate, br;q=0.9", "cookie: a=1; b=2"]
        );
        let mut headers = map(&[("accept-encoding", "zstd")]);
        ask_for_readable(&mut headers);
        assert_eq!(lines(&headers), ["accept-encoding: identity"]);
    }

    #[test]
    fn a_websocket_request_is_recognized() {
        let asks = |upgrade, connection| {
            asks_for_socket(&map(&[("upgrade", upgrade), ("connection", connection)]))
        };
        assert!(asks("WebSocket", "keep-alive, Upgrade"));
        assert!(!asks("h2c", "Upgrade") && !asks("websocket", "close"));
        assert_eq!(title("x-csrf-token"), "X-Csrf-Token");
    }
}
