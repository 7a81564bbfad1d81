//! Diagnostics about events that failed.

use throng_base::{Diagnostic, Said};

use crate::actions::ActionRow;
use crate::event::ActionStatus;
use crate::summary::Summary;

/// Maximum number of named events; `throng report --details` has all.
const NAMED_MAX: usize = 5;

pub(crate) fn diagnostics(summary: &Summary) -> Vec<Diagnostic> {
    let rows = summary.events.actions.iter();
    let troubled: Vec<(&ActionRow, Said)> =
        rows.filter_map(|row| Some((row, row.trouble()?))).collect();
    let is_late =
        |row: &ActionRow| matches!(row.status, ActionStatus::NotReached | ActionStatus::Missed);
    let (never, failed): (Vec<_>, Vec<_>) = troubled.into_iter().partition(|(row, _)| is_late(row));
    let failed = told(
        &failed,
        Diagnostic::warning("event-failed", say!("an event did not succeed")),
        say!(
            "`throng report --details` shows its output; values after the event may not be \
             meaningful"
        ),
    );
    let never = told(
        &never,
        Diagnostic::warning("event-never", say!("an event did not happen")),
        say!("set an earlier time, or make the load longer"),
    );
    [failed, never].into_iter().flatten().collect()
}

fn told(rows: &[(&ActionRow, Said)], diagnostic: Diagnostic, help: Said) -> Option<Diagnostic> {
    if rows.is_empty() {
        return None;
    }
    let named = rows.iter().take(NAMED_MAX).map(|(_, said)| said.clone());
    let mut told = named.fold(diagnostic, Diagnostic::note);
    if let Some(more) = rows.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        told = told.note(say!("… and {more} more"));
    }
    Some(told.help(help))
}
