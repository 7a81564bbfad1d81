//! Diagnostics about addresses that refused connections while other addresses of the same target
//! accepted them.

use throng_base::units::format_count;
use throng_base::{Diagnostic, clean};

use crate::summary::{Summary, TargetRow};

/// Maximum number of named addresses; `throng report --details` has all.
const NAMED_MAX: usize = 5;

pub(crate) fn diagnostics(summary: &Summary) -> Option<Diagnostic> {
    let mut refusing: Vec<&TargetRow> =
        summary.parts.targets.iter().filter(|row| row.counts.connections_passed_over > 0).collect();
    refusing.sort_by_key(|row| std::cmp::Reverse(row.counts.connections_passed_over));
    if refusing.is_empty() {
        return None;
    }
    let message = say!("an address refused connections that another address accepted");
    let mut told = Diagnostic::warning("address-refused", message);
    for row in refusing.iter().take(NAMED_MAX) {
        let address = row.address.map(|address| address.to_string()).unwrap_or_default();
        let count = format_count(row.counts.connections_passed_over);
        told = told.note(say!("{address} of {}: {count} refused", clean(&row.target)));
    }
    if let Some(more) = refusing.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        told = told.note(say!("{more} more addresses refused connections"));
    }
    Some(told.help(say!(
        "make the server listen on that address too, or list the addresses to use with `resolve`"
    )))
}
