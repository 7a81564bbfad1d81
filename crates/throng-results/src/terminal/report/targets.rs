//! What went to which address, where there are several: which of them is slow, or fails.

use super::super::Style;
use super::super::table::Table;
use super::super::text::{clean, rate};
use super::{failures, left_out, pick, quantiles};
use crate::summary::{Summary, TargetRow};

use throng_base::units::format_count;

pub(super) fn targets(summary: &Summary, style: &Style) -> String {
    if summary.parts.targets.is_empty() {
        return String::new();
    }
    let head = [
        say!("address"),
        summary.attempts_word(),
        say!("failed"),
        say!("ok/s"),
        say!("p50"),
        say!("p90"),
        say!("p99"),
        say!("max"),
        say!("opened"),
        say!("unopened"),
    ];
    let mut table = Table::new(head);
    let not_opened = |row: &TargetRow| {
        row.counts.connections_failed.saturating_add(row.counts.connections_passed_over)
    };
    let shown = pick(&summary.parts.targets, |row| {
        (row.counts.failed() + not_opened(row), row.latency.p99_ns, row.counts.count)
    });
    for row in &shown {
        let (counts, l) = (&row.counts, &row.latency);
        let [p50, p90, p99, max] = quantiles(l);
        table.row([
            name(row, summary).into(),
            format_count(counts.count).into(),
            failures(counts.failed()),
            rate(row.ok_per_s).into(),
            p50,
            p90,
            p99,
            max,
            format_count(counts.connections_opened).into(),
            failures(not_opened(row)),
        ]);
    }
    let more =
        say!("… and {{}} addresses with better results; `throng report --json` lists all of them");
    table.render(style) + &left_out(summary.parts.targets.len(), shown.len(), more, style)
}

/// The address; with its target, where others share it or it has none.
fn name(row: &TargetRow, summary: &Summary) -> String {
    let shared =
        summary.parts.targets.iter().filter(|other| other.address == row.address).count() > 1;
    match row.address {
        Some(address) if !shared => address.to_string(),
        Some(address) => format!("{} {address}", clean(&row.target)),
        None => clean(&row.target),
    }
}
