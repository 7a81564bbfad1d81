//! Messages of the frontend.

use crate::sql::ask::Values;

/// Requests TLS before anything else; the answer is one byte.
pub const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

const VERSION_3: u32 = 3 << 16;

/// A message with its type and the length of its body, written by `body`.
pub(super) fn message(kind: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    counted(out, body);
}

/// The output of `body` after its length, which includes itself.
fn counted(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - begin) as u32;
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
}

pub(super) fn text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.push(0);
}

pub(super) fn startup(user: &str, database: &str, out: &mut Vec<u8>) {
    counted(out, |out| {
        out.extend_from_slice(&VERSION_3.to_be_bytes());
        for (name, value) in [
            ("user", user),
            ("database", database),
            ("application_name", "throng"),
            ("client_encoding", "UTF8"),
        ] {
            text(name.as_bytes(), out);
            text(value.as_bytes(), out);
        }
        out.push(0);
    });
}

pub(super) fn password(password: &[u8], out: &mut Vec<u8>) {
    message(b'p', out, |out| text(password, out));
}

pub(super) fn query(sql: &[u8], out: &mut Vec<u8>) {
    message(b'Q', out, |out| text(sql, out));
}

/// The name of a statement on the server; empty for one that the next replaces.
fn name(number: Option<u16>, out: &mut Vec<u8>) {
    if let Some(number) = number {
        out.extend_from_slice(b"throng_");
        // Hexadecimal digits are cheaper than formatting.
        let digit = |shift: u16| b"0123456789abcdef"[usize::from(number >> shift & 15)];
        out.extend_from_slice(&[12, 8, 4, 0].map(digit));
    }
    out.push(0);
}

/// The server infers the types of parameters.
pub(super) fn parse(number: Option<u16>, sql: &[u8], out: &mut Vec<u8>) {
    message(b'P', out, |out| {
        name(number, out);
        text(sql, out);
        out.extend_from_slice(&0u16.to_be_bytes());
    });
}

/// Executes a prepared statement; requests the column descriptions if they are needed.
pub(super) fn execute(number: Option<u16>, values: &Values, describes: bool, out: &mut Vec<u8>) {
    message(b'B', out, |out| {
        out.push(0);
        name(number, out);
        out.extend_from_slice(&0u16.to_be_bytes());
        out.extend_from_slice(&values.count.to_be_bytes());
        out.extend_from_slice(&values.bytes);
        out.extend_from_slice(&0u16.to_be_bytes());
    });
    if describes {
        message(b'D', out, |out| out.extend_from_slice(b"P\0"));
    }
    message(b'E', out, |out| out.extend_from_slice(&[0; 5]));
    sync(out);
}

pub(super) fn sync(out: &mut Vec<u8>) {
    message(b'S', out, |_| {});
}
