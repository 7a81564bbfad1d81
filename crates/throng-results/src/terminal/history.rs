//! The runs of a folder, one per line, with lasting changes.

use throng_base::{Exit, Said, clean};
use throng_metrics::Quantity;

use super::columns::{Columns, NOTHING};
use super::comparison::{judged_text, marked};
use super::curve::{Levels, levels, spark};
use super::report::{figure_text, known_text};
use super::table::Cell;
use super::text::{cut, percent_text, width};
use super::{Ink, Style};
use crate::compare::{CapacityChange, Figure, History, Past, Shift, Trend};

const LABELS_COLUMNS_MAX: usize = 20;
const CURVE_COLUMNS_MAX: usize = 40;
/// Number of newest runs whose differences from the previous run are listed.
const UNLIKE_MAX: usize = 5;
const PASSED_OVER_MAX: usize = 10;
pub(crate) const P50: Quantity = Quantity::Quantile(0.5);
pub(crate) const P95: Quantity = Quantity::Quantile(0.95);
pub(crate) const P99: Quantity = Quantity::Quantile(0.99);

pub fn history_text(history: &History, style: &Style) -> String {
    let mut out = String::new();
    for (at, trend) in history.scenarios.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        out += &trend_text(trend, history.step.as_deref(), style);
    }
    if !history.passed_over.is_empty() {
        out.push('\n');
    }
    for over in history.passed_over.iter().take(PASSED_OVER_MAX) {
        let name = clean(&over.name());
        let said = say!("skipped: {name}: {}", over.reason.clone().cleaned());
        out += &style.paragraph(Ink::Warn, &style.say(said));
    }
    if let Some(more) = history.passed_over.len().checked_sub(PASSED_OVER_MAX).filter(|it| *it > 0)
    {
        out += &format!("{}\n", style.say(say!("and {more} more; --json lists all of them")));
    }
    out
}

fn trend_text(trend: &Trend, step: Option<&str>, style: &Style) -> String {
    let mut out = format!("{}\n", style.bold(&title(trend, step).render(style.language)));
    if let Some(baseline) = &trend.baseline {
        out += &style.paragraph(Ink::Plain, &style.say(say!("baseline: {}", clean(baseline))));
    }
    out += &runs_table(trend, style);
    out += &curves(trend, style);
    for (run, said) in carried_said(trend) {
        let ink = match run.capacity_change {
            Some(CapacityChange::Higher) => Ink::Good,
            Some(CapacityChange::Lower) => Ink::Bad,
            _ => Ink::Plain,
        };
        out += &style.paragraph(ink, &style.say(said));
    }
    for shifts in trend.shifts.chunk_by(|one, two| one.since == two.since) {
        let is_better = shifts.iter().all(Shift::is_better);
        let ink = if is_better { Ink::Good } else { Ink::Bad };
        out += &style.paragraph(ink, &style.say(shifts_said(trend, shifts)));
    }
    let unlike = trend.runs.iter().filter(|run| !run.unlike.is_empty());
    let mut unlike: Vec<&Past> = unlike.rev().take(UNLIKE_MAX).collect();
    unlike.reverse();
    for run in unlike {
        let differs = Said::listed(run.unlike.iter().cloned()).cleaned();
        let said = say!("note: since run {}: {differs}", clean(&run.name()));
        out += &style.paragraph(Ink::Warn, &style.say(said));
    }
    for judged in &trend.judged {
        let (ink, said) = judged_text(judged);
        out += &style.paragraph(ink, &style.say(said));
    }
    out
}

pub(crate) fn title(trend: &Trend, step: Option<&str>) -> Said {
    let (scenario, runs) = (clean(&trend.scenario), trend.runs.len());
    match (step.map(clean), runs) {
        (None, 1) => say!("{scenario}: 1 run"),
        (None, _) => say!("{scenario}: {runs} runs"),
        (Some(step), 1) => say!("{scenario}, {step}: 1 run"),
        (Some(step), _) => say!("{scenario}, {step}: {runs} runs"),
    }
}

fn runs_table(trend: &Trend, style: &Style) -> String {
    let columns = Columns::of(say!("run"), |run: &Past| when(&run.started))
        .cell(say!("labels"), |run| cut(&labels(run), LABELS_COLUMNS_MAX))
        .words()
        .cell(say!("verdict"), |run| Cell::new(ink(run.exit), run.verdict.render(style.language)))
        .words()
        .cell(say!("rate"), |run| {
            let rate = figure_cell(run.figure(Quantity::Rate));
            rate.trim_end_matches("/s").trim_end().to_string()
        });
    let mut table = figures(columns)
        .cell(say!("±rate"), |run| change_cell(run.figure(Quantity::Rate)))
        .cell(say!("±p99"), |run| change_cell(run.figure(P99)))
        .table(&trend.runs);
    table.leave_out_columns_of("");
    table.leave_out_for_names(&["p95", "p50", "failed"], style);
    table.render(style)
}

/// The results of each run, except the rate.
pub(crate) fn figures(columns: Columns<'_, Past>) -> Columns<'_, Past> {
    let figures = [
        (say!("failed"), Quantity::Failed),
        (say!("p50"), P50),
        (say!("p95"), P95),
        (say!("p99"), P99),
    ];
    figures.into_iter().fold(columns, |columns, (head, measure)| {
        columns.cell(head, move |run| figure_cell(run.figure(measure)))
    })
}

fn ink(exit: Exit) -> Ink {
    match exit {
        Exit::Success => Ink::Good,
        Exit::ResultInvalid | Exit::Interrupted => Ink::Warn,
        _ => Ink::Bad,
    }
}

/// Formats `2026-11-22T09:59:28.042Z` for display.
pub(crate) fn when(started: &str) -> String {
    clean(started.split('.').next().unwrap_or_default()).replace('T', " ").replace('Z', "")
}

pub(crate) fn labels(run: &Past) -> String {
    let labels = run.labels.iter().map(|(name, value)| format!("{name}={value}"));
    clean(&labels.collect::<Vec<_>>().join(" "))
}

pub(crate) fn figure_cell(figure: Option<&Figure>) -> String {
    figure.map_or(NOTHING.into(), |figure| known_text(figure.measure.unit(), figure.after))
}

fn change_cell(figure: Option<&Figure>) -> Cell {
    figure.map_or_else(|| NOTHING.into(), marked)
}

/// The trends of the main values, one character per run.
fn curves(trend: &Trend, style: &Style) -> String {
    if trend.runs.len() < 2 {
        return String::new();
    }
    let mut out = String::new();
    for measure in [Quantity::Rate, P99] {
        let Some((drawn, range)) = drawn(trend, measure, levels(style)) else { continue };
        let name = measure.word();
        let pad = " ".repeat(4_usize.saturating_sub(width(&name)));
        out += &format!("{name}{pad}  {drawn}  {}\n", style.dim(&range.render(style.language)));
    }
    out
}

/// The sparkline of a value, with its first and last value.
pub(crate) fn drawn(trend: &Trend, measure: Quantity, levels: &Levels) -> Option<(String, Said)> {
    let value = |run: &Past| run.figure(measure)?.after.filter(|_| run.is_comparable());
    let values: Vec<Option<f64>> = trend.runs.iter().map(value).collect();
    let known = || values.iter().flatten().copied();
    let (least, most) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
    let text = |value| figure_text(measure.unit(), value);
    let range = say!("{} to {}", text(least), text(most));
    Some((spark(&values, CURVE_COLUMNS_MAX, levels), range))
}

/// The runs with a capacity search.
pub(crate) fn carried_said(trend: &Trend) -> impl Iterator<Item = (&Past, Said)> {
    trend.runs.iter().filter_map(|run| {
        let (name, carries) = (when(&run.started), run.carried?.text());
        let said = match run.capacity_change {
            None => say!("capacity in run {name}: {carries}"),
            Some(change) => say!("capacity in run {name}: {carries}; {}", change.text()),
        };
        Some((run, said))
    })
}

/// The values with a lasting change since the same run.
pub(crate) fn shifts_said(trend: &Trend, shifts: &[Shift]) -> Said {
    let since = shifts.first().and_then(|shift| trend.runs.get(shift.since));
    let run = since.map(|run| clean(&run.name())).unwrap_or_default();
    let changes = Said::listed(shifts.iter().map(shift_said));
    say!("since run {run}: {changes}")
}

fn shift_said(shift: &Shift) -> Said {
    let unit = shift.measure.unit();
    let (before, after) = (figure_text(unit, shift.before), figure_text(unit, shift.after));
    let by = percent_text(unit, shift.by.abs()).trim_start_matches('+').to_string();
    let points = by.trim_end_matches(" %").to_string();
    let figure = shift.measure.word();
    match (shift.measure, shift.by > 0.0) {
        (Quantity::Failed, true) => {
            say!("share of failures up by {points} percentage points ({before} → {after})")
        }
        (Quantity::Failed, false) => {
            say!("share of failures down by {points} percentage points ({before} → {after})")
        }
        (_, true) => say!("{figure} {by} higher ({before} → {after})"),
        (_, false) => say!("{figure} {by} lower ({before} → {after})"),
    }
}
