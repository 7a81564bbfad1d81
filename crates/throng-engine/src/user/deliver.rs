//! A user's part of the ledger: the audiences it is in, the messages it sends to them, and those it
//! receives.

mod stamp;

use std::rc::Rc;
use std::time::Duration;

use throng_base::{Time, UserId};
use throng_expression::{Scope, Value};
use throng_program::{Audience, Begins, Content, Delivery, Extractor, Mark, Message};
use throng_protocol::framed::Packet;
use throng_protocol::framed::declaration::Framing;

use super::State;
use crate::ledger::{Id, MemberId, mix};
use crate::looked::Looked;
use crate::prepared::LinkPlan;
use crate::scope::memory::Memory;
use crate::scope::{UserScope, scope};
use crate::shard::Lane;

/// The audiences that a user is in, by row of the ledger; none while it is offline.
// Boxed, because few of a million users are in one.
#[allow(clippy::box_collection)]
#[derive(Default)]
pub(super) struct Audiences(Option<Box<Vec<Option<Membership>>>>);

#[derive(Clone, Copy)]
struct Membership {
    /// The key of the audience.
    group: u64,
    member: MemberId,
}

/// A delivery that a disconnect causes.
pub(super) struct Departure {
    row: u16,
    /// The key of its audience.
    group: u64,
    id: Id,
}

/// The audience of all users.
const EVERYONE: u64 = 0;

impl State {
    /// Saved values changed: if audiences depend on one of them, moves the user to the audiences of
    /// its new values.
    #[inline]
    pub(super) fn follow_audiences(&mut self) {
        let has_moved = |memory: &mut Box<Memory>| std::mem::take(&mut memory.has_moved);
        if !self.memory.as_mut().is_some_and(has_moved) {
            return;
        }
        for line in 0..self.lines.count() {
            if self.lines.get(line).is_online() {
                self.join_audiences(line);
            }
        }
    }

    pub(super) fn join_audiences(&mut self, line: u8) {
        let shard = Rc::clone(&self.shard);
        let link = self.link_in(&shard, line);
        self.audiences.join(link, &mut scope!(self, &shard));
    }
}

impl Audiences {
    /// The user is online over a link, or a value that audiences depend on has changed: moves it to
    /// exactly the audiences that it now belongs to.
    fn join(&mut self, link: &LinkPlan, scope: &mut UserScope<'_>) {
        let shard = scope.shard;
        let rows = &shard.prepared.program.deliveries;
        for (row, delivery) in rows.iter().enumerate() {
            if !link.receives[row] {
                continue;
            }
            let is_in = self.membership(row);
            let group = group_of(delivery, false, scope);
            if is_in.map(|is_in| is_in.group) == group {
                continue;
            }
            let ledger = &mut shard.ledgers.borrow_mut()[row];
            if let Some(left) = is_in {
                ledger.leave(left.member, scope.now);
            }
            let joined = group.map(|group| {
                let member = ledger.join(group, scope.id, scope.now);
                Membership { group, member }
            });
            let all = self.0.get_or_insert_with(|| Box::new(vec![None; rows.len()]));
            all[row] = joined;
        }
    }

    fn membership(&self, row: usize) -> Option<Membership> {
        self.0.as_ref()?.get(row).copied().flatten()
    }

    /// The user is offline on a link.
    pub(super) fn leave(&mut self, link: &LinkPlan, shard: &Lane, now: Time) {
        let Some(memberships) = &mut self.0 else { return };
        let mut ledgers = shard.ledgers.borrow_mut();
        let all = memberships.iter_mut().zip(&link.receives).zip(ledgers.iter_mut());
        for ((member, _), ledger) in all.filter(|((_, receives), _)| **receives) {
            if let Some(left) = member.take() {
                ledger.leave(left.member, now);
            }
        }
        if memberships.iter().all(Option::is_none) {
            self.0 = None;
        }
    }

    /// A message of the ledger was sent. Its bytes are still in the shard's buffer, unless all
    /// users send the same.
    pub(super) fn sent_message(
        &self,
        row: u16,
        (message, link): (&Message, &LinkPlan),
        scope: &mut UserScope<'_>,
    ) -> Option<(u16, u64)> {
        let shard = scope.shard;
        let buffer = shard.content_buffer.borrow();
        let mut decoded = shard.decoded_sent.borrow_mut();
        match &message.content {
            Content::Proto(message) => {
                let mut looked = Looked::new(None, &buffer, Duration::ZERO);
                looked.proto = shard.prepared.proto(message.template.message());
                self.sent(row, &looked, scope)
            }
            Content::Declared(declared) => {
                let protocol = link.protocol.as_ref()?;
                let message = declared.template.message;
                // A delimiter is not part of the packet that it ends.
                let sent = match &protocol.declaration().framing {
                    Framing::Delimiter { bytes, .. } => buffer.strip_suffix(&*bytes.value),
                    _ => None,
                };
                let sent = sent.unwrap_or(&buffer);
                if protocol.decode_as(message, sent, &mut decoded).is_err() {
                    sent_without_id(row, sent, scope);
                    return None;
                }
                let mut looked = Looked::new(None, sent, Duration::ZERO);
                looked.declared = Some((protocol, &decoded, message));
                self.sent(row, &looked, scope)
            }
            content => {
                let sent = content.text()?.as_literal().unwrap_or(&buffer);
                self.sent(row, &Looked::new(None, sent, Duration::ZERO), scope)
            }
        }
    }

    /// A delivery of the ledger was sent.
    pub(super) fn sent(
        &self,
        row: u16,
        looked: &Looked<'_>,
        scope: &mut UserScope<'_>,
    ) -> Option<(u16, u64)> {
        let shard = scope.shard;
        let delivery = shard.prepared.program.deliveries.get(usize::from(row))?;
        let Begins::Sent { id, .. } = &delivery.begins else { return None };
        let Some(id) = id_in(id, looked) else {
            sent_without_id(row, looked.document.bytes(), scope);
            return None;
        };
        let group = group_of(delivery, true, scope)?;
        let own = self.membership(usize::from(row)).map(|own| own.member);
        let key = id.key;
        let ledger = &mut shard.ledgers.borrow_mut()[usize::from(row)];
        ledger.sent(id, group, (scope.id, own), scope.now);
        Some((row, key))
    }

    /// A message arrived that may belong to the ledger.
    pub(super) fn received(
        &self,
        link: &LinkPlan,
        looked: &Looked<'_>,
        packet: Option<Packet>,
        scope: &mut UserScope<'_>,
    ) {
        let shard = scope.shard;
        for (row, delivery) in shard.prepared.program.deliveries.iter().enumerate() {
            let which = &shard.prepared.deliveries[row];
            if !link.receives.get(row).copied().unwrap_or(false)
                || !which.takes(&delivery.received, looked, packet, scope)
            {
                continue;
            }
            let ledger = &mut shard.ledgers.borrow_mut()[row];
            let Some(id) = id_in(&delivery.received_id, looked) else {
                ledger.received_without_id(scope.id, looked.document.bytes());
                if looked.document.is_joined_json() {
                    ledger.received_joined();
                }
                continue;
            };
            if !link.has_records() && is_joined(&delivery.received_id, looked) {
                // Only the first record is entered; the others in the message are unknown.
                ledger.received_joined();
            }
            let stamp = delivery.stamp.as_ref().and_then(|mark| marked(mark, looked));
            let now_unix = shard.unix_nanos(scope.now);
            let latency = stamp
                .and_then(|stamp| stamp::nanos_of(&stamp))
                .and_then(|stamp| latency_since(stamp, now_unix));
            let member = self.membership(row).map(|own| own.member);
            ledger.received(member, &id, latency, scope.now);
        }
    }
}

/// The deliveries that start as the user goes offline on a link, with its current values: when they
/// are entered, it is no longer in any audience.
pub(super) fn departures(link: &LinkPlan, scope: &mut UserScope<'_>) -> Vec<Departure> {
    let shard = scope.shard;
    let rows = &shard.prepared.program.deliveries;
    // At the end of the load all users leave, and no recipient is left.
    if rows.is_empty() || shard.stopping.get() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (row, delivery) in (0..).zip(rows) {
        let Begins::Disconnect { session, id } = &delivery.begins else { continue };
        let is_of = session.is_none_or(|session| session == scope.session);
        if !is_of || !link.speaks[usize::from(row)] {
            continue;
        }
        match id.evaluate(scope) {
            Ok(value) => {
                let group = group_of(delivery, true, scope);
                all.extend(group.map(|group| Departure { row, group, id: Id::of(value) }));
            }
            Err(fault) => sent_without_id(row, fault.0.english().as_bytes(), scope),
        }
    }
    all
}

impl Departure {
    pub(super) fn enter(self, shard: &Lane, user: UserId, now: Time) {
        let Departure { row, group, id } = self;
        shard.ledgers.borrow_mut()[usize::from(row)].sent(id, group, (user, None), now);
    }
}

/// The audience that the user is in or sends to. `None` if an expression has no value, which is
/// recorded as a message.
fn group_of(delivery: &Delivery, sends: bool, scope: &mut UserScope<'_>) -> Option<u64> {
    let expression = match &delivery.audience {
        Audience::Everyone => return Some(EVERYONE),
        Audience::Same(same) => same,
        Audience::To { to, .. } if sends => to,
        Audience::To { is, .. } => is,
    };
    match expression.evaluate(scope) {
        Ok(value) => Some(mix::of_value(&value)),
        // It joins an audience when the value is saved.
        Err(_)
            if !sends
                && expression.slots().needed.iter().any(|slot| scope.slot(*slot).is_null()) =>
        {
            None
        }
        Err(fault) => {
            let name = &scope.shard.prepared.program.step(delivery.step).name;
            let text = say!("audience of `{name}`: {}", fault.0);
            scope.shard.log(scope.now, scope.id, text.english().as_bytes());
            None
        }
    }
}

fn sent_without_id(row: u16, content: &[u8], scope: &UserScope<'_>) {
    if let Some(ledger) = scope.shard.ledgers.borrow_mut().get_mut(usize::from(row)) {
        ledger.sent_without_id(scope.id, content);
    }
}

/// Cancels a delivery whose step failed: no user expects it.
pub(super) fn withdraw((row, id): (u16, u64), shard: &Lane, now: Time) {
    if let Some(ledger) = shard.ledgers.borrow_mut().get_mut(usize::from(row)) {
        ledger.withdrawn(id, now);
    }
}

fn id_in(mark: &Mark, looked: &Looked<'_>) -> Option<Id> {
    marked(mark, looked).map(Id::of)
}

/// Whether a message has more than one record, as far as its ID shows.
fn is_joined(mark: &Mark, looked: &Looked<'_>) -> bool {
    match (&mark.prefix, &mark.extractor) {
        (None, Extractor::Pattern(pattern)) => {
            pattern.is_in_several_records(looked.document.bytes())
        }
        _ => false,
    }
}

fn marked(mark: &Mark, looked: &Looked<'_>) -> Option<Value> {
    let Some(prefix) = &mark.prefix else { return looked.simple(&mark.extractor) };
    let behind = looked.document.bytes().strip_prefix(&**prefix)?;
    let begin = memchr::memchr2(b'[', b'{', behind)?;
    Looked::new(None, &behind[begin..], Duration::ZERO).simple(&mark.extractor)
}

/// Older stamps, or stamps as far in the future, are ignored: the sender's clock differs.
const STAMP_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const STAMP_AHEAD_MAX: Duration = Duration::from_secs(1);

fn latency_since(stamp: u64, now: u64) -> Option<Duration> {
    let ahead = Duration::from_nanos(stamp.saturating_sub(now));
    let latency = Duration::from_nanos(now.saturating_sub(stamp));
    (ahead <= STAMP_AHEAD_MAX && latency <= STAMP_AGE_MAX).then_some(latency)
}
