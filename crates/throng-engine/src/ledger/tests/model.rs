//! The ledger as a simple model: sets of users, all messages kept forever, no bits, no exchange.
//! One model is the truth of one shard; it sees all events in order of time.

use std::collections::BTreeSet;
use std::time::Duration;

use throng_base::{Time, UserId};
use throng_metrics::DeliveryInterval;

use crate::ledger::Rules;

/// A user between joining and leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Person {
    pub(super) shard: usize,
    pub(super) group: u64,
    pub(super) user: UserId,
    pub(super) life: u64,
}

pub(super) enum Act {
    Joined { person: Person },
    Left { person: Person },
    Sent { id: u64, group: u64, sender: (usize, UserId, Option<Person>) },
    Withdrawn { id: u64 },
    Received { shard: usize, person: Option<Person>, id: u64, latency: Option<Duration> },
}

pub(super) struct Model {
    rules: Rules,
    shard: usize,
    present: BTreeSet<Person>,
    messages: Vec<Message>,
    told: Told,
}

#[derive(Clone, Default)]
pub(super) struct Told {
    pub(super) interval: DeliveryInterval,
    /// When the unwatched messages were sent.
    pub(super) unwatched: BTreeSet<Time>,
    pub(super) fresh: u64,
}

struct Message {
    id: u64,
    at: Time,
    group: u64,
    sender: UserId,
    without: Option<Person>,
    /// The users that were present when no user of the group was.
    others: BTreeSet<Person>,
    home: bool,
    audience: BTreeSet<Person>,
    got: BTreeSet<Person>,
    late: u64,
    withdrawn: bool,
    unwatched: bool,
    settled: bool,
}

impl Message {
    fn is_live(&self) -> bool {
        !self.withdrawn && !self.unwatched && !self.settled
    }
}

impl Model {
    pub(super) fn new(rules: Rules, shard: usize) -> Model {
        let (present, messages) = (BTreeSet::new(), Vec::new());
        let mut told = Told::default();
        told.interval.step = rules.step;
        Model { rules, shard, present, messages, told }
    }

    pub(super) fn act(&mut self, now: u64, act: &Act) {
        let now = Time(now);
        self.settle_before(now);
        match *act {
            Act::Joined { person } if person.shard == self.shard => {
                self.present.insert(person);
            }
            Act::Left { person } => {
                self.present.remove(&person);
            }
            Act::Sent { id, group, sender } => self.sent(now, id, group, sender),
            Act::Withdrawn { id } => {
                if let Some(place) = self.known(now, id) {
                    let message = &mut self.messages[place];
                    let open = !message.settled || message.audience.is_empty();
                    if message.unwatched || open {
                        message.withdrawn = true;
                    }
                }
            }
            Act::Received { shard, person, id, latency } if shard == self.shard => {
                self.received(now, person, id, latency);
            }
            _ => {}
        }
    }

    pub(super) fn finish(&mut self, now: u64) -> Told {
        self.settle_before(Time(now));
        for place in 0..self.messages.len() {
            self.settle(place, true);
        }
        self.told.clone()
    }

    /// The last message with this id that is remembered.
    fn known(&self, now: Time, id: u64) -> Option<usize> {
        let remembered = self.rules.lost_after * 2;
        self.messages.iter().rposition(|message| message.id == id && message.at + remembered >= now)
    }

    fn sent(&mut self, at: Time, id: u64, group: u64, sender: (usize, UserId, Option<Person>)) {
        let (shard, sender, own) = sender;
        let before = self.known(at, id).filter(|&place| !self.messages[place].withdrawn);
        let without = own.filter(|_| self.rules.without_sender);
        let receives = |person: &&Person| person.group == group && Some(**person) != without;
        let message = Message {
            id,
            at,
            group,
            sender,
            without,
            others: self.present.iter().copied().collect(),
            home: shard == self.shard,
            audience: self.present.iter().filter(receives).copied().collect(),
            got: BTreeSet::new(),
            late: 0,
            withdrawn: false,
            unwatched: before.is_some(),
            settled: false,
        };
        if let Some(before) = before {
            let before = &mut self.messages[before];
            let watched = before.is_live() && !before.audience.is_empty();
            self.told.unwatched.insert(at);
            self.told.unwatched.extend(watched.then_some(before.at));
            before.unwatched |= watched;
        }
        self.messages.push(message);
    }

    fn received(&mut self, now: Time, person: Option<Person>, id: u64, latency: Option<Duration>) {
        let told = &mut self.told.interval;
        let remembered = self.rules.lost_after * 2;
        let known = |message: &Message| message.id == id && message.at + remembered >= now;
        let Some(place) = self.messages.iter().rposition(known) else {
            match latency.is_some_and(|latency| latency > self.rules.lost_after) {
                true => told.after_lost += 1,
                false => told.foreign += 1,
            }
            return;
        };
        let message = &self.messages[place];
        if message.withdrawn || message.unwatched {
            return;
        }
        let Some(person) = person else { return };
        if !message.audience.contains(&person) {
            let sender = message.without == Some(person);
            // A user that joined its group after the message was sent may have been in another one
            // then.
            let is_other = message.others.contains(&person) && person.group != message.group;
            told.stray += u64::from(is_other || sender);
            return;
        }
        if message.got.contains(&person) {
            told.twice += 1;
            return;
        }
        let overtaken = self.messages[place + 1..].iter().any(|later| {
            let alike = (later.sender, later.group) == (message.sender, message.group);
            alike && later.is_live() && later.got.contains(&person)
        });
        let late = latency.unwrap_or_else(|| now.since(message.at)) > self.rules.late_after;
        let message = &mut self.messages[place];
        message.got.insert(person);
        if message.settled {
            told.after_lost += 1;
            return;
        }
        message.late += u64::from(late);
        told.out_of_order += u64::from(overtaken);
        self.told.fresh += 1;
    }

    fn settle_before(&mut self, now: Time) {
        for place in 0..self.messages.len() {
            if self.messages[place].at + self.rules.lost_after < now {
                self.settle(place, false);
            }
        }
    }

    fn settle(&mut self, place: usize, excusing: bool) {
        let (told, message) = (&mut self.told.interval, &mut self.messages[place]);
        if message.settled {
            return;
        }
        let live = message.is_live();
        message.settled = true;
        told.sent += u64::from(message.home && !message.withdrawn);
        if !live {
            return;
        }
        for person in &message.audience {
            told.expected += 1;
            match message.got.contains(person) {
                true => told.delivered += 1,
                false if self.present.contains(person) && !excusing => told.lost += 1,
                false => told.excused += 1,
            }
        }
        told.late += message.late;
    }
}
