//! The ledger compared with a simple, slow model, and the effect of each limit.

mod bridged;
mod model;

use std::collections::BTreeSet;
use std::time::Duration;

use throng_base::{Random, Time, UserId};
use throng_metrics::{DeliveryInterval, Merge as _};

use super::{Exchange, Fresh, Id, MemberId, Rules, SHARD_BYTES_MAX, ShardLedger};
use bridged::Machines;
use model::{Act, Model, Person};

const LATE_AFTER: Duration = Duration::from_nanos(2_000);
const LOST_AFTER: Duration = Duration::from_nanos(10_000);

fn rules() -> Rules {
    Rules {
        step: 3,
        without_sender: false,
        shares: false,
        late_after: LATE_AFTER,
        lost_after: LOST_AFTER,
        bytes_max: SHARD_BYTES_MAX,
        patience: Duration::from_secs(1),
    }
}

fn single(rules: Rules) -> ShardLedger {
    ShardLedger::new(rules, Exchange::ports(1).pop().unwrap())
}

fn work(ledger: &mut ShardLedger, now: u64) -> usize {
    let mut count = 0;
    ledger.trade(Time(now));
    while ledger.work(7, &mut |_| count += 1) {}
    count
}

fn finish(ledger: &mut ShardLedger, now: u64) -> DeliveryInterval {
    ledger.finish(Time(now), &mut |_| {});
    ledger.interval()
}

/// Simulated users on several shards and machines, whose messages go astray; ledger and model see
/// all of it.
struct World {
    random: Random,
    seed: u64,
    now: u64,
    ids: u64,
    ledgers: Vec<ShardLedger>,
    machines: Machines,
    models: Vec<Model>,
    fresh: Vec<u64>,
    people: Vec<Standing>,
    /// A later delivery: when, to which user, which message, and its timestamp.
    coming: Vec<(u64, usize, u64, u64)>,
    groups: u64,
    lives: u64,
}

#[derive(Clone, Copy, Default)]
struct Standing {
    member: Option<MemberId>,
    person: Option<Person>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let shards = 1 + random.below(4) as usize;
        let rules = Rules { without_sender: random.chance(0.5), ..rules() };
        let (machines, ports) = Machines::new(1 + random.below(3) as usize, shards);
        World {
            seed,
            now: 1,
            // Some of these runs reuse their IDs.
            ids: if random.chance(0.3) { 50 } else { u64::MAX },
            ledgers: ports.into_iter().map(|port| ShardLedger::new(rules, port)).collect(),
            machines,
            models: (0..shards).map(|shard| Model::new(rules, shard)).collect(),
            fresh: vec![0; shards],
            people: vec![Standing::default(); 1 + random.below(200) as usize],
            coming: Vec::new(),
            groups: 1 + random.below(5),
            lives: 0,
            random,
        }
    }

    fn shard_of(&self, user: usize) -> usize {
        user % self.ledgers.len()
    }

    fn tell(&mut self, act: &Act) {
        for model in &mut self.models {
            model.act(self.now, act);
        }
    }

    fn step(&mut self) {
        self.now += 1 + self.random.below(100);
        let user = self.random.below(self.people.len() as u64) as usize;
        match self.random.below(100) {
            0..15 => self.come_or_go(user),
            15..30 => self.send(user),
            30..40 => self.trade(),
            _ => self.deliver(),
        }
    }

    fn come_or_go(&mut self, user: usize) {
        let (shard, id) = (self.shard_of(user), UserId(user as u64 + 1));
        let standing = self.people[user];
        if let (Some(member), Some(person)) = (standing.member, standing.person) {
            self.ledgers[shard].leave(member, Time(self.now));
            self.tell(&Act::Left { person });
            self.people[user] = Standing::default();
        } else {
            self.lives += 1;
            let group = self.random.below(self.groups);
            let person = Person { shard, group, user: id, life: self.lives };
            let member = Some(self.ledgers[shard].join(group, id, Time(self.now)));
            self.tell(&Act::Joined { person });
            self.people[user] = Standing { member, person: Some(person) };
        }
    }

    fn send(&mut self, user: usize) {
        let (shard, sender) = (self.shard_of(user), UserId(user as u64 + 1));
        let id = self.random.below(self.ids);
        let standing = self.people[user];
        let own = standing.person.map(|person| person.group).filter(|_| self.random.chance(0.8));
        let group = own.unwrap_or_else(|| self.random.below(self.groups));
        self.ledgers[shard].sent(Id::from(id), group, (sender, standing.member), Time(self.now));
        let sender = (shard, sender, standing.person);
        self.tell(&Act::Sent { id, group, sender });
        if self.random.chance(0.1) {
            self.now += 1 + self.random.below(15_000) * u64::from(self.random.chance(0.5));
            self.ledgers[shard].withdrawn(id, Time(self.now));
            self.tell(&Act::Withdrawn { id });
        }
        let sent = self.now;
        for receiver in 0..self.people.len() {
            let meant = self.people[receiver].person.is_some_and(|person| person.group == group);
            let times = match self.random.below(100) {
                0..5 => 0,
                5..10 => 2,
                _ => 1,
            };
            let times = if meant { times } else { u64::from(self.random.chance(0.01)) };
            for _ in 0..times {
                let longest = if self.random.chance(0.1) { 30_000 } else { 3_000 };
                let when = sent + self.random.below(longest);
                self.coming.push((when, receiver, id, sent));
            }
        }
        self.coming.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn deliver(&mut self) {
        while let Some((when, user, id, sent)) = self.coming.pop_if(|coming| coming.0 <= self.now) {
            self.now += when % 2;
            let (shard, standing) = (self.shard_of(user), self.people[user]);
            let stamped = self.random.chance(0.5);
            let latency = stamped.then(|| Duration::from_nanos(self.now - sent));
            let id = if self.random.chance(0.01) { u64::MAX - when } else { id };
            self.ledgers[shard].received(standing.member, &Id::from(id), latency, Time(self.now));
            self.tell(&Act::Received { shard, person: standing.person, id, latency });
            self.now += 1;
        }
    }

    fn trade(&mut self) {
        self.machines.carry_some(&mut self.random, Time(self.now));
        let shard = self.random.below(self.ledgers.len() as u64) as usize;
        let ledger = &mut self.ledgers[shard];
        ledger.trade(Time(self.now));
        let fresh = &mut self.fresh[shard];
        ledger.work(self.random.below(2_000) as usize, &mut |_: Fresh| *fresh += 1);
    }

    fn end(mut self) {
        for _ in 0..2 {
            self.ledgers.iter_mut().for_each(|ledger| ledger.trade(Time(self.now)));
            self.machines.carry_all(Time(self.now));
        }
        // A message counts as unwatched once per machine.
        let (mut unwatched, mut first_told) = (BTreeSet::new(), 0);
        for (shard, ledger) in self.ledgers.iter_mut().enumerate() {
            let fresh = &mut self.fresh[shard];
            ledger.finish(Time(self.now), &mut |_| *fresh += 1);
            let (mut told, meant) = (ledger.interval(), self.models[shard].finish(self.now));
            let machine = self.machines.of_shard(shard);
            unwatched.extend(meant.unwatched.into_iter().map(|at| (machine, at)));
            first_told += std::mem::take(&mut told.unwatched);
            assert_eq!(told, meant.interval, "seed {}, shard {shard}", self.seed);
            assert_eq!(*fresh, meant.fresh, "seed {}, shard {shard}", self.seed);
            assert_eq!(told.expected, told.delivered + told.lost + told.excused);
        }
        assert_eq!(first_told, unwatched.len() as u64, "seed {}", self.seed);
        assert_eq!(self.machines.missed(), 0, "seed {}", self.seed);
    }
}

#[test]
fn the_ledger_agrees_with_a_simple_model() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        for _ in 0..600 {
            world.step();
        }
        world.end();
    }
}

#[test]
fn the_simulated_runs_cover_every_outcome() {
    let mut all = DeliveryInterval::default();
    for seed in 0..20 {
        let mut world = World::new(seed);
        (0..1_000).for_each(|_| world.step());
        let now = world.now;
        for model in &mut world.models {
            let told = model.finish(now);
            all.merge(&told.interval);
            all.unwatched += told.unwatched.len() as u64;
        }
    }
    let figures = [all.sent, all.expected, all.delivered, all.lost, all.excused, all.late];
    let strange = [all.twice, all.out_of_order, all.after_lost, all.stray, all.foreign];
    assert!(figures.iter().chain(&strange).all(|&figure| figure > 50), "{all:?}");
    assert!(all.unwatched > 50, "{all:?}");
}

#[test]
fn a_receipt_before_its_announcement_is_processed_after_it() {
    let mut ports = Exchange::ports(2).into_iter();
    let mut sender = ShardLedger::new(rules(), ports.next().unwrap());
    let mut receiver = ShardLedger::new(rules(), ports.next().unwrap());
    let member = receiver.join(7, UserId(2), Time(1));
    sender.sent(Id::from(10), 7, (UserId(1), None), Time(2));
    sender.sent(Id::from(11), 7, (UserId(1), None), Time(3));
    receiver.received(Some(member), &Id::from(11), None, Time(4));
    receiver.received(Some(member), &Id::from(10), None, Time(5));
    assert_eq!(work(&mut receiver, 6), 0, "nobody knows what the sender's shard has sent");
    assert!(!receiver.is_complete(Time(1), Time(6)));
    sender.trade(Time(7));
    assert_eq!(work(&mut receiver, 8), 2);
    assert!(receiver.is_complete(Time(7), Time(8)));
    let told = finish(&mut receiver, 9);
    assert_eq!((told.step, told.expected, told.delivered, told.out_of_order), (3, 2, 2, 1));
    assert_eq!(told.foreign, 0);
    assert_eq!(finish(&mut sender, 9).sent, 2);
    let said: Vec<String> = receiver.remarks().iter().map(|(_, said)| said.english()).collect();
    assert_eq!(
        said,
        ["message 10 reached user 2 after 11, a later message from the same sender"],
        "the first of its kind"
    );
}

#[test]
fn no_shard_waits_for_one_that_has_ended() {
    let mut ports = Exchange::ports(3).into_iter();
    let mut here = ShardLedger::new(rules(), ports.next().unwrap());
    let mut there = ShardLedger::new(rules(), ports.next().unwrap());
    let member = here.join(7, UserId(2), Time(1));
    there.sent(Id::from(10), 7, (UserId(1), None), Time(2));
    there.finish(Time(3), &mut |_| {});
    drop((there, ports));
    here.received(Some(member), &Id::from(10), None, Time(4));
    assert_eq!(work(&mut here, 5), 1, "what it has published is heard all the same");
}

#[test]
fn losses_are_reported_in_a_sentence() {
    let mut ledger = single(rules());
    let members: Vec<MemberId> =
        (1..=100).map(|user| ledger.join(7, UserId(user), Time(user))).collect();
    ledger.sent(Id::from(0xabc), 7, (UserId(17), Some(members[16])), Time(1_000));
    for (place, member) in members.iter().enumerate() {
        if ![4, 76, 91, 98].contains(&place) {
            ledger.received(Some(*member), &Id::from(0xabc), None, Time(1_500));
        }
    }
    ledger.leave(members[98], Time(9_000));
    assert_eq!(work(&mut ledger, 11_000), 96);
    assert_eq!(ledger.interval(), DeliveryInterval { step: 3, ..DeliveryInterval::default() });
    work(&mut ledger, 11_001);
    let told = ledger.interval();
    assert_eq!((told.sent, told.expected, told.delivered), (1, 100, 96));
    assert_eq!((told.lost, told.excused), (3, 1));
    let said: Vec<String> = ledger.remarks().iter().map(|(_, said)| said.english()).collect();
    assert_eq!(
        said,
        ["message 2748 sent by user 17 at 1.00µs did not reach 3 of 100 receivers on one \
             shard: users 5, 77, 92"]
    );
    // A message that arrives after that is distinguished from a repeated one.
    ledger.received(Some(members[4]), &Id::from(0xabc), None, Time(15_000));
    ledger.received(Some(members[5]), &Id::from(0xabc), None, Time(15_001));
    ledger.received(Some(members[4]), &Id::from(0xabc), None, Time(15_002));
    work(&mut ledger, 15_003);
    let told = ledger.interval();
    assert_eq!((told.after_lost, told.twice, told.lost), (1, 2, 0));
    assert_eq!(ledger.remarks().len(), 2);
    ledger.received(Some(members[4]), &Id::from(0xabc), None, Time(50_000));
    assert_eq!(finish(&mut ledger, 50_001).foreign, 1, "by then it is forgotten");
}

#[test]
fn messages_not_due_at_the_end_are_undetermined() {
    let mut ledger = single(rules());
    let first = ledger.join(7, UserId(1), Time(1));
    ledger.join(7, UserId(2), Time(2));
    ledger.sent(Id::from(10), 7, (UserId(1), None), Time(3));
    ledger.received(Some(first), &Id::from(10), None, Time(4));
    let told = finish(&mut ledger, 10_003);
    assert_eq!((told.sent, told.expected, told.delivered), (1, 2, 1));
    assert_eq!((told.lost, told.excused), (0, 1));
}

#[test]
fn messages_without_memory_are_counted_as_unwatched() {
    let mut ledger = single(Rules { bytes_max: 16 << 10, ..rules() });
    let members: Vec<MemberId> =
        (0..500).map(|user| ledger.join(7, UserId(user), Time(user))).collect();
    for id in 0..1_000 {
        ledger.sent(Id::from(id), 7, (UserId(1), None), Time(600 + id));
        work(&mut ledger, 600 + id);
    }
    assert!(ledger.book.bytes() <= 16 << 10, "{}", ledger.book.bytes());
    ledger.received(Some(members[0]), &Id::from(999), None, Time(1_700));
    let told = finish(&mut ledger, 40_000);
    assert_eq!(told.sent, 1_000);
    assert!((800..1_000).contains(&told.unwatched), "{told:?}");
    assert_eq!(told.expected, (1_000 - told.unwatched) * 500);
    assert_eq!(told.lost, told.expected, "what is watched is watched in whole");
    assert_eq!(told.foreign, 0, "what is not remembered is not called foreign");
}

#[test]
fn a_message_that_no_shard_can_watch_counts_once() {
    let rules = Rules { bytes_max: 16 << 10, ..rules() };
    let ports = Exchange::ports(3).into_iter();
    let mut ledgers: Vec<ShardLedger> = ports.map(|port| ShardLedger::new(rules, port)).collect();
    for user in 0..1_500 {
        ledgers[user as usize % 3].join(7, UserId(user), Time(user));
    }
    for id in 0..1_000 {
        let now = Time(2_000 + id);
        ledgers[0].sent(Id::from(id), 7, (UserId(1), None), now);
        ledgers.iter_mut().for_each(|ledger| ledger.trade(now));
        for ledger in &mut ledgers {
            while ledger.work(7, &mut |_| {}) {}
        }
    }
    let told: Vec<DeliveryInterval> =
        ledgers.iter_mut().map(|ledger| finish(ledger, 40_000)).collect();
    let (sent, unwatched) = (told[0].sent, told.iter().map(|told| told.unwatched).sum::<u64>());
    assert_eq!(sent, 1_000);
    assert!((800..1_000).contains(&unwatched), "{told:?}");
}

#[test]
fn ids_are_reported_as_in_the_message() {
    let id = |text: &str| Id::of(text.into());
    let mut ledger = single(rules());
    let members: Vec<MemberId> =
        (1..=2).map(|user| ledger.join(7, UserId(user), Time(user))).collect();
    ledger.sent(id("a-1"), 7, (UserId(1), None), Time(10));
    ledger.sent(id("a-2"), 7, (UserId(1), None), Time(11));
    ledger.received(Some(members[0]), &id("a-2"), None, Time(12));
    ledger.received(Some(members[0]), &id("a-2"), None, Time(13));
    ledger.received(Some(members[0]), &id("a-1"), None, Time(14));
    ledger.received(Some(members[0]), &id("zz"), None, Time(15));
    ledger.sent_without_id(UserId(1), b"hello");
    ledger.received_without_id(UserId(2), b"{\"no\": 1}");
    ledger.received_without_id(UserId(2), b"second");
    work(&mut ledger, 20_000);
    let said: Vec<String> = ledger.remarks().iter().map(|(_, said)| said.english()).collect();
    assert_eq!(
        said,
        [
            "`match` found no ID in a message sent by user 1: `hello`",
            "`match` found no ID in a message received by user 2: `{\"no\": 1}`",
            "message a-2 was delivered to user 1 again",
            "message a-1 reached user 1 after a-2, a later message from the same sender",
            "message zz reached user 1, but no user of this run sent it",
            "message a-1 sent by user 1 at 10ns did not reach 1 of 2 receivers on one shard: \
             users 2",
        ]
    );
    let told = finish(&mut ledger, 20_001);
    assert_eq!((told.sent_without_id, told.received_without_id), (1, 2));
}

#[test]
fn receipts_without_room_in_the_log_make_their_messages_unwatched() {
    let mut ports = Exchange::ports(2).into_iter();
    let rules = Rules { bytes_max: 16 << 10, ..rules() };
    let mut ledger = ShardLedger::new(rules, ports.next().unwrap());
    let silent = ports.next().unwrap();
    let member = ledger.join(7, UserId(1), Time(1));
    ledger.sent(Id::from(10), 7, (UserId(1), None), Time(2));
    for at in 0..1_000 {
        ledger.received(Some(member), &Id::from(10), None, Time(3 + at));
    }
    assert!(ledger.log.len() <= 120, "{}", ledger.log.len());
    ledger.sent(Id::from(11), 7, (UserId(1), None), Time(900));
    drop(silent);
    work(&mut ledger, 2_000);
    ledger.sent(Id::from(12), 7, (UserId(1), None), Time(2_001));
    let told = finish(&mut ledger, 40_000);
    assert_eq!((told.sent, told.unwatched, told.expected, told.lost), (3, 2, 1, 1));
}

#[test]
fn places_and_groups_are_reused_but_not_too_soon() {
    let mut ledger = single(rules());
    let first = ledger.join(7, UserId(1), Time(1));
    ledger.sent(Id::from(10), 7, (UserId(1), None), Time(2));
    ledger.leave(first, Time(3));
    work(&mut ledger, 10_003);
    let second = ledger.join(7, UserId(2), Time(10_003));
    assert_ne!(first, second);
    work(&mut ledger, 10_004);
    assert_eq!(ledger.join(7, UserId(3), Time(10_004)), first);
    for user in 0..10_000 {
        let now = 20_000 + user * 10;
        let member = ledger.join(1_000 + user, UserId(user), Time(now));
        ledger.leave(member, Time(now + 1));
        work(&mut ledger, now + 2);
    }
    assert!(ledger.groups.count() < 1_100, "{}", ledger.groups.count());
}
