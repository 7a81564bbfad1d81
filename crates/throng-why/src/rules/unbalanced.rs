//! Connections are unevenly spread over the addresses of a target.

use throng_metrics::TargetInterval;

use crate::finding::{Code, Finding, Judgement, Level, count};
use crate::record::Record;

/// Minimum mean number of connections per address.
const CONNECTIONS_MIN: f64 = 100.0;
/// Minimum ratio of the maximum to the mean.
const RATIO_MIN: f64 = 1.2;
/// Minimum distance of the maximum from the mean in standard errors; with a few addresses, one in
/// 100,000.
const APART_MIN: f64 = 4.5;

pub(super) fn judge(record: &Record) -> Judgement {
    let mut targets: Vec<u16> = record.whole.parts.targets.iter().map(|row| row.target).collect();
    targets.dedup();
    Ok(targets.into_iter().filter_map(|target| uneven(record, target)).collect())
}

fn uneven(record: &Record, target: u16) -> Option<Finding> {
    let own = |row: &&TargetInterval| row.target == target;
    let rows: Vec<&TargetInterval> = record.whole.parts.targets.iter().filter(own).collect();
    let opened = |row: &&&TargetInterval| row.connections_opened;
    let all: u64 = rows.iter().map(|row| row.connections_opened).sum();
    let mean = all as f64 / rows.len() as f64;
    let most = rows.iter().max_by_key(opened)?;
    let least = rows.iter().min_by_key(opened)?;
    let largest = most.connections_opened as f64;
    if rows.len() < 2 || mean < CONNECTIONS_MIN || largest < mean * RATIO_MIN {
        return None;
    }
    if (largest - mean) / mean.sqrt() < APART_MIN {
        return None;
    }
    let name = |row: &TargetInterval| row.address.map(|it| it.to_string());
    let name = |row: &TargetInterval| name(row).unwrap_or_default();
    let text = say!(
        "{} received {:.1} times the mean number of connections",
        name(most),
        (largest / mean)
    );
    let found = Finding::new(Code::Unbalanced, Level::Likely, text, record.measured_span())
        .on(&["opened"])
        .figure(say!("connections to {}: {}", name(most), count(largest)))
        .figure(say!("connections to {}: {}", name(least), {
            count(least.connections_opened as f64)
        }))
        .not(
            say!("chance"),
            say!("with this many connections, chance does not explain the difference"),
        )
        .then(say!(
            "check that every address accepts connections: `throng report --details` lists them"
        ));
    Some(found)
}
