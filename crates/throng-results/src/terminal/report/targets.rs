//! What went to which address, where there are several: which of them is slow, or fails.

use super::super::table::{Cell, Table};
use super::super::text::{clean, nanos, rate};
use super::super::{Ink, Style};
use super::{left_out, percentile, pick};
use crate::summary::{Percentile, Summary, TargetRow};

use throng_base::units::format_count;

pub(super) fn targets(summary: &Summary, style: &Style) -> String {
    if summary.targets.is_empty() {
        return String::new();
    }
    let head = [
        say!("address"),
        say!("count"),
        say!("failed"),
        say!("ok/s"),
        say!("p50"),
        say!("p90"),
        say!("p99"),
        say!("max"),
        say!("opened"),
        say!("not opened"),
    ];
    let mut table = Table::new(head);
    let bad =
        |count: u64| Cell::new(if count > 0 { Ink::Bad } else { Ink::Plain }, format_count(count));
    let shown = pick(&summary.targets, |row| {
        (row.counts.failed() + row.counts.connections_failed, row.latency.p99_ns, row.counts.count)
    });
    for row in &shown {
        let (counts, l) = (&row.counts, &row.latency);
        let max = if l.is_empty() { super::NOTHING.to_string() } else { nanos(l.max_ns) };
        table.row([
            name(row, summary).into(),
            format_count(counts.count).into(),
            bad(counts.failed()),
            rate(row.ok_per_s).into(),
            percentile(l, Percentile::P50).into(),
            percentile(l, Percentile::P90).into(),
            percentile(l, Percentile::P99).into(),
            max.into(),
            format_count(counts.connections_opened).into(),
            bad(counts.connections_failed),
        ]);
    }
    let more = say!("… and {{}} better addresses: `throng report --json` has all");
    table.render(style) + &left_out(summary.targets.len(), shown.len(), more, style)
}

/// The address; with its target, where others share it or it has none.
fn name(row: &TargetRow, summary: &Summary) -> String {
    let shared = summary.targets.iter().filter(|other| other.address == row.address).count() > 1;
    match row.address {
        Some(address) if !shared => address.to_string(),
        Some(address) => format!("{} {address}", clean(&row.target)),
        None => clean(&row.target),
    }
}
