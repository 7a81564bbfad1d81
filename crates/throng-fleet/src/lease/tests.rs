//! Controllers that share a register over a bus that loses, delays and duplicates, while they
//! freeze, die and come back.

use throng_base::Random;

use super::*;

const STEP: Duration = Duration::from_millis(10);

/// A packet to the register, or back from it.
enum Packet {
    Ask,
    Write(Write),
    Told(RegisterValue),
    Written(u64, u64),
    Refused(u64),
}

struct World {
    random: Random,
    now: Time,
    register: RegisterValue,
    controllers: Vec<(Lease, /* frozen until */ Time)>,
    /// Arrival time, controller, direction, packet.
    packets: Vec<(Time, usize, bool, Packet)>,
    lost: f64,
    late: Duration,
    next_id: u64,
}

impl World {
    fn new(seed: u64, controllers: usize) -> World {
        let mut random = Random::new(seed);
        let lost = random.uniform(0.0, 0.4);
        let late = Duration::from_millis(random.below(1_500) + 1);
        let fresh = |id| (Lease::new(Controller(id)), Time::ZERO);
        World {
            random,
            now: Time::ZERO,
            register: RegisterValue { revision: 0, held: None },
            controllers: (0..controllers as u64).map(fresh).collect(),
            packets: Vec::new(),
            lost,
            late,
            next_id: controllers as u64,
        }
    }

    fn send(&mut self, whose: usize, to_register: bool, packet: Packet) {
        if !self.random.chance(self.lost) {
            let late = self.random.below(u64::try_from(self.late.as_nanos()).unwrap());
            self.packets.push((self.now + Duration::from_nanos(late), whose, to_register, packet));
        }
    }

    fn at_register(&mut self, whose: usize, packet: &Packet) {
        match *packet {
            Packet::Ask => self.send(whose, false, Packet::Told(self.register)),
            Packet::Write(write) if write.expected == self.register.revision => {
                let revision = self.register.revision + 1;
                self.register = RegisterValue { revision, held: Some(write.held) };
                self.send(whose, false, Packet::Written(write.held.attempt, revision));
            }
            Packet::Write(write) => self.send(whose, false, Packet::Refused(write.held.attempt)),
            _ => unreachable!("it is no answer"),
        }
    }

    fn step(&mut self) {
        self.now = self.now + STEP;
        let (due, later) = std::mem::take(&mut self.packets).into_iter().partition(
            |(at, whose, to_register, _)| {
                // Packets to a frozen controller wait.
                *at <= self.now && (*to_register || self.controllers[*whose].1 <= self.now)
            },
        );
        self.packets = later;
        let due: Vec<_> = due;
        for (_, whose, to_register, packet) in due {
            let (now, lease) = (self.now, &mut self.controllers[whose].0);
            match packet {
                _ if to_register => self.at_register(whose, &packet),
                Packet::Told(seen) => lease.saw(seen, now),
                Packet::Written(attempt, revision) => lease.written(attempt, revision, now),
                Packet::Refused(attempt) => lease.refused(attempt),
                Packet::Ask | Packet::Write(_) => unreachable!("it is no request"),
            }
        }
        for whose in 0..self.controllers.len() {
            if self.controllers[whose].1 > self.now {
                continue;
            }
            if self.random.chance(0.03) {
                self.send(whose, true, Packet::Ask);
            }
            if let Some(write) = self.controllers[whose].0.write(self.now) {
                self.send(whose, true, Packet::Write(write));
            }
        }
    }

    /// Freezes a controller for a while, or replaces it.
    fn trouble(&mut self) {
        let whose = usize::try_from(self.random.below(self.controllers.len() as u64)).unwrap();
        if self.random.chance(0.5) {
            let until = self.now + Duration::from_millis(self.random.below(15_000));
            self.controllers[whose].1 = until;
        } else {
            self.packets.retain(|(_, of, to_register, _)| *of != whose || *to_register);
            self.controllers[whose] = (Lease::new(Controller(self.next_id)), self.now);
            self.next_id += 1;
        }
    }

    /// Including frozen ones, which would give an order as soon as they continue.
    fn holders(&self) -> Vec<u64> {
        self.controllers.iter().filter_map(|(lease, _)| lease.epoch(self.now)).collect()
    }
}

#[test]
fn two_never_hold_it_at_the_same_time_and_epochs_only_grow() {
    let mut taken = 0;
    for seed in 0..60 {
        let mut world = World::new(seed, 3);
        let mut newest = 0;
        for step in 0..12_000 {
            world.step();
            if step % 700 == 0 {
                world.trouble();
            }
            let holders = world.holders();
            assert!(holders.len() <= 1, "seed {seed} at {:?}: {holders:?}", world.now);
            if let Some(&epoch) = holders.first() {
                assert!(epoch >= newest, "seed {seed}: epoch {epoch} after {newest}");
                taken += u64::from(epoch > newest);
                newest = epoch;
            }
        }
    }
    assert!(taken > 200, "it has changed hands {taken} times");
}

#[test]
fn a_standby_takes_over_in_time() {
    for seed in 0..40 {
        let mut world = World::new(seed, 2);
        (world.lost, world.late) = (0.05, Duration::from_millis(50));
        while world.holders().is_empty() {
            world.step();
            assert!(world.now < Time::from_secs(3), "seed {seed}: a free lease is taken at once");
        }
        for _ in 0..1_000 {
            world.step();
        }
        let holds = |(lease, _): &(Lease, Time)| lease.epoch(world.now).is_some();
        let holder = world.controllers.iter().position(holds).expect("it is held");
        let killed = world.now;
        world.controllers[holder].1 = Time::NEVER;
        let standby = 1 - holder;
        while world.controllers[standby].0.epoch(world.now).is_none() {
            world.step();
        }
        let took = world.now.since(killed);
        assert!(took <= Duration::from_secs(10), "seed {seed}: {took:?}");
        assert!(took >= HOLDS_FOR - RENEW_EVERY, "seed {seed}: {took:?}");
    }
}

#[test]
fn a_released_lease_is_taken_immediately() {
    let (mut first, mut second) = (Lease::new(Controller(1)), Lease::new(Controller(2)));
    let at = Time::from_secs(1);
    first.saw(RegisterValue { revision: 0, held: None }, at);
    let write = first.write(at).expect("it is free");
    first.written(write.held.attempt, 1, at);
    assert_eq!(first.epoch(at), Some(1));
    let given = first.release(at).expect("it is ours");
    assert_eq!((first.epoch(at), given.expected), (None, 1));
    second.saw(RegisterValue { revision: 2, held: Some(given.held) }, at);
    let taken = second.write(at).expect("nobody holds it");
    second.written(taken.held.attempt, 3, at);
    assert_eq!((second.epoch(at), second.epoch(at + HOLDS_FOR)), (Some(3), None));
    assert_eq!(first.release(at), None, "it is not ours");
}

#[test]
fn a_write_with_a_lost_reply_counts_when_the_register_shows_it() {
    let mut lease = Lease::new(Controller(1));
    lease.saw(RegisterValue { revision: 0, held: None }, Time::from_secs(1));
    let write = lease.write(Time::from_secs(1)).expect("it is free");
    assert_eq!(lease.write(Time::from_secs(1)), None, "one at a time");
    lease.saw(RegisterValue { revision: 1, held: Some(write.held) }, Time::from_secs(3));
    assert_eq!(lease.epoch(Time::from_secs(3)), Some(1), "held since it was sent");
    assert_eq!(lease.epoch(Time::from_secs(4)), None, "not since it was seen");
}
