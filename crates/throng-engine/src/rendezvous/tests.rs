//! Places with threads that arrive, wait, time out and leave: no user is lost or counted twice.

mod bridged;

use super::*;
use throng_base::Random;

const MS: Duration = Duration::from_millis(1);

#[test]
fn the_last_arrival_releases_all_at_the_same_time() {
    let places = Places::new(2);
    let now = Time::from_secs(3);
    let first = places.arrive(1, 3, now);
    let second = places.arrive(1, 3, now + MS);
    assert_eq!(places.standing(first), Standing::Gathers);
    let third = places.arrive(1, 3, now + 2 * MS);
    let moment = now + 2 * MS + RELEASE_AFTER;
    for one in [first, second, third] {
        assert_eq!(places.standing(one), Standing::GoesOn(moment));
        assert!(!places.withdraw(one), "it is complete");
    }
    let next = places.arrive(1, 3, now + 4 * MS);
    assert_eq!(places.standing(next), Standing::Gathers);
    assert!(places.withdraw(next));
}

#[test]
fn a_user_that_leaves_is_no_longer_counted() {
    let places = Places::new(1);
    let one = places.arrive(0, 2, Time::ZERO);
    assert!(places.withdraw(one));
    let two = places.arrive(0, 2, Time::ZERO);
    assert_eq!(places.standing(two), Standing::Gathers);
    places.arrive(0, 2, Time::ZERO);
    assert_ne!(places.standing(two), Standing::Gathers);
}

#[test]
fn a_group_of_one_continues_and_old_groups_do_not_hang() {
    let places = Places::new(1);
    let old = places.arrive(0, 1, Time::ZERO);
    assert_eq!(places.standing(old), Standing::GoesOn(Time::ZERO + RELEASE_AFTER));
    for round in 0..1000 {
        let one = places.arrive(0, 1, Time::from_secs(round));
        let moment = Time::from_secs(round) + RELEASE_AFTER;
        assert_eq!(places.standing(one), Standing::GoesOn(moment));
    }
    let Standing::GoesOn(moment) = places.standing(old) else { panic!("it waits for ever") };
    assert!(moment < Time::from_secs(999), "long ago");
}

#[test]
fn a_shard_wakes_only_users_of_a_released_group() {
    let (places, meeting) = (Places::new(3), Meeting::default());
    for seat in 0..5 {
        meeting.come(seat, places.arrive(0, 10, Time::ZERO));
        meeting.come(10 + seat, places.arrive(2, 5, Time::ZERO));
    }
    meeting.go(12, 2);
    let mut told = Vec::new();
    meeting.release(&places, |seat, at| told.push((seat, at)));
    let moment = Time::ZERO + RELEASE_AFTER;
    assert_eq!(told, [10, 11, 13, 14].map(|seat| (seat, moment)));
    assert!(!meeting.is_empty());
    (0..5).for_each(|seat| meeting.go(seat, 0));
    assert!(meeting.is_empty());
}

#[test]
fn concurrent_arrivals_and_departures_lose_no_user() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 20_000;
    const TOGETHER: u64 = 3;
    let places = Places::new(1);
    let (mut released, mut withdrawn, mut left) = (0, 0, Vec::new());
    std::thread::scope(|scope| {
        let works: Vec<_> = (0..THREADS)
            .map(|thread| {
                let places = places.clone();
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    let (mut released, mut withdrawn, mut waiting) = (0, 0, Vec::new());
                    for round in 0..ROUNDS {
                        waiting.push(places.arrive(0, TOGETHER, Time(round * 1000)));
                        waiting.retain(|one| {
                            if places.standing(*one) != Standing::Gathers {
                                released += 1;
                                return false;
                            }
                            if !random.chance(0.3) {
                                return true;
                            }
                            match places.withdraw(*one) {
                                true => withdrawn += 1,
                                false => released += 1,
                            }
                            false
                        });
                    }
                    (released, withdrawn, waiting)
                })
            })
            .collect();
        for work in works {
            let (more, gone, waiting) = work.join().unwrap();
            released += more;
            withdrawn += gone;
            left.extend(waiting);
        }
    });
    let late = left.iter().filter(|one| places.standing(**one) != Standing::Gathers).count() as u64;
    let count = places.places[0].queue().count;
    assert_eq!(count.waiting, left.len() as u64 - late, "who waits is counted");
    assert_eq!(released + late, count.gone, "who goes on is counted");
    assert_eq!(count.gone % TOGETHER, 0, "groups are whole");
    assert!(places.places[0].queue().waits.len() < 1000, "users that gave up take no room");
    assert_eq!(released + withdrawn + left.len() as u64, THREADS * ROUNDS);
}
