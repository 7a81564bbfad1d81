//! Parallel loads on one shard: each has its own measurements, phases and end.

use throng_program::{Arrivals, Start};

use super::*;

fn load(name: &str, start: Start, phases: Vec<Phase>) -> Load {
    Load { name: name.into(), start, ..Load::alone(phases) }
}

/// Four staying users, twenty arriving ones, two that run ten iterations after those have left, and
/// one that starts with them.
fn side_by_side() -> Program {
    let arrivals = Phase { drive: Drive::Arrivals(Arrivals::ramp(10.0, 10.0)), ..users(0, 2 * S) };
    let loads = vec![
        load("readers", Start::At(Duration::ZERO), vec![users(4, 3 * S), users(2, 3 * S)]),
        load("buyers", Start::At(500 * MS), vec![arrivals]),
        load("admins", Start::After(1), vec![iterations(2, None, Some(10))]),
        load("auditor", Start::With(2), vec![users(1, S)]),
    ];
    Program { loads, ..program(Vec::new()) }
}

/// The results of the phases, by their numbers across all loads.
fn by_phase(outcomes: &[Outcome]) -> Vec<Interval> {
    let mut phases = vec![Interval::default(); 5];
    for interval in outcomes.iter().flat_map(|outcome| &outcome.intervals) {
        phases[usize::from(interval.phase)].merge_later(interval);
    }
    phases
}

#[test]
fn each_load_has_its_own_users_measurements_and_end() {
    for shards in [1, 3] {
        let of = |index| {
            let share = Share::WHOLE.thread(index, shards);
            run_in(&Hand::new(), side_by_side(), share, 20 * MS, &[])
        };
        let outcomes: Vec<Outcome> = (0..shards).map(of).collect();
        let phases = by_phase(&outcomes);
        let started = [0, 1, 2, 3, 4].map(|phase: usize| phases[phase].population.started);
        assert_eq!(started, [4, 0, 20, 2, 1], "{shards} shards");
        let done = |phase: usize| phases[phase].population.iterations_started;
        assert_eq!((done(2), done(3)), (20, 10), "{shards} shards");
        for phase in &phases {
            assert!(phase.total().ok > 0, "{shards} shards: {phase:?}");
        }
        // Attempts that start in one phase may end in the next.
        let total = |of: fn(&throng_metrics::StepInterval) -> u64| -> u64 {
            phases.iter().map(|phase| of(&phase.total())).sum()
        };
        assert_eq!(total(|it| it.begun), total(|it| it.ok) + total(|it| it.interrupted));
        let all: u64 = phases.iter().map(|phase| phase.population.finished).sum();
        assert_eq!(all, 27, "{shards} shards");
        for outcome in &outcomes {
            assert_eq!(outcome.ended(0), Time::from_secs(3));
            assert_eq!(outcome.ended(1), Time::from_secs(6));
            assert_eq!(outcome.ended(2), Time::ZERO + 2500 * MS);
            assert_eq!(outcome.ended(4), Time::ZERO + 3500 * MS);
            assert!(outcome.ended(3) < Time::from_secs(3), "{}", outcome.ended(3));
        }
    }
}

#[test]
fn a_stop_ends_all_loads_and_unstarted_ones_have_no_results() {
    let stop = |control: &Control, _| control.stop();
    let words: [Word; 1] = [(Time::from_secs(1), stop)];
    let outcome = run_in(&Hand::new(), side_by_side(), Share::WHOLE, 20 * MS, &words);
    assert!(outcome.end < Time::from_secs(2), "{}", outcome.end);
    let phases = by_phase(&[outcome]);
    let started = [0, 1, 2, 3, 4].map(|phase: usize| phases[phase].population.started);
    assert_eq!(started, [4, 0, 5, 0, 0]);
    assert_eq!((phases[3].total().begun, phases[4].total().begun), (0, 0));
}
