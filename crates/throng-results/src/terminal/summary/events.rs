//! The effects of the run's events, one line each.

use throng_base::Said;

use super::super::Style;
use super::super::text::{clean, nanos, wrap};
use super::{LABEL_COLUMNS, labelled};
use crate::summary::Summary;

/// Maximum number of events; the report has all.
const SHOWN_MAX: usize = 5;

pub(super) fn events(summary: &Summary, style: &Style) -> String {
    let told = summary.events.actions.iter().filter_map(|row| Some((row, row.paragraph()?)));
    let mut out = String::new();
    for (at, (row, text)) in told.take(SHOWN_MAX).enumerate() {
        let label = if at == 0 { say!("events") } else { Said::default() };
        let (name, at) = (clean(&row.name), nanos(row.at_ns.unwrap_or_default()));
        let text = style.say(say!("{name} at {at}: {text}"));
        let lines = wrap(&text, style.columns() - LABEL_COLUMNS).into_iter();
        for (at, line) in lines.enumerate() {
            let label = if at == 0 { label.clone() } else { Said::default() };
            out += &labelled(label, &line, style);
        }
    }
    out
}
