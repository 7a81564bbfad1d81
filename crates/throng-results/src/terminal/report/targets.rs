//! Results by address, if there are several, to find slow or failing ones.

use throng_metrics::Percentile;

use super::super::Style;
use super::super::columns::{BRIEF, Columns, Time};
use super::super::text::clean;
use super::best_left_out;
use crate::summary::{InstanceRow, Summary, TargetRow};

pub(super) fn targets(summary: &Summary, style: &Style) -> String {
    let more =
        say!("… and {{}} addresses with better results; `throng report --json` lists all of them");
    let weight = |row: &TargetRow| {
        (row.counts.failed() + not_opened(row), row.latency.at(Percentile::P99), row.counts.count)
    };
    best_left_out(&summary.parts.targets, weight, &by_address(summary, &BRIEF), more, style)
}

pub(crate) fn by_address<'a>(summary: &'a Summary, which: &[Time]) -> Columns<'a, TargetRow> {
    Columns::of(say!("address"), move |row: &TargetRow| name(row, summary))
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
fn name(row: &TargetRow, summary: &Summary) -> String {
    let shared =
        summary.parts.targets.iter().filter(|other| other.address == row.address).count() > 1;
    match row.address {
        Some(address) if !shared => address.to_string(),
        Some(address) => format!("{} {address}", clean(&row.target)),
        None => clean(&row.target),
    }
}
