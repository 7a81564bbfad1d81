//! The section about setup and teardown.

use throng_base::Said;

use super::super::columns::{Columns, failures};
use super::super::table::Cell;
use super::super::text::{clean, nanos};
use super::super::{Ink, Style};
use super::left_out;
use crate::once::{OnceOutcome, OnceRun, OnceStep};
use crate::summary::Summary;

/// Maximum number of steps of both.
const ROWS_MAX: usize = 20;

/// A part, or one of its steps.
type Line<'a> = (&'a OnceRun, Option<&'a OnceStep>);

/// The setup and the teardown, each with its steps.
pub(super) fn once(summary: &Summary, style: &Style) -> String {
    if summary.events.once.is_empty() {
        return String::new();
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut steps_left = ROWS_MAX;
    for once in &summary.events.once {
        let steps = once.steps.iter().filter(|step| step.begun > 0).take(steps_left);
        lines.extend([None].into_iter().chain(steps.map(Some)).map(|step| (once, step)));
        steps_left = steps_left.saturating_sub(once.steps.len());
    }
    let name = |(once, step): &Line| match step {
        Some(step) => format!("  {}", clean(&step.name)),
        None => format!("{} ({})", once.part.word(), style.say(outcome_text(once))),
    };
    let of_step =
        |cell: fn(&OnceStep) -> Cell| move |(_, step): &Line| step.map(cell).unwrap_or_default();
    let table = Columns::of(say!("once per run"), name)
        .inked(|(once, step)| if step.is_none() && !once.is_done() { Ink::Bad } else { Ink::Plain })
        .cell(say!("attempts"), of_step(|step| Cell::number(step.ok + step.failed)))
        .cell(say!("ok"), of_step(|step| Cell::number(step.ok)))
        .cell(say!("failed"), of_step(|step| failures(step.failed)))
        .cell(say!("time"), |(once, step)| {
            nanos(step.map_or(once.lasted_ns, |step| step.mean_ns as u64))
        })
        .table(&lines);
    let all: usize = summary.events.once.iter().map(|once| once.steps.len()).sum();
    let more = say!("… and {{}} more steps: `throng report --json` lists all");
    table.render(style) + &left_out(all, all.min(ROWS_MAX), more, style)
}

fn outcome_text(once: &OnceRun) -> Said {
    match once.outcome {
        OnceOutcome::Done => say!("done"),
        OnceOutcome::Failed => say!("failed"),
        OnceOutcome::TimedOut => say!("timed out"),
        OnceOutcome::Interrupted => say!("interrupted"),
    }
}
