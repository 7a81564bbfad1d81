//! The autocorrelation time of the bad attempts per second: the number of seconds of a hold that
//! count as one independent second.

/// Maximum length of a batch, in seconds.
const BATCH_MAX: usize = 16;
/// With fewer batches, a variance is not used.
const BATCHES_MIN: usize = 5;

/// The autocorrelation time in seconds, at least 1, of several series of attempts and bad ones per
/// second: the greatest growth of the variance of a mean, over batches of 1, 2, 4, 8 … seconds.
/// Each series is one hold, and its mean is subtracted.
pub(in crate::capacity) fn time_s(series: &[Vec<(f64, f64)>]) -> f64 {
    let deviations: Vec<Vec<f64>> = series.iter().map(|series| deviations(series)).collect();
    let Some(single) = variance(&deviations, 1).filter(|single| *single > 0.0) else { return 1.0 };
    let sizes = std::iter::successors(Some(2_usize), |size| Some(size * 2));
    let growth = sizes
        .take_while(|size| *size <= BATCH_MAX)
        .filter_map(|size| variance(&deviations, size))
        .map(|variance| variance / single);
    growth.fold(1.0, f64::max)
}

fn deviations(series: &[(f64, f64)]) -> Vec<f64> {
    let attempts: f64 = series.iter().map(|(attempts, _)| attempts).sum();
    let bad: f64 = series.iter().map(|(_, bad)| bad).sum();
    let share = if attempts > 0.0 { bad / attempts } else { 0.0 };
    series.iter().map(|(attempts, bad)| bad - share * attempts).collect()
}

/// The variance of batches of `size` seconds, per second. The mean of each series is 0, which costs
/// one degree of freedom.
fn variance(series: &[Vec<f64>], size: usize) -> Option<f64> {
    let (mut sum, mut batches, mut free) = (0.0, 0_usize, 0.0);
    for series in series {
        let whole = series.len() / size;
        for batch in series.chunks_exact(size) {
            let total: f64 = batch.iter().sum();
            sum += total * total / size as f64;
            batches += 1;
        }
        free += (whole as f64 - 1.0).max(0.0);
    }
    (batches >= BATCHES_MIN && free > 0.0).then(|| sum / free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_base::random::Random;

    /// An autoregressive series with this factor has the time `(1 + factor) / (1 - factor)`.
    #[test]
    fn the_time_matches_the_series() {
        let time = |factor: f64| {
            let mut random = Random::new(3);
            let mut series = || {
                let mut value = 0.0;
                let mut next = || {
                    value = value * factor + random.uniform(-1.0, 1.0);
                    (1.0, value)
                };
                (0..60).map(|_| next()).collect::<Vec<_>>()
            };
            time_s(&(0..20).map(|_| series()).collect::<Vec<_>>())
        };
        assert!(time(0.0) < 1.4, "{}", time(0.0));
        assert!((2.0..4.0).contains(&time(0.5)), "{}", time(0.5));
        assert!((5.0..11.0).contains(&time(0.8)), "{}", time(0.8));
        assert_eq!((time_s(&[]), time_s(&[vec![(10.0, 0.0); 30]])), (1.0, 1.0));
    }
}
