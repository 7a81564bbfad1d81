//! What a pull request shows: tables of Markdown (GitHub Flavored Markdown,
//! <https://github.github.com/gfm/>). It is for machines and people of any language: English.

mod audits;
mod capacity;
mod comparison;
mod duel;
mod events;
mod history;
mod levels;
mod summary;

use throng_base::{Said, clean};

pub use comparison::comparison_markdown;
pub use history::history_markdown;
pub use summary::summary_markdown;

/// A head or a word of a table.
fn word(text: impl Into<String>) -> Said {
    Said::of_others(text)
}

/// What is not shown of so many rows.
fn more(all: usize, most: usize, what: &str) -> String {
    match all.saturating_sub(most) {
        0 => String::new(),
        more => format!("\nand {more} more{what}\n"),
    }
}

/// Notes under what stands before them.
fn list(notes: impl IntoIterator<Item = String>) -> String {
    let lines: String = notes.into_iter().map(|note| format!("- {note}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// Text of others: no character of it is markup, a link, a mention or the end of a cell.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A name behind it would be told of the pull request.
            '@' => out.push_str("&#64;"),
            c if c.is_ascii_punctuation()
                && !matches!(c, '.' | ',' | ':' | '%' | '-' | '+' | '/') =>
            {
                out.extend(['\\', c]);
            }
            c => out.push(c),
        }
    }
    // An address would be made a link.
    out.replace("://", ":&#47;/").replace("www.", "www&#46;")
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn what_others_have_named_is_no_markup() {
        assert_eq!(escape("a|b`c`"), "a\\|b\\`c\\`");
        assert_eq!(escape("<b>&[x](y)"), "&lt;b&gt;&amp;\\[x\\]\\(y\\)");
        assert_eq!(escape("@all\nnext"), "&#64;all\\\\nnext");
        assert!(!escape("see https://a.example").contains("://"));
        assert_eq!(escape("GET /a-b.c"), "GET /a-b.c");
    }
}
