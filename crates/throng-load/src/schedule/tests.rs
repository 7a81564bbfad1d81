//! All shards' parts together are the load.

use throng_base::Random;
use throng_program::Arrivals;

use super::*;

const S: Duration = Duration::from_secs(1);

fn phase(drive: Drive, time: Option<Duration>) -> Phase {
    Phase { name: "p".into(), drive, time, measured: true }
}

fn users(to: u64, rate: Option<f64>) -> Drive {
    Drive::Users(Users { to, rate })
}

/// All actions of all shards, in the order of time.
fn play(phases: &[Phase], shards: u64) -> Vec<(Time, u64, Action)> {
    let load = Load { phases: phases.to_vec(), graceful_stop: S };
    let mut all = Vec::new();
    for index in 0..shards {
        let mut schedule = Schedule::new(&load, Share { index, of: shards }, Time::from_secs(1));
        while schedule.next() < Time::NEVER {
            let now = schedule.next();
            let action = schedule.pop(now).expect("what is due is there");
            all.push((now, index, action));
        }
        assert!(schedule.is_over());
    }
    all.sort_by_key(|(time, _, _)| *time);
    all
}

#[test]
fn arrivals_are_split_exactly() {
    let load = [phase(Drive::Arrivals(Arrivals { rate: 100.0, to: 300.0 }), Some(10 * S))];
    let dues = |shards| {
        let mut dues: Vec<Time> = play(&load, shards)
            .into_iter()
            .filter_map(|(_, _, action)| match action {
                Action::Arrive { due } => Some(due),
                _ => None,
            })
            .collect();
        dues.sort_unstable();
        dues
    };
    assert_eq!(dues(1).len(), 2000);
    assert_eq!(dues(1), dues(7));
    assert_eq!(dues(1), dues(60));
}

#[test]
fn populations_rise_and_fall_at_their_rate() {
    let load = [
        phase(users(1000, Some(100.0)), None),
        phase(Drive::Hold, Some(5 * S)),
        phase(users(400, Some(200.0)), None),
        phase(users(0, None), Some(S)),
    ];
    for shards in [1, 3, 16] {
        let all = play(&load, shards);
        let online = |until: f64| {
            all.iter()
                .filter(|(time, _, _)| time.as_secs_f64() - 1.0 < until)
                .map(|(_, _, action)| match action {
                    Action::Come { .. } => 1,
                    Action::Leave => -1,
                    _ => 0,
                })
                .sum::<i64>()
        };
        assert_eq!(online(5.0 - 1e-6), 500, "{shards}");
        assert_eq!(online(10.0), 1000, "{shards}");
        assert_eq!(online(15.0), 1000, "{shards}");
        assert_eq!(online(16.5 - 1e-6), 700, "{shards}");
        assert_eq!(online(18.0 - 1e-6), 400, "{shards}");
        assert_eq!(online(19.0), 0, "{shards}");
        let ends = all.iter().filter(|(_, _, action)| *action == Action::End);
        assert!(ends.map(|(time, _, _)| time.second()).all(|second| second == 20), "{shards}");
    }
}

#[test]
fn identities_have_no_gaps() {
    let mut ids: Vec<u64> = (0..7)
        .flat_map(|index| {
            let share = Share { index, of: 7 };
            (0..share.part(1000)).map(move |local| share.user(local).0)
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=1000).collect::<Vec<_>>());
}

#[test]
fn iterations_are_due_evenly_and_counted_exactly() {
    let drive = Drive::Iterations(Iterations { users: 10, rate: Some(50.0), total: Some(70) });
    let load = Load { phases: vec![phase(drive, Some(2 * S))], graceful_stop: S };
    let mut dues = Vec::new();
    for index in 0..3 {
        let share = Share { index, of: 3 };
        let mut schedule = Schedule::new(&load, share, Time::ZERO);
        assert_eq!(schedule.pace(), Pace::Scheduled);
        assert_eq!(schedule.unmet_until(Time::from_secs(1)), share.part(50));
        while let Some(due) = schedule.next_iteration() {
            schedule.begin_iteration();
            dues.push(due);
        }
        assert_eq!(schedule.unmet_until(Time::from_secs(1)), 0);
    }
    dues.sort_unstable();
    assert_eq!(dues.len(), 70);
    assert_eq!(dues[50], Time::from_secs(1));
}

#[test]
fn work_that_is_done_ends_its_phase() {
    let drive = Drive::Iterations(Iterations { users: 2, rate: None, total: Some(5) });
    let load = Load { phases: vec![phase(drive, None)], graceful_stop: S };
    let mut schedule = Schedule::new(&load, Share::WHOLE, Time::ZERO);
    let mut actions = Vec::new();
    while let Some(action) = schedule.pop(Time::from_secs(3)) {
        actions.push(action);
    }
    let come = Action::Come { due: Time::ZERO };
    assert_eq!(actions, [Action::Phase(0), come, come]);
    let count =
        std::iter::from_fn(|| schedule.next_iteration().map(|_| schedule.begin_iteration()));
    assert_eq!(count.count(), 5);
    assert_eq!(schedule.next(), Time::NEVER);
    schedule.finish_phase(Time::from_secs(4));
    assert_eq!(schedule.pop(Time::from_secs(4)), Some(Action::End));
    assert_eq!(schedule.pop(Time::NEVER), None);
}

#[test]
fn a_ramp_that_was_not_finished_goes_on_where_it_was() {
    let load = [
        phase(users(1000, Some(10.0)), Some(3 * S)),
        phase(users(1020, Some(10.0)), Some(2 * S)),
        phase(users(0, Some(20.0)), Some(S)),
        phase(users(40, Some(5.0)), None),
    ];
    for shards in [1, 2, 7, 60] {
        let all = play(&load, shards);
        let online = |until: Duration| {
            let until = Time::from_secs(1) + until;
            all.iter()
                .filter(|(time, _, _)| *time < until)
                .map(|(_, _, action)| match action {
                    Action::Come { .. } => 1,
                    Action::Leave => -1,
                    _ => 0,
                })
                .sum::<i64>()
        };
        let seen = [1, 3, 4, 5, 6, 7, 9].map(|second| online(second * S));
        assert_eq!(seen, [10, 30, 40, 50, 30, 35, 40], "{shards}");
    }
}

#[test]
fn any_load_is_the_same_on_any_number_of_shards() {
    let mut random = Random::new(10);
    for round in 0..300 {
        let load: Vec<Phase> = (0..1 + random.below(6))
            .map(|_| {
                let rate = random.chance(0.7).then(|| 1.0 + random.below(3000) as f64 / 7.0);
                let time = random.chance(0.6).then(|| Duration::from_millis(random.below(4000)));
                match random.below(6) {
                    0 => phase(Drive::Hold, time),
                    1 => phase(Drive::Arrivals(Arrivals { rate: 7.3, to: 99.0 }), Some(S)),
                    _ => phase(users(random.below(500), rate), time),
                }
            })
            .collect();
        let what = |shards| {
            let mut seen: Vec<(Time, Option<bool>)> = play(&load, shards)
                .into_iter()
                .filter_map(|(time, _, action)| match action {
                    Action::Come { .. } => Some((time, Some(true))),
                    Action::Leave => Some((time, Some(false))),
                    Action::Arrive { .. } => Some((time, None)),
                    Action::Phase(_) | Action::End => None,
                })
                .collect();
            seen.sort_unstable();
            seen
        };
        let whole = what(1);
        for shards in [2, 3, 16, 61] {
            assert_eq!(what(shards), whole, "round {round}, {shards} shards: {load:?}");
        }
    }
}

#[test]
fn iterations_go_only_to_shards_with_users() {
    for rate in [None, Some(5.0)] {
        let drive = Drive::Iterations(Iterations { users: 3, rate, total: Some(10) });
        let load = Load { phases: vec![phase(drive, None)], graceful_stop: S };
        let counts: Vec<u64> = (0..5)
            .map(|index| {
                let mut schedule = Schedule::new(&load, Share { index, of: 5 }, Time::ZERO);
                let begin = || schedule.next_iteration().map(|_| schedule.begin_iteration());
                std::iter::from_fn(begin).count() as u64
            })
            .collect();
        assert_eq!(counts, [4, 3, 3, 0, 0]);
    }
}

#[test]
fn nothing_is_unmet_when_every_start_happened() {
    let mut random = Random::new(20);
    for round in 0..500 {
        let rate = (1 + random.below(500)) as f64 / 60.0;
        let time = Duration::from_millis(1 + random.below(100_000));
        let shards = 1 + random.below(7);
        let users = 1 + random.below(9);
        let drive = Drive::Iterations(Iterations { users, rate: Some(rate), total: None });
        let load = Load { phases: vec![phase(drive, Some(time))], graceful_stop: S };
        let mut begun = 0;
        for index in 0..shards {
            let share = Share { index, of: shards };
            let mut schedule = Schedule::new(&load, share, Time::from_secs(1));
            while schedule.next_iteration().is_some() {
                schedule.begin_iteration();
                begun += 1;
            }
            while schedule.pop(Time::NEVER).is_some() {}
            assert_eq!(schedule.take_unmet(), 0, "round {round}: {rate} for {time:?}");
        }
        assert_eq!(begun, Curve::constant(rate).count_before(time), "round {round}");
    }
}

#[test]
fn paced_work_takes_its_time() {
    let end = |time| {
        let drive = Drive::Iterations(Iterations { users: 1, rate: Some(20.0), total: Some(20) });
        let load = Load { phases: vec![phase(drive, time)], graceful_stop: S };
        let mut schedule = Schedule::new(&load, Share::WHOLE, Time::from_secs(1));
        schedule.finish_phase(Time(1_951_000_000));
        schedule.phase_end()
    };
    assert_eq!(end(None), Time::from_secs(2));
    assert_eq!(end(Some(9 * S)), Time::from_secs(2));
    assert_eq!(end(Some(S / 2)), Time(1_500_000_000));
}

#[test]
fn work_is_given_when_it_is_known_who_stays() {
    let drive = Drive::Iterations(Iterations { users: 1, rate: None, total: Some(5) });
    let phases = vec![phase(users(3, None), Some(S)), phase(drive, None)];
    let load = Load { phases, graceful_stop: S };
    let mut schedule = Schedule::new(&load, Share::WHOLE, Time::ZERO);
    assert!(!schedule.is_settled(Time::ZERO));
    while schedule.pop(Time::ZERO).is_some() {}
    let now = Time::from_secs(1);
    assert!(schedule.is_settled(now));
    let mut seen = Vec::new();
    while let Some(action) = schedule.pop(now) {
        seen.push((action, schedule.is_settled(now)));
    }
    let wanted = [(Action::Phase(1), false), (Action::Leave, false), (Action::Leave, true)];
    assert_eq!(seen, wanted);
}
