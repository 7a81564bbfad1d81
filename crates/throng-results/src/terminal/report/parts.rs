//! Results by address, instance, machine label, session and machine, if there are several.

use std::cmp::Reverse;

use throng_base::Said;
use throng_base::units::format_bytes;
use throng_metrics::Percentile;

use super::super::Style;
use super::super::columns::{BRIEF, Columns, NOTHING, Time};
use super::super::table::Cell;
use super::super::text::{clean, nanos, share};
use super::{best_left_out, left_out, note, pick};
use crate::summary::{InstanceRow, LabelRow, MachineRow, Row, SessionRow, Summary, TargetRow};

/// By address, if there are several, to find slow or failing ones.
pub(super) fn targets(summary: &Summary, style: &Style) -> String {
    let more =
        say!("… and {{}} addresses with better results; `throng report --json` lists all of them");
    let weight = |row: &TargetRow| {
        (row.counts.failed() + not_opened(row), row.latency.at(Percentile::P99), row.counts.count)
    };
    best_left_out(&summary.parts.targets, weight, &by_address(summary, &BRIEF), more, style)
}

pub(crate) fn by_address<'a>(summary: &'a Summary, which: &[Time]) -> Columns<'a, TargetRow> {
    Columns::of(say!("address"), move |row: &TargetRow| address_name(row, summary))
        .count(summary.attempts_word(), |row| row.counts.count)
        .bad(say!("failed"), |row| row.counts.failed())
        .rate(say!("ok/s"), |row| row.ok_per_s)
        .times(which, |row| row.latency)
        .count(say!("opened"), |row| row.counts.connections_opened)
        .bad(say!("unopened"), not_opened)
}

fn not_opened(row: &TargetRow) -> u64 {
    row.counts.connections_failed.saturating_add(row.counts.connections_passed_over)
}

/// Responses of each instance behind a load balancer, the worst first.
pub(super) fn instances(summary: &Summary, style: &Style) -> String {
    let more =
        say!("… and {{}} instances with better results; `throng report --json` lists all of them");
    let weight = |row: &InstanceRow| (row.failed, row.latency.at(Percentile::P99), row.count);
    let columns = by_instance(summary, &BRIEF);
    best_left_out(&summary.parts.instances, weight, &columns, more, style)
}

pub(crate) fn by_instance<'a>(summary: &'a Summary, which: &[Time]) -> Columns<'a, InstanceRow> {
    let rows = &summary.parts.instances;
    let several = rows.iter().any(|row| row.target != rows[0].target);
    let name = move |row: &InstanceRow| match several {
        true => format!("{} {}", clean(&row.target), clean(&row.instance)),
        false => clean(&row.instance),
    };
    Columns::of(say!("instance"), name)
        .count(say!("responses"), |row| row.count)
        .bad(say!("failed"), |row| row.failed)
        .rate(say!("ok/s"), |row| row.ok_per_s)
        .times(which, |row| row.latency)
}

/// The address; with its target if several share it or it has no address.
fn address_name(row: &TargetRow, summary: &Summary) -> String {
    let shared =
        summary.parts.targets.iter().filter(|other| other.address == row.address).count() > 1;
    match row.address {
        Some(address) if !shared => address.to_string(),
        Some(address) => format!("{} {address}", clean(&row.target)),
        None => clean(&row.target),
    }
}

/// All attempts of a label, or one of its steps.
pub(crate) struct LabelLine<'a> {
    label: &'a LabelRow,
    step: Option<&'a Row>,
}

impl LabelLine<'_> {
    fn row(&self) -> &Row {
        self.step.unwrap_or(&self.label.total)
    }
}

/// Includes the steps of each label, if there are several.
pub(crate) fn label_lines(summary: &Summary) -> Vec<LabelLine<'_>> {
    let lines = summary.parts.labels.iter().flat_map(|label| {
        let steps = label.steps.iter().filter(move |_| label.steps.len() > 1);
        [None].into_iter().chain(steps.map(Some)).map(move |step| LabelLine { label, step })
    });
    lines.collect()
}

pub(crate) fn by_label<'a>(
    summary: &'a Summary,
    which: &[Time],
    style: &'a Style,
) -> Columns<'a, LabelLine<'a>> {
    let users = |line: &LabelLine| match line.label.users_max {
        0 => NOTHING.into(),
        users => Cell::number(users),
    };
    let step = move |line: &LabelLine| {
        line.step.map_or_else(|| style.say(say!("all")), |row| clean(&row.name))
    };
    Columns::of(say!("by label"), move |line: &LabelLine| label_name(line.label, style))
        .cell(say!("step"), step)
        .words()
        .if_any(|line| line.step.is_some())
        .count(say!("machines"), |line| line.label.machines)
        .cell(say!("users"), users)
        .count(summary.attempts_word(), |line| line.row().count)
        .bad(say!("failed"), |line| line.row().failed)
        .rate(say!("ok/s"), |line| line.row().ok_per_s)
        .times(which, |line| line.row().latency)
}

/// By label, for example by region.
pub(super) fn labels(summary: &Summary, style: &Style) -> String {
    let more =
        say!("… and {{}} rows with better results; `throng report --json` lists all of them");
    let weight = |line: &LabelLine| (line.row().failed, line.row().latency.at(Percentile::P99));
    let totals = summary.parts.labels.iter().map(|label| LabelLine { label, step: None });
    let totals: Vec<LabelLine> = totals.collect();
    let steps = match summary.parts.labels.iter().any(|row| row.steps.len() > 1) {
        true => note(say!("by step: `throng report --json`"), style),
        false => String::new(),
    };
    best_left_out(&totals, weight, &by_label(summary, &BRIEF, style), more, style) + &steps
}

/// The label and its value; a description for machines without it and for merged values.
fn label_name(row: &LabelRow, style: &Style) -> String {
    let label = clean(&row.label);
    match &row.value {
        Some(value) => format!("{label}={}", clean(value)),
        None if row.others > 0 => style.say(say!("{} other values of {}", row.others, label)),
        None => style.say(say!("no {}", label)),
    }
}

/// Iterations by session, if a scenario has several.
pub(super) fn sessions(summary: &Summary, style: &Style) -> String {
    let more =
        say!("… and {{}} sessions with better results; `throng report --json` lists all of them");
    let weight = |row: &SessionRow| (row.failed, row.time.at(Percentile::P99), row.begun);
    best_left_out(&summary.parts.sessions, weight, &by_session(&BRIEF), more, style)
}

pub(crate) fn by_session<'a>(which: &[Time]) -> Columns<'a, SessionRow> {
    Columns::of(say!("session"), |row: &SessionRow| clean(&row.name))
        .count(say!("started"), |row| row.begun)
        .count(say!("finished"), |row| row.finished)
        .bad(say!("failed"), |row| row.failed)
        .count(say!("interrupted"), |row| row.interrupted)
        .rate(say!("finished/s"), |row| row.finished_per_s)
        .times(which, |row| row.time)
}

/// Each machine; if there are many, those with the most lateness first.
pub(super) fn machines(summary: &Summary, style: &Style) -> String {
    if summary.parts.machines.is_empty() {
        return String::new();
    }
    let late = |it: &MachineRow| it.generator.lateness.at(Percentile::P99);
    let mut shown: Vec<_> = pick(&summary.parts.machines, late);
    shown.sort_by_key(|it| Reverse(late(it)));
    let table = Columns::of(say!("machine"), |it: &MachineRow| clean(&it.name))
        .count(say!("shards"), |it| it.shards)
        .cell(say!("cores"), |it| format!("{:.2}", it.generator.cores))
        .cell(say!("memory"), |it| format_bytes(it.generator.memory_bytes_max as f64))
        .cell(say!("host"), |it| share(it.generator.host_cpu_mean))
        .cell(say!("lateness p99"), move |it| nanos(late(it)))
        .cell(Said::of_others("max"), |it| nanos(it.generator.lateness.max_ns))
        .table(shown.iter().copied());
    let more = say!("… and {{}} more: `throng report --json` lists all");
    table.render(style) + &left_out(summary.parts.machines.len(), shown.len(), more, style)
}
