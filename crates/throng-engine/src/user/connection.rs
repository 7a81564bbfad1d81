//! An open connection: its transport, the machine that reads from it, and the buffers for what is
//! not sent or not read yet. It does not know its user.

pub(super) mod backlog;
mod unsent;

use std::io;
use std::num::NonZeroU16;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use throng_base::{Said, StepId, Time, Told};
use throng_metrics::Cause;
use throng_program::Slow;
use throng_protocol::framed::MessageId;
use throng_protocol::machine::{Form, Machine};

use super::exchange::Exchange;
use crate::failure::Ended;
use crate::failure::Failure;
use crate::failure::Finding;
use crate::shard::budget::{Held, Purse};
use crate::transport::Transport;
use crate::transport::pace::{Allowance, Pace};
use crate::transport::pieces::Pieces;
use backlog::{Backlog, Waits};
use unsent::Unsent;

/// Most bytes that may wait for a target that does not read.
const UNSENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The mask of a frame. It need not be random: masks protect proxies from scripts in browsers (RFC
/// 6455, 10.3).
pub(super) fn mask_at(now: Time) -> [u8; 4] {
    (now.as_nanos() as u32).to_ne_bytes()
}

pub(super) struct Connection {
    pub(super) transport: Transport,
    pub(super) machine: Machine,
    /// Bytes that the socket has not taken yet.
    unsent: Option<Box<Unsent>>,
    /// Messages and bytes for a later step. Boxed, because few of a million connections ever have
    /// any.
    kept: Option<Box<Kept>>,
    /// TLS buffers bytes that the socket has not taken yet.
    unflushed: bool,
    /// When the last response was complete, or the last message of a stream arrived; zero before
    /// the first.
    pub(super) used: Time,
    /// When the socket was connected.
    pub(super) established: Time,
    /// When `life` started.
    pub(super) since: Time,
    pub(super) life: Life,
    /// The target has sent an unsolicited message.
    pub(super) heard: bool,
    /// The step that opened a stream, until the first message arrives: `used` is when the step was
    /// due.
    opened_by: OpenedBy,
    pub(super) target: u16,
    /// Set if the connection is slow on purpose.
    slow: Option<Box<Slowness>>,
    /// Share of the shard's memory budget, for all that the connection keeps.
    held: Held,
}

/// An optional step in two bytes, as every connection of a million has one.
#[derive(Clone, Copy, Default)]
struct OpenedBy(Option<NonZeroU16>);

impl OpenedBy {
    fn step(step: StepId) -> OpenedBy {
        OpenedBy(NonZeroU16::new(step.0.wrapping_add(1)))
    }

    fn take(&mut self) -> Option<StepId> {
        std::mem::take(self).0.map(|number| StepId(number.get() - 1))
    }
}

/// A message on a stream of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    Untimed,
    /// The first one, with the time since the step that opened the stream was due.
    First {
        step: StepId,
        time: Duration,
    },
    /// A later one, with the time since the one before.
    Behind(Duration),
}

/// Stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// HTTP: connections open and close, and do not make a user online.
    Passing,
    /// Open, and the login is not complete.
    Login,
    /// Open, and the login has failed.
    Stranger,
    Online,
    /// We have sent our close: whether the user had been online, and whether the target still has
    /// to answer.
    Ending {
        complete: bool,
        asked: bool,
    },
}

struct Slowness {
    pace: Pace,
    /// When more may be read or written, if only the rate limit blocks it.
    wake: Time,
}

/// Received, and not processed yet.
pub(super) enum Later {
    /// Bytes after the response to an upgrade; they are read next, whichever task listens.
    Surplus(Vec<u8>),
    /// Bytes of a raw stream that follow a reply; those before `from` are consumed.
    Bytes { bytes: Vec<u8>, from: usize },
    /// A message that no task has taken.
    Message { payload: Vec<u8>, is_reply: bool },
}

impl Waits for Later {
    fn bytes(&self) -> usize {
        match self {
            Later::Surplus(bytes) | Later::Bytes { bytes, .. } => bytes.len(),
            Later::Message { payload, .. } => payload.len(),
        }
    }
}

/// What a connection keeps for a later step.
#[derive(Default)]
struct Kept {
    later: Backlog<Later>,
    /// Messages that were dropped for lack of room.
    dropped: u64,
    /// Packets of an incomplete push: the message that starts it, and the bytes of all.
    push: Option<(MessageId, Vec<u8>)>,
}

/// How a connection ended that we did not end, and what steps that need it report.
pub(super) struct Loss {
    pub(super) failure: Failure,
    pub(super) ended: Ended,
    /// The target had closed it just as a request was sent over it again, and read none of it.
    pub(super) unheard: bool,
    /// The scenario expects this end.
    pub(super) is_wanted: bool,
    /// Messages that were dropped for lack of room.
    pub(super) dropped: u64,
    /// Messages that arrived before the end and that no step has taken yet.
    pub(super) left: Option<Left>,
}

/// Messages that outlive their connection: they arrived in the same read as its end.
pub(super) struct Left {
    pub(super) later: Backlog<Later>,
    /// How they are parsed.
    pub(super) form: Form,
    /// Their share of the shard's budget, returned when they are dropped.
    held: Held,
}

impl Left {
    /// Charges the budget for them; false if it is exhausted.
    pub(super) fn pay(&mut self, purse: &Rc<Purse>) -> bool {
        self.held.resize(self.later.bytes(), purse)
    }
}

/// The message for a close instead of a response.
pub(super) const NOTHING_ASKED: Said = say!("the connection was closed before any response");

impl Loss {
    pub(super) fn new(failure: Failure, ended: Ended) -> Loss {
        Loss { failure, ended, unheard: false, is_wanted: false, dropped: 0, left: None }
    }

    /// Failure of a waiting step: the target closed before its response, or in the middle of it.
    pub(super) fn failure_of(&self, exchange: &Exchange) -> Failure {
        let is_begun = exchange.bytes_in > 0 && self.failure.detail == NOTHING_ASKED;
        let detail = match is_begun {
            true => say!("the connection was closed in the middle of the response"),
            false => self.failure.detail.clone(),
        };
        Failure { detail, ..self.failure.clone() }
    }

    /// The cause for a task that did not wait for a response: then it is not an early close.
    pub(super) fn cause(&self) -> Cause {
        match self.failure.cause {
            Cause::ClosedEarly => Cause::Lost,
            other => other,
        }
    }

    /// The close code of the peer, or 0.
    pub(super) fn code(&self) -> u16 {
        if self.failure.cause.has_reason_code() { self.failure.status } else { 0 }
    }

    /// How it was lost, for such a task.
    pub(super) fn in_words(&self) -> Said {
        match self.ended {
            Ended::ByTarget if self.failure.detail == NOTHING_ASKED => {
                say!("the target closed the connection")
            }
            _ => self.failure.detail.clone(),
        }
    }
}

/// A write that the memory budget rejects.
fn no_memory((_, detail): Finding) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, Told(detail))
}

impl Connection {
    pub(super) fn new(
        transport: Transport,
        machine: Machine,
        target: u16,
        (established, now): (Time, Time),
    ) -> Connection {
        Connection {
            transport,
            machine,
            unsent: None,
            kept: None,
            unflushed: false,
            used: Time::ZERO,
            established,
            since: now,
            life: Life::Passing,
            heard: false,
            opened_by: OpenedBy::default(),
            target,
            slow: None,
            held: Held::default(),
        }
    }

    /// Sends its own bytes, then shared ones that all users send; keeps what the socket does not
    /// take immediately. Returns how many bytes it took.
    pub(super) fn send(
        &mut self,
        own: &[u8],
        shared: Option<&Arc<[u8]>>,
        (waiting, purse): (usize, &Rc<Purse>),
        now: Time,
        cx: &mut Context<'_>,
    ) -> io::Result<usize> {
        let pieces = Pieces { own, shared: shared.map_or(&[], |shared| shared) };
        if let Some(unsent) = &mut self.unsent {
            if self.transport.is_datagram() {
                // Datagrams are not joined.
                return Err(io::Error::other("the socket takes no more datagrams now"));
            }
            if unsent.left().len() + pieces.len() > UNSENT_BYTES_MAX {
                let text = say!(
                    "the target is not reading data: {UNSENT_BYTES_MAX} bytes are waiting to be \
                     sent"
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, Told(text)));
            }
            unsent.add(own, shared);
            return self.pay(waiting, purse).map(|()| 0).map_err(no_memory);
        }
        let (sent, written) = self.write(pieces, now, cx);
        written?;
        if sent < pieces.len() {
            self.unsent = Some(Box::new(Unsent::new(own, shared, sent)));
            self.pay(waiting, purse).map_err(no_memory)?;
        }
        Ok(sent)
    }

    /// Keeps bytes that are sent together with those that follow.
    pub(super) fn keep_unsent(
        &mut self,
        own: &[u8],
        (waiting, purse): (usize, &Rc<Purse>),
    ) -> io::Result<()> {
        self.unsent = Some(Box::new(Unsent::new(own, None, 0)));
        self.pay(waiting, purse).map_err(no_memory)
    }

    /// Keeps bytes that must be sent, however much waits already: they are few, and are written the
    /// next time the user listens.
    pub(super) fn keep_control(&mut self, own: &[u8]) {
        match &mut self.unsent {
            Some(unsent) => unsent.add(own, None),
            None => self.unsent = Some(Box::new(Unsent::new(own, None, 0))),
        }
    }

    /// The connection was opened for a step that was due then; the first message of a stream is
    /// timed from there.
    pub(super) fn is_opened(&mut self, step: StepId, due: Time) {
        if self.machine.is_stream() {
            (self.opened_by, self.used) = (OpenedBy::step(step), due);
        }
    }

    /// A message of a stream of messages arrived.
    pub(super) fn message_came(&mut self, now: Time) -> Came {
        if !self.machine.is_stream() {
            return Came::Untimed;
        }
        let before = std::mem::replace(&mut self.used, now);
        match (self.opened_by.take(), before) {
            (Some(step), due) => Came::First { step, time: now - due },
            (None, Time::ZERO) => Came::Untimed,
            (None, before) => Came::Behind(now - before),
        }
    }

    pub(super) fn is_sent(&self) -> bool {
        self.unsent.is_none() && !self.unflushed
    }

    /// Whether [`Connection::push`] has something to do.
    #[inline]
    pub(super) fn has_to_push(&self) -> bool {
        !self.is_sent() || self.is_slow() || self.held.bytes() > 0
    }

    /// Drops what was not sent.
    pub(super) fn forget_unsent(&mut self) {
        (self.unsent, self.unflushed) = (None, false);
    }

    /// True if the target's host has acknowledged nothing of the last request, which has this many
    /// bytes. With TLS it is longer on the wire.
    pub(super) fn took_nothing(&self, request_bytes: u64) -> bool {
        let unsent = self.unsent.as_ref().map_or(0, |unsent| unsent.left().len());
        let written = request_bytes.saturating_sub(unsent as u64);
        self.transport.unacknowledged().is_some_and(|bytes| bytes >= written)
    }

    /// Writes as much as the socket takes and the rate limit allows; returns how many bytes it
    /// took, also before an error.
    pub(super) fn write(
        &mut self,
        pieces: Pieces<'_>,
        now: Time,
        cx: &mut Context<'_>,
    ) -> (usize, io::Result<()>) {
        let mut sent = 0;
        while sent < pieces.len() {
            let mut most = pieces.len() - sent;
            if let Some(slow) = &mut self.slow {
                let allowance = slow.pace.may_write(now);
                if let Allowance::Wait(until) = allowance {
                    slow.wake = slow.wake.min(until).max(now);
                }
                match allowance.of(most) {
                    Some(_) if self.transport.is_datagram() => {}
                    Some(allowed) => most = allowed,
                    None => break,
                }
            }
            match self.transport.poll_write_pieces(cx, pieces.behind(sent).first(most)) {
                Poll::Ready(Err(error)) => return (sent, Err(error)),
                Poll::Ready(Ok(written)) => {
                    sent += written;
                    if let Some(slow) = &mut self.slow {
                        slow.pace.has_written(written);
                    }
                }
                Poll::Pending => break,
            }
        }
        let flushed = self.flush(cx).map(|unflushed| self.unflushed = unflushed);
        (sent, flushed)
    }

    /// Writes more of what the socket did not take before; returns how many bytes it took now.
    pub(super) fn push(
        &mut self,
        (waiting, purse): (usize, &Rc<Purse>),
        now: Time,
        cx: &mut Context<'_>,
    ) -> io::Result<u64> {
        let mut sent = 0;
        if let Some(slow) = &mut self.slow {
            slow.wake = Time::NEVER;
        }
        if let Some(mut unsent) = self.unsent.take() {
            let written;
            (sent, written) = self.write(unsent.left(), now, cx);
            written?;
            unsent.has_sent(sent);
            if unsent.left().len() > 0 {
                self.unsent = Some(unsent);
            }
        } else if self.unflushed {
            self.unflushed = self.flush(cx)?;
        }
        if self.held.bytes() > 0 {
            // It keeps less now, which the budget always allows.
            let _ = self.pay(waiting, purse);
        }
        Ok(sent as u64)
    }

    /// True while TLS buffers bytes that the socket does not take.
    fn flush(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        match self.transport.poll_flush(cx) {
            Poll::Pending => Ok(true),
            Poll::Ready(flushed) => flushed.map(|()| false),
        }
    }

    /// Limits the rate from now on.
    pub(super) fn slow_down(&mut self, slow: Slow, now: Time) {
        let pace = Pace::new(slow, now);
        self.slow = pace.map(|pace| Box::new(Slowness { pace: *pace, wake: Time::NEVER }));
    }

    pub(super) fn is_slow(&self) -> bool {
        self.slow.is_some()
    }

    /// When a connection that is slow on purpose may continue.
    pub(super) fn slow_until(&self) -> Time {
        self.slow.as_ref().map_or(Time::NEVER, |slow| slow.wake)
    }

    /// How many bytes may be read now into a buffer of this size; `None` until the rate limit
    /// allows more.
    pub(super) fn may_read(&mut self, now: Time, room: usize) -> Option<usize> {
        let Some(slow) = &mut self.slow else { return Some(room) };
        let allowance = slow.pace.may_read(now);
        if let Allowance::Wait(until) = allowance {
            slow.wake = slow.wake.min(until).max(now);
        }
        match allowance.of(room) {
            // A datagram is read whole.
            Some(_) if self.transport.is_datagram() => Some(room),
            most => most,
        }
    }

    pub(super) fn has_read(&mut self, bytes: usize) {
        if let Some(slow) = &mut self.slow {
            slow.pace.has_read(bytes);
        }
    }

    /// Bytes kept for reading and for sending.
    fn kept_bytes(&self) -> usize {
        let pushed = |kept: &Kept| kept.push.as_ref().map_or(0, |(_, packets)| packets.capacity());
        let kept = self.kept.as_ref().map_or(0, |kept| kept.later.bytes() + pushed(kept));
        let unsent = self.unsent.as_ref().map_or(0, |unsent| unsent.heap_bytes());
        self.machine.heap_bytes() + unsent + kept
    }

    /// Charges the budget for what the connection keeps and for messages that wait for its
    /// handlers; returns what is no longer kept.
    pub(super) fn pay(&mut self, waiting: usize, purse: &Rc<Purse>) -> Result<(), Finding> {
        let kept = self.kept_bytes() + waiting;
        match kept == self.held.bytes() || self.held.resize(kept, purse) {
            true => Ok(()),
            false => Err(purse.refusal()),
        }
    }

    /// Names the incomplete packet whose first bytes have arrived.
    pub(super) fn half_a_packet(&self) -> Option<Said> {
        let held = self.machine.half();
        (held > 0).then(|| {
            say!("the connection was closed in the middle of a packet, after {held} bytes")
        })
    }

    /// Takes the bytes that followed the response to an upgrade.
    pub(super) fn take_surplus(&mut self) -> Option<Vec<u8>> {
        let later = &mut self.kept.as_mut()?.later;
        match later.pop_if(|first| matches!(first, Later::Surplus(_)))? {
            Later::Surplus(bytes) => Some(bytes),
            Later::Bytes { .. } | Later::Message { .. } => None,
        }
    }

    pub(super) fn keeps_something(&self) -> bool {
        let keeps = |kept: &Kept| kept.push.is_none() || !kept.later.is_empty() || kept.dropped > 0;
        self.kept.as_deref().is_some_and(keeps)
    }

    /// The message that starts a push whose last packet has not arrived.
    pub(super) fn begun_push(&self) -> Option<MessageId> {
        self.kept.as_ref()?.push.as_ref().map(|(first, _)| *first)
    }

    /// Keeps the packets of an incomplete push.
    pub(super) fn keep_push(&mut self, first: MessageId, packets: Vec<u8>) {
        self.kept.get_or_insert_default().push = Some((first, packets));
    }

    /// Takes the packets of a push.
    pub(super) fn take_push(&mut self) -> Option<Vec<u8>> {
        let kept = self.kept.as_mut()?;
        let (_, packets) = kept.push.take()?;
        if kept.later.is_empty() && kept.dropped == 0 {
            self.kept = None;
        }
        Some(packets)
    }

    /// Takes the kept messages as the connection ends, if the budget has room for them.
    pub(super) fn take_left(&mut self, purse: &Rc<Purse>) -> Result<Option<Left>, Finding> {
        if self.kept.is_none() || matches!(self.machine, Machine::Bytes(_)) {
            return Ok(None);
        }
        let form = self.machine.form();
        // The share of the budget moves with the messages.
        let (later, held) = (self.take_kept(), std::mem::take(&mut self.held));
        let mut left = Left { later, form, held };
        match left.pay(purse) {
            true if left.later.is_empty() => Ok(None),
            true => Ok(Some(left)),
            false => {
                self.keep_all_again(left.later);
                Err(purse.refusal())
            }
        }
    }

    /// Takes all that is kept for a later step.
    pub(super) fn take_kept(&mut self) -> Backlog<Later> {
        let Some(kept) = &mut self.kept else { return Backlog::default() };
        let later = std::mem::take(&mut kept.later);
        if kept.dropped == 0 && kept.push.is_none() {
            self.kept = None;
        }
        later
    }

    /// Puts back what was taken and not used, before all that is kept.
    pub(super) fn keep_again(&mut self, first: Later) {
        self.kept.get_or_insert_default().later.push_first(first);
    }

    /// Puts back several.
    pub(super) fn keep_all_again(&mut self, first: Backlog<Later>) {
        let later = &mut self.kept.get_or_insert_default().later;
        *later = first.followed_by(std::mem::take(later));
    }

    /// Keeps a message for a later step. Without room, the oldest messages are dropped: they are
    /// the least likely to be expected. Returns how many.
    pub(super) fn keep_message(&mut self, payload: &[u8], is_reply: bool) -> u64 {
        let kept = self.kept.get_or_insert_default();
        let mut dropped = 0;
        while !kept.later.has_room(payload.len()) && kept.later.pop().is_some() {
            dropped += 1;
        }
        kept.dropped += dropped;
        kept.later.push(Later::Message { payload: payload.to_vec(), is_reply });
        dropped
    }

    /// How many messages were dropped that a step might have expected.
    pub(super) fn dropped(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.dropped)
    }
}
