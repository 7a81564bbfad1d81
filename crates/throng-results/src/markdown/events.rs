//! The events of a run as Markdown.

use throng_metrics::Unit;
use throng_why::Stretch;

use super::{escape, more, word};
use crate::actions::ActionRow;
use crate::summary::Summary;
use crate::terminal::columns::Columns;
use crate::terminal::{figure_text, known_text};

/// Maximum number of events; JSON has all.
const ROWS_MAX: usize = 20;

/// Empty without events and marks.
pub(super) fn events_markdown(summary: &Summary) -> String {
    let all = &summary.events.actions;
    if all.is_empty() {
        return String::new();
    }
    let shown = &all[..all.len().min(ROWS_MAX)];
    let sentences: String = shown.iter().map(sentence).collect();
    format!("\n{}\n{sentences}{}", around(shown), more(all.len(), ROWS_MAX, " events"))
}

/// The results before, during and after each event.
fn around(shown: &[ActionRow]) -> String {
    let effects = shown.iter().filter_map(|row| Some((row, row.effect.as_ref()?)));
    let parts = effects.flat_map(|(row, effect)| {
        let parts =
            [("before", &effect.before), ("during", &effect.during), ("after", &effect.after)];
        parts.into_iter().filter_map(move |(part, of)| Some((row, part, of.as_ref()?)))
    });
    let parts: Vec<(&ActionRow, &str, &Stretch)> = parts.collect();
    Columns::of(word("event"), |(row, ..): &(&ActionRow, &str, &Stretch)| row.name.clone())
        .cell(word("part"), |(_, part, _)| (*part).to_string())
        .words()
        .cell(word("ok/s"), |(.., of)| figure_text(Unit::PerSecond, of.ok_per_s))
        .cell(word("failed"), |(.., of)| known_text(Unit::Share, of.error_share))
        .cell(word("p50"), |(.., of)| known_text(Unit::Nanoseconds, of.p50_ns))
        .cell(word("p99"), |(.., of)| known_text(Unit::Nanoseconds, of.p99_ns))
        .cell(word("online, at least"), |(.., of)| figure_text(Unit::Number, of.online_min))
        .table(&parts)
        .markdown(escape)
}

/// Its time, its result and its effect.
fn sentence(row: &ActionRow) -> String {
    let name = escape(&row.name);
    let at = row.at_ns.map(|at| figure_text(Unit::Nanoseconds, at as f64));
    let at = at.map_or_else(String::new, |at| format!(" at {at}"));
    let detail = row.detail.english();
    let detail = if detail.is_empty() { String::new() } else { format!(" ({})", escape(&detail)) };
    let status = row.status.text().english();
    let changed = row.paragraph().map(|it| format!(": {}", escape(&it.english())));
    format!("- **{name}**{at}, {}, {status}{detail}{}\n", row.action, changed.unwrap_or_default())
}
