//! Load changes by the operator, in one line: the results then belong to no load of the scenario.

use throng_base::Said;

use super::super::Style;
use super::super::text::{clean, nanos, width};
use super::{LABEL_COLUMNS, labelled};
use crate::summary::{Change, ChangeOf, Summary};

/// As many changes as fit, and the number of others.
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
