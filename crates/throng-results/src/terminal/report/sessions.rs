//! Iterations by their session, where a scenario has several.

use super::super::Style;
use super::super::table::Table;
use super::super::text::{clean, rate};
use super::{failures, left_out, pick, quantiles};
use crate::summary::Summary;

use throng_base::units::format_count;

pub(super) fn sessions(summary: &Summary, style: &Style) -> String {
    if summary.parts.sessions.is_empty() {
        return String::new();
    }
    let head = [
        say!("session"),
        say!("started"),
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
    let shown = pick(&summary.parts.sessions, |row| (row.failed, row.time.p99_ns, row.begun));
    for row in &shown {
        let l = &row.time;
        let [p50, p90, p99, max] = quantiles(l);
        table.row([
            clean(&row.name).into(),
            format_count(row.begun).into(),
            format_count(row.finished).into(),
            failures(row.failed),
            format_count(row.interrupted).into(),
            rate(row.finished_per_s).into(),
            p50,
            p90,
            p99,
            max,
        ]);
    }
    let more =
        say!("… and {{}} sessions with better results; `throng report --json` lists all of them");
    table.render(style) + &left_out(summary.parts.sessions.len(), shown.len(), more, style)
}
