//! The number of open connections is constant although new ones open all the time: a timeout at the
//! target closes each after the same time, so the number equals those opened within that time.

use std::ops::Range;

use throng_metrics::{Ending, Histogram, Interval};

use crate::finding::{Code, Finding, Judgement, Level, Unknown, count, percent, rate, seconds};
use crate::record::{Record, within};
use crate::stats;

/// Minimum length of a plateau, as a multiple of its connections' lifetime, within limits in
/// seconds; and its maximum relative change in that time.
const LIVES: f64 = 4.0;
const PLATEAU_S_MIN: f64 = 10.0;
const PLATEAU_S_MAX: f64 = 30.0;
const RISE_MAX: f64 = 0.01;
/// Maximum relative difference to rate × residence.
const LITTLE_MAX: f64 = 0.07;
/// Share of all ends that are within this distance of a round value.
const ENDS_MIN: f64 = 0.5;
const ROUND_MAX: f64 = 0.02;
/// Minimum number of connections that ended, and that were open.
const COUNT_MIN: u64 = 50;

/// Common timeouts: whole seconds, multiples of five, minutes, and a few more.
fn nearest_round(time_s: f64) -> f64 {
    match time_s {
        short if short < 60.0 => short.round().max(1.0),
        some if some < 300.0 => (some / 5.0).round() * 5.0,
        350.0..358.0 => 350.0,
        long => (long / 60.0).round() * 60.0,
    }
}

/// The end of connections by timeout, and the timeout.
fn timeout(record: &Record) -> Option<(Ending, f64, f64, Histogram)> {
    let mut all = Interval::default();
    record.sums.iter().for_each(|sum| all.merge_later(sum));
    let ends: u64 = all.connections.residence.iter().map(|row| row.time.count()).sum();
    let rows = all.connections.residence.into_iter().filter(|row| !row.unopened);
    let found = rows.filter_map(|row| {
        let is_asked = !matches!(row.ended, Ending::ClosedByTarget | Ending::Reset);
        if is_asked || row.time.count() < COUNT_MIN {
            return None;
        }
        let round = nearest_round(row.time.value_at(0.5) as f64 / 1e9);
        let ns = round * 1e9;
        let near = within(&row.time, ns * (1.0 - ROUND_MAX), ns * (1.0 + ROUND_MAX));
        let share = near as f64 / ends as f64;
        (share >= ENDS_MIN).then_some((row.ended, round, share, row.time))
    });
    found.max_by(|a, b| a.2.total_cmp(&b.2))
}

pub(super) fn judge(record: &Record) -> Judgement {
    let Some((ended, round, share, times)) = timeout(record) else { return Ok(Vec::new()) };
    let plateau_s = (round * LIVES).clamp(PLATEAU_S_MIN, PLATEAU_S_MAX);
    let length = (plateau_s / record.width()).ceil().max(3.0) as usize;
    let stretches = record.stretches();
    if stretches.iter().all(|range| range.len() < length) {
        return Err(Unknown::TooShort { needs_s: (plateau_s + round) as u64 });
    }
    let plateau = stretches.into_iter().find_map(|range| plateau(record, range, length, &times));
    let Some((range, open, opened)) = plateau else { return Ok(Vec::new()) };
    let mean = times.mean() / 1e9;
    let text = say!(
        "open connections settle at {}: new ones open at {}, and each ends after {} ({})",
        count(open),
        rate(opened),
        seconds(round),
        ended.text()
    );
    let found = Finding::new(Code::PlateauResidence, Level::Likely, text, record.span(&range))
        .on(&["connections_open", "opened"])
        .figure(say!("lifetimes within 2 % of {}: {}", seconds(round), percent(share)))
        .figure(say!(
            "rate × mean residence: {} × {} = {}",
            rate(opened),
            seconds(mean),
            count(opened * mean)
        ))
        .not(
            say!("the scenario closes its connections"),
            say!("these are counted as closed by the target, not by throng"),
        )
        .not(
            say!("a limit on the number of connections"),
            say!("new connections still opened at {}", rate(opened)),
        )
        .then(say!(
            "look for a timeout of {} in the target and every proxy in front of it",
            seconds(round)
        ));
    Ok(vec![found])
}

/// The longest plateau at the end of a stretch, its height and the rate of new connections.
fn plateau(
    record: &Record,
    range: Range<usize>,
    length: usize,
    times: &Histogram,
) -> Option<(Range<usize>, f64, f64)> {
    let last = range.end.checked_sub(length).filter(|from| *from >= range.start)?;
    let last = last..range.end;
    let open = record.values(&last, |point| point.open);
    let height = stats::median(&open)?;
    let rise = stats::slope(&open)?.slope * open.len() as f64;
    let opened = stats::mean(&record.rates(&last, |point| point.opened));
    let little = opened * times.mean() / 1e9;
    let is_flat = height >= COUNT_MIN as f64 && rise.abs() <= height * RISE_MAX;
    let is_law = (little - height).abs() <= height * LITTLE_MAX;
    let is_near =
        |at: &usize| (record.points()[*at].open - height).abs() <= height * RISE_MAX * 3.0;
    let from = range.clone().rev().take_while(is_near).last().unwrap_or(last.start);
    (is_flat && is_law).then_some((from.min(last.start)..range.end, height, opened))
}
