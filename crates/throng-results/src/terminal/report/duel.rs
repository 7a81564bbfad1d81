//! The result of a duel: both sides, and significant differences.

use throng_base::clean;

use super::super::columns::Columns;
use super::super::table::{Cell, Table};
use super::super::text::{better, cut_middle, percent_text};
use super::super::{Ink, Style};
use super::{NOTHING, known_text, note};
use throng_metrics::duel::{Compared, Duel, DuelCondition, DuelEnd, Fails};

/// Width of the text before a target.
const INDENT: usize = 4;

pub(in crate::terminal) fn duel(found: &Duel, style: &Style) -> String {
    let mut out = String::new();
    for (side, target) in ["A", "B"].iter().zip(&found.sides) {
        let target = cut_middle(&clean(target), style.columns() - INDENT);
        out += &format!("{}  {target}\n", style.paint(Ink::Bold, side));
    }
    out += &table(found, style).render(style);
    found.conditions.iter().for_each(|one| out += &condition(one, style));
    let pairs = found.pairs;
    let ended = match found.ended_by {
        DuelEnd::Within => say!(
            "ended after {pairs} pairs of slices: the confidence interval was within ±{} %",
            found.within * 100.0
        ),
        DuelEnd::Budget => say!("{pairs} pairs of slices until the end of the duel"),
        DuelEnd::Running => say!("stopped after {pairs} pairs of slices"),
    };
    out + &note(ended, style)
}

/// Both sides of each value.
pub(crate) fn table(found: &Duel, style: &Style) -> Table {
    let by = |figure: &Compared, by| percent_text(figure.unit(), by);
    let between = |figure: &Compared| {
        let change = figure.change.as_ref();
        change.map_or(NOTHING.into(), |it| {
            format!("{} … {}", by(figure, it.low), by(figure, it.high))
        })
    };
    Columns::of(say!("all attempts"), |figure: &Compared| match figure.figure.as_str() {
        "cpu_per_attempt" => style.say(say!("throng CPU/attempt")),
        "target_cpu_per_attempt" => style.say(say!("target CPU/attempt")),
        word => word.to_string(),
    })
    .cell(say!("A"), |figure| known_text(figure.unit(), figure.a))
    .cell(say!("B"), |figure| known_text(figure.unit(), figure.b))
    .cell(say!("B against A"), |figure| {
        let change = figure.change.as_ref();
        Cell::new(better(figure.verdict()).0, change.map_or(NOTHING.into(), |it| by(figure, it.by)))
    })
    .cell(say!("95 % interval"), between)
    .cell(say!(""), |figure| style.say(better(figure.verdict()).1))
    .words()
    .table(&found.figures)
}

fn condition(one: &DuelCondition, style: &Style) -> String {
    let ink = match one.fails {
        Fails::No => Ink::Good,
        Fails::Yes | Fails::Unknown => Ink::Bad,
        Fails::Perhaps => Ink::Warn,
    };
    style.paragraph(ink, &style.say(one.text().cleaned()))
}
