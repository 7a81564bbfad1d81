//! The findings of audits as Markdown.

use super::{escape, list, more};
use crate::summary::Summary;

/// Maximum number of sentences; JSON has all.
const ROWS_MAX: usize = 20;

/// Empty without audits.
pub(super) fn audits_markdown(summary: &Summary) -> String {
    let told: Vec<_> = summary.audits.iter().flat_map(|row| row.sentences()).collect();
    let lines = told.iter().take(ROWS_MAX);
    let lines = lines.map(|text| format!("audit {}", escape(&text.english())));
    list(lines) + &more(told.len(), ROWS_MAX, "")
}
