//! Tests that one side of a duel pauses while the other generates load.

use throng_base::{Side, Turns};

use super::*;

fn side(side: Side, drive: Drive) -> Schedule {
    let turns = Turns { slice: 5 * S, seed: 9, side };
    let load = Load { turns: Some(turns), ..Load::alone(vec![phase(drive, Some(40 * S))]) };
    Schedule::new(&load, Share::WHOLE, Time::from_secs(1), 0)
}

/// By second: whether a free user starts an iteration immediately.
fn begins(schedule: &mut Schedule, second: u64) -> bool {
    let now = Time::from_secs(1 + second) + 500 * MS;
    while schedule.next() <= now {
        let due = schedule.next();
        schedule.pop(due);
    }
    match schedule.pace() {
        Pace::Free => true,
        Pace::Scheduled => schedule.next_iteration().is_some_and(|due| due <= now),
    }
}

#[test]
fn only_one_side_works_at_a_time() {
    let closed = || users(3, None);
    let counted = || Drive::Iterations(Iterations::new(3, None, None));
    for drive in [closed as fn() -> Drive, counted] {
        let [mut a, mut b] = Side::BOTH.map(|it| side(it, drive()));
        for second in 0..40 {
            let works = Side::of_slice(9, second / 5);
            let begun = [begins(&mut a, second), begins(&mut b, second)];
            assert_eq!(begun, Side::BOTH.map(|it| it == works), "{second}");
        }
        assert_eq!((a.population.staying(), b.population.staying()), (3, 3), "resting users stay");
        assert!(!begins(&mut a, 41) || a.is_over());
    }
}

#[test]
fn a_schedule_wakes_when_the_turn_changes() {
    let mut schedule = side(Side::A, users(1, None));
    let mut woken = Vec::new();
    while !schedule.is_over() {
        let now = schedule.next();
        schedule.pop(now);
        woken.push(now.second());
    }
    woken.dedup();
    assert_eq!(woken, [1, 6, 11, 16, 21, 26, 31, 36, 41]);
}

#[test]
fn connections_from_before_a_slice_are_replaced_in_its_first_second() {
    let mut schedule = side(Side::A, users(1, None));
    let at = |ms: u32| Time::from_secs(1) + ms * MS;
    let mut renews = |established_ms: u32, now_ms: u32| {
        while schedule.next() <= at(now_ms) {
            let due = schedule.next();
            schedule.pop(due);
        }
        schedule.renews(at(established_ms), at(now_ms))
    };
    assert!(!renews(0, 500), "there is no slice before");
    for slice in 1..8 {
        let (begin, works) = (5_000 * slice, Side::of_slice(9, u64::from(slice)) == Side::A);
        assert_eq!(renews(begin - 1, begin), works, "{slice}");
        assert!(!renews(begin, begin + 500), "{slice}: it is new");
        assert_eq!(renews(0, begin + 999), works, "{slice}");
        assert!(!renews(0, begin + 1_000), "{slice}: the figures count from here on");
    }
}
