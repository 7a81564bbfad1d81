//! Compared runs.

use throng_base::{Said, clean};

use super::columns::{Columns, NOTHING};
use super::report::known_text;
use super::table::{Cell, Table};
use super::text::{better, cut_middle, percent_text};
use super::{Ink, Style};
use crate::compare::{CapacityChange, Comparison, Fails, Figure, GENERATOR, Judged, Row, Sampled};
use throng_metrics::Quantity;

/// Maximum number of rows; rows with a finding come first.
const ROWS_MAX: usize = 40;
/// Width of the text before a path.
const INDENT: usize = 10;

/// A run compared with the baseline.
pub fn comparison_text(
    baseline: &Sampled,
    other: &Sampled,
    comparison: &Comparison,
    style: &Style,
) -> String {
    let mut out = String::new();
    for (what, run) in [(say!("baseline"), baseline), (say!("run"), other)] {
        let name = cut_middle(&clean(&run.name()), style.columns() - INDENT);
        out += &format!("{}  {name}\n", style.paint(Ink::Bold, &style.say(what)));
    }
    for said in &comparison.unlike {
        let text = style.say(say!("note: {}", said.clone().cleaned()));
        out += &style.paragraph(Ink::Warn, &text);
    }
    out.push('\n');
    if let Some(total) = comparison.rows.first() {
        let generator = comparison.rows.iter().find(|row| row.kind == GENERATOR);
        out += &total_table(total, generator, style).render(style);
    }
    out += &rows_table(comparison, style);
    out.push('\n');
    if let Some(both) = &comparison.capacity {
        let ink = match both.change() {
            CapacityChange::Higher => Ink::Good,
            CapacityChange::Lower => Ink::Bad,
            CapacityChange::Unchanged | CapacityChange::Unknown => Ink::Plain,
        };
        out += &style.paragraph(ink, &style.say(both.text()));
    }
    out += &style.paragraph(Ink::Plain, &style.say(conclusion(comparison)));
    for judged in &comparison.judged {
        let (ink, said) = judged_text(judged);
        out += &style.paragraph(ink, &style.say(said));
    }
    out
}

fn total_table(row: &Row, generator: Option<&Row>, style: &Style) -> Table {
    let figures = row.figures.iter().chain(generator.iter().flat_map(|row| &row.figures));
    let figures: Vec<&Figure> = figures.collect();
    let columns = Columns::of(say!("all attempts"), |figure: &&Figure| match figure.measure {
        Quantity::Cores => style.say(say!("throng cores")),
        Quantity::CpuPerAttempt => style.say(say!("CPU per attempt")),
        measure => measure.word(),
    });
    changes(columns, |figure| figure)
        .cell(say!(""), |figure| style.say(better(figure.verdict()).1))
        .words()
        .table(&figures)
}

/// A value before and after, and its change.
pub(crate) fn changes<'a, R>(
    columns: Columns<'a, R>,
    of: impl Fn(&R) -> &Figure + Copy + 'a,
) -> Columns<'a, R> {
    let change = |figure: &Figure| match &figure.change {
        None => Cell::from(NOTHING),
        Some(change) => Cell::new(better(figure.verdict()).0, by_text(figure, change.by)),
    };
    let between = |figure: &Figure| {
        let between = figure.change.as_ref().and_then(|change| change.interval);
        between.map_or(NOTHING.into(), |(low, high)| {
            format!("{} … {}", by_text(figure, low), by_text(figure, high))
        })
    };
    columns
        .cell(say!("baseline"), move |row| known_text(of(row).measure.unit(), of(row).before))
        .cell(say!("run"), move |row| known_text(of(row).measure.unit(), of(row).after))
        .cell(say!("change"), move |row| change(of(row)))
        .cell(say!("95 % interval"), move |row| between(of(row)))
}

/// The changes of each step; those within noise have no mark.
fn rows_table(comparison: &Comparison, style: &Style) -> String {
    let rows = comparison.rows.iter().skip(1).filter(|row| row.kind != GENERATOR);
    let mut rows: Vec<&Row> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let is_named = |figure: &Figure| figure.change.as_ref().is_some_and(|it| it.named);
    rows.sort_by_key(|row| !row.figures.iter().any(is_named));
    let heads = [
        say!("ok/s"),
        say!("failed"),
        say!("mean"),
        say!("p50"),
        say!("p90"),
        say!("p95"),
        say!("p99"),
    ];
    let name = |row: &&Row| clean(row.name.as_deref().unwrap_or_default());
    let columns = Columns::of(say!("change by step"), name);
    let columns = heads.into_iter().enumerate().fold(columns, |columns, (at, head)| {
        columns.cell(head, move |row| row.figures.get(at).map(marked).unwrap_or_default())
    });
    let mut out = format!("\n{}", columns.table(rows.iter().take(ROWS_MAX)).render(style));
    if let Some(more) = rows.len().checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        out += &format!("{}\n", style.say(say!("and {more} more; --json lists all of them")));
    }
    out
}

/// A signed change: a share of the baseline, or points.
pub(crate) fn by_text(figure: &Figure, by: f64) -> String {
    percent_text(figure.measure.unit(), by)
}

/// The same; significant changes have a mark.
pub(super) fn marked(figure: &Figure) -> Cell {
    let Some(change) = &figure.change else { return NOTHING.into() };
    let mark = if change.named { "*" } else { "" };
    Cell::new(better(figure.verdict()).0, by_text(figure, change.by) + mark)
}

pub(crate) fn conclusion(comparison: &Comparison) -> Said {
    let findings = || comparison.findings();
    let worse = findings().filter(|(_, figure, _)| figure.verdict() == Some(false)).count();
    let (named, all) = (findings().count(), comparison.compared);
    match (all, named) {
        (0, _) => {
            say!(
                "The runs are too short to distinguish changes from noise: at least 7 s are \
                 required."
            )
        }
        (_, 0) => say!("None of the {all} metrics changed beyond noise."),
        _ => say!("{named} of {all} metrics changed beyond noise, {worse} for the worse."),
    }
}

pub(super) fn judged_text(judged: &Judged) -> (Ink, Said) {
    let text = &judged.text;
    match judged.fails {
        Fails::No => (Ink::Good, say!("not triggered: {text}")),
        Fails::Yes => (Ink::Bad, say!("triggered: {text}")),
        Fails::Perhaps => (
            Ink::Warn,
            say!(
                "undetermined: {text} (the runs are too short to distinguish a change from noise)"
            ),
        ),
        Fails::Unknown => {
            (Ink::Bad, say!("failed: {text} (one of the runs does not have this metric)"))
        }
    }
}
