//! One of several addresses of a target is slower than the others, or fails.

use throng_metrics::TargetInterval;

use crate::finding::{Code, Finding, Judgement, Level, percent, time};
use crate::record::Record;
use crate::stats;

/// Attempts at each address. Users wait longer and longer before they try one again that is dead,
/// so it has fewer: those at which most attempts fail need only these.
const ATTEMPTS_MIN: u64 = 200;
const DEAD_ATTEMPTS_MIN: u64 = 20;
/// How much slower, or how much more often it fails.
const RATIO_MIN: f64 = 1.5;
/// Share of failures at it.
const FAILED_MIN: f64 = 0.005;
/// Level of significance, over all addresses.
const CHANCE_MAX: f64 = 0.01;

pub(super) fn judge(record: &Record) -> Judgement {
    let rows = record.whole.targets.iter();
    let mut services: Vec<u16> = rows.map(|row| record.service(row.place.target)).collect();
    services.sort_unstable();
    services.dedup();
    Ok(services.into_iter().filter_map(|service| worst(record, service)).collect())
}

fn worst(record: &Record, service: u16) -> Option<Finding> {
    let is_own = |row: &TargetInterval| record.service(row.place.target) == service;
    let is_enough = |row: &TargetInterval| match row.failed() * 2 > row.count {
        true => row.count >= DEAD_ATTEMPTS_MIN,
        false => row.count >= ATTEMPTS_MIN,
    };
    let own = |row: &&TargetInterval| is_own(row) && is_enough(row);
    let rows: Vec<&TargetInterval> = record.whole.targets.iter().filter(own).collect();
    if rows.len() < 2 {
        return None;
    }
    let others = |row: &TargetInterval| -> Vec<&TargetInterval> {
        rows.iter().copied().filter(|it| it.place != row.place).collect()
    };
    let counts = |row: &TargetInterval| (row.failed(), row.count);
    let sum = |rows: &[&TargetInterval]| {
        rows.iter().fold((0, 0), |sum, row| (sum.0 + row.failed(), sum.1 + row.count))
    };
    let chances: Vec<f64> = rows
        .iter()
        .map(|row| {
            let z = stats::shares_apart(counts(row), sum(&others(row)));
            if z > 0.0 { stats::chance_beyond(z) } else { 1.0 }
        })
        .collect();
    let significant = stats::holm(&chances, CHANCE_MAX);
    let fails = rows.iter().zip(significant).find(|(row, is_found)| {
        let (failed, all) = counts(row);
        let others = others(row);
        let shares = others.iter().map(|it| it.failed() as f64 / it.count as f64);
        let worst = shares.fold(0.0, f64::max);
        let share = failed as f64 / all as f64;
        *is_found && share >= FAILED_MIN && share >= worst * RATIO_MIN
    });
    if let Some((row, _)) = fails {
        return Some(failing(record, row, sum(&others(row))));
    }
    // It has the connections of another one, which was closed: they take longer to open.
    let is_fuller = |row: &&TargetInterval| {
        row.connections_attempted > 0 && row.connections_opened > row.connections_attempted
    };
    if rows.iter().any(is_fuller) {
        return None;
    }
    let middle = |row: &TargetInterval| row.latency.value_at(0.5) as f64;
    let slow = rows.iter().find(|row| {
        let slowest = others(row).iter().map(|it| middle(it)).fold(0.0, f64::max);
        slowest > 0.0 && middle(row) >= slowest * RATIO_MIN
    })?;
    let slowest = others(slow).iter().map(|it| middle(it)).fold(0.0, f64::max);
    Some(slower(record, slow, middle(slow), slowest))
}

fn name(row: &TargetInterval) -> String {
    row.place.address.map(|address| address.to_string()).unwrap_or_default()
}

fn failing(record: &Record, row: &TargetInterval, others: (u64, u64)) -> Finding {
    let share = percent(row.failed() as f64 / row.count as f64);
    let theirs = percent(others.0 as f64 / others.1.max(1) as f64);
    let text = say!("{share} of the attempts at {} fail, {theirs} at the others", name(row));
    let figure = say!("failed at {}: {} of {}", name(row), (row.failed()), (row.count));
    finish(
        record,
        row,
        Finding::new(Code::OneBadAddress, Level::Likely, text, record.measured_span())
            .on(&["failed"])
            .figure(figure),
    )
}

fn slower(record: &Record, row: &TargetInterval, own: f64, others: f64) -> Finding {
    let text = say!(
        "the median response time of {} is {}; the others have {} or less",
        name(row),
        time(own),
        time(others)
    );
    let when = record.measured_span();
    let figure =
        say!("median of {}: {}; of the slowest other: {}", name(row), time(own), { time(others) });
    finish(record, row, {
        Finding::new(Code::OneBadAddress, Level::Likely, text, when).on(&["p50"]).figure(figure)
    })
}

fn finish(record: &Record, row: &TargetInterval, found: Finding) -> Finding {
    let target = record.facts.targets.get(usize::from(row.place.target)).cloned();
    found
        .figure(say!("attempts at {}: {}", name(row), (row.count)))
        .not(say!("chance"), say!("all addresses with enough attempts are compared"))
        .then(say!("test this address alone with `resolve` (docs/connections.md): {}", {
            target.unwrap_or_default()
        }))
}
