//! The runs of a folder as tables.

use crate::compare::Quantity;
use throng_base::Said;

use super::escape;
use crate::compare::{Figure, History, Past, Trend, figure_word};
use crate::terminal::comparison::by_text;
use crate::terminal::curve::BLOCKS;
use crate::terminal::history::{
    P50, P95, P99, carried_said, drawn, figure_cell, labels, shifts_said, title, when,
};

pub fn history_markdown(history: &History) -> String {
    let step = history.step.as_deref();
    let mut out = String::new();
    for (at, trend) in history.scenarios.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out += &trend_markdown(trend, step);
    }
    for (at, over) in history.passed_over.iter().enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        let (name, reason) = (escape(&over.name()), escape(&over.reason.english()));
        out += &format!("{gap}- Skipped: {name}: {reason}\n");
    }
    out
}

fn trend_markdown(trend: &Trend, step: Option<&str>) -> String {
    let mut out = format!("### {}\n\n", escape(&title(trend, step).english()));
    if let Some(baseline) = &trend.baseline {
        out += &format!("Baseline: {}\n\n", escape(baseline));
    }
    out +=
        "| run | labels | verdict | rate | failed | p50 | p95 | p99 | rate change | p99 change |\n";
    out += "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
    trend.runs.iter().for_each(|run| out += &line(run));
    let curves = [Quantity::Rate, P99].into_iter().filter_map(|measure| {
        let (drawn, range) = drawn(trend, measure, &BLOCKS)?;
        Some(format!("{:<4}  {drawn}  {}\n", figure_word(measure), range.english()))
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
    for (at, note) in notes.iter().enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        out += &format!("{gap}- {note}\n");
    }
    out
}

fn line(run: &Past) -> String {
    let text = |measure| figure_cell(run.figure(measure));
    let change = |measure| change(run.figure(measure));
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        escape(&when(&run.started)),
        escape(&labels(run)),
        run.verdict.english(),
        text(Quantity::Rate),
        text(Quantity::Failed),
        text(P50),
        text(P95),
        text(P99),
        change(Quantity::Rate),
        change(P99),
    )
}

/// What is beyond noise stands out.
fn change(figure: Option<&Figure>) -> String {
    let change = figure.and_then(|figure| Some((figure, figure.change.as_ref()?)));
    match change {
        None => "–".into(),
        Some((figure, change)) if change.named => format!("**{}**", by_text(figure, change.by)),
        Some((figure, change)) => by_text(figure, change.by),
    }
}
