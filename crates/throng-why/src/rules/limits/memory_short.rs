//! The target's host ran short of memory: its kernel killed processes, or all threads waited for
//! memory and responses were slower meanwhile.

use super::stalled::stalled;
use crate::finding::{Code, Finding, Judgement, Level, Needs, Span, Unknown, count, percent};
use crate::record::Record;

/// Processes that the kernel killed: on the whole host, and in watched control groups.
const KILLED: [&str; 2] = ["throng_cgroup_oom_kills_total", "node_vmstat_oom_kill"];
const STALLED: &str = "node_pressure_memory_stalled_seconds_total";

pub(crate) fn judge(record: &Record) -> Judgement {
    let mut rows = KILLED.into_iter().chain([STALLED]).flat_map(|series| record.watched(series));
    if rows.next().is_none() {
        return Err(Unknown::NotRecorded { needs: Needs::Monitor });
    }
    Ok(killed(record).or_else(|| waited(record)).into_iter().collect())
}

fn killed(record: &Record) -> Option<Finding> {
    let rows = KILLED.into_iter().flat_map(|series| record.watched(series));
    let row = rows.into_iter().find(|row| row.total(record.measured_span()) >= 0.5)?;
    let grows = |(_, rate): &(f64, f64)| *rate > 0.0;
    let (first, last) = (row.points.iter().position(grows)?, row.points.iter().rposition(grows)?);
    // A reading covers the time since the previous one.
    let when = Span::new(row.points[first.saturating_sub(1)].0, row.points[last].0 + 1.0);
    let total = row.total(record.measured_span()).round();
    let (source, killed) = (row.source.clone(), count(total));
    let text = match total > 1.0 {
        true => say!("{source}: memory ran out, and the kernel killed {killed} processes"),
        false => say!("{source}: memory ran out, and the kernel killed a process"),
    };
    let found = Finding::new(Code::MemoryShort, Level::Certain, text, when)
        .on(&["connections_open", "failed"])
        .figure(say!("{}: {} more", { row.name.clone() }, killed))
        .then(say!(
            "`dmesg` on that host names the processes; add memory, or reduce the memory \
             per user"
        ));
    Some(found)
}

fn waited(record: &Record) -> Option<Finding> {
    let stalled = stalled(record, STALLED)?;
    let (source, most) = (stalled.source.to_string(), percent(stalled.most));
    let text = say!("{source}: all threads waited for memory for up to {most} of the time");
    let found = Finding::new(Code::MemoryShort, Level::Hint, text, stalled.when);
    let found = stalled.tell(found);
    Some(found.then(say!("check that host for swapping: `vmstat 1`, columns si and so")))
}
