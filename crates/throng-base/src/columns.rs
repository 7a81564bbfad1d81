//! Text in terminal columns, where a Chinese character takes two: truncation, wrapping, padding and
//! colors.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The width of a text in columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Maximum number of bytes of a truncated line, for characters without width.
const BYTES_MAX: usize = 4096;

/// The text truncated to `columns`, with `…` at the end.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let mut short = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns || short.len() > BYTES_MAX {
            break;
        }
        used += wide;
        short.push(c);
    }
    // Some characters are wider together than individually.
    while width(&short) + 1 > columns && short.pop().is_some() {}
    if columns > 0 {
        short.push('…');
    }
    short
}

/// The text truncated in the middle: names with the same start differ at their ends.
pub fn cut_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let end_columns = columns.saturating_sub(1) / 2;
    let mut end = text.len();
    for (at, _) in text.char_indices().rev() {
        // A longer suffix contains characters without width, and is slow to measure.
        if text.len() - at > BYTES_MAX || width(&text[at..]) > end_columns {
            break;
        }
        end = at;
    }
    let end = &text[end..];
    cut(text, columns.saturating_sub(width(end))) + end
}

/// The text in lines of at most `columns`, broken between words, at the borders of [`pieces`], and
/// within longer pieces.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        for (number, piece) in pieces(word).into_iter().enumerate() {
            let space = usize::from(number == 0 && !line.is_empty());
            if !line.is_empty() && width(&line) + space + width(piece) > columns {
                lines.push(std::mem::take(&mut line));
            } else if space > 0 {
                line.push(' ');
            }
            for c in piece.chars() {
                if width(&line) + c.width().unwrap_or(0) > columns {
                    lines.push(std::mem::take(&mut line));
                }
                line.push(c);
            }
        }
    }
    lines.push(line);
    lines
}

/// The unbreakable pieces of a word. Chinese has no spaces and can break at every character, but
/// not before closing or after opening punctuation.
fn pieces(word: &str) -> Vec<&str> {
    const BEGINS: &str = "（「『《“‘(`";
    const ENDS: &str = "，。；：、？！）」』》”’,.;:?!)`…%";
    let is_wide = |c: char| c.width() == Some(2);
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    for (at, c) in word.char_indices() {
        let breaks = before.is_some_and(|before| {
            (is_wide(before) || is_wide(c)) && !BEGINS.contains(before) && !ENDS.contains(c)
        });
        if breaks {
            pieces.push(&word[start..at]);
            start = at;
        }
        before = Some(c);
    }
    pieces.push(&word[start..]);
    pieces
}

/// Pads the text on the right.
pub fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Pads the text on the left.
pub fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Colors the text by its code (ECMA-48, 8.3.117), if enabled.
pub fn paint(colour: bool, code: &str, text: &str) -> String {
    match colour && !text.is_empty() {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_truncated_and_wrapped_by_columns() {
        assert_eq!(cut("日本語のテキスト", 7), "日本語…");
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut_middle("GET /orders/4711/items", 11), "GET /…items");
        assert_eq!(cut_middle("日本語のテキスト", 9), "日本…スト");
        assert_eq!(cut_middle("日本語のテキスト", 1), "…");
        assert_eq!((cut_middle("ab", 1), cut_middle("ab", 0)), ("…".into(), String::new()));
        assert_eq!(cut_middle("short", 5), "short");
        assert_eq!(wrap("the quick  brown-fox jumps", 10), ["the quick", "brown-fox", "jumps"]);
        assert_eq!(wrap("0123456789abc d", 5), ["01234", "56789", "abc d"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(
            wrap("GET /: 状态码与预期不符（timeout）。", 15),
            ["GET /: 状态码与", "预期不符", "（timeout）。"]
        );
    }

    #[test]
    fn truncated_text_always_fits() {
        let texts = ["☺\u{fe0f}", "👩\u{200d}👩", "a\u{301}", "\u{fe0f}", "\u{1f1e6}", "界"];
        for text in texts.map(|text| text.repeat(2_000)) {
            for columns in 0..40 {
                assert!(width(&cut(&text, columns)) <= columns, "{columns} {text:.40}");
                assert!(width(&cut_middle(&text, columns)) <= columns, "{columns} {text:.40}");
            }
        }
    }

    #[test]
    fn columns_are_padded() {
        assert_eq!((left("日本", 6), right("ab", 4)), ("日本  ".into(), "  ab".into()));
        assert_eq!(left("longer", 3), "longer");
    }
}
