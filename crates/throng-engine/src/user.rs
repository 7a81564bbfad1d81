//! One user: a small future that runs the tasks of its session and always listens to its
//! connections.
//!
//! A user is its state (`State`: place, values, connections, what goes on besides) and its tasks. A
//! [`Task`] is whatever runs instructions: the session, the body of a handler, what is done every
//! so often. Where a task is at work it is an [`Active`]: it sees the state and itself, and never
//! another task. What concerns others it leaves in the state, and the user hands it out.
//!
//! What a user is:
//! - here: its state, and the one place where it waits; [`task`]: what a task is, and what it waits
//!   for; [`exchange`]: something was asked and is to be answered; [`redirect`]: a request goes
//!   elsewhere;
//! - [`connection`]: one that is open, [`line`]: all of a user's; [`agenda`]: what goes on besides
//!   the session.
//!
//! What it does:
//! - [`listen`]: reading, and whose everything is that comes;
//! - [`session`]: which instruction comes next; [`verb`]: what each verb does; [`outcome`]: how
//!   steps end; [`flow`]: how a task goes on; [`transaction`]: what is timed together;
//! - [`streams`]: many requests over one connection; [`life`]: how far a connection comes;
//!   [`send`]: what is sent; [`beat`]: heartbeats; [`deliver`]: the user's part of the ledger;
//! - [`watched`]: telling every step to whoever watches; [`standstill`]: what a user waits for that
//!   nothing will wake.

mod agenda;
mod beat;
mod connection;
mod deliver;
mod exchange;
mod flow;
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
use throng_program::Parting;
use throng_protocol::http1::Jar;

use crate::failure::Ended;
use crate::haste::After;
use crate::memory::Memory;
use crate::recorder::Iteration;
use crate::shard::Lane;
use crate::trace::What;
use agenda::Agenda;
use connection::Connection;
use deliver::Audiences;
use exchange::Awaits;
use line::Lines;
use task::{Active, Doing, Task};
use transaction::End;

pub(crate) struct User {
    state: State,
    /// What its session does.
    session: Task,
}

/// What all tasks of a user share.
struct State {
    shard: Rc<Lane>,
    id: UserId,
    random: Random,
    /// The moment of what the user handles now; read when something wakes it, not more often.
    now: Time,
    iterations: u64,
    lines: Lines,
    jar: Option<Box<Jar>>,
    /// Values, registers and rows, once it has any.
    memory: Option<Box<Memory>>,
    agenda: Option<Box<Agenda>>,
    audiences: Audiences,
    /// What the reply to its last request carries.
    number: u32,
    slot: u32,
    /// Connections that were lost in a row, without the user being online in between.
    losses: u16,
    session: u16,
    /// Connections opened so far: which address of the target comes next.
    turn: u8,
    /// Connections in a row that did not open.
    refusals: u8,
    /// Its connections that last and are online.
    online: u8,
    /// Told to fall out in the middle of a step.
    parting: Option<Parting>,
    /// Its last connection was lost, or left on purpose by a user that stays.
    fell_out: bool,
    /// Waits as `reconnect` has it once its connection has ended in order.
    rejoins: bool,
    /// Runs its session once and goes.
    once: bool,
    leaving: bool,
    /// Within an iteration.
    running: bool,
    /// How it waits, as the shard knows.
    waits: Waits,
    /// It was woken by the clock: its next alarm is still to be set.
    is_unarmed: bool,
    /// A connection was lost, and tasks that wait for it have not heard of that.
    has_loss: bool,
}

/// Of a user that has one, as parts of what it takes.
pub(crate) const CONNECTION_BYTES: u64 = size_of::<Option<Connection>>() as u64;
/// Of a user that is in a transaction: what is boxed, and what that holds.
pub(crate) const TRANSACTIONS_BYTES: [u64; 2] = transaction::SIZES;

/// How much a user does before the others have their turn. It is less than the runtime's own
/// budget, behind which every socket seems to be full.
const TURNS_MAX: u32 = 32;

/// What a shard knows of how a user waits, and more; bits, as a user is small.
#[derive(Clone, Copy, Default)]
struct Waits(u8);

impl Waits {
    /// The shard knows how to wake it.
    const IS_KNOWN: u8 = 1;
    /// It goes straight on when what it waits for comes.
    const IS_HASTY: u8 = 1 << 1;
    /// It needs no moment at which it is woken.
    const STANDS_BY: u8 = 1 << 2;
    /// A database has a transaction of the user open: no matter of the shard, but there is room.
    const IN_TRANSACTION: u8 = 1 << 3;

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    /// Whether the bit was another.
    fn change(&mut self, bit: u8, to: bool) -> bool {
        let changes = self.has(bit) != to;
        self.0 ^= if changes { bit } else { 0 };
        changes
    }
}

/// Whether a user goes on at once.
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
            shard.recorder.borrow_mut().gauges.users_online += 1;
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
            parting: None,
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

    /// The session at work.
    fn session<'a>(&'a mut self, shard: &'a Lane) -> Active<'a> {
        Active { shard, user: &mut self.state, task: &mut self.session, session: None }
    }

    fn go_on(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Poll<()> {
        let mut turns = 0;
        if !self.state.waits.has(Waits::IS_KNOWN) {
            self.state.introduce(cx);
        }
        shard.polls.set(shard.polls.get() + 1);
        if shard.asks.get() && shard.seats.borrow_mut().take_asked(self.state.slot) {
            self.tell_standstill(shard);
        }
        loop {
            let turn = match self.session.doing {
                Doing::Step => self.step(shard, cx),
                _ => self.wait(shard, cx),
            };
            match turn {
                // A user that never has to wait lets the others have their turn, and hears what
                // has come meanwhile.
                Turn::Again if turns == TURNS_MAX => {
                    if matches!(self.session.doing, Doing::Step) {
                        self.listen(shard, cx);
                    }
                    // A loop in which nothing waits ends by its time, too.
                    self.state.now = shard.clock.now();
                    self.set_alarm();
                    self.state.tell_stands_by(true);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Turn::Again => turns += 1,
                Turn::Wait => {
                    self.set_alarm();
                    let stays = matches!(self.session.doing, Doing::Stay);
                    self.state.tell_stands_by(stays && self.session.deadline == Time::NEVER);
                    self.state.tell_haste(self.would_be_held_up(shard));
                    return Poll::Pending;
                }
                Turn::Gone => {
                    self.state.disconnect_all(cx);
                    return Poll::Ready(());
                }
            }
        }
    }

    /// The one place where a user waits. Whatever it waits for, it hears the shard, its alarms
    /// and its connections.
    fn wait(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Turn {
        let told = shard.seats.borrow_mut().told(self.state.slot);
        // Whatever it does first, what its moment was for is still to be done.
        self.state.is_unarmed |= told.fired;
        if told.abort {
            if told.begin.is_some() {
                shard.recorder.borrow_mut().sessions.begins(self.state.session);
                shard.iteration_ends(self.state.session, Iteration::Interrupted);
            }
            self.break_off();
            return Turn::Gone;
        }
        // An iteration that was given to a user that is going begins.
        if told.leave && told.begin.is_none() && self.session(shard).leaves_now() {
            return Turn::Again;
        }
        if let Some(how) = told.part {
            match told.begin.is_none() && self.session(shard).parts_now() {
                true => {
                    self.session(shard).part(how, cx);
                    return Turn::Again;
                }
                // What was begun is done first.
                false => self.state.parting = Some(how).filter(|_| self.state.is_online()),
            }
        }
        if let Some(due) = told.begin
            && matches!(self.session.doing, Doing::Idle)
        {
            self.state.now = shard.clock.now();
            self.session(shard).start_iteration(due);
            return Turn::Again;
        }
        match self.heed(shard, told.fired, cx) {
            // Another task may have ended what the session waited for.
            Turn::Wait if matches!(self.session.doing, Doing::Step) => Turn::Again,
            // What was to be finished first may be finished now.
            Turn::Wait if told.leave && self.session(shard).leaves_now() => Turn::Again,
            turn => turn,
        }
    }

    /// Hears the alarms, the connection that the session opens, and those that are open.
    fn heed(&mut self, shard: &Lane, fired: bool, cx: &mut Context<'_>) -> Turn {
        if fired {
            self.state.now = shard.clock.now();
            if let Doing::Rendezvous(waiting) = self.session.doing {
                self.session(shard).meeting_woken(waiting);
                if !matches!(self.session.doing, Doing::Rendezvous(_)) {
                    return Turn::Again;
                }
            }
            if let Some(turn) = self.alarmed(shard, cx) {
                return turn;
            }
        }
        if let Doing::Opening(opening) = &mut self.session.doing
            && let Poll::Ready(opened) = opening.poll(cx)
        {
            self.state.now = shard.clock.now();
            self.session(shard).opened(opened);
            return Turn::Again;
        }
        self.listen(shard, cx)
    }

    /// A moment that the user waits for has come, or one before.
    fn alarmed(&mut self, shard: &Lane, cx: &mut Context<'_>) -> Option<Turn> {
        if self.state.now >= self.target_has_until() {
            // What lies in the socket came in time: it is we who look late.
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
            // One without length, of an iteration that started late, was due when that was.
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

    /// Whether the user goes straight on when what it waits for comes: a shard that sleeps on
    /// holds it up, and its connection with it.
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
                // The rest of an answer comes only as fast as it is read.
                Awaits::Answer { .. } if exchange.first_byte > Time::ZERO => true,
                Awaits::Answer { .. } | Awaits::Message => !self.state.lines.is_sent() || goes_on(),
            },
            _ => !self.state.lines.is_sent(),
        }
    }

    /// The first moment from which on the target is late with something.
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

    /// When the user has something to do by itself.
    fn alarm(&self) -> Time {
        let agenda = self.state.agenda.as_ref().map_or(Time::NEVER, |agenda| agenda.alarm());
        let lines = self.state.lines.earliest(|line| line.beats.alarm().min(line.alarm()));
        self.session.deadline.min(lines).min(agenda)
    }

    /// Whatever set an alarm since the last one is armed already; who was woken by one has others.
    fn set_alarm(&mut self) {
        if std::mem::take(&mut self.state.is_unarmed) {
            self.state.arm(self.alarm());
        }
    }

    /// Nothing of what the user does is left.
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
    /// Lets the shard know how to wake this user; a task's waker stays the same.
    fn introduce(&mut self, cx: &Context<'_>) {
        self.waits.change(Waits::IS_KNOWN, true);
        // Many may have come together.
        self.now = self.shard.clock.now();
        self.shard.seats.borrow_mut().know(self.slot, cx.waker());
    }

    /// Whether the user has a connection that lasts, and is online only while it has.
    fn connects(&self) -> bool {
        self.shard.prepared.sessions[usize::from(self.session)].connects
    }

    /// What the user keeps.
    fn memory(&mut self) -> &mut Memory {
        let new = || Box::new(Memory::new(&self.shard.prepared, self.session));
        self.memory.get_or_insert_with(new)
    }

    fn tell_haste(&mut self, is_hasty: bool) {
        if self.waits.change(Waits::IS_HASTY, is_hasty) {
            let count = &self.shard.hasty;
            count.set(if is_hasty { count.get() + 1 } else { count.get() - 1 });
        }
    }

    /// Without a moment at which it is woken, a user that does not stand by would wait for ever.
    fn tell_stands_by(&mut self, stands_by: bool) {
        if self.waits.change(Waits::STANDS_BY, stands_by) {
            self.shard.seats.borrow_mut().stands_by(self.slot, stands_by);
        }
    }

    /// Wakes the user at this moment, or earlier.
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

/// However a user ends, by its session, by an abort, or by a panic of its own: its seat is free
/// again and the others go on.
impl Drop for User {
    fn drop(&mut self) {
        self.break_off();
        let state = &mut self.state;
        state.tell_haste(false);
        if !state.connects() {
            state.shard.recorder.borrow_mut().gauges.users_online -= 1;
        }
        state.tell(|| What::Gone);
        state.shard.user_gone(state.slot, state.id);
    }
}

#[cfg(test)]
mod tests;
