//! Service times, to compare with the response times in the table above. Shown with `--details`.

use super::super::Style;
use super::{TimedRow, ink_of, note, step_name, times_table, worst_steps};
use crate::summary::{Row, Summary};

/// Steps whose attempts waited before they were sent; for others, both times are the same.
pub(super) fn service(summary: &Summary, style: &Style) -> String {
    let waits = |row: &&Row| !row.service.is_empty() && row.service != row.latency;
    let rows = worst_steps(summary).into_iter().filter(waits).map(|row| TimedRow {
        name: step_name(row, summary, style),
        ink: ink_of(row),
        latency: row.service,
    });
    let table = times_table(say!("service time"), rows, summary, style);
    if table.len() == 0 {
        return String::new();
    }
    let meaning =
        say!("counted from the time of sending; the table above counts from the scheduled start");
    table.render(style) + &note(meaning, style)
}
