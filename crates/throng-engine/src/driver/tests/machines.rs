//! Machines of different weights together generate exactly the load of one.

use throng_program::{Arrivals, Spacing, Start};

use super::*;

fn load(name: &str, phases: Vec<Phase>) -> Load {
    Load { name: name.into(), start: Start::At(250 * MS), ..Load::alone(phases) }
}

/// Users that start and leave on schedule, users that arrive at random, and counted work.
fn program_of_loads() -> Program {
    let come = Drive::Users(Users { to: 23, coming: Coming::Rate(10.0) });
    let come = Phase { drive: come, ..users(0, 3 * S) };
    let chance = Arrivals { spacing: Spacing::Poisson, ..Arrivals::ramp(20.0, 60.0) };
    let chance = Phase { drive: Drive::Arrivals(chance), ..users(0, 3 * S) };
    let loads = vec![
        load("stay", vec![come, users(7, 2 * S), users(0, S)]),
        load("arrive", vec![chance, users(0, S)]),
        load("work", vec![iterations(11, None, Some(307)), iterations(5, Some(40.0), Some(60))]),
    ];
    Program { loads, ..program(Vec::new()) }
}

/// By phase, all machines and their threads together.
fn run_on(machines: &[(u64, u64)]) -> Vec<Interval> {
    let of = machines.iter().map(|(width, _)| width).sum();
    let mut phases = vec![Interval::default(); 7];
    let mut first = 0;
    for (width, threads) in machines {
        for thread in 0..*threads {
            let share = Share::of_machine(first, *width, of).thread(thread, *threads);
            let outcome = run_in(&Hand::new(), program_of_loads(), share, 20 * MS, &[]);
            for interval in &outcome.intervals {
                phases[usize::from(interval.phase)].merge_later(interval);
            }
        }
        first += width;
    }
    phases
}

#[test]
fn machines_of_any_weight_generate_the_load_of_one() {
    let alone = run_on(&[(1, 1)]);
    assert_eq!(alone[0].population.started, 23);
    assert_eq!(alone[5].total().begun + alone[6].total().begun, 367);
    assert!(alone[3].population.started > 90, "{}", alone[3].population.started);
    for machines in
        [[(1, 1), (1, 1)].as_slice(), &[(1, 2), (3, 5)], &[(1, 1), (2, 3), (1, 1), (4, 2), (1, 7)]]
    {
        let together = run_on(machines);
        for (phase, (one, all)) in alone.iter().zip(&together).enumerate() {
            let counts = |it: &Interval| (it.population.started, it.population.unmet);
            assert_eq!(counts(all), counts(one), "phase {phase} on {machines:?}");
        }
        let sum = |phases: &[Interval], loads: std::ops::Range<usize>| {
            let mut sum = Interval::default();
            phases[loads].iter().for_each(|interval| sum.merge_later(interval));
            sum
        };
        // Scheduled attempts are exactly the same; staying users run as much as they can, which
        // depends on their wake-ups and differs by one request each at most.
        for loads in [3..5, 5..7] {
            let (one, all) = (sum(&alone, loads.clone()), sum(&together, loads.clone()));
            let (one, all) = (one.total(), all.total());
            assert_eq!((all.begun, all.ok), (one.begun, one.ok), "{loads:?} on {machines:?}");
            for percentile in [0.5, 0.9, 0.99] {
                let of = |row: &throng_metrics::StepInterval| row.latency.value_at(percentile);
                let (one, all) = (of(&one) as f64, of(&all) as f64);
                assert!((all - one).abs() <= one / 100.0, "{percentile}: {one} and {all}");
            }
        }
        let (one, all) = (sum(&alone, 0..3).total(), sum(&together, 0..3).total());
        assert!(all.begun.abs_diff(one.begun) <= 23, "{} and {}", one.begun, all.begun);
    }
}
