//! The slowest attempts, to be looked for in the logs and the tracing of the service. Shown with
//! `--details`.

use std::time::Duration;

use throng_base::clean;
use throng_base::units::format_duration;

use super::super::Style;
use super::super::table::Table;
use super::super::text::nanos;
use crate::summary::Summary;

/// So many are shown; JSON and the record have more.
const SHOWN_MAX: usize = 10;

pub(super) fn exemplars(summary: &Summary, style: &Style) -> String {
    if summary.steps.slowest.is_empty() {
        return String::new();
    }
    let slowest = match summary.only_requests() {
        true => say!("slowest requests"),
        false => say!("slowest attempts"),
    };
    let head = [slowest, say!("time"), say!("at"), say!("user"), say!("trace ID")];
    let mut table = Table::new(head);
    for row in summary.steps.slowest.iter().take(SHOWN_MAX) {
        let at = format_duration(Duration::from_nanos(row.slow.at_ns));
        table.row([
            clean(&row.step).into(),
            nanos(row.slow.latency_ns).into(),
            at.into(),
            row.slow.user.to_string().into(),
            row.slow.trace.clone().unwrap_or_default().into(),
        ]);
    }
    let command = "`throng why --slowest`";
    let note = style.say(say!("where the time went: {}", command));
    format!("{}{}\n", table.render(style), style.dim(&note))
}
