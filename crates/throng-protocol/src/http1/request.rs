//! Writes requests, whole or in pieces, and validates their parts. The writers do not check their
//! input: the `validate_*` functions do, once, when a scenario is read.

use std::fmt;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::headers::IS_TOKEN;

/// Writes a whole head: request line, headers, empty line.
pub fn write_request<'h>(
    out: &mut Vec<u8>,
    method: &str,
    path_and_query: &str,
    headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
) {
    write_request_line(out, method, path_and_query);
    for (name, value) in headers {
        write_header(out, name, value);
    }
    write_head_end(out);
}

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
    out.extend_from_slice(b"Content-Length: ");
    write_number(out, format_args!("{length}"));
    out.extend_from_slice(b"\r\n");
}

/// Ends the head.
pub fn write_head_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// Writes one chunk of a chunked body. Empty data writes nothing, because an empty chunk ends the
/// body.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    write_number(out, format_args!("{:x}", data.len()));
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Ends a chunked body, without trailers.
pub fn write_last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

fn write_number(out: &mut Vec<u8>, number: fmt::Arguments<'_>) {
    // Writing to a Vec cannot fail.
    let _ = out.write_fmt(number);
}

/// The value of an Authorization header (RFC 7617). The user must not contain a colon.
pub fn basic_authorization(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Why a part of a request may not be sent: the peer would interpret it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidPart {
    Empty,
    /// The first invalid byte and its position.
    Byte {
        at: usize,
        byte: u8,
    },
}

impl fmt::Display for InvalidPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidPart::Empty => write!(f, "it is empty"),
            InvalidPart::Byte { at, byte } => {
                write!(f, "`{}` is not allowed here (byte {})", byte.escape_ascii(), at + 1)
            }
        }
    }
}

impl std::error::Error for InvalidPart {}

/// A method is a token (RFC 9110 sections 5.6.2 and 9.1).
pub fn validate_method(method: &str) -> Result<(), InvalidPart> {
    validate_token(method.as_bytes())
}

/// A header name is a token (RFC 9110 section 5.1).
pub fn validate_header_name(name: &str) -> Result<(), InvalidPart> {
    validate_token(name.as_bytes())
}

/// A header value has no control bytes but the tab (RFC 9110 section 5.5); it may be empty.
pub fn validate_header_value(value: &[u8]) -> Result<(), InvalidPart> {
    validate_bytes(value, |byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

/// A path and query contains neither blanks nor control bytes: those would end it. Other bytes that
/// RFC 3986 requires to be escaped are allowed, because sending them may be intended.
pub fn validate_target(path_and_query: &str) -> Result<(), InvalidPart> {
    validate_bytes(path_and_query.as_bytes(), |byte| byte > b' ' && byte != 0x7f)
}

fn validate_token(bytes: &[u8]) -> Result<(), InvalidPart> {
    if bytes.is_empty() {
        return Err(InvalidPart::Empty);
    }
    validate_bytes(bytes, |byte| IS_TOKEN[usize::from(byte)])
}

fn validate_bytes(bytes: &[u8], is_allowed: impl Fn(u8) -> bool) -> Result<(), InvalidPart> {
    match bytes.iter().position(|byte| !is_allowed(*byte)) {
        Some(at) => Err(InvalidPart::Byte { at, byte: bytes[at] }),
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
        let headers = [("Host", &b"a.example"[..]), ("X-Empty", b"")];
        assert_eq!(
            written(|out| write_request(out, "GET", "/a?b=c", headers)),
            "GET /a?b=c HTTP/1.1\r\nHost: a.example\r\nX-Empty: \r\n\r\n"
        );
        assert_eq!(written(|out| write_request_line(out, "GET", "")), "GET / HTTP/1.1\r\n");
        assert_eq!(written(|out| write_request_line(out, "GET", "?q")), "GET /?q HTTP/1.1\r\n");
        assert_eq!(
            written(|out| write_content_length(out, u64::MAX)),
            "Content-Length: 18446744073709551615\r\n"
        );
    }

    #[test]
    fn chunks_are_written_with_hexadecimal_sizes_and_an_empty_one_is_left_out() {
        let body = written(|out| {
            write_chunk(out, b"0123456789");
            write_chunk(out, b"");
            write_chunk(out, b"x");
            write_last_chunk(out);
        });
        assert_eq!(body, "a\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n");
    }

    #[test]
    fn parts_that_would_split_a_request_are_rejected() {
        let bad = |at, byte| Err(InvalidPart::Byte { at, byte });
        assert_eq!(validate_method("M-SEARCH"), Ok(()));
        assert_eq!(validate_method("GET /"), bad(3, b' '));
        assert_eq!(validate_method(""), Err(InvalidPart::Empty));
        assert_eq!(validate_header_name("X-Trace_Id"), Ok(()));
        assert_eq!(validate_header_name("X:"), bad(1, b':'));
        assert_eq!(validate_header_name("Å"), bad(0, 0xc3));
        assert_eq!(validate_header_value(b""), Ok(()));
        assert_eq!(validate_header_value("tab\tand å".as_bytes()), Ok(()));
        assert_eq!(validate_header_value(b"a\r\nb: c"), bad(1, b'\r'));
        assert_eq!(validate_header_value(b"a\nb"), bad(1, b'\n'));
        assert_eq!(validate_header_value(b"\0"), bad(0, 0));
        assert_eq!(validate_target("/ä?{}"), Ok(()));
        assert_eq!(validate_target("/a b"), bad(2, b' '));
        assert_eq!(bad(1, b'\r').unwrap_err().to_string(), r"`\r` is not allowed here (byte 2)");
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
