//! JSON written as YAML: bodies and messages, the ways to fields of answers, and what those have
//! to be. A plain word is a JSON number, `true`, `false` or `null` exactly when JSON says so;
//! everything else, and everything in quotes, is a text.

use throng_program::check::JsonPart;
use throng_program::{JsonCheck, JsonPath, JsonWant, Text};

use crate::read::{Context, shorten};
use crate::syntax::{Kind, Node, Place};
use crate::template::{Piece, TextBuilder};

/// Compact JSON text of a YAML value, keys in their order.
pub(crate) fn json_text(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    let mut builder = TextBuilder::default();
    write_value(cx, node, &mut builder)?;
    Some(builder.finish())
}

fn write_value(cx: &mut Context<'_>, node: &Node, out: &mut TextBuilder) -> Option<()> {
    match &node.kind {
        Kind::Scalar { .. } => write_scalar(cx, node, out),
        Kind::List(items) => {
            out.bytes(b"[");
            let mut good = Some(());
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.bytes(b",");
                }
                good = write_value(cx, item, out).and(good);
            }
            out.bytes(b"]");
            good
        }
        Kind::Map(_) => {
            let entries = cx.entries(node, "a JSON value", "write it as YAML")?;
            out.bytes(b"{");
            let mut good = Some(());
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.bytes(b",");
                }
                let mut text = vec![b'"'];
                escape(&key.text, &mut text);
                text.extend_from_slice(b"\":");
                out.bytes(&text);
                good = write_value(cx, value, out).and(good);
            }
            out.bytes(b"}");
            good
        }
    }
}

fn write_scalar(cx: &mut Context<'_>, node: &Node, out: &mut TextBuilder) -> Option<()> {
    if node.is_null() {
        out.bytes(b"null");
        return Some(());
    }
    let plain = matches!(node.kind, Kind::Scalar { plain: true, .. });
    let pieces = cx.pieces(node, "a JSON value")?;
    match pieces.as_slice() {
        [Piece::Literal(text)] if plain && is_bare(text) => out.bytes(text.as_bytes()),
        [piece @ (Piece::UserId | Piece::Iteration)] if plain => out.piece(piece, escape),
        pieces => {
            out.bytes(b"\"");
            pieces.iter().for_each(|piece| out.piece(piece, escape));
            out.bytes(b"\"");
        }
    }
    Some(())
}

/// Whether a plain text is a JSON value that needs no quotes.
fn is_bare(text: &str) -> bool {
    matches!(text, "true" | "false" | "null") || is_number(text)
}

/// The grammar of numbers (RFC 8259, 6).
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let mantissa = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

/// A text as it stands between the quotes of JSON (RFC 8259, 7).
fn escape(text: &str, out: &mut Vec<u8>) {
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\0'..='\x1f' => out.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes()),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// `data.items[0].id`: names and indexes; `$` and `$.` at the begin are allowed.
pub fn parse_json_path(text: &str) -> Result<JsonPath, String> {
    let mut parts = Vec::new();
    let plain = text.strip_prefix("$.").unwrap_or(text.strip_prefix('$').unwrap_or(text));
    if plain.is_empty() {
        return if text.starts_with('$') {
            Ok(JsonPath { parts })
        } else {
            Err("it is empty".into())
        };
    }
    for (i, piece) in plain.split('.').enumerate() {
        let (name, indexes) = match piece.find('[') {
            Some(at) => piece.split_at(at),
            None => (piece, ""),
        };
        if name.is_empty() && (indexes.is_empty() || i > 0) {
            return Err("a name is missing beside a `.`".into());
        }
        if !name.is_empty() {
            parts.push(JsonPart::Name(name.to_string()));
        }
        for index in indexes.split_inclusive(']').filter(|index| !index.is_empty()) {
            let number = index.strip_prefix('[').and_then(|index| index.strip_suffix(']'));
            match number.and_then(|number| number.parse().ok()) {
                Some(number) => parts.push(JsonPart::Index(number)),
                None => return Err(format!("`{index}` is not an index such as `[0]`")),
            }
        }
    }
    Ok(JsonPath { parts })
}

/// `data.code=200`, `ok=true`, `name="x"`, or only `data.token`, which has to be there.
pub fn parse_json_expectation(text: &str) -> Result<(JsonPath, JsonWant), String> {
    let (path, want) = match text.split_once('=') {
        Some((path, value)) => (path, value_of(value.strip_prefix('=').unwrap_or(value).trim())),
        None => (text, JsonWant::Present),
    };
    Ok((parse_json_path(path.trim())?, want))
}

fn value_of(text: &str) -> JsonWant {
    let quoted = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    match quoted('"').or(quoted('\'')) {
        Some(inner) => JsonWant::Text(inner.to_string()),
        None => plain_want(text),
    }
}

fn plain_want(text: &str) -> JsonWant {
    match text {
        "present" => JsonWant::Present,
        "absent" => JsonWant::Absent,
        "null" => JsonWant::Null,
        "true" => JsonWant::Bool(true),
        "false" => JsonWant::Bool(false),
        _ if is_number(text) => match text.parse() {
            Ok(number) => JsonWant::Number(number),
            Err(_) => JsonWant::Text(text.to_string()),
        },
        _ => JsonWant::Text(text.to_string()),
    }
}

/// The fields of a `json:` check; maps and lists inside go deeper.
pub(crate) fn read_json_checks(cx: &mut Context<'_>, node: &Node, out: &mut Vec<JsonCheck>) {
    let help = "write `json: {data.code: 0, data.token: present}`";
    let entries = cx.entries(node, "a map of fields and values", help).unwrap_or_default();
    if entries.is_empty() && matches!(node.kind, Kind::Map(_)) {
        let error = cx.error("empty", "there is no field to check".into(), node.place);
        cx.note(error.label("empty").help(help));
    }
    for (key, value) in entries {
        if let Some(path) = read_path(cx, &key.text, key.place) {
            read_want(cx, value, path, out);
        }
    }
}

/// The way to a field, from a text that stands at `place`.
pub(crate) fn read_path(cx: &mut Context<'_>, text: &str, place: Place) -> Option<JsonPath> {
    match parse_json_path(text) {
        Ok(path) => Some(path),
        Err(reason) => {
            let message = format!("`{}` is not the way to a JSON field", shorten(text));
            let error = cx.error("bad-json-path", message, place).label(reason);
            cx.fail(error.help("names with dots, indexes in brackets: `data.items[0].id`"))
        }
    }
}

pub(crate) fn read_want(
    cx: &mut Context<'_>,
    node: &Node,
    path: JsonPath,
    out: &mut Vec<JsonCheck>,
) {
    match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            let help = "write the fields and what they have to be";
            for (key, value) in cx.entries(node, "fields", help).unwrap_or_default() {
                if let Some(inner) = read_path(cx, &key.text, key.place) {
                    let mut parts = path.parts.clone();
                    parts.extend(inner.parts);
                    read_want(cx, value, JsonPath { parts }, out);
                }
            }
        }
        Kind::List(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                let mut parts = path.parts.clone();
                parts.push(JsonPart::Index(i));
                read_want(cx, item, JsonPath { parts }, out);
            }
        }
        Kind::Scalar { .. } if node.is_null() => {
            out.push(JsonCheck { path, want: JsonWant::Null });
        }
        Kind::Scalar { plain, .. } => {
            if let Some(text) = cx.text(node, "the value of a field") {
                let want = if *plain { plain_want(&text) } else { JsonWant::Text(text) };
                out.push(JsonCheck { path, want });
            }
        }
        // An empty map or list: that it is there is all that can be said.
        _ => out.push(JsonCheck { path, want: JsonWant::Present }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_read() {
        for (text, path, want) in [
            ("data.code=200", "data.code", JsonWant::Number(200.0)),
            ("code=0", "code", JsonWant::Number(0.0)),
            ("ok==true", "ok", JsonWant::Bool(true)),
            ("a[0].b='200'", "a[0].b", JsonWant::Text("200".into())),
            ("token", "token", JsonWant::Present),
            ("x = y=z", "x", JsonWant::Text("y=z".into())),
        ] {
            let (found, value) = parse_json_expectation(text).unwrap();
            assert_eq!((found.to_string().as_str(), value), (path, want), "{text}");
        }
        for text in ["", "=1", "a..b=1", "a[x]=1", "a[0=1", ".a"] {
            assert!(parse_json_expectation(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        for good in ["0", "-1", "1.5", "1e9", "-0.1E-3", "100"] {
            assert!(is_number(good), "{good}");
        }
        for bad in ["", "-", "01", ".5", "5.", "+1", "1_000", "0x1", "1e", "e1", "NaN"] {
            assert!(!is_number(bad), "{bad}");
        }
    }
}
