//! The runs of a folder as Markdown.

use throng_base::Said;

use super::{escape, list, word};
use crate::compare::{Figure, History, Past, Trend};
use crate::terminal::Ink;
use crate::terminal::columns::{Columns, NOTHING};
use crate::terminal::comparison::by_text;
use crate::terminal::curve::BLOCKS;
use crate::terminal::history::{
    P99, carried_said, drawn, figure_cell, figures, labels, shifts_said, title, when,
};
use crate::terminal::table::Cell;
use throng_metrics::Quantity;

pub fn history_markdown(history: &History) -> String {
    let step = history.step.as_deref();
    let mut out = String::new();
    for (at, trend) in history.scenarios.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out += &trend_markdown(trend, step);
    }
    let skipped = history.passed_over.iter().map(|over| {
        let (name, reason) = (escape(&over.name()), escape(&over.reason.english()));
        format!("Skipped: {name}: {reason}")
    });
    out + &list(skipped)
}

fn trend_markdown(trend: &Trend, step: Option<&str>) -> String {
    let mut out = format!("### {}\n\n", escape(&title(trend, step).english()));
    if let Some(baseline) = &trend.baseline {
        out += &format!("Baseline: {}\n\n", escape(baseline));
    }
    let columns = Columns::of(word("run"), |run: &Past| when(&run.started))
        .cell(word("labels"), labels)
        .words()
        .cell(word("verdict"), |run| run.verdict.english())
        .words()
        .cell(word("rate"), |run| figure_cell(run.figure(Quantity::Rate)));
    out += &figures(columns)
        .cell(word("rate change"), |run| change(run.figure(Quantity::Rate)))
        .cell(word("p99 change"), |run| change(run.figure(P99)))
        .table(&trend.runs)
        .markdown(escape);
    let curves = [Quantity::Rate, P99].into_iter().filter_map(|measure| {
        let (drawn, range) = drawn(trend, measure, &BLOCKS)?;
        Some(format!("{:<4}  {drawn}  {}\n", measure.word(), range.english()))
    });
    let curves: String = curves.collect();
    if trend.runs.len() > 1 && !curves.is_empty() {
        out += &format!("\n```text\n{curves}```\n");
    }
    let carried = carried_said(trend);
    let mut notes: Vec<String> = carried.map(|(_, said)| escape(&said.english())).collect();
    for shifts in trend.shifts.chunk_by(|one, two| one.since == two.since) {
        notes.push(escape(&shifts_said(trend, shifts).english()));
    }
    for run in trend.runs.iter().filter(|run| !run.unlike.is_empty()) {
        let differs = Said::listed(run.unlike.iter().cloned()).english();
        notes.push(format!("Note: since run {}: {}", escape(&run.name()), escape(&differs)));
    }
    for judged in &trend.judged {
        notes.push(format!("**{}**: {}", judged.fails.shown(), escape(&judged.text)));
    }
    out + &list(notes)
}

/// Significant changes are bold.
fn change(figure: Option<&Figure>) -> Cell {
    let change = figure.and_then(|figure| Some((figure, figure.change.as_ref()?)));
    let Some((figure, change)) = change else { return NOTHING.into() };
    let ink = if change.named { Ink::Bold } else { Ink::Plain };
    Cell::new(ink, by_text(figure, change.by))
}
