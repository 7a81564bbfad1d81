//! One accepted connection: reads for its session, keeps answers until they are due, writes them.
//!
//! Its task runs when the socket is ready; the worker's timer and deliveries call in between.
//! While it is idle it owns no buffer.

mod delivery;
mod http2;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use throng_base::Time;
use tokio::task::spawn_local;

use crate::address::Address;
use crate::arrival::Arrival;
use crate::http::After;
use crate::http::Tail;
use crate::output::{Finish, LAST_CHUNK, Output, Segment, Written, write_chunk};
use crate::session::{Role, Session};
use crate::stream::Stream;
use crate::sums::Sums;
use crate::system::Received;
use crate::turn::{Item, Turn, WAITING_ANSWERS_MAX};
use crate::worker::queued::Waits;
use crate::worker::{Due, Worker};

pub(crate) use delivery::Parcel;

/// What is read and forgotten from a peer that has been told to leave, and for how long.
const LINGER_BYTES_MAX: usize = 1024 * 1024;
const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
/// How many answers a connection gives before it lets others go on.
const ANSWERS_PER_TURN_MAX: usize = 64;
/// Of a connection that nobody else may speak to.
const NO_ADDRESS: Address = Address { worker: u16::MAX, generation: 0, place: u32::MAX };

pub(crate) struct Connection {
    worker: Rc<Worker>,
    /// Where others find it, or [`NO_ADDRESS`].
    address: Cell<Address>,
    state: RefCell<State>,
}

struct State {
    stream: Stream,
    session: Session,
    phase: Phase,
    /// What was read and not yet understood: an incomplete message, or what must wait.
    kept: Vec<u8>,
    /// When what was last read had arrived.
    arrived: Time,
    /// The session stopped because too many answers wait; there may be more to understand.
    stalled: bool,
    backlog: Option<Box<Backlog>>,
    waker: Option<Waker>,
}

/// What is not yet written.
#[derive(Default)]
struct Backlog {
    output: Output,
    /// Answers that are not yet due, in order.
    queue: VecDeque<Item>,
    /// When the timer is set for the first of them.
    scheduled: Option<Time>,
}

#[derive(Clone, Copy)]
enum Phase {
    Open,
    /// Half closed; so many bytes more are read and forgotten.
    Lingering(usize),
    Ended(End),
}

/// How a connection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    ByPeer,
    ByUs,
    Reset,
}

/// The task of a connection.
pub(crate) struct Serve(Rc<Connection>);

impl Serve {
    pub(crate) fn new(worker: Rc<Worker>, stream: Stream, role: Role) -> Serve {
        let state = State {
            stream,
            session: Session::new(role, worker.clock.now()),
            phase: Phase::Open,
            kept: Vec::new(),
            arrived: Time::ZERO,
            stalled: false,
            backlog: None,
            waker: None,
        };
        let address = Cell::new(NO_ADDRESS);
        let connection = Rc::new(Connection { worker, address, state: RefCell::new(state) });
        if role.has_others() {
            connection.address.set(connection.worker.seat(&connection));
        }
        Serve(connection)
    }

    /// Ends the connection at this moment, whatever it is doing then.
    pub(crate) fn end_at(&self, at: Time) {
        self.0.worker.timer.at(at, Due::Close(Rc::downgrade(&self.0)));
    }
}

impl Future for Serve {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match ready!(self.0.poll(cx)) {
            Some(end) => self.0.leave(end),
            None => drop(spawn_local(http2::serve(Rc::clone(&self.0)))),
        }
        Poll::Ready(())
    }
}

impl Connection {
    /// How the connection ended; None when it goes on with HTTP/2.
    fn poll(self: &Rc<Self>, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let state = &mut *self.state.borrow_mut();
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        loop {
            if let Phase::Ended(end) = state.phase {
                return Poll::Ready(Some(end));
            }
            if matches!(state.session, Session::Http2) {
                return Poll::Ready(None);
            }
            if state.writes() {
                if ready!(state.stream.poll_write_ready(cx)).is_err() {
                    state.phase = Phase::Ended(End::Reset);
                    continue;
                }
                if state.stream.flush().is_err() {
                    state.phase = Phase::Ended(End::Reset);
                    continue;
                }
                self.write(state);
                self.advance(state, self.worker.clock.now());
            } else if state.stalled {
                if state.waiting() >= WAITING_ANSWERS_MAX {
                    return Poll::Pending;
                }
                let arrival = Arrival { at: state.arrived, read: self.worker.clock.now() };
                self.understand(state, arrival, &mut []);
            } else {
                ready!(self.read(state, cx));
            }
        }
    }

    fn read(self: &Rc<Self>, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        let mut buffer = self.worker.take_buffer();
        let result = state.stream.poll_read(cx, &mut buffer);
        match (&result, state.phase) {
            (Poll::Pending, _) => {}
            (Poll::Ready(Err(_)), _) => state.phase = Phase::Ended(End::Reset),
            (Poll::Ready(Ok(received)), Phase::Lingering(left)) => {
                state.phase = match left.checked_sub(received.bytes) {
                    Some(left) if received.bytes > 0 => Phase::Lingering(left),
                    _ => Phase::Ended(End::ByUs),
                };
            }
            (Poll::Ready(Ok(Received { bytes: 0, .. })), _) => {
                state.phase = Phase::Ended(End::ByPeer);
            }
            (Poll::Ready(Ok(received)), _) => {
                let arrival = self.worker.arrivals.note(received.stamp);
                state.arrived = arrival.at;
                self.understand(state, arrival, &mut buffer[..received.bytes]);
            }
        }
        self.worker.return_buffer(buffer);
        result.map(drop)
    }

    /// Gives the session what was read, and writes what it answers.
    fn understand(self: &Rc<Self>, state: &mut State, arrival: Arrival, read: &mut [u8]) {
        let mut kept = std::mem::take(&mut state.kept);
        let mut full = false;
        self.take_turn(state, arrival, |session, turn| {
            turn.counts.bytes_in = read.len() as u64;
            if kept.is_empty() {
                let used = session.receive(read, turn);
                kept = read[used..].to_vec();
            } else {
                kept.extend_from_slice(read);
                let used = session.receive(&mut kept, turn);
                if used == kept.len() {
                    kept = Vec::new();
                } else {
                    kept.drain(..used);
                }
            }
            full = turn.is_full();
        });
        if matches!(state.phase, Phase::Open) {
            state.stalled = full && !kept.is_empty();
            state.kept = kept;
        }
    }

    /// Lets the session say something, and writes what it says.
    fn take_turn(
        self: &Rc<Self>,
        state: &mut State,
        arrival: Arrival,
        action: impl FnOnce(&mut Session, &mut Turn<'_>),
    ) {
        let worker = &self.worker;
        let random = &mut *worker.random.borrow_mut();
        let last_due = state.last_due();
        let mut turn = worker.turn(random, arrival, self.address.get(), state.waiting(), last_due);
        let before = state.session.is_logged_in();
        action(&mut state.session, &mut turn);
        if let Some(room) = turn.room.take() {
            worker.places.move_to(self.address.get(), room);
        }
        self.note_login(before, state.session.is_logged_in());
        self.end_turn(state, turn);
        self.advance(state, arrival.read);
    }

    /// Writes what a turn answers at once, and keeps the rest.
    fn end_turn(self: &Rc<Self>, state: &mut State, turn: Turn<'_>) {
        let worker = &self.worker;
        let figures = &mut *worker.figures();
        figures.counts.add(&turn.counts);
        worker.obey(&turn.orders);
        let written = match try_write(&mut state.stream, &turn.out) {
            Ok(written) => written,
            Err(_) => {
                figures.counts.unanswered += (turn.served.len() + turn.later.len()) as u64;
                turn.later.iter().filter_map(|item| item.queued).for_each(|number| {
                    worker.leave_queue(number);
                });
                state.phase = Phase::Ended(End::Reset);
                return worker.return_scratch(turn.out, turn.served);
            }
        };
        figures.counts.bytes_out += written as u64;
        if written == turn.out.len() {
            if !turn.served.is_empty() {
                let now = worker.clock.now();
                turn.served
                    .iter()
                    .for_each(|arrived| figures.service.record((now - *arrived).as_nanos() as u64));
            }
            if let Some(finish) = turn.finish {
                self.finish(state, finish);
            }
        } else {
            let output = &mut state.backlog.get_or_insert_default().output;
            output.push_bytes(&turn.out[written..]);
            turn.served.iter().for_each(|arrived| output.push(Segment::Served(*arrived)));
            if let Some(finish) = turn.finish {
                output.push(Segment::Finish(finish));
            }
        }
        if !turn.later.is_empty() {
            turn.later.iter().filter_map(|item| item.queued).for_each(|number| {
                worker.wait_for_queue(number, Rc::<Connection>::downgrade(self));
            });
            state.backlog.get_or_insert_default().queue.extend(turn.later);
        }
        worker.return_scratch(turn.out, turn.served);
    }

    /// Gives the answers that are due, one by one as the socket takes them, and sets the timer
    /// for the next.
    fn advance(self: &Rc<Self>, state: &mut State, now: Time) {
        for _ in 0..ANSWERS_PER_TURN_MAX {
            let Some(backlog) = &mut state.backlog else { return };
            if !backlog.output.is_empty() {
                return;
            }
            match backlog.queue.front() {
                None => {
                    state.backlog = None;
                    return;
                }
                Some(item) if item.queued.is_some() => return,
                Some(item) if item.due > now => {
                    let due = item.due;
                    return self.schedule(backlog, due);
                }
                Some(_) => {
                    let events = backlog.give(self.worker.setup.options.latency);
                    self.worker.figures().counts.events += events;
                }
            }
            self.write(state);
            if !matches!(state.phase, Phase::Open) {
                return;
            }
        }
        // Later than now, so that the timer does other things first.
        let soon = self.worker.clock.now() + Duration::from_nanos(1);
        if let Some(backlog) = &mut state.backlog {
            self.schedule(backlog, soon);
        }
    }

    fn schedule(self: &Rc<Self>, backlog: &mut Backlog, due: Time) {
        if backlog.scheduled.is_none_or(|scheduled| scheduled > due) {
            backlog.scheduled = Some(due);
            self.worker.timer.at(due, Due::Answer(Rc::downgrade(self)));
        }
    }

    fn write(self: &Rc<Self>, state: &mut State) {
        let Some(backlog) = &mut state.backlog else { return };
        let worker = &self.worker;
        let stream = &mut state.stream;
        let result = {
            let figures = &mut *worker.figures();
            backlog.output.write(
                |bytes| stream.try_write(bytes),
                |n| figures.counts.bytes_out += n as u64,
                |arrived| figures.service.record((worker.clock.now() - arrived).as_nanos() as u64),
            )
        };
        match result {
            Ok(Written::Finished(finish)) => self.finish(state, finish),
            Ok(Written::All | Written::Blocked | Written::Enough) => {}
            Err(_) => state.phase = Phase::Ended(End::Reset),
        }
    }

    fn finish(self: &Rc<Self>, state: &mut State, finish: Finish) {
        state.kept = Vec::new();
        state.stalled = false;
        if !matches!(finish, Finish::Reset) {
            state.stream.say_goodbye();
        }
        state.phase = match finish {
            Finish::Close => Phase::Ended(End::ByUs),
            Finish::Reset => {
                // If it cannot be reset, it is closed.
                let _ = state.stream.options().set_linger(Some(Duration::ZERO));
                Phase::Ended(End::ByUs)
            }
            Finish::Linger => match state.stream.options().shutdown(Shutdown::Write) {
                Ok(()) => {
                    let until = self.worker.clock.now() + LINGER_TIME_MAX;
                    self.worker.timer.at(until, Due::Close(Rc::downgrade(self)));
                    Phase::Lingering(LINGER_BYTES_MAX)
                }
                Err(_) => Phase::Ended(End::Reset),
            },
        };
    }

    /// The timer says that the first answer in the queue is due.
    pub(crate) fn answer_due(self: &Rc<Self>, now: Time) {
        let state = &mut *self.state.borrow_mut();
        if let Some(backlog) = &mut state.backlog {
            backlog.scheduled = None;
        }
        self.go_on(state, now);
    }

    /// Gives what is due now, outside of the connection's task.
    fn go_on(self: &Rc<Self>, state: &mut State, now: Time) {
        if matches!(state.phase, Phase::Open) {
            self.advance(state, now);
            if state.writes() || state.stalled || !matches!(state.phase, Phase::Open) {
                state.wake();
            }
        }
    }

    /// The timer says that the time of the connection is over.
    pub(crate) fn time_over(&self) {
        let state = &mut *self.state.borrow_mut();
        if !matches!(state.phase, Phase::Ended(_)) {
            state.phase = Phase::Ended(End::ByUs);
            state.wake();
        }
    }

    /// Keeps the gauge of those who are logged in.
    fn note_login(&self, before: bool, after: bool) {
        if before != after {
            let logged_in = &mut self.worker.figures().counts.logged_in;
            *logged_in = if after { *logged_in + 1 } else { *logged_in - 1 };
        }
    }

    /// Leaves the figures and the lists, before the socket is closed.
    fn leave(&self, end: End) {
        let worker = &self.worker;
        let address = self.address.get();
        let state = &mut *self.state.borrow_mut();
        let before = state.session.is_logged_in();
        state.session.end(&worker.setup, address);
        self.note_login(before, false);
        let mut swaps_unsent = 0;
        if address != NO_ADDRESS {
            swaps_unsent = u64::from(self.take_held().is_some());
            worker.places.leave(address);
        }
        let queued = state.backlog.iter().flat_map(|backlog| &backlog.queue);
        queued.filter_map(|item| item.queued).for_each(|number| worker.leave_queue(number));
        if worker.role != Role::Admin {
            worker.setup.door.leave();
        }
        let figures = &mut *worker.figures();
        figures.deliveries.swaps_unsent += swaps_unsent;
        let connections = &mut figures.counts.connections;
        connections.open -= 1;
        match end {
            End::ByPeer => connections.closed_by_peer += 1,
            End::ByUs => connections.closed_by_us += 1,
            End::Reset => connections.reset += 1,
        }
        figures.counts.unanswered += state.unanswered();
    }
}

impl Waits for Connection {
    fn departed(self: Rc<Self>, number: u64, at: Time, now: Time) {
        let state = &mut *self.state.borrow_mut();
        let Some(backlog) = &mut state.backlog else { return };
        let mut items = backlog.queue.iter_mut();
        let Some(item) = items.find(|item| item.queued == Some(number)) else { return };
        item.queued = None;
        item.due = match &item.tail {
            Tail::Pieces(pieces) => at + pieces.sleep,
            _ => at,
        };
        self.go_on(state, now);
    }
}

impl State {
    /// Whether something is to be written that the socket has not yet taken.
    fn writes(&self) -> bool {
        let owed = self.backlog.as_ref().is_some_and(|backlog| !backlog.output.is_empty());
        owed || self.stream.holds_back()
    }

    fn waiting(&self) -> usize {
        self.backlog.as_ref().map_or(0, |backlog| backlog.queue.len())
    }

    fn last_due(&self) -> Time {
        let last = self.backlog.as_ref().and_then(|backlog| backlog.queue.back());
        last.map_or(Time::ZERO, |item| item.due)
    }

    fn unanswered(&self) -> u64 {
        self.backlog.as_ref().map_or(0, |backlog| {
            let queued = backlog.queue.iter().filter(|item| item.arrived.is_some()).count();
            queued as u64 + backlog.output.unserved()
        })
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

impl Backlog {
    /// Moves the first answer, or its next piece, to the output; how many events that are.
    fn give(&mut self, latency: crate::latency::Latency) -> u64 {
        let mut count = 0;
        let Some(item) = self.queue.front_mut() else { return count };
        let data = std::mem::take(&mut item.bytes);
        self.output.push(Segment::Bytes { data, at: 0 });
        match &mut item.tail {
            Tail::None => {}
            Tail::Filler(size) => self.output.push(Segment::Filler(*size)),
            Tail::Chunked(size) => self.output.push(Segment::Chunked(*size)),
            Tail::Pieces(pieces) => {
                let mut data = Vec::new();
                if pieces.chunked {
                    write_chunk(&mut data, &pieces.piece);
                } else {
                    data.extend_from_slice(&pieces.piece);
                }
                pieces.left -= 1;
                if pieces.left == 0 && pieces.chunked {
                    data.extend_from_slice(LAST_CHUNK);
                }
                self.output.push(Segment::Bytes { data, at: 0 });
                if pieces.left > 0 {
                    item.due = latency.release(item.due + pieces.sleep);
                    return count;
                }
            }
            Tail::Events(events) => {
                let (mut event, mut data) = (Vec::new(), Vec::new());
                let after;
                (count, after) = events.step(&mut event);
                write_chunk(&mut data, &event);
                if after == After::Complete {
                    data.extend_from_slice(LAST_CHUNK);
                }
                if !data.is_empty() {
                    self.output.push(Segment::Bytes { data, at: 0 });
                }
                match after {
                    After::More(time) => {
                        item.due = latency.release(item.due + time);
                        return count;
                    }
                    After::Fault(finish) => item.finish = Some(finish),
                    After::Complete => {}
                }
            }
        }
        if let Some(item) = self.queue.pop_front() {
            let arrived = item.arrived.into_iter();
            arrived.for_each(|arrived| self.output.push(Segment::Served(arrived)));
            item.finish.into_iter().for_each(|end| self.output.push(Segment::Finish(end)));
        }
        count
    }
}

/// How much of `bytes` the socket takes now.
fn try_write(stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match stream.try_write(&bytes[written..]) {
            Ok(n) => written += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small() {
        // Beside these a connection has what the runtime keeps for its task and its socket.
        assert!(size_of::<Connection>() <= 208, "{}", size_of::<Connection>());
        assert!(size_of::<Serve>() <= 8);
        assert!(size_of::<Session>() <= 40, "{}", size_of::<Session>());
    }
}
