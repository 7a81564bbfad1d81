//! JSON (RFC 8259) in a packet: checks that it is well-formed, and locates parts of it. Only keys
//! with escapes allocate memory.

use std::ops::Range;

use throng_base::Said;
use throng_expression::Value;

use super::wanted::{ABSENT, Inner, Span, Wanted};

/// Most nested lists and objects.
pub(super) const JSON_DEPTH_MAX: usize = 64;

/// The position at which a text stops being JSON; the caller has checked that it is UTF-8.
pub(super) fn check(text: &[u8]) -> Result<(), usize> {
    let at = value(text, blank(text, 0), JSON_DEPTH_MAX)?;
    let at = blank(text, at);
    if at == text.len() { Ok(()) } else { Err(at) }
}

/// The message for a text that stops being JSON there.
pub(super) fn wrong(text: &[u8], at: usize) -> Said {
    match text.get(at) {
        Some(byte) => say!("the text is not valid JSON from here: {}", byte.escape_ascii()),
        None => say!("the JSON text is incomplete"),
    }
}

/// Records the positions of the wanted parts, in one pass; fails where the text stops being JSON.
pub(super) fn scan(text: &[u8], wanted: &Wanted, found: &mut [Span]) -> Result<(), usize> {
    let at = wanted_value(text, blank(text, 0), JSON_DEPTH_MAX, wanted, found)?;
    let at = blank(text, at);
    if at == text.len() { Ok(()) } else { Err(at) }
}

/// Returns the end of the value at `at`, some parts of which are wanted.
fn wanted_value(
    text: &[u8],
    at: usize,
    depth_left: usize,
    wanted: &Wanted,
    found: &mut [Span],
) -> Result<usize, usize> {
    let end = match text.get(at) {
        _ if wanted.children.is_empty() => value(text, at, depth_left)?,
        Some(b'{') => parts(text, at, depth_left, b'}', |at, depth_left| {
            let end = string(text, at)?;
            let child = wanted.below(|step| match step {
                Inner::Key(key) => is_key(&text[at..end], key),
                Inner::Index(_) => false,
            });
            let colon = blank(text, end);
            if text.get(colon) != Some(&b':') {
                return Err(colon);
            }
            wanted_part(text, blank(text, colon + 1), depth_left, child, found)
        })?,
        Some(b'[') => {
            let mut index = 0;
            parts(text, at, depth_left, b']', |at, depth_left| {
                let child = wanted.below(|step| *step == Inner::Index(index));
                index += 1;
                wanted_part(text, at, depth_left, child, found)
            })?
        }
        _ => value(text, at, depth_left)?,
    };
    if let Some(slot) = wanted.slot {
        found[usize::from(slot)] = (at as u32, end as u32);
    }
    Ok(end)
}

/// The value of a key or item. If a key is repeated, the last one counts.
fn wanted_part(
    text: &[u8],
    at: usize,
    depth_left: usize,
    wanted: Option<&Wanted>,
    found: &mut [Span],
) -> Result<usize, usize> {
    let Some(wanted) = wanted else { return value(text, at, depth_left) };
    found[usize::from(wanted.slots.start)..usize::from(wanted.slots.end)].fill(ABSENT);
    wanted_value(text, at, depth_left, wanted, found)
}

/// Returns the end of the object or list that starts at `begin`; `part` reads one of its parts.
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

/// Appends JSON. A text that is itself a JSON object or list is inserted unchanged.
pub(super) fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) if is_json(text) => out.extend_from_slice(text.as_bytes()),
        value => value.write_json(out),
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && check(text.as_bytes()).is_ok()
}

/// The position of the part at `steps` in valid JSON.
pub(super) fn find(text: &[u8], steps: &[Inner]) -> Option<Range<usize>> {
    let mut at = blank(text, 0);
    for step in steps {
        at = match step {
            Inner::Key(key) => entry(text, at, key)?,
            Inner::Index(index) => item(text, at, *index)?,
        };
    }
    Some(at..value(text, at, JSON_DEPTH_MAX).ok()?)
}

/// The value of a key of the object at `at`: the last one if the key is repeated.
fn entry(text: &[u8], at: usize, wanted: &str) -> Option<usize> {
    if text.get(at) != Some(&b'{') {
        return None;
    }
    let mut found = None;
    let mut at = blank(text, at + 1);
    while text.get(at) == Some(&b'"') {
        let end = string(text, at).ok()?;
        let is_it = is_key(&text[at..end], wanted);
        let colon = blank(text, end);
        let begin = blank(text, colon + 1);
        if is_it {
            found = Some(begin);
        }
        at = blank(text, value(text, begin, JSON_DEPTH_MAX).ok()?);
        at = if text.get(at) == Some(&b',') { blank(text, at + 1) } else { at };
    }
    found
}

fn is_key(quoted: &[u8], wanted: &str) -> bool {
    let plain = &quoted[1..quoted.len() - 1];
    match memchr::memchr(b'\\', plain) {
        None => plain == wanted.as_bytes(),
        Some(_) => Value::parse_json(quoted).is_ok_and(|key| key.as_text() == Some(wanted)),
    }
}

fn item(text: &[u8], at: usize, index: u32) -> Option<usize> {
    if text.get(at) != Some(&b'[') {
        return None;
    }
    let mut at = blank(text, at + 1);
    for _ in 0..index {
        at = blank(text, value(text, at, JSON_DEPTH_MAX).ok()?);
        if text.get(at) != Some(&b',') {
            return None;
        }
        at = blank(text, at + 1);
    }
    (text.get(at) != Some(&b']')).then_some(at)
}

/// The position after whitespace.
fn blank(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count()
}

/// The end of the value that starts at `at`.
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
        let colon = blank(text, string(text, at)?);
        match text.get(colon) {
            Some(b':') => value(text, blank(text, colon + 1), depth_left),
            _ => Err(colon),
        }
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

/// The end of the string whose opening quote is at `at`.
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

/// The end of an escape; halves of a surrogate pair must be together.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_json_passes_and_errors_are_located() {
        let good = [
            "0",
            "-0.5e+7",
            "1E9",
            "\"\"",
            "\"a\\n\\u00e9\\ud83d\\ude00é\"",
            "true",
            " null ",
            "[]",
            "[ ]",
            "[1, 2]",
            "{}",
            "{\"a\" : [ {\"b\":false} ] , \"c\":1}",
        ];
        for text in good {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
        let bad = [
            ("", 0),
            ("01", 1),
            ("-", 0),
            ("1.", 1),
            ("1e", 1),
            ("+1", 0),
            ("\"a", 2),
            ("nul", 0),
            ("[1,]", 3),
            ("{a:1}", 1),
            ("{\"a\" 1}", 5),
            ("1 2", 2),
            ("\"\n\"", 1),
            ("\"\\x\"", 1),
            ("\"\\ud83d\"", 1),
            ("\"\\ude00\"", 1),
            ("[1}", 2),
        ];
        for (text, at) in bad {
            assert_eq!(check(text.as_bytes()), Err(at), "{text}");
        }
        let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check(deep(JSON_DEPTH_MAX).as_bytes()), Ok(()));
        assert!(check(deep(JSON_DEPTH_MAX + 1).as_bytes()).is_err());
        assert!(check("[".repeat(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn parts_are_located() {
        let text = br#" {"a": [1, {"b": "x"}], "\u0062": 3, "a": [4, {"b" : "y" }, []]} "#;
        let part = |steps: &[Inner]| find(text, steps).map(|range| &text[range]);
        let key = |key: &str| Inner::Key(key.into());
        assert_eq!(part(&[key("a"), Inner::Index(1), key("b")]), Some(&b"\"y\""[..]));
        assert_eq!(part(&[key("b")]), Some(&b"3"[..]));
        assert_eq!(part(&[key("a"), Inner::Index(2), Inner::Index(0)]), None);
        assert_eq!(part(&[key("a"), Inner::Index(3)]), None);
        assert_eq!(part(&[key("c")]), None);
        assert_eq!(part(&[Inner::Index(0)]), None);
    }

    #[test]
    fn fuzz_another_parser_agrees() {
        let corpus: &[&[u8]] = &[
            br#"{"a": [1, -2.5e3, {"b": "x\u00e9\ud83d\ude00"}], "c": null, "d": [true, false]}"#,
            b"[[[[[1]]]], 0, \"\\\\\", {}]",
        ];
        throng_fuzz::mutations(corpus, |input, _| {
            if std::str::from_utf8(input).is_err() {
                return;
            }
            match (check(input), Value::parse_json(input)) {
                (Ok(()), Err(error)) => assert!(error.contains("out of range"), "{error}"),
                // The other parser reads half of a surrogate pair as U+FFFD; here it is an error.
                (Err(at), Ok(value)) => {
                    let is_lone = format!("{value:?}").contains('\u{fffd}');
                    assert!(is_lone, "refused at {at}: {value:?}");
                }
                _ => {}
            }
        });
    }
}
