//! Detects seconds in which all threads of a target's host waited for the same resource, as counted
//! by its kernel (pressure stall information), and whether responses were slower in them.

use crate::finding::{Finding, Level, Span, percent, time};
use crate::record::{Record, Watched};
use crate::stats;

/// Minimum share of the time in which all threads wait.
const SHARE_MIN: f64 = 0.1;
/// Minimum number of such readings.
const READINGS_MIN: usize = 3;
/// Ratio of the median response time to that of other seconds.
const SLOWER_MIN: f64 = 1.5;
const POINTS_MIN: usize = 3;

/// The waiting time of a host.
pub(crate) struct Stalled<'a> {
    pub(crate) source: &'a str,
    pub(crate) most: f64,
    pub(crate) when: Span,
    level: Level,
    /// Median response times during that time and otherwise.
    slower: Option<(f64, f64)>,
}

impl Stalled<'_> {
    /// Adds the count and the symptoms to the finding.
    pub(crate) fn tell(&self, found: Finding) -> Finding {
        let found = found.on(&["p50"]).figure(say!(
            "maximum share of time in which all threads waited: {}",
            percent(self.most)
        ));
        let found = match self.slower {
            Some((then, otherwise)) => found.figure(say!(
                "median response time: {} during this time, {} otherwise",
                time(then),
                time(otherwise)
            )),
            None => found.figure(say!("this was the case throughout the run")),
        };
        Finding { level: self.level, ..found }
    }
}

/// The host with the most waiting; `None` if responses were not slower.
pub(crate) fn stalled<'a>(record: &Record<'a>, series: &str) -> Option<Stalled<'a>> {
    let all = record.watched(series).filter_map(|row| of(record, row));
    all.max_by(|one, other| one.most.total_cmp(&other.most))
}

fn of<'a>(record: &Record, row: &'a Watched) -> Option<Stalled<'a>> {
    let is_over = |(_, share): &&(f64, f64)| *share >= SHARE_MIN;
    let over: Vec<f64> = row.points.iter().filter(is_over).map(|(at, _)| *at).collect();
    let (first, last) = (*over.first()?, *over.last()?);
    if over.len() < READINGS_MIN {
        return None;
    }
    let (mut then, mut otherwise) = (Vec::new(), Vec::new());
    for (place, point) in record.points().iter().enumerate() {
        if point.timed == 0.0 || point.measured == 0.0 || !record.is_trusted(point) {
            continue;
        }
        // A reading covers the time before it.
        let at = (place as f64 + 0.5) * record.width();
        let next = row.points.partition_point(|(read, _)| *read < at);
        match row.points.get(next) {
            Some((_, share)) if *share >= SHARE_MIN => then.push(point.p50),
            Some(_) => otherwise.push(point.p50),
            None => {}
        }
    }
    if then.len() < POINTS_MIN {
        return None;
    }
    let slower = match otherwise.len() >= POINTS_MIN {
        true => Some((stats::median(&then)?, stats::median(&otherwise)?)),
        false => None,
    };
    if slower.is_some_and(|(then, otherwise)| then < otherwise * SLOWER_MIN) {
        return None;
    }
    let level = if slower.is_some() { Level::Certain } else { Level::Hint };
    let (source, most) = (row.source.as_str(), row.largest()?.min(1.0));
    Some(Stalled { source, most, when: Span::new(first, last), level, slower })
}
