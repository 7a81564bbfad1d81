//! Machines whose users meet, while announcements are lost, duplicated and delayed: groups are
//! complete, no user waits forever, and a group is released at one time if no announcement was
//! lost.

use std::collections::VecDeque;

use throng_base::{Random, Share};

use super::*;

/// The interval between announcements.
const TICK: Duration = Duration::from_millis(100);

/// What happens to announcements on their way.
#[derive(Clone, Copy)]
struct Way {
    lost: f64,
    doubled: f64,
    ticks_max: u64,
}

const GOOD: Way = Way { lost: 0.0, doubled: 0.0, ticks_max: 0 };
const BAD: Way = Way { lost: 0.3, doubled: 0.2, ticks_max: 5 };

struct Fleet {
    machines: Vec<(Places, Bridge)>,
    dead: Vec<bool>,
    /// By receiver: when an announcement arrives, and what it is.
    ways: Vec<VecDeque<(u64, Announced)>>,
    random: Random,
    tick: u64,
}

impl Fleet {
    fn new(count: usize, seed: u64) -> Fleet {
        let machine = |first: usize| {
            let places = Places::bridged(2);
            let share = Share::of_machine(first as u64, 1, count as u64);
            (places.clone(), Bridge::new(share, places))
        };
        Fleet {
            machines: (0..count).map(machine).collect(),
            dead: vec![false; count],
            ways: vec![VecDeque::new(); count],
            random: Random::new(seed),
            tick: 0,
        }
    }

    fn now(&self) -> Time {
        Time::ZERO + TICK * self.tick as u32
    }

    fn arrive(&self, machine: usize, users: u64) -> Waiting {
        self.machines[machine].0.arrive(1, users, self.now())
    }

    fn standing(&self, machine: usize, waiting: Waiting) -> Standing {
        self.machines[machine].0.standing(waiting)
    }

    fn send(&mut self, from: usize, word: &Announced, way: Way) {
        for to in (0..self.machines.len()).filter(|to| *to != from) {
            let copies = match () {
                () if self.random.chance(way.lost) => 0,
                () if self.random.chance(way.doubled) => 2,
                () => 1,
            };
            for _ in 0..copies {
                let at = self.tick + self.random.below(way.ticks_max + 1);
                self.ways[to].push_back((at, word.clone()));
            }
        }
    }

    fn tick(&mut self, way: Way) {
        self.tick += 1;
        let (now, tick) = (self.now(), self.tick);
        for machine in
            (0..self.machines.len()).filter(|machine| !self.dead[*machine]).collect::<Vec<_>>()
        {
            let word = self.machines[machine].1.tell(now);
            self.send(machine, &word, way);
        }
        for to in 0..self.machines.len() {
            let (come, later) = self.ways[to].drain(..).partition(|(at, _)| *at <= tick);
            self.ways[to] = later;
            let come: VecDeque<_> = come;
            for (_, word) in come.into_iter().filter(|_| !self.dead[to]) {
                // As received over the network.
                let text = serde_json::to_string(&word).unwrap();
                let word = serde_json::from_str(&text).unwrap();
                self.machines[to].1.hear(&word, Duration::from_millis(1), now);
            }
        }
    }

    fn leave(&mut self, machine: usize, way: Way) {
        self.machines[machine].1.leave();
        let now = self.now();
        let word = self.machines[machine].1.tell(now);
        self.send(machine, &word, way);
        self.dead[machine] = true;
    }
}

#[test]
fn a_group_across_machines_is_released_at_the_same_time() {
    let mut fleet = Fleet::new(3, 1);
    let all: Vec<_> = (0..9).map(|user| (user % 3, fleet.arrive(user % 3, 10))).collect();
    (0..20).for_each(|_| fleet.tick(GOOD));
    assert!(all.iter().all(|(machine, one)| fleet.standing(*machine, *one) == Standing::Gathers));
    let last = (1, fleet.arrive(1, 10));
    let came = fleet.now();
    (0..3).for_each(|_| fleet.tick(GOOD));
    let Standing::GoesOn(moment) = fleet.standing(last.0, last.1) else { panic!("it waits") };
    assert!(moment > came && moment < came + 4 * TICK, "{moment:?} {came:?}");
    for (machine, one) in all {
        assert_eq!(fleet.standing(machine, one), Standing::GoesOn(moment));
    }
}

#[test]
fn groups_are_complete_and_no_user_waits_forever() {
    for seed in 0..60 {
        let machines = 1 + seed as usize % 4;
        let way = if seed % 3 == 0 { GOOD } else { BAD };
        let mut random = Random::new(seed + 1000);
        let mut fleet = Fleet::new(machines, seed);
        if machines == 1 {
            // A part of a run that never receives from the others.
            let places = Places::bridged(2);
            let share = Share::of_machine(0, 1, 2);
            fleet.machines[0] = (places.clone(), Bridge::new(share, places));
        }
        let users = 2 + random.below(9);
        let (mut waiting, mut came, mut left) = (Vec::new(), 0, 0);
        for _ in 0..150 {
            for _ in 0..random.below(4) {
                let machine = random.below(machines as u64) as usize;
                waiting.push((machine, fleet.arrive(machine, users)));
                came += 1;
            }
            // Some time out.
            if random.chance(0.1) && !waiting.is_empty() {
                let (machine, one) = waiting.remove(random.below(waiting.len() as u64) as usize);
                left += u64::from(fleet.machines[machine].0.withdraw(one));
            }
            fleet.tick(way);
        }
        (0..120).for_each(|_| fleet.tick(way));
        let gathers = |one: &&(usize, Waiting)| fleet.standing(one.0, one.1) == Standing::Gathers;
        let still = waiting.iter().filter(gathers).count() as u64;
        assert!(still < users, "seed {seed}: {still} wait though {users} are a group");
        let gone: u64 = fleet.machines.iter().map(|one| one.0.places[1].queue().count.gone).sum();
        assert_eq!(gone % users, 0, "seed {seed}: a part of a group went on");
        // A user that timed out between the announcement and its time is missing in its group.
        let missing = gone - (came - left - still);
        assert!(missing <= left, "seed {seed}: {missing} of {gone} went on who were not there");
    }
}

#[test]
fn the_next_machine_becomes_the_counter_when_the_first_is_gone() {
    for (dies, ticks) in [(true, 110), (false, 4)] {
        let mut fleet = Fleet::new(3, 7);
        let early: Vec<_> = (0..6).map(|user| (user % 3, fleet.arrive(user % 3, 6))).collect();
        (0..4).for_each(|_| fleet.tick(GOOD));
        assert!(early.iter().all(|(at, one)| fleet.standing(*at, *one) != Standing::Gathers));
        let rest: Vec<_> =
            (0..6).map(|user| (1 + user % 2, fleet.arrive(1 + user % 2, 6))).collect();
        match dies {
            true => fleet.dead[0] = true,
            false => fleet.leave(0, GOOD),
        }
        if dies {
            (0..20).for_each(|_| fleet.tick(GOOD));
            let waits =
                |(at, one): &(usize, Waiting)| fleet.standing(*at, *one) == Standing::Gathers;
            assert!(rest.iter().all(waits), "it may be slow only");
        }
        (0..ticks).for_each(|_| fleet.tick(GOOD));
        let moments: Vec<_> = rest.iter().map(|(at, one)| fleet.standing(*at, *one)).collect();
        assert!(moments.iter().all(|one| *one == moments[0] && *one != Standing::Gathers));
        let gone: Vec<u64> =
            fleet.machines.iter().map(|one| one.0.places[1].queue().count.gone).collect();
        assert_eq!(gone, [2, 5, 5], "the first group is not counted again");
    }
}

#[test]
fn announcements_of_unknown_machines_are_ignored() {
    let (mut ours, mut theirs) = (Fleet::new(2, 1), Fleet::new(2, 1));
    let one = ours.arrive(0, 2);
    theirs.arrive(1, 2);
    let word = theirs.machines[1].1.tell(Time::ZERO);
    for (first, width) in [(0, 1), (2, 1), (1, u64::MAX), (u64::MAX, 1)] {
        let mut stranger = word.clone();
        (stranger.first, stranger.width) = (first, width);
        ours.machines[0].1.hear(&stranger, Duration::ZERO, Time::ZERO);
        ours.machines[0].1.tell(Time::from_secs(1));
        assert_eq!(ours.standing(0, one), Standing::Gathers, "{first} {width}");
    }
    ours.machines[0].1.hear(&word, Duration::ZERO, Time::ZERO);
    ours.machines[0].1.tell(Time::from_secs(1));
    assert_ne!(ours.standing(0, one), Standing::Gathers);
}

#[test]
fn fuzz_announcements_of_another_machine_cannot_corrupt_a_place() {
    let ends = [0, 1, 2, 3, 1 << 32, u64::MAX - 1, u64::MAX];
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let mut number = || match random.below(4) {
            0 => random.next_u64(),
            _ => ends[random.below(ends.len() as u64) as usize],
        };
        let mut fleet = Fleet::new(2, seed);
        let ours = fleet.arrive(0, 2);
        for round in 0..8 {
            let place = number() as u16 % 4;
            let text = format!(
                r#"{{"first":1,"width":1,"number":{},"left":{},"counts":{{"{place}":{{"wanted":{},"waiting":{},"gone":{}}}}},"releases":{{"{place}":{{"at_ns":{},"gone":{{"0":{},"{}":{}}}}}}}}}"#,
                number().max(round),
                number() == 1,
                number(),
                number(),
                number(),
                number(),
                number(),
                number().max(1),
                number(),
            );
            let word = serde_json::from_str(&text).unwrap();
            let error = Duration::from_nanos(number());
            fleet.machines[0].1.hear(&word, error, Time(number()));
            fleet.machines[0].1.tell(Time(number() / 2));
            fleet.standing(0, ours);
        }
    }
}
