//! The figures of machines that have a label alike, where others have another: what of the load was
//! in which region.

use super::super::Style;
use super::super::table::Table;
use super::super::text::{clean, rate};
use super::{dim, failures, left_out, pick, quantiles};
use crate::summary::{LabelRow, Summary};

use throng_base::units::format_count;

pub(super) fn labels(summary: &Summary, style: &Style) -> String {
    if summary.parts.labels.is_empty() {
        return String::new();
    }
    let head = [
        say!("by label"),
        say!("machines"),
        say!("users"),
        summary.attempts_word(),
        say!("failed"),
        say!("ok/s"),
        say!("p50"),
        say!("p90"),
        say!("p99"),
        say!("max"),
    ];
    let mut table = Table::new(head);
    let shown = pick(&summary.parts.labels, |row| (row.total.failed, row.total.latency.p99_ns));
    for row in &shown {
        let (total, l) = (&row.total, &row.total.latency);
        let users = match row.users_max {
            0 => super::NOTHING.to_string(),
            users => format_count(users),
        };
        let [p50, p90, p99, max] = quantiles(l);
        table.row([
            name(row, style).into(),
            format_count(row.machines).into(),
            users.into(),
            format_count(total.count).into(),
            failures(total.failed),
            rate(total.ok_per_s).into(),
            p50,
            p90,
            p99,
            max,
        ]);
    }
    let more =
        say!("… and {{}} rows with better results; `throng report --json` lists all of them");
    let more = left_out(summary.parts.labels.len(), shown.len(), more, style);
    let steps = match summary.parts.labels.iter().any(|row| row.steps.len() > 1) {
        true => dim(&style.say(say!("by step: `throng report --json`")), style),
        false => String::new(),
    };
    table.render(style) + &more + &steps
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
