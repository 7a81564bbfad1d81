//! What a search for the highest load found, as a pull request shows it.

use throng_metrics::Unit;

use super::escape;
use crate::terminal::figure_text;
use throng_metrics::capacity::{Capacity, Level};

const NOTHING: &str = "–";
/// The last ones; the JSON has all.
const LEVELS_MAX: usize = 40;

/// The sentence, the levels, and the zones.
pub(super) fn capacity_markdown(found: &Capacity) -> String {
    let mut out = format!("**{}**\n\n", escape(&found.sentence().english()));
    out += "| level | for | offered/s | served/s | strain | p50 | p99 | in flight | expected \
            | verdict |\n";
    out += "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n";
    let hidden = found.levels.len().saturating_sub(LEVELS_MAX);
    found.levels[hidden..].iter().for_each(|level| out += &line(found, level));
    if hidden > 0 {
        out += &format!("\nand {hidden} earlier levels\n");
    }
    let notes = found.zones().into_iter().chain(found.machines_text());
    for (at, note) in notes.enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        out += &format!("{gap}- {}\n", escape(&note.english()));
    }
    out + "\n"
}

fn line(found: &Capacity, level: &Level) -> String {
    let time = |seconds: Option<f64>| {
        let text = |seconds| figure_text(Unit::Nanoseconds, seconds * 1e9);
        seconds.map_or_else(|| NOTHING.to_string(), text)
    };
    let rate = |rate: f64| figure_text(Unit::PerSecond, rate).trim_end_matches("/s").to_string();
    let strain = level.strain.map_or_else(|| NOTHING.to_string(), |strain| format!("{strain:.2}"));
    format!(
        "| {} | {} | {} | {} | {strain} | {} | {} | {:.1} | {:.1} | {} |\n",
        found.load(level.load).english(),
        level.purpose.text().english(),
        rate(level.offered),
        rate(level.served),
        time(level.p50_s),
        time(level.p99_s),
        level.in_flight,
        level.in_flight_expected,
        escape(&level.verdict_text().english()),
    )
}

#[cfg(test)]
mod tests {
    use crate::sample::capacity::{capacity, searched};

    #[test]
    fn a_pull_request_shows_the_answer_and_the_levels() {
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
