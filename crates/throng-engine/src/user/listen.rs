//! Listening: what a user's connections have to say is read, and given to whom it is for; and what
//! a task has left in the state for others is handed out.

mod beats;
mod ended;
mod handle;
mod hear;
mod running;
mod secure;
mod streamed;

use std::io;
use std::task::{Context, Poll};

use hear::From;
use hear::acknowledged::acknowledged;
use throng_protocol::machine::{Ends, Event, Input, Machine, Violation};

use super::connection::Later;
use super::connection::backlog::Backlog;
use super::exchange::Awaits;
use super::exchange::answer::{Ended as Over, Reading};
use super::listen::hear::acknowledged::queried;
use super::task::{Doing, at};
use super::verb::talk::awaited;
use super::{Turn, User};
use crate::failure::Ended;
use crate::shard::Lane;
use crate::system::Received;

impl User {
    /// Writes what waits and reads what is there, until nothing is left to do or the session has
    /// something new to do.
    pub(super) fn listen(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Turn {
        if self.state.agenda.is_some() {
            self.openings(shard, cx);
        }
        let mut turn = self.listen_on(shard, 0, cx);
        for line in 1..self.state.lines.count() {
            if turn == Turn::Wait {
                turn = self.listen_on(shard, line, cx);
            }
        }
        turn
    }

    fn listen_on(&mut self, shard: &Lane, line: u8, cx: &mut Context<'_>) -> Turn {
        let Some(connection) = self.state.lines.connection_mut(line) else {
            // Nothing can come any more; a user that only waited for the end goes on.
            return match self.session.doing {
                Doing::Closing if self.session.line == line => {
                    let until = self.session.deadline;
                    self.session(shard).closed_in_order(until)
                }
                _ => Turn::Wait,
            };
        };
        if let Some(bytes) = connection.take_surplus() {
            self.received(shard, line, &bytes, cx);
            return Turn::Again;
        }
        if connection.is_slow() {
            self.state.now = shard.clock.now();
        }
        if let Err(error) = self.state.push_unsent(line, cx) {
            self.unsendable(shard, line, error, cx);
            if self.who_awaits_answer(line).is_none() {
                return Turn::Again;
            }
        }
        if let Err(error) = self.state.drain(line, cx) {
            self.broken(shard, line, &error, cx);
            return Turn::Again;
        }
        if self.session.awaits(line, Awaits::Tls) {
            return self.secure_on(shard, line, cx);
        }
        if self.session.awaits(line, Awaits::Room) && self.state.lines.get(line).is_taken() {
            self.state.now = shard.clock.now();
            self.session(shard).sent();
            return Turn::Again;
        }
        if self.state.agenda.is_some() && self.state.lines.get(line).is_taken() {
            self.bodies_sent(shard, line, cx);
        }
        self.read(shard, line, cx)
    }

    fn read(&mut self, shard: &Lane, line: u8, cx: &mut Context<'_>) -> Turn {
        loop {
            let now = self.state.now;
            let Some(connection) = self.state.lines.connection_mut(line) else {
                return Turn::Again;
            };
            let mut buffer = shard.read_buffer.borrow_mut();
            let Some(most) = connection.may_read(now, buffer.len()) else {
                let wake = connection.slow_until();
                self.state.arm(wake);
                return Turn::Wait;
            };
            match connection.transport.poll_read(cx, &mut buffer[..most]) {
                Poll::Pending => {
                    let wake = connection.slow_until();
                    drop(buffer);
                    if let Some(error) = self.take_unsendable_for_good(line) {
                        self.broken(shard, line, &error, cx);
                        return Turn::Again;
                    }
                    self.state.arm(wake);
                    return Turn::Wait;
                }
                Poll::Ready(read) => {
                    let now = shard.clock.now();
                    let is_datagram = connection.transport.is_datagram();
                    let is_slow = connection.is_slow();
                    connection.has_read(read.as_ref().map_or(0, |read| read.bytes));
                    self.state.now = now;
                    match read {
                        Ok(Received { bytes: 0, .. }) if !is_datagram => {
                            self.ended_by_target(shard, line, false, cx);
                        }
                        Ok(Received { bytes, stamp }) => {
                            shard.recorder.borrow_mut().bytes_in += bytes as u64;
                            // It counts by when it came, and what follows begins now. Who reads
                            // slowly has it when it is read.
                            if !is_slow {
                                self.state.now = shard.arrived(now, stamp);
                            }
                            self.received(shard, line, &buffer[..bytes], cx);
                            self.state.now = now;
                        }
                        Err(error) => self.broken(shard, line, &error, cx),
                    }
                }
            }
            if matches!(self.session.doing, Doing::Step) {
                return Turn::Again;
            }
        }
    }

    /// Bytes came. What is kept of them has to be within the budget.
    pub(super) fn received(&mut self, shard: &Lane, line: u8, bytes: &[u8], cx: &mut Context<'_>) {
        let Some(connection) = self.state.lines.connection(line) else { return };
        if matches!(connection.machine, Machine::Http1(_)) {
            match self.who_awaits_answer(line) {
                Some(which) => self.with(which, shard, cx, |active| active.answer_received(bytes)),
                None => self.state.unasked(line),
            }
        } else {
            let used = self.read_events(shard, line, bytes, cx);
            if let Some(connection) = self.state.lines.connection_mut(line)
                && matches!(connection.machine, Machine::Bytes(_) | Machine::Declared(_))
                && used < bytes.len()
            {
                connection.keep_again(Later::Bytes { bytes: bytes[used..].to_vec(), from: 0 });
            }
        }
        if let Err(failure) = self.state.pay(line) {
            self.lost(shard, line, failure, Ended::ByUs, cx);
        }
    }

    /// Gives what the machine makes of the bytes to whom it is for; how many of them were used.
    /// Behind an answer on a raw stream are those of the next one.
    pub(super) fn read_events(
        &mut self,
        shard: &Lane,
        line: u8,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) -> usize {
        let Some(mut reading) = self.begin_reading(shard, line, bytes) else { return bytes.len() };
        let mut input = Input::new(bytes, self.state.now, reading.ends);
        let mut lent = shard.lent.borrow_mut();
        let (mut out, mut sent, mut left) = (Vec::new(), Ok(()), bytes.len());
        let read = loop {
            let Some(connection) = self.state.lines.connection_mut(line) else { break Ok(()) };
            let read = connection.machine.next(&mut input, &mut lent, &mut out);
            if !out.is_empty() {
                // It goes before what is sent because of what came.
                sent = sent.and_then(|()| self.state.send(line, &out, cx));
                out.clear();
            }
            left = input.rest().len();
            if matches!(reading.ends, Ends::Answer(_)) {
                let answer = match read {
                    Ok(Some(Event::Message(answer))) => Some(answer),
                    _ => None,
                };
                self.session(shard).stream_came(&bytes[..bytes.len() - left], answer);
                self.settle(shard, cx);
                break read.map(drop);
            }
            match &read {
                Ok(Some(event)) => {
                    self.happened(shard, line, event, &mut reading, cx);
                    // Behind the reply that agrees to TLS, nothing may come in plain text.
                    if self.secures_next(shard, line) {
                        break Ok(());
                    }
                }
                Ok(None) | Err(_) => break read.map(drop),
            }
        };
        lent.trim();
        drop(lent);
        self.have_read(shard, line, read.as_ref().copied(), sent, reading.ended, cx);
        bytes.len() - left
    }

    /// What has to be known before bytes are read; None where nobody wants them.
    fn begin_reading<'a>(
        &mut self,
        shard: &'a Lane,
        line: u8,
        bytes: &'a [u8],
    ) -> Option<Reading<'a>> {
        let mut reading = Reading::default();
        let connection = self.state.lines.connection(line)?;
        let is_datagram = connection.transport.is_datagram();
        let bytes_max = shard.prepared.limits.websocket.message_bytes_max;
        let link = || self.state.link_in(shard, line);
        match &connection.machine {
            Machine::WebSocket(_) => reading.records = link().records(bytes_max),
            // A datagram is a packet of the protocol, or several.
            Machine::Declared(_) if is_datagram => reading.records = link().records(bytes.len()),
            Machine::Declared(_) => {
                reading.ends = link().records(bytes_max).map_or(Ends::Whole, Ends::Records);
            }
            Machine::Bytes(_) if self.session.awaits(line, Awaits::Message) => {
                let (instruction, plan) = at(shard, self.state.session, self.session.pc);
                let answer = awaited(instruction, plan, bytes_max)?;
                reading.ends = Ends::Answer(answer);
            }
            _ => {}
        }
        Some(reading)
    }

    /// Gives an event to whom it is for.
    #[inline]
    fn happened(
        &mut self,
        shard: &Lane,
        line: u8,
        event: &Event<'_>,
        reading: &mut Reading<'_>,
        cx: &mut Context<'_>,
    ) {
        match event {
            Event::Http(event) => self.replied(shard, line, event, &mut reading.ended),
            Event::Message(payload) => match reading.records {
                Some(records) => records.split(payload, &mut |record| {
                    self.heard(shard, line, record, cx);
                    self.state.lines.connection(line).is_some()
                }),
                None => self.heard(shard, line, payload, cx),
            },
            Event::Answered(answer) => acknowledged(self, shard, line, answer, cx),
            Event::Sql(came) => queried(self, shard, line, came, cx),
            Event::Ping(payload) => self.ping(shard, line, payload, cx),
            Event::Pong(payload) => self.pong(shard, line, payload),
            Event::Closed { code, reason } => {
                self.closed_by_peer(shard, line, (*code, reason), cx);
            }
        }
    }

    /// Nothing more is to be read now.
    fn have_read(
        &mut self,
        shard: &Lane,
        line: u8,
        read: Result<(), &Violation>,
        sent: io::Result<()>,
        ended: Vec<Over>,
        cx: &mut Context<'_>,
    ) {
        for ended in ended {
            self.reply_ended(shard, line, ended, cx);
        }
        let Some(connection) = self.state.lines.connection(line) else { return };
        let (multiplexes, backlog) =
            (matches!(connection.machine, Machine::Http2(_)), connection.machine.backlog());
        if multiplexes {
            // Who waited for the settings of the target goes on.
            self.settle(shard, cx);
        }
        match (read, sent) {
            (Err(violation), _) => self.violated(shard, line, violation, cx),
            (Ok(()), Err(error)) => self.broken(shard, line, &error, cx),
            (Ok(()), Ok(())) if multiplexes => self.send_rest(shard, line, cx),
            (Ok(()), Ok(())) if backlog > 0 => {
                if let Err(error) = self.state.drain(line, cx) {
                    self.broken(shard, line, &error, cx);
                }
            }
            (Ok(()), Ok(())) => {}
        }
    }

    /// The rest of what waits cannot be sent. A target that refuses a body before it has read it
    /// says so and closes (RFC 9112, 9.6): what it has said is read first.
    fn unsendable(&mut self, shard: &Lane, line: u8, error: io::Error, cx: &mut Context<'_>) {
        match self.who_awaits_answer(line).and_then(|which| self.exchange_of(which)) {
            Some(exchange) => {
                exchange.rare(shard).unsendable = Some(error);
                if let Some(connection) = self.state.lines.connection_mut(line) {
                    connection.forget_unsent();
                }
            }
            None => self.broken(shard, line, &error, cx),
        }
    }

    /// The same while nothing is to be read, if nothing more can come. Where writing tells of a
    /// reset before the runtime does, what the target said before is read when it does.
    fn take_unsendable_for_good(&mut self, line: u8) -> Option<io::Error> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        let which = self.who_awaits_answer(line)?;
        let unsendable = &mut self.exchange_of(which)?.rare.as_mut()?.unsendable;
        unsendable.take_if(|error| !matches!(error.kind(), BrokenPipe | ConnectionReset))
    }

    /// A user begins to listen: what was kept may be what it wants.
    pub(super) fn hear_kept(&mut self, shard: &Lane, line: u8, cx: &mut Context<'_>) {
        if self.state.lines.get(line).keeps_something() {
            self.take_from_kept(shard, line, cx);
        }
        if self.state.lines.connection(line).is_some() {
            return;
        }
        // Nothing more can come.
        if self.session.exchange_on(line).is_some() {
            self.session(shard).exchange_lost(line);
        } else if matches!(self.session.doing, Doing::Stay)
            && self.state.lines.get(line).is_over_as_wanted()
        {
            self.session(shard).stay_lost(line);
        }
    }

    pub(super) fn take_from_kept(&mut self, shard: &Lane, line: u8, cx: &mut Context<'_>) {
        let mut later = self.state.lines.get_mut(line).take_kept();
        let mut passed = Backlog::default();
        while matches!(self.session.doing, Doing::Exchange(_) | Doing::Stay)
            && let Some(one) = later.pop()
        {
            match one {
                Later::Surplus(bytes) => self.received(shard, line, &bytes, cx),
                Later::Bytes { bytes, from } => {
                    let from = from + self.read_events(shard, line, &bytes[from..], cx);
                    if from < bytes.len() {
                        later.push_first(Later::Bytes { bytes, from });
                    }
                }
                Later::Message { payload, .. } => {
                    self.hear(shard, line, &payload, From::Kept, cx);
                }
            }
            // What it is not for is kept again, behind what came before it.
            passed = passed.followed_by(self.state.lines.get_mut(line).take_kept());
        }
        self.state.keep_all_again(line, passed.followed_by(later));
    }
}
