//! The ledger of a run: which receivers got the messages that fan out. Pure: no I/O, no clock.
//!
//! Each shard has a [`ShardLedger`] per row of deliveries. The shard reports which of its users are
//! receivers and when (`join`, `leave`), what they send (`sent`, `withdrawn`) and what they receive
//! (`received`). All of that is logged. Messages that users of other shards have sent arrive
//! through the [`Exchange`], the only shared part; it is accessed once per probe (`trade`). Once
//! all shards have published what they sent up to some time, the log is processed up to that time,
//! in order (`work`): a receipt is never processed before its message is known, however late the
//! news of it, and every count is exact. The shards of other machines are connected by a
//! [`Bridge`].
//!
//! - The members of a message's group at the time of sending are **expected** to get it, except the
//!   sender if `without_sender` is set.
//! - A message is **settled** `lost_after` later. For each expected member it is then *delivered*
//!   if the member got it, *lost* if the member is still online and did not, and *undetermined* if
//!   the member left without it. Messages that are not due at the end of the run are undetermined
//!   if not delivered. Before it is settled, a message is in no counter except `twice`,
//!   `out_of_order`, `stray` and `foreign`, which count receipts.
//! - *Twice*: a member gets a message again. *Stray*: a user gets a message that is not for it: a
//!   member of another group, or the sender itself; users that came online after it was sent, or
//!   have moved to their group since, may get it or not. *Foreign*: no user has sent it, or more
//!   than twice `lost_after` ago. *After lost*: it was lost for this member.
//! - *Out of order*: the member already got a later message of the same sender in this group.
//! - A *withdrawn* message is not counted, unless it was settled before.
//! - *Late*: delivered, but later than `late_after` by its timestamp, or by its sending time
//!   without one.
//! - *Unwatched*: a message whose receivers on some shard are unknown, because the memory of the
//!   shard was full or the ID was reused while it was known; nothing is expected of those
//!   receivers. Counted once per machine, however many shards did not watch it: the exchange knows
//!   which one reported it first.
//! - *Without id*: sent or received and meant for the ledger, but without anything that identifies
//!   it; it is in no other counter.
//!
//! Memory: a watched delivery takes one bit, and its message about 130 bytes on each shard with
//! receivers; an ID is remembered for twice `lost_after` at about 64 bytes; a member takes 16
//! bytes; an entry of the log 40. With [`SHARD_BYTES_MAX`], a shard watches 20,000 messages at a
//! time to 16,000 receivers each, or 250,000 messages to 64.

mod bits;
mod book;
mod bridge;
mod exchange;
mod groups;
mod id;
pub(crate) mod mix;
mod remark;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use throng_base::{StepId, Time, UserId};
use throng_metrics::{DeliveryCounter, DeliveryInterval};

use book::Book;
use exchange::{News, Sent};
use groups::Groups;
use remark::Remark;

use crate::failure::shown;
pub(crate) use bridge::{Announced, Bridge};
pub(crate) use exchange::{Exchange, Port};
pub(crate) use groups::MemberId;
pub(crate) use id::Id;

/// Memory for the messages of one row on one shard. With many shards, each gets less.
pub(crate) const SHARD_BYTES_MAX: usize = 64 << 20;
/// Messages that wait to be published. Others are not watched.
const OUTBOX_MAX: usize = 1 << 16;
/// The share of the memory that the log may take; the rest is for watched messages.
const LOG_SHARE: usize = 4;

/// Settings of a row of deliveries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) step: u16,
    pub(crate) without_sender: bool,
    /// Other rows use the same messages: an unknown one may be theirs, and is not counted as
    /// foreign.
    pub(crate) shares: bool,
    pub(crate) late_after: Duration,
    pub(crate) lost_after: Duration,
    /// For messages and the log, without members.
    pub(crate) bytes_max: usize,
    /// How long a shard that has ended waits for the messages of others.
    pub(crate) patience: Duration,
}

/// A message reached one of its receivers for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fresh {
    /// By its timestamp, if it has one.
    pub(crate) latency: Option<Duration>,
}

/// One row of deliveries on one shard.
#[derive(Debug)]
pub(crate) struct ShardLedger {
    rules: Rules,
    port: Port,
    /// Events of this shard that are not processed yet.
    log: VecDeque<Event>,
    /// The messages among them.
    own: VecDeque<Sent>,
    /// News that the other shards do not have yet.
    outbox: Vec<News>,
    /// Messages of others that are not processed yet, in order of time.
    heard: VecDeque<News>,
    /// Time of the last event.
    now: Time,
    /// Time of the last message.
    last_sent: Time,
    /// Everything sent before is published.
    published: Time,
    /// Everything sent anywhere before is known.
    complete_until: Time,
    worked_until: Time,
    groups: Groups,
    book: Book,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    at: Time,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Joined {
        member: MemberId,
        user: UserId,
    },
    Left {
        member: MemberId,
    },
    /// The next message in `own`.
    Sent,
    Withdrawn {
        id: u64,
    },
    /// The latency in nanoseconds, or [`NO_LATENCY`].
    Received {
        member: MemberId,
        id: u64,
        latency_ns: u64,
    },
}

const NO_LATENCY: u64 = u64::MAX;

const _: () = assert!(size_of::<Event>() <= 40);

impl ShardLedger {
    pub(crate) fn new(rules: Rules, port: Port) -> ShardLedger {
        ShardLedger {
            rules,
            port,
            log: VecDeque::new(),
            own: VecDeque::new(),
            outbox: Vec::new(),
            heard: VecDeque::new(),
            now: Time::ZERO,
            last_sent: Time::ZERO,
            published: Time::ZERO,
            complete_until: Time::ZERO,
            worked_until: Time::ZERO,
            groups: Groups::default(),
            book: Book::new(rules),
        }
    }

    /// A user is a receiver of this group (the hash of its audience's key) from now on. Messages
    /// that users of other shards send at exactly this time are not for it.
    pub(crate) fn join(&mut self, group: u64, user: UserId, now: Time) -> MemberId {
        let member = self.groups.place(group);
        self.log(now, What::Joined { member, user });
        member
    }

    pub(crate) fn leave(&mut self, member: MemberId, now: Time) {
        self.log(now, What::Left { member });
    }

    /// A user sends a message to a group. `member` is the sender as a receiver.
    pub(crate) fn sent(
        &mut self,
        id: Id,
        group: u64,
        (sender, member): (UserId, Option<MemberId>),
        now: Time,
    ) {
        let at = self.sending(now);
        if self.outbox.len() >= OUTBOX_MAX {
            self.book.interval.sent += 1;
            self.book.interval.unwatched += 1;
            match self.outbox.last_mut() {
                Some(News::Unannounced { until, .. }) => *until = at,
                _ => self.outbox.push(News::Unannounced { at, until: at }),
            }
            self.book.forgetting(at);
            return;
        }
        let home = self.port.shard();
        let sent = Sent { id: id.key, text: id.text, group, sender, at, home, member };
        self.own.push_back(sent.clone());
        self.outbox.push(News::Sent(sent));
        self.log.push_back(Event { at, what: What::Sent });
    }

    /// A message was sent that belongs to the ledger, but has nothing that identifies it.
    pub(crate) fn sent_without_id(&mut self, user: UserId, content: &[u8]) {
        self.book.interval.sent_without_id += 1;
        self.book.remarks.note_once(DeliveryCounter::SentWithoutId, || {
            let content = shown(content);
            say!("`match` found no ID in a message sent by user {user}: `{content}`")
        });
    }

    pub(crate) fn received_without_id(&mut self, user: UserId, content: &[u8]) {
        self.book.interval.received_without_id += 1;
        self.book.remarks.note_once(DeliveryCounter::ReceivedWithoutId, || {
            let content = shown(content);
            say!("`match` found no ID in a message received by user {user}: `{content}`")
        });
    }

    /// A user got several records in one message: only the first is known.
    pub(crate) fn received_joined(&mut self) {
        self.book.interval.received_joined += 1;
    }

    /// The step that sent it has failed: no user has to get it.
    pub(crate) fn withdrawn(&mut self, id: u64, now: Time) {
        let at = self.moment(now);
        if self.outbox.len() >= OUTBOX_MAX {
            // A message that the others do not know about is not watched.
            self.book.forgetting(at);
            return;
        }
        self.outbox.push(News::Withdrawn { id, at });
        self.log.push_back(Event { at, what: What::Withdrawn { id } });
    }

    /// A user got a message, with this latency by its timestamp. Without a member, the user is not
    /// in any audience yet.
    #[inline]
    pub(crate) fn received(
        &mut self,
        member: Option<MemberId>,
        id: &Id,
        latency: Option<Duration>,
        now: Time,
    ) {
        if self.log.len() * size_of::<Event>() >= self.rules.bytes_max / LOG_SHARE {
            let now = self.moment(now);
            self.book.blinded(now, self.worked_until);
            return;
        }
        let member = member.unwrap_or(MemberId::NONE);
        let latency_ns = latency.map_or(NO_LATENCY, |latency| {
            u64::try_from(latency.as_nanos()).unwrap_or(NO_LATENCY).min(NO_LATENCY - 1)
        });
        self.book.texts.keep(id);
        self.log(now, What::Received { member, id: id.key, latency_ns });
    }

    /// Tells the other shards what was sent here, and learns what they sent. Must be called at
    /// every probe, even without news: the others wait for it.
    pub(crate) fn trade(&mut self, now: Time) {
        self.now = self.now.max(now);
        let heard = self.port.trade(&self.outbox, self.now);
        if !heard.refused {
            self.outbox.clear();
            self.published = self.now;
        }
        self.complete_until = heard.complete_until.min(self.now);
        if !heard.news.is_empty() {
            heard.news.iter().for_each(|news| self.heard.extend(news.iter().cloned()));
            self.heard.make_contiguous().sort_by_key(News::at);
        }
    }

    /// Processes at most this many events, if they can be; true if more are left.
    pub(crate) fn work(&mut self, events_max: usize, fresh: &mut impl FnMut(Fresh)) -> bool {
        for _ in 0..events_max {
            if !self.work_one(self.complete_until, fresh) {
                self.settle_until(self.complete_until);
                self.say_unwatched();
                return false;
            }
        }
        self.say_unwatched();
        true
    }

    /// Counts the messages that this shard is the first not to watch.
    fn say_unwatched(&mut self) {
        if !self.book.unwatched.is_empty() {
            self.book.interval.unwatched += self.port.first_to_say(&self.book.unwatched);
            self.book.unwatched.clear();
        }
    }

    /// The row of the report.
    pub(crate) fn step(&self) -> StepId {
        StepId(self.rules.step)
    }

    /// The counts since the last call.
    pub(crate) fn interval(&mut self) -> DeliveryInterval {
        let interval = std::mem::take(&mut self.book.interval);
        DeliveryInterval { step: self.rules.step, ..interval }
    }

    /// The first error of each kind on this shard, once.
    pub(crate) fn remarks(&mut self) -> Vec<Remark> {
        std::mem::take(&mut self.book.remarks.waiting)
    }

    /// Everything sent anywhere before this time is known and processed, or the wait for it has
    /// timed out. If a shard waits for this before it calls `finish`, no delivery stays open.
    pub(crate) fn is_complete(&self, until: Time, now: Time) -> bool {
        self.worked_until >= until || now - until >= self.rules.patience
    }

    /// The end of the run for this shard: processes everything; messages that are not due become
    /// undetermined. Until the ledger is dropped, others can still learn what was sent here; they
    /// do not wait for a dropped one.
    pub(crate) fn finish(&mut self, now: Time, fresh: &mut impl FnMut(Fresh)) {
        self.trade(now);
        while self.work_one(self.complete_until, fresh) {}
        self.settle_until(self.complete_until);
        if self.complete_until < self.now {
            // An unknown message may have been sent nevertheless.
            self.book.forgetting(self.now);
        }
        while self.work_one(self.now, fresh) {}
        self.settle_until(self.now);
        self.book.finish(&self.groups);
        self.say_unwatched();
    }

    fn log(&mut self, now: Time, what: What) {
        self.now = self.now.max(now);
        self.log.push_back(Event { at: self.now, what });
    }

    /// The time of a message: never before the last event here, nor before what was published as
    /// complete.
    fn moment(&mut self, now: Time) -> Time {
        self.now = self.now.max(now).max(self.published + Duration::from_nanos(1));
        self.now
    }

    /// The sending time of a message: unique on its shard, so that it identifies the message.
    fn sending(&mut self, now: Time) -> Time {
        let after = self.last_sent + Duration::from_nanos(1);
        self.last_sent = self.moment(now.max(after));
        self.last_sent
    }

    /// Processes the first event up to this time; of two at the same time, the message of another
    /// shard.
    #[inline]
    fn work_one(&mut self, until: Time, fresh: &mut impl FnMut(Fresh)) -> bool {
        let own = self.log.front().map_or(Time::NEVER, |event| event.at);
        let heard = self.heard.front().map_or(Time::NEVER, News::at);
        if own.min(heard) > until {
            return false;
        }
        if heard <= own {
            let Some(news) = self.heard.pop_front() else {
                return false;
            };
            self.book.settle_before(&mut self.groups, heard);
            match news {
                News::Sent(sent) => self.book.sent(&self.groups, &sent, false),
                News::Withdrawn { id, .. } => self.book.withdrawn(id),
                News::Unannounced { until, .. } => self.book.forgetting(until),
            }
            return true;
        }
        let Some(event) = self.log.pop_front() else {
            return false;
        };
        self.book.settle_before(&mut self.groups, own);
        self.happened(event, fresh);
        true
    }

    #[inline]
    fn happened(&mut self, event: Event, fresh: &mut impl FnMut(Fresh)) {
        match event.what {
            What::Received { member, id, latency_ns } => {
                let latency = (latency_ns != NO_LATENCY).then(|| Duration::from_nanos(latency_ns));
                let got = self.book.received(&self.groups, (member, id), event.at, latency);
                if let Some(got) = got {
                    fresh(got);
                }
            }
            What::Joined { member, user } => self.book.entered(&mut self.groups, member, user),
            What::Left { member } => self.book.exited(&mut self.groups, member, event.at),
            What::Sent => {
                if let Some(sent) = self.own.pop_front() {
                    self.book.sent(&self.groups, &sent, true);
                }
            }
            What::Withdrawn { id } => self.book.withdrawn(id),
        }
    }

    fn settle_until(&mut self, until: Time) {
        self.book.settle_before(&mut self.groups, until);
        self.book.release_before(&mut self.groups, until);
        self.worked_until = self.worked_until.max(until);
    }
}
