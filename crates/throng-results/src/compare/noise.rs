//! Estimates the random error of a run's values by resampling its seconds.
//!
//! Consecutive seconds are correlated: queues drain, caches fill, a pause of the target lasts.
//! Resampling single seconds would underestimate the noise, so blocks of consecutive units are
//! drawn: the moving-block bootstrap (Künsch: "The jackknife and the bootstrap for general
//! stationary observations", 1989), on a circle so that all units have equal weight (Politis and
//! Romano: "A circular block-resampling procedure for stationary data", 1992). The length of a
//! block is the cube root of the number of units. The standard deviation of the resampled values is
//! the standard error. With few blocks, it is itself uncertain, which Student's t takes into
//! account.

use throng_base::random::Random;
use throng_metrics::Quantity;
use throng_metrics::histogram::bucket;

use super::units::Cell;

/// Number of resamples.
const DRAWS: usize = 1_000;
/// Minimum number of units with results for an estimate of noise.
pub(super) const UNITS_MIN: usize = 5;
/// Confidence level of the intervals.
pub const CONFIDENCE: f64 = 0.95;
/// The same as a two-sided quantile of the normal distribution.
pub(super) const NORMAL_95: f64 = 1.959_964;
/// Larger multiples of the standard error are treated as equal.
const ERRORS_MAX: f64 = 1e6;

/// The standard error of a percentile that is reported as the middle of its bucket: 1/64 of the
/// value divided by the square root of 12 (uniform distribution within the bucket).
const BUCKET_ERROR: f64 = 1.0 / 64.0 / 3.464;

/// The standard errors of several values of one run.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    pub(super) errors: Vec<f64>,
    /// Effective number of independent blocks.
    pub(super) stretches: f64,
}

/// The cells of a row as plain numbers, for fast resampling.
struct Drawn {
    count: u64,
    failed: u64,
    in_time: u64,
    cpu_ns: u64,
    timed: u64,
    sum: f64,
    buckets: Vec<u64>,
}

impl Drawn {
    fn nothing(buckets: usize) -> Drawn {
        let buckets = vec![0; buckets];
        Drawn { count: 0, failed: 0, in_time: 0, cpu_ns: 0, timed: 0, sum: 0.0, buckets }
    }

    fn of(cell: &Cell, places: &[usize]) -> Drawn {
        let mut drawn = Drawn::nothing(places.len());
        (drawn.count, drawn.failed) = (cell.count, cell.count - cell.ok);
        (drawn.in_time, drawn.cpu_ns) = (cell.in_time, cell.cpu_ns);
        drawn.timed = cell.latency.count();
        drawn.sum = cell.latency.mean() * cell.latency.count() as f64;
        for (index, count) in cell.latency.buckets() {
            if let Ok(at) = places.binary_search(&index) {
                drawn.buckets[at] = count;
            }
        }
        drawn
    }

    fn add(&mut self, other: &Drawn, times: u64) {
        self.count += other.count * times;
        self.failed += other.failed * times;
        self.in_time += other.in_time * times;
        self.cpu_ns += other.cpu_ns * times;
        self.timed += other.timed * times;
        self.sum += other.sum * times as f64;
        let both = self.buckets.iter_mut().zip(&other.buckets);
        both.for_each(|(mine, theirs)| *mine += theirs * times);
    }

    fn figure(&self, measure: Quantity, places: &[usize], seconds: f64) -> Option<f64> {
        match measure {
            Quantity::Rate => Some(self.in_time as f64 / seconds),
            Quantity::Failed => (self.count > 0).then(|| self.failed as f64 / self.count as f64),
            Quantity::Mean => (self.timed > 0).then(|| self.sum / self.timed as f64),
            Quantity::Quantile(quantile) => self.quantile(quantile, places),
            Quantity::Cores => Some(self.cpu_ns as f64 / 1e9 / seconds),
            Quantity::CpuPerAttempt => {
                (self.count > 0).then(|| self.cpu_ns as f64 / self.count as f64)
            }
            Quantity::TargetCpuPerAttempt => None,
        }
    }

    /// Interpolated within its bucket: whole buckets would hide smaller noise.
    fn quantile(&self, quantile: f64, places: &[usize]) -> Option<f64> {
        let rank = quantile * self.timed as f64;
        let mut before = 0;
        for (count, place) in self.buckets.iter().zip(places) {
            if *count > 0 && (before + count) as f64 >= rank {
                let range = bucket(*place);
                let within = (rank - before as f64) / *count as f64;
                return Some(range.start as f64 + within * (range.end - range.start) as f64);
            }
            before += count;
        }
        None
    }
}

/// The value of one cell that covers this many seconds. A percentile is interpolated within its
/// bucket, and requires at least one value above it.
pub(super) fn figure_of_cell(cell: &Cell, measure: Quantity, seconds: f64) -> Option<f64> {
    let places: Vec<usize> = cell.latency.buckets().map(|(index, _)| index).collect();
    let drawn = Drawn::of(cell, &places);
    match measure {
        Quantity::Quantile(quantile) if drawn.timed as f64 * (1.0 - quantile) < 1.0 - 1e-9 => None,
        _ => drawn.figure(measure, &places, seconds),
    }
}

impl Noise {
    /// For cells in the order of time, each covering this many seconds; `None` if there are too
    /// few.
    pub(super) fn of(
        cells: &[Cell],
        seconds: f64,
        measures: &[Quantity],
        mut random: Random,
    ) -> Option<Noise> {
        let units = cells.len();
        // What happened only once, such as connecting, has no measurable noise.
        if cells.iter().filter(|cell| cell.count > 0).count() < UNITS_MIN {
            return None;
        }
        // Only percentiles need histograms, which are most of the work.
        let is_asked = measures.iter().any(|measure| matches!(measure, Quantity::Quantile(_)));
        let buckets = cells.iter().filter(|_| is_asked).flat_map(|cell| cell.latency.buckets());
        let mut places: Vec<usize> = buckets.map(|(index, _)| index).collect();
        places.sort_unstable();
        places.dedup();
        let drawn: Vec<Drawn> = cells.iter().map(|cell| Drawn::of(cell, &places)).collect();
        let length = (units as f64).cbrt().ceil() as usize;
        let mut figures: Vec<Spread> = vec![Spread::default(); measures.len()];
        for _ in 0..DRAWS {
            let mut sum = Drawn::nothing(places.len());
            for (unit, times) in drawn.iter().zip(draw(units, length, &mut random)) {
                if times > 0 {
                    sum.add(unit, times);
                }
            }
            let time = seconds * units as f64;
            for (spread, measure) in figures.iter_mut().zip(measures) {
                sum.figure(*measure, &places, time).into_iter().for_each(|one| spread.add(one));
            }
        }
        // Blocks of neighbors vary less than independent units.
        let widened = (units as f64 / (units - length) as f64).sqrt();
        let errors = figures.iter().zip(measures).map(|(spread, measure)| {
            let rounded = match measure {
                Quantity::Quantile(_) => spread.mean * BUCKET_ERROR,
                _ => 0.0,
            };
            (spread.deviation() * widened).hypot(rounded)
        });
        let errors = errors.collect();
        Some(Noise { errors, stretches: units as f64 / length as f64 })
    }
}

/// How often each unit occurs in one resample with this block length.
fn draw(units: usize, length: usize, random: &mut Random) -> Vec<u64> {
    let mut times = vec![0; units];
    let mut left = units;
    while left > 0 {
        let start = random.below(units as u64) as usize;
        let taken = length.min(left);
        (start..start + taken).for_each(|at| times[at % units] += 1);
        left -= taken;
    }
    times
}

/// Mean and standard deviation in one pass (Welford: "Note on a method for calculating corrected
/// sums of squares and products", 1962).
#[derive(Clone, Debug, Default)]
struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, figure: f64) {
        self.count += 1.0;
        let off = figure - self.mean;
        self.mean += off / self.count;
        self.squares += off * (figure - self.mean);
    }

    fn deviation(&self) -> f64 {
        if self.count < 2.0 { 0.0 } else { (self.squares / (self.count - 1.0)).sqrt() }
    }
}

/// Half the width of an interval in standard errors.
pub(super) fn reach(freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e3);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if as_normal(middle, freedom) < NORMAL_95 { low = middle } else { high = middle }
    }
    high
}

/// The two-sided p-value of a change of this many standard errors.
pub(super) fn chance(change: f64, error: f64, freedom: f64) -> f64 {
    if change == 0.0 {
        return 1.0;
    }
    let errors = (change.abs() / error).min(ERRORS_MAX);
    upper_tail(as_normal(errors, freedom)) * 2.0
}

/// Student's t converted to a value of the normal distribution (Abramowitz and Stegun: "Handbook of
/// Mathematical Functions", 26.7.8).
fn as_normal(errors: f64, freedom: f64) -> f64 {
    errors * (1.0 - 1.0 / (4.0 * freedom)) / (1.0 + errors * errors / (2.0 * freedom)).sqrt()
}

/// The probability that a normal value exceeds this one, which is at least 0 (same source,
/// 26.2.17).
pub(super) fn upper_tail(value: f64) -> f64 {
    let near = 1.0 / (1.0 + 0.231_641_9 * value);
    let terms = [0.319_381_53, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * near);
    sum * (-value * value / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The largest p-value that counts as a finding, so that one in twenty findings is false (Benjamini
/// and Hochberg: "Controlling the false discovery rate", 1995).
pub(super) fn largest_finding(mut chances: Vec<f64>) -> f64 {
    chances.sort_by(f64::total_cmp);
    let all = chances.len() as f64;
    let counts =
        |(at, chance): &(usize, &f64)| **chance <= (1.0 - CONFIDENCE) * (*at as f64 + 1.0) / all;
    chances.iter().enumerate().rev().find(counts).map_or(-1.0, |(_, chance)| *chance)
}
