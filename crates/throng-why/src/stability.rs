//! Whether a long load was stable: response times, failures, and memory and descriptors of both
//! sides, by thirds of blocks. The conditions are those of the finding `drift`; here, each metric
//! is reported with its change.

use std::ops::Range;

use throng_base::Said;
use throng_base::units::format_bytes;
use throng_metrics::host::{STABILITY, Series, is_bytes};

use crate::finding::{Span, count, percent, time};
use crate::record::{Record, Watched};
use crate::stats;

/// Blocks of the load.
const BLOCKS: usize = 30;
/// A load of this length is always evaluated; with `--soak`, a shorter one is, too.
const LONG_S: f64 = 3_600.0;
const ASKED_S_MIN: f64 = 30.0;
/// Minimum growth over the load, and standard errors between the first and the last third.
const GROWTH_MIN: f64 = 0.05;
const APART_MIN: f64 = 6.0;
/// Minimum error share, and minimum growth of it.
const FAILED_MIN: f64 = 0.001;
/// Minimum number of values in a third.
const VALUES_MIN: usize = 5;

/// The trend of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    Stable,
    /// It decreased.
    Falls,
    /// It increased: slower, more failures, more memory.
    Grows,
}

/// A metric in the first and the last third of the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub name: Said,
    /// A word for programs: `response_time`, `failed`, `memory`, or the name of a series.
    pub key: String,
    /// `ns`, `share`, `bytes` or `count`.
    pub unit: &'static str,
    pub first: f64,
    pub last: f64,
    /// The change over the whole load, relative to the middle.
    pub change: f64,
    /// Standard errors between the two thirds.
    pub apart: f64,
    pub trend: Trend,
}

/// The stability of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Stability {
    pub when: Span,
    /// Empty if the load was too short.
    pub measures: Vec<Measured>,
}

impl Measured {
    /// Name, change, and both values.
    pub fn text(&self) -> Said {
        let figure = |value: f64| match self.unit {
            "ns" => time(value),
            "share" => percent(value),
            "bytes" => format_bytes(value.max(0.0)),
            _ => count(value),
        };
        let change = format!("{:+.1} %", self.change * 100.0);
        let (first, last) = (figure(self.first), figure(self.last));
        say!("{} {change} ({first} in the first third, {last} in the last)", (self.name.clone()))
    }
}

impl Stability {
    /// `None` if the load was too short.
    pub fn is_stable(&self) -> Option<bool> {
        let grows = self.measures.iter().any(|it| it.trend == Trend::Grows);
        (!self.measures.is_empty()).then_some(!grows)
    }

    pub fn word(&self) -> &'static str {
        match self.is_stable() {
            Some(true) => "stable",
            Some(false) => "unstable",
            None => "too-short",
        }
    }

    pub fn text(&self) -> Said {
        match self.is_stable() {
            Some(true) => say!("stable"),
            Some(false) => say!("unstable"),
            None => say!("too short to tell"),
        }
    }
}

pub(crate) fn stability(record: &Record) -> Option<Stability> {
    let asked = record.facts.soak;
    let needs = if asked { ASKED_S_MIN } else { LONG_S };
    let steady = record.steady();
    let longest = steady.into_iter().max_by_key(|range| range.len());
    let long = longest
        .filter(|range| range.len() as f64 * record.width() >= needs && range.len() >= BLOCKS);
    match long {
        Some(range) => {
            let when = record.span(&range);
            Some(Stability { when, measures: measures(record, &range) })
        }
        None => asked.then(|| Stability { when: record.measured_span(), measures: Vec::new() }),
    }
}

fn measures(record: &Record, range: &Range<usize>) -> Vec<Measured> {
    let time = record.values(range, |point| point.p50);
    let failed = |point: &crate::timeline::Point| point.failed / point.attempts().max(1.0);
    let memory = record.values(range, |point| point.memory);
    let own = [
        measured((say!("response time (median)"), "response_time", "ns"), &time, GROWTH_MIN),
        of_failures(&record.values(range, failed)),
        measured((say!("memory of throng"), "memory", "bytes"), &memory, GROWTH_MIN),
    ];
    let when = record.span(range);
    let watched = record.facts.watched.iter().filter_map(|row| of_series(row, when));
    own.into_iter().flatten().chain(watched).collect()
}

/// Memory and descriptors of the target.
fn of_series(row: &Watched, when: Span) -> Option<Measured> {
    Series::find(row.base()).filter(|known| known.used_by.contains(&STABILITY))?;
    let unit = if is_bytes(row.base()) { "bytes" } else { "count" };
    let values = row.values(&[when]);
    let (source, name) = (row.source.clone(), row.name.clone());
    let key = format!("{source} {name}");
    measured((say!("{source}: {name}"), &key, unit), &values, GROWTH_MIN)
}

fn of_failures(shares: &[f64]) -> Option<Measured> {
    let name = (say!("failed attempts"), "failed", "share");
    let found = blocks(shares, stats::blocks)?;
    let (first, last) = (stats::mean(&found[0]), stats::mean(&found[2]));
    let mut told = compared(name, &found, GROWTH_MIN);
    let is_more = last >= FAILED_MIN && last >= first * 2.0;
    if told.trend == Trend::Grows && !is_more {
        told.trend = Trend::Stable;
    }
    Some(told)
}

fn measured(name: (Said, &str, &'static str), values: &[f64], least: f64) -> Option<Measured> {
    let is_known = values.iter().any(|value| *value > 0.0);
    let found = blocks(values, stats::block_medians).filter(|_| is_known)?;
    Some(compared(name, &found, least))
}

/// The blocks of each third.
fn blocks(values: &[f64], of: fn(&[f64], usize) -> Vec<f64>) -> Option<[Vec<f64>; 3]> {
    let blocks = of(values, values.len() / BLOCKS);
    let third = blocks.len() / 3;
    if third < VALUES_MIN {
        return None;
    }
    Some([0, 1, 2].map(|at| blocks[at * third..(at + 1) * third].to_vec()))
}

fn compared(
    (name, key, unit): (Said, &str, &'static str),
    thirds: &[Vec<f64>; 3],
    least: f64,
) -> Measured {
    let all = thirds.concat();
    let [first, middle, last] = [0, 1, 2].map(|at| stats::mean(&thirds[at]));
    let slope = stats::slope(&all);
    let whole = stats::mean(&all);
    let change = match whole > 0.0 {
        true => slope.map_or(0.0, |it| it.slope) * all.len() as f64 / whole,
        false => 0.0,
    };
    let change = if change == 0.0 && whole > 0.0 { (last - first) / whole } else { change };
    let apart = stats::apart(&thirds[0], &thirds[2]);
    let is_sure = change.abs() >= least && apart.abs() >= APART_MIN;
    let trend = match () {
        () if is_sure && last > first && middle >= first => Trend::Grows,
        () if is_sure && last < first && middle <= first => Trend::Falls,
        () => Trend::Stable,
    };
    // Equal values have no error.
    let apart = if apart.is_finite() { apart } else { apart.signum() * 1e3 };
    Measured { name, key: key.to_string(), unit, first, last, change, apart, trend }
}
