//! The result of a duel as Markdown.

use super::{escape, list};
use crate::terminal::{Style, report};
use throng_metrics::Duel;

pub(super) fn duel_markdown(found: &Duel) -> String {
    let [a, b] = found.sides.each_ref().map(|side| escape(side));
    let (verdict, pairs) = (escape(&found.verdict().english()), found.pairs);
    let mut out = format!("**{verdict}**: {pairs} pairs of slices, A is {a}, B is {b}\n\n");
    out += &report::duel::table(found, &Style::plain()).markdown(escape);
    let conditions = found.conditions.iter().map(|one| escape(&one.text().english()));
    out + &list(conditions) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;

    #[test]
    fn both_sides_and_their_differences_are_shown() {
        let text = duel_markdown(&sample::duel::duel());
        for part in [
            "**A is faster by 3.1 % \\(2.0 to 4.2\\)**: 12 pairs of slices, A is http:&#47;/a, B is",
            "| rate | 10,000/s | 9,700/s | −3.0 % | −4.0 % … −2.0 % | worse |\n",
            "| target CPU/attempt | 20.0µs | – | – | – |  |\n",
            "- triggered: rate &lt; -2%\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
