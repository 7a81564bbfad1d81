//! What a duel found: both sides, and what is more than noise.

use throng_base::clean;

use super::super::table::{Cell, Table};
use super::super::text::{cut_middle, percent_text, wrap};
use super::super::{Ink, Style};
use super::{NOTHING, figure_text, note};
use throng_metrics::duel::{Compared, Duel, DuelCondition, DuelEnd, Fails};

/// Columns of what stands before a target.
const INDENT: usize = 4;

pub(in crate::terminal) fn duel(found: &Duel, style: &Style) -> String {
    let mut out = String::new();
    for (side, target) in ["A", "B"].iter().zip(&found.sides) {
        let target = cut_middle(&clean(target), style.columns() - INDENT);
        out += &format!("{}  {target}\n", style.paint(Ink::Bold, side));
    }
    out += &table(found, style);
    found.conditions.iter().for_each(|one| out += &condition(one, style));
    let pairs = found.pairs;
    let ended = match found.ended_by {
        DuelEnd::Within => say!(
            "ended after {pairs} pairs of slices: the interval was within ±{} %",
            found.within * 100.0
        ),
        DuelEnd::Budget => say!("{pairs} pairs of slices until the end of the duel"),
        DuelEnd::Running => say!("stopped after {pairs} pairs of slices"),
    };
    out + &note(ended, style)
}

fn table(found: &Duel, style: &Style) -> String {
    let head = [
        say!("all attempts"),
        say!("A"),
        say!("B"),
        say!("B against A"),
        say!("95 % interval"),
        say!(""),
    ];
    let mut table = Table::new(head).words_in(&[5]);
    for figure in &found.figures {
        table.row(cells(figure, style));
    }
    table.render(style)
}

fn cells(figure: &Compared, style: &Style) -> [Cell; 6] {
    let text =
        |value: Option<f64>| value.map_or(NOTHING.into(), |it| figure_text(figure.unit(), it));
    let by_text = |by: f64| percent_text(figure.unit(), by);
    let change = figure.change.as_ref();
    let by = change.map_or(NOTHING.into(), |change| by_text(change.by));
    let between = change.map_or(NOTHING.into(), |change| {
        format!("{} … {}", by_text(change.low), by_text(change.high))
    });
    let (ink, word) = match change.map(|change| (change.named, figure.is_better(change))) {
        Some((true, true)) => (Ink::Good, say!("better")),
        Some((true, false)) => (Ink::Bad, say!("worse")),
        _ => (Ink::Plain, say!("")),
    };
    let name = match figure.figure.as_str() {
        "cpu_per_attempt" => style.say(say!("throng CPU/attempt")),
        "target_cpu_per_attempt" => style.say(say!("target CPU/attempt")),
        word => word.to_string(),
    };
    let (a, b) = (text(figure.a).into(), text(figure.b).into());
    [name.into(), a, b, Cell::new(ink, by), between.into(), Cell::new(ink, style.say(word))]
}

fn condition(one: &DuelCondition, style: &Style) -> String {
    let ink = match one.fails {
        Fails::No => Ink::Good,
        Fails::Yes | Fails::Unknown => Ink::Bad,
        Fails::Perhaps => Ink::Warn,
    };
    let lines = wrap(&style.say(one.text().cleaned()), style.columns()).into_iter();
    lines.map(|line| style.paint(ink, &line) + "\n").collect()
}
