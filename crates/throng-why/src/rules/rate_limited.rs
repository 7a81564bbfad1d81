//! A rate limiter responds instead of the target: 429, or 503 while the rate of successes is more
//! constant than a queue would allow.

use std::ops::Range;

use crate::finding::{Code, Finding, Judgement, Level, count, percent, rate, time};
use crate::record::Record;
use crate::stats;
use crate::timeline::Point;

/// Minimum number of rejections, and their share of all attempts.
const REFUSED_MIN: f64 = 20.0;
const SHARE_MIN: f64 = 0.01;
/// Spread of the successes per second relative to their median. Queues spread by a few percent.
const FLAT_MAX: f64 = 0.02;
/// Minimum number of points with rejections to determine whether successes are constant.
const POINTS_MIN: usize = 8;
/// A limiter responds immediately: maximum ratio of the median response time to that before.
const SLOWER_MAX: f64 = 1.5;
/// How far a round number may be from the rate.
const ROUND_MAX: f64 = 0.02;

pub(super) fn judge(record: &Record) -> Judgement {
    let limited = |point: &Point| point.limited;
    let either = |point: &Point| point.limited + point.unavailable;
    let all = record.all();
    let attempts = record.sum(&all, Point::attempts).max(1.0);
    let enough = |refused: f64| refused >= REFUSED_MIN && refused / attempts >= SHARE_MIN;
    if enough(record.sum(&all, limited)) {
        return Ok(found(record, limited, Level::Certain, 429).into_iter().collect());
    }
    if enough(record.sum(&all, either)) {
        return Ok(found(record, either, Level::Likely, 503).into_iter().collect());
    }
    Ok(Vec::new())
}

/// A typical configured limit: 1, 2, 2.5 or 5 times a power of ten, per second or per minute.
fn round_limit(per_s: f64) -> Option<String> {
    let near = |value: f64| {
        let scale = 10f64.powf(value.log10().floor());
        let round = [1.0, 2.0, 2.5, 5.0, 10.0].map(|it| it * scale);
        round.into_iter().find(|round| (round - value).abs() <= round * ROUND_MAX)
    };
    let of_second = near(per_s).map(|limit| format!("{}/s", count(limit)));
    of_second.or_else(|| near(per_s * 60.0).map(|limit| format!("{}/min", count(limit))))
}

fn found(
    record: &Record,
    refused: impl Fn(&Point) -> f64,
    level: Level,
    code: u16,
) -> Option<Finding> {
    let points = record.points();
    let is_limited = |at: &usize| {
        let point = &points[*at];
        refused(point) >= (point.attempts() * SHARE_MIN).max(1.0)
    };
    let first = (0..points.len()).find(is_limited)?;
    let last = (0..points.len()).rev().find(is_limited)?;
    let range = first..last + 1;
    // The first and the last second may be incomplete.
    let inner: Range<usize> = match range.len() {
        short if short < 4 => range.clone(),
        _ => range.start + 1..range.end - 1,
    };
    let (good, off) = stats::spread(&record.rates(&inner, |point| point.ok))?;
    let is_flat = inner.len() >= POINTS_MIN && off <= good * FLAT_MAX;
    let median = |range: Range<usize>| {
        let times = record.values(&range, |point| point.p50);
        stats::median(&times.into_iter().filter(|it| *it > 0.0).collect::<Vec<_>>())
    };
    let (before, during) = (median(0..first), median(inner.clone()));
    let is_fast = before.zip(during).is_none_or(|(before, now)| now <= before * SLOWER_MAX);
    if level != Level::Certain && !(is_flat && is_fast) {
        return None;
    }
    let sum = record.sum(&range, &refused);
    let share = sum / record.sum(&range, Point::attempts).max(1.0);
    let when = record.span(&range);
    let text = match round_limit(good).filter(|_| is_flat) {
        Some(limit) => say!(
            "the target refused {} requests with {code}; successes stayed at {}",
            count(sum),
            limit
        ),
        None => say!("the target refused {} requests with {code}", count(sum)),
    };
    let mut finding = Finding::new(Code::RateLimited, level, text, when)
        .on(&["ok", "failed"])
        .figure(say!("status {code}: {} of the attempts", percent(share)))
        .figure(say!("successes per second: median {}, spread {}", rate(good), {
            percent(off / good.max(1.0))
        }));
    if let Some((before, now)) = before.zip(during) {
        let figure = say!(
            "median response time: {} before, {} while requests were refused",
            time(before),
            time(now)
        );
        finding = finding.figure(figure);
    }
    if level != Level::Certain {
        finding = finding.not(
            say!("an overloaded target"),
            say!("its successes would vary, and its responses would be slower"),
        );
    }
    let next = say!("find the limit per address or user, or stay below it with `--rate`");
    Some(finding.then(next))
}
