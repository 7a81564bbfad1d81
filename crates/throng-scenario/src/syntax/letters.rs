//! Surrogate pairs as JSON escapes them: `\\ud83d\\ude00` (RFC 8259, 7). YAML only supports
//! `\\U0001f600`, and its parser rejects surrogates. Before parsing, they are replaced by
//! private-use characters of the same length, so that places stay valid.

/// Surrogates `d800` to `dfff` become `e800` to `efff`: only their first digit changes.
const FIRST: u32 = 0xe800;
const SECOND: u32 = 0xec00;
const LAST: u32 = 0xefff;

/// The length of an escape: a backslash, `u` and four digits.
const BYTES: usize = 6;

/// The text with replaced surrogates, if it has any and no escapes of the replacement characters.
pub(super) fn stood_in(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut found = false;
    let mut at = 0;
    while let Some(next) = text[at..].find("\\u") {
        let first = at + next;
        let (high, low) = (half(text, first), half(text, first + BYTES));
        if matches!((high, low), (Some(0xd800..0xdc00), Some(0xdc00..0xe000))) {
            for place in [first + 2, first + BYTES + 2] {
                bytes[place] += 1;
            }
            found = true;
            at = first + 2 * BYTES;
            continue;
        }
        if high.is_some_and(|code| (FIRST..=LAST).contains(&code)) {
            return None;
        }
        at = first + 2;
    }
    let is_free = || !text.chars().any(|c| (FIRST..=LAST).contains(&u32::from(c)));
    (found && is_free()).then(|| String::from_utf8(bytes).ok())?
}

/// The number that is escaped at this position.
fn half(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + BYTES)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

/// Restores the characters in a text from the parser: in double quotes escapes are decoded,
/// elsewhere they are literal text.
pub(super) fn restored(text: &str, is_escaped: bool) -> String {
    if !is_escaped {
        return as_written(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let high = u32::from(c);
        let low = chars.peek().map_or(0, |next| u32::from(*next));
        match (FIRST..SECOND).contains(&high) && (SECOND..=LAST).contains(&low) {
            true => {
                chars.next();
                let letter = 0x10000 + ((high - FIRST) << 10) + (low - SECOND);
                out.extend(char::from_u32(letter));
            }
            false => out.push(c),
        }
    }
    out
}

fn as_written(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while let Some(next) = text[at..].find("\\u") {
        let first = at + next;
        if half(text, first).is_some_and(|code| (FIRST..=LAST).contains(&code)) {
            bytes[first + 2] -= 1;
        }
        at = first + 2;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogate_pairs_are_decoded_in_double_quotes() {
        let text = r#"a: "\uD83D\ude00 \u00e9", b: '\ud83d\ude00'"#;
        let other = stood_in(text).unwrap();
        assert_eq!(other, r#"a: "\uE83D\uee00 \u00e9", b: '\ue83d\uee00'"#);
        assert_eq!(restored("x\u{e83d}\u{ee00}y\u{e83d}", true), "x😀y\u{e83d}");
        assert_eq!(restored(r"\uE83D\uee00", false), r"\uD83D\ude00");
        // No surrogates, an unpaired one, and a file with private-use characters.
        for text in ["a", r#""\ud83d""#, r#""\ude00\ud83d""#, "\u{e83d} \\ud83d\\ude00", r"\"] {
            assert_eq!(stood_in(text), None, "{text}");
        }
    }
}
