//! JSON (RFC 8259) that lies in a packet: whether it is well formed, and where a part of it is.
//! Nothing is allocated but for keys with escapes in them.

use throng_base::Said;
use throng_expression::Value;

use super::{Inside, PartKind, Syntax};

#[derive(Clone, Copy, Debug)]
pub(super) struct Json;

impl Syntax for Json {
    fn start(self, text: &[u8], at: usize) -> usize {
        blank(text, at)
    }

    fn skip(self, text: &[u8], at: usize, depth_left: usize) -> Result<usize, usize> {
        value(text, at, depth_left)
    }

    fn inside(self, text: &[u8], at: usize) -> Inside {
        match text.get(at) {
            Some(b'{') => Inside::Entries,
            Some(b'[') => Inside::Items,
            _ => Inside::Nothing,
        }
    }

    fn parts(
        self,
        text: &[u8],
        at: usize,
        depth_left: usize,
        part: impl FnMut(usize, usize) -> Result<usize, usize>,
    ) -> Result<usize, usize> {
        let close = if text[at] == b'{' { b'}' } else { b']' };
        parts(text, at, depth_left, close, part)
    }

    fn key(self, text: &[u8], at: usize, _depth_left: usize) -> Result<(usize, usize), usize> {
        let end = string(text, at)?;
        let colon = blank(text, end);
        match text.get(colon) {
            Some(b':') => Ok((end, blank(text, colon + 1))),
            _ => Err(colon),
        }
    }

    fn is_key(self, quoted: &[u8], wanted: &str) -> bool {
        match plain(quoted) {
            Some(key) => key == wanted.as_bytes(),
            None => Value::parse_json(quoted).is_ok_and(|key| key.as_text() == Some(wanted)),
        }
    }
}

/// What is said of a text that stops being JSON there.
pub(super) fn wrong(text: &[u8], at: usize) -> Said {
    match text.get(at) {
        Some(byte) => say!("the text is not valid JSON from here: {}", byte.escape_ascii()),
        None => say!("the JSON text is incomplete"),
    }
}

/// What is in a text without escapes.
pub(super) fn plain(quoted: &[u8]) -> Option<&[u8]> {
    let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    memchr::memchr(b'\\', inner).is_none().then_some(inner)
}

pub(super) fn kind(part: &[u8]) -> PartKind {
    match part {
        [b'"', ..] => PartKind::Text,
        b"null" => PartKind::Null,
        b"true" => PartKind::Bool(true),
        b"false" => PartKind::Bool(false),
        [b'-' | b'0'..=b'9', ..] => {
            let number = std::str::from_utf8(part).unwrap_or_default();
            let float = || number.parse().map_or(PartKind::ListOrMap, PartKind::Float);
            number.parse().map_or_else(|_| float(), PartKind::Whole)
        }
        _ => PartKind::ListOrMap,
    }
}

/// Makes a JSON string of the text behind `begin`.
pub(super) fn quote(out: &mut Vec<u8>, begin: usize) {
    let text = &out[begin..];
    if text.iter().all(|byte| *byte >= 0x20 && !matches!(byte, b'"' | b'\\')) {
        out.insert(begin, b'"');
        out.push(b'"');
        return;
    }
    let text = Value::from(String::from_utf8_lossy(text).into_owned());
    out.truncate(begin);
    text.write_json(out);
}

/// Behind the object or list that begins at `begin`; `part` reads one of its parts.
fn parts(
    text: &[u8],
    begin: usize,
    depth_left: usize,
    close: u8,
    mut part: impl FnMut(usize, usize) -> Result<usize, usize>,
) -> Result<usize, usize> {
    let depth_left = depth_left.checked_sub(1).ok_or(begin)?;
    let mut at = blank(text, begin + 1);
    if text.get(at) == Some(&close) {
        return Ok(at + 1);
    }
    loop {
        if close == b'}' && text.get(at) != Some(&b'"') {
            return Err(at);
        }
        at = blank(text, part(at, depth_left)?);
        match text.get(at) {
            Some(b',') => at = blank(text, at + 1),
            Some(byte) if *byte == close => return Ok(at + 1),
            _ => return Err(at),
        }
    }
}

/// Behind spaces and line breaks.
fn blank(text: &[u8], at: usize) -> usize {
    if text.get(at).is_some_and(|byte| *byte > b' ') {
        return at;
    }
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count()
}

/// Behind the value that begins at `at`.
fn value(text: &[u8], at: usize, depth_left: usize) -> Result<usize, usize> {
    match text.get(at) {
        Some(b'{') => object(text, at, depth_left),
        Some(b'[') => list(text, at, depth_left),
        Some(b'"') => string(text, at),
        Some(b't') => word(text, at, b"true"),
        Some(b'f') => word(text, at, b"false"),
        Some(b'n') => word(text, at, b"null"),
        _ => number(text, at),
    }
}

fn object(text: &[u8], begin: usize, depth_left: usize) -> Result<usize, usize> {
    parts(text, begin, depth_left, b'}', |at, depth_left| {
        let (_, begin) = Json.key(text, at, depth_left)?;
        value(text, begin, depth_left)
    })
}

fn list(text: &[u8], begin: usize, depth_left: usize) -> Result<usize, usize> {
    parts(text, begin, depth_left, b']', |at, depth_left| value(text, at, depth_left))
}

fn word(text: &[u8], at: usize, word: &[u8]) -> Result<usize, usize> {
    match text[at..].starts_with(word) {
        true => Ok(at + word.len()),
        false => Err(at),
    }
}

/// Behind the string whose opening quote is at `at`.
fn string(text: &[u8], at: usize) -> Result<usize, usize> {
    let mut at = at + 1;
    loop {
        match text.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape(text, at)?,
            Some(0..0x20) | None => return Err(at),
            Some(_) => at += 1,
        }
    }
}

/// Behind an escape; halves of a surrogate pair stand together.
fn escape(text: &[u8], at: usize) -> Result<usize, usize> {
    match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => match unit(text, at).ok_or(at)? {
            0xdc00..0xe000 => Err(at),
            0xd800..0xdc00 => match unit(text, at + 6) {
                Some(0xdc00..0xe000) => Ok(at + 12),
                _ => Err(at),
            },
            _ => Ok(at + 6),
        },
        _ => Err(at),
    }
}

/// The number of `\u1234`.
fn unit(text: &[u8], at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |all, digit| Some(all << 4 | char::from(*digit).to_digit(16)?))
}

fn number(text: &[u8], begin: usize) -> Result<usize, usize> {
    let digits = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = begin + usize::from(text.get(begin) == Some(&b'-'));
    at += match (text.get(at), digits(at)) {
        (Some(b'0'), _) => 1,
        (_, 0) => return Err(begin),
        (_, count) => count,
    };
    if text.get(at) == Some(&b'.') {
        let count = digits(at + 1);
        if count == 0 {
            return Err(at);
        }
        at += 1 + count;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let count = digits(at + 1 + sign);
        if count == 0 {
            return Err(at);
        }
        at += 1 + sign + count;
    }
    Ok(at)
}
