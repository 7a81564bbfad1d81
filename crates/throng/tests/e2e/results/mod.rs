//! What a run leaves: records, verdicts, comparisons, exports, the terminal, causes.

mod books;
mod compare;
mod evidence;
mod export;
mod full_screen;
pub(crate) mod history;
mod merge;
mod record;
mod residence;
mod screen;
mod slowest;
mod thresholds;
mod why;
mod why_staged;
