//! Counts and times.

use throng_base::Said;
use throng_base::units::format_count;
use throng_metrics::DeliveryInterval;

use super::super::columns::{Columns, EXPLAINED, NOTHING, TIMES};
use super::super::report::{TimedRow, explained_note, ink_of, pick_some, slowest_items, step_name};
use super::super::text::{clean, nanos, rate, share, width};
use super::super::{Ink, Style};
use super::{LABEL_COLUMNS, joined, labelled};
use crate::summary::{DeliveryRow, Row, Summary, per_second};
use throng_metrics::Percentile;

/// Attempts, their rate and their failures.
pub(super) fn counts(summary: &Summary, style: &Style) -> String {
    let total = &summary.steps.total;
    if total.count + total.interrupted == 0 {
        return String::new();
    }
    let (count, failed) = (format_count(total.count), format_count(total.failed));
    let part = share(total.failed as f64 / total.count.max(1) as f64);
    let ok = style.say(say!("{} ok/s", rate(total.ok_per_s)));
    let cut_off = style.say(say!("{} cut off at the end", format_count(total.interrupted)));
    let mut items = vec![count, ok, style.say(say!("{} failed ({})", failed, part))];
    let columns = style.columns() - LABEL_COLUMNS;
    if joined(&items, columns) != items.join(" · ") {
        items[2] = style.say(say!("{} failed", failed));
    }
    // Without these, rate and failures would not add up to all attempts.
    let after = summary.ok_after_told().map(format_count);
    items.extend(after.map(|after| style.say(say!("{} ok after the load ended", after))));
    items.extend((total.interrupted > 0).then_some(cut_off));
    let text = joined(&items, columns);
    let ink = if total.failed > 0 { Ink::Bad } else { Ink::Plain };
    let label = style.say(summary.attempts_word());
    let pad = " ".repeat(LABEL_COLUMNS.saturating_sub(width(&label)));
    let text = text.replacen(&items[2], &style.paint(ink, &items[2]), 1);
    format!("{}{pad}{text}\n", style.paint(Ink::Bold, &label))
}

/// Starts that were due and did not happen; empty in most runs.
pub(super) fn starts(summary: &Summary, style: &Style) -> String {
    let population = &summary.users.population;
    let missed = population.unmet + population.dropped;
    if population.wanted <= population.begun && missed == 0 {
        return String::new();
    }
    let each = |count: u64| per_second(count, summary.measured).round() as u64;
    let [wanted, begun] = [population.wanted, population.begun].map(each).map(format_count);
    let mut items = style.counts(&[
        (population.unmet, say!("{{}} starts never happened")),
        (population.dropped, say!("{{}} starts were dropped")),
    ]);
    if population.wanted > 0 {
        items.push(style.say(say!("{} starts scheduled per second", wanted)));
        items.push(style.say(say!("{} started", begun)));
    }
    labelled(say!("schedule"), &joined(&items, style.columns() - LABEL_COLUMNS), style)
}

/// Users on long-lived connections, and how their connections ended.
pub(super) fn users(summary: &Summary, style: &Style) -> String {
    if !summary.is_long_lived() {
        return String::new();
    }
    let connections = &summary.connections.counts;
    let missed = connections.attempted.saturating_sub(connections.opened);
    let items = style.counts(&[
        (summary.users.online_max, say!("{{}} online at peak")),
        (connections.opened, say!("{{}} connections opened")),
        (missed, say!("{{}} not opened")),
        (summary.connections.lifecycle.broken, say!("{{}} broken")),
        (connections.reconnects, say!("{{}} reconnects")),
    ]);
    let room = style.columns() - LABEL_COLUMNS;
    let mut out = match items.is_empty() {
        true => String::new(),
        false => labelled(say!("users"), &joined(&items, room), style),
    };
    let beats = &summary.messages.heartbeats;
    if beats.counts.sent > 0 {
        let mut items = vec![style.say(say!("{} sent", format_count(beats.counts.sent)))];
        if beats.counts.answered + beats.counts.lost > 0 {
            let (lost, part) = (beats.counts.lost, beats.lost_share().unwrap_or(0.0));
            items.push(style.say(say!("{} lost ({})", format_count(lost), share(part))));
        }
        let p99 = beats.latency.percentile(Percentile::P99);
        items.extend(p99.map(|ns| format!("p99 {}", nanos(ns))));
        out += &labelled(say!("heartbeats"), &joined(&items, room), style);
    }
    out
}

/// Deliveries; losses first.
pub(super) fn deliveries(summary: &Summary, most: usize, style: &Style) -> String {
    let is_used = |row: &&DeliveryRow| {
        let unused = DeliveryInterval { step: row.counts.step, ..DeliveryInterval::default() };
        row.counts != unused
    };
    let rows: Vec<&DeliveryRow> = summary.messages.deliveries.iter().filter(is_used).collect();
    let weight = |row: &&DeliveryRow| (row.counts.lost, row.counts.twice, row.counts.expected);
    let shown = pick_some(&rows, most, weight);
    let mut out = String::new();
    for row in &shown {
        let c = &row.counts;
        let mut items = vec![clean(&row.name)];
        items.extend(expected(
            row,
            (style.columns() - LABEL_COLUMNS).saturating_sub(width(&items[0])),
            style,
        ));
        items.extend(style.counts(&[
            (c.twice, say!("{{}} twice")),
            (c.late, say!("{{}} late")),
            (c.out_of_order, say!("{{}} out of order")),
        ]));
        let label = if out.is_empty() { say!("deliveries") } else { Said::default() };
        out += &labelled(label, &joined(&items, style.columns() - LABEL_COLUMNS), style);
    }
    out
}

/// The results of expected deliveries in at most `columns` columns. Counts that add up to the total
/// are never omitted.
fn expected(row: &DeliveryRow, columns: usize, style: &Style) -> Vec<String> {
    let c = &row.counts;
    let [all, delivered, lost, open] =
        [c.expected, c.delivered, c.lost, c.excused].map(format_count);
    let part = share(row.lost_share().unwrap_or(0.0));
    let shared = style.say(say!("{} lost ({})", lost.clone(), part));
    let lost = style.say(say!("{} lost", lost));
    let delivered = style.say(say!("{} of {} delivered", delivered, all.clone()));
    let undetermined = (c.excused > 0).then(|| style.say(say!("{} undetermined", open)));
    let told = |first: &String, lost: &String| {
        [first, lost].into_iter().chain(&undetermined).cloned().collect::<Vec<String>>()
    };
    let all = style.say(say!("{} expected", all));
    let ways = [told(&delivered, &shared), told(&delivered, &lost), told(&all, &lost)];
    let fits = |items: &&Vec<String>| 3 + width(&items.join(" · ")) <= columns;
    ways.iter().find(fits).unwrap_or(&ways[2]).clone()
}

/// The response times: of all steps, the worst steps, transactions and deliveries; and the steps
/// with the most time.
pub(super) fn times(summary: &Summary, most: usize, style: &Style) -> String {
    let mut table = Columns::of(say!("response time"), |row: &TimedRow| row.name.clone())
        .inked(|row| row.ink)
        .times_beside(&summary.generator.lateness, &TIMES, |row| row.latency)
        .table(&timed(summary, most, style));
    if table.len() == 0 {
        return String::new();
    }
    table.leave_out_columns_of(NOTHING);
    let note = if table.holds(EXPLAINED) { explained_note(style) } else { String::new() };
    let slowest = slowest_items(summary, style);
    let slowest = match slowest.is_empty() {
        true => slowest.concat(),
        false => {
            let room = style.columns() - LABEL_COLUMNS;
            labelled(say!("slowest step"), &joined(&slowest[..2], room), style)
        }
    };
    table.render(style) + &note + &slowest
}

fn timed(summary: &Summary, most: usize, style: &Style) -> Vec<TimedRow> {
    let is_timed =
        |row: &&Row| row.kind.is_timed() && row.kind.is_attempt() && !row.latency.is_empty();
    let steps: Vec<&Row> = summary.steps.rows.iter().filter(is_timed).collect();
    let mut rows = Vec::new();
    let attempts = steps.len();
    if attempts > 1 {
        let name = style.say(say!("all {} steps", format_count(attempts as u64)));
        rows.push(TimedRow { name, ink: Ink::Plain, latency: summary.steps.total.latency });
    }
    // A single step has no total row.
    let shown = if attempts > 1 { most } else { most.max(1) };
    for row in pick_some(&steps, shown, |row| (row.latency.at(Percentile::P99), row.count)) {
        rows.push(TimedRow {
            name: step_name(row, summary, style),
            ink: ink_of(row),
            latency: row.latency,
        });
    }
    // Other rows than steps get at least one line, except with minimal space.
    let limit = rows.len().max(most) + usize::from(most > 0);
    let deliveries = summary.messages.deliveries.iter().filter(|row| !row.latency.is_empty());
    rows.extend(deliveries.map(|row| TimedRow {
        name: format!("{} ({})", clean(&row.name), style.say(say!("delivery"))),
        ink: Ink::Plain,
        latency: row.latency,
    }));
    let transactions = summary.steps.transactions.iter().filter(|row| !row.latency.is_empty());
    rows.extend(transactions.map(|row| TimedRow {
        name: format!("{} ({})", clean(&row.name), style.say(say!("transaction"))),
        ink: Ink::Plain,
        latency: row.latency,
    }));
    rows.truncate(limit);
    rows
}
