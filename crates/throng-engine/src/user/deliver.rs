//! A user's part of the ledger: the audiences it is in, what it sends to them, what it gets.

mod stamp;

use std::rc::Rc;
use std::time::Duration;

use throng_expression::{Scope, Value};
use throng_program::{Audience, Begins, Content, Delivery, Mark, Message, Pick};
use throng_protocol::framed::Packet;
use throng_protocol::framed::declaration::Framing;

use super::State;
use crate::ledger::{Id, MemberId, mix};
use crate::looked::Looked;
use crate::memory::Memory;
use crate::scope::{UserScope, scope};

/// By row of the ledger: what the user is in its audience, while it is online.
pub(super) type Memberships = Option<Box<Vec<Option<Membership>>>>;

#[derive(Clone, Copy)]
pub(super) struct Membership {
    /// The key of the audience.
    group: u64,
    member: MemberId,
}

/// A delivery that begins with a disconnect.
pub(super) struct Departure {
    row: u16,
    /// The key of its audience.
    group: u64,
    id: Id,
}

/// The audience of everyone.
const EVERYONE: u64 = 0;

impl State {
    /// The user is online on a line, or a value that audiences look at has changed: from now on it
    /// is in the audiences that it belongs to, and in no others.
    pub(super) fn join_audiences(&mut self, line: u8) {
        let shard = Rc::clone(&self.shard);
        let rows = &shard.prepared.program.deliveries;
        for (row, delivery) in rows.iter().enumerate() {
            if !self.link_in(&shard, line).receives[row] {
                continue;
            }
            let is_in = self.membership(row);
            let group = self.group_of(delivery, false);
            if is_in.map(|is_in| is_in.group) == group {
                continue;
            }
            let ledger = &mut shard.ledgers.borrow_mut()[row];
            if let Some(left) = is_in {
                ledger.leave(left.member, self.now);
            }
            let joined = group
                .map(|group| Membership { group, member: ledger.join(group, self.id, self.now) });
            let all = self.memberships.get_or_insert_with(|| Box::new(vec![None; rows.len()]));
            all[row] = joined;
        }
    }

    /// Saved values were written: if audiences look at one of them, the user is in the audiences
    /// of what it is now.
    #[inline]
    pub(super) fn follow_audiences(&mut self) {
        let has_moved = |memory: &mut Box<Memory>| std::mem::take(&mut memory.has_moved);
        if !self.memory.as_mut().is_some_and(has_moved) {
            return;
        }
        for line in 0..self.lines.count() {
            if self.is_online_on(line) {
                self.join_audiences(line);
            }
        }
    }

    fn membership(&self, row: usize) -> Option<Membership> {
        self.memberships.as_ref()?.get(row).copied().flatten()
    }

    pub(super) fn leave_audiences(&mut self, line: u8) {
        let shard = Rc::clone(&self.shard);
        let receives = &self.link_in(&shard, line).receives;
        let Some(memberships) = &mut self.memberships else { return };
        let mut ledgers = shard.ledgers.borrow_mut();
        let all = memberships.iter_mut().zip(receives).zip(ledgers.iter_mut());
        for ((member, _), ledger) in all.filter(|((_, receives), _)| **receives) {
            if let Some(left) = member.take() {
                ledger.leave(left.member, self.now);
            }
        }
        if memberships.iter().all(Option::is_none) {
            self.memberships = None;
        }
    }

    /// The deliveries that begin as the user goes offline on a line, with what its values say now:
    /// it is in no audience any more when they are entered.
    pub(super) fn departures(&mut self, line: u8) -> Vec<Departure> {
        let shard = Rc::clone(&self.shard);
        let rows = &shard.prepared.program.deliveries;
        // At the end of the load all users leave, and nobody is left who could be told.
        if rows.is_empty() || shard.stopping.get() {
            return Vec::new();
        }
        let mut all = Vec::new();
        for (row, delivery) in (0..).zip(rows) {
            let Begins::Disconnect { session, id } = &delivery.begins else { continue };
            let is_of = session.is_none_or(|session| session == self.session);
            if !is_of || !self.link_in(&shard, line).speaks[usize::from(row)] {
                continue;
            }
            let value = id.evaluate(&mut scope!(self, &shard));
            match value {
                Ok(value) => {
                    let group = self.group_of(delivery, true);
                    all.extend(group.map(|group| Departure { row, group, id: Id::of(value) }));
                }
                Err(fault) => self.sent_without_id(row, fault.0.english().as_bytes()),
            }
        }
        all
    }

    pub(super) fn enter_departures(&self, departures: Vec<Departure>) {
        for Departure { row, group, id } in departures {
            let ledger = &mut self.shard.ledgers.borrow_mut()[usize::from(row)];
            ledger.sent(id, group, (self.id, None), self.now);
        }
    }

    /// Which audience the user is in, or sends to. None where an expression has no value: that is
    /// told as a line of the record.
    fn group_of(&mut self, delivery: &Delivery, sends: bool) -> Option<u64> {
        let expression = match &delivery.audience {
            Audience::Everyone => return Some(EVERYONE),
            Audience::Same(same) => same,
            Audience::To { to, .. } if sends => to,
            Audience::To { is, .. } => is,
        };
        let shard = Rc::clone(&self.shard);
        let mut scope = scope!(self, &shard);
        match expression.evaluate(&mut scope) {
            Ok(value) => Some(mix::of_value(&value)),
            // It joins an audience when the value is saved.
            Err(_)
                if !sends
                    && expression.slots().needed.iter().any(|slot| is_unsaved(&scope, *slot)) =>
            {
                None
            }
            Err(fault) => {
                let name = &shard.prepared.program.step(delivery.step).name;
                let text = say!("audience of `{name}`: {}", fault.0);
                shard.log(self.now, self.id, text.english().as_bytes());
                None
            }
        }
    }

    /// A message of the ledger is on its way. What was sent lies in the shard's buffer still,
    /// unless it is the same for all users.
    pub(super) fn enter_sent_message(
        &mut self,
        line: u8,
        row: u16,
        message: &Message,
    ) -> Option<(u16, u64)> {
        let shard = Rc::clone(&self.shard);
        let buffer = shard.content_buffer.borrow();
        let mut decoded = shard.decoded_sent.borrow_mut();
        let protocol = &self.link_in(&shard, line).protocol;
        match &message.content {
            Content::Proto(message) => {
                let mut looked = Looked::new(None, &buffer, Duration::ZERO);
                looked.proto = shard.prepared.proto(message.template.message());
                self.enter_sent(row, &looked)
            }
            Content::Declared(declared) => {
                let protocol = protocol.as_ref()?;
                let message = declared.template.message;
                // A delimiter is not part of the packet that it ends.
                let sent = match &protocol.declaration().framing {
                    Framing::Delimiter { bytes, .. } => buffer.strip_suffix(&*bytes.value),
                    _ => None,
                };
                let sent = sent.unwrap_or(&buffer);
                if protocol.decode_as(message, sent, &mut decoded).is_err() {
                    self.sent_without_id(row, sent);
                    return None;
                }
                let mut looked = Looked::new(None, sent, Duration::ZERO);
                looked.declared = Some((protocol, &decoded, message));
                self.enter_sent(row, &looked)
            }
            content => {
                let sent = content.text()?.as_literal().unwrap_or(&buffer);
                self.enter_sent(row, &Looked::new(None, sent, Duration::ZERO))
            }
        }
    }

    /// Something of the ledger is on its way.
    pub(super) fn enter_sent(&mut self, row: u16, looked: &Looked<'_>) -> Option<(u16, u64)> {
        let shard = Rc::clone(&self.shard);
        let delivery = shard.prepared.program.deliveries.get(usize::from(row))?;
        let Begins::Sent { id, .. } = &delivery.begins else { return None };
        let Some(id) = id_in(id, looked) else {
            self.sent_without_id(row, looked.document.bytes());
            return None;
        };
        let group = self.group_of(delivery, true)?;
        let own = self.membership(usize::from(row)).map(|own| own.member);
        let sender = (self.id, own);
        let key = id.key;
        shard.ledgers.borrow_mut()[usize::from(row)].sent(id, group, sender, self.now);
        Some((row, key))
    }

    fn sent_without_id(&self, row: u16, content: &[u8]) {
        if let Some(ledger) = self.shard.ledgers.borrow_mut().get_mut(usize::from(row)) {
            ledger.sent_without_id(self.id, content);
        }
    }

    /// What was sent is not to be expected anywhere: its step failed.
    pub(super) fn withdraw_sent(&self, row: u16, id: u64) {
        if let Some(ledger) = self.shard.ledgers.borrow_mut().get_mut(usize::from(row)) {
            ledger.withdrawn(id, self.now);
        }
    }

    /// A message came that may be one of the ledger.
    pub(super) fn enter_received(&mut self, line: u8, looked: &Looked<'_>, packet: Option<Packet>) {
        let shard = Rc::clone(&self.shard);
        let link = self.link_in(&shard, line);
        for (row, delivery) in shard.prepared.program.deliveries.iter().enumerate() {
            let kinds = &delivery.received.messages;
            let is_kind =
                kinds.is_empty() || packet.is_some_and(|packet| kinds.contains(&packet.message));
            if !is_kind || !link.receives.get(row).copied().unwrap_or(false) {
                continue;
            }
            let mut scope = scope!(self, &shard);
            let which = &shard.prepared.deliveries[row];
            if !which.fits(&delivery.received.checks, looked, &mut scope) {
                continue;
            }
            let Some(id) = id_in(&delivery.received_id, looked) else {
                let content = looked.document.bytes();
                let ledger = &mut shard.ledgers.borrow_mut()[row];
                ledger.received_without_id(self.id, content);
                if looked.document.is_joined_json() {
                    ledger.received_joined();
                }
                continue;
            };
            if !link.has_records() && is_joined(&delivery.received_id, looked) {
                // The first is entered; what else came in the message is not known.
                shard.ledgers.borrow_mut()[row].received_joined();
            }
            let stamp = delivery.stamp.as_ref().and_then(|mark| marked(mark, looked));
            let now_unix = shard.unix_nanos(self.now);
            let latency = stamp
                .and_then(|stamp| stamp::nanos_of(&stamp))
                .and_then(|stamp| latency_since(stamp, now_unix));
            let member = self.membership(row).map(|own| own.member);
            shard.ledgers.borrow_mut()[row].received(member, &id, latency, self.now);
        }
    }
}

fn is_unsaved(scope: &UserScope<'_>, slot: u16) -> bool {
    scope.slot(slot).is_null()
}

fn id_in(mark: &Mark, looked: &Looked<'_>) -> Option<Id> {
    marked(mark, looked).map(Id::of)
}

/// Whether a message has more records than one, as far as its id tells.
fn is_joined(mark: &Mark, looked: &Looked<'_>) -> bool {
    match (&mark.prefix, &mark.pick) {
        (None, Pick::Pattern(pattern)) => pattern.is_in_several_records(looked.document.bytes()),
        _ => false,
    }
}

fn marked(mark: &Mark, looked: &Looked<'_>) -> Option<Value> {
    let Some(prefix) = &mark.prefix else { return looked.simple(&mark.pick) };
    let behind = looked.document.bytes().strip_prefix(&**prefix)?;
    let begin = memchr::memchr2(b'[', b'{', behind)?;
    Looked::new(None, &behind[begin..], Duration::ZERO).simple(&mark.pick)
}

/// Stamps that are older, or so far ahead, are none: the clock of who stamps is another one.
const STAMP_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const STAMP_AHEAD_MAX: Duration = Duration::from_secs(1);

fn latency_since(stamp: u64, now: u64) -> Option<Duration> {
    let ahead = Duration::from_nanos(stamp.saturating_sub(now));
    let latency = Duration::from_nanos(now.saturating_sub(stamp));
    (ahead <= STAMP_AHEAD_MAX && latency <= STAMP_AGE_MAX).then_some(latency)
}
