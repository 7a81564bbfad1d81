//! Starts without a free user, in loads that drop them: none waits, and each is counted.

use throng_load::{Action, Schedule};
use throng_program::{Arrivals, Rate, Spacing};

use super::*;

fn arrivals(rate: f64, max: Option<u64>, spacing: Spacing, time: Duration) -> Phase {
    let rate = Rate::constant(rate);
    let drive = Drive::Arrivals(Arrivals { rate, spacing, max });
    Phase { drive, ..users(0, time) }
}

fn dropping(users: u64, rate: f64, time: Duration) -> Phase {
    let iterations = Iterations { drops: true, ..Iterations::new(users, Some(rate), None) };
    let drive = Drive::Iterations(iterations);
    Phase { drive, time: Some(time), ..iterations_of_none() }
}

fn iterations_of_none() -> Phase {
    iterations(1, None, Some(1))
}

/// Most users at the end of any second.
fn present_max(outcome: &Outcome) -> u64 {
    outcome.intervals.iter().map(|one| one.gauges.users_present).max().unwrap_or(0)
}

#[test]
fn arrivals_beyond_the_maximum_are_counted_as_dropped() {
    let run = |max, delay| {
        let phase = arrivals(100.0, max, Spacing::Even, 10 * S);
        let outcome = run(vec![phase], Share::WHOLE, delay, None);
        let population = outcome.sum.population.clone();
        assert_eq!((population.due(), population.unmet), (1000, 0), "{population:?}");
        assert_eq!(population.started, population.finished);
        assert!(present_max(&outcome) <= max.unwrap_or(100));
        (population.started, population.dropped)
    };
    // Each user stays for 995 ms, so that of a hundred due per second, ten find room.
    assert_eq!(run(Some(10), 995 * MS), (100, 900));
    assert_eq!(run(Some(10), 5 * MS).1, 0);
    assert_eq!(run(None, 995 * MS).1, 0);
}

#[test]
fn an_iteration_without_a_free_user_is_dropped_and_none_is_late() {
    let overloaded = |rate: f64| {
        let phase = dropping(10, rate, 10 * S);
        let outcome = run(vec![phase], Share::WHOLE, 99 * MS, None);
        let population = &outcome.sum.population;
        assert_eq!((population.due(), population.unmet), (rate as u64 * 10, 0), "{population:?}");
        // Ten users run a hundred per second.
        assert!((990..=1020).contains(&population.iterations_started), "{population:?}");
        // A user that becomes free takes what is due then, and what was due a moment before.
        let latency = &outcome.sum.steps[0].latency;
        assert!(latency.max() <= 102_000_000, "{}", latency.max());
        assert_eq!(outcome.set_in_the_past, 0);
        outcome.rung
    };
    overloaded(200.0);
    // Dropped starts wake the driver at most a thousand times a second, including its probes.
    let rung = overloaded(50_000.0);
    assert!(rung < 15_000, "{rung}");
    let enough = run(vec![dropping(10, 90.0, 10 * S)], Share::WHOLE, 99 * MS, None);
    let population = &enough.sum.population;
    assert_eq!((population.dropped, population.unmet, population.waited), (0, 0, 0));
    assert_eq!(population.iterations_started, 900);
}

#[test]
fn the_counts_of_all_shards_add_up_to_the_load() {
    let phases = vec![
        arrivals(300.0, Some(20), Spacing::Poisson, 3 * S),
        dropping(7, 200.0, 3 * S),
        arrivals(50.0, None, Spacing::Poisson, S),
    ];
    let mut schedule = Schedule::new(&Load::alone(phases.clone()), Share::WHOLE, Time::ZERO, 0);
    let mut due = 0;
    while let Some(action) = schedule.pop(Time::NEVER) {
        due += u64::from(matches!(action, Action::Arrive { .. }));
    }
    // Random starts follow from the seed and the load: they differ from those of the run, but not
    // in number.
    assert!((900..1300).contains(&due), "{due}");
    let books = |shards: u64| {
        let of = |index| {
            let share = Share::WHOLE.thread(index, shards);
            let sum = run(phases.clone(), share, 100 * MS, None).sum;
            assert_eq!(sum.population.started, sum.population.finished, "{:?}", sum.population);
            // Staying users are not starts, but their iterations are.
            let stayed = share.part(7);
            let population = sum.population;
            let starts = population.iterations_started + population.dropped + population.unmet;
            (starts, population.dropped, population.started - stayed)
        };
        (0..shards).map(of).fold((0, 0, 0), |sum, one| {
            assert!(one.1 > 0, "each shard has as much to do, and drops some");
            (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2)
        })
    };
    let whole = books(1);
    for shards in [2, 5] {
        let all = books(shards);
        assert_eq!(all.0, whole.0, "as many are due on {shards} shards as on one");
        assert!(all.1.abs_diff(whole.1) < whole.1 / 4, "{all:?} {whole:?}");
    }
}

#[test]
fn a_stopped_run_counts_every_start() {
    let stop = Time::from_secs(5);
    for phase in [arrivals(100.0, Some(3), Spacing::Even, 60 * S), dropping(3, 100.0, 60 * S)] {
        let outcome = run(vec![phase], Share::WHOLE, 500 * MS, Some(stop));
        let population = &outcome.sum.population;
        // Starts of the last second before the stop may still wait.
        assert!((400..=501).contains(&population.due()), "{population:?}");
        assert!(population.dropped > 300 && population.unmet == 0, "{population:?}");
    }
}

#[test]
fn a_start_due_before_the_end_gets_a_result_on_a_slow_host() {
    let paced = Phase { time: Some(500 * MS), ..iterations(5, Some(100.0), None) };
    for phase in [arrivals(100.0, None, Spacing::Even, 500 * MS), paced] {
        let hand = Hand::new();
        let clock = hand.clock.clone();
        // From before the last two starts until after the load has ended.
        hand.at(Time::ZERO + 485 * MS, move || clock.set(Time::ZERO + 520 * MS));
        let outcome = run_in(&hand, program(vec![phase]), Share::WHOLE, MS, &[]);
        let population = &outcome.sum.population;
        assert_eq!((population.begun, population.due()), (50, 50), "{population:?}");
        assert_eq!(population.iterations_started, 50, "{population:?}");
        // Their connections are opening when the load ends.
        assert_eq!(population.iterations_finished, 50, "{population:?}");
        let row = &outcome.sum.steps[0];
        assert_eq!((row.begun, row.count), (50, 50));
    }
}
