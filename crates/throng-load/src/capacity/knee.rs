//! Finds the loads at which a service changes from light to heavy load, and to collapse, from the
//! levels of a search.

use throng_metrics::capacity::{Knee, Level, LoadUnit};

use crate::capacity::hold::COLLAPSED;

/// Range of slopes around the flat maximum of the power, within 2 % of it (for an M/M/1 queue, 0.43
/// and 0.57 of its capacity).
const SLOPES: (f64, f64) = (0.75, 4.0 / 3.0);
/// Levels closer than this are one point.
const APART: f64 = 1.15;
/// Places between two levels at which the slope is computed.
const STEPS: u32 = 16;
/// If no level is slower than this multiple of the fastest one, there is no knee: the slope is only
/// noise.
const SLOWER: f64 = 1.5;
/// A level is served as offered if its goodput is at least this part of the offered load.
const SERVED: f64 = 0.98;

/// One point per load, of levels that follow each other.
struct Spot {
    load: f64,
    mean_s: f64,
}

/// Goodput says nothing about a number of users, because users may only stay connected.
pub(in crate::capacity) fn knee(levels: &[Level], unit: LoadUnit) -> Knee {
    let (maximum, collapse) = match unit {
        LoadUnit::PerS => maximum(levels),
        LoadUnit::Users => (None, None),
    };
    let spots = spots(levels);
    let fastest = spots.iter().map(|spot| spot.mean_s).fold(f64::INFINITY, f64::min);
    let is_slower = spots.last().is_some_and(|last| last.mean_s >= SLOWER * fastest);
    let slopes = slopes(&spots);
    let at = |slope: f64| crossing(&slopes, slope);
    let optimal = at(SLOPES.0).zip(at(SLOPES.1)).filter(|_| is_slower);
    Knee { optimal, maximum, collapse }
}

/// Levels that were served, by load; the mean of those close together.
fn spots(levels: &[Level]) -> Vec<Spot> {
    let mut sorted: Vec<&Level> = levels.iter().filter(|level| is_served(level)).collect();
    sorted.sort_by(|a, b| a.load.total_cmp(&b.load));
    let mut groups: Vec<Vec<&Level>> = Vec::new();
    for level in sorted {
        match groups.last_mut() {
            Some(group) if level.load <= group[0].load * APART => group.push(level),
            _ => groups.push(vec![level]),
        }
    }
    let mean = |group: &Vec<&Level>| {
        let attempts: f64 = group.iter().map(|level| level.attempts as f64).sum();
        let weighed = |of: fn(&Level) -> f64| {
            group.iter().map(|level| of(level) * level.attempts as f64).sum::<f64>() / attempts
        };
        Spot { load: weighed(|level| level.load), mean_s: weighed(|level| level.mean_s) }
    };
    groups.iter().map(mean).collect()
}

fn is_served(level: &Level) -> bool {
    level.attempts > 0 && level.mean_s > 0.0 && level.served >= SERVED * level.offered
}

/// The slope of the logarithm of response time over that of load, at logarithms of loads. Between
/// levels, the inverse of the response time is interpolated without oscillation (monotone cubic,
/// Fritsch and Butland 1984). It is a straight line for an M/M/1 queue and nearly straight for
/// others. The response time itself is too curved for linear interpolation.
fn slopes(spots: &[Spot]) -> Vec<(f64, f64)> {
    let speed = |spot: &Spot| 1.0 / spot.mean_s;
    let rise = |pair: &[Spot]| (speed(&pair[1]) - speed(&pair[0])) / (pair[1].load - pair[0].load);
    let rises: Vec<f64> = spots.windows(2).map(rise).collect();
    let at = |place: usize| match (
        place.checked_sub(1).and_then(|it| rises.get(it)),
        rises.get(place),
    ) {
        (Some(before), Some(after)) if before * after > 0.0 => {
            let (own, next) = (&spots[place], &spots[place + 1]);
            let part = (1.0 + (next.load - own.load) / (next.load - spots[place - 1].load)) / 3.0;
            before * after / (part * after + (1.0 - part) * before)
        }
        (Some(_), Some(_)) | (None, None) => 0.0,
        (Some(only), None) | (None, Some(only)) => *only,
    };
    let mut slopes = Vec::new();
    for (place, pair) in spots.windows(2).enumerate() {
        let (from, wide) = (pair[0].load, pair[1].load - pair[0].load);
        let (first, last, rise) = (at(place), at(place + 1), rises[place]);
        // The cubic through both ends, with these derivatives there.
        let bend = (3.0 * rise - 2.0 * first - last) / wide;
        let twist = (first + last - 2.0 * rise) / wide.powi(2);
        for step in 0..STEPS {
            let x = wide * (f64::from(step) + 0.5) / f64::from(STEPS);
            let speed = speed(&pair[0]) + x * (first + x * (bend + x * twist));
            let change = first + x * (2.0 * bend + x * 3.0 * twist);
            slopes.push(((from + x).ln(), -change * (from + x) / speed));
        }
    }
    slopes
}

/// The load at which the slope first reaches this value and stays above; None if it never does.
fn crossing(slopes: &[(f64, f64)], slope: f64) -> Option<f64> {
    let above = slopes.iter().rposition(|(_, it)| *it < slope).map_or(0, |last| last + 1);
    let (after, before) = (slopes.get(above)?, slopes.get(above.checked_sub(1)?)?);
    // A slope grows roughly as a power of the load.
    let (low, high) = (before.1.max(0.02).ln(), after.1.ln());
    let part = ((slope.ln() - low) / (high - low)).clamp(0.0, 1.0);
    Some((before.0 + part * (after.0 - before.0)).exp())
}

fn maximum(levels: &[Level]) -> (Option<(f64, f64)>, Option<f64>) {
    let full = levels.iter().filter(|level| is_served(level) && level.is_met());
    let highest = full.map(|level| level.served).fold(0.0, f64::max);
    let lost = |level: &&Level| level.load > highest && level.served < SERVED * level.offered;
    let unserved = levels.iter().filter(lost).map(|level| level.load).reduce(f64::min);
    let fallen = |level: &&Level| level.load > highest && level.served < COLLAPSED * highest;
    let collapse = levels.iter().filter(fallen).map(|level| level.load).reduce(f64::min);
    (unserved.filter(|_| highest > 0.0).map(|unserved| (highest, unserved)), collapse)
}
