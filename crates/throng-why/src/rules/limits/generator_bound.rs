//! throng or its host could not generate the load. Evaluated first, because it explains many other
//! findings.

use crate::finding::{Code, Finding, Judgement, Level, percent, time};
use crate::record::{LATENESS_NS_MAX, Record};

/// Share of late seconds; the verdict of a run warns from half of it on.
const LATE_SHARE_MAX: f64 = 0.2;
/// Minimum number of late seconds, so that a single pause of a busy host does not count.
const LATE_POINTS_MIN: usize = 5;

pub(crate) fn judge(record: &Record) -> Judgement {
    let points = record.points().iter();
    let measured: Vec<_> = points.filter(|point| point.measured > 0.0).collect();
    let late = measured.iter().filter(|point| !record.is_trusted(point)).count();
    let share = late as f64 / measured.len().max(1) as f64;
    let is_often = late >= LATE_POINTS_MIN && share >= LATE_SHARE_MAX;
    let when = record.measured_span();
    let (level, text) = match record.facts.generator.first() {
        Some(reason) => (Level::Certain, reason.clone()),
        None if is_often => {
            let often = say!("throng was behind schedule in {} of all seconds", percent(share));
            (Level::Likely, often)
        }
        None => return Ok(Vec::new()),
    };
    let of = |figure: fn(&&&crate::timeline::Point) -> f64| {
        measured.iter().map(|point| figure(&point)).fold(0.0, f64::max)
    };
    let mut found = Finding::new(Code::GeneratorBound, level, text, when)
        .on(&["lateness_p99", "host_cpu"])
        .figure(say!("highest lateness p99: {}", time(of(|point| point.lateness))))
        .figure(say!(
            "seconds in which throng was more than {} late: {late} of {}",
            time(LATENESS_NS_MAX),
            measured.len()
        ))
        .figure(say!(
            "maximum CPU usage: busiest load thread {}, host {}",
            percent(of(|point| point.shard_cpu)),
            percent(of(|point| point.host_cpu))
        ));
    for reason in record.facts.generator.iter().skip(1) {
        found = found.figure(reason.clone());
    }
    let next = say!("run `throng doctor` to see what limits this host, or use more machines");
    Ok(vec![found.then(next)])
}
