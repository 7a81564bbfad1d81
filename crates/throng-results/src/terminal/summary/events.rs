//! What happened during the run: load changes by the operator, effects of events, and findings of
//! audits.

use throng_base::Said;

use super::super::Style;
use super::super::text::{clean, nanos, width, wrap};
use super::{LABEL_COLUMNS, labelled};
use crate::summary::{Change, ChangeOf, Summary};

/// Maximum number of lines; the report has all.
const AUDITS_MAX: usize = 3;
/// Maximum number of events; the report has all.
const EVENTS_MAX: usize = 5;

/// Load changes in one line: the results then belong to no load of the scenario. As many as fit,
/// and the number of others.
pub(super) fn changes(summary: &Summary, style: &Style) -> String {
    let changes = &summary.events.changes;
    let texts: Vec<String> = changes.first.iter().map(|change| text(change, style)).collect();
    let room = style.columns() - LABEL_COLUMNS;
    let told = |shown: usize| {
        let more = changes.count - shown as u64;
        let more = (more > 0).then(|| style.say(say!("{} more", more)));
        let items: Vec<&str> = texts[..shown].iter().chain(&more).map(String::as_str).collect();
        items.join(" · ")
    };
    let fitting = (1..=texts.len()).rev().map(told).find(|text| width(text) <= room);
    match texts.first() {
        None => String::new(),
        Some(first) => labelled(say!("changed"), &fitting.unwrap_or_else(|| first.clone()), style),
    }
}

fn text(change: &Change, style: &Style) -> String {
    let (at, what) = (nanos(change.at_ns), clean(&change.what));
    let said: Said = match change.of {
        ChangeOf::Phase(_) | ChangeOf::Addresses => say!("{what} at {at}"),
        ChangeOf::Mark => say!("mark {what} at {at}"),
    };
    style.say(said)
}

/// The effects of the run's events, one line each.
pub(super) fn events(summary: &Summary, style: &Style) -> String {
    let told = summary.events.actions.iter().filter_map(|row| Some((row, row.paragraph()?)));
    let mut out = String::new();
    for (at, (row, text)) in told.take(EVENTS_MAX).enumerate() {
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

/// The findings of audits, one line each.
pub(super) fn audits(summary: &Summary, style: &Style) -> String {
    let told = summary.audits.iter().flat_map(|row| row.sentences());
    let line = |(at, text): (usize, Said)| {
        let label = if at == 0 { say!("audits") } else { Said::default() };
        labelled(label, &style.say(text), style)
    };
    told.take(AUDITS_MAX).enumerate().map(line).collect()
}
