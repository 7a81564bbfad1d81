//! Response times grow at a constant load. Mann-Kendall alone finds a trend in 44 % of clean runs
//! with autocorrelated noise, so three conditions are required.

use std::ops::Range;

use crate::finding::{Code, Finding, Judgement, Level, Unknown, percent, seconds, time};
use crate::record::Record;
use crate::stats;

/// Number of blocks in a stretch, and minimum seconds per block: noise of blocks is nearly
/// independent.
const BLOCKS: usize = 30;
const BLOCK_S_MIN: f64 = 10.0;
/// Growth over the stretch.
const GROWTH_MIN: f64 = 0.05;
/// Standard errors between the first and the last third (simulated: with 3.7, 5 % of clean runs
/// have a false finding at an autocorrelation of 0.8 between blocks).
const APART_MIN: f64 = 6.0;
/// Change of the rate that would explain as much.
const RATE_SHARE_MAX: f64 = 0.5;

pub(super) fn judge(record: &Record) -> Judgement {
    let needs = BLOCKS as f64 * BLOCK_S_MIN;
    let is_long = |range: &Range<usize>| range.len() as f64 * record.width() >= needs;
    let steady: Vec<Range<usize>> = record.steady().into_iter().filter(is_long).collect();
    if steady.is_empty() {
        return Err(Unknown::TooShort { needs_s: needs as u64 });
    }
    Ok(steady.into_iter().filter_map(|range| drift(record, range)).collect())
}

fn drift(record: &Record, range: Range<usize>) -> Option<Finding> {
    let length = range.len() / BLOCKS;
    let blocks = |values: Vec<f64>| {
        stats::block_medians(&values, length).into_iter().take(BLOCKS).collect::<Vec<f64>>()
    };
    let times = blocks(record.values(&range, |point| point.p50));
    if times.len() < BLOCKS || times.contains(&0.0) {
        return None;
    }
    let middle = stats::median(&times)?;
    let slope = stats::slope(&times)?;
    let growth = slope.slope * BLOCKS as f64 / middle;
    let third = BLOCKS / 3;
    let thirds: Vec<&[f64]> = times.chunks(third).take(3).collect();
    let rising = thirds.iter().filter_map(|part| stats::slope(part)).filter(|it| it.slope > 0.0);
    let (first, last) = (thirds[0], thirds[2]);
    let apart = stats::apart(first, last);
    let is_rising = rising.count() >= 2 && stats::mean(thirds[1]) > stats::mean(first);
    if growth < GROWTH_MIN || slope.low <= 0.0 || apart < APART_MIN || !is_rising {
        return None;
    }
    // A rate that grows as well is an alternative explanation.
    let rates = blocks(record.rates(&range, |point| point.begun));
    let rate_growth =
        stats::slope(&rates)?.slope * BLOCKS as f64 / stats::median(&rates)?.max(1e-9);
    if rate_growth > growth * RATE_SHARE_MAX {
        return None;
    }
    let when = record.span(&range);
    let per_minute = growth / ((when.to_s - when.from_s) / 60.0);
    let text = say!(
        "the median response time grew by {} in {} at the same load",
        percent(growth),
        seconds(when.to_s - when.from_s)
    );
    let found = Finding::new(Code::Drift, Level::Likely, text, when)
        .on(&["p50"])
        .figure(say!(
            "first third: {}, last third: {}",
            { time(stats::mean(first)) },
            time(stats::mean(last))
        ))
        .figure(say!("{} per minute", percent(per_minute)))
        .not(
            say!("noise"),
            say!("the first and the last third are {:.0} standard errors apart", apart),
        )
        .not(
            say!("more load"),
            say!("requests per second changed by {}", { format!("{:+.1} %", rate_growth * 100.0) }),
        )
        .then(say!(
            "watch the memory, open files and table sizes of the target, and run for longer"
        ));
    Some(found)
}
