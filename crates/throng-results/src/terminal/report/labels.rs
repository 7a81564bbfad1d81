//! Results by machine label, for example by region.

use throng_metrics::Percentile;

use super::super::Style;
use super::super::columns::{BRIEF, Columns, NOTHING, Time};
use super::super::table::Cell;
use super::super::text::clean;
use super::{best_left_out, note};
use crate::summary::{LabelRow, Row, Summary};

/// All attempts of a label, or one of its steps.
pub(crate) struct Line<'a> {
    label: &'a LabelRow,
    step: Option<&'a Row>,
}

impl Line<'_> {
    fn row(&self) -> &Row {
        self.step.unwrap_or(&self.label.total)
    }
}

/// Includes the steps of each label, if there are several.
pub(crate) fn lines(summary: &Summary) -> Vec<Line<'_>> {
    let lines = summary.parts.labels.iter().flat_map(|label| {
        let steps = label.steps.iter().filter(move |_| label.steps.len() > 1);
        [None].into_iter().chain(steps.map(Some)).map(move |step| Line { label, step })
    });
    lines.collect()
}

pub(crate) fn columns<'a>(
    summary: &'a Summary,
    which: &[Time],
    style: &'a Style,
) -> Columns<'a, Line<'a>> {
    let users = |line: &Line| match line.label.users_max {
        0 => NOTHING.into(),
        users => Cell::number(users),
    };
    let step =
        move |line: &Line| line.step.map_or_else(|| style.say(say!("all")), |row| clean(&row.name));
    Columns::of(say!("by label"), move |line: &Line| name(line.label, style))
        .cell(say!("step"), step)
        .words()
        .if_any(|line| line.step.is_some())
        .count(say!("machines"), |line| line.label.machines)
        .cell(say!("users"), users)
        .count(summary.attempts_word(), |line| line.row().count)
        .bad(say!("failed"), |line| line.row().failed)
        .rate(say!("ok/s"), |line| line.row().ok_per_s)
        .times(which, |line| line.row().latency)
}

pub(super) fn labels(summary: &Summary, style: &Style) -> String {
    let more =
        say!("… and {{}} rows with better results; `throng report --json` lists all of them");
    let weight = |line: &Line| (line.row().failed, line.row().latency.at(Percentile::P99));
    let totals = summary.parts.labels.iter().map(|label| Line { label, step: None });
    let totals: Vec<Line> = totals.collect();
    let steps = match summary.parts.labels.iter().any(|row| row.steps.len() > 1) {
        true => note(say!("by step: `throng report --json`"), style),
        false => String::new(),
    };
    best_left_out(&totals, weight, &columns(summary, &BRIEF, style), more, style) + &steps
}

/// The label and its value; a description for machines without it and for merged values.
fn name(row: &LabelRow, style: &Style) -> String {
    let label = clean(&row.label);
    match &row.value {
        Some(value) => format!("{label}={}", clean(value)),
        None if row.others > 0 => style.say(say!("{} other values of {}", row.others, label)),
        None => style.say(say!("no {}", label)),
    }
}
