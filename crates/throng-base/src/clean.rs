//! Makes foreign text harmless before it is displayed: text from servers, files and scenarios.

use std::borrow::Cow;

/// Whether a character moves the cursor, changes colors, reverses the writing direction, or is
/// invisible: C0 and C1 controls, DEL, and the invisible formatting characters of Unicode.
pub fn is_harmful(c: char) -> bool {
    let is_formatting = matches!(
        c,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    c.is_control() || is_formatting
}

/// Text from the user, without the byte order mark that some editors add.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The same for UTF-8 bytes.
pub fn bytes_without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// Replaces each harmful character by an escape.
pub fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmful(c) {
            true => clean.extend(c.escape_default()),
            false => clean.push(c),
        }
    }
    clean
}

/// The same for several lines, whose line breaks stay.
pub fn clean_lines(text: &str) -> String {
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

/// Codes of the colors that throng itself uses (ECMA-48, 8.3.117).
const COLOURS: [&str; 10] = ["0m", "1m", "2m", "31m", "32m", "33m", "34m", "36m", "1;31m", "1;33m"];

/// Text for a screen, from any source: of harmful characters, only line breaks, tabs and, if
/// enabled, throng's own colors remain.
pub fn on_screen(text: &str, colour: bool) -> Cow<'_, str> {
    let is_kept = |c: char| !is_harmful(c) || matches!(c, '\n' | '\t');
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let code = || text[at..].strip_prefix("\x1b[").filter(|_| colour);
        let is_own = || code().is_some_and(|code| COLOURS.iter().any(|own| code.starts_with(own)));
        match is_kept(c) || is_own() {
            true => clean.push(c),
            false => clean.extend(c.escape_default()),
        }
    }
    Cow::Owned(clean)
}

/// JSON with the same meaning, in which harmful characters are `\u` escapes. (They can only occur
/// within strings; white space between values stays.)
pub fn clean_json(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    for c in json.chars() {
        match is_harmful(c) && !matches!(c, '\n' | '\r' | '\t') {
            // All of them are in the basic multilingual plane.
            true => clean.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => clean.push(c),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_made_harmless() {
        assert_eq!(
            clean("a\x1b[31mb\r\n\u{7}\u{9b}2J\u{202e}x\u{2066}y\u{7f} 日本"),
            "a\\u{1b}[31mb\\r\\n\\u{7}\\u{9b}2J\\u{202e}x\\u{2066}y\\u{7f} 日本"
        );
        assert_eq!(clean_lines("a\nb\u{202e}\n"), "a\nb\\u{202e}\n");
    }

    #[test]
    fn only_line_breaks_and_own_colors_reach_a_screen() {
        let plain = "a\tb\n日本 ✓";
        assert!(matches!(on_screen(plain, false), Cow::Borrowed(text) if text == plain));
        let painted = "\x1b[1;31mred\x1b[0m \x1b[2J\x1b]0;t\u{7}\r\u{202e}\x1b[8m";
        assert_eq!(
            on_screen(painted, true),
            "\x1b[1;31mred\x1b[0m \\u{1b}[2J\\u{1b}]0;t\\u{7}\\r\\u{202e}\\u{1b}[8m"
        );
        assert!(!on_screen(painted, false).contains('\x1b'));
    }

    #[test]
    fn cleaned_json_has_the_same_meaning() {
        let json = "{\"a\":\"\u{202e}x\u{9b}\u{7f}\"}";
        assert_eq!(clean_json(json), r#"{"a":"\u202ex\u009b\u007f"}"#);
    }
}
