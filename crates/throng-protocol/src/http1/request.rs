//! Writes requests, whole or in pieces, and validates their parts. The writers do not check their
//! input: the `validate_*` functions do, once, when a scenario is read.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Writes the head of a request for a proxy tunnel to `host:port` (RFC 9110, 9.3.6).
pub fn write_connect(out: &mut Vec<u8>, authority: &str, headers: &[(&str, &str)]) {
    let _ = write!(out, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    for (name, value) in headers {
        write_header(out, name, value.as_bytes());
    }
    write_head_end(out);
}

/// Writes `GET /path HTTP/1.1`. An empty path is written as `/`.
pub fn write_request_line(out: &mut Vec<u8>, method: &str, path_and_query: &str) {
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    if path_and_query.is_empty() || path_and_query.starts_with('?') {
        out.push(b'/');
    }
    out.extend_from_slice(path_and_query.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

pub fn write_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

pub fn write_content_length(out: &mut Vec<u8>, length: u64) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "Content-Length: {length}\r\n");
}

/// Ends the head.
pub fn write_head_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// The value of an Authorization header (RFC 7617). The user must not contain a colon.
pub fn basic_authorization(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// A byte that may not be sent in this part of a request: the peer would interpret it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidByte(pub u8);

/// A header value has no control bytes but the tab (RFC 9110 section 5.5); it may be empty.
pub fn validate_header_value(value: &[u8]) -> Result<(), InvalidByte> {
    validate_bytes(value, |byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

/// A path and query contains neither blanks nor control bytes: those would end it. Other bytes that
/// RFC 3986 requires to be escaped are allowed, because sending them may be intended.
pub fn validate_target(path_and_query: &str) -> Result<(), InvalidByte> {
    validate_bytes(path_and_query.as_bytes(), |byte| byte > b' ' && byte != 0x7f)
}

fn validate_bytes(bytes: &[u8], is_allowed: impl Fn(u8) -> bool) -> Result<(), InvalidByte> {
    match bytes.iter().find(|byte| !is_allowed(**byte)) {
        Some(byte) => Err(InvalidByte(*byte)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_request_is_written_as_in_the_rfc() {
        let request = written(|out| {
            write_request_line(out, "GET", "/a?b=c");
            write_header(out, "Host", b"a.example");
            write_header(out, "X-Empty", b"");
            write_head_end(out);
        });
        assert_eq!(request, "GET /a?b=c HTTP/1.1\r\nHost: a.example\r\nX-Empty: \r\n\r\n");
        assert_eq!(written(|out| write_request_line(out, "GET", "")), "GET / HTTP/1.1\r\n");
        assert_eq!(written(|out| write_request_line(out, "GET", "?q")), "GET /?q HTTP/1.1\r\n");
        assert_eq!(
            written(|out| write_content_length(out, u64::MAX)),
            "Content-Length: 18446744073709551615\r\n"
        );
    }

    #[test]
    fn parts_that_would_split_a_request_are_rejected() {
        let bad = |byte| Err(InvalidByte(byte));
        assert_eq!(validate_header_value(b""), Ok(()));
        assert_eq!(validate_header_value("tab\tand å".as_bytes()), Ok(()));
        assert_eq!(validate_header_value(b"a\r\nb: c"), bad(b'\r'));
        assert_eq!(validate_header_value(b"a\nb"), bad(b'\n'));
        assert_eq!(validate_header_value(b"\0"), bad(0));
        assert_eq!(validate_target("/ä?{}"), Ok(()));
        assert_eq!(validate_target("/a b"), bad(b' '));
    }

    #[test]
    fn basic_authorization_matches_the_rfc() {
        assert_eq!(
            basic_authorization("Aladdin", "open sesame"),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
        assert_eq!(basic_authorization("test", "123£"), "Basic dGVzdDoxMjPCow==");
    }
}
