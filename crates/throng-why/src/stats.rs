//! Statistics that are robust against outliers and autocorrelated noise. Spectra, and tests that
//! assume independent seconds, find something in clean runs: see `docs/why.md`.

use throng_base::Random;

/// Converts the median of absolute deviations to the standard deviation of normal values.
const MAD_SCALE: f64 = 1.4826;
/// Maximum number of points for a slope; more are averaged first.
const SLOPE_POINTS_MAX: usize = 150;
/// Number of random placements that a sequence of onsets is compared with.
const PLACEMENTS: u32 = 2_000;
/// This many equally regular placements are sufficient to reject regularity.
const AS_EVEN_MAX: u32 = 40;
/// Fixed seed of these placements: repeated evaluation gives the same result.
const PLACEMENTS_SEED: u64 = 0x7468_726f_6e67;
/// Minimum number of intervals to evaluate the regularity of onsets.
const GAPS_MIN: usize = 5;
/// An interval shorter than this share of the usual one is part of an interval.
const SHORT_MAX: f64 = 0.6;
/// Minimum share of intervals that remain after joining parts: otherwise anything is regular.
const KEPT_MIN: f64 = 0.7;
/// A shorter period is indistinguishable from noise: every number is nearly a multiple of it.
const PERIOD_MIN: f64 = 3.0;

/// The middle value, or the mean of the two middle values; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Linear between the two nearest values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

/// The median, and the standard deviation estimated from absolute deviations.
pub fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let middle = median(values)?;
    let off: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some((middle, median(&off)? * MAD_SCALE))
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Of a sample; 0 for fewer than two values.
fn variance(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    squares / values.len().saturating_sub(1).max(1) as f64
}

/// A statistic of each block of consecutive values; the rest belongs to the last block.
fn blocks_by(values: &[f64], length: usize, of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let length = length.max(1);
    let count = (values.len() / length).max(1);
    let block = |at: usize| {
        let end = if at + 1 == count { values.len() } else { (at + 1) * length };
        of(&values[at * length..end])
    };
    if values.is_empty() { Vec::new() } else { (0..count).map(block).collect() }
}

/// Means of blocks.
pub fn blocks(values: &[f64], length: usize) -> Vec<f64> {
    blocks_by(values, length, mean)
}

/// Medians of blocks, which a hiccup of a second does not affect.
pub fn block_medians(values: &[f64], length: usize) -> Vec<f64> {
    blocks_by(values, length, |block| median(block).unwrap_or_default())
}

/// A slope per value, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    pub slope: f64,
    pub low: f64,
    pub high: f64,
}

/// The median of all slopes between two values (Theil 1950, Sen 1968); the interval assumes
/// independent values. `None` for fewer than three values.
pub fn slope(values: &[f64]) -> Option<Slope> {
    let length = values.len().div_ceil(SLOPE_POINTS_MAX).max(1);
    let points = blocks(values, length);
    let n = points.len();
    if n < 3 {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for (at, first) in points.iter().enumerate() {
        let later = points[at + 1..].iter().zip(1..);
        slopes.extend(later.map(|(second, apart)| (second - first) / f64::from(apart)));
    }
    slopes.sort_by(f64::total_cmp);
    let all = slopes.len() as f64;
    let count = n as f64;
    let half = 1.96 * (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt() / 2.0;
    let at = |place: f64| slopes[place.clamp(0.0, all - 1.0) as usize] / length as f64;
    let middle = median(&slopes)? / length as f64;
    Some(Slope { slope: middle, low: at(all / 2.0 - half), high: at(all / 2.0 + half) })
}

/// By how many standard errors two groups of block means differ (Welch).
pub fn apart(first: &[f64], second: &[f64]) -> f64 {
    let error =
        variance(first) / first.len().max(1) as f64 + variance(second) / second.len().max(1) as f64;
    let difference = mean(second) - mean(first);
    if difference == 0.0 { 0.0 } else { difference / error.sqrt() }
}

/// By how many standard errors the shares `bad / all` of two groups differ.
pub fn shares_apart(first: (u64, u64), second: (u64, u64)) -> f64 {
    let [all, others] = [first.1, second.1].map(|count| count.max(1) as f64);
    let pooled = (first.0 + second.0) as f64 / (all + others);
    let error = (pooled * (1.0 - pooled) * (1.0 / all + 1.0 / others)).sqrt();
    let difference = first.0 as f64 / all - second.0 as f64 / others;
    if difference == 0.0 { 0.0 } else { difference / error }
}

/// The two-sided p-value of a normal value `z` (Abramowitz and Stegun 7.1.26).
pub fn chance_beyond(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = ((((1.061_405_429 * t - 1.453_152_027) * t) + 1.421_413_741) * t - 0.284_496_736)
        * t
        + 0.254_829_592;
    poly * t * (-x * x).exp()
}

/// Which of these p-values are significant at a level, given their number (Holm 1979).
pub fn holm(chances: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut found = vec![false; chances.len()];
    for (rank, at) in order.iter().enumerate() {
        if chances[*at] > level / (chances.len() - rank) as f64 {
            break;
        }
        found[*at] = true;
    }
    found
}

/// The regularity of a sequence of onsets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Even {
    pub period: f64,
    /// Of the intervals: standard deviation divided by the mean.
    pub variation: f64,
}

/// For ascending positions; `None` if there are too few. A missing onset doubles an interval, which
/// then counts as two. An unrelated onset splits an interval, whose parts are joined.
pub fn even(places: &[f64]) -> Option<Even> {
    let gaps: Vec<f64> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if gaps.len() < GAPS_MIN {
        return None;
    }
    let middle = median(&gaps)?;
    let all = gaps.len() as f64;
    let gaps = joined(gaps, middle);
    if gaps.len() < GAPS_MIN || middle <= 0.0 || (gaps.len() as f64) < all * KEPT_MIN {
        return None;
    }
    let single: Vec<f64> = gaps.iter().map(|gap| gap / (gap / middle).round().max(1.0)).collect();
    let period = mean(&single);
    if period < PERIOD_MIN {
        return None;
    }
    Some(Even { period, variation: variance(&single).sqrt() / period })
}

/// Short intervals, joined with the neighbor that is then closer to a multiple of the usual one.
fn joined(mut gaps: Vec<f64>, usual: f64) -> Vec<f64> {
    let off = |gap: f64| (gap / usual - (gap / usual).round().max(1.0)).abs();
    let mut at = 0;
    while at < gaps.len() {
        if gaps[at] >= usual * SHORT_MAX || gaps.len() < 2 {
            at += 1;
            continue;
        }
        let with_next = gaps.get(at + 1).map(|next| off(gaps[at] + next));
        let with_last = at.checked_sub(1).map(|last| off(gaps[at] + gaps[last]));
        let is_next = with_next.is_some_and(|next| with_last.is_none_or(|last| next <= last));
        let gap = gaps.remove(at);
        // The neighbor is now at this position, or before it.
        let neighbor = if is_next { at } else { at - 1 };
        gaps[neighbor] += gap;
        at = neighbor;
        if gaps[at] >= usual * SHORT_MAX {
            at += 1;
        }
    }
    gaps
}

/// The regularity of onsets if each point has a position, in time or on another scale; and the
/// probability that as many random onsets are as regular.
pub fn evenness(onsets: &[usize], places: &[f64]) -> Option<(Even, f64)> {
    let at = |onsets: &[usize]| even(&onsets.iter().map(|at| places[*at]).collect::<Vec<_>>());
    let found = at(onsets)?;
    let mut random = Random::new(PLACEMENTS_SEED);
    let (mut as_even, mut drawn) = (0, 0);
    while drawn < PLACEMENTS && as_even < AS_EVEN_MAX {
        drawn += 1;
        let point = |_: &usize| random.below(places.len() as u64) as usize;
        let mut placed: Vec<usize> = onsets.iter().map(point).collect();
        placed.sort_unstable();
        as_even += u32::from(at(&placed).is_some_and(|it| it.variation <= found.variation));
    }
    Some((found, f64::from(as_even + 1) / f64::from(drawn + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn medians_and_spreads_ignore_outliers() {
        assert_eq!((median(&[]), median(&[3.0, 1.0, 2.0])), (None, Some(2.0)));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), Some(1.75));
        let (middle, off) = spread(&[1.0, 2.0, 3.0, 4.0, 1e9]).unwrap();
        assert_eq!((middle, off), (3.0, MAD_SCALE));
        assert_eq!(blocks(&[1.0, 3.0, 5.0, 7.0, 9.0], 2), [2.0, 7.0]);
        assert_eq!(blocks(&[], 3), Vec::<f64>::new());
    }

    #[test]
    fn a_slope_is_found_among_outliers_and_not_in_noise() {
        let mut random = Random::new(3);
        let mut with: Vec<f64> =
            (0..200).map(|at| 0.1 * f64::from(at) + normal(&mut random)).collect();
        (0..200).step_by(10).for_each(|at| with[at] = 1e6);
        let found = slope(&with).unwrap();
        assert!((found.slope - 0.1).abs() < 0.02 && found.low > 0.05, "{found:?}");
        let inside = (0..200).filter(|seed| {
            let mut random = Random::new(*seed);
            let noise: Vec<f64> = (0..40).map(|_| normal(&mut random)).collect();
            slope(&noise).is_some_and(|it| it.low <= 0.0 && it.high >= 0.0)
        });
        let inside = inside.count();
        assert!((180..=199).contains(&inside), "{inside} of 200 intervals hold 0");
        assert_eq!(slope(&[1.0, 2.0]), None);
        let long: Vec<f64> = (0..10_000).map(f64::from).collect();
        assert!((slope(&long).unwrap().slope - 1.0).abs() < 1e-6);
    }

    #[test]
    fn p_values_are_those_of_the_normal_distribution() {
        for (z, chance) in [(0.0, 1.0), (1.96, 0.05), (2.576, 0.01), (3.891, 0.0001)] {
            assert!((chance_beyond(z) - chance).abs() < 2e-4, "{z}: {}", chance_beyond(z));
        }
        assert!(shares_apart((50, 1_000), (10, 1_000)) > 5.0);
        assert!(shares_apart((10, 1_000), (11, 1_000)).abs() < 0.3);
        assert!(apart(&[1.0, 1.1, 0.9], &[2.0, 2.1, 1.9]) > 10.0);
    }

    #[test]
    fn with_many_tests_each_p_value_must_be_smaller() {
        assert_eq!(holm(&[0.04], 0.05), [true]);
        assert_eq!(holm(&[0.04, 0.5, 0.6], 0.05), [false; 3]);
        assert_eq!(holm(&[0.5, 0.01, 0.02], 0.05), [false, true, true]);
        assert_eq!(holm(&[], 0.05), Vec::<bool>::new());
    }

    #[test]
    fn clocks_are_regular_and_random_onsets_are_not() {
        let seconds: Vec<f64> = (0..240).map(f64::from).collect();
        let clock: Vec<usize> = (0..12).filter(|at| *at != 5).map(|at| 3 + at * 20).collect();
        let (found, chance) = evenness(&clock, &seconds).unwrap();
        assert_eq!((found.period, found.variation), (20.0, 0.0));
        assert!(chance < 0.005);
        assert_eq!(evenness(&clock[..5], &seconds), None);
        let mut with_another = clock.clone();
        with_another.extend([30, 138, 210]);
        with_another.sort_unstable();
        let (same, chance) = evenness(&with_another, &seconds).unwrap();
        assert!(same == found && chance < 0.005);
        let alarms = (0..100).filter(|seed| {
            let mut random = Random::new(*seed);
            let mut onsets: Vec<usize> = (0..12).map(|_| random.below(240) as usize).collect();
            onsets.sort_unstable();
            evenness(&onsets, &seconds).is_some_and(|(_, chance)| chance < 0.01)
        });
        let alarms = alarms.count();
        assert!(alarms <= 4, "{alarms} of 100 random sequences are called even");
    }
}
