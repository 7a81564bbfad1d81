//! The target stopped or was restarted: nearly all connections ended at the same time, and new ones
//! were refused for a while.

use std::ops::Range;

use crate::finding::{Code, Finding, Judgement, Level, Span, count, percent, seconds};
use crate::record::{Record, Watched};
use crate::timeline::Point;

/// Share of open connections that end within two seconds.
const ENDED_MIN: f64 = 0.8;
const END_S: f64 = 2.0;
/// Minimum number of open connections: fewer can end by coincidence.
const OPEN_MIN: f64 = 5.0;
/// Share of open connections that end per second before it: more is churn.
const CHURN_MAX: f64 = 0.1;
/// Share of connections that are open again afterwards, if none is just being opened.
const BACK_MIN: f64 = 0.5;
/// The first connects fail within this many seconds.
const REFUSED_S: f64 = 5.0;

pub(super) fn judge(record: &Record) -> Judgement {
    let points = record.points();
    let window = (END_S / record.width()).ceil().max(1.0) as usize;
    let mut found = Vec::new();
    let mut from = 1;
    while from + window <= points.len() {
        match outage(record, from..from + window) {
            Some((finding, next)) => {
                found.push(finding);
                from = next;
            }
            None => from += 1,
        }
    }
    Ok(found)
}

/// Connections that the target closed. Those that throng closed without a response do not count: on
/// a slow target, many time out at the same time.
fn lost(point: &Point) -> f64 {
    point.closed_by_target + point.reset
}

/// Whether an outage starts here, and the first point after it.
fn outage(record: &Record, window: Range<usize>) -> Option<(Finding, usize)> {
    let points = record.points();
    let before = window.start.saturating_sub(window.len() * 3)..window.start;
    let open = points[window.start - 1].open;
    let ended = record.sum(&window, lost);
    let churn = record.sum(&before, lost) / before.len().max(1) as f64;
    if open < OPEN_MIN || ended < open * ENDED_MIN || churn > open * CHURN_MAX * record.width() {
        return None;
    }
    // The loss must start in the window, not after it.
    if lost(&points[window.start]) == 0.0 {
        return None;
    }
    let wait = (REFUSED_S / record.width()).ceil() as usize + window.len();
    let soon = window.start..(window.start + wait).min(points.len());
    let refused = record.sum(&soon, |point| point.connect_failed);
    if refused < 1.0 {
        return None;
    }
    let is_back = |at: &usize| {
        let point = &points[*at];
        let is_open = point.opened > 0.0 || point.open >= open * BACK_MIN;
        is_open && point.connect_failed == 0.0
    };
    let back = (window.start + 1..points.len()).find(is_back);
    let end = back.unwrap_or(points.len());
    let when = record.span(&(window.start..end.max(window.end).min(points.len())));
    let share = ended / open;
    let text = match back {
        Some(_) => say!(
            "the target closed {} of its connections at the same time and was available again \
             {} later",
            percent(share.min(1.0)),
            seconds(when.to_s - when.from_s)
        ),
        None => say!(
            "the target closed {} of its connections at the same time and did not become \
             available again",
            percent(share.min(1.0))
        ),
    };
    let all = record.sum(&(window.start..end), |point| point.connect_failed);
    let clean = record.sum(&window, |point| point.closed_by_target);
    let reset = record.sum(&window, |point| point.reset);
    let at = Span::new(when.from_s, when.from_s + END_S);
    let programs = restarted(record).join("`, `");
    let level = if programs.is_empty() { Level::Likely } else { Level::Certain };
    let mut found = Finding::new(Code::TargetRestarted, level, text, when)
        .on(&["connections_open", "failed"])
        .figure_at(at, say!("open before: {}; ended within 2 s: {}", count(open), count(ended)))
        .figure_at(at, say!("by FIN: {}, by RST: {}", count(clean), count(reset)))
        .figure(say!("failed connects until it was available again: {}", count(all)))
        .not(
            say!("the target closes idle connections"),
            say!("then it would still accept new connections"),
        )
        .then(say!(
            "check the target's log and `dmesg` at this time, for example for an out-of-memory kill"
        ));
    if level == Level::Certain {
        found = found.figure(say!(
            "processes that ended and started, according to the monitor: `{programs}`"
        ));
    }
    Some((found, end.max(window.end)))
}

/// Watched programs of which a process exited and another started.
fn restarted<'a>(record: &Record<'a>) -> Vec<&'a str> {
    let has_grown = |row: &Watched| row.largest().is_some_and(|most| most > 0.0);
    let started = record.watched("throng_process_started_total").filter(|row| has_grown(row));
    let ended =
        |row: &&Watched| record.beside(row, "throng_process_ended_total").is_some_and(has_grown);
    started.filter(ended).map(|row| row.label("name")).collect()
}
