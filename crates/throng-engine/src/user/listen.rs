//! Listening: what a user's connections have to say is read, and given to whom it is for; and what
//! a task has left in the state for others is handed out.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use throng_metrics::Cause;
use throng_program::Statement;
use throng_protocol::machine::{Ends, Event, Input, Machine, Violation};

use super::agenda::Agenda;
use super::answer::{Ended as Over, Reading};
use super::connection::{Connection, Later, Left, Loss, NOTHING_ASKED};
use super::exchange::{Awaits, Exchange};
use super::hear::acknowledged::acknowledged;
use super::hear::awaits_message;
use super::line::ended_by;
use super::opening::secure::{awaits_tls, go_on, secures_next};
use super::sql::queried;
use super::talk::awaited;
use super::task::{Active, Doing, Task, Which, at};
use super::{Turn, User};
use crate::code::Instruction;
use crate::failure::Ended;
use crate::failure::Failure;
use crate::failure::Finding;
use crate::failure::http_failure;
use crate::failure::lost_failure;
use crate::shard::Lane;
use crate::system::Received;

/// So many steps that take no time are looked over for the one that waits.
const INSTANT_MAX: usize = 64;

/// Some of the links of a session.
#[derive(Clone, Copy, Default)]
struct Links([u64; 4]);

impl Links {
    fn add(&mut self, link: u8) {
        self.0[usize::from(link / 64)] |= 1 << (link % 64);
    }

    fn has(self, link: u8) -> bool {
        self.0[usize::from(link / 64)] & 1 << (link % 64) != 0
    }
}

/// As a code, the end of a WebSocket without a close (RFC 6455, 7.1.5).
const NO_CLOSE: u16 = 1006;

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
        let Some(connection) = self.state.connection_mut(line) else {
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
        if awaits_tls(&self.session, line) {
            return go_on(self, shard, line, cx);
        }
        if self.awaits_room(line) && self.state.is_taken(line) {
            self.state.now = shard.clock.now();
            self.session(shard).sent();
            return Turn::Again;
        }
        if self.state.agenda.is_some() && self.state.is_taken(line) {
            self.bodies_sent(shard, line, cx);
        }
        self.read(shard, line, cx)
    }

    fn read(&mut self, shard: &Lane, line: u8, cx: &mut Context<'_>) -> Turn {
        loop {
            let now = self.state.now;
            let Some(connection) = self.state.connection_mut(line) else { return Turn::Again };
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

    /// Whether the session waits for the socket to take what it sends over this line.
    fn awaits_room(&self, line: u8) -> bool {
        self.session.exchange_on(line).is_some_and(|exchange| exchange.awaits == Awaits::Room)
    }

    /// Bytes came. What is kept of them has to be within the budget.
    pub(super) fn received(&mut self, shard: &Lane, line: u8, bytes: &[u8], cx: &mut Context<'_>) {
        let Some(connection) = self.state.connection(line) else { return };
        if matches!(connection.machine, Machine::Http1(_)) {
            match self.who_awaits_answer(line) {
                Some(which) => self.with(which, shard, cx, |active| active.answer_received(bytes)),
                None => self.state.unasked(line),
            }
        } else {
            let used = self.read_events(shard, line, bytes, cx);
            if let Some(connection) = self.state.connection_mut(line)
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
            let Some(connection) = self.state.connection_mut(line) else { break Ok(()) };
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
                    if secures_next(self, shard, line) {
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
        let connection = self.state.connection(line)?;
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
            Machine::Bytes(_) if awaits_message(&self.session, line) => {
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
                    self.state.connection(line).is_some()
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
        let Some(connection) = self.state.connection(line) else { return };
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

    /// Whose request is to be answered over this line.
    pub(super) fn who_awaits_answer(&self, line: u8) -> Option<Which> {
        let awaits = |exchange: &Exchange| matches!(exchange.awaits, Awaits::Answer { .. });
        if self.session.exchange_on(line).is_some_and(awaits) {
            return Some(Which::Session);
        }
        let others = self.state.agenda.as_ref()?.tasks();
        let place = others.iter().position(|task| task.exchange_on(line).is_some_and(awaits))?;
        Some(Which::Other(place))
    }

    pub(super) fn exchange_of(&mut self, which: Which) -> Option<&mut Exchange> {
        let task = match which {
            Which::Session => &mut self.session,
            Which::Other(place) => self.state.agenda.as_mut()?.tasks_mut().get_mut(place)?,
        };
        match &mut task.doing {
            Doing::Exchange(exchange) => Some(exchange),
            _ => None,
        }
    }

    /// Lets one of the tasks do something.
    pub(super) fn with(
        &mut self,
        which: Which,
        shard: &Lane,
        cx: &mut Context<'_>,
        work: impl FnOnce(&mut Active<'_>),
    ) {
        match which {
            Which::Session => {
                work(&mut self.session(shard));
                self.settle(shard, cx);
            }
            Which::Other(place) => {
                let Some(agenda) = &mut self.state.agenda else { return };
                let task = agenda.tasks_mut().swap_remove(place);
                self.resume(shard, task, cx, work);
            }
        }
    }

    /// The rest of what waits cannot be sent. A target that refuses a body before it has read it
    /// says so and closes (RFC 9112, 9.6): what it has said is read first.
    fn unsendable(&mut self, shard: &Lane, line: u8, error: io::Error, cx: &mut Context<'_>) {
        match self.who_awaits_answer(line).and_then(|which| self.exchange_of(which)) {
            Some(exchange) => {
                exchange.rare(shard).unsendable = Some(error);
                if let Some(connection) = self.state.connection_mut(line) {
                    connection.forget_unsent();
                }
            }
            None => self.broken(shard, line, &error, cx),
        }
    }

    /// Why a request was not sent to its end, once nothing more is to be read.
    fn take_unsendable(&mut self, line: u8) -> Option<io::Error> {
        let which = self.who_awaits_answer(line)?;
        self.exchange_of(which)?.rare.as_mut()?.unsendable.take()
    }

    /// The same while nothing is to be read, if nothing more can come. Where writing tells of a
    /// reset before the runtime does, what the target said before is read when it does.
    fn take_unsendable_for_good(&mut self, line: u8) -> Option<io::Error> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        let which = self.who_awaits_answer(line)?;
        let unsendable = &mut self.exchange_of(which)?.rare.as_mut()?.unsendable;
        unsendable.take_if(|error| !matches!(error.kind(), BrokenPipe | ConnectionReset))
    }

    /// The target closed its side; `is_cut` where TLS does not say that this is the end of what it
    /// sent.
    fn ended_by_target(&mut self, shard: &Lane, line: u8, is_cut: bool, cx: &mut Context<'_>) {
        let reader = match self.state.connection_mut(line).map(|one| &mut one.machine) {
            Some(Machine::Http1(reader)) => Some(reader.close()),
            _ => None,
        };
        if !matches!(reader, Some(Ok(true)))
            && let Some(error) = self.take_unsendable(line)
        {
            return self.broken(shard, line, &error, cx);
        }
        if self.is_closing(line) {
            // A WebSocket ends after our goodbye.
            self.state.drop_connection(line, Ended::ByUs);
            let until = self.session.deadline;
            self.session(shard).closed_in_order(until);
            return;
        }
        match (self.who_awaits_answer(line), reader) {
            // Only the end of the connection is the end of its body (RFC 9112, 9.8).
            (Some(_), Some(Ok(true))) if is_cut => {
                let detail = say!(
                    "the connection was closed without a TLS close_notify, so the response may be \
                     incomplete"
                );
                let failure = Failure::new(Cause::ClosedEarly, detail);
                self.lost(shard, line, failure, Ended::ByTarget, cx);
            }
            (Some(which), Some(Ok(true))) => {
                self.state.drop_connection(line, Ended::ByTarget);
                self.with(which, shard, cx, |active| active.answer_complete(false, None));
            }
            (Some(_), Some(Err(error))) => {
                let failure = http_failure(&error);
                self.lost(shard, line, failure, Ended::ByTarget, cx);
            }
            _ => {
                let half = self.state.connection(line).and_then(Connection::half_a_packet);
                let detail = half.unwrap_or(NOTHING_ASKED);
                let machine = self.state.connection(line).map(|connection| &connection.machine);
                let has_code = machine.is_some_and(|machine| machine.traits().codes);
                let status = if has_code { NO_CLOSE } else { 0 };
                let failure = Failure { status, ..Failure::new(Cause::ClosedEarly, detail) };
                self.lost(shard, line, failure, Ended::ByTarget, cx);
            }
        }
    }

    /// Whether the session waits for the end of this connection.
    pub(super) fn is_closing(&self, line: u8) -> bool {
        matches!(self.session.doing, Doing::Closing) && self.session.line == line
    }

    /// Reading or writing failed.
    pub(super) fn broken(
        &mut self,
        shard: &Lane,
        line: u8,
        error: &io::Error,
        cx: &mut Context<'_>,
    ) {
        let failure = lost_failure(error);
        // TLS ended without its last word: a close that TLS does not trust.
        if failure.cause == Cause::ClosedEarly {
            return self.ended_by_target(shard, line, true, cx);
        }
        let ended = ended_by(failure.cause);
        if self.is_closing(line) {
            self.state.drop_connection(line, ended);
            let until = self.session.deadline;
            self.session(shard).closed_in_order(until);
            return;
        }
        self.lost(shard, line, failure, ended, cx);
    }

    /// The connection is gone in the middle of something, or of nothing.
    pub(super) fn lost(
        &mut self,
        shard: &Lane,
        line: u8,
        failure: Failure,
        ended: Ended,
        cx: &mut Context<'_>,
    ) {
        let unheard = self.is_unheard(line, ended);
        let (left, refused) = match self.take_left(line, ended) {
            Ok(left) => (left, None),
            Err((cause, detail)) => (None, Some(Failure::new(cause, detail))),
        };
        let messages = left.as_ref().map_or(0, |left| left.later.len());
        let is_wanted = self.wants_end(shard, (line, messages), &failure, ended);
        // Whoever wants what came before the end misses it because of us.
        let failure = refused.unwrap_or(failure);
        let dropped = self.state.dropped(line);
        self.state.lose(line, Loss { failure, ended, unheard, is_wanted, dropped, left });
        self.settle(shard, cx);
    }

    /// What the next steps of the session may take, although the connection is over.
    fn take_left(&mut self, line: u8, ended: Ended) -> Result<Option<Left>, Finding> {
        // A step that waits here now did not take them.
        let waits = matches!(self.session.doing, Doing::Exchange(_) | Doing::Stay | Doing::Closing)
            && self.session.line == line;
        if ended != Ended::ByTarget || waits || self.state.link(line).expected.is_empty() {
            return Ok(None);
        }
        let purse = Rc::clone(&self.state.shard.purse);
        match self.state.connection_mut(line) {
            Some(connection) => connection.take_left(&purse),
            None => Ok(None),
        }
    }

    /// Whether the session waits for the connection to end so, or does next, behind steps that take
    /// messages which have come already.
    fn wants_end(
        &self,
        shard: &Lane,
        (line, messages): (u8, usize),
        failure: &Failure,
        ended: Ended,
    ) -> bool {
        if ended != Ended::ByTarget || !matches!(self.session.doing, Doing::Stay | Doing::Step) {
            return false;
        }
        // What takes no time may stand between the last message and the step that waits.
        let mut pc = self.session.pc;
        let mut messages = messages;
        for _ in 0..INSTANT_MAX {
            match at(shard, self.state.session, pc).0 {
                Instruction::Do(Statement::Expect(expect))
                    if messages > 0 && self.state.line_of(expect.link) == line =>
                {
                    messages -= 1;
                    pc += 1;
                }
                Instruction::Do(Statement::Stay(stay)) => {
                    let fits = stay.ends.as_ref().is_some_and(|ends| ends.has(failure.status));
                    return fits && self.state.line_of(stay.link) == line;
                }
                Instruction::Do(
                    Statement::Set { .. } | Statement::Tally { .. } | Statement::Log(_),
                )
                | Instruction::TransactionBegin { .. }
                | Instruction::TransactionEnd { .. } => pc += 1,
                _ => return false,
            }
        }
        false
    }

    /// Whether the target closed an idle connection just as we used it again: it ended in order
    /// (RFC 9112, 9.3.1), without a byte of an answer, and the target's host acknowledges nothing
    /// of the request. One that it had taken before it closed was dropped by the target.
    fn is_unheard(&mut self, line: u8, ended: Ended) -> bool {
        let Some(which) = self.who_awaits_answer(line) else { return false };
        if self.state.multiplexes(line) {
            return false;
        }
        let Some(exchange) = self.exchange_of(which) else { return false };
        let idle = exchange.awaits == Awaits::Answer { reused: true }
            && exchange.bytes_in == 0
            && ended == Ended::ByTarget;
        let bytes = exchange.request_bytes();
        idle && self.state.connection(line).is_some_and(|one| one.took_nothing(bytes))
    }

    /// Whoever waits for a connection that was lost hears of that.
    pub(super) fn settle(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        if std::mem::take(&mut self.state.has_loss) {
            self.tell_losses(shard, cx);
        }
        let is_served = |agenda: &Agenda| agenda.serves_queue;
        if self.state.agenda.as_deref().is_some_and(is_served) {
            return;
        }
        if self.state.agenda.is_some() || matches!(self.session.doing, Doing::Queued { .. }) {
            self.serve_queued(shard, cx);
        }
    }

    /// Tasks that wait for a connection that others used go on when one is free, in the order in
    /// which they were due.
    fn serve_queued(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        // The session goes on when the user does its next step: until then its line is kept for it.
        let mut kept = Links::default();
        while let Some((which, link)) = self.next_queued(shard, kept) {
            if which == Which::Session {
                self.session.doing = Doing::Step;
                kept.add(link);
                continue;
            }
            // Those that go on do not let others go on before it is their turn.
            if let Some(agenda) = &mut self.state.agenda {
                agenda.serves_queue = true;
            }
            self.with(which, shard, cx, |active| active.task.doing = Doing::Step);
            if let Some(agenda) = &mut self.state.agenda {
                agenda.serves_queue = false;
            }
        }
    }

    /// Of the tasks that wait for a connection, the first for which one is free, and its link.
    fn next_queued(&self, shard: &Lane, mut full: Links) -> Option<(Which, u8)> {
        let link_of = |task: &Task| match task.doing {
            Doing::Queued { .. } => at(shard, self.state.session, task.pc).0.link(),
            _ => None,
        };
        loop {
            let others = self.state.agenda.iter().flat_map(|agenda| agenda.tasks()).enumerate();
            let others = others.map(|(place, task)| (Which::Other(place), task));
            let all = std::iter::once((Which::Session, &self.session)).chain(others);
            let waiting = all.filter_map(|(which, task)| {
                let link = link_of(task).filter(|link| !full.has(*link))?;
                Some((task.due, which, link))
            });
            let (_, which, link) = waiting.min_by_key(|(due, ..)| *due)?;
            let session = Some(&self.session).filter(|_| which != Which::Session);
            if self.state.free_line(link, session).is_some() {
                return Some((which, link));
            }
            full.add(link);
        }
    }

    fn tell_losses(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        for line in 0..self.state.lines.count() {
            if self.state.connection(line).is_some() || self.state.lines.get(line).loss.is_none() {
                continue;
            }
            while let Some(place) = self.state.agenda.as_ref().and_then(|agenda| {
                agenda.tasks().iter().position(|task| task.exchange_on(line).is_some())
            }) {
                self.with(Which::Other(place), shard, cx, |active| active.exchange_lost(line));
            }
            match self.session.doing {
                // It takes what had come before first.
                Doing::Exchange(_) if self.state.keeps_something(line) => {}
                Doing::Exchange(_) if self.session.line == line => {
                    self.session(shard).exchange_lost(line);
                }
                Doing::Stay if self.state.link(line).lasts => {
                    self.session(shard).stay_lost(line);
                }
                // HTTP users reconnect with their next request; others find out at their next
                // step.
                _ => {}
            }
        }
    }
}
