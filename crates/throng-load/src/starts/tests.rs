//! Tests that random starts form a Poisson process, and that queries in any order agree.

use super::*;
use crate::profile::tests::any_rate;

const S: Duration = Duration::from_secs(1);

fn by_chance(rate: &Rate, time: Duration, seed: u64) -> Starts {
    Starts::new(rate, Spacing::Poisson, Some(time), Random::new(seed))
}

fn due_times(starts: &Starts) -> Vec<Duration> {
    (0..).map_while(|k| starts.due(k)).collect()
}

/// Mean and variance.
fn moments(figures: &[f64]) -> (f64, f64) {
    let count = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / count;
    (mean, figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / count)
}

#[test]
fn counts_and_gaps_of_a_poisson_process_have_its_variance() {
    let due = due_times(&by_chance(&Rate::constant(200.0), S * 1000, 7));
    // Five standard deviations of 200,000 are 2,236.
    assert!(due.len().abs_diff(200_000) < 2_300, "{}", due.len());
    let mut counts = vec![0.0; 10_000];
    due.iter().for_each(|due| counts[(due.as_millis() / 100) as usize] += 1.0);
    let (mean, variance) = moments(&counts);
    assert!((mean - 20.0).abs() < 0.3 && (variance - 20.0).abs() < 2.0, "{mean} {variance}");
    let gaps: Vec<f64> =
        due.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 200.0).collect();
    let (mean, variance) = moments(&gaps);
    assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    // Evenly spaced starts have no variance.
    let even = Starts::new(&Rate::constant(200.0), Spacing::Even, Some(S * 10), Random::new(7));
    assert_eq!(due_times(&even).len(), 2_001, "the last one is due at the end");
}

#[test]
fn random_starts_follow_the_rate() {
    // A ramp from zero has a quarter of its starts in the first half.
    let due = due_times(&by_chance(&Rate::Ramp { from: 0.0, to: 400.0 }, S * 500, 3));
    let first = due.iter().filter(|due| **due < S * 250).count();
    assert!(due.len().abs_diff(100_000) < 1_600 && first.abs_diff(25_000) < 800, "{first}");
    let seeds = [1, 2].map(|seed| due_times(&by_chance(&Rate::constant(50.0), S, seed)));
    assert_ne!(seeds[0], seeds[1]);
}

#[test]
fn starts_can_be_queried_and_counted_in_any_order() {
    let mut random = Random::new(12);
    for round in 0..200 {
        let rate = any_rate(&mut random);
        let time = Duration::from_millis(1 + random.below(5_000));
        let spacing = [Spacing::Even, Spacing::Poisson][round % 2];
        let starts = Starts::new(&rate, spacing, Some(time), Random::new(round as u64));
        let all = due_times(&starts);
        assert!(all.windows(2).all(|pair| pair[0] <= pair[1]), "round {round}");
        for _ in 0..20 {
            let k = random.below(all.len() as u64 + 2);
            assert_eq!(starts.due(k), all.get(k as usize).copied(), "round {round}");
            let until = time.mul_f64(random.unit());
            let before = all.iter().filter(|due| **due < until).count() as u64;
            let known = random.below(before + 1);
            assert_eq!(starts.count_before(until, known), before, "round {round}");
        }
        let mean = starts.profile.starts(time);
        let (least, most) = (Bound::Least, Bound::Most);
        let own = all.iter().filter(|due| **due < time).count() as u64;
        assert!((spacing.bound(mean, least)..=spacing.bound(mean, most)).contains(&own));
    }
}
