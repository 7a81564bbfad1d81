//! What audits found, as a pull request shows it.

use super::escape;
use crate::summary::Summary;

/// Sentences that are shown; the JSON has all.
const ROWS_MAX: usize = 20;

/// Empty without audits.
pub(super) fn audits_markdown(summary: &Summary) -> String {
    let told: Vec<_> = summary.audits.iter().flat_map(|row| row.sentences()).collect();
    if told.is_empty() {
        return String::new();
    }
    let lines = told.iter().take(ROWS_MAX);
    let mut out = String::from("\n");
    lines.for_each(|text| out += &format!("- audit {}\n", escape(&text.english())));
    if let Some(more) = told.len().checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        out += &format!("\nand {more} more\n");
    }
    out
}
