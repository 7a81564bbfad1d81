//! Iterations by their session, where a scenario has several.

use super::super::table::{Cell, Table};
use super::super::text::{clean, nanos, rate};
use super::super::{Ink, Style};
use super::{left_out, percentile, pick};
use crate::summary::{Percentile, Summary};

use throng_base::units::format_count;

pub(super) fn sessions(summary: &Summary, style: &Style) -> String {
    if summary.sessions.is_empty() {
        return String::new();
    }
    let head = [
        say!("session"),
        say!("begun"),
        say!("finished"),
        say!("failed"),
        say!("interrupted"),
        say!("finished/s"),
        say!("p50"),
        say!("p90"),
        say!("p99"),
        say!("max"),
    ];
    let mut table = Table::new(head);
    let shown = pick(&summary.sessions, |row| (row.failed, row.time.p99_ns, row.begun));
    for row in &shown {
        let l = &row.time;
        let max = if l.is_empty() { super::NOTHING.to_string() } else { nanos(l.max_ns) };
        let ink = if row.failed > 0 { Ink::Bad } else { Ink::Plain };
        table.row([
            clean(&row.name).into(),
            format_count(row.begun).into(),
            format_count(row.finished).into(),
            Cell::new(ink, format_count(row.failed)),
            format_count(row.interrupted).into(),
            rate(row.finished_per_s).into(),
            percentile(l, Percentile::P50).into(),
            percentile(l, Percentile::P90).into(),
            percentile(l, Percentile::P99).into(),
            max.into(),
        ]);
    }
    let more = say!("… and {{}} better sessions: `throng report --json` has all");
    table.render(style) + &left_out(summary.sessions.len(), shown.len(), more, style)
}
