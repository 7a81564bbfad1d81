//! JSON written as YAML: bodies and messages, paths to fields of responses, and their expected
//! values. A plain scalar is a number, `true`, `false` or `null` exactly if it is valid JSON;
//! everything else, and everything in quotes, is a string. A scalar that is a single `${…}` has the
//! type of its value, with or without quotes.

use throng_expression::is_number;
use throng_extract::{JsonPath, PathError};
use throng_program::{Check, Escape, Extractor, Matcher, Text};

use crate::message::matchers::Meaning;
use crate::read::Context;
use crate::read::foreign::warn_placeholders;
use crate::read::template::{TextBuilder, TextPart, read_parts, single_expression};
use crate::syntax::{Key, Kind, Node, Place};
use crate::words::shorten;

/// Compact JSON of a YAML value; the order of keys is preserved.
pub(crate) fn json_text(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    warn_quoted(cx, node);
    let mut builder = TextBuilder::default();
    write_value(cx, node, &mut builder)?;
    Some(builder.finish())
}

/// Warns of JSON in a text: it is sent as a JSON string, in quotes.
fn warn_quoted(cx: &mut Context<'_>, node: &Node) {
    let Kind::Scalar { text, plain: false } = &node.kind else { return };
    let text = text.trim();
    let is_in = |open: char, close: char| text.starts_with(open) && text.ends_with(close);
    if text.len() < 2 || !is_in('{', '}') && !is_in('[', ']') {
        return;
    }
    let label = say!("text, not a map");
    let help = say!(
        "write the value as YAML, without quotes: `json: {{a: 1}}`; to send the text unchanged, \
         write `body: '…'`"
    );
    cx.warn("quoted-json", node.place, say!("this JSON is sent as a quoted string"), label, help);
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
            let entries =
                cx.entries(node, say!("a JSON value"), say!("write the value as YAML"))?;
            out.bytes(b"{");
            let mut good = Some(());
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.bytes(b",");
                }
                out.bytes(b"\"");
                let name = cx.key_template(key, Escape::JsonText);
                good = name.map(|name| out.text(&name)).and(good);
                out.bytes(b"\":");
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
    if let Some((inner, at)) = single_expression(node) {
        return cx.add_value(node, inner, at, Escape::Json, out);
    }
    let text = cx.scalar(node, say!("a JSON value"))?;
    if matches!(node.kind, Kind::Scalar { plain: true, .. }) && is_bare(text) {
        out.bytes(text.as_bytes());
        return Some(());
    }
    warn_placeholders(cx, node, text);
    let mut good = Some(());
    out.bytes(b"\"");
    for part in read_parts(cx, node, text)? {
        match part {
            TextPart::Literal(literal) => out.literal(literal, Escape::JsonText),
            TextPart::Expression { inner, at } => {
                good = cx.add_value(node, inner, at, Escape::JsonText, out).and(good);
            }
        }
    }
    out.bytes(b"\"");
    good
}

/// Whether a plain text is a JSON value that needs no quotes.
fn is_bare(text: &str) -> bool {
    matches!(text, "true" | "false" | "null") || is_number(text)
}

/// The fields of a `json:` check; maps and lists are nested fields.
pub(crate) fn read_json_checks(cx: &mut Context<'_>, node: &Node, out: &mut Vec<Check>) {
    let help = say!("write `json: {{data.code: 0, data.token: present}}`");
    let entries = cx.filled_map(
        node,
        say!("a map of fields and values"),
        say!("there is no field to check"),
        help,
    );
    for (key, value) in entries {
        if let Some(path) = read_path(cx, &key.text, key.place) {
            read_field(cx, value, path, out);
        }
    }
}

/// The path to a field, from a text at `place`.
pub(crate) fn read_path(cx: &mut Context<'_>, text: &str, place: Place) -> Option<JsonPath> {
    match JsonPath::parse(text) {
        Ok(path) => Some(path),
        Err(reason) => bad_path(cx, text, place, reason),
    }
}

fn bad_path<T>(cx: &mut Context<'_>, text: &str, place: Place, reason: PathError) -> Option<T> {
    let message = say!("`{}` is not a path to a JSON field", shorten(text));
    let place = cx.place_inside(place, text, reason.start, reason.end);
    cx.refuse("bad-json-path", place, message, reason.message, reason.help)
}

/// `json.items: {count: ">= 3"}` checks the matches; any other map names nested fields.
pub(crate) fn read_path_check(
    cx: &mut Context<'_>,
    node: &Node,
    path: JsonPath,
    out: &mut Vec<Check>,
) {
    let found = |entries: &[(Key, Node)]| {
        !entries.is_empty()
            && entries.iter().all(|(key, _)| crate::message::matchers::is_operator(&key.text))
    };
    match &node.kind {
        Kind::Map(entries) if found(entries) => {
            let matcher = crate::message::matchers::read_found(cx, node, Meaning::Json);
            let Some(matcher) = matcher else { return };
            let counted = matches!(matcher, Matcher::Count(..)) && path.parts().is_some();
            // For a list, its items are counted.
            let path = match JsonPath::parse("$[*]") {
                Ok(items) if counted => path.join(&items),
                _ => path,
            };
            out.push(Check { extractor: Extractor::Json(path), matcher });
        }
        _ => read_field(cx, node, path, out),
    }
}

/// Warns of a map that probably is meant as a check of the field at `path`: in `json: {…}`, it
/// names a nested field.
fn warn_condition(cx: &mut Context<'_>, entries: &[(Key, Node)], path: &JsonPath) {
    let [(key, value)] = entries else { return };
    let word = key.text.as_str();
    if !crate::message::matchers::is_operator(word) || !matches!(value.kind, Kind::Scalar { .. }) {
        return;
    }
    let message = say!("`{word}` is the name of a field here, not a condition");
    let help = say!(
        "to check the value, write `check: {{json.{path}: {{{word}: …}}}}`; if the field `{word}` \
         is meant, write `json: {{{path}.{word}: …}}`"
    );
    cx.warn("nested-condition", key.place, message, say!("a field of `json.{path}`"), help);
}

fn read_field(cx: &mut Context<'_>, node: &Node, path: JsonPath, out: &mut Vec<Check>) {
    let matcher = match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            warn_condition(cx, entries, &path);
            let help = say!("write the fields and their expected values");
            for (key, value) in cx.entries(node, say!("fields"), help).unwrap_or_default() {
                if let Some(inner) = read_path(cx, &key.text, key.place) {
                    read_field(cx, value, path.join(&inner), out);
                }
            }
            return;
        }
        Kind::List(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                read_field(cx, item, path.index(i), out);
            }
            return;
        }
        Kind::Scalar { .. } if node.is_null() => Some(Matcher::Null),
        Kind::Scalar { .. } => crate::message::matchers::read_matcher(cx, node, Meaning::Json),
        // For an empty map or list, only its presence is checked.
        _ => Some(Matcher::Present),
    };
    out.extend(matcher.map(|matcher| Check { extractor: Extractor::Json(path), matcher }));
}
