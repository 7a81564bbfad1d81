//! The section about several machines.

use std::cmp::Reverse;

use throng_base::Said;
use throng_base::units::format_bytes;
use throng_metrics::Percentile;

use super::super::Style;
use super::super::columns::Columns;
use super::super::text::{clean, nanos, share};
use super::{left_out, pick};
use crate::summary::{MachineRow, Summary};

/// Each machine; if there are many, those with the most lateness first.
pub(super) fn machines(summary: &Summary, style: &Style) -> String {
    if summary.parts.machines.is_empty() {
        return String::new();
    }
    let late = |it: &MachineRow| it.generator.lateness.at(Percentile::P99);
    let mut shown: Vec<_> = pick(&summary.parts.machines, late);
    shown.sort_by_key(|it| Reverse(late(it)));
    let table = Columns::of(say!("machine"), |it: &MachineRow| clean(&it.name))
        .count(say!("shards"), |it| it.shards)
        .cell(say!("cores"), |it| format!("{:.2}", it.generator.cores))
        .cell(say!("memory"), |it| format_bytes(it.generator.memory_bytes_max as f64))
        .cell(say!("host"), |it| share(it.generator.host_cpu_mean))
        .cell(say!("lateness p99"), move |it| nanos(late(it)))
        .cell(Said::of_others("max"), |it| nanos(it.generator.lateness.max_ns))
        .table(shown.iter().copied());
    let more = say!("… and {{}} more: `throng report --json` lists all");
    table.render(style) + &left_out(summary.parts.machines.len(), shown.len(), more, style)
}
