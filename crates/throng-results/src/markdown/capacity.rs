//! The result of a capacity search as Markdown.

use super::{escape, list, word};
use crate::terminal::Style;
use crate::terminal::columns::Columns;
use crate::terminal::report::capacity::level_columns;
use throng_metrics::capacity::{Capacity, Level};

/// Maximum number of levels, starting with the last; JSON has all.
const LEVELS_MAX: usize = 40;

/// The sentence, the levels, and the zones.
pub(super) fn capacity_markdown(found: &Capacity) -> String {
    let mut out = format!("**{}**\n\n", escape(&found.sentence().english()));
    let hidden = found.levels.len().saturating_sub(LEVELS_MAX);
    out += &levels(found, &found.levels[hidden..]);
    if hidden > 0 {
        out += &format!("\nand {hidden} earlier levels\n");
    }
    let notes = found.zones().into_iter().chain(found.machines_text());
    out += &list(notes.map(|note| escape(&note.english())));
    out + "\n"
}

fn levels(found: &Capacity, levels: &[Level]) -> String {
    let load = Columns::of(word("level"), |level: &Level| found.load(level.load).english())
        .numbers()
        .cell(word("for"), |level| level.purpose.text().english())
        .words()
        .rate(word("offered/s"), |level| level.offered);
    level_columns(load, &Style::plain()).table(levels).markdown(escape)
}

#[cfg(test)]
mod tests {
    use crate::tests::sample::capacity::{capacity, searched};

    #[test]
    fn the_capacity_and_its_levels_are_shown() {
        let text = super::super::summary_markdown(&searched(capacity()));
        for part in [
            "### quick check: carries 860/s",
            "**carries 860/s \\(95 %: 864 to 905\\): http p99 &lt; 50ms, errors &lt; 0.1%\\; ",
            "\n| 1,190/s | overload | 1,190 | 1,000 | 97 | 2.00s | 2.00s | ",
            "\n| 50/s | climb | 50.0 | 50.0 | 0.00 | 730µs | 4.85ms | 0.05 / 0.05 | met |\n",
            "\n- heavy load ends at 970 to 1,010/s: above that, throughput does not grow\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
