//! The body of an HTTP request: text, files, JSON, forms and forms with files.

use throng_base::Said;
use throng_program::{Body, Text};

use crate::ast::{self, Field};
use crate::message::headers::{self, Headers};
use crate::message::json::json_text;
use crate::read::Context;
use crate::read::template::{Escape, TextBuilder, read_text};
use crate::scope::FileRole;
use crate::syntax::{Kind, Node};
use crate::words::shorten;

/// Reads the body of an `http` step from one of these keys, and sets its Content-Type unless the
/// step does.
pub(crate) fn read_body(cx: &mut Context<'_>, fields: &[Field<'_>], headers: &mut Headers) -> Body {
    let Some((key, node)) = ast::one_of(cx, fields) else { return Body::None };
    let read = match key.text.as_str() {
        "json" => json_text(cx, node).map(|text| (text, Some("application/json".to_string()))),
        "form" => read_form(cx, node)
            .map(|text| (text, Some("application/x-www-form-urlencoded".to_string()))),
        "multipart" => read_multipart(cx, node),
        _ => read_plain(cx, node).map(|text| (text, None)),
    };
    let Some((text, content_type)) = read else { return Body::None };
    if let Some(content_type) = content_type
        && !headers::has(headers, "content-type")
    {
        headers.push(("Content-Type".into(), Text::literal(content_type)));
    }
    check_length(cx, headers, &text, node);
    Body::Text(text)
}

/// A wrong Content-Length makes the target wait, or read the rest as the next request.
fn check_length(cx: &mut Context<'_>, headers: &Headers, body: &Text, node: &Node) {
    let said = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (Some((_, said)), Some(body)) = (said, body.as_literal()) else { return };
    let said = said.as_literal().and_then(|said| std::str::from_utf8(said).ok());
    if said.and_then(|said| said.trim().parse().ok()) != Some(body.len()) {
        let message = say!("the header `Content-Length` does not match the length of the body");
        let label = say!("the body has {} bytes", body.len());
        let help = say!("remove the header: throng sends the correct length");
        cx.report("bad-header", node.place, message, label, help);
    }
}

/// A text, `{file: path}` or `{hex: bytes}`.
fn read_plain(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    if matches!(node.kind, Kind::Scalar { .. }) {
        return read_text(cx, node, say!("a body"));
    }
    let fields = ast::Body::read(cx, node)?;
    match ast::one_of(cx, &[fields.file, fields.hex]) {
        Some((key, node)) if fields.file.is(key) => {
            cx.file(node, FileRole::Body).map(|(_, bytes)| Text::literal(bytes.to_vec()))
        }
        Some((_, node)) => read_hex(cx, node).map(Text::literal),
        None if node.is_empty() => cx.wrong_type(
            node,
            say!("a body"),
            say!(
                "write text, `{{file: path}}` or `{{hex: bytes}}`; for a JSON body, write `json: \
                 {{…}}`"
            ),
        ),
        None => None,
    }
}

pub(crate) fn read_hex(cx: &mut Context<'_>, node: &Node) -> Option<Vec<u8>> {
    let empty = matches!(&node.kind, Kind::Scalar { text, plain: false } if text.is_empty());
    let text = if empty { String::new() } else { cx.text(node, say!("hexadecimal digits"))? };
    match parse_hex(&text) {
        Some(bytes) => Some(bytes),
        None => {
            let message = say!("`{}` is not hexadecimal", shorten(&text));
            let help = say!("write the bytes in quotes: `\"00 ff 7e\"`; spaces are allowed");
            cx.refuse("bad-value", node.place, message, say!("each byte needs two digits"), help)
        }
    }
}

/// Bytes from pairs of hexadecimal digits, optionally separated by spaces, colons or commas.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let separator = |c: char| c.is_whitespace() || matches!(c, ':' | ',');
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|c| !separator(*c))
        .map(|c| c.to_digit(16).map(|digit| digit as u8))
        .collect();
    let digits = digits?;
    (digits.len() % 2 == 0).then(|| digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect())
}

fn read_form(cx: &mut Context<'_>, node: &Node) -> Option<Text> {
    read_pairs(cx, node, say!("write `form: {{name: value}}`"))
}

/// Names and values for forms and queries.
pub(crate) fn read_pairs(cx: &mut Context<'_>, node: &Node, help: Said) -> Option<Text> {
    let mut builder = TextBuilder::default();
    let mut good = Some(());
    let mut first = true;
    for (key, value) in cx.entries(node, say!("a map of form fields"), help)? {
        let Some(name) = &cx.key_template(key, Escape::Form) else {
            good = None;
            continue;
        };
        let values = value.one_or_more();
        for value in values {
            if !std::mem::take(&mut first) {
                builder.bytes(b"&");
            }
            builder.text(name);
            builder.bytes(b"=");
            good = form_value(cx, value, &mut builder).and(good);
        }
    }
    good.map(|()| builder.finish())
}

fn form_value(cx: &mut Context<'_>, node: &Node, out: &mut TextBuilder) -> Option<()> {
    if node.is_null() {
        return Some(());
    }
    let text = cx.template(node, say!("the value of a form field"), Escape::Form)?;
    out.text(&text);
    Some(())
}

/// Decodes base64 in either alphabet, with or without padding.
pub fn bytes_of_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    use base64::alphabet::{STANDARD, URL_SAFE};
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabet = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    GeneralPurpose::new(&alphabet, config).decode(text).ok()
}

/// One part of `multipart/form-data` (RFC 7578).
struct BodyPart {
    head: String,
    content: Text,
}

fn read_multipart(cx: &mut Context<'_>, node: &Node) -> Option<(Text, Option<String>)> {
    let help =
        say!("write `multipart: [{{name: note, value: hello}}, {{name: photo, file: me.png}}]`");
    let items = cx.items(node, say!("a list of parts"), help)?;
    let parts: Vec<Option<BodyPart>> = items.iter().map(|item| read_part(cx, item)).collect();
    let parts: Vec<BodyPart> = parts.into_iter().collect::<Option<_>>()?;
    let boundary = boundary(&parts);
    let mut builder = TextBuilder::default();
    for part in &parts {
        builder.bytes(format!("--{boundary}\r\n{}\r\n", part.head).as_bytes());
        builder.text(&part.content);
        builder.bytes(b"\r\n");
    }
    builder.bytes(format!("--{boundary}--\r\n").as_bytes());
    Some((builder.finish(), Some(format!("multipart/form-data; boundary={boundary}"))))
}

fn read_part(cx: &mut Context<'_>, node: &Node) -> Option<BodyPart> {
    let fields = ast::Part::read(cx, node)?;
    let help = say!("write `{{name: photo, file: me.png}}`");
    let name_node = fields.need(cx, fields.name, help.clone())?;
    let name = part_word(cx, name_node)?;
    let mut lead = format!("Content-Disposition: form-data; name=\"{}\"", quoted(&name));
    let mut content_type =
        fields.r#type.node().map_or(Some(None), |node| part_word(cx, node).map(Some))?;
    let mut file_name =
        fields.filename.node().map_or(Some(None), |node| part_word(cx, node).map(Some))?;
    let content = match ast::one_of(cx, &[fields.value, fields.file]) {
        Some((key, node)) if fields.file.is(key) => {
            let (path, bytes) = cx.file(node, FileRole::Body)?;
            let last = path.file_name().map(|name| name.to_string_lossy().into_owned());
            file_name = file_name.or(last);
            content_type = content_type.or(Some("application/octet-stream".into()));
            Text::literal(bytes.to_vec())
        }
        Some((_, node)) if node.is_null() => Text::default(),
        Some((_, node)) => read_text(cx, node, say!("the value of a part"))?,
        None => {
            let message = say!("a part requires `value` or `file`");
            let label = say!("the content is missing");
            return cx.refuse("missing-key", fields.place, message, label, help);
        }
    };
    if let Some(file_name) = file_name {
        lead.push_str(&format!("; filename=\"{}\"", quoted(&file_name)));
    }
    lead.push_str("\r\n");
    if let Some(content_type) = content_type {
        lead.push_str(&format!("Content-Type: {content_type}\r\n"));
    }
    Some(BodyPart { head: lead, content })
}

/// A value for the header of a part; control characters are refused.
fn part_word(cx: &mut Context<'_>, node: &Node) -> Option<String> {
    let text = cx.text(node, say!("text"))?;
    match text.chars().any(|c| c.is_ascii_control()) {
        true => cx.bad_value(
            node,
            say!("the headers of a part cannot contain control characters"),
            say!("write the value on one line"),
        ),
        false => Some(text),
    }
}

/// Quotes a name like browsers do in multipart headers (WHATWG HTML, multipart/form-data).
fn quoted(text: &str) -> String {
    text.replace('"', "%22")
}

/// A boundary that occurs in none of the parts; equal parts give the same boundary.
fn boundary(parts: &[BodyPart]) -> String {
    // FNV-1a.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in parts.iter().flat_map(|part| part.head.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    loop {
        let boundary = format!("throng-{hash:016x}");
        let finder = regex::bytes::Regex::new(&boundary);
        let inside = |text: &Text| {
            text.segments.iter().any(|segment| match (segment, &finder) {
                (throng_program::Segment::Literal(bytes), Ok(finder)) => finder.is_match(bytes),
                _ => false,
            })
        };
        if !parts.iter().any(|part| inside(&part.content)) {
            return boundary;
        }
        hash = hash.wrapping_add(1);
    }
}
