//! Finds the loads at which a service changes from light to heavy load, and to collapse, from the
//! levels of a search.

use throng_metrics::capacity::{Knee, Level};

use crate::capacity::hold::COLLAPSED;

/// Around the maximum of the power, which is flat: it is within 2 % of it between these slopes (of
/// an M/M/1 queue, 0.43 and 0.57 of its capacity).
const SLOPES: (f64, f64) = (0.75, 4.0 / 3.0);
/// Levels closer than this are one point.
const APART: f64 = 1.15;
/// A level is served as offered if its goodput is at least this part of the offered load.
const SERVED: f64 = 0.98;

/// One point per load, of levels that follow each other.
struct Spot {
    load: f64,
    mean_s: f64,
}

pub(in crate::capacity) fn knee(levels: &[Level]) -> Knee {
    let (maximum, collapse) = maximum(levels);
    let at = |slope: f64| crossing(&slopes(levels), slope);
    Knee { optimal: at(SLOPES.0).zip(at(SLOPES.1)), maximum, collapse }
}

/// Levels that were served, in order of their load; those close together as their mean.
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

/// The slope of the logarithm of response time over that of load, between neighbours, at the
/// logarithm of the load between them.
fn slopes(levels: &[Level]) -> Vec<(f64, f64)> {
    let spots = spots(levels);
    let slope = |pair: &[Spot]| {
        let apart = (pair[1].load / pair[0].load).ln();
        let at = f64::midpoint(pair[0].load.ln(), pair[1].load.ln());
        (at, (pair[1].mean_s / pair[0].mean_s).ln() / apart)
    };
    spots.windows(2).map(slope).collect()
}

/// The load at which the slope first reaches this and stays above; None where it does not.
fn crossing(slopes: &[(f64, f64)], slope: f64) -> Option<f64> {
    let above = slopes.iter().rposition(|(_, it)| *it < slope).map_or(0, |last| last + 1);
    let (after, before) = (slopes.get(above)?, slopes.get(above.checked_sub(1)?)?);
    // A slope grows about as a power of the load.
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
