//! A virtual user: a small future that runs the tasks of its session and always listens on its
//! connections.
//!
//! A user consists of its state (`State`: place, values, connections, background tasks) and its
//! tasks. A [`Task`] runs instructions: the session, the body of a handler, or a recurring action.
//! A running task is an [`Active`]: it sees the state and itself, never another task. Results for
//! other tasks are left in the state, and the user passes them on.
//!
//! Each subject has a type of its own, which borrows the user for a moment:
//! - per line: [`listen::Inbound`] reads, [`send::Outbound`] writes, [`life::Lifecycle`] counts the
//!   stages of a connection, [`beat::Heartbeats`];
//! - per task: [`flow::Session`], the iterations and the leaving that only the session has; and
//!   each verb, in its module of [`verb`].
//!
//! State of a user:
//! - this module: the state, and the only place where a user waits; [`task`]: what a task is, and
//!   what it waits for; [`exchange`]: a request and its response; [`redirect`]: a request to
//!   another target or path;
//! - [`connection`]: one open connection, [`line`]: all of a user's; [`agenda`]: background tasks;
//!   [`grid`]: when recurring actions are due.
//!
//! Behavior of a user:
//! - [`listen`]: reads, and routes what it reads to its task;
//! - [`session`]: picks the next instruction; [`outcome`]: ends steps; [`flow`]: continues a task;
//!   [`transaction`]: times several steps together;
//! - [`streams`]: many requests over one connection; [`deliver`]: the user's part of the ledger;
//! - [`watched`]: reports every step to an observer; [`standstill`]: reports a user that nothing
//!   will wake.

mod agenda;
mod beat;
mod connection;
mod deliver;
mod exchange;
mod flow;
mod grid;
mod jar;
mod life;
mod line;
mod listen;
mod outcome;
mod redirect;
mod send;
mod session;
mod standstill;
mod streams;
mod task;
mod transaction;
mod verb;
mod watched;

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use throng_base::{Random, Time, UserId};
use throng_metrics::UserState;
use throng_program::CloseMode;
use throng_protocol::http1::Jar;

use crate::failure::Ended;
use crate::prepared::haste::After;
use crate::recorder::Iteration;
use crate::scope::memory::Memory;
use crate::shard::Lane;
use crate::trace::What;
use agenda::Agenda;
use connection::Connection;
use deliver::Audiences;
use exchange::Awaits;
use flow::Session;
use line::Lines;
use send::Outbound;
use task::{Active, Doing, Task};
use transaction::End;
use verb::opening::opened;
use verb::rendezvous;

pub(crate) struct User {
    state: State,
    session: Task,
}

/// Shared by all tasks of a user.
struct State {
    shard: Rc<Lane>,
    id: UserId,
    random: Random,
    /// Time of the event that the user handles; read once per wake-up.
    now: Time,
    iterations: u64,
    lines: Lines,
    jar: Option<Box<Jar>>,
    /// Values, registers and rows; `None` until the first one is written.
    memory: Option<Box<Memory>>,
    agenda: Option<Box<Agenda>>,
    audiences: Audiences,
    /// Correlation number of the last request.
    number: u32,
    slot: u32,
    /// Consecutive losses without being online in between.
    losses: u16,
    session: u16,
    /// Connections opened so far; selects the next address of the target.
    turn: u8,
    /// Consecutive connections that did not open.
    refusals: u8,
    /// Long-lived connections that are online.
    online: u8,
    /// The user was told to disconnect in the middle of a step.
    close_mode: Option<CloseMode>,
    /// The last connection was lost, or was closed on purpose by a user that stays in the run.
    fell_out: bool,
    /// After a graceful close, waits as `reconnect` specifies.
    rejoins: bool,
    /// Runs its session once and leaves.
    once: bool,
    leaving: bool,
    /// Within an iteration.
    running: bool,
    /// How it waits, as reported to the shard.
    waits: Waits,
    /// The clock woke it, and its next alarm is not set yet.
    is_unarmed: bool,
    /// A connection was lost, and the tasks that wait for it do not know yet.
    has_loss: bool,
}

/// Size of an optional connection.
pub(crate) const CONNECTION_BYTES: u64 = size_of::<Option<Connection>>() as u64;
/// Sizes of the boxed transactions of a user, and of the list in them.
pub(crate) const TRANSACTIONS_BYTES: [u64; 2] = transaction::SIZES;

/// Turns that a user takes before it yields. Fewer than the runtime's cooperative budget: once that
/// is spent, every socket appears to be full.
const TURNS_MAX: u32 = 32;

/// What a shard knows about how a user waits, as bits to keep the user small.
#[derive(Clone, Copy, Default)]
struct Waits(u8);

impl Waits {
    /// The shard has the user's waker.
    const IS_KNOWN: u8 = 1;
    /// It continues without delay when what it waits for arrives.
    const IS_HASTY: u8 = 1 << 1;
    /// It needs no wake-up time.
    const STANDS_BY: u8 = 1 << 2;
    /// A database transaction of the user is open. The shard does not use this bit; there was room.
    const IN_TRANSACTION: u8 = 1 << 3;

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    /// Sets the bit; true if it changed.
    fn change(&mut self, bit: u8, to: bool) -> bool {
        let changes = self.has(bit) != to;
        self.0 ^= if changes { bit } else { 0 };
        changes
    }

    fn tell_haste(&mut self, is_hasty: bool, shard: &Lane) {
        if self.change(Waits::IS_HASTY, is_hasty) {
            let count = &shard.hasty;
            count.set(if is_hasty { count.get() + 1 } else { count.get() - 1 });
        }
    }

    /// A user that does not stand by needs a wake-up time, or it would wait forever.
    fn tell_stands_by(&mut self, stands_by: bool, slot: u32, shard: &Lane) {
        if self.change(Waits::STANDS_BY, stands_by) {
            shard.slots.borrow_mut().stands_by(slot, stands_by);
        }
    }
}

/// Whether a user continues immediately.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Again,
    Wait,
    Gone,
}

impl User {
    pub(crate) fn new(
        shard: Rc<Lane>,
        slot: u32,
        id: UserId,
        random: Random,
        due: Time,
        once: bool,
    ) -> User {
        let session = flow::choose(shard.plan(), id);
        if shard.prepared.sessions[usize::from(session)].connects {
            shard.comes_to(slot, id, UserState::Disconnected);
        } else {
            shard.recorder.borrow_mut().interval.gauges.users_online += 1;
            shard.comes_to(slot, id, UserState::Online);
        }
        let state = State {
            now: shard.clock.now(),
            lines: Lines::new(&shard.prepared, session, id),
            shard,
            id,
            random,
            iterations: 0,
            jar: None,
            memory: None,
            agenda: None,
            audiences: Audiences::default(),
            number: 0,
            slot,
            losses: 0,
            session,
            turn: 0,
            refusals: 0,
            online: 0,
            close_mode: None,
            fell_out: false,
            rejoins: false,
            once,
            leaving: false,
            running: false,
            waits: Waits::default(),
            is_unarmed: false,
            has_loss: false,
        };
        User { state, session: Task::session(due) }
    }

    fn session<'a>(&'a mut self, shard: &'a Lane) -> Active<'a> {
        Active { shard, user: &mut self.state, task: &mut self.session, session: None }
    }

    fn go_on(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Poll<()> {
        let mut turns = 0;
        if self.state.waits.change(Waits::IS_KNOWN, true) {
            // Many users may have arrived together. A task's waker stays the same.
            self.state.now = shard.clock.now();
            shard.slots.borrow_mut().know(self.state.slot, cx.waker());
        }
        shard.polls.set(shard.polls.get() + 1);
        if shard.asks.get() && shard.slots.borrow_mut().take_asked(self.state.slot) {
            self.tell_standstill(shard);
        }
        loop {
            let turn = match self.session.doing {
                Doing::Step => self.step(shard, cx),
                _ => self.wait(shard, cx),
            };
            match turn {
                // A user that never has to wait yields to the others, and reads its sockets
                // meanwhile.
                Turn::Again if turns == TURNS_MAX => {
                    if matches!(self.session.doing, Doing::Step) {
                        self.listen(shard, cx);
                    }
                    // A loop without any wait still ends by its time limit.
                    self.state.now = shard.clock.now();
                    self.set_alarm();
                    self.state.waits.tell_stands_by(true, self.state.slot, shard);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Turn::Again => turns += 1,
                Turn::Wait => {
                    self.set_alarm();
                    let stays = matches!(self.session.doing, Doing::Stay);
                    let stands_by = stays && self.session.deadline == Time::NEVER;
                    self.state.waits.tell_stands_by(stands_by, self.state.slot, shard);
                    let is_hasty = self.would_be_held_up(shard);
                    self.state.waits.tell_haste(is_hasty, shard);
                    return Poll::Pending;
                }
                Turn::Gone => {
                    self.state.disconnect_all(cx);
                    return Poll::Ready(());
                }
            }
        }
    }

    /// The only place where a user waits. It always reacts to the shard, its alarms and its
    /// connections.
    fn wait(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Turn {
        let orders = shard.slots.borrow_mut().orders(self.state.slot);
        // Whatever it does first, it still has to set its next alarm.
        self.state.is_unarmed |= orders.fired;
        if orders.abort {
            if orders.begin.is_some() {
                shard.recorder.borrow_mut().sessions.begins(self.state.session);
                shard.iteration_ends(self.state.session, Iteration::Interrupted);
            }
            self.break_off();
            return Turn::Gone;
        }
        // An iteration that was assigned to a user that is leaving still starts.
        if orders.leave
            && orders.begin.is_none()
            && Session::new(&mut self.session(shard)).leaves_now()
        {
            return Turn::Again;
        }
        if let Some(how) = orders.part {
            match orders.begin.is_none() && Session::new(&mut self.session(shard)).parts_now() {
                true => {
                    Session::new(&mut self.session(shard)).part(how, cx);
                    return Turn::Again;
                }
                // Finish what has started first.
                false => self.state.close_mode = Some(how).filter(|_| self.state.is_online()),
            }
        }
        if let Some(due) = orders.begin
            && matches!(self.session.doing, Doing::Idle)
        {
            self.state.now = shard.clock.now();
            Session::new(&mut self.session(shard)).start_iteration(due);
            return Turn::Again;
        }
        match self.heed(shard, orders.fired, cx) {
            // Another task may have ended what the session waited for.
            Turn::Wait if matches!(self.session.doing, Doing::Step) => Turn::Again,
            // What had to be finished first may be finished by now.
            Turn::Wait if orders.leave && Session::new(&mut self.session(shard)).leaves_now() => {
                Turn::Again
            }
            turn => turn,
        }
    }

    /// Handles alarms, the connection that the session opens, and the open connections.
    fn heed(&mut self, shard: &Lane, fired: bool, cx: &mut Context<'_>) -> Turn {
        if fired {
            self.state.now = shard.clock.now();
            if let Doing::Rendezvous(waiting) = self.session.doing {
                rendezvous::woken(&mut self.session(shard), waiting);
                if !matches!(self.session.doing, Doing::Rendezvous(_)) {
                    return Turn::Again;
                }
            }
            if let Some(turn) = self.alarmed(shard, cx) {
                return turn;
            }
        }
        if let Doing::Opening(opening) = &mut self.session.doing
            && let Poll::Ready(result) = opening.poll(cx)
        {
            self.state.now = shard.clock.now();
            opened(&mut self.session(shard), result);
            return Turn::Again;
        }
        self.listen(shard, cx)
    }

    /// The time that the user waits for has been reached, or an earlier one.
    fn alarmed(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Option<Turn> {
        if self.state.now >= self.target_has_until() {
            // The bytes in the socket arrived in time: it is the generator that reads them late.
            let turn = self.listen(shard, cx);
            if matches!(self.session.doing, Doing::Step) || self.alarm() > self.state.now {
                return Some(turn);
            }
        }
        self.beats_woken(shard, cx);
        if self.state.agenda.as_ref().is_some_and(|agenda| self.state.now >= agenda.alarm()) {
            self.agenda_woken(shard, cx);
        }
        if matches!(self.session.doing, Doing::Step) {
            return Some(Turn::Again);
        }
        if self.state.now >= self.session.deadline {
            let due = self.session.deadline;
            // In an iteration that started late, a pause of length zero was due when the iteration
            // was.
            let is_late = self.session.is_scheduled && due <= self.session.due;
            if matches!(self.session.doing, Doing::Pause) && !is_late {
                shard.recorder.borrow_mut().late(self.state.now - due);
            }
            self.session(shard).deadline_passed();
            self.settle(shard, cx);
            return Some(Turn::Again);
        }
        None
    }

    /// Whether the user continues without delay when what it waits for arrives. If the shard sleeps
    /// longer, it delays such a user and its connection.
    fn would_be_held_up(&self, shard: &Lane) -> bool {
        let goes_on = || {
            let after = &shard.prepared.sessions[usize::from(self.state.session)].after;
            match after.get(self.session.pc as usize) {
                Some(After::Sends) => true,
                Some(After::Ends) => !self.state.once && !shard.paces_iterations(),
                Some(After::Waits) | None => false,
            }
        };
        match &self.session.doing {
            Doing::Step | Doing::Opening(_) | Doing::Join | Doing::Closing => true,
            Doing::Queued { .. } => true,
            Doing::Exchange(exchange) => match exchange.awaits {
                Awaits::Room | Awaits::Tls => true,
                // The rest of a response arrives only as fast as it is read.
                Awaits::Answer { .. } if exchange.first_byte > Time::ZERO => true,
                Awaits::Answer { .. } | Awaits::Message => !self.state.lines.is_sent() || goes_on(),
            },
            _ => !self.state.lines.is_sent(),
        }
    }

    /// The earliest deadline that the target can miss.
    fn target_has_until(&self) -> Time {
        if !self.state.lines.is_any_open() {
            return Time::NEVER;
        }
        let own = match &self.session.doing {
            Doing::Exchange(exchange) if exchange.awaits != Awaits::Room => self.session.deadline,
            Doing::Stay => self.session.deadline,
            _ => Time::NEVER,
        };
        let beats = self.state.lines.earliest(|line| line.beats.waits_until().min(line.due()));
        let agenda = self.state.agenda.as_ref().map_or(Time::NEVER, |one| one.waits_until());
        own.min(beats).min(agenda)
    }

    /// When the user has to act without input.
    fn alarm(&self) -> Time {
        let agenda = self.state.agenda.as_ref().map_or(Time::NEVER, |agenda| agenda.alarm());
        let lines = self.state.lines.earliest(|line| line.beats.alarm().min(line.alarm()));
        self.session.deadline.min(lines).min(agenda)
    }

    /// Alarms that were set since the last wake-up are armed already. A user that an alarm woke has
    /// to arm the next one.
    fn set_alarm(&mut self) {
        if std::mem::take(&mut self.state.is_unarmed) {
            self.state.arm(self.alarm());
        }
    }

    /// Ends everything that the user does.
    fn break_off(&mut self) {
        let shard = Rc::clone(&self.state.shard);
        let mut session = self.session(&shard);
        session.interrupt();
        session.give_up();
        session.task.leave_transactions(End::CutOff, session.user);
        self.state.end_bodies(task::NO_LINE, None);
        self.state.end_bodies(task::PASS, None);
        self.state.drop_connections(Ended::CutOff);
        if std::mem::take(&mut self.state.running) {
            shard.iteration_ends(self.state.session, Iteration::Interrupted);
        }
    }
}

impl State {
    /// True if the user has a long-lived connection, and is online only while that is.
    fn connects(&self) -> bool {
        self.shard.prepared.sessions[usize::from(self.session)].connects
    }

    fn outbound(&mut self, line: u8) -> Outbound<'_> {
        Outbound { user: self, line }
    }

    fn memory(&mut self) -> &mut Memory {
        let new = || Box::new(Memory::new(&self.shard.prepared, self.session));
        self.memory.get_or_insert_with(new)
    }

    /// Wakes the user at this time, or earlier.
    fn arm(&self, alarm: Time) {
        if alarm != Time::NEVER {
            self.shard.arm(self.slot, alarm);
        }
    }
}

impl Future for User {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let user = self.get_mut();
        let shard = Rc::clone(&user.state.shard);
        user.go_on(&shard, cx)
    }
}

/// However a user ends, by its session, by an abort, or by a panic of its own: its slot becomes
/// free and the others continue.
impl Drop for User {
    fn drop(&mut self) {
        self.break_off();
        let state = &mut self.state;
        state.waits.tell_haste(false, &state.shard);
        if !state.connects() {
            state.shard.recorder.borrow_mut().interval.gauges.users_online -= 1;
        }
        state.tell(|| What::Gone);
        state.shard.user_gone(state.slot, state.id);
    }
}

#[cfg(test)]
mod tests;
