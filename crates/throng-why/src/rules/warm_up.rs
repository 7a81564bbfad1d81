//! The target was slower at the start of a stretch of constant load than in the rest of it.

use std::ops::Range;

use crate::finding::{Code, Finding, Judgement, Level, Span, Unknown, percent, seconds, time};
use crate::record::Record;
use crate::stats;

/// Number of blocks in a stretch, and minimum seconds per block.
const BLOCKS: usize = 20;
const BLOCK_S_MIN: f64 = 3.0;
/// Maximum number of slow blocks at the start: a third.
const SLOW_MAX: usize = BLOCKS / 3;
/// Minimum slowdown, also in spreads of the other blocks.
const SLOWER_MIN: f64 = 1.25;
const SPREADS_MIN: f64 = 6.0;
/// Opening connections explains it if this share of attempts in the slow part needs a new one.
const OPENED_MAX: f64 = 0.2;

pub(super) fn judge(record: &Record) -> Judgement {
    let steady = record.steady();
    let needs = BLOCKS as f64 * BLOCK_S_MIN;
    let is_long = |range: &Range<usize>| range.len() as f64 * record.width() >= needs;
    let Some(first) = steady.into_iter().find(is_long) else {
        return Err(Unknown::TooShort { needs_s: needs as u64 });
    };
    Ok(slow_start(record, first).into_iter().collect())
}

fn slow_start(record: &Record, range: Range<usize>) -> Option<Finding> {
    let length = (range.len() / BLOCKS).max(1);
    let times = record.values(&range, |point| point.p50);
    if times.contains(&0.0) {
        return None;
    }
    let blocks: Vec<f64> = stats::block_medians(&times, length).into_iter().take(BLOCKS).collect();
    let (rest, off) = stats::spread(blocks.get(BLOCKS / 2..)?)?;
    let limit = (rest * SLOWER_MIN).max(rest + SPREADS_MIN * off);
    let slow = blocks.iter().take_while(|block| **block > limit).count();
    let is_later = |block: &f64| *block > limit;
    if !(1..=SLOW_MAX).contains(&slow) || blocks[slow..].iter().any(is_later) {
        return None;
    }
    // The first block can be the time in which users connect.
    if slow == 1 && length as f64 * record.width() < 10.0 {
        return None;
    }
    let part = range.start..range.start + slow * length;
    let attempts = record.sum(&part, |point| point.attempts());
    let opened = record.sum(&part, |point| point.opened);
    let late = record.points()[part.clone()].iter().any(|point| !record.is_trusted(point));
    if opened > attempts * OPENED_MAX || late {
        return None;
    }
    let slower = blocks[0] / rest;
    let when = record.span(&part);
    let when = Span::new(when.from_s, when.to_s);
    let text = say!(
        "for the first {}, the target was up to {} slower than afterward",
        seconds(when.to_s - when.from_s),
        percent(slower - 1.0)
    );
    let found = Finding::new(Code::WarmUp, Level::Likely, text, when)
        .on(&["p50"])
        .figure(say!(
            "median response time: {} at first, {} afterward",
            { time(blocks[0]) },
            time(rest)
        ))
        .not(
            say!("opening connections"),
            say!("{} of the attempts opened a connection", percent(opened / attempts.max(1.0))),
        )
        .not(say!("more load at first"), say!("the load was constant"))
        .then(say!("exclude this time: add a first phase of this length with `measured: false`"));
    Some(found)
}
