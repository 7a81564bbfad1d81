//! Runs searches on queues whose capacity is known. `cargo xtask bench capacity` runs more of them.

use super::law::{brute_force, law, lowest, waits};
use super::run::{search, settings};
use super::{Figures, HEADING, Model, figures};

const THREADS: usize = 2;
const SEEDS: u64 = 10;
/// At 10,000/s, a search has ten times as many attempts.
const SEEDS_FAST: u64 = 2;

/// Checks the requirements, with a tolerance for the small number of searches.
fn check(model: Model, rate: f64, seeds: u64) {
    let it: Figures = figures(model, rate, 1..seeds + 1, THREADS);
    let shown = format!("\n{HEADING}\n{}", it.row());
    let all = it.searches;
    assert!(it.intervals * 20 >= all * 17, "most end with an interval{shown}");
    // 20 minutes contain 26 spells. At 200/s, they cause too few bad attempts.
    if model != Model::Spells || rate > 200.0 {
        assert!(it.right * 10 + 10 >= it.intervals * 9, "intervals hold the law{shown}");
        assert!(it.too_high * 100 <= all, "promises exceed the law{shown}");
    }
    assert_eq!((it.twice, it.rises), (0, 0), "the target was hurt{shown}");
    if model == Model::Retry {
        assert_eq!(it.collapsed, all, "a collapse is recognized{shown}");
    }
    if rate >= 1000.0 && model != Model::Spells {
        assert!(it.half_width <= 0.05, "intervals are wide{shown}");
    }
}

fn check_at(rate: f64, seeds: u64) {
    for model in Model::ALL {
        check(model, rate, seeds);
    }
}

#[test]
fn searches_at_200_per_second_find_the_law() {
    check_at(200.0, SEEDS);
}

#[test]
fn searches_at_1000_per_second_find_the_law() {
    check_at(1000.0, SEEDS);
}

#[test]
fn searches_at_10000_per_second_find_the_law() {
    check_at(10_000.0, SEEDS_FAST);
}

#[test]
fn the_closed_forms_agree_with_brute_force() {
    for model in [Model::OneServer, Model::EightServers, Model::FixedTimes] {
        let (exact, found) = (law(model, 1000.0, 0.0), brute_force(model, 1000.0, 200_000.0));
        assert!((exact / found - 1.0).abs() < 0.02, "{}: {exact} and {found}", model.name());
    }
}

/// The mean response time at a utilization, in service times.
fn mean(model: Model, part: f64) -> f64 {
    match model {
        Model::OneServer => 1.0 / (1.0 - part),
        Model::FixedTimes => 1.0 + part / (2.0 * (1.0 - part)),
        Model::EightServers => 1.0 + waits(8, part) / (8.0 * (1.0 - part)),
        other => panic!("{} has no formula here", other.name()),
    }
}

/// The load at which one percent more load makes responses `slope` percent slower.
fn load_with_slope(model: Model, rate: f64, slope: f64) -> f64 {
    let log = |part: f64| mean(model, part).ln();
    let own = |part: f64| (log(part * 1.0005) - log(part / 1.0005)) / (2.0 * 1.0005f64.ln());
    lowest(rate, |load| own(load / rate) > slope)
}

#[test]
fn the_knee_is_where_response_time_grows_as_fast_as_load() {
    for model in [Model::OneServer, Model::EightServers, Model::FixedTimes] {
        let exact = [0.75, 4.0 / 3.0].map(|slope| load_with_slope(model, 1_000.0, slope));
        let knee = |seed| search(model, 1_000.0, settings(model, 1_000.0, seed)).answer.knee;
        let found: Vec<(f64, f64)> = (1..=SEEDS).filter_map(|seed| knee(seed).optimal).collect();
        assert_eq!(found.len(), SEEDS as usize, "{}: each search has a knee", model.name());
        let ends = [found.iter().map(|it| it.0).collect(), found.iter().map(|it| it.1).collect()];
        for (exact, mut ends) in exact.into_iter().zip::<[Vec<f64>; 2]>(ends) {
            ends.sort_by(f64::total_cmp);
            let middle = ends[ends.len() / 2] / exact;
            assert!((middle - 1.0).abs() < 0.1, "{}: {ends:?} beside {exact}", model.name());
            assert!(ends.iter().all(|end| (end / exact - 1.0).abs() < 0.3), "{ends:?}");
        }
    }
}
