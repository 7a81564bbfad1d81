//! Little's law as a consistency check: the number of users (N) equals the attempts per second (X)
//! times response time plus pause (R + Z). A difference is time lost by throng, or in requests that
//! never ended.

use std::ops::Range;

use crate::finding::{Code, Finding, Judgement, Level, Unknown, count, percent, rate, time};
use crate::record::Record;

/// Minimum gap, beyond the effects of chance and the ends of the stretch.
const GAP_MIN: f64 = 0.03;
const GAP_SURE: f64 = 0.1;
/// Minimum significance, in units of the square root of the attempts.
const CHANCE_MIN: f64 = 4.0;
/// Minimum time, attempts and rounds per user of a stretch. What started before it or ends after it
/// is at most one round.
const TIME_S_MIN: f64 = 20.0;
const ATTEMPTS_MIN: f64 = 500.0;
const ROUNDS_MIN: f64 = 40.0;
const USERS_MIN: f64 = 2.0;

/// Both sides of the law, and their components.
struct Books {
    users: f64,
    per_s: f64,
    response_ns: f64,
    pause_ns: f64,
    attempts: f64,
}

impl Books {
    fn explained(&self) -> f64 {
        self.per_s * (self.response_ns + self.pause_ns) / 1e9
    }

    /// Above 0: users whose time is unaccounted for.
    fn gap(&self) -> f64 {
        1.0 - self.explained() / self.users
    }

    fn has_gap(&self) -> bool {
        self.gap().abs() >= GAP_MIN.max(CHANCE_MIN / self.attempts.sqrt())
    }
}

pub(super) fn judge(record: &Record) -> Judgement {
    // Only with requests does a user do exactly one thing at a time.
    let is_asked = record.facts.steps.iter().all(|(_, kind)| kind.is_asked() || !kind.is_attempt());
    if !is_asked || record.is_long_lived() {
        return Ok(Vec::new());
    }
    let closed = |range: &Range<usize>| !record.is_open(range);
    let steady: Vec<_> = record.steady().into_iter().filter(closed).collect();
    let long: Vec<_> = steady
        .iter()
        .filter(|range| range.len() as f64 * record.width() >= TIME_S_MIN)
        .cloned()
        .collect();
    match (steady.is_empty(), long.is_empty()) {
        (false, true) => Err(Unknown::TooShort { needs_s: TIME_S_MIN as u64 }),
        _ => Ok(long.into_iter().filter_map(|range| of_stretch(record, range)).take(1).collect()),
    }
}

fn books(record: &Record, range: &Range<usize>) -> Option<Books> {
    let seconds = record.sum(range, |point| point.lines);
    let attempts = record.sum(range, |point| point.timed);
    let users = record.sum(range, |point| point.users * point.lines) / seconds.max(1.0);
    if attempts < ATTEMPTS_MIN || users < USERS_MIN {
        return None;
    }
    let books = Books {
        users,
        per_s: attempts / seconds,
        response_ns: record.sum(range, |point| point.time) / attempts,
        pause_ns: record.sum(range, |point| point.paused) / attempts,
        attempts,
    };
    let rounds = attempts / users;
    (rounds >= ROUNDS_MIN).then_some(books)
}

fn of_stretch(record: &Record, range: Range<usize>) -> Option<Finding> {
    let is_in_time = record.points()[range.clone()].iter().all(|point| record.is_trusted(point));
    let found = books(record, &range).filter(Books::has_gap)?;
    let middle = range.start + range.len() / 2;
    let halves = [range.start..middle, middle..range.end].map(|half| books(record, &half));
    let lasts = halves.iter().all(|half| half.as_ref().is_some_and(|it| it.gap() >= GAP_SURE));
    // Concurrent requests (`parallel`) also exceed the number of users.
    let level = if lasts && is_in_time { Level::Likely } else { Level::Hint };
    let (users, explained) = (count(found.users), count(found.explained()));
    let text = match found.gap() > 0.0 {
        true => say!("{} users, but response times and pauses explain only {}", users, explained),
        false => say!("{} users, but response times and pauses add up to {}", users, explained),
    };
    let told = Finding::new(Code::TimeUnaccounted, level, text, record.span(&range))
        .on(&["users_online", "ok"])
        .figure(say!(
            "{} × ({} response time + {} pause) = {} users",
            rate(found.per_s),
            time(found.response_ns),
            time(found.pause_ns),
            explained
        ))
        .figure(say!("unexplained: {} of the users", percent(found.gap().abs())));
    let told = match is_in_time {
        true => {
            told.not(say!("throng was late"), say!("throng was on schedule during these seconds"))
        }
        false => told,
    };
    let next = match found.gap() > 0.0 {
        true => say!("look for requests that were cut off: `throng report --details`"),
        false => {
            say!(
                "concurrent requests (`parallel`) are counted twice; if the scenario has none, \
                 report a bug"
            )
        }
    };
    Some(told.then(next))
}
