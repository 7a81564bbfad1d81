//! What happened at set times: each event with how it ended and what it changed, and the figures
//! before, during and after it.

use throng_base::Said;
use throng_base::units::format_count;
use throng_metrics::Unit;
use throng_why::Stretch;

use super::super::table::{Cell, Table};
use super::super::text::{clean, nanos, rate};
use super::super::{Ink, Style};
use super::{NOTHING, known_text, left_out, note};
use crate::actions::ActionRow;
use crate::event::ActionStatus;
use crate::summary::Summary;

/// Events that are shown; the JSON has all.
const ROWS_MAX: usize = 20;
/// Lines of an event's output.
const OUTPUT_LINES_MAX: usize = 6;

/// Empty where nothing was set or marked.
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
    let heads = [say!("event"), say!("at"), say!("action"), say!("took"), say!("result")];
    let mut table = Table::new(heads).words_in([2, 4]);
    for row in rows {
        let ink = ink(row.status);
        let time = |time: Option<u64>| time.map_or_else(|| NOTHING.to_string(), nanos);
        let detail = style.say(row.detail.clone().cleaned());
        let status = style.say(row.status.text());
        let result = if detail.is_empty() { status } else { format!("{status}: {detail}") };
        table.row([
            Cell::new(ink, clean(&row.name)),
            time(row.at_ns).into(),
            row.action.as_str().into(),
            time(row.took_ns).into(),
            Cell::new(ink, result),
        ]);
    }
    table.render(style)
}

fn ink(status: ActionStatus) -> Ink {
    match status {
        ActionStatus::Done => Ink::Plain,
        ActionStatus::Failed | ActionStatus::TimedOut => Ink::Bad,
        _ => Ink::Warn,
    }
}

/// What changed, and what a command wrote.
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
    let mut table = Table::new([
        say!("around events"),
        say!("from"),
        say!("to"),
        say!("ok/s"),
        say!("errors"),
        Said::of_others("p50"),
        Said::of_others("p99"),
        say!("online, at least"),
    ]);
    for row in rows {
        let Some(effect) = &row.effect else { continue };
        let parts = [
            (say!("before"), &effect.before),
            (say!("during"), &effect.during),
            (say!("after"), &effect.after),
        ];
        let parts = parts.into_iter().filter_map(|(word, part)| Some((word, part.as_ref()?)));
        for (word, part) in parts {
            let name = format!("{}, {}", clean(&row.name), style.say(word));
            table.row(std::iter::once(Cell::from(name)).chain(cells(part)));
        }
    }
    if table.len() == 0 {
        return String::new();
    }
    let explained = say!(
        "p50 and p99: medians of the values per second; during: until all values were back to \
         normal, or the action ended"
    );
    format!("\n{}{}", table.render(style), note(explained, style))
}

fn cells(part: &Stretch) -> [Cell; 7] {
    let second = |seconds: f64| nanos((seconds * 1e9) as u64);
    [
        second(part.from_s),
        second(part.to_s),
        rate(part.ok_per_s),
        known_text(Unit::Share, part.error_share),
        known_text(Unit::Nanoseconds, part.p50_ns),
        known_text(Unit::Nanoseconds, part.p99_ns),
        format_count(part.online_min as u64),
    ]
    .map(Cell::from)
}
