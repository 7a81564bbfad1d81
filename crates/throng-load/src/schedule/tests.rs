//! All shards' parts together are the load.

use throng_program::{Arrivals, Users};

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
