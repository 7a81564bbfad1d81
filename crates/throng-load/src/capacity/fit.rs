//! Estimates the border, the load at which the share of bad attempts equals the allowed share, from
//! the counts of visits on both sides.
//!
//! The strain (share over allowed share) grows with a power of the load near the border. The power
//! and the border are fitted by quasi-likelihood (Wedderburn, Biometrika 1974) with the variance of
//! a negative binomial count, because bad attempts come in clusters: a visit with many bad attempts
//! weighs little more than one with [`CLUSTER`]. No logarithm of a count is taken, so that visits
//! without a bad attempt count as well. The service may become slower meanwhile, so the fit
//! includes a trend over time; the border is the one at the middle of the visits.

use throng_base::random::Random;

/// Number of bad attempts in a visit above which further ones add little information.
const CLUSTER: f64 = 50.0;
/// Maximum strain in the data and in the curve: above it, a queue is full and the share depends on
/// the length of the visit.
const STRAIN_MAX: f64 = 20.0;
/// Prior of the power, and the weight of the prior: a queue with a limit of 50 service times has a
/// power of 45.
const SLOPE_USUAL: f64 = 40.0;
const SLOPE_SPREAD: f64 = 20.0;
const SLOPE_MIN: f64 = 4.0;
const SLOPE_MAX: f64 = 400.0;
/// Prior of the trend, as a factor of the strain per minute.
const TREND_SPREAD: f64 = 0.4;
const TREND_MAX: f64 = 0.05;
/// Variance of a count of clustered attempts, as a multiple of that of independent ones.
const CLUSTERED: f64 = 20.0;
const STEPS_MAX: usize = 30;
const RESAMPLES: usize = 200;
/// Maximum distance of the border from the visits, as a logarithm.
const BEYOND: f64 = 0.07;

/// The counts of one visit for one threshold.
#[derive(Clone, Copy, Debug)]
pub(in crate::capacity) struct Point {
    /// Natural logarithm of the load.
    pub(in crate::capacity) at: f64,
    /// Minutes after the middle of all visits.
    pub(in crate::capacity) minutes: f64,
    pub(in crate::capacity) attempts: f64,
    pub(in crate::capacity) bad: f64,
}

/// The strain is `(load / border)` to the power of the slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::capacity) struct Curve {
    /// Natural logarithm of the load.
    pub(in crate::capacity) border: f64,
    pub(in crate::capacity) slope: f64,
    /// Change of the border, as a logarithm per minute.
    pub(in crate::capacity) trend: f64,
}

impl Curve {
    pub(in crate::capacity) fn new(border: f64) -> Curve {
        Curve { border: border.ln(), slope: SLOPE_USUAL, trend: 0.0 }
    }

    /// The curve `minutes` later.
    pub(in crate::capacity) fn later(self, minutes: f64) -> Curve {
        Curve { border: self.border + self.trend * minutes, ..self }
    }

    /// The load at which this strain is expected.
    pub(in crate::capacity) fn load_at(self, strain: f64) -> f64 {
        (self.border + strain.ln() / self.slope).exp()
    }

    pub(in crate::capacity) fn strain_at(self, load: f64) -> f64 {
        ((load.ln() - self.border) * self.slope).exp()
    }
}

/// Starting point of a fit, and the prior of the slope.
#[derive(Clone, Copy, Debug)]
pub(in crate::capacity) struct Assumed {
    curve: Curve,
    slope: f64,
    spread: f64,
}

impl Assumed {
    /// The default prior.
    pub(in crate::capacity) fn of(curve: Curve) -> Assumed {
        Assumed { curve, slope: SLOPE_USUAL, spread: SLOPE_SPREAD }
    }

    /// The prior for resampled visits: the slope of the fit to all visits is roughly known.
    pub(in crate::capacity) fn again(curve: Curve) -> Assumed {
        Assumed { curve, slope: curve.slope, spread: curve.slope / 3.0 }
    }
}

/// The curve through the points; None if no attempt was bad, because the border is then above all
/// visits.
pub(in crate::capacity) fn curve(
    points: &[Point],
    allowed: f64,
    assumed: Assumed,
) -> Option<Curve> {
    if points.iter().all(|point| point.bad <= 0.0) {
        return None;
    }
    // The second fit uses the noise that the first one leaves.
    let first = fit(points, allowed, &assumed, 1.0);
    let noise = noise(points, allowed, first);
    Some(fit(points, allowed, &Assumed { curve: first, ..assumed }, noise))
}

fn fit(points: &[Point], allowed: f64, assumed: &Assumed, noise: f64) -> Curve {
    let cut = STRAIN_MAX.min(0.5 / allowed);
    let first = assumed.curve;
    let center = first.border;
    // Level and slope of the logarithm of the strain over that of the load, and its increase per
    // minute.
    let mut by = [0.0, first.slope, -first.trend * first.slope];
    for _ in 0..STEPS_MAX {
        let (score, weight) = score(points, (allowed, cut), (center, assumed, noise), by);
        let Some(step) = solved(weight, score) else { break };
        let before = by;
        by[0] = (by[0] + step[0].clamp(-2.0, 2.0)).clamp(-30.0, 30.0);
        by[1] = (by[1] + step[1].clamp(-20.0, 20.0)).clamp(SLOPE_MIN, SLOPE_MAX);
        by[2] = (by[2] + step[2].clamp(-0.5, 0.5)).clamp(-TREND_MAX * by[1], TREND_MAX * by[1]);
        if (0..3).all(|index| (by[index] - before[index]).abs() < [1e-4, 1e-2, 1e-4][index]) {
            break;
        }
    }
    let low = points.iter().map(|point| point.at).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|point| point.at).fold(f64::NEG_INFINITY, f64::max);
    let border = (center - by[0] / by[1]).clamp(low - BEYOND, high + BEYOND);
    Curve { border, slope: by[1], trend: -by[2] / by[1] }
}

/// First derivatives by level, slope and rise, and the expected second ones.
fn score(
    points: &[Point],
    (allowed, cut): (f64, f64),
    (center, from, noise): (f64, &Assumed, f64),
    by: [f64; 3],
) -> ([f64; 3], [[f64; 3]; 3]) {
    let priors = [0.0, from.spread.powi(-2), TREND_SPREAD.powi(-2)];
    let mut first = [0.0, (from.slope - by[1]) * priors[1], -by[2] * priors[2]];
    let mut second = [[0.0; 3]; 3];
    for (index, prior) in priors.iter().enumerate() {
        second[index][index] = prior.max(1e-9);
    }
    for point in points {
        let along = [1.0, point.at - center, point.minutes];
        let height: f64 = along.iter().zip(by).map(|(along, by)| along * by).sum();
        let free = height.clamp(-40.0, 40.0).exp();
        let kept = (-free / cut).exp();
        let expected = point.attempts * allowed * cut * (1.0 - kept);
        let change = point.attempts * allowed * free * kept;
        if expected <= 1e-12 {
            continue;
        }
        let bad = point.bad.min(point.attempts * allowed * cut);
        let variance = noise * variance(expected);
        let (residual, weight) = (bad - expected, change / variance);
        for row in 0..3 {
            first[row] += residual * weight * along[row];
            for column in 0..3 {
                second[row][column] += change * weight * along[row] * along[column];
            }
        }
    }
    (first, second)
}

/// The variance of a count, including the variation between clusters. Without the latter, the prior
/// would have no weight.
fn variance(expected: f64) -> f64 {
    CLUSTERED * expected * (1.0 + expected / CLUSTER)
}

/// The variance of the counts around a curve, as a multiple of the usual one, at least 1: with it,
/// few and very different visits do not outweigh what is assumed.
fn noise(points: &[Point], allowed: f64, curve: Curve) -> f64 {
    let cut = STRAIN_MAX.min(0.5 / allowed);
    let squares = points.iter().map(|point| {
        let free = curve.later(point.minutes).strain_at(point.at.exp());
        let expected = point.attempts * allowed * cut * (1.0 - (-free / cut).exp());
        let bad = point.bad.min(point.attempts * allowed * cut);
        (bad - expected).powi(2) / variance(expected.max(1.0))
    });
    let count = points.len() as f64;
    (squares.sum::<f64>() / (count - 3.0).max(1.0)).max(1.0)
}

/// Solves three linear equations; `None` if they have no unique solution.
fn solved(of: [[f64; 3]; 3], is: [f64; 3]) -> Option<[f64; 3]> {
    let determinant = |of: [[f64; 3]; 3]| {
        let minor = |a: usize, b: usize| of[1][a] * of[2][b] - of[1][b] * of[2][a];
        of[0][0] * minor(1, 2) - of[0][1] * minor(0, 2) + of[0][2] * minor(0, 1)
    };
    let whole = determinant(of);
    let replaced = |column: usize| {
        let mut of = of;
        for (row, is) in of.iter_mut().zip(is) {
            row[column] = is;
        }
        determinant(of) / whole
    };
    let found = [replaced(0), replaced(1), replaced(2)];
    found.iter().all(|it| it.is_finite()).then_some(found)
}

/// The effective number of visits with bad attempts. If a few visits contain most of them, as in
/// spells of slowness, resampling cannot estimate their frequency.
pub(in crate::capacity) fn spread(points: &[Point], allowed: f64, curve: Curve) -> f64 {
    let ratio = |point: &Point| {
        let strain = curve.later(point.minutes).strain_at(point.at.exp()).clamp(0.1, STRAIN_MAX);
        (point.bad / (point.attempts * allowed * strain)).min(STRAIN_MAX)
    };
    let (sum, squares) = points
        .iter()
        .map(ratio)
        .fold((0.0, 0.0), |(sum, squares), ratio| (sum + ratio, squares + ratio * ratio));
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

/// Curves fitted to visits resampled with replacement. Their spread is that of the border, even if
/// bad attempts are clustered within visits.
pub(in crate::capacity) fn resampled(
    visits: usize,
    random: &mut Random,
    mut fit: impl FnMut(&[usize]) -> Curve,
) -> Vec<Curve> {
    let mut drawn = || (0..visits).map(|_| random.below(visits as u64) as usize).collect();
    (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<usize> = drawn();
            fit(&drawn)
        })
        .collect()
}
