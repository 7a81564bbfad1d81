//! Sections about long-lived connections: the stages that users reached, how many were online, and
//! how connections ended. Omitted in runs without such users.

use throng_base::Said;
use throng_base::units::{format_bytes, format_count};
use throng_metrics::{Cause, Percentile, Stage};

use super::super::columns::{BRIEF, Columns, NOTHING, P50, P99, Time};
use super::super::table::Cell;
use super::super::text::{clean, nanos, share};
use super::super::{Ink, Style};
use super::{ROWS_MAX, best_left_out, labelled, more, note, section};
use crate::summary::{PhaseRow, ResidenceRow, Row, StageRow, Summary};

/// Each stage of a connection's life, with the users that reached it and the failures.
pub(super) fn funnel(summary: &Summary, style: &Style) -> String {
    if !summary.is_long_lived() {
        return String::new();
    }
    let table = stages(say!("funnel"), &BRIEF, style).table(&summary.connections.stages);
    table.render(style) + &stage_failures(summary, style)
}

pub(crate) fn stages<'a>(head: Said, which: &[Time], style: &'a Style) -> Columns<'a, StageRow> {
    let cut_off = |row: &StageRow| row.cut_off.map_or_else(|| NOTHING.into(), Cell::number);
    Columns::of(head, move |row: &StageRow| style.say(stage_name(row.stage)))
        .count(say!("entered"), |row| row.began)
        .count(say!("passed"), |row| row.ok)
        .bad(say!("failed"), |row| row.failed)
        .if_any(|row| row.failed > 0)
        .cell(say!("cut off"), cut_off)
        .if_any(|row| row.cut_off.unwrap_or(0) > 0)
        .times(which, |row| row.latency)
}

fn stage_name(stage: Stage) -> Said {
    match stage {
        Stage::FirstMessage => say!("first message"),
        stage => stage.text(),
    }
}

/// The failures of stages and their blame. The meaning of causes is in the errors of steps.
fn stage_failures(summary: &Summary, style: &Style) -> String {
    type Failed = (Stage, Cause, u64);
    let failures = |row: &StageRow| -> Vec<Failed> {
        row.errors.iter().map(|(cause, count)| (row.stage, *cause, *count)).collect()
    };
    let mut rows: Vec<Failed> = summary.connections.stages.iter().flat_map(failures).collect();
    if rows.is_empty() {
        return String::new();
    }
    rows.sort_by_key(|(stage, cause, count)| (std::cmp::Reverse(*count), *stage, *cause));
    let table = Columns::of(say!("failed in"), |row: &Failed| style.say(stage_name(row.0)))
        .bad(say!("count"), |row| row.2)
        .cell(say!("cause"), |row| row.1.word())
        .words()
        .cell(say!("blame"), |row| style.say(row.1.blame().text()))
        .words()
        .table(rows.iter().take(ROWS_MAX));
    format!("\n{}{}", table.render(style), more(rows.len(), style))
}

/// Users online by phase.
pub(super) fn online(summary: &Summary, style: &Style) -> String {
    if !summary.is_long_lived() {
        return String::new();
    }
    let phases: Vec<&PhaseRow> = summary.parts.phases.iter().filter(|phase| phase.begun).collect();
    let has_held = phases.iter().any(|phase| phase.held_seconds > 0);
    let name = |phase: &&PhaseRow| match phase.name.is_empty() {
        true => style.say(say!("all")),
        false => clean(&phase.name),
    };
    let at_the_end = |phase: &&PhaseRow| {
        let is_short = phase.users_online < phase.users_planned.unwrap_or(0);
        let ink = if is_short { Ink::Warn } else { Ink::Plain };
        Cell::new(ink, format_count(phase.users_online))
    };
    let columns = Columns::of(say!("online"), name)
        .cell(say!("at the end"), at_the_end)
        .count(say!("least"), |phase| phase.users_online_min)
        .count(say!("most"), |phase| phase.users_online_max)
        .count(say!("opened"), |phase| phase.connections_opened)
        .rate(say!("opened/s"), |phase| phase.opened_per_s)
        .bad(say!("broken"), |phase| phase.broken)
        .cell(say!("paused"), |phase| format!("{} s", format_count(phase.held_seconds)))
        .if_any(|_| has_held);
    let more =
        say!("… and {{}} phases with better results; `throng report --json` lists all of them");
    let held = match has_held {
        true => {
            note(say!("paused: the generator was at one of its limits and added no users"), style)
        }
        false => String::new(),
    };
    let weight = |phase: &&PhaseRow| (phase.broken, phase.users_online_max);
    best_left_out(&phases, weight, &columns, more, style) + &held
}

/// Unsolicited messages.
pub(super) fn pushed(summary: &Summary, style: &Style) -> String {
    if summary.steps.pushed.iter().all(|row| row.count == 0) {
        return String::new();
    }
    let mut columns = Columns::of(say!("pushed"), |row: &Row| clean(&row.name))
        .count(say!("messages"), |row| row.count)
        .rate(say!("per second"), |row| row.ok_per_s)
        .cell(say!("in"), |row| format_bytes(row.bytes_in as f64));
    // Streams of messages have times between messages.
    for (head, time) in [(say!("gap p50"), P50), (P99.head(), P99), (Time::Max.head(), Time::Max)] {
        columns = columns
            .cell(head, move |row| time.text(&row.latency))
            .if_any(|row| !row.latency.is_empty());
    }
    let more = say!("… and {{}} less frequent messages; `throng report --json` lists all of them");
    best_left_out(&summary.steps.pushed, |row| row.count, &columns, more, style)
}

/// Which side closed connections, and how; complete lives; heartbeats and kernel data.
pub(super) fn lives(summary: &Summary, style: &Style) -> String {
    let connections = &summary.connections.counts;
    let ends = [
        (connections.closed_by_us, say!("{{}} by throng")),
        (connections.reset_by_us, say!("{{}} reset by throng")),
        (connections.vanished, say!("{{}} silently dropped by throng")),
        (connections.half_closed, say!("{{}} half-closed by throng")),
        (connections.closed_by_target, say!("{{}} by the target")),
        (connections.reset, say!("{{}} reset by the target")),
        (connections.timed_out, say!("{{}} timed out")),
    ];
    let mut out = section(say!("closed"), &ends, style);
    let lives = &summary.connections.lifecycle;
    let mut items = style.counts(&[
        (lives.begun, say!("{{}} started")),
        (lives.complete, say!("{{}} complete")),
        (lives.broken, say!("{{}} broken")),
    ]);
    let whole = summary.complete_share().map(share);
    items.extend(whole.map(|whole| {
        style.say(say!("{} of the closed connections had a complete life cycle", whole))
    }));
    for (label, items) in [
        (say!("life cycle"), items),
        (say!("heartbeats"), heartbeats(summary, style)),
        (say!("TCP"), tcp(summary, style)),
    ] {
        if !items.is_empty() {
            out.push_str(&labelled(label, &[items], style));
        }
    }
    out
}

fn heartbeats(summary: &Summary, style: &Style) -> Vec<String> {
    let (beats, l) = (&summary.messages.heartbeats, &summary.messages.heartbeats.latency);
    if beats.counts.sent == 0 {
        return Vec::new();
    }
    let [sent, answered, lost] =
        [beats.counts.sent, beats.counts.answered, beats.counts.lost].map(format_count);
    let lost_share = share(beats.lost_share().unwrap_or(0.0));
    let is_answered = beats.counts.answered + beats.counts.lost > 0;
    let mut items = vec![style.say(say!("{} sent", sent))];
    if is_answered {
        items.push(style.say(say!("{} answered", answered)));
        items.push(style.say(say!("{} lost ({})", lost, lost_share)));
    }
    let without = if is_answered { beats.counts.without_answer } else { 0 };
    items.extend(style.counts(&[
        (beats.counts.interrupted, say!("{{}} interrupted")),
        (without, say!("{{}} sent with no reply expected")),
        (beats.counts.skipped, say!("{{}} not sent because throng fell behind")),
        (beats.counts.faulty, say!("{{}} deliberately late, duplicated or not sent")),
    ]));
    if !l.is_empty() {
        items.extend(l.percentile(Percentile::P50).map(|ns| format!("p50 {}", nanos(ns))));
        items.extend(l.percentile(Percentile::P99).map(|ns| format!("p99 {}", nanos(ns))));
        items.push(style.say(say!("max {}", nanos(l.max_ns))));
    }
    items
}

fn tcp(summary: &Summary, style: &Style) -> Vec<String> {
    let (tcp, l) = (&summary.connections.tcp, &summary.connections.tcp.round_trip);
    if tcp.count == 0 {
        return Vec::new();
    }
    let mut items = vec![style.say(say!("{} sampled", format_count(tcp.count)))];
    if !l.is_empty() {
        items.push(style.say(say!("round trip p50 {}", nanos(l.at(Percentile::P50)))));
        items.extend(l.percentile(Percentile::P99).map(|ns| format!("p99 {}", nanos(ns))));
    }
    let again = format!("{:.2}", tcp.retransmits as f64 / tcp.count as f64);
    items.push(style.say(say!("{} retransmitted segments per connection", again)));
    let backlog = format_bytes(tcp.backlog_bytes_max as f64);
    items.push(style.say(say!("{} backlog at peak", backlog)));
    items
}

/// Lifetimes of connections by the side that closed them. Shown with `--details`.
pub(super) fn residence(summary: &Summary, style: &Style) -> String {
    if summary.connections.residence.is_empty() {
        return String::new();
    }
    by_ending(&BRIEF, style).table(&summary.connections.residence).render(style)
}

pub(crate) fn by_ending<'a>(which: &[Time], style: &'a Style) -> Columns<'a, ResidenceRow> {
    let name = move |row: &ResidenceRow| match row.unopened {
        true => style.say(say!("{} before the connection was open", style.say(row.ended.text()))),
        false => style.say(row.ended.text()),
    };
    Columns::of(say!("connections ended"), name)
        .count(say!("count"), |row| row.time.count)
        .times(&[Time::Min, Time::Mean], |row| row.time)
        .times(which, |row| row.time)
}
