//! Searches on queues whose capacity is known. `cargo xtask bench capacity` runs more of them.

use super::law::{brute_force, law};
use super::{Figures, HEADING, Model, figures};

const THREADS: usize = 2;
const SEEDS: u64 = 10;
/// At 10,000/s, a search has ten times the attempts.
const SEEDS_FAST: u64 = 2;

/// The requirements, with what chance allows in so few searches.
fn check(model: Model, rate: f64, seeds: u64) {
    let it: Figures = figures(model, rate, 1..seeds + 1, THREADS);
    let shown = format!("\n{HEADING}\n{}", it.row());
    let all = it.searches;
    assert!(it.intervals * 20 >= all * 17, "most end with an interval{shown}");
    // In 20 minutes there are 26 spells. At 200/s, too few bad attempts come of them.
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
fn a_closed_form_is_what_brute_force_finds() {
    for model in [Model::OneServer, Model::EightServers, Model::FixedTimes] {
        let (exact, found) = (law(model, 1000.0, 0.0), brute_force(model, 1000.0, 200_000.0));
        assert!((exact / found - 1.0).abs() < 0.02, "{}: {exact} and {found}", model.name());
    }
}
