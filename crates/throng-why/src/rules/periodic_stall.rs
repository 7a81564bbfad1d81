//! The target stalls at regular intervals, so response times jump repeatedly. Spectra are not
//! suitable: on autocorrelated seconds of clean runs, they find a period in half of them.

use std::ops::Range;

use throng_base::Said;

use crate::finding::{Code, Finding, Judgement, Level, Span, Unknown, rate, seconds, time};
use crate::record::Record;
use crate::stats;
use crate::timeline::Point;

/// An onset exceeds the median of ln(time) by this many spreads, and the median by this factor.
const SPREADS_MIN: f64 = 5.0;
const RATIO_MIN: f64 = 1.5;
/// This ratio to the median is an onset for any spread: p99 of a fast target spreads widely.
const ALWAYS: f64 = 20.0;
const ONSETS_MIN: usize = 6;
/// Ratio of the gap between two kinds of onsets. In clean runs, one of six is rarely as far from
/// the next.
const GAP_MIN: f64 = 1.9;
/// Number of points that are compared with the same median, and of points on each side that define
/// it.
const PART: usize = 20;
const AROUND: usize = 60;
/// Variation of the intervals of a clock, and of a nearly regular one (simulated: `simulation`).
const CLOCK_MAX: f64 = 0.1;
const NEARLY_MAX: f64 = 0.4;
/// Only the point that contains an onset is known, not its position within: the distance between
/// two onsets has this error in points (the standard deviation of the difference of two positions
/// in a point).
const BETWEEN_POINTS: f64 = 0.41;
/// Probability that random onsets are as regular, a quarter each for two curves, with all spikes
/// and with only the large ones.
const CHANCE_MAX: f64 = 0.01 / 4.0;
/// Maximum share of points that are onsets.
const ONSETS_SHARE_MAX: f64 = 0.3;
/// Ratio of attempts at onsets to those at other times from which on the load is the cause.
const BURST_MIN: f64 = 1.3;
/// Minimum ratio of two rates to distinguish a timer from work.
const RATES_RATIO_MIN: f64 = 1.3;
/// Minimum number of intervals per rate for that; the rhythm itself is already known.
const GAPS_MIN: usize = 2;

/// The names of a curve, and its value at a point.
type Curve = (&'static [&'static str], fn(&Point) -> f64);

pub(super) fn judge(record: &Record) -> Judgement {
    let all: Vec<usize> = record.stretches().into_iter().flatten().collect();
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return Err(Unknown::TooShort { needs_s: 30 });
    };
    let range = *first..*last + 1;
    if range.len() < 3 * ONSETS_MIN {
        return Err(Unknown::TooShort { needs_s: 30 });
    }
    let curves: [Curve; 2] = [(&["p99"], |point| point.p99), (&["max"], |point| point.max)];
    let found = curves.into_iter().find_map(|(name, of)| {
        let onsets = onsets(record, &range, of);
        let large = large(record, &range, &onsets, of);
        let either = [onsets, large];
        either.iter().find_map(|onsets| stalls(record, &range, (name, of), onsets))
    });
    if found.is_none() && record.timeline.width_s() > 4 {
        return Err(Unknown::TooCoarse { point_s: record.timeline.width_s() });
    }
    Ok(found.into_iter().collect())
}

/// Points at which a curve jumps within the range, excluding late seconds.
fn onsets(record: &Record, range: &Range<usize>, of: fn(&Point) -> f64) -> Vec<usize> {
    let values = record.values(range, |point| of(point).max(1.0).ln());
    // Phases have different levels, so each point is compared with its neighbors, twenty at a time.
    let around = |part: usize| {
        let from =
            (part * PART).saturating_sub(AROUND).min(values.len().saturating_sub(2 * AROUND));
        stats::spread(&values[from..(from + 2 * AROUND).min(values.len())])
    };
    let usual: Vec<_> = (0..values.len().div_ceil(PART)).map(around).collect();
    let is_high = |at: usize| {
        let Some((middle, off)) = usual[at / PART] else { return false };
        let over = values[at] - middle;
        over > (SPREADS_MIN * off).min(ALWAYS.ln()) && over > RATIO_MIN.ln()
    };
    let high: Vec<bool> = (0..values.len()).map(is_high).collect();
    let is_onset = |at: &usize| high[*at] && (*at == 0 || !high[*at - 1]);
    let trusted = |at: &usize| record.is_trusted(&record.points()[range.start + at]);
    (0..values.len()).filter(is_onset).filter(trusted).collect()
}

/// The onsets of stalls among smaller spikes, which a busy host causes: those above the widest gap
/// with enough onsets above it or, without a wide gap, those above the middle (of the logarithms)
/// between the usual value and the sixth largest.
fn large(
    record: &Record,
    range: &Range<usize>,
    onsets: &[usize],
    of: fn(&Point) -> f64,
) -> Vec<usize> {
    let value = |at: &usize| of(&record.points()[range.start + at]).max(1.0);
    let mut values: Vec<f64> = onsets.iter().map(value).collect();
    values.sort_by(|a, b| b.total_cmp(a));
    let gaps = values.windows(2).skip(ONSETS_MIN - 1);
    let widest = gaps.max_by(|a, b| (a[0] / a[1]).total_cmp(&(b[0] / b[1])));
    let limit = match (widest, values.get(ONSETS_MIN - 1)) {
        (Some(gap), _) if gap[0] >= gap[1] * GAP_MIN => gap[0],
        (_, Some(sixth)) => {
            let usual = stats::median(&record.values(range, of)).unwrap_or_default().max(1.0);
            (usual * sixth).sqrt()
        }
        _ => return Vec::new(),
    };
    onsets.iter().copied().filter(|at| value(at) >= limit).collect()
}

fn stalls(
    record: &Record,
    range: &Range<usize>,
    (series, of): Curve,
    onsets: &[usize],
) -> Option<Finding> {
    if onsets.len() < ONSETS_MIN || onsets.len() as f64 > range.len() as f64 * ONSETS_SHARE_MAX {
        return None;
    }
    let rhythm = rhythm(record, range, onsets)?;
    if rhythm.variation >= NEARLY_MAX || rhythm.chance >= CHANCE_MAX {
        return None;
    }
    if is_burst(record, range, onsets) {
        return None;
    }
    let points = record.points();
    let at: Vec<usize> = onsets.iter().map(|at| range.start + at).collect();
    let high = stats::median(&at.iter().map(|at| of(&points[*at])).collect::<Vec<_>>())?;
    let usual = stats::median(&record.values(range, of))?;
    let when = Span::new(record.span(&(at[0]..at[0] + 1)).from_s, record.span(range).to_s);
    let (curve, every) = (series[0], rhythm.every.text());
    let text = say!(
        "{curve} jumps from {} to {} every {} ({} times)",
        time(usual),
        time(high),
        every.clone(),
        onsets.len()
    );
    let first: Vec<String> =
        at.iter().take(8).map(|at| seconds(*at as f64 * record.width())).collect();
    let level = if rhythm.is_clock { Level::Likely } else { Level::Hint };
    let cause = cause(record, range, &at, &rhythm);
    let found = Finding::new(Code::PeriodicStall, level, text, when)
        .on(series)
        .figure(say!("first occurrence: {}", first.join(", ")))
        .figure(say!("the intervals vary by {:.0} %", (rhythm.variation * 100.0)))
        .figure(cause)
        .not(
            say!("chance"),
            say!("only 1 in {:.0} random sequences is as regular", (1.0 / rhythm.chance)),
        )
        .not(
            say!("bursts in the load"),
            say!("throng did not send more than usual during these seconds"),
        )
        .then(say!(
            "look for activity in the target that recurs every {}: jobs, flushes, garbage \
             collection",
            every
        ));
    Some(found)
}

/// The interval between two onsets.
#[derive(Clone, Copy)]
enum Every {
    /// Seconds.
    Time(f64),
    Requests(f64),
}

impl Every {
    fn text(self) -> Said {
        match self {
            Every::Time(period_s) => Said::of_others(seconds(period_s)),
            Every::Requests(work) => say!("{:.0} requests", work),
        }
    }
}

/// The regularity of onsets, and its unit.
struct Rhythm {
    every: Every,
    variation: f64,
    is_clock: bool,
    chance: f64,
}

/// In time or, if the run has two rates and that is more regular, in requests: stalls after an
/// amount of work have different intervals at different rates.
fn rhythm(record: &Record, range: &Range<usize>, onsets: &[usize]) -> Option<Rhythm> {
    let found = |places: &[f64], unit: &dyn Fn(f64) -> Every| {
        let (even, chance) = stats::evenness(onsets, places)?;
        let unsure = BETWEEN_POINTS / even.period;
        let is_clock = even.variation.powi(2) < CLOCK_MAX.powi(2) + unsure.powi(2);
        Some(Rhythm { every: unit(even.period), variation: even.variation, is_clock, chance })
    };
    let seconds: Vec<f64> = (0..range.len()).map(|at| at as f64).collect();
    let in_time = found(&seconds, &|period| Every::Time(period * record.width()));
    if !has_two_rates(record) {
        return in_time;
    }
    // Express work in mean points, so that periods are comparable with those in time.
    let mean = record.sum(range, Point::attempts) / range.len() as f64;
    let mut done = 0.0;
    let work = record.values(range, Point::attempts).into_iter().map(|attempts| {
        done += attempts / mean.max(1e-9);
        done
    });
    let in_work = found(&work.collect::<Vec<_>>(), &|period| Every::Requests(period * mean));
    let is_better = |work: &Rhythm| {
        let is_sure = work.is_clock && work.chance < CHANCE_MAX;
        is_sure && in_time.as_ref().is_none_or(|time| work.variation < time.variation)
    };
    in_work.filter(is_better).or(in_time)
}

/// Whether the rates of two stretches differ.
fn has_two_rates(record: &Record) -> bool {
    let rates = record
        .stretches()
        .into_iter()
        .filter_map(|part| stats::median(&record.rates(&part, Point::attempts)));
    let (low, high) = rates.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), rate| {
        (low.min(rate), high.max(rate))
    });
    high >= low * RATES_RATIO_MIN
}

/// Whether onsets coincide with more starts at the same load, which would then be the cause.
fn is_burst(record: &Record, range: &Range<usize>, onsets: &[usize]) -> bool {
    let begun = |point: &Point| point.begun.max(point.attempted);
    let stretches = record.stretches();
    let more = onsets.iter().filter_map(|onset| {
        let at = range.start + onset;
        let same = stretches.iter().find(|part| part.contains(&at)).unwrap_or(range);
        let usual = stats::median(&record.values(same, begun))?;
        Some(begun(&record.points()[at]) / usual.max(1.0))
    });
    stats::median(&more.collect::<Vec<_>>()).is_some_and(|more| more > BURST_MIN)
}

/// The cause, if two rates or the wall clock identify it.
fn cause(record: &Record, range: &Range<usize>, at: &[usize], rhythm: &Rhythm) -> Said {
    let period_s = match rhythm.every {
        Every::Time(period_s) => period_s,
        Every::Requests(work) => {
            return say!(
                "cause: work such as garbage collection, because there is a stall every {:.0} \
                 requests at any rate",
                work
            );
        }
    };
    let minutes = period_s / 60.0;
    let zero_s = record.facts.zero_unix_ns as f64 / 1e9;
    if zero_s > 0.0 && minutes > 0.9 && (minutes - minutes.round()).abs() * 60.0 < 1.0 {
        let second = |at: &usize| (*at as f64 * record.width() + zero_s) % 60.0;
        let offset = second(&at[0]);
        let is_same = |at: &usize| {
            let apart = (second(at) - offset).abs();
            apart.min(60.0 - apart) <= 1.5
        };
        if at.iter().all(is_same) {
            return say!(
                "cause: a cron job, because the stalls always start at second {:.0} of a minute",
                offset.round() % 60.0
            );
        }
    }
    // Regular in time at two rates: stalls after an amount of work would not be.
    let has_rhythm =
        |part: &Range<usize>| at.iter().filter(|at| part.contains(at)).count() > GAPS_MIN;
    let rates = record.stretches().into_iter().filter(has_rhythm);
    let rates = rates.filter_map(|part| stats::median(&record.rates(&part, Point::attempts)));
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    match (rates.first(), rates.last()) {
        (Some(slow), Some(fast)) if rhythm.is_clock && *fast >= slow * RATES_RATIO_MIN => {
            say!(
                "cause: a timer, because the interval is the same at {} and {}",
                rate(*slow),
                rate(*fast)
            )
        }
        _ => unknown_cause(record, range),
    }
}

fn unknown_cause(record: &Record, range: &Range<usize>) -> Said {
    let rate_now = stats::median(&record.rates(range, |point| point.attempts()));
    let per_s = rate_now.unwrap_or_default();
    say!(
        "to distinguish a timer from work, run at two different rates (the rate was always {})",
        rate(per_s)
    )
}
