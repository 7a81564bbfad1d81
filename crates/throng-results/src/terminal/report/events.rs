//! The events of a run with their results and effects, and the results of the load before, during
//! and after them.

use throng_base::Said;
use throng_metrics::Unit;
use throng_why::Stretch;

use super::super::columns::{Columns, NOTHING, P50, P99};
use super::super::table::Cell;
use super::super::text::{clean, nanos};
use super::super::{Ink, Style};
use super::{known, left_out, note};
use crate::actions::ActionRow;
use crate::event::ActionStatus;
use crate::summary::Summary;

/// Maximum number of events; JSON has all.
const ROWS_MAX: usize = 20;
/// Maximum number of lines of an event's output.
const OUTPUT_LINES_MAX: usize = 6;

/// Empty without events and marks.
pub(super) fn events(summary: &Summary, style: &Style) -> String {
    let all = &summary.events.actions;
    if all.is_empty() {
        return String::new();
    }
    let shown = &all[..all.len().min(ROWS_MAX)];
    let mut out = list(shown, style);
    let more = say!("… and {{}} more events: `throng report --json` lists all");
    out += &left_out(all.len(), shown.len(), more, style);
    for row in shown {
        out += &paragraph(row, style);
    }
    out + &around(shown, style)
}

fn list(rows: &[ActionRow], style: &Style) -> String {
    let time = |time: Option<u64>| time.map_or_else(|| NOTHING.to_string(), nanos);
    let result = |row: &ActionRow| {
        let detail = style.say(row.detail.clone().cleaned());
        let status = style.say(row.status.text());
        let result = if detail.is_empty() { status } else { format!("{status}: {detail}") };
        Cell::new(ink(row.status), result)
    };
    let name = |row: &ActionRow| Cell::new(ink(row.status), clean(&row.name));
    let table = Columns::of(say!("event"), name)
        .cell(say!("at"), |row| time(row.at_ns))
        .cell(say!("action"), |row| row.action.clone())
        .words()
        .cell(say!("took"), |row| time(row.took_ns))
        .cell(say!("result"), result)
        .words()
        .table(rows);
    table.render(style)
}

fn ink(status: ActionStatus) -> Ink {
    match status {
        ActionStatus::Done => Ink::Plain,
        ActionStatus::Failed | ActionStatus::TimedOut => Ink::Bad,
        _ => Ink::Warn,
    }
}

/// The effect, and the output of a command.
fn paragraph(row: &ActionRow, style: &Style) -> String {
    let mut out = String::new();
    let name = clean(&row.name);
    if let Some(text) = row.paragraph() {
        out += &style.paragraph(Ink::Plain, &format!("{name}: {}", style.say(text)));
    }
    let output: Vec<String> = row.output.lines().map(clean).collect();
    if !output.is_empty() {
        out += &note(say!("output of {name}:"), style);
    }
    let hidden = output.len().saturating_sub(OUTPUT_LINES_MAX);
    let shown = output.iter().take(OUTPUT_LINES_MAX / 2);
    let last = output.iter().skip((OUTPUT_LINES_MAX / 2).max(hidden + OUTPUT_LINES_MAX / 2));
    for line in shown {
        out += &note(Said::of_others(format!("  {line}")), style);
    }
    if hidden > 0 {
        out += &note(say!("… and {hidden} more lines"), style);
    }
    for line in last {
        out += &note(Said::of_others(format!("  {line}")), style);
    }
    out
}

fn around(rows: &[ActionRow], style: &Style) -> String {
    let parts = parts(rows, style);
    if parts.is_empty() {
        return String::new();
    }
    let table = around_columns().table(&parts);
    let explained = say!(
        "p50 and p99: medians of the values per second; during: until all values were back to \
         normal, or the action ended"
    );
    format!("\n{}{}", table.render(style), note(explained, style))
}

/// A named time before, during or after an event.
pub(crate) type Part<'a> = (String, &'a Stretch);

pub(crate) fn parts<'a>(rows: &'a [ActionRow], style: &Style) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for row in rows {
        let Some(effect) = &row.effect else { continue };
        let told = [
            (say!("before"), &effect.before),
            (say!("during"), &effect.during),
            (say!("after"), &effect.after),
        ];
        parts.extend(told.into_iter().filter_map(|(word, part)| {
            Some((format!("{}, {}", clean(&row.name), style.say(word)), part.as_ref()?))
        }));
    }
    parts
}

pub(crate) fn around_columns<'a>() -> Columns<'a, Part<'a>> {
    let second = |seconds: f64| Cell::nanos((seconds * 1e9) as u64);
    Columns::of(say!("around events"), |(name, _): &Part| name.clone())
        .cell(say!("from"), move |(_, part)| second(part.from_s))
        .cell(say!("to"), move |(_, part)| second(part.to_s))
        .rate(say!("ok/s"), |(_, part)| part.ok_per_s)
        .cell(say!("errors"), |(_, part)| known(Unit::Share, part.error_share))
        .cell(P50.head(), |(_, part)| known(Unit::Nanoseconds, part.p50_ns))
        .cell(P99.head(), |(_, part)| known(Unit::Nanoseconds, part.p99_ns))
        .count(say!("online, at least"), |(_, part)| part.online_min as u64)
}
