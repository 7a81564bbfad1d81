//! A run as Markdown tables for pull requests (GitHub Flavored Markdown,
//! <https://github.github.com/gfm/>). Always in English.

mod capacity;
mod comparison;
mod history;
mod summary;

use throng_base::{Said, clean};

pub use comparison::comparison_markdown;
pub use history::history_markdown;
pub use summary::summary_markdown;

/// A heading or a word of a table.
fn word(text: impl Into<String>) -> Said {
    Said::of_others(text)
}

/// States how many rows are not shown.
fn more(all: usize, most: usize, what: &str) -> String {
    match all.saturating_sub(most) {
        0 => String::new(),
        more => format!("\nand {more} more{what}\n"),
    }
}

/// A list of notes below the preceding text.
fn list(notes: impl IntoIterator<Item = String>) -> String {
    let lines: String = notes.into_iter().map(|note| format!("- {note}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// Escapes foreign text, so that nothing in it is markup, a link, a mention or the end of a cell.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A name after it would be notified.
            '@' => out.push_str("&#64;"),
            c if c.is_ascii_punctuation()
                && !matches!(c, '.' | ',' | ':' | '%' | '-' | '+' | '/') =>
            {
                out.extend(['\\', c]);
            }
            c => out.push(c),
        }
    }
    // GitHub turns addresses into links.
    out.replace("://", ":&#47;/").replace("www.", "www&#46;")
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn foreign_text_is_never_markup() {
        assert_eq!(escape("a|b`c`"), "a\\|b\\`c\\`");
        assert_eq!(escape("<b>&[x](y)"), "&lt;b&gt;&amp;\\[x\\]\\(y\\)");
        assert_eq!(escape("@all\nnext"), "&#64;all\\\\nnext");
        assert!(!escape("see https://a.example").contains("://"));
        assert_eq!(escape("GET /a-b.c"), "GET /a-b.c");
    }
}
