//! The section about setup and teardown.

use std::time::Duration;

use throng_base::units::{format_count, format_duration};

use throng_base::Said;

use super::super::table::{Cell, Table};
use super::super::text::clean;
use super::super::{Ink, Style};
use super::left_out;
use crate::once::{OnceOutcome, OnceRun, OnceStep};
use crate::summary::Summary;

/// Maximum number of steps of both.
const ROWS_MAX: usize = 20;

/// The setup and the teardown, each with its steps.
pub(super) fn once(summary: &Summary, style: &Style) -> String {
    if summary.events.once.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        say!("once per run"),
        say!("attempts"),
        say!("ok"),
        say!("failed"),
        say!("time"),
    ]);
    let mut steps_left = ROWS_MAX;
    for once in &summary.events.once {
        let ink = if once.is_done() { Ink::Plain } else { Ink::Bad };
        let head = format!("{} ({})", once.part.word(), style.say(outcome_text(once)));
        table.row([
            Cell::new(ink, head),
            Cell::new(ink, String::new()),
            Cell::new(ink, String::new()),
            Cell::new(ink, String::new()),
            Cell::new(ink, time(once.lasted_ns)),
        ]);
        for step in once.steps.iter().filter(|step| step.begun > 0).take(steps_left) {
            table.row(step_cells(step));
        }
        steps_left = steps_left.saturating_sub(once.steps.len());
    }
    let all: usize = summary.events.once.iter().map(|once| once.steps.len()).sum();
    let more = say!("… and {{}} more steps: `throng report --json` lists all");
    let mut out = table.render(style);
    out.push_str(&left_out(all, all.min(ROWS_MAX), more, style));
    out
}

fn outcome_text(once: &OnceRun) -> Said {
    match once.outcome {
        OnceOutcome::Done => say!("done"),
        OnceOutcome::Failed => say!("failed"),
        OnceOutcome::TimedOut => say!("timed out"),
        OnceOutcome::Interrupted => say!("interrupted"),
    }
}

fn step_cells(step: &OnceStep) -> [Cell; 5] {
    let bad = if step.failed > 0 { Ink::Bad } else { Ink::Plain };
    [
        Cell::new(Ink::Plain, format!("  {}", clean(&step.name))),
        Cell::new(Ink::Plain, format_count(step.ok + step.failed)),
        Cell::new(Ink::Plain, format_count(step.ok)),
        Cell::new(bad, format_count(step.failed)),
        Cell::new(Ink::Plain, time(step.mean_ns as u64)),
    ]
}

fn time(nanos: u64) -> String {
    format_duration(Duration::from_nanos(nanos))
}
