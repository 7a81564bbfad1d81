//! The ledger of a run: which messages that fan out have reached whom. Pure: no I/O, no clock.
//!
//! Each shard has a [`ShardLedger`] for each row of deliveries. It is told which of its users are
//! receivers and when (`join`, `leave`), what they send (`sent`, `withdrawn`) and what they get
//! (`received`). All of that goes to a log. What users of other shards have sent comes through the
//! [`Exchange`], the one thing that ledgers share; it is asked once per probe (`trade`). Once all
//! shards have published what they sent up to some moment, the log is worked off up to there, in
//! the order of time (`work`): so a receipt is never looked at before its message is known, however
//! late the word of it comes, and every figure is exact. The shards of other machines are heard by
//! way of a [`Bridge`].
//!
//! - **Expected** by a message are the members of its group at the moment it was sent; never its
//!   sender when `without_sender` holds.
//! - It is **settled** `lost_after` later. A member is then *delivered* if it has got it, *lost* if
//!   it is still there and has not, and *excused* if it has left without it. What is not due at the
//!   end of the run is excused where it was not delivered. Until it is settled, a message is in no
//!   figure but `twice`, `out_of_order`, `stray` and `foreign`, which are of receipts.
//! - *Twice*: a member gets what it has got. *Stray*: somebody gets what is not for it: a member of
//!   another group, or the sender itself; users who came online after it was sent, or have moved
//!   to their group after that, may get it or not. *Foreign*: nobody has sent it, or more than
//!   twice `lost_after` ago. *After lost*: it was lost for this member.
//! - *Out of order*: a member has already got a later message of the same sender in this group.
//! - A *withdrawn* message counts nowhere, unless it was settled before that.
//! - *Late*: delivered, but later than `late_after` by its stamp; without one, by when it was sent.
//! - *Unwatched*: a message whose receivers on some shard are not known, as the memory of the shard
//!   was full or its id was used again while it was known; nothing is expected of those. It counts
//!   once on a machine, however many of its shards had to: the exchange knows which one said it
//!   first.
//! - *Without id*: what was sent or received and should be in the ledger, but nothing in it tells
//!   it apart; it is in no other figure.
//!
//! Memory: a watched delivery costs one bit, and its message about 130 bytes on each shard that has
//! receivers; an id is known for twice `lost_after` at about 64 bytes; a member takes 16 bytes;
//! what waits in the log 40. With [`SHARD_BYTES_MAX`] a shard watches 20,000 messages at a time to
//! 16,000 receivers each, or 250,000 messages to 64.

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
use throng_program::Delivery;

use book::Book;
use exchange::{News, Sent};
use groups::Groups;

pub(crate) use bridge::{Announced, Bridge};
pub(crate) use exchange::{Exchange, Port};
pub(crate) use groups::MemberId;
pub(crate) use id::Id;
pub(crate) use remark::Remark;

/// What the messages of one row take on one shard. A run with many shards gives each less.
pub(crate) const SHARD_BYTES_MAX: usize = 64 << 20;
/// Messages that wait to be published. More are not watched.
const OUTBOX_MAX: usize = 1 << 16;
/// The share of the memory that the log may take, so that what is watched has the rest.
const LOG_SHARE: usize = 4;

/// What a row of deliveries asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) step: u16,
    pub(crate) without_sender: bool,
    /// Others are received by the same messages: what is unknown here may be theirs, and is not
    /// called foreign.
    pub(crate) shares: bool,
    pub(crate) late_after: Duration,
    pub(crate) lost_after: Duration,
    /// Of messages and the log; not of members.
    pub(crate) bytes_max: usize,
    /// A shard at its end waits so long for what others have sent.
    pub(crate) patience: Duration,
}

impl Rules {
    pub(crate) fn of(
        delivery: &Delivery,
        shares: bool,
        (bytes_max, patience): (usize, Duration),
    ) -> Rules {
        Rules {
            step: delivery.step.0,
            without_sender: delivery.without_sender,
            shares,
            late_after: delivery.late_after,
            lost_after: delivery.lost_after,
            bytes_max,
            patience,
        }
    }
}

/// A message has come to one of its receivers for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fresh {
    /// From its stamp, if it has one.
    pub(crate) latency: Option<Duration>,
}

/// One row of deliveries on one shard.
#[derive(Debug)]
pub(crate) struct ShardLedger {
    rules: Rules,
    port: Port,
    /// What has happened here and is not worked off.
    log: VecDeque<Event>,
    /// The messages among it.
    own: VecDeque<Sent>,
    /// What others do not know yet.
    outbox: Vec<News>,
    /// What others have sent and is not worked off, in the order of time.
    heard: VecDeque<News>,
    /// Of the last event.
    now: Time,
    /// Of the last message.
    last_sent: Time,
    /// What was sent up to here is published.
    published: Time,
    /// All that was sent anywhere up to here has been heard of.
    complete_until: Time,
    worked_until: Time,
    groups: Groups,
    book: Book,
}

/// The beginning of a message, for an example.
fn content_text(content: &[u8]) -> String {
    crate::failure::shown(content)
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
    /// The next one of `own`.
    Sent,
    Withdrawn {
        id: u64,
    },
    /// The latency in nanoseconds; [`NO_LATENCY`] if there is none.
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

    /// A user is a receiver of this group (the hash of its audience's key) from now on. What is
    /// sent at the very same moment by users of other shards is not for it.
    pub(crate) fn join(&mut self, group: u64, user: UserId, now: Time) -> MemberId {
        let member = self.groups.place(group);
        self.log(now, What::Joined { member, user });
        member
    }

    pub(crate) fn leave(&mut self, member: MemberId, now: Time) {
        self.log(now, What::Left { member });
    }

    /// A user sends a message to a group. `member` is what the sender itself is as a receiver.
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

    /// Something was sent that should be in the ledger, and has nothing that tells it apart.
    pub(crate) fn sent_without_id(&mut self, user: UserId, content: &[u8]) {
        self.book.interval.sent_without_id += 1;
        self.book.remarks.note_once(DeliveryCounter::SentWithoutId, || Remark::SentWithoutId {
            user,
            content: content_text(content),
        });
    }

    pub(crate) fn received_without_id(&mut self, user: UserId, content: &[u8]) {
        self.book.interval.received_without_id += 1;
        self.book.remarks.note_once(DeliveryCounter::ReceivedWithoutId, || {
            Remark::ReceivedWithoutId { user, content: content_text(content) }
        });
    }

    /// A user has got several records in one message: what is behind the first is not known.
    pub(crate) fn received_joined(&mut self) {
        self.book.interval.received_joined += 1;
    }

    /// The step that sent it has failed: nobody has to get it.
    pub(crate) fn withdrawn(&mut self, id: u64, now: Time) {
        let at = self.moment(now);
        if self.outbox.len() >= OUTBOX_MAX {
            // What others do not hear of is not watched.
            self.book.forgetting(at);
            return;
        }
        self.outbox.push(News::Withdrawn { id, at });
        self.log.push_back(Event { at, what: What::Withdrawn { id } });
    }

    /// A user has got a message, with this latency by its stamp. Without a member it is somebody
    /// who is not in any audience yet.
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

    /// Tells the other shards what was sent here, and hears what was sent there. To be called at
    /// every probe, whether there is anything to tell or not: the others wait for it.
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

    /// Works off so many events at most, of those that can be; whether there are more of them.
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

    /// Counts the messages that this shard is the first one not to watch.
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

    /// What was counted since the last time.
    pub(crate) fn interval(&mut self) -> DeliveryInterval {
        let interval = std::mem::take(&mut self.book.interval);
        DeliveryInterval { step: self.rules.step, ..interval }
    }

    /// The first of each kind of what went wrong on this shard, once.
    pub(crate) fn remarks(&mut self) -> Vec<Remark> {
        self.book.remarks.take_all()
    }

    /// All is heard and worked off that was sent anywhere before this moment, or was waited for
    /// long enough. A shard at its end that waits for this before it calls `finish` leaves nothing
    /// open.
    pub(crate) fn is_complete(&self, until: Time, now: Time) -> bool {
        self.worked_until >= until || now - until >= self.rules.patience
    }

    /// The end of the run for this shard: works off everything, and excuses what is not due. Until
    /// the ledger is dropped, others can hear what was sent here; they do not wait for it any more
    /// once it is.
    pub(crate) fn finish(&mut self, now: Time, fresh: &mut impl FnMut(Fresh)) {
        self.trade(now);
        while self.work_one(self.complete_until, fresh) {}
        self.settle_until(self.complete_until);
        if self.complete_until < self.now {
            // What is not known now may have been sent all the same.
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

    /// When something is sent: never before what happened here, nor when all was said to be known.
    fn moment(&mut self, now: Time) -> Time {
        self.now = self.now.max(now).max(self.published + Duration::from_nanos(1));
        self.now
    }

    /// When a message is sent: no two of a shard at the same moment, so that this tells them apart.
    fn sending(&mut self, now: Time) -> Time {
        let after = self.last_sent + Duration::from_nanos(1);
        self.last_sent = self.moment(now.max(after));
        self.last_sent
    }

    /// The first event there is up to this moment; of two at once, what others have sent.
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
