//! The slowest attempts, to find them in the logs and traces of the service. Shown with
//! `--details`.

use std::time::Duration;

use throng_base::clean;
use throng_base::units::format_duration;

use super::super::Style;
use super::super::columns::Columns;
use super::super::text::nanos;
use crate::summary::{SlowRow, Summary};

/// Maximum number of attempts; JSON and the run directory have more.
const SHOWN_MAX: usize = 10;

pub(super) fn exemplars(summary: &Summary, style: &Style) -> String {
    if summary.steps.slowest.is_empty() {
        return String::new();
    }
    let slowest = match summary.only_requests() {
        true => say!("slowest requests"),
        false => say!("slowest attempts"),
    };
    let at = |row: &SlowRow| format_duration(Duration::from_nanos(row.slow.at_ns));
    let table = Columns::of(slowest, |row: &SlowRow| clean(&row.step))
        .cell(say!("time"), |row| nanos(row.slow.latency_ns))
        .cell(say!("at"), at)
        .cell(say!("user"), |row| row.slow.user.to_string())
        .cell(say!("trace ID"), |row| row.slow.trace.clone().unwrap_or_default())
        .table(summary.steps.slowest.iter().take(SHOWN_MAX));
    let command = "`throng why --slowest`";
    let note = style.say(say!("where the time went: {}", command));
    format!("{}{}\n", table.render(style), style.dim(&note))
}
