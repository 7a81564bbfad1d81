//! What a pull request shows: the comparison as a table of Markdown (GitHub Flavored Markdown,
//! <https://github.github.com/gfm/>). It is for machines and people of any language: English.

use crate::compare::{Comparison, Figure, Row, Sampled};
use crate::terminal::comparison::{by_text, conclusion};
use crate::terminal::figure_text;
use throng_base::clean;

/// A run held against the baseline: all attempts, and of the steps what has changed.
pub fn comparison_markdown(baseline: &Sampled, other: &Sampled, held: &Comparison) -> String {
    let (one, two) = (escape(&baseline.name()), escape(&other.name()));
    let mut out = format!("### {two} against {one}\n\n{}\n\n", conclusion(held).english());
    for said in &held.unlike {
        out += &format!("- Note: {}\n", escape(&said.english()));
    }
    if !held.unlike.is_empty() {
        out.push('\n');
    }
    out += "| | figure | baseline | run | change | 95 % between | |\n";
    out += "| --- | --- | ---: | ---: | ---: | ---: | --- |\n";
    for (at, row) in held.rows.iter().enumerate() {
        let named = |figure: &&Figure| figure.change.as_ref().is_some_and(|it| it.named);
        let told = row.figures.iter().filter(|figure| at == 0 || named(figure));
        told.for_each(|figure| out += &line(row, figure));
    }
    for (at, judged) in held.judged.iter().enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        out += &format!("{gap}- **{}**: {}\n", judged.fails.word(), escape(&judged.text));
    }
    out
}

fn line(row: &Row, figure: &Figure) -> String {
    let text = |value: Option<f64>| value.map_or("–".into(), |it| figure_text(figure.unit(), it));
    let name = row.name.as_deref().map_or("all attempts".into(), escape);
    let change = figure.change.as_ref();
    let by = change.map_or("–".into(), |change| by_text(figure, change.by));
    let between = change.and_then(|change| change.interval).map_or("–".into(), |(low, high)| {
        format!("{} … {}", by_text(figure, low), by_text(figure, high))
    });
    let arrow = match change.filter(|change| change.named) {
        None => "",
        Some(change) if figure.is_better(change) => "better",
        Some(_) => "**worse**",
    };
    let (before, after) = (text(figure.before), text(figure.after));
    let figure = figure.word();
    format!("| {name} | {figure} | {before} | {after} | {by} | {between} | {arrow} |\n")
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
