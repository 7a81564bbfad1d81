//! Diagnostics that name what had trouble: events of the run, and addresses of targets.

use throng_base::units::format_count;
use throng_base::{Diagnostic, Said, clean};

use crate::actions::ActionRow;
use crate::event::ActionStatus;
use crate::summary::{Summary, TargetRow};

/// Maximum number of names; `throng report --details` has all.
const NAMED_MAX: usize = 5;

/// Events that failed or did not happen.
pub(crate) fn events(summary: &Summary) -> impl Iterator<Item = Diagnostic> {
    let rows = summary.events.actions.iter();
    let troubled = rows.filter_map(|row| Some((row, row.trouble()?)));
    let is_late =
        |row: &ActionRow| matches!(row.status, ActionStatus::NotReached | ActionStatus::Missed);
    let (never, failed): (Vec<_>, Vec<_>) = troubled.partition(|(row, _)| is_late(row));
    let [failed, never] =
        [failed, never].map(|rows| rows.into_iter().map(|(_, said)| said).collect());
    let failed = named(
        failed,
        Diagnostic::warning("event-failed", say!("an event did not succeed")),
        say!(
            "`throng report --details` shows its output; values after the event may not be \
             meaningful"
        ),
    );
    let never = named(
        never,
        Diagnostic::warning("event-never", say!("an event did not happen")),
        say!("set an earlier time, or make the load longer"),
    );
    failed.into_iter().chain(never)
}

/// Addresses that refused connections while others of the same target accepted them.
pub(crate) fn addresses(summary: &Summary) -> Option<Diagnostic> {
    let rows = summary.parts.targets.iter();
    let mut refusing: Vec<&TargetRow> =
        rows.filter(|row| row.counts.connections_passed_over > 0).collect();
    refusing.sort_by_key(|row| std::cmp::Reverse(row.counts.connections_passed_over));
    let told = refusing.into_iter().map(|row| {
        let address = row.address.map(|address| address.to_string()).unwrap_or_default();
        let count = format_count(row.counts.connections_passed_over);
        say!("{address} of {}: {count} refused", clean(&row.target))
    });
    let message = say!("an address refused connections that another address accepted");
    named(
        told.collect(),
        Diagnostic::warning("address-refused", message),
        say!(
            "make the server listen on that address too, or list the addresses to use with \
             `resolve`"
        ),
    )
}

/// The diagnostic with the first of these as notes; `None` without any.
fn named(all: Vec<Said>, diagnostic: Diagnostic, help: Said) -> Option<Diagnostic> {
    let more = all.len().saturating_sub(NAMED_MAX);
    let more = (more > 0).then(|| say!("… and {more} more"));
    let is_any = !all.is_empty();
    let notes = all.into_iter().take(NAMED_MAX).chain(more);
    is_any.then(|| notes.fold(diagnostic, Diagnostic::note).help(help))
}
