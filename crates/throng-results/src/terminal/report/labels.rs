//! The figures of machines that have a label alike, where others have another: what of the load was
//! in which region.

use throng_base::units::format_count;
use throng_metrics::Percentile;

use super::super::Style;
use super::super::columns::{BRIEF, Columns, NOTHING};
use super::super::text::clean;
use super::{best_left_out, note};
use crate::summary::{LabelRow, Summary};

pub(super) fn labels(summary: &Summary, style: &Style) -> String {
    let users = |row: &LabelRow| match row.users_max {
        0 => NOTHING.to_string(),
        users => format_count(users),
    };
    let columns = Columns::of(say!("by label"), |row: &LabelRow| name(row, style))
        .count(say!("machines"), |row| row.machines)
        .cell(say!("users"), users)
        .count(summary.attempts_word(), |row| row.total.count)
        .bad(say!("failed"), |row| row.total.failed)
        .rate(say!("ok/s"), |row| row.total.ok_per_s)
        .times(&BRIEF, |row| row.total.latency);
    let more =
        say!("… and {{}} rows with better results; `throng report --json` lists all of them");
    let weight = |row: &LabelRow| (row.total.failed, row.total.latency.at(Percentile::P99));
    let steps = match summary.parts.labels.iter().any(|row| row.steps.len() > 1) {
        true => note(say!("by step: `throng report --json`"), style),
        false => String::new(),
    };
    best_left_out(&summary.parts.labels, weight, &columns, more, style) + &steps
}

/// The label with its value; of those that do not have it, and of values that are together, words.
fn name(row: &LabelRow, style: &Style) -> String {
    let label = clean(&row.label);
    match &row.value {
        Some(value) => format!("{label}={}", clean(value)),
        None if row.others > 0 => style.say(say!("{} other values of {}", row.others, label)),
        None => style.say(say!("no {}", label)),
    }
}
