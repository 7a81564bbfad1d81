//! Reads from a user's connections and routes what arrives to its task; passes on what a task has
//! left in the state for others.

mod beats;
mod dispatch;
mod ended;
mod running;
mod secure;
mod streamed;

use std::io;
use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
use std::task::{Context, Poll};

use dispatch::From;
use dispatch::answered::{answered, begun};
use streamed::answer_received;
use throng_protocol::machine::{Ends, Event, Input, Machine, Violation};

use super::agenda::waiting_bytes;
use super::connection::Later;
use super::connection::backlog::Backlog;
use super::exchange::answer::{Ended as Over, Reading};
use super::exchange::{Awaits, Exchange};
use super::task::{Doing, Task, Which, at};
use super::verb::messages::awaited;
use super::verb::stay;
use super::{Turn, User};
use crate::failure::Ended;
use crate::shard::Lane;
use crate::system::Received;
use crate::user::verb::messages;

impl User {
    /// Writes what waits and reads what has arrived, until nothing is left or the session can
    /// continue.
    pub(super) fn listen(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Turn {
        if self.state.agenda.is_some() {
            self.openings(shard, cx);
        }
        let mut turn = self.inbound(0, shard, cx).listen();
        for line in 1..self.state.lines.count() {
            if turn == Turn::Wait {
                turn = self.inbound(line, shard, cx).listen();
            }
        }
        turn
    }

    pub(super) fn inbound<'u, 'c>(
        &'u mut self,
        line: u8,
        shard: &'u Lane,
        cx: &'u mut Context<'c>,
    ) -> Inbound<'u, 'c> {
        Inbound { user: self, shard, line, cx }
    }

    /// The first task that matches: the session goes first.
    fn find(&self, is_its: impl Fn(&Task) -> bool) -> Option<Which> {
        if is_its(&self.session) {
            return Some(Which::Session);
        }
        self.state.agenda.as_ref()?.tasks.iter().position(is_its).map(Which::Other)
    }

    /// The task whose request waits for its response on this line.
    fn who_awaits_answer(&self, line: u8) -> Option<Which> {
        self.find(|task| task.exchange_on(line).is_some_and(|one| one.awaits.is_answer()))
    }

    fn exchange_of(&mut self, which: Which) -> Option<&mut Exchange> {
        let task = match which {
            Which::Session => &mut self.session,
            Which::Other(place) => self.state.agenda.as_mut()?.tasks.get_mut(place)?,
        };
        match &mut task.doing {
            Doing::Exchange(exchange) => Some(exchange),
            _ => None,
        }
    }
}

/// The receiving side of one line of a user: reads, and routes what it reads to its task.
pub(super) struct Inbound<'u, 'c> {
    user: &'u mut User,
    shard: &'u Lane,
    line: u8,
    cx: &'u mut Context<'c>,
}

impl<'u> Inbound<'u, '_> {
    fn listen(&mut self) -> Turn {
        let Some(connection) = self.user.state.lines.connection_mut(self.line) else {
            // Nothing more can arrive; a user that only waited for the end continues.
            return match self.user.session.doing {
                Doing::Closing if self.user.session.line == self.line => {
                    let until = self.user.session.deadline;
                    self.user.session(self.shard).closed_in_order(until)
                }
                _ => Turn::Wait,
            };
        };
        if let Some(bytes) = connection.take_surplus() {
            self.received(&bytes);
            return Turn::Again;
        }
        if connection.is_slow() {
            self.user.state.now = self.shard.clock.now();
        }
        if connection.has_to_push()
            && let Err(error) = self.user.state.outbound(self.line).push(self.cx)
        {
            self.unsendable(error);
            if self.user.who_awaits_answer(self.line).is_none() {
                return Turn::Again;
            }
        }
        if let Err(error) = self.user.state.outbound(self.line).drain(self.cx) {
            self.broken(&error);
            return Turn::Again;
        }
        if self.user.session.awaits(self.line, Awaits::Tls) {
            return self.secure_on();
        }
        if self.user.session.awaits(self.line, Awaits::Room)
            && self.user.state.lines.get(self.line).is_taken()
        {
            self.user.state.now = self.shard.clock.now();
            messages::sent(&mut self.user.session(self.shard));
            return Turn::Again;
        }
        if self.user.state.agenda.is_some() && self.user.state.lines.get(self.line).is_taken() {
            self.user.bodies_sent(self.shard, self.line, self.cx);
        }
        self.read()
    }

    fn read(&mut self) -> Turn {
        loop {
            let now = self.user.state.now;
            let Some(connection) = self.user.state.lines.connection_mut(self.line) else {
                return Turn::Again;
            };
            let mut buffer = self.shard.read_buffer.borrow_mut();
            let Some(most) = connection.may_read(now, buffer.len()) else {
                let wake = connection.slow_until();
                self.user.state.arm(wake);
                return Turn::Wait;
            };
            match connection.transport.poll_read(self.cx, &mut buffer[..most]) {
                Poll::Pending => {
                    let wake = connection.slow_until();
                    drop(buffer);
                    // Nothing more can arrive. If writing reports a reset before the runtime does,
                    // what the target sent before is read first.
                    let is_final = |error: &mut io::Error| {
                        !matches!(error.kind(), BrokenPipe | ConnectionReset)
                    };
                    if let Some(error) = self.take_unsendable(is_final) {
                        self.broken(&error);
                        return Turn::Again;
                    }
                    self.user.state.arm(wake);
                    return Turn::Wait;
                }
                Poll::Ready(read) => {
                    let now = self.shard.clock.now();
                    let is_datagram = connection.transport.is_datagram();
                    let is_slow = connection.is_slow();
                    connection.has_read(read.as_ref().map_or(0, |read| read.bytes));
                    self.user.state.now = now;
                    match read {
                        Ok(Received { bytes: 0, .. }) if !is_datagram => {
                            self.ended_by_target(false);
                        }
                        Ok(Received { bytes, stamp }) => {
                            self.shard.recorder.borrow_mut().interval.traffic.bytes_in +=
                                bytes as u64;
                            // The exchange is timed by the arrival of the bytes, and what follows
                            // starts now. On a connection that is slow on purpose, bytes arrive
                            // when they are read.
                            if !is_slow {
                                self.user.state.now = self.shard.arrived(now, stamp);
                            }
                            self.received(&buffer[..bytes]);
                            self.user.state.now = now;
                        }
                        Err(error) => self.broken(&error),
                    }
                }
            }
            if matches!(self.user.session.doing, Doing::Step) {
                return Turn::Again;
            }
        }
    }

    /// Handles received bytes. What is kept of them must be within the budget.
    pub(super) fn received(&mut self, bytes: &[u8]) {
        let Some(connection) = self.user.state.lines.connection(self.line) else { return };
        if matches!(connection.machine, Machine::Http1(_)) {
            match self.user.who_awaits_answer(self.line) {
                Some(which) => self
                    .user
                    .with(which, self.shard, self.cx, |active| answer_received(active, bytes)),
                None => self.user.state.unasked(self.line),
            }
        } else {
            let used = self.read_events(bytes);
            if let Some(connection) = self.user.state.lines.connection_mut(self.line)
                && matches!(connection.machine, Machine::Bytes(_) | Machine::Declared(_))
                && used < bytes.len()
            {
                connection.keep_again(Later::Bytes { bytes: bytes[used..].to_vec(), from: 0 });
            }
        }
        let waits = waiting_bytes(&self.user.state.agenda);
        let paid = self.user.state.lines.get_mut(self.line).pay(waits, self.shard);
        if let Err(failure) = paid {
            self.lost(failure, Ended::ByUs);
        }
    }

    /// Routes the events that the machine reads from the bytes; returns how many bytes were used.
    /// After a reply on a raw stream, the rest belongs to the next one.
    fn read_events(&mut self, bytes: &[u8]) -> usize {
        let Some(mut reading) = self.begin_reading(bytes) else { return bytes.len() };
        let mut input = Input::new(bytes, self.user.state.now, reading.ends);
        let mut lent = self.shard.lent.borrow_mut();
        let (mut out, mut sent, mut left) = (Vec::new(), Ok(()), bytes.len());
        let read = loop {
            let Some(connection) = self.user.state.lines.connection_mut(self.line) else {
                break Ok(());
            };
            let read = connection.machine.next(&mut input, &mut lent, &mut out);
            if !out.is_empty() {
                // Replies of the machine are sent before anything that the events cause.
                sent = sent.and_then(|()| self.user.state.outbound(self.line).send(&out, self.cx));
                out.clear();
            }
            left = input.rest().len();
            if matches!(reading.ends, Ends::Answer(_)) {
                let answer = match read {
                    Ok(Some(Event::Message(answer))) => Some(answer),
                    _ => None,
                };
                messages::stream_came(
                    &mut self.user.session(self.shard),
                    &bytes[..bytes.len() - left],
                    answer,
                );
                self.user.settle(self.shard, self.cx);
                break read.map(drop);
            }
            match &read {
                Ok(Some(event)) => {
                    self.happened(event, &mut reading);
                    // After the reply that agrees to TLS, plain text is not allowed.
                    if self.secures_next() {
                        break Ok(());
                    }
                }
                Ok(None) | Err(_) => break read.map(drop),
            }
        };
        lent.trim();
        drop(lent);
        self.have_read(read.as_ref().copied(), sent, reading.ended);
        bytes.len() - left
    }

    /// State needed to read bytes; `None` if no task expects any.
    fn begin_reading(&self, bytes: &[u8]) -> Option<Reading<'u>> {
        let mut reading = Reading::default();
        let connection = self.user.state.lines.connection(self.line)?;
        let is_datagram = connection.transport.is_datagram();
        let bytes_max = self.shard.prepared.limits.websocket.message_bytes_max;
        let link = || self.user.state.link_in(self.shard, self.line);
        match &connection.machine {
            Machine::WebSocket(_) => reading.records = link().records(bytes_max),
            // A datagram contains one or more packets of the protocol.
            Machine::Declared(_) if is_datagram => reading.records = link().records(bytes.len()),
            Machine::Declared(_) => {
                reading.ends = link().records(bytes_max).map_or(Ends::Whole, Ends::Records);
            }
            Machine::Bytes(_) if self.user.session.awaits(self.line, Awaits::Message) => {
                let (instruction, plan) =
                    at(self.shard, self.user.state.session, self.user.session.pc);
                let answer = awaited(instruction, plan, bytes_max)?;
                reading.ends = Ends::Answer(answer);
            }
            _ => {}
        }
        Some(reading)
    }

    /// Routes an event to its task.
    #[inline]
    fn happened(&mut self, event: &Event<'_>, reading: &mut Reading<'_>) {
        match event {
            Event::Http(event) => self.replied(event, &mut reading.ended),
            Event::Message(payload) => match reading.records {
                Some(records) => records.split(payload, &mut |record| {
                    self.heard(record);
                    self.user.state.lines.connection(self.line).is_some()
                }),
                None => self.heard(payload),
            },
            // The connector waits for it.
            Event::Open => {}
            Event::Begun => begun(self),
            Event::Answered(answer) => answered(self, answer),
            Event::Ping(payload) => self.ping(payload),
            Event::Pong(payload) => self.pong(payload),
            Event::Closed { code, reason } => {
                self.closed_by_peer((*code, reason));
            }
        }
    }

    /// Handles the end of a batch of reads.
    fn have_read(&mut self, read: Result<(), &Violation>, sent: io::Result<()>, ended: Vec<Over>) {
        for ended in ended {
            self.reply_ended(ended);
        }
        let Some(connection) = self.user.state.lines.connection(self.line) else { return };
        let (multiplexes, backlog) =
            (matches!(connection.machine, Machine::Http2(_)), connection.machine.backlog());
        if multiplexes {
            // Requests that waited for the settings of the target continue.
            self.user.settle(self.shard, self.cx);
        }
        match (read, sent) {
            (Err(violation), _) => self.violated(violation),
            (Ok(()), Err(error)) => self.broken(&error),
            (Ok(()), Ok(())) if multiplexes => self.send_rest(),
            (Ok(()), Ok(())) if backlog > 0 => {
                if let Err(error) = self.user.state.outbound(self.line).drain(self.cx) {
                    self.broken(&error);
                }
            }
            (Ok(()), Ok(())) => {}
        }
    }

    /// The rest of what waits cannot be sent. A target that refuses a body before it has read it
    /// responds and closes (RFC 9112, 9.6): its response is read first.
    fn unsendable(&mut self, error: io::Error) {
        match self.user.who_awaits_answer(self.line).and_then(|which| self.user.exchange_of(which))
        {
            Some(exchange) => {
                exchange.scratch(self.shard).unsendable = Some(error);
                if let Some(connection) = self.user.state.lines.connection_mut(self.line) {
                    connection.forget_unsent();
                }
            }
            None => self.broken(&error),
        }
    }

    /// Records one of these errors as the reason why a request was not sent completely.
    fn take_unsendable(
        &mut self,
        is_wanted: impl FnOnce(&mut io::Error) -> bool,
    ) -> Option<io::Error> {
        let which = self.user.who_awaits_answer(self.line)?;
        self.user.exchange_of(which)?.scratch.as_mut()?.unsendable.take_if(is_wanted)
    }

    /// The session starts to listen: a kept message may be the one it expects.
    pub(super) fn hear_kept(&mut self) {
        if self.user.state.lines.get(self.line).keeps_something() {
            self.take_from_kept();
        }
        if self.user.state.lines.connection(self.line).is_some() {
            return;
        }
        // Nothing more can arrive.
        if self.user.session.exchange_on(self.line).is_some() {
            self.user.session(self.shard).exchange_lost(self.line);
        } else if matches!(self.user.session.doing, Doing::Stay)
            && self.user.state.lines.get(self.line).is_over_as_wanted()
        {
            stay::lost(&mut self.user.session(self.shard), self.line);
        }
    }

    fn take_from_kept(&mut self) {
        let mut later = self.user.state.lines.get_mut(self.line).take_kept();
        let mut passed = Backlog::default();
        while matches!(self.user.session.doing, Doing::Exchange(_) | Doing::Stay)
            && let Some(one) = later.pop()
        {
            match one {
                Later::Surplus(bytes) => self.received(&bytes),
                Later::Bytes { bytes, from } => {
                    let from = from + self.read_events(&bytes[from..]);
                    if from < bytes.len() {
                        later.push_first(Later::Bytes { bytes, from });
                    }
                }
                Later::Message { payload, .. } => {
                    self.hear(&payload, From::Kept);
                }
            }
            // A message that it does not take is kept again, in the original order.
            passed = passed.followed_by(self.user.state.lines.get_mut(self.line).take_kept());
        }
        self.user
            .state
            .lines
            .get_mut(self.line)
            .keep_all_again(passed.followed_by(later), self.shard);
    }
}
