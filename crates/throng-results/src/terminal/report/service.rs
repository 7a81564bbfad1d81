//! Service times beside the response times of the table above, with `--details`.

use super::super::Style;
use super::super::table::Table;
use super::{ink_of, latency_cells, note, step_name, worst_steps};
use crate::summary::{Row, Summary};

/// Steps whose attempts waited before they were sent; of all others both are the same.
pub(super) fn service(summary: &Summary, style: &Style) -> String {
    let head = [
        say!("service time"),
        say!("mean"),
        say!("p50"),
        say!("p90"),
        say!("p95"),
        say!("p99"),
        say!("p99.9"),
        say!("p99.99"),
        say!("max"),
    ];
    let mut table = Table::new(head);
    let waits = |row: &&Row| !row.service.is_empty() && row.service != row.latency;
    for row in worst_steps(summary).into_iter().filter(waits) {
        let (name, own) = (step_name(row, summary, style), &summary.generator.lateness);
        table.row(latency_cells(name, ink_of(row), &row.service, own));
    }
    if table.len() == 0 {
        return String::new();
    }
    table.leave_out_columns_of(super::NOTHING);
    table.leave_out_for_names(&[say!("p99.99"), say!("p90")], style);
    let meaning =
        say!("counted from the time of sending; the table above counts from the scheduled start");
    table.render(style) + &note(meaning, style)
}
