//! Errors start during the run, at a load or a time.

use std::ops::Range;

use crate::finding::{Code, Finding, Judgement, Level, Span, Unknown, percent, rate, seconds};
use crate::record::Record;
use crate::stats;
use crate::timeline::Point;

/// Points before and after the start, and how many of the latter have errors.
const POINTS: usize = 10;
const WITH_ERRORS_MIN: usize = 8;
/// Error share before and after.
const BEFORE_MAX: f64 = 0.001;
const FROM_MIN: f64 = 0.01;
/// Minimum number of failures.
const FAILED_MIN: f64 = 20.0;
/// Minimum ratio of the load at the start to the maximum before, if the load is the cause.
const LOAD_MORE: f64 = 1.05;

pub(super) fn judge(record: &Record) -> Judgement {
    let points = record.points();
    if points.len() < 2 * POINTS {
        return Err(Unknown::TooShort { needs_s: 2 * POINTS as u64 * record.timeline.width_s() });
    }
    let share = |range: &Range<usize>| {
        record.sum(range, |it| it.failed) / record.sum(range, Point::attempts).max(1.0)
    };
    let begins = |at: &usize| {
        let after = *at..at + POINTS;
        let with = points[after.clone()].iter();
        let with = with.filter(|it| it.failed > it.attempts() * FROM_MIN).count();
        points[*at].failed > points[*at].attempts() * FROM_MIN
            && with >= WITH_ERRORS_MIN
            && record.sum(&after, |it| it.failed) >= FAILED_MIN
            && share(&(0..*at)) <= BEFORE_MAX
            && record.sum(&(0..*at), Point::attempts) >= FAILED_MIN / FROM_MIN
    };
    let begin = (POINTS..points.len() - POINTS).find(begins);
    Ok(begin.map(|at| found(record, at)).into_iter().collect())
}

fn found(record: &Record, at: usize) -> Finding {
    let points = record.points();
    let end = (at..points.len()).rev().find(|at| points[*at].failed > 0.0).unwrap_or(at) + 1;
    let range = at..end;
    let load = |range: &Range<usize>| record.rates(range, Point::attempts);
    let now = stats::median(&load(&(at..at + POINTS))).unwrap_or_default();
    let most = stats::quantile(&load(&(0..at)), 0.95).unwrap_or_default();
    let cause = record.timeline.failures().iter().max_by_key(|(_, places)| {
        places.range(at as u64..end as u64).map(|(_, count)| count).sum::<u64>()
    });
    let word = cause.map_or("", |(cause, _)| cause.word());
    let when = record.span(&range);
    let is_load = now > most * LOAD_MORE;
    let text = match is_load {
        true => say!(
            "failures with `{word}` begin at {}, at a load of {}",
            seconds(when.from_s),
            rate(now)
        ),
        false => {
            say!(
                "failures with `{word}` begin at {}, although the load did not increase",
                seconds(when.from_s)
            )
        }
    };
    let failed = record.sum(&range, |point| point.failed);
    let all = record.sum(&range, Point::attempts);
    let before = record.sum(&(0..at), |point| point.failed);
    let mut finding = Finding::new(Code::RisingErrors, Level::Certain, text, when)
        .on(&["failed"])
        .figure(say!("failed from then on: {:.0} of {:.0} ({})", failed, all, {
            percent(failed / all.max(1.0))
        }))
        .figure_at(Span::new(0.0, when.from_s), say!("failed before: {:.0}", before));
    if let Some((cause, _)) = cause {
        finding = finding.figure(say!("most of them: {}", cause.text()));
    }
    let next = say!("see the sent and received data of an example: `throng report --details`");
    finding.then(next)
}
