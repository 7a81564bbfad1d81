//! A reply as JSON: texts, numbers, `null`, lists. Invalid UTF-8 in a text is replaced.

use throng_expression::Value;

use super::reply::text;
use super::scan::{Head, head};

/// Appends the item at the start of `rest`, which is complete.
pub(super) fn write_json(rest: &mut &[u8], out: &mut Vec<u8>) {
    let Ok(Some((head, bytes))) = head(rest) else { return };
    *rest = &rest[bytes..];
    match head {
        Head::Status(text) => write_text(text, out),
        Head::Text(length) => write_text(text(rest, length), out),
        Head::Number(number) => Value::Int(number).write_json(out),
        Head::Nothing => out.extend_from_slice(b"null"),
        Head::Error(text) => {
            out.extend_from_slice(b"{\"error\":");
            write_text(text, out);
            out.push(b'}');
        }
        Head::List(items) => {
            out.push(b'[');
            for item in 0..items {
                if item > 0 {
                    out.push(b',');
                }
                write_json(rest, out);
            }
            out.push(b']');
        }
    }
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    let is_simple = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if text.iter().all(is_simple) {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    } else {
        Value::Text(String::from_utf8_lossy(text).into()).write_json(out);
    }
}
