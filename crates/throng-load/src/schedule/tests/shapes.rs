//! Tests rates of any shape and random starts: the same on any number of shards.

use throng_program::Spacing;

use super::*;
use crate::profile::tests::any_rate;

/// The due times of all shards, with the seed of the run.
fn due_times(load: &Load, shards: u64, seed: u64) -> Vec<Time> {
    let mut all = Vec::new();
    for index in 0..shards {
        let share = Share::WHOLE.thread(index, shards);
        let mut schedule = Schedule::new(load, share, Time::from_secs(1), seed);
        while schedule.next() < Time::NEVER {
            while let Some(due) = schedule.next_iteration() {
                schedule.starts.take();
                all.push(due);
            }
            let now = schedule.next();
            if let Some(Action::Arrive { due }) = schedule.pop(now) {
                assert_eq!(due, now);
                all.push(due);
            }
        }
        assert_eq!(std::mem::take(&mut schedule.starts.unmet), 0);
    }
    all.sort_unstable();
    all
}

#[test]
fn any_shape_gives_the_same_starts_on_any_number_of_shards() {
    let mut random = Random::new(31);
    for round in 0..60_u64 {
        let rate = any_rate(&mut random);
        let spacing = [Spacing::Even, Spacing::Poisson][(round % 2) as usize];
        let drive = match round % 3 {
            0 => {
                let max = random.chance(0.5).then(|| 1 + random.below(50));
                Drive::Arrivals(Arrivals { rate, spacing, max })
            }
            _ => {
                let total = random.chance(0.3).then(|| 1 + random.below(900));
                let users = 1 + random.below(50);
                let drops = random.chance(0.5);
                Drive::Iterations(Iterations { users, rate: Some(rate), spacing, total, drops })
            }
        };
        let time = Duration::from_millis(1 + random.below(8_000));
        let load = Load::alone(vec![phase(Drive::Hold, Some(S)), phase(drive, Some(time))]);
        let whole = due_times(&load, 1, round);
        for shards in [2, 7, 60] {
            assert_eq!(due_times(&load, shards, round), whole, "round {round}: {load:?}");
        }
    }
}

#[test]
fn random_starts_differ_by_seed_load_and_phase_and_are_reproducible() {
    let arrivals = || {
        let rate = throng_program::Rate::constant(100.0);
        Drive::Arrivals(Arrivals { rate, spacing: Spacing::Poisson, max: None })
    };
    let load = Load::alone(vec![phase(arrivals(), Some(S)), phase(arrivals(), Some(S))]);
    let all = due_times(&load, 3, 5);
    assert_eq!(all, due_times(&load, 3, 5));
    assert_ne!(all, due_times(&load, 3, 6));
    let (first, second): (Vec<Time>, Vec<Time>) =
        all.iter().partition(|due| **due < Time::from_secs(2));
    let later: Vec<Time> = first.iter().map(|due| *due + S).collect();
    assert_ne!(second, later);
}

#[test]
fn starts_that_were_not_taken_are_unmet_with_any_spacing() {
    for spacing in [Spacing::Even, Spacing::Poisson] {
        let rate = throng_program::Rate::constant(100.0);
        let iterations = Iterations { rate: Some(rate), spacing, ..Iterations::new(9, None, None) };
        let load = Load::alone(vec![phase(Drive::Iterations(iterations), Some(10 * S))]);
        let whole = due_times(&load, 1, 4).len() as u64;
        let mut unmet = 0;
        for index in 0..7 {
            let mut schedule = Schedule::new(&load, Share::WHOLE.thread(index, 7), Time::ZERO, 4);
            for _ in 0..20 {
                schedule.starts.take();
            }
            while schedule.pop(Time::NEVER).is_some() {}
            unmet += std::mem::take(&mut schedule.starts.unmet);
        }
        assert_eq!(unmet + 7 * 20, whole, "{spacing:?}");
    }
}
