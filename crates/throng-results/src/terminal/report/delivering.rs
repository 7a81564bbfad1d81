//! The section about deliveries; omitted in runs without them.

use super::super::columns::Columns;
use super::super::text::{clean, nanos};
use super::super::{Ink, Style};
use super::{EXAMPLE_CHARS_MAX, TimedRow, dim, left_out, pick};
use crate::summary::{DeliveryRow, Example, Summary};
use throng_metrics::Percentile;

/// Every row of the ledger, and notes about rare conditions.
pub(super) fn delivered(summary: &Summary, style: &Style) -> String {
    let rows = &summary.messages.deliveries;
    if rows.iter().all(is_empty) {
        return String::new();
    }
    let shown = pick(rows, |row| (row.counts.lost, row.counts.unwatched, row.counts.expected));
    let mut out = columns().table(shown.iter().copied()).render(style);
    let more = say!(
        "… and {{}} deliveries with the same number of losses or fewer; `throng report --json` \
         lists all"
    );
    out.push_str(&left_out(rows.len(), shown.len(), more, style));
    for row in &shown {
        for line in rare(row, style).into_iter().chain(examples(row, style)) {
            let line = format!("{}: {line}", clean(&row.name));
            out += &dim(&line, style);
        }
    }
    out
}

pub(crate) fn columns<'a>() -> Columns<'a, DeliveryRow> {
    Columns::of(say!("deliveries"), |row: &DeliveryRow| clean(&row.name))
        .count(say!("sent"), |row| row.counts.sent)
        .count(say!("expected"), |row| row.counts.expected)
        .count(say!("delivered"), |row| row.counts.delivered)
        .bad(say!("lost"), |row| row.counts.lost)
        .bad(say!("twice"), |row| row.counts.twice)
        .bad(say!("late"), |row| row.counts.late)
        .bad(say!("out of order"), |row| row.counts.out_of_order)
}

/// The latencies of deliveries, below those of steps.
pub(super) fn latencies(summary: &Summary, style: &Style) -> impl Iterator<Item = TimedRow> {
    let timed: Vec<&DeliveryRow> =
        summary.messages.deliveries.iter().filter(|row| !row.latency.is_empty()).collect();
    let rows =
        pick(&timed, |row| row.latency.at(Percentile::P99)).into_iter().map(|row| TimedRow {
            name: format!("{} ({})", clean(&row.name), style.say(say!("delivery"))),
            ink: Ink::Plain,
            latency: row.latency,
        });
    rows.collect::<Vec<_>>().into_iter()
}

fn is_empty(row: &DeliveryRow) -> bool {
    let c = &row.counts;
    let without_id = c.sent_without_id + c.received_without_id;
    c.sent + c.expected + c.stray + c.foreign + c.unwatched + without_id == 0
}

/// The first example of each irregularity; losses are in the errors.
fn examples(row: &DeliveryRow, style: &Style) -> Vec<String> {
    let text = |(_, example): &(_, Example)| {
        let told = clean(&example.detail.render(style.language));
        let told: String = told.chars().take(EXAMPLE_CHARS_MAX).collect();
        style.say(say!("at {}: {}", nanos(example.at_ns), told))
    };
    row.examples.iter().map(text).collect()
}

/// Rare conditions, one sentence each.
fn rare(row: &DeliveryRow, style: &Style) -> Vec<String> {
    let c = &row.counts;
    style.counts(&[
        (c.excused, say!("{{}} undetermined: the receiver left or the run ended first")),
        (c.after_lost, say!("{{}} arrived after being counted as lost")),
        (c.stray, say!("{{}} reached users outside their audience")),
        (c.foreign, say!("{{}} arrived without being sent by a user of this run")),
        (c.unwatched, say!("{{}} messages were not tracked for all of their receivers")),
        (c.sent_without_id, say!("`match` found no ID in {{}} sent messages")),
        (c.received_without_id, say!("`match` found no ID in {{}} received messages")),
    ])
}
