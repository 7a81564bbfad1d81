//! Tests concurrent loads on several shards.

use std::time::Duration;

use throng_base::{Random, Share};
use throng_program::{Arrivals, Coming, Drive, Iterations, Phase, Users};

use super::*;

const S: Duration = Duration::from_secs(1);

fn phase(drive: Drive, time: Option<Duration>) -> Phase {
    Phase { name: "p".into(), drive, time, churn: None, measured: true }
}

fn users(to: u64, rate: f64) -> Drive {
    Drive::Users(Users { to, coming: Coming::Rate(rate) })
}

fn arrivals(rate: f64) -> Drive {
    Drive::Arrivals(Arrivals::ramp(rate, rate))
}

fn load(start: Start, phases: Vec<Phase>) -> Load {
    Load { start, ..Load::alone(phases) }
}

/// All actions of one shard, in order.
fn events(loads: &[Load], share: Share) -> Vec<(Time, usize, Action)> {
    let mut schedules = Schedules::new(loads, share, Time::ZERO, 0);
    let mut events = Vec::new();
    while !schedules.is_over() {
        let now = schedules.next();
        assert_ne!(now, Time::NEVER, "a load that nothing begins: {schedules:?}");
        while let Some((load, action)) = schedules.pop(now) {
            events.push((now, load, action));
        }
    }
    events
}

fn begin_of(events: &[(Time, usize, Action)], load: usize) -> Time {
    let begun = |event: &&(Time, usize, Action)| event.1 == load && event.2 == Action::Phase(0);
    events.iter().find(begun).expect("the load begins").0
}

/// 20,000 users that stay, 500/s that arrive, and 20 that start afterwards.
fn three() -> Vec<Load> {
    vec![
        load(
            Start::At(Duration::ZERO),
            vec![phase(users(20_000, 4000.0), None), phase(Drive::Hold, Some(5 * S))],
        ),
        load(Start::At(2 * S), vec![phase(arrivals(500.0), Some(3 * S))]),
        load(Start::After(1), vec![phase(users(20, 10.0), Some(4 * S))]),
        load(Start::With(2), vec![phase(arrivals(7.0), Some(S))]),
    ]
}

#[test]
fn the_parts_of_all_shards_add_up_to_the_loads() {
    for of in [1, 2, 3, 7, 16, 64, 1000] {
        let mut counts = [0u64; 4];
        for index in 0..of {
            for (_, load, action) in events(&three(), Share::WHOLE.thread(index, of)) {
                let begins = matches!(action, Action::Come { .. } | Action::Arrive { .. });
                counts[load] += u64::from(begins);
            }
        }
        assert_eq!(counts, [20_000, 1500, 20, 7], "{of} shards");
    }
}

#[test]
fn loads_start_at_a_time_or_after_or_with_another() {
    for of in [1, 5, 40] {
        for index in 0..of {
            let events = events(&three(), Share::WHOLE.thread(index, of));
            let begins = [0, 1, 2, 3].map(|load| begin_of(&events, load));
            assert_eq!(begins, [0, 2, 5, 5].map(Time::from_secs), "shard {index} of {of}");
            assert!(events.is_sorted_by_key(|(at, _, _)| *at), "shard {index} of {of}");
            let ends = events.iter().filter(|event| event.2 == Action::End).count();
            assert_eq!(ends, 4, "shard {index} of {of}");
        }
    }
}

#[test]
fn a_load_after_counted_work_starts_when_the_work_is_done() {
    let counted = Drive::Iterations(Iterations::new(2, None, Some(10)));
    let loads = [
        load(Start::After(1), vec![phase(arrivals(5.0), Some(S))]),
        load(Start::At(Duration::ZERO), vec![phase(counted, None)]),
    ];
    let mut schedules = Schedules::new(&loads, Share::WHOLE, Time::ZERO, 0);
    while schedules.pop(Time::ZERO).is_some() {}
    assert_eq!((schedules.next(), schedules.get(0).has_begun()), (Time::NEVER, false));
    schedules.get_mut(1).finish_phase(Time::from_secs(9));
    let seen: Vec<_> = std::iter::from_fn(|| schedules.pop(Time::from_secs(9))).collect();
    let first = Action::Arrive { due: Time::from_secs(9) };
    assert_eq!(seen, [(1, Action::End), (0, Action::Phase(0)), (0, first)]);
}

#[test]
fn concurrent_loads_behave_as_each_does_alone() {
    let mut random = Random::new(31);
    for round in 0..200 {
        let one = |random: &mut Random| {
            let drive = match random.below(3) {
                0 => users(1 + random.below(300), 1.0 + random.below(90) as f64),
                1 => arrivals(1.0 + random.below(90) as f64),
                _ => Drive::Hold,
            };
            phase(drive, Some(Duration::from_millis(1 + random.below(3000))))
        };
        let all: Vec<Load> = (0..1 + random.below(4))
            .map(|_| {
                let phases = (0..1 + random.below(3)).map(|_| one(&mut random)).collect();
                load(Start::At(Duration::from_millis(random.below(900))), phases)
            })
            .collect();
        let of = 1 + random.below(9);
        let share = Share::WHOLE.thread(random.below(of), of);
        let together = events(&all, share);
        for (number, load) in all.iter().enumerate() {
            let own: Vec<_> = together.iter().filter(|event| event.1 == number).collect();
            let alone = events(std::slice::from_ref(load), share);
            let same =
                own.iter().zip(&alone).all(|(one, other)| (one.0, one.2) == (other.0, other.2));
            assert!(same && own.len() == alone.len(), "round {round}: {load:?}");
        }
    }
}
