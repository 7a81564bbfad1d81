//! The messages that members of one shard are expected to get: which members got them, and what is
//! counted when they are settled. All input is in order of time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use throng_base::units::{format_count, format_duration};
use throng_base::{Time, UserId};
use throng_metrics::{DeliveryCounter, DeliveryInterval};

use super::bits::Bits;
use super::exchange::{MessageKey, Sent};
use super::groups::{Groups, Member, MemberId};
use super::id::{Texts, shown};
use super::mix::{Mixed, mixed};
use super::remark::Remarks;
use super::{Fresh, Rules};

/// Messages of one sender that are checked for reordering.
const CHAIN_MAX: usize = 256;
const NONE: u32 = u32::MAX;
/// Users that are named as having lost a message.
const SHOWN_USERS_MAX: usize = 3;

/// Memory of a watched message besides its bits: the entry, its ID in two tables, its sender.
const ENTRY_BYTES: usize = size_of::<Entry>() + 32;
/// Memory of a message of which only the ID is remembered.
const ID_BYTES: usize = 32 + size_of::<Queued>();

#[derive(Debug)]
pub(super) struct Book {
    rules: Rules,
    entries: Vec<Entry>,
    free: Vec<u32>,
    ids: HashMap<u64, Known, Mixed>,
    /// By sender and group: its last message that is not settled.
    last: HashMap<u64, u32, Mixed>,
    /// Messages in sending order; this many at the front are settled.
    queue: VecDeque<Queued>,
    settled: usize,
    /// Members that left, until no message needs them.
    left: VecDeque<(Time, MemberId)>,
    /// The number of the next message.
    number: u64,
    heap_bytes: usize,
    /// Receipts in this period were not processed.
    blind: Option<(Time, Time)>,
    /// Until then, an unknown ID may be one that was not remembered.
    dim_until: Option<Time>,
    pub(super) interval: DeliveryInterval,
    /// Messages that were not watched, and are not counted yet.
    pub(super) unwatched: Vec<MessageKey>,
    /// The IDs of the last receipts.
    pub(super) texts: Texts,
    pub(super) remarks: Remarks,
}

/// A message with an audience on this shard, from its sending to its settlement; if a member lost
/// it, until its ID is forgotten.
#[derive(Debug)]
struct Entry {
    id: u64,
    /// The ID as in the message, if it is not just a number.
    text: Option<Arc<str>>,
    at: Time,
    /// The shard of its sender.
    home: u32,
    sender: UserId,
    number: u64,
    /// Members that have not got it.
    waiting: Bits,
    group: u32,
    expected: u32,
    late: u32,
    /// Next message of the same sender in the same group.
    next: u32,
    previous: u32,
    /// The index of the sender, if it must not get its own messages.
    without: u32,
    settled: bool,
    /// A member got a later message of the sender before this one.
    overtaken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    at: Time,
    id: u64,
    number: u64,
    /// Its sender is on this shard, which counts what is sent.
    home: bool,
}

/// What is known about an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Entry(u32),
    /// All present members have got it. The number and the group of the message, in one word.
    Complete(u64),
    /// It has no receiver on this shard.
    Nobody(Short),
    Withdrawn(Short),
    Unwatched(Short),
}

/// The lower half of a message's number, enough to distinguish two messages with the same ID.
type Short = u32;

const GROUP_BITS: u32 = 24;

impl Known {
    fn is_of(self, number: u64, entries: &[Entry]) -> bool {
        match self {
            Known::Entry(slot) => entries[slot as usize].number == number,
            Known::Complete(word) => word >> GROUP_BITS == number,
            Known::Nobody(short) | Known::Withdrawn(short) | Known::Unwatched(short) => {
                short == number as Short
            }
        }
    }
}

impl Book {
    pub(super) fn new(rules: Rules) -> Book {
        Book {
            rules,
            entries: Vec::new(),
            free: Vec::new(),
            ids: HashMap::default(),
            last: HashMap::default(),
            queue: VecDeque::new(),
            settled: 0,
            left: VecDeque::new(),
            number: 0,
            heap_bytes: 0,
            blind: None,
            dim_until: None,
            interval: DeliveryInterval::default(),
            unwatched: Vec::new(),
            texts: Texts::default(),
            remarks: Remarks::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let watched = self.entries.len() - self.free.len();
        watched * ENTRY_BYTES + self.heap_bytes + self.queue.len() * ID_BYTES
    }

    pub(super) fn entered(&mut self, groups: &mut Groups, id: MemberId, user: UserId) {
        groups.enter(id, Member { user, joined: self.number });
    }

    pub(super) fn exited(&mut self, groups: &mut Groups, id: MemberId, at: Time) {
        groups.exit(id);
        self.left.push_back((at, id));
    }

    /// A message was sent. Its audience is the members present now.
    pub(super) fn sent(&mut self, groups: &Groups, sent: &Sent, home: bool) {
        let number = self.number;
        self.number += 1;
        if self.bytes() + ID_BYTES > self.rules.bytes_max {
            // Its own shard counts it even without memory for it.
            self.interval.sent += u64::from(home);
            self.unwatched.push(MessageKey { at: sent.at, home: sent.home });
            self.forgetting(sent.at);
            return;
        }
        self.queue.push_back(Queued { at: sent.at, id: sent.id, number, home });
        let known = self.watch(groups, sent, home, number);
        self.ids.insert(sent.id, known);
    }

    fn watch(&mut self, groups: &Groups, sent: &Sent, home: bool, number: u64) -> Known {
        let used_again = self.ids.get(&sent.id).copied();
        if let Some(known) = used_again.filter(|known| !matches!(known, Known::Withdrawn(_))) {
            // Two messages with one ID cannot be distinguished.
            self.unwatched.push(MessageKey { at: sent.at, home: sent.home });
            if let Known::Entry(slot) = known {
                let before = &self.entries[slot as usize];
                let told = MessageKey { at: before.at, home: before.home };
                self.unwatched.extend((!before.settled).then_some(told));
                self.drop_entry(slot);
            }
            return Known::Unwatched(number as Short);
        }
        let audience =
            groups.present(sent.group).map(|(group, present)| (group, present.trimmed()));
        let Some((group, mut waiting)) = audience else {
            return Known::Nobody(number as Short);
        };
        let own = sent.member.filter(|own| self.rules.without_sender && home && own.group == group);
        if let Some(own) = own {
            waiting.clear(own.index);
        }
        let expected = waiting.count();
        if expected == 0 {
            return Known::Nobody(number as Short);
        }
        let heap_bytes = waiting.heap_bytes() + text_bytes(sent.text.as_ref());
        let blind = self.blind.is_some_and(|(_, until)| sent.at <= until);
        if blind || self.bytes() + ENTRY_BYTES + heap_bytes > self.rules.bytes_max {
            self.unwatched.push(MessageKey { at: sent.at, home: sent.home });
            return Known::Unwatched(number as Short);
        }
        self.heap_bytes += heap_bytes;
        let entry = Entry {
            id: sent.id,
            text: sent.text.clone(),
            at: sent.at,
            home: sent.home,
            sender: sent.sender,
            number,
            waiting,
            group,
            expected,
            late: 0,
            next: NONE,
            previous: NONE,
            without: own.map_or(NONE, |own| own.index),
            settled: false,
            overtaken: false,
        };
        Known::Entry(self.add(entry))
    }

    fn add(&mut self, mut entry: Entry) -> u32 {
        let chain = chain(entry.sender, entry.group);
        let slot = self.free.last().copied().unwrap_or(self.entries.len() as u32);
        if let Some(previous) = self.last.insert(chain, slot) {
            self.entries[previous as usize].next = slot;
            entry.previous = previous;
        }
        match self.free.pop() {
            Some(free) => self.entries[free as usize] = entry,
            None => self.entries.push(entry),
        }
        slot
    }

    /// The step that sent it has failed: no user has to get it.
    pub(super) fn withdrawn(&mut self, id: u64) {
        let Some(&known) = self.ids.get(&id) else {
            return;
        };
        let number = match known {
            Known::Entry(slot) if self.entries[slot as usize].settled => return,
            Known::Entry(slot) => {
                let number = self.entries[slot as usize].number;
                self.drop_entry(slot);
                number as Short
            }
            // A settled message is unchanged.
            Known::Complete(_) | Known::Withdrawn(_) => return,
            Known::Nobody(number) | Known::Unwatched(number) => number,
        };
        self.ids.insert(id, Known::Withdrawn(number));
        // It is not counted as sent when it is due.
        let lower = u64::from(self.number.wrapping_sub(u64::from(number)) as Short);
        let number = self.number.wrapping_sub(lower);
        let place = self.queue.partition_point(|queued| queued.number < number);
        if let Some(queued) = self.queue.get_mut(place).filter(|queued| queued.number == number) {
            queued.home = false;
        }
    }

    /// A message reached a member, at this time and with this latency.
    #[inline]
    pub(super) fn received(
        &mut self,
        groups: &Groups,
        (member, id): (MemberId, u64),
        at: Time,
        latency: Option<Duration>,
    ) -> Option<Fresh> {
        let slot = match self.ids.get(&id) {
            Some(&Known::Entry(slot)) => slot,
            other => {
                let other = other.copied();
                self.unmet(groups, (member, id), at, latency, other);
                return None;
            }
        };
        let entry = &mut self.entries[slot as usize];
        let meant = entry.group == member.group;
        if meant && entry.waiting.clear(member.index) {
            if entry.settled {
                self.interval.after_lost += 1;
                let taken = at.since(entry.at);
                let text = entry.text.as_ref();
                let said = |user| {
                    let (id, taken) = (shown(id, text), format_duration(taken));
                    say!(
                        "message {id} reached user {user} late ({taken} after it was sent); it \
                         was already counted as lost"
                    )
                };
                self.remarks.note(DeliveryCounter::AfterLost, said, groups, member);
                return None;
            }
            let taken = latency.unwrap_or_else(|| at.since(entry.at));
            entry.late += u32::from(taken > self.rules.late_after);
            if entry.overtaken || entry.previous != NONE {
                self.order(groups, slot, member);
            }
            return Some(Fresh { latency });
        }
        let number = entry.number;
        let place = match (meant, entry.without == member.index) {
            (true, false) => Where::Audience,
            _ => Where::Elsewhere,
        };
        self.again(groups, (member, place), id, number);
        None
    }

    /// A receipt by a member that already has the message, or that does not have to get it.
    fn again(&mut self, groups: &Groups, (member, place): (MemberId, Where), id: u64, number: u64) {
        // A user that is not online yet, or was not when it was sent, may get it: the target adds
        // users before they know it. So may a user that was in another audience then and has moved.
        let Some(present) = groups.member(member) else { return };
        if present.joined > number {
            return;
        }
        if place == Where::Elsewhere {
            self.interval.stray += 1;
            let said = |user| {
                let id = self.texts.shown(id);
                say!("message {id} reached user {user}, which is not in its audience")
            };
            self.remarks.note(DeliveryCounter::Stray, said, groups, member);
        } else {
            self.interval.twice += 1;
            let said = |user| {
                let id = self.texts.shown(id);
                say!("message {id} was delivered to user {user} again")
            };
            self.remarks.note(DeliveryCounter::Twice, said, groups, member);
        }
    }

    /// A receipt of a message that no member waits for.
    #[cold]
    fn unmet(
        &mut self,
        groups: &Groups,
        (member, id): (MemberId, u64),
        at: Time,
        latency: Option<Duration>,
        known: Option<Known>,
    ) {
        match known {
            Some(Known::Complete(word)) => {
                let group = (word & ((1 << GROUP_BITS) - 1)) as u32;
                let place = if group == member.group { Where::Audience } else { Where::Elsewhere };
                self.again(groups, (member, place), id, word >> GROUP_BITS);
            }
            // Members present when it was sent were in another group: this one was empty.
            Some(Known::Nobody(number)) => {
                let lower = u64::from(self.number.wrapping_sub(u64::from(number)) as Short);
                let number = self.number.wrapping_sub(lower);
                self.again(groups, (member, Where::Elsewhere), id, number);
            }
            Some(Known::Withdrawn(_) | Known::Unwatched(_) | Known::Entry(_)) => {}
            None if self.dim_until.is_some_and(|until| at <= until) => {}
            // By its timestamp it is so old that its ID is not remembered.
            None if latency.is_some_and(|latency| latency > self.rules.lost_after) => {
                self.interval.after_lost += 1;
            }
            None if self.rules.shares => {}
            None => {
                self.interval.foreign += 1;
                let said = |user| {
                    let id = self.texts.shown(id);
                    say!("message {id} reached user {user}, but no user of this run sent it")
                };
                self.remarks.note(DeliveryCounter::Foreign, said, groups, member);
            }
        }
    }

    /// Checks whether a message arrived after a later one of its sender, and whether it has
    /// overtaken others itself: those are marked, so that the search stops there.
    fn order(&mut self, groups: &Groups, slot: u32, member: MemberId) {
        let entry = &self.entries[slot as usize];
        let (mut next, mut previous) = (entry.next, entry.previous);
        if entry.overtaken {
            for _ in 0..CHAIN_MAX {
                let Some(later) = self.entries.get(next as usize) else {
                    break;
                };
                if !later.waiting.has(member.index) {
                    self.interval.out_of_order += 1;
                    let said = |user| {
                        let [id, before] =
                            [entry, later].map(|one| shown(one.id, one.text.as_ref()));
                        say!(
                            "message {id} reached user {user} after {before}, a later message \
                             from the same sender"
                        )
                    };
                    self.remarks.note(DeliveryCounter::OutOfOrder, said, groups, member);
                    break;
                }
                next = later.next;
            }
        }
        for _ in 0..CHAIN_MAX {
            match self.entries.get_mut(previous as usize) {
                Some(earlier) if earlier.waiting.has(member.index) => {
                    earlier.overtaken = true;
                    previous = earlier.previous;
                }
                _ => break,
            }
        }
    }

    /// Settles what was due before this time, and forgets what is long over.
    #[inline]
    pub(super) fn settle_before(&mut self, groups: &mut Groups, now: Time) {
        while let Some(&queued) = self.queue.get(self.settled) {
            if queued.at + self.rules.lost_after >= now {
                break;
            }
            self.settled += 1;
            self.settle(groups, queued, false);
        }
        while let Some(&queued) = self.queue.front() {
            if queued.at + self.rules.lost_after + self.rules.lost_after >= now {
                break;
            }
            self.queue.pop_front();
            self.settled -= 1;
            let known = self.ids.get(&queued.id).copied();
            if let Some(known) = known.filter(|known| known.is_of(queued.number, &self.entries)) {
                if let Known::Entry(slot) = known {
                    self.drop_entry(slot);
                }
                self.ids.remove(&queued.id);
            }
        }
    }

    /// Frees the places of members that left so long ago that no message needs them.
    pub(super) fn release_before(&mut self, groups: &mut Groups, now: Time) {
        while let Some(&(left, id)) = self.left.front() {
            if left + self.rules.lost_after >= now {
                break;
            }
            self.left.pop_front();
            groups.release(id);
        }
    }

    /// The end: messages that are not due become undetermined.
    pub(super) fn finish(&mut self, groups: &Groups) {
        while let Some(&queued) = self.queue.get(self.settled) {
            self.settled += 1;
            self.settle(groups, queued, true);
        }
    }

    fn settle(&mut self, groups: &Groups, queued: Queued, excusing: bool) {
        let known = self.ids.get(&queued.id).copied();
        self.interval.sent += u64::from(queued.home);
        let own = known.filter(|known| known.is_of(queued.number, &self.entries));
        let Some(Known::Entry(slot)) = own else {
            return;
        };
        self.unlink(slot);
        let entry = &mut self.entries[slot as usize];
        let due = entry.at + self.rules.lost_after;
        let blind = self.blind.is_some_and(|(from, until)| from <= due && entry.at <= until);
        if blind {
            self.unwatched.push(MessageKey { at: entry.at, home: entry.home });
            self.ids.insert(queued.id, Known::Unwatched(queued.number as Short));
            self.drop_entry(slot);
            return;
        }
        let missing = u64::from(entry.waiting.count());
        let lost = match groups.present_in(entry.group) {
            Some(present) if !excusing => {
                entry.waiting.keep(present);
                u64::from(entry.waiting.count())
            }
            _ => 0,
        };
        let expected = u64::from(entry.expected);
        self.interval.expected += expected;
        self.interval.delivered += expected - missing;
        self.interval.lost += lost;
        self.interval.excused += missing - lost;
        self.interval.late += u64::from(entry.late);
        entry.settled = true;
        if lost > 0 {
            self.remark_lost(groups, slot, lost);
        } else if entry.without == NONE {
            let word = entry.number << GROUP_BITS | u64::from(entry.group);
            self.ids.insert(queued.id, Known::Complete(word));
            self.drop_entry(slot);
        }
    }

    fn remark_lost(&mut self, groups: &Groups, slot: u32, lost: u64) {
        let entry = &self.entries[slot as usize];
        self.remarks.note_once(DeliveryCounter::Lost, || {
            let members = entry.waiting.all().take(SHOWN_USERS_MAX);
            let ids = members.map(|index| MemberId { group: entry.group, index });
            let users = ids.filter_map(|id| Some(groups.member(id)?.user.to_string()));
            let users = users.collect::<Vec<_>>().join(", ");
            let (id, sender) = (shown(entry.id, entry.text.as_ref()), entry.sender);
            let at = format_duration(entry.at.since(Time::ZERO));
            let [lost, expected] = [lost, u64::from(entry.expected)].map(format_count);
            say!(
                "message {id} sent by user {sender} at {at} did not reach {lost} of {expected} \
                 receivers on one shard: users {users}"
            )
        });
    }

    /// Unlinks it from the list of its sender's messages.
    fn unlink(&mut self, slot: u32) {
        let entry = &mut self.entries[slot as usize];
        if entry.settled {
            return;
        }
        let (previous, next) = (entry.previous, entry.next);
        (entry.previous, entry.next) = (NONE, NONE);
        let chain = chain(entry.sender, entry.group);
        if let Some(earlier) = self.entries.get_mut(previous as usize) {
            earlier.next = next;
        }
        match self.entries.get_mut(next as usize) {
            Some(later) => later.previous = previous,
            None if previous != NONE => {
                self.last.insert(chain, previous);
            }
            None => {
                // If it was unlinked before, another message may be there.
                if self.last.get(&chain) == Some(&slot) {
                    self.last.remove(&chain);
                }
            }
        }
    }

    fn drop_entry(&mut self, slot: u32) {
        self.unlink(slot);
        let entry = &mut self.entries[slot as usize];
        self.heap_bytes -= entry.waiting.heap_bytes() + text_bytes(entry.text.as_ref());
        entry.text = None;
        entry.waiting = Bits::default();
        // A free entry belongs to no message.
        entry.number = u64::MAX;
        entry.settled = true;
        self.free.push(slot);
    }

    /// A receipt was not processed.
    pub(super) fn blinded(&mut self, at: Time, worked_until: Time) {
        let from = self.blind.filter(|(_, until)| *until + self.rules.lost_after > worked_until);
        let from = from.map_or(at, |(from, _)| from);
        self.blind = Some((from, at));
    }

    /// A message of this time is not remembered.
    pub(super) fn forgetting(&mut self, at: Time) {
        let until = at + self.rules.lost_after + self.rules.lost_after;
        self.dim_until = self.dim_until.max(Some(until));
    }
}

/// Memory of an ID's text, which all shards of a run share.
fn text_bytes(text: Option<&Arc<str>>) -> usize {
    text.map_or(0, |text| text.len() + 2 * size_of::<usize>())
}

fn chain(sender: UserId, group: u32) -> u64 {
    mixed(sender.0 ^ u64::from(group) << 40)
}

/// Relation of a receiver to a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// A member of the group that it was sent to.
    Audience,
    /// A member of another group, or a sender that must not get its own messages.
    Elsewhere,
}
