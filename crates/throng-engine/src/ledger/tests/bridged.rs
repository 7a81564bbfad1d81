//! Ledgers of several machines: announcements arrive late, twice or not at all.

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::{Random, Share, StepId, Time, UserId};

use super::{finish, rules, work};
use crate::ledger::{Announced, Bridge, Exchange, Id, Port, ShardLedger};

/// The machines of a simulated run, and the announcements in transit between them.
pub(super) struct Machines {
    bridges: Vec<Bridge>,
    /// By receiver, then by sender: in order.
    ways: Vec<Vec<VecDeque<Announced>>>,
    shards: usize,
}

impl Machines {
    /// At most this many, and a port for each shard.
    pub(super) fn new(machines: usize, shards: usize) -> (Machines, Vec<Port>) {
        let machines = machines.min(shards);
        let (mut bridges, mut all) = (Vec::new(), Vec::new());
        for machine in 0..machines {
            let here = (0..shards).filter(|shard| shard * machines / shards == machine).count();
            let mut ports = Exchange::ports(here + usize::from(machines > 1));
            if machines > 1 {
                let share = Share::of_machine(machine as u64, 1, machines as u64);
                bridges.push(Bridge::new(
                    share,
                    ports.pop().map(|port| (StepId(3), port)).into_iter(),
                ));
            }
            all.extend(ports);
        }
        let ways = vec![vec![VecDeque::new(); bridges.len()]; bridges.len()];
        (Machines { bridges, ways, shards }, all)
    }

    pub(super) fn of_shard(&self, shard: usize) -> usize {
        shard * self.bridges.len().max(1) / self.shards
    }

    fn tell(&mut self, machine: usize, now: Time) {
        for announced in self.bridges[machine].tell(now) {
            for way in &mut self.ways {
                way[machine].push_back(announced.clone());
            }
        }
    }

    fn hear(&mut self, machine: usize, from: usize, now: Time) {
        if let Some(announced) = self.ways[machine][from].pop_front() {
            self.bridges[machine].hear(&announced, Duration::ZERO, now);
        }
    }

    /// One announces, and some announcements arrive, some of them twice.
    pub(super) fn carry_some(&mut self, random: &mut Random, now: Time) {
        let count = self.bridges.len() as u64;
        if count == 0 {
            return;
        }
        self.tell(random.below(count) as usize, now);
        for _ in 0..2 * count {
            let (to, from) = (random.below(count) as usize, random.below(count) as usize);
            if random.chance(0.1)
                && let Some(again) = self.ways[to][from].front().cloned()
            {
                self.bridges[to].hear(&again, Duration::ZERO, now);
            }
            self.hear(to, from, now);
        }
    }

    pub(super) fn carry_all(&mut self, now: Time) {
        // The next announcement reaches the shards, so it takes two rounds.
        for _ in 0..2 {
            for machine in 0..self.bridges.len() {
                self.tell(machine, now);
            }
            for to in 0..self.bridges.len() {
                for from in 0..self.bridges.len() {
                    while !self.ways[to][from].is_empty() {
                        self.hear(to, from, now);
                    }
                }
            }
        }
    }

    pub(super) fn missed(&mut self) -> u64 {
        self.bridges.iter_mut().flat_map(Bridge::missed).map(|(_, missed)| missed).sum()
    }
}

/// A machine with one shard, of two.
fn one(first: u64) -> (ShardLedger, Bridge) {
    let mut ports = Exchange::ports(2).into_iter();
    let ledger = ShardLedger::new(rules(), ports.next().unwrap());
    let ways = ports.map(|port| (StepId(3), port));
    (ledger, Bridge::new(Share::of_machine(first, 1, 2), ways))
}

/// Two machines: on the second a user listens, on the first three messages are sent. Each is
/// announced on its own.
fn three_messages() -> (ShardLedger, Bridge, Vec<Announced>, ShardLedger, Bridge) {
    let ((mut sender, mut there), (mut receiver, here)) = (one(0), one(1));
    let member = receiver.join(7, UserId(2), Time(1));
    let mut told = there.tell(Time(5));
    for id in 0..3 {
        let at = 10 + id * 10;
        sender.sent(Id::from(id), 7, (UserId(1), None), Time(at));
        receiver.received(Some(member), &Id::from(id), None, Time(at + 5));
        sender.trade(Time(at + 1));
        told.extend(there.tell(Time(at + 2)));
    }
    sender.trade(Time(100_000));
    told.extend(there.tell(Time(100_001)));
    (sender, there, told, receiver, here)
}

fn missed(bridge: &mut Bridge) -> u64 {
    bridge.missed().map(|(step, missed)| (step.0 == 3).then_some(missed).unwrap()).sum()
}

#[test]
fn messages_of_another_machine_are_expected_here() {
    let (mut sender, mut there, told, mut receiver, mut here) = three_messages();
    assert_eq!(work(&mut receiver, 50), 0, "the other machine has said nothing");
    told.iter().for_each(|one| here.hear(one, Duration::ZERO, Time(60)));
    here.tell(Time(61));
    assert_eq!(work(&mut receiver, 62), 3);
    here.tell(Time(99_000)).iter().for_each(|one| there.hear(one, Duration::ZERO, Time(99_001)));
    let got = finish(&mut receiver, 100_000);
    assert_eq!((got.sent, got.expected, got.delivered, got.unwatched), (0, 3, 3, 0));
    there.tell(Time(99_002));
    let sent = finish(&mut sender, 100_000);
    assert_eq!((sent.sent, sent.expected, sent.unwatched), (3, 0, 0));
    assert_eq!((missed(&mut here), missed(&mut there)), (0, 0));
}

#[test]
fn announcements_lost_in_transit_are_unwatched_not_foreign() {
    let (_, _, told, mut receiver, mut here) = three_messages();
    let but_one = told.iter().enumerate().filter(|(place, _)| *place != 2);
    but_one.for_each(|(_, one)| here.hear(one, Duration::ZERO, Time(60)));
    here.tell(Time(61));
    work(&mut receiver, 62);
    assert_eq!(missed(&mut here), 1);
    let got = finish(&mut receiver, 90_000);
    assert_eq!(got.foreign, 0, "{got:?}");
    assert_eq!(got.expected, got.delivered, "{got:?}");
    assert!(got.expected < 3, "{got:?}");
}

#[test]
fn a_duplicated_announcement_counts_once() {
    let (_, _, told, mut receiver, mut here) = three_messages();
    for one in told.iter().chain(&told) {
        here.hear(one, Duration::ZERO, Time(60));
        here.hear(one, Duration::ZERO, Time(60));
    }
    here.tell(Time(61));
    work(&mut receiver, 62);
    let got = finish(&mut receiver, 90_000);
    assert_eq!((got.expected, got.delivered, got.twice), (3, 3, 0));
    assert_eq!(missed(&mut here), 0);
}

#[test]
fn a_silent_machine_is_waited_for_only_for_a_while() {
    let ((mut ledger, mut here), _) = (one(1), one(0));
    let member = ledger.join(7, UserId(2), Time(1));
    ledger.received(Some(member), &Id::from(9), None, Time(2));
    here.tell(Time(3));
    assert_eq!(work(&mut ledger, 4), 0);
    let silent = Time::from_secs(11);
    ledger.trade(silent);
    here.tell(silent);
    ledger.trade(silent);
    while ledger.work(7, &mut |_| {}) {}
    let got = finish(&mut ledger, silent.0 + 1);
    assert_eq!(got.foreign, 0, "nobody knows what the other machine has sent");
}

#[test]
fn clock_differences_put_no_receipt_before_its_message() {
    let (_, _, told, mut receiver, mut here) = three_messages();
    // The other clock may be ahead by 8: a message sent there "at 10" arrived here at 15 by our
    // clock.
    told.iter().for_each(|one| here.hear(one, Duration::from_nanos(8), Time(60)));
    here.tell(Time(61));
    work(&mut receiver, 62);
    let got = finish(&mut receiver, 90_000);
    assert_eq!((got.expected, got.delivered, got.foreign), (3, 3, 0));
}

#[test]
fn many_messages_are_split_into_several_batches() {
    const COUNT: u64 = 45_000;
    let ((mut sender, mut there), (mut receiver, mut here)) = (one(0), one(1));
    let member = receiver.join(7, UserId(2), Time(1));
    let id = |number: u64| match number % 2 {
        0 => Id::from(number),
        _ => Id::of(format!("id-{number}").as_str().into()),
    };
    for number in 0..COUNT {
        sender.sent(id(number), 7, (UserId(1), None), Time(10 + number));
        receiver.received(Some(member), &id(number), None, Time(10 + number));
    }
    here.tell(Time(5)).iter().for_each(|one| there.hear(one, Duration::ZERO, Time(6)));
    sender.trade(Time(60_000));
    let told = there.tell(Time(60_001));
    assert_eq!(told.len(), 3);
    for one in &told {
        // Over the wire and back.
        let text = serde_json::to_string(one).unwrap();
        here.hear(&serde_json::from_str(&text).unwrap(), Duration::ZERO, Time(60_002));
    }
    here.tell(Time(60_003));
    work(&mut receiver, 60_004);
    let got = finish(&mut receiver, 60_005);
    assert_eq!((got.expected, got.delivered, got.foreign), (COUNT, COUNT, 0), "{got:?}");
    assert_eq!(missed(&mut here), 0);
}

#[test]
fn fuzz_announcements_of_another_machine_cannot_corrupt_a_ledger() {
    let (_, _, told, _, _) = three_messages();
    let texts: Vec<String> = told.iter().map(|one| serde_json::to_string(one).unwrap()).collect();
    let seeds: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let ((_, mut there), (mut receiver, mut here)) = (one(0), one(1));
    there.tell(Time(1)).iter().for_each(|one| here.hear(one, Duration::ZERO, Time(2)));
    let mut now = 10;
    throng_fuzz::mutations(&seeds, |bytes, _| {
        now += 1;
        if let Ok(announced) = serde_json::from_slice::<Announced>(bytes) {
            here.hear(&announced, Duration::from_nanos(3), Time(now));
        }
        here.tell(Time(now));
        work(&mut receiver, now);
        here.missed().for_each(drop);
    });
}
