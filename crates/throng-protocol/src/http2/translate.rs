//! Converts the head of an HTTP/1.1 request to a header block: requests are rendered once, for both
//! versions.

use super::{write_field, write_secret};

/// Headers about an HTTP/1.1 connection, which HTTP/2 forbids (RFC 9113, 8.2.2); `Host` becomes the
/// pseudo-header `:authority` (8.3.1).
const CONNECTION_ONLY: [&str; 6] =
    ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
/// Values that peers and proxies should not put into a table (RFC 7541, 7.1.3).
const SECRETS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Writes the head of a request, from its request line to the empty line or the end of `head`, as a
/// header block. False if it is not such a head.
pub fn write_block(out: &mut Vec<u8>, scheme: &str, head: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.trim_ascii_end());
    let request_line = lines.next().unwrap_or_default();
    let mut words = request_line.split(|byte| *byte == b' ');
    let (Some(method), Some(path), Some(_)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let headers = || lines.clone().take_while(|line| !line.is_empty()).filter_map(field);
    let authority = headers().find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    write_field(out, ":method", method);
    write_field(out, ":scheme", scheme.as_bytes());
    if let Some((_, authority)) = authority {
        write_field(out, ":authority", authority);
    }
    write_field(out, ":path", path);
    let mut lower = [0; 64];
    for (name, value) in headers() {
        let name = name.to_ascii_lowercase_in(&mut lower);
        let Ok(name) = std::str::from_utf8(&name) else { return false };
        if CONNECTION_ONLY.contains(&name) || (name == "te" && value != b"trailers") {
            continue;
        }
        match SECRETS.contains(&name) {
            true => write_secret(out, name, value),
            false => write_field(out, name, value),
        }
    }
    true
}

fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// Names are in lower case (RFC 9113, 8.2.1); few are longer than the given buffer.
trait LowerCase {
    fn to_ascii_lowercase_in<'a>(&self, room: &'a mut [u8]) -> std::borrow::Cow<'a, [u8]>;
}

impl LowerCase for [u8] {
    fn to_ascii_lowercase_in<'a>(&self, room: &'a mut [u8]) -> std::borrow::Cow<'a, [u8]> {
        match room.get_mut(..self.len()) {
            Some(room) => {
                room.copy_from_slice(self);
                room.make_ascii_lowercase();
                std::borrow::Cow::Borrowed(room)
            }
            None => std::borrow::Cow::Owned(self.to_ascii_lowercase()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_becomes_the_block_of_the_same_request() {
        let head = b"POST /a?b=1 HTTP/1.1\r\nHost: example.org:8443\r\nX-Long-Name: one\r\n\
                     Cookie: a=1; b=2\r\nConnection: close\r\nTE: trailers\r\n\
                     Content-Length: 4\r\n\r\nbody: not a header";
        let (mut block, mut want) = (Vec::new(), Vec::new());
        assert!(write_block(&mut block, "https", head));
        write_field(&mut want, ":method", b"POST");
        write_field(&mut want, ":scheme", b"https");
        write_field(&mut want, ":authority", b"example.org:8443");
        write_field(&mut want, ":path", b"/a?b=1");
        write_field(&mut want, "x-long-name", b"one");
        write_secret(&mut want, "cookie", b"a=1; b=2");
        write_field(&mut want, "te", b"trailers");
        write_field(&mut want, "content-length", b"4");
        assert_eq!(block, want);
    }

    #[test]
    fn a_long_name_is_written_and_an_invalid_head_is_not() {
        let head = format!("GET / HTTP/1.1\r\n{}: x\r\n\r\n", "N".repeat(100));
        let (mut block, mut want) = (Vec::new(), Vec::new());
        assert!(write_block(&mut block, "http", head.as_bytes()));
        write_field(&mut want, ":method", b"GET");
        write_field(&mut want, ":scheme", b"http");
        write_field(&mut want, ":path", b"/");
        write_field(&mut want, &"n".repeat(100), b"x");
        assert_eq!(block, want);
        assert!(!write_block(&mut block, "http", b"nonsense"));
    }
}
