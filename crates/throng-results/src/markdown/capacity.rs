//! The result of a capacity search as Markdown.

use throng_metrics::Unit;

use super::{escape, list, word};
use crate::terminal::columns::{Columns, NOTHING};
use crate::terminal::{figure_text, known_text};
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
    let time =
        |seconds: Option<f64>| known_text(Unit::Nanoseconds, seconds.map(|seconds| seconds * 1e9));
    let rate = |rate: f64| figure_text(Unit::PerSecond, rate).trim_end_matches("/s").to_string();
    let strain = |strain: f64| format!("{strain:.2}");
    Columns::of(word("level"), |level: &Level| found.load(level.load).english())
        .numbers()
        .cell(word("for"), |level| level.purpose.text().english())
        .words()
        .cell(word("offered/s"), |level| rate(level.offered))
        .cell(word("served/s"), |level| rate(level.served))
        .cell(word("strain"), |level| level.strain.map_or_else(|| NOTHING.to_string(), strain))
        .cell(word("p50"), |level| time(level.p50_s))
        .cell(word("p99"), |level| time(level.p99_s))
        .cell(word("in flight"), |level| format!("{:.1}", level.in_flight))
        .cell(word("expected"), |level| format!("{:.1}", level.in_flight_expected))
        .cell(word("verdict"), |level| level.verdict_text().english())
        .words()
        .table(levels)
        .markdown(escape)
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
            "\n| 1,190/s | overload | 1,190 | 1,000 | 97.00 | 2.00s | 2.00s | ",
            "\n| 50/s | climb | 50.0 | 50.0 | 0.00 | 730µs | 4.85ms | 0.1 | 0.1 | met |\n",
            "\n- heavy load ends at 970 to 1,010/s: above that, throughput does not grow\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
