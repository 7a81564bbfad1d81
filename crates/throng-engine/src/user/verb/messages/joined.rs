//! Messages of consecutive steps in one write. Steps that send over the same connection, without a
//! wait between them, are written together: one system call and one network packet, as client
//! libraries of such protocols do.
//!
//! Each step is counted as if it had been written alone. A step is done when the socket has taken
//! all of its bytes. The first one with bytes left waits for room, or fails if writing failed;
//! those after it have not started, and are written again when it is their turn.

use std::io;
use std::task::Context;
use std::time::Duration;

use throng_base::StepId;
use throng_program::{Content, Message, Statement};
use throng_protocol::machine::Machine;

use super::{delivers, unsent, wait_on};
use crate::prepared::code::Instruction;
use crate::recorder::Attempt;
use crate::shard::scratch::Joined;
use crate::transport::pieces::Pieces;
use crate::user::agenda::waiting_bytes;
use crate::user::connection::Connection;
use crate::user::exchange::Awaits;
use crate::user::send::{Sent, encode_plain};
use crate::user::task::{Active, Doing, at};

/// No message is added beyond this size. It is one TLS record: the peer cannot read any of it
/// before all has arrived.
const JOINED_BYTES_MAX: usize = 16 * 1024;

/// A step that sends a message.
struct Says<'a> {
    step: StepId,
    message: &'a Message,
    patience: Duration,
    is_request: bool,
}

impl Connection {
    /// Whether messages of several steps may be written to it in one call: it adds no frames, is
    /// not slow on purpose, and has sent everything before.
    fn joins(&self) -> bool {
        matches!(self.machine, Machine::Declared(_) | Machine::Bytes(_))
            && !self.transport.is_datagram()
            && !self.is_slow()
            && !self.keeps_something()
            && self.is_sent()
    }
}

/// The messages of a step and of those after it, over one link.
struct Together<'t, 'a> {
    active: &'t mut Active<'a>,
    link: u8,
}

/// Sends the message of this step together with those of the following steps. False if there are
/// none, or nothing may be joined: then the step runs alone.
pub(super) fn sends_joined(active: &mut Active<'_>, link: u8, cx: &mut Context<'_>) -> bool {
    let (shard, line) = (active.shard, active.user.line_of(link));
    let mut all = Together { active, link };
    if all.says_next(all.active.task.pc + 1).is_none()
        || shard.is_watched()
        || !all.active.user.lines.connection(line).is_some_and(Connection::joins)
    {
        return false;
    }
    let mut joined = shard.joined.take();
    let mut out = shard.write_buffer.take();
    joined.clear();
    out.clear();
    all.active.task.line = line;
    all.join(&mut joined, &mut out);
    let is_any = !joined.is_empty();
    if is_any {
        all.write(&mut joined, &out, cx);
    }
    shard.joined.replace(joined);
    shard.write_buffer.replace(out);
    is_any
}

/// The socket has taken the messages that were left to a step: their steps are done, too.
pub(super) fn joined_taken(active: &mut Active<'_>, others: &[Joined]) {
    let link = active.user.lines.get(active.task.line).link;
    for one in others {
        Together { active, link }.has_said(one.sent, true, &[]);
    }
}

impl<'a> Together<'_, 'a> {
    /// The step there, if it sends over the link and its message is only bytes.
    fn says(&self, pc: u32) -> Option<Says<'a>> {
        let link = self.link;
        let says = match at(self.active.shard, self.active.user.session, pc).0 {
            Instruction::Do(Statement::Send(one)) if one.link == link => {
                let (message, patience) = (&one.message, one.timeout);
                Says { step: one.step, message, patience, is_request: false }
            }
            Instruction::Do(Statement::Request(one)) if one.link == link => {
                let (message, patience) = (&one.message, one.timeout);
                Says { step: one.step, message, patience, is_request: true }
            }
            _ => return None,
        };
        let content = &says.message.content;
        matches!(content, Content::Plain { .. } | Content::Declared(_)).then_some(says)
    }

    /// The step there, if it always follows the one before: no iteration starts or ends between
    /// them.
    fn says_next(&self, pc: u32) -> Option<Says<'a>> {
        let code = self.active.of_session();
        let is_border = [code.begin, code.end, code.last].contains(&pc);
        self.says(pc).filter(|_| !is_border)
    }

    /// Concatenates the messages, up to one that cannot be encoded: that step fails when it is its
    /// turn.
    fn join(&mut self, joined: &mut Vec<Joined>, out: &mut Vec<u8>) {
        let (line, pc) = (self.active.task.line, self.active.task.pc);
        let connection = self.active.user.lines.connection(line);
        let is_secure = connection.is_some_and(|one| !one.transport.is_plain());
        let mut next = self.says(pc);
        while let Some(says) = next {
            // With TLS it is not known which bytes the socket has taken: messages of the ledger are
            // sent alone.
            if is_secure && self.active.shard.prepared.delivery_of(says.step).is_some() {
                return;
            }
            let user = &mut *self.active.user;
            let (begin, before) = (out.len(), (user.random.clone(), user.number));
            let encoded = encode_plain(user, line, says.message, out);
            let is_too_long = is_secure && begin > 0 && out.len() > JOINED_BYTES_MAX;
            let (Ok(number), false) = (encoded, is_too_long) else {
                out.truncate(begin);
                (user.random, user.number) = before;
                return;
            };
            let sent = ((out.len() - begin) as u64, number);
            joined.push(Joined { end: out.len(), sent, before });
            if says.is_request || out.len() >= JOINED_BYTES_MAX {
                return;
            }
            next = self.says_next(pc + joined.len() as u32);
        }
    }

    /// Writes the concatenated messages. The steps whose bytes the socket has taken are done; the
    /// first of the others waits, and those after it are written again.
    fn write(&mut self, joined: &mut Vec<Joined>, out: &[u8], cx: &mut Context<'_>) {
        let Active { shard, user, task, .. } = &mut *self.active;
        let now = user.now;
        let Some(connection) = user.lines.connection_mut(task.line) else { return };
        let is_plain = connection.transport.is_plain();
        let (sent, written) = connection.write(Pieces { own: out, shared: &[] }, now, cx);
        let is_flushed = connection.is_sent();
        shard.recorder.borrow_mut().interval.traffic.bytes_out += sent as u64;
        // TLS may have taken bytes that the socket has not.
        let taken = if is_plain || written.is_ok() { sent } else { 0 };
        if written.is_ok() && !is_flushed && taken == out.len() {
            // They wait for the socket together.
            let others = joined.split_off(1);
            self.has_said(joined[0].sent, false, &out[..joined[0].end]);
            if let Doing::Exchange(exchange) = &mut self.active.task.doing {
                exchange.scratch(self.active.shard).behind = others;
            }
            return;
        }
        let done = joined.partition_point(|one| one.end <= taken);
        let mut begin = 0;
        for one in &joined[..done] {
            self.has_said(one.sent, true, &out[begin..one.end]);
            begin = one.end;
        }
        let Some(one) = joined.get(done) else { return };
        if let Some(next) = joined.get(done + 1) {
            (self.active.user.random, self.active.user.number) = next.before.clone();
        }
        match written.and_then(|()| self.keep(&out[taken..one.end])) {
            Ok(()) => self.has_said(one.sent, false, &out[begin..one.end]),
            Err(error) => {
                self.has_said((0, 0), false, &[]);
                unsent(self.active, &error);
            }
        }
    }

    /// Keeps what the socket did not take of a message.
    fn keep(&mut self, rest: &[u8]) -> io::Result<()> {
        let Active { shard, user, task, .. } = &mut *self.active;
        let waiting = (waiting_bytes(&user.agenda), &shard.purse);
        match user.lines.connection_mut(task.line) {
            Some(connection) => connection.keep_unsent(rest, waiting),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The current step has sent something. It is done when the socket has taken all of it, or when
    /// the reply has arrived.
    fn has_said(&mut self, (bytes_out, number): (u64, u32), is_taken: bool, bytes: &[u8]) {
        let Some(says) = self.says(self.active.task.pc) else { return };
        let active = &mut *self.active;
        active.flight_begins(says.step);
        active.goes_out();
        active.shard.recorder.borrow_mut().interval.traffic.messages.sent += 1;
        let mut delivery = None;
        if active.shard.prepared.delivery_of(says.step).is_some() && !bytes.is_empty() {
            bytes.clone_into(&mut active.shard.content_buffer.borrow_mut());
            delivery = delivers(active, says.step, says.message);
        }
        if is_taken && !says.is_request {
            active.step_ok(says.step, &Attempt { bytes_out, ..Attempt::default() });
            return active.next_step();
        }
        let awaits = if says.is_request { Awaits::Message } else { Awaits::Room };
        wait_on(active, awaits, Sent { bytes: bytes_out, number, delivery }, says.patience);
    }
}
