//! The disks of the target's host are the bottleneck: all threads waited for them, and responses
//! were slower during that time.

use super::stalled::stalled;
use crate::finding::{Code, Finding, Judgement, Level, Needs, Unknown, percent};
use crate::record::Record;

const STALLED: &str = "node_pressure_io_stalled_seconds_total";

pub(crate) fn judge(record: &Record) -> Judgement {
    if record.watched(STALLED).next().is_none() {
        return Err(Unknown::NotRecorded { needs: Needs::Monitor });
    }
    let Some(stalled) = stalled(record, STALLED) else { return Ok(Vec::new()) };
    let (source, most) = (stalled.source.to_string(), percent(stalled.most));
    let text = say!("{source}: all threads waited for its disks for up to {most} of the time");
    let found = Finding::new(Code::DiskBound, Level::Hint, text, stalled.when);
    let next = say!(
        "`iostat -x 1` on that host shows which disk is busy; look for logs, \
         fsync, backups or swap"
    );
    Ok(vec![stalled.tell(found).then(next)])
}
