//! The section about the machines of a run, where there are several.

use std::cmp::Reverse;

use throng_base::units::{format_bytes, format_count};
use throng_base::{Said, say};

use super::super::Style;
use super::super::table::Table;
use super::super::text::{clean, nanos, share};
use super::{left_out, pick};
use crate::summary::Summary;

/// Each machine for itself, the latest first where there are many.
pub(super) fn machines(summary: &Summary, style: &Style) -> String {
    if summary.parts.machines.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        say!("machine"),
        say!("shards"),
        say!("cores"),
        say!("memory"),
        say!("host"),
        say!("lateness p99"),
        Said::of_others("max"),
    ]);
    let mut shown: Vec<_> = pick(&summary.parts.machines, |it| it.generator.lateness.p99_ns);
    shown.sort_by_key(|it| Reverse(it.generator.lateness.p99_ns));
    for machine in &shown {
        let own = &machine.generator;
        table.row([
            clean(&machine.name).into(),
            format_count(machine.shards).into(),
            format!("{:.2}", own.cores).into(),
            format_bytes(own.memory_bytes_max as f64).into(),
            share(own.host_cpu_mean).into(),
            nanos(own.lateness.p99_ns).into(),
            nanos(own.lateness.max_ns).into(),
        ]);
    }
    let more = say!("… and {{}} more: `throng report --json` lists all");
    table.render(style) + &left_out(summary.parts.machines.len(), shown.len(), more, style)
}
