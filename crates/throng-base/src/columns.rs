//! Text in columns of a terminal, where a Chinese character is as wide as two others: cut, wrapped
//! and filled up, and in its colours.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How many columns of a terminal the text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Of a line that is cut no more is shown, however little of it is seen.
const BYTES_MAX: usize = 4096;

/// The text cut to `columns`; what was cut shows as `…`.
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
    // Together some characters are wider than each alone.
    while width(&short) + 1 > columns && short.pop().is_some() {}
    if columns > 0 {
        short.push('…');
    }
    short
}

/// The text cut to `columns` in its middle: names that begin alike differ at their ends.
pub fn cut_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let end_columns = columns.saturating_sub(1) / 2;
    let mut end = text.len();
    for (at, _) in text.char_indices().rev() {
        // What is longer in bytes than this has no width, and would take long to measure.
        if text.len() - at > BYTES_MAX || width(&text[at..]) > end_columns {
            break;
        }
        end = at;
    }
    let end = &text[end..];
    cut(text, columns.saturating_sub(width(end))) + end
}

/// The text in lines of at most `columns`, broken between words and where [`pieces`] may be
/// broken, and inside a piece that is longer.
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

/// A word in the pieces that stay whole: Chinese is written without spaces and breaks beside every
/// character, but not before a mark that ends something, nor behind one that begins something.
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

/// The text at the left of a column so wide.
pub fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text at the right of a column so wide.
pub fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Text in a colour of the terminal, by its code (ECMA-48, 8.3.117), where colours are wanted.
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
    fn text_is_cut_and_wrapped_by_columns() {
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
    fn whatever_is_cut_fits() {
        let texts = ["☺\u{fe0f}", "👩\u{200d}👩", "a\u{301}", "\u{fe0f}", "\u{1f1e6}", "界"];
        for text in texts.map(|text| text.repeat(2_000)) {
            for columns in 0..40 {
                assert!(width(&cut(&text, columns)) <= columns, "{columns} {text:.40}");
                assert!(width(&cut_middle(&text, columns)) <= columns, "{columns} {text:.40}");
            }
        }
    }

    #[test]
    fn columns_are_filled_up() {
        assert_eq!((left("日本", 6), right("ab", 4)), ("日本  ".into(), "  ab".into()));
        assert_eq!(left("longer", 3), "longer");
    }
}
