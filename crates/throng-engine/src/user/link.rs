//! A user's connection: how it opens, what is sent over it, how it ends.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use throng_base::Time;
use throng_expression::Fault;
use throng_metrics::{Cause, Connections, Stage};
use throng_program::{Connect, Instruction, Slow};
use throng_protocol::framed::PacketReader;
use throng_protocol::http1::ResponseReader;
use throng_protocol::stream::StreamReader;
use throng_protocol::websocket::{self, FrameReader, Key};

use super::backlog::{Backlog, Waits};
use super::besides::waiting_bytes;
use super::flow::at_pc;
use super::life::Life;
use super::outcome::Onward;
use super::unsent::Unsent;
use super::{Doing, Turn, User};
use crate::budget::{Held, Purse};
use crate::connector::{self, Failure, Opened, Order, Upgrade};
use crate::prepared::{Plan, is_websocket, upgrade_headers};
use crate::recorder::Attempt;
use crate::scope::{UserScope, scope};
use crate::transport::Transport;
use crate::transport::pace::{Allowance, Pace};
use crate::transport::pieces::Pieces;
use crate::transport::stream::Received;
use crate::verify::Finding;

/// How long a WebSocket may take to end in order once we have said goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(5);
/// What may wait for a target that does not read.
const UNSENT_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(super) struct Connection {
    pub(super) transport: Transport,
    pub(super) peer: Peer,
    /// What the socket did not take yet.
    unsent: Option<Box<Unsent>>,
    /// What came and is for whoever asks next. Boxed, as hardly any connection ever has it and a
    /// million are there.
    later: Option<Box<Kept>>,
    /// TLS holds bytes that the socket did not take yet.
    unflushed: bool,
    /// When the last answer over it was complete; zero before the first.
    pub(super) used: Time,
    /// When `life` began.
    pub(super) since: Time,
    pub(super) life: Life,
    /// The target has said something that nobody has asked for.
    pub(super) heard: bool,
    pub(super) deflate: bool,
    pub(super) target: u16,
    /// It is slow on purpose.
    pace: Option<Box<Slowness>>,
    /// What it has of the shard's budget, for all that it keeps.
    held: Held,
}

struct Slowness {
    pace: Pace,
    /// When more may be read or written, if that is all that is waited for.
    wake: Time,
}

/// The machine that reads what comes.
pub(super) enum Peer {
    Http(ResponseReader),
    WebSocket(FrameReader),
    Stream(StreamReader),
    /// A declared protocol.
    Packets(PacketReader),
}

/// What has come and was not looked at.
pub(super) enum Later {
    /// Bytes right behind the answer to an upgrade: the next thing to read, whoever listens.
    Surplus(Vec<u8>),
    /// Bytes of a raw stream behind an answer, but for those up to `from`.
    Bytes { bytes: Vec<u8>, from: usize },
    /// A message that nobody has taken.
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

/// What a connection keeps for whoever asks next.
#[derive(Default)]
struct Kept {
    later: Backlog<Later>,
    /// Messages that were dropped, as there was no room for them.
    dropped: u64,
}

/// The words for a close that came instead of an answer.
// sentences
const NOTHING_ASKED: &str = "closed before any answer";

/// Who ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    ByUs,
    /// By us, in the middle of whatever it was for: it says nothing about the target.
    CutOff,
    ByTarget,
    Reset,
    ResetByUs,
    Vanished,
    HalfClosed,
    TimedOut,
}

impl Ended {
    /// Counts a connection that ended so.
    pub(crate) fn count(self, counters: &mut Connections) {
        *match self {
            Ended::ByUs | Ended::CutOff => &mut counters.closed_by_us,
            Ended::ByTarget => &mut counters.closed_by_target,
            Ended::Reset => &mut counters.reset,
            Ended::ResetByUs => &mut counters.reset_by_us,
            Ended::Vanished => &mut counters.vanished,
            Ended::HalfClosed => &mut counters.half_closed,
            Ended::TimedOut => &mut counters.timed_out,
        } += 1;
    }

    /// Why, where it was not what we wanted and nothing more is known.
    fn cause(self) -> Option<Cause> {
        match self {
            Ended::ByUs
            | Ended::CutOff
            | Ended::ResetByUs
            | Ended::Vanished
            | Ended::HalfClosed => None,
            Ended::ByTarget => Some(Cause::Lost),
            Ended::Reset => Some(Cause::Reset),
            Ended::TimedOut => Some(Cause::Timeout),
        }
    }
}

/// A connection that opens.
pub(super) struct Opening {
    work: Pin<Box<dyn Future<Output = Result<Opened, Failure>>>>,
    stage: Rc<Cell<Stage>>,
    target: u16,
}

impl Opening {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Opened, Failure>> {
        self.work.as_mut().poll(cx)
    }
}

impl User {
    /// Opens a connection to the user's target; `opened` goes on from there.
    pub(super) fn open(&mut self, target: u16, upgrade: Option<Upgrade>, timeout: Duration) {
        let stage = Rc::new(Cell::new(Stage::Connect));
        let turn = self.id.0.wrapping_add(u64::from(self.turn));
        self.turn = self.turn.wrapping_add(1);
        let slow = self.shard.prepared.sessions[usize::from(self.session)].links[0].slow;
        let order = Order { target, turn, upgrade, times: Cell::default(), who: self.who(), slow };
        let work = connector::open(Rc::clone(&self.shard), order, Rc::clone(&stage));
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.connections.attempted += 1;
        recorder.gauges.connections_opening += 1;
        drop(recorder);
        let opening = Opening { work: Box::pin(work), stage, target };
        self.wait_for(Doing::Opening(Box::new(opening)), self.now + timeout);
    }

    /// The verb `connect`: on a WebSocket target with the upgrade.
    pub(super) fn connect(&mut self, connect: &Connect) {
        if self.connection.is_some() {
            self.drop_connection(Ended::ByUs);
        }
        let shard = Rc::clone(&self.shard);
        let target = &shard.prepared.targets[usize::from(self.target)];
        let (mut upgrade, mut to) = (None, self.target);
        self.flight_begins(connect.step);
        self.life_begins();
        if is_websocket(target.target.scheme) {
            let mut scope = scope!(self, &shard);
            let asked = upgrade_of(connect, &mut scope).map_err(|fault| scope.finding(fault));
            match asked.and_then(|asked| self.lead_upgrade(connect, asked)) {
                Ok((target, asked)) => (to, upgrade) = (target, Some(asked)),
                Err(finding) => {
                    let onward = Onward::Anew { refused: true };
                    return self.step_failed(connect.step, &Attempt::default(), finding, onward);
                }
            }
        }
        self.open(to, upgrade, connect.timeout);
    }

    /// As with a request: a path that begins with a value may be a URL.
    fn lead_upgrade(&self, connect: &Connect, asked: Upgrade) -> Result<(u16, Upgrade), Finding> {
        let is_path = asked.path.starts_with('/') && !asked.path.starts_with("//");
        if connect.path.begins_with().is_none() || is_path || asked.path.is_empty() {
            return Ok((self.target, asked));
        }
        let (target, path) = self.resolve(&connect.path, &asked.path)?;
        match is_websocket(self.shard.prepared.targets[usize::from(target)].target.scheme) {
            true => Ok((target, Upgrade { path, ..asked })),
            false => Err((Cause::ScenarioFailed, no_web_socket(&asked.path))),
        }
    }

    /// A connection is open, or it is known why not.
    pub(super) fn opened(&mut self, result: Result<Opened, Failure>) {
        let (target, stage) = match std::mem::replace(&mut self.doing, Doing::Step) {
            Doing::Opening(opening) => (opening.target, opening.stage.get()),
            _ => (self.target, Stage::Connect),
        };
        self.deadline = Time::NEVER;
        self.shard.recorder.borrow_mut().gauges.connections_opening -= 1;
        match result {
            Ok(opened) => self.attach(opened, target),
            Err(failure) => {
                self.ended_unopened(stage, failure.cause);
                self.not_opened(&failure);
            }
        }
    }

    /// A connection that was established ended before it was open: counts who ended it.
    fn ended_unopened(&self, stage: Stage, cause: Cause) {
        if stage <= Stage::Connect {
            return;
        }
        let counters = &mut self.shard.recorder.borrow_mut().connections;
        match cause {
            Cause::ClosedEarly => counters.closed_by_target += 1,
            Cause::Reset => counters.reset += 1,
            Cause::Timeout | Cause::Unreachable | Cause::NetworkFailed => counters.timed_out += 1,
            // It was our word: the certificate, or the answer, is not to our liking.
            _ => counters.closed_by_us += 1,
        }
    }

    fn attach(&mut self, opened: Opened, target: u16) {
        self.loss = None;
        let scheme = self.shard.prepared.targets[usize::from(target)].target.scheme;
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.connections.opened += 1;
        recorder.gauges.connections_open += 1;
        recorder.bytes_in += opened.bytes_in;
        recorder.bytes_out += opened.bytes_out;
        drop(recorder);
        let peer = match scheme {
            _ if is_websocket(scheme) => {
                Peer::WebSocket(FrameReader::new(websocket::Role::Client, opened.deflate))
            }
            throng_program::Scheme::Http | throng_program::Scheme::Https => {
                Peer::Http(ResponseReader::new())
            }
            _ if self.protocol().is_some() => Peer::Packets(PacketReader::new()),
            _ => Peer::Stream(StreamReader::new()),
        };
        self.connection = Some(Connection {
            transport: opened.transport,
            peer,
            unsent: None,
            later: None,
            unflushed: false,
            used: Time::ZERO,
            since: self.now,
            life: Life::Passing,
            heard: false,
            deflate: opened.deflate,
            target,
            pace: None,
            held: Held::default(),
        });
        if !opened.surplus.is_empty() {
            self.keep_again(Later::Surplus(opened.surplus));
        }
        if self.shard.is_traced() {
            self.trace_connected(target, &opened.times);
        }
        at_pc!(self, _shard, instruction, plan);
        if let Instruction::Connect(connect) = instruction {
            self.connected(matches!(plan, Plan::Connect { has_login: true }));
            let attempt = Attempt {
                latency: Some(self.now - self.due),
                code: opened.status,
                bytes_in: opened.bytes_in,
                bytes_out: opened.bytes_out,
                ..Attempt::default()
            };
            self.step_ok(connect.step, &attempt);
            self.next_step();
        }
    }

    fn not_opened(&mut self, failure: &Failure) {
        if failure.cause == Cause::ConnectTimeout {
            self.shard.recorder.borrow_mut().connections.timed_out += 1;
        }
        at_pc!(self, _shard, instruction, _plan);
        let attempt = Attempt { code: failure.status, ..Attempt::default() };
        let finding = (failure.cause, failure.detail.clone());
        match instruction {
            Instruction::Connect(connect) => {
                let onward = Onward::Anew { refused: true };
                self.step_failed(connect.step, &attempt, finding, onward);
            }
            Instruction::Http(http) => {
                self.withdraw_again();
                self.redirect = None;
                self.step_failed(http.step, &attempt, finding, Onward::HoldBack);
            }
            // Only these two open connections.
            _ => {
                self.interrupt();
                self.restart(true);
            }
        }
    }

    pub(super) fn opening_timed_out(&mut self, opening: &Opening) {
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.gauges.connections_opening -= 1;
        let stage = opening.stage.get();
        let cause = match stage {
            Stage::Tls | Stage::Upgrade => Cause::Timeout,
            _ => Cause::ConnectTimeout,
        };
        recorder.stage_failed(stage, cause);
        drop(recorder);
        self.ended_unopened(stage, cause);
        let waited = throng_base::units::format_duration(self.now - self.due);
        let detail = match stage {
            Stage::Tls => format!("no end of the TLS handshake after {waited}"),
            Stage::Upgrade => format!("no answer to the WebSocket upgrade after {waited}"),
            _ => format!("no answer to the connect after {waited}"),
        };
        self.not_opened(&Failure::new(cause, detail));
    }

    /// Sends bytes, and keeps what the socket does not take at once.
    #[inline]
    pub(super) fn send(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> io::Result<()> {
        self.send_with(bytes, None, cx)
    }

    /// The same, and behind it bytes that lie elsewhere for all users: they are not copied.
    pub(super) fn send_with(
        &mut self,
        own: &[u8],
        shared: Option<&Arc<[u8]>>,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        let pieces = Pieces { own, shared: shared.map_or(&[], |shared| shared) };
        let Some(connection) = &mut self.connection else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if let Some(unsent) = &mut connection.unsent {
            if connection.transport.is_datagram() {
                // Datagrams are not joined.
                return Err(io::Error::other("the socket takes no more datagrams now"));
            }
            if unsent.left().len() + pieces.len() > UNSENT_BYTES_MAX {
                let text = format!("the target does not read: {UNSENT_BYTES_MAX} bytes wait");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            unsent.add(own, shared);
            return connection
                .pay(waiting_bytes(&self.besides), &self.shard.purse)
                .map_err(no_memory);
        }
        let sent = connection.write(pieces, self.now, cx)?;
        if sent < pieces.len() {
            connection.unsent = Some(Box::new(Unsent::new(own, shared, sent)));
            connection.pay(waiting_bytes(&self.besides), &self.shard.purse).map_err(no_memory)?;
        }
        self.shard.recorder.borrow_mut().bytes_out += sent as u64;
        Ok(())
    }

    /// Whether the socket has taken everything.
    pub(super) fn is_sent(&self) -> bool {
        self.connection
            .as_ref()
            .is_none_or(|connection| connection.unsent.is_none() && !connection.unflushed)
    }

    /// Writes what waits and reads what is there, until nothing is left to do or the user has
    /// something new to do.
    pub(super) fn listen(&mut self, cx: &mut Context<'_>) -> Turn {
        let shard = Rc::clone(&self.shard);
        if let Some(bytes) = self.take_surplus() {
            self.received(&bytes, cx);
            return Turn::Again;
        }
        let Some(connection) = &mut self.connection else {
            // Nothing can come any more; a user that only waited for the end goes on.
            return match self.doing {
                Doing::Closing => self.closed_in_order(),
                _ => Turn::Wait,
            };
        };
        if connection.pace.is_some() {
            self.now = shard.clock.now();
        }
        if let Err(error) = self.push_unsent(cx) {
            self.unsendable(error);
            if !matches!(self.doing, Doing::Answer(_)) {
                return Turn::Again;
            }
        }
        if matches!(self.doing, Doing::Sending(_)) && self.is_sent() {
            self.now = shard.clock.now();
            self.sent();
            return Turn::Again;
        }
        if self.besides.is_some() && self.is_sent() {
            self.bodies_sent(cx);
        }
        loop {
            let Some(connection) = &mut self.connection else { return Turn::Again };
            let mut buffer = shard.read_buffer.borrow_mut();
            let Some(most) = connection.may_read(self.now, buffer.len()) else {
                self.arm_alarm();
                return Turn::Wait;
            };
            match connection.transport.poll_read(cx, &mut buffer[..most]) {
                Poll::Pending => {
                    if let Some(error) = self.take_unsendable_for_good() {
                        self.broken(&error);
                        return Turn::Again;
                    }
                    if self.slow_until() != Time::NEVER {
                        self.arm_alarm();
                    }
                    return Turn::Wait;
                }
                Poll::Ready(read) => {
                    let now = shard.clock.now();
                    self.now = now;
                    let is_datagram = connection.transport.is_datagram();
                    match read {
                        Ok(Received { bytes: 0, .. }) if !is_datagram => self.ended_by_target(),
                        Ok(Received { bytes, stamp }) => {
                            connection.has_read(bytes);
                            shard.recorder.borrow_mut().bytes_in += bytes as u64;
                            // It counts by when it came, and what follows begins now. Who reads
                            // slowly has it when it is read.
                            if connection.pace.is_none() {
                                self.now = shard.arrived(now, stamp);
                            }
                            self.received(&buffer[..bytes], cx);
                            self.now = now;
                        }
                        Err(error) => self.broken(&error),
                    }
                }
            }
            if matches!(self.doing, Doing::Step) {
                return Turn::Again;
            }
        }
    }

    /// Writes what waits for the socket.
    fn push_unsent(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let sent = connection.push(self.now, cx)?;
        if connection.held.bytes() > 0 {
            // It keeps less now, which is always allowed.
            let _ = connection.pay(waiting_bytes(&self.besides), &self.shard.purse);
        }
        self.shard.recorder.borrow_mut().bytes_out += sent;
        Ok(())
    }

    /// Bytes came. What is kept of them has to be within the budget.
    pub(super) fn received(&mut self, bytes: &[u8], cx: &mut Context<'_>) {
        match self.connection.as_ref().map(|connection| &connection.peer) {
            Some(Peer::Http(_)) => self.http_received(bytes),
            Some(Peer::WebSocket(_)) => self.frames_received(bytes, cx),
            Some(Peer::Stream(_)) => {
                let used = self.stream_received(bytes, cx);
                if used < bytes.len() {
                    self.keep_again(Later::Bytes { bytes: bytes[used..].to_vec(), from: 0 });
                }
            }
            Some(Peer::Packets(_)) if self.is_datagram() => self.heard(bytes, cx),
            Some(Peer::Packets(_)) => self.packets_received(bytes, cx),
            None => {}
        }
        if let Some(connection) = &mut self.connection
            && let Err((cause, detail)) =
                connection.pay(waiting_bytes(&self.besides), &self.shard.purse)
        {
            self.lost(&Failure::new(cause, detail), Ended::ByUs);
        }
    }

    /// What came right behind the answer to an upgrade.
    fn take_surplus(&mut self) -> Option<Vec<u8>> {
        let connection = self.connection.as_mut()?;
        let later = &mut connection.later.as_mut()?.later;
        match later.pop_if(|first| matches!(first, Later::Surplus(_)))? {
            Later::Surplus(bytes) => Some(bytes),
            Later::Bytes { .. } | Later::Message { .. } => None,
        }
    }

    /// All that is kept for whoever asks next.
    pub(super) fn take_kept(&mut self) -> Backlog<Later> {
        let Some(connection) = &mut self.connection else { return Backlog::default() };
        let Some(kept) = &mut connection.later else { return Backlog::default() };
        let later = std::mem::take(&mut kept.later);
        if kept.dropped == 0 {
            connection.later = None;
        }
        later
    }

    /// What was taken and not used: it comes before all that is kept.
    pub(super) fn keep_again(&mut self, first: Later) {
        if let Some(connection) = &mut self.connection {
            connection.later.get_or_insert_default().later.push_first(first);
        }
    }

    /// The same with all of these; nobody asks for them any more when the connection is gone.
    pub(super) fn keep_all_again(&mut self, first: Backlog<Later>) {
        match &mut self.connection {
            _ if first.is_empty() => {}
            Some(connection) => {
                let later = &mut connection.later.get_or_insert_default().later;
                *later = first.followed_by(std::mem::take(later));
            }
            None => self.count_unasked(&first),
        }
    }

    /// Keeps a message for whoever asks next. Where there is no room, what came first is dropped:
    /// it is asked for least.
    pub(super) fn keep_message(&mut self, payload: &[u8], is_reply: bool) {
        let Some(connection) = &mut self.connection else { return };
        let kept = connection.later.get_or_insert_default();
        let mut dropped = 0;
        while !kept.later.has_room(payload.len()) && kept.later.pop().is_some() {
            dropped += 1;
        }
        kept.dropped += dropped;
        kept.later.push(Later::Message { payload: payload.to_vec(), is_reply });
        self.shard.recorder.borrow_mut().messages.dropped += dropped;
    }

    /// How many messages of this connection were dropped that may have been asked for.
    pub(super) fn dropped(&self) -> u64 {
        let kept = self.connection.as_ref().and_then(|connection| connection.later.as_ref());
        kept.map_or(0, |kept| kept.dropped)
    }

    fn count_unasked(&self, kept: &Backlog<Later>) {
        let mut recorder = self.shard.recorder.borrow_mut();
        for one in kept.iter() {
            match one {
                Later::Message { is_reply: true, .. } => recorder.messages.unasked += 1,
                Later::Message { .. } => recorder.messages.pushes += 1,
                Later::Surplus(_) | Later::Bytes { .. } => {}
            }
        }
    }

    /// The connection is forgotten, and counted by who ended it.
    pub(super) fn drop_connection(&mut self, ended: Ended) {
        self.end_connection(ended, ended.cause());
    }

    /// As [`User::drop_connection`], with why it was not what we wanted, if it was not.
    fn end_connection(&mut self, ended: Ended, cause: Option<Cause>) {
        if self.connection.is_some() {
            self.end_beats(cause);
            self.end_besides(cause);
        }
        // Nobody has asked for what was kept.
        let kept = self.take_kept();
        self.count_unasked(&kept);
        let Some(connection) = self.connection.take() else { return };
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.gauges.connections_open -= 1;
        match connection.life {
            // Whatever the target made of our goodbye: it was ours.
            Life::Ending { .. } => Ended::ByUs.count(&mut recorder.connections),
            _ => ended.count(&mut recorder.connections),
        }
        drop(recorder);
        match ended {
            Ended::CutOff => self.cut_off(connection.life),
            _ => self.connection_over((connection.life, connection.since), cause),
        }
        match ended {
            Ended::ResetByUs => connection.transport.reset(),
            Ended::Vanished => self.shard.connector.vanish(connection.transport, self.now),
            Ended::HalfClosed => self.shard.connector.half_close(connection.transport, self.now),
            _ => {}
        }
    }

    /// Ends the connection in order: a WebSocket by its close handshake, others by FIN.
    pub(super) fn close(&mut self, cx: &mut Context<'_>) {
        let is_websocket = self
            .connection
            .as_ref()
            .is_some_and(|connection| matches!(connection.peer, Peer::WebSocket(_)));
        if is_websocket && self.send_close(1000, cx).is_ok() {
            self.goodbye_said();
            return self.wait_for(Doing::Closing, self.now + GOODBYE_MAX);
        }
        if let Some(connection) = &mut self.connection {
            connection.transport.say_goodbye(cx);
        }
        self.drop_connection(Ended::ByUs);
    }

    /// Whether what comes in one piece is one message.
    fn is_datagram(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.transport.is_datagram())
    }

    /// The verb `slow`: how fast the connection is from now on.
    pub(super) fn slow_down(&mut self, slow: Slow) {
        let now = self.now;
        if let Some(connection) = &mut self.connection {
            let pace = Pace::new(slow, now);
            connection.pace =
                pace.map(|pace| Box::new(Slowness { pace: *pace, wake: Time::NEVER }));
        }
        self.next_step();
    }

    /// When a connection that is slow on purpose goes on.
    pub(super) fn slow_until(&self) -> Time {
        let slow = self.connection.as_ref().and_then(|connection| connection.pace.as_ref());
        slow.map_or(Time::NEVER, |slow| slow.wake)
    }

    /// The connection is of no more use, and the target is to close it: nobody waits for that.
    pub(super) fn leave_to_target(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.shard.left.borrow_mut().add(connection.transport, self.now, &self.shard.recorder);
        }
    }

    pub(super) fn closed_in_order(&mut self) -> Turn {
        self.deadline = Time::NEVER;
        self.doing = Doing::Step;
        // The time that closing took is not the next step's.
        self.due = self.due.max(self.now);
        if self.rejoins {
            self.rejoin();
        }
        Turn::Again
    }

    /// The last words of a user that goes without having disconnected.
    pub(super) fn say_goodbye(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection {
            connection.transport.say_goodbye(cx);
        }
        self.drop_connection(Ended::ByUs);
    }

    /// The target closed its side.
    fn ended_by_target(&mut self) {
        let reader = match self.connection.as_mut().map(|connection| &mut connection.peer) {
            Some(Peer::Http(reader)) => Some(reader.close(&mut |_| {})),
            _ => None,
        };
        if !matches!(reader, Some(Ok(true)))
            && let Some(error) = self.take_unsendable()
        {
            return self.broken(&error);
        }
        match (&self.doing, reader) {
            (Doing::Closing, _) => {
                // A WebSocket ends after our goodbye.
                self.drop_connection(Ended::ByUs);
                self.closed_in_order();
            }
            (Doing::Answer(_), Some(Ok(true))) => {
                self.drop_connection(Ended::ByTarget);
                self.answered(false);
            }
            (Doing::Answer(_), Some(Err(error))) => {
                let failure = connector::http_failure(&error);
                self.lost(&failure, Ended::ByTarget);
            }
            _ => {
                let detail = self.half_a_packet().unwrap_or_else(|| NOTHING_ASKED.to_string());
                let failure = Failure::new(Cause::ClosedEarly, detail);
                self.lost(&failure, Ended::ByTarget);
            }
        }
    }

    /// What has come of a packet that is not complete.
    fn half_a_packet(&self) -> Option<String> {
        let Some(Connection { peer: Peer::Packets(reader), .. }) = &self.connection else {
            return None;
        };
        let held = reader.held().len();
        (held > 0).then(|| format!("closed in the middle of a packet, after {held} of its bytes"))
    }

    /// Reading or writing failed.
    pub(super) fn broken(&mut self, error: &io::Error) {
        let failure = connector::lost_failure(error);
        let ended = match failure.cause {
            Cause::Reset => Ended::Reset,
            Cause::Timeout => Ended::TimedOut,
            // TLS ended without its last word: a close that TLS does not trust.
            Cause::ClosedEarly => return self.ended_by_target(),
            // It said that it ends here.
            Cause::ClientCertificate => Ended::ByTarget,
            // Nobody listens to our datagrams.
            Cause::ConnectRefused => Ended::Reset,
            // The way to the target is gone: nothing comes any more.
            Cause::Unreachable | Cause::NetworkFailed => Ended::TimedOut,
            _ => Ended::ByUs,
        };
        match self.doing {
            Doing::Closing => {
                self.drop_connection(ended);
                self.closed_in_order();
            }
            _ => self.lost(&failure, ended),
        }
    }

    /// The connection is gone in the middle of something, or of nothing.
    pub(super) fn lost(&mut self, failure: &Failure, ended: Ended) {
        if self.in_body {
            return self.lost_in_body(failure, ended);
        }
        let unheard = self.is_unheard(ended);
        self.end_connection(ended, Some(lost_cause(failure.cause)));
        at_pc!(self, _shard, instruction, _plan);
        match std::mem::replace(&mut self.doing, Doing::Step) {
            Doing::Answer(answer) => self.answer_lost(answer, failure, unheard),
            Doing::Message(awaited) => {
                let finding = (failure.cause, failure.detail.clone());
                let onward = Onward::Anew { refused: false };
                self.message_failed(&awaited, finding, None, onward);
            }
            Doing::Stay if let Instruction::Stay(stay) = instruction => {
                let cause = match failure.cause {
                    Cause::Reset => Cause::Lost,
                    other => lost_cause(other),
                };
                let finding = (cause, loss_in_words(failure, ended).to_string());
                let onward = Onward::Anew { refused: true };
                self.step_failed(stay.step, &Attempt::default(), finding, onward);
            }
            Doing::Sending(sent) => self.sending_failed(&sent, failure),
            // HTTP users reconnect with their next request; others find out at their next step.
            other => {
                let words = loss_in_words(failure, ended).to_string();
                self.loss = Some(Box::new((lost_cause(failure.cause), words)));
                self.doing = other;
            }
        }
    }
}

// sentences
fn no_web_socket(url: &str) -> String {
    format!("`{url}` is not the URL of a WebSocket")
}

/// The upgrade request of a WebSocket as one user sends it.
fn upgrade_of(connect: &Connect, scope: &mut UserScope<'_>) -> Result<Upgrade, Fault> {
    let mut path = Vec::new();
    connect.path.render(&mut path, scope)?;
    Ok(Upgrade {
        path: String::from_utf8_lossy(&path).into_owned(),
        headers: upgrade_headers(connect, scope)?,
        protocols: connect.protocols.clone(),
        key: Key::random(scope.random),
    })
}

/// The cause of a close that came while nothing was asked, which is no early one.
fn lost_cause(cause: Cause) -> Cause {
    match cause {
        Cause::ClosedEarly => Cause::Lost,
        other => other,
    }
}

/// How a connection went that was lost while nothing was asked.
// sentences
fn loss_in_words(failure: &Failure, ended: Ended) -> &str {
    match ended {
        Ended::ByTarget if failure.detail == NOTHING_ASKED => "the target closed the connection",
        _ => &failure.detail,
    }
}

/// A write that the budget does not allow.
fn no_memory((_, detail): Finding) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, detail)
}

impl Connection {
    /// What it keeps of what came, and of what waits to be sent.
    fn kept_bytes(&self) -> usize {
        let read = match &self.peer {
            // Its body is the answer's; its head is small.
            Peer::Http(_) => 0,
            Peer::WebSocket(reader) => reader.heap_bytes(),
            Peer::Stream(reader) => reader.heap_bytes(),
            Peer::Packets(reader) => reader.heap_bytes(),
        };
        let later = self.later.as_ref().map_or(0, |kept| kept.later.bytes());
        let unsent = self.unsent.as_ref().map_or(0, |unsent| unsent.heap_bytes());
        read + unsent + later
    }

    /// Takes what it keeps out of the budget, and what waits for handlers of its messages; or gives
    /// back what is kept no more.
    fn pay(&mut self, waiting: usize, purse: &Rc<Purse>) -> Result<(), Finding> {
        let kept = self.kept_bytes() + waiting;
        match kept == self.held.bytes() || self.held.resize(kept, purse) {
            true => Ok(()),
            false => Err(purse.refusal()),
        }
    }

    /// How many bytes may be read now into so much room; None before there is another moment.
    fn may_read(&mut self, now: Time, room: usize) -> Option<usize> {
        let Some(slow) = &mut self.pace else { return Some(room) };
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

    /// Whether the target's host has acknowledged nothing of a request of so many bytes, which is
    /// the last that was written. With TLS it is longer on the way.
    pub(super) fn took_nothing(&self, request_bytes: u64) -> bool {
        let unsent = self.unsent.as_ref().map_or(0, |unsent| unsent.left().len());
        let written = request_bytes.saturating_sub(unsent as u64);
        self.transport.unacknowledged().is_some_and(|bytes| bytes >= written)
    }

    /// What was not sent never will be.
    pub(super) fn forget_unsent(&mut self) {
        (self.unsent, self.unflushed) = (None, false);
    }

    fn has_read(&mut self, bytes: usize) {
        if let Some(slow) = &mut self.pace {
            slow.pace.has_read(bytes);
        }
    }

    /// Writes as much as the socket takes, and as a slow connection may.
    fn write(&mut self, pieces: Pieces<'_>, now: Time, cx: &mut Context<'_>) -> io::Result<usize> {
        let mut sent = 0;
        while sent < pieces.len() {
            let mut most = pieces.len() - sent;
            if let Some(slow) = &mut self.pace {
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
                Poll::Ready(written) => {
                    let written = written?;
                    sent += written;
                    if let Some(slow) = &mut self.pace {
                        slow.pace.has_written(written);
                    }
                }
                Poll::Pending => break,
            }
        }
        self.unflushed = self.flush(cx)?;
        Ok(sent)
    }

    /// Goes on with what the socket did not take before; how many bytes it took now.
    fn push(&mut self, now: Time, cx: &mut Context<'_>) -> io::Result<u64> {
        let mut sent = 0;
        if let Some(slow) = &mut self.pace {
            slow.wake = Time::NEVER;
        }
        if let Some(mut unsent) = self.unsent.take() {
            sent = self.write(unsent.left(), now, cx)?;
            unsent.has_sent(sent);
            if unsent.left().len() > 0 {
                self.unsent = Some(unsent);
            }
        } else if self.unflushed {
            self.unflushed = self.flush(cx)?;
        }
        Ok(sent as u64)
    }

    /// True while TLS holds bytes that the socket does not take.
    fn flush(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        match self.transport.poll_flush(cx) {
            Poll::Pending => Ok(true),
            Poll::Ready(flushed) => flushed.map(|()| false),
        }
    }
}
