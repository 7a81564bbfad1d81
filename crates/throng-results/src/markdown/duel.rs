//! How two targets differ, as a pull request shows it.

use super::escape;
use crate::terminal::{figure_text, percent_text};
use throng_metrics::duel::{Compared, Duel};

const NOTHING: &str = "–";

pub(super) fn duel_markdown(found: &Duel) -> String {
    let [a, b] = found.sides.each_ref().map(|side| escape(side));
    let (verdict, pairs) = (escape(&found.verdict().english()), found.pairs);
    let mut out = format!("**{verdict}**: {pairs} pairs of slices, A is {a}, B is {b}\n\n");
    out += "| all attempts | A | B | B against A | 95 % interval | |\n";
    out += "| --- | ---: | ---: | ---: | ---: | --- |\n";
    found.figures.iter().for_each(|figure| out += &line(figure));
    for (at, one) in found.conditions.iter().enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        out += &format!("{gap}- {}\n", escape(&one.text().english()));
    }
    out + "\n"
}

fn line(figure: &Compared) -> String {
    let text =
        |value: Option<f64>| value.map_or(NOTHING.into(), |it| figure_text(figure.unit(), it));
    let by = |by: f64| percent_text(figure.unit(), by);
    let (change, between, word) = match &figure.change {
        None => (NOTHING.to_string(), NOTHING.to_string(), ""),
        Some(change) => {
            let word = match (change.named, figure.is_better(change)) {
                (false, _) => "",
                (true, true) => "better",
                (true, false) => "worse",
            };
            (by(change.by), format!("{} … {}", by(change.low), by(change.high)), word)
        }
    };
    let (a, b) = (text(figure.a), text(figure.b));
    format!("| {} | {a} | {b} | {change} | {between} | {word} |\n", figure.figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_pull_request_shows_both_sides_and_what_differs() {
        let text = duel_markdown(&sample::duel::duel());
        for part in [
            "**A is faster by 3.1 % \\(2.0 to 4.2\\)**: 12 pairs of slices, A is http:&#47;/a, B is",
            "| rate | 10,000/s | 9,700/s | −3.0 % | −4.0 % … −2.0 % | worse |\n",
            "| target_cpu_per_attempt | 20.0µs | – | – | – |  |\n",
            "- triggered: rate &lt; -2%\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
