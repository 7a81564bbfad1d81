//! The findings of audits, one line each.

use throng_base::Said;

use super::super::Style;
use super::labelled;
use crate::summary::Summary;

/// Maximum number of lines; the report has all.
const SHOWN_MAX: usize = 3;

pub(super) fn audits(summary: &Summary, style: &Style) -> String {
    let told = summary.audits.iter().flat_map(|row| row.sentences());
    let line = |(at, text): (usize, Said)| {
        let label = if at == 0 { say!("audits") } else { Said::default() };
        labelled(label, &style.say(text), style)
    };
    told.take(SHOWN_MAX).enumerate().map(line).collect()
}
