//! The load exceeds what the target can serve: with scheduled starts, requests accumulate; with a
//! fixed number of users, more users cause slower responses, not more of them.

use std::ops::Range;

use crate::finding::{Code, Finding, Judgement, Level, percent, rate, time};
use crate::record::{BUSY, Record};
use crate::stats;

/// Accumulated requests per second, relative to those offered.
const PILE_MIN: f64 = 0.02;
/// Minimum duration of the accumulation in seconds, after the first seconds of a phase.
const SECONDS_MIN: f64 = 10.0;
const SKIP_S: f64 = 5.0;
/// Size of the accumulation in seconds of the offered rate.
const PILED_S_MIN: f64 = 0.5;
/// Share of starts without a free user.
const MISSED_MIN: f64 = 0.02;
/// Minimum increase of users, maximum increase of responses, and minimum slowdown, from the first
/// part of a ramp to its last.
const USERS_MORE: f64 = 1.5;
const RATE_MORE_MAX: f64 = 1.1;
const SLOWER_MIN: f64 = 1.3;
/// CPU usage of a fully used host.
const CPU_MIN: f64 = 0.9;
/// Points in each part.
const RAMP_POINTS_MIN: usize = 4;

pub(super) fn judge(record: &Record) -> Judgement {
    let stretches = record.stretches();
    let length = (SECONDS_MIN / record.width()).ceil() as usize;
    if stretches.iter().all(|range| range.len() < length) {
        return Err(crate::finding::Unknown::TooShort { needs_s: (SECONDS_MIN + SKIP_S) as u64 });
    }
    let found = stretches.into_iter().filter_map(|range| match record.is_open(&range) {
        true => piled(record, range, length),
        false => ramp(record, range),
    });
    // One finding is sufficient: later ones have the same cause.
    Ok(found.take(1).map(|found| with_cpu(record, found)).collect())
}

/// Adds the CPU usage of the target's host, if a monitor reports it.
fn with_cpu(record: &Record, found: Finding) -> Finding {
    let hosts = record.watched(BUSY).filter_map(|row| row.mean(&[found.when]));
    let Some(cpu) = hosts.reduce(f64::max) else { return found };
    let found = found.figure(say!("processors of the target's host: {} busy", percent(cpu)));
    // throng also uses the processors of a shared host.
    match cpu >= CPU_MIN && !record.facts.same_host {
        true => Finding { level: Level::Certain, ..found },
        false => found,
    }
}

fn piled(record: &Record, range: Range<usize>, length: usize) -> Option<Finding> {
    let start = range.start + (SKIP_S / record.width()).ceil() as usize;
    let window = (start..range.end.saturating_sub(length) + 1)
        .map(|from| from..from + length)
        .find(|window| is_piling(record, window))?;
    let range = window.start..range.end;
    let offered = stats::mean(&record.rates(&range, |point| point.wanted));
    let served = stats::mean(&record.rates(&range, |point| point.ok));
    let ended = stats::mean(&record.rates(&range, |point| point.attempts()));
    let waiting = record.values(&range, |point| point.backlog + point.in_flight);
    let grew = waiting.last()? - waiting.first()?;
    let missed = record.sum(&range, |point| point.missed);
    let times = record.values(&range, |point| point.p50);
    let text = say!(
        "the offered load was {}, but only {} was served, so a backlog grew",
        rate(offered),
        rate(ended)
    );
    let found = Finding::new(Code::Saturated, Level::Likely, text, record.span(&range))
        .on(&["backlog", "in_flight", "p50"])
        .figure(say!("increase in waiting and unanswered requests: {:.0}", grew))
        .figure(say!("starts for which no user was free: {:.0}", missed))
        .figure(say!("successes per second: {}", rate(served)))
        .figure(say!(
            "median response time: {} at first, {} at the end",
            { time(*times.first()?) },
            time(*times.last()?)
        ))
        .not(
            say!("throng is behind schedule"),
            say!("its starts were on time during these seconds"),
        )
        .then(say!("find the highest rate that the service sustains: `throng capacity FILE`"));
    Some(found)
}

/// Whether requests accumulate significantly in a window.
fn is_piling(record: &Record, window: &Range<usize>) -> bool {
    let points = &record.points()[window.clone()];
    if !points.iter().all(|point| record.is_trusted(point)) {
        return false;
    }
    let offered = stats::mean(&record.rates(window, |point| point.wanted));
    let missed = record.sum(window, |point| point.missed);
    let starts = record.sum(window, |point| point.wanted);
    let ended = record.sum(window, |point| point.attempts());
    let steps = record.sum(window, |point| point.begun) / (starts - missed).max(1.0);
    let waiting = record.values(window, |point| point.backlog + point.in_flight);
    let Some(slope) = stats::slope(&waiting) else { return false };
    let per_s = slope.slope / record.width();
    let grew = slope.slope * window.len() as f64;
    let is_growing =
        slope.low > 0.0 && per_s >= offered * PILE_MIN && grew >= offered * PILED_S_MIN;
    // A start can have several steps, of which some do not run.
    let is_behind = ended < starts * steps.max(1.0) * (1.0 - PILE_MIN);
    (is_growing && is_behind) || missed >= starts * MISSED_MIN && starts > 0.0 && is_behind
}

fn ramp(record: &Record, range: Range<usize>) -> Option<Finding> {
    let users = record.values(&range, |point| point.users);
    let most = users.iter().copied().fold(0.0, f64::max);
    let part = |low: f64, high: f64| -> Vec<usize> {
        let inside = users.iter().zip(range.clone());
        let inside = inside.filter(|(users, _)| (low * most..=high * most).contains(*users));
        inside.map(|(_, at)| at).collect()
    };
    let (few, many) = (part(0.35, 0.6), part(0.92, 1.0));
    if few.len() < RAMP_POINTS_MIN || many.len() < RAMP_POINTS_MIN {
        return None;
    }
    let points = record.points();
    let of = |places: &[usize], figure: &dyn Fn(&crate::timeline::Point) -> f64| {
        stats::median(&places.iter().map(|at| figure(&points[*at])).collect::<Vec<_>>())
    };
    let per_s = |point: &crate::timeline::Point| point.ok / point.lines.max(1.0);
    let mean = |point: &crate::timeline::Point| point.time / point.timed.max(1.0);
    let [users_few, users_many] = [&few, &many].map(|it| of(it, &|point| point.users));
    let [rate_few, rate_many] = [&few, &many].map(|it| of(it, &per_s));
    let [time_few, time_many] = [&few, &many].map(|it| of(it, &mean));
    let more_users = users_many? / users_few?.max(1.0);
    let more_rate = rate_many? / rate_few?.max(1e-9);
    let slower = time_many? / time_few?.max(1.0);
    let is_trusted = many.iter().all(|at| record.is_trusted(&points[*at]));
    if more_users < USERS_MORE || more_rate > RATE_MORE_MAX || slower < SLOWER_MIN || !is_trusted {
        return None;
    }
    let from = many.first().copied()?;
    let text = say!(
        "with {:.0} instead of {:.0} users, successes stay at {} and responses are slower",
        (users_many?),
        (users_few?),
        rate(rate_many?)
    );
    let found = Finding::new(Code::Saturated, Level::Likely, text, record.span(&(from..range.end)))
        .on(&["users_online", "ok", "p50"])
        .figure(say!("successes per second: {}, then {}", rate(rate_few?), rate(rate_many?)))
        .figure(say!("mean response time: {}, then {}", time(time_few?), time(time_many?)))
        .not(say!("users that pause"), say!("response times grew by {}", percent(slower - 1.0)))
        .then(say!("find the highest rate that the service sustains: `throng capacity FILE`"));
    Some(found)
}
