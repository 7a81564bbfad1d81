//! One user: a small future that runs the instructions of its session, one after another, and
//! always listens to its connection.
//!
//! - here: what a user is, and the one place where it waits;
//! - [`flow`]: which instruction comes next: iterations, leaving, beginning anew;
//! - [`verbs`]: the verbs that need no connection; [`transaction`]: what is timed together;
//! - [`outcome`]: how steps end, and what a user does when they end badly;
//! - [`watched`]: telling every step to who watches;
//! - [`link`]: its connection: opening, sending, ending; [`life`]: how far it comes;
//! - [`http`]: HTTP requests and their answers, [`answer`] as far as one has come;
//! - [`talk`]: what it says on long-lived connections; [`hear`]: what comes, and whose it is;
//!   [`beat`]: heartbeats; [`besides`]: what it does besides its session; [`stay`]: being there;
//!   [`deliver`]: its part of the ledger.

mod answer;
mod backlog;
mod beat;
mod besides;
mod deliver;
mod flow;
mod hear;
mod http;
mod life;
mod link;
mod outcome;
mod redirect;
mod stay;
mod talk;
mod transaction;
mod unsent;
mod verbs;
mod watched;

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use throng_base::{Random, StepId, Time, UserId};
use throng_program::Parting;
use throng_protocol::http1::Jar;

use crate::haste::After;
use crate::memory::Memory;
use crate::rendezvous::Waiting;
use crate::shard::Shard;
use crate::trace::What;
use crate::verify::Finding;
use answer::Answer;
pub(crate) use answer::{Rare, Tally};
use beat::Beats;
use besides::Besides;
pub(crate) use besides::Loss;
use deliver::Memberships;
use http::Again;
pub(crate) use link::Ended;
use link::{Connection, Opening};
use redirect::Redirect;
use talk::Awaited;
use transaction::{End, Transactions};

pub(crate) struct User {
    shard: Rc<Shard>,
    id: UserId,
    random: Random,
    /// The moment of what the user handles now; read when something wakes it, not more often.
    now: Time,
    /// From when on the running step counts: when it began, or was due.
    due: Time,
    /// When the user stops waiting for what it waits for.
    deadline: Time,
    iterations: u64,
    connection: Option<Connection>,
    jar: Option<Box<Jar>>,
    /// What is timed together; users who never are in a transaction have none.
    transactions: Option<Box<Transactions>>,
    /// Values, registers and rows, once it has any.
    memory: Option<Box<Memory>>,
    redirect: Option<Box<Redirect>>,
    again: Option<Box<Again>>,
    /// Why the connection was lost while nothing was asked; told by the step that misses it.
    loss: Option<Box<Finding>>,
    /// What it does besides its session.
    besides: Option<Box<Besides>>,
    /// The audiences it is in.
    memberships: Option<Box<Memberships>>,
    beats: Beats,
    doing: Doing,
    /// What the reply to its last request carries.
    number: u32,
    slot: u32,
    pc: u32,
    /// Connections opened so far: which address of the target comes next.
    turn: u16,
    session: u16,
    target: u16,
    /// Tries at the running step that failed and were followed by another.
    retries: u16,
    /// Connections that were lost in a row, without the user being online in between.
    losses: u32,
    /// Connections in a row that did not open.
    refusals: u8,
    /// Told to fall out in the middle of a step.
    parting: Option<Parting>,
    /// The life of a long-lived connection has begun and not ended.
    alive: bool,
    /// Its last connection was lost, or left on purpose by a user that stays.
    fell_out: bool,
    /// Waits as `reconnect` has it once its connection has ended in order.
    rejoins: bool,
    /// Runs its session once and goes.
    once: bool,
    leaving: bool,
    /// Within an iteration.
    running: bool,
    /// A try at a step is on its way.
    in_flight: bool,
    /// The step that has begun and not ended: also while its connection opens, and between its
    /// tries.
    begun: Option<StepId>,
    /// The next step counts from when it was due, and not from when it begins.
    is_scheduled: bool,
    /// Whether it goes straight on when what it waits for comes, as the shard knows; None before
    /// the shard knows how to wake it.
    is_hasty: Option<bool>,
    /// It does something besides now: program counter and all that is not the session's.
    in_body: bool,
}

/// What a user waits for, if it waits.
enum Doing {
    /// The instruction at the program counter is to be done.
    Step,
    /// A connection opens.
    Opening(Box<Opening>),
    /// The answer to an HTTP request.
    Answer(Answer),
    /// A message, or an answer on a raw stream.
    Message(Awaited),
    /// Its own message: the socket has not taken all of it.
    Sending(Awaited),
    /// Its deadline: it thinks.
    Pause,
    /// Its deadline: it is there and listens.
    Stay,
    /// Its deadline: it holds back after a refusal, or before another attempt.
    Holding,
    /// Others, or its deadline.
    Rendezvous(Waiting),
    /// Its deadline: then it asks again whether it may do its next step.
    Gate,
    /// The end of a connection that the target is to close, or that we have taken leave of.
    Closing,
    /// An iteration.
    Idle,
}

/// Of a user that has one, as parts of what it takes.
pub(crate) const CONNECTION_BYTES: u64 = size_of::<Option<Connection>>() as u64;
/// Of a user that is in a transaction: what is boxed, and what that holds.
pub(crate) const TRANSACTIONS_BYTES: [u64; 2] = transaction::SIZES;

/// How much a user does before the others have their turn. It is less than the runtime's own
/// budget, behind which every socket seems to be full.
const TURNS_MAX: u32 = 32;

/// Whether a user goes on at once.
enum Turn {
    Again,
    Wait,
    Gone,
}

impl User {
    pub(crate) fn new(
        shard: Rc<Shard>,
        slot: u32,
        id: UserId,
        mut random: Random,
        due: Time,
        once: bool,
    ) -> User {
        let (session, target) = flow::choose(&shard.prepared, id, &mut random);
        if !shard.prepared.sessions[usize::from(session)].connects {
            shard.recorder.borrow_mut().gauges.users_online += 1;
        }
        User {
            now: shard.clock.now(),
            shard,
            id,
            random,
            due,
            deadline: Time::NEVER,
            iterations: 0,
            connection: None,
            jar: None,
            transactions: None,
            memory: None,
            redirect: None,
            again: None,
            loss: None,
            besides: None,
            memberships: None,
            beats: Beats::NONE,
            doing: Doing::Step,
            number: 0,
            slot,
            pc: 0,
            turn: 0,
            session,
            target,
            retries: 0,
            losses: 0,
            refusals: 0,
            parting: None,
            alive: false,
            fell_out: false,
            rejoins: false,
            once,
            leaving: false,
            running: false,
            in_flight: false,
            begun: None,
            is_scheduled: false,
            is_hasty: None,
            in_body: false,
        }
    }

    /// Whether the user has a connection that lasts, and is online only while it has.
    fn connects(&self) -> bool {
        self.shard.prepared.sessions[usize::from(self.session)].connects
    }

    /// What the user keeps.
    fn memory(&mut self) -> &mut Memory {
        let program = &self.shard.prepared.program;
        let session = &program.sessions[usize::from(self.session)];
        self.memory.get_or_insert_with(|| Box::new(Memory::new(session, program)))
    }

    /// The one place where a user waits. Whatever it waits for, it hears the shard, its deadline
    /// and its connection.
    fn wait(&mut self, cx: &mut Context<'_>) -> Turn {
        let told = self.shard.seats.borrow_mut().told(self.slot);
        if told.begin.is_some() && (told.leave || told.abort) {
            // An iteration was given to a user that is going.
            self.shard.iteration_ends(false);
        }
        if told.abort {
            return self.abort();
        }
        if told.leave && self.leaves_now() {
            return Turn::Again;
        }
        if let Some(how) = told.part {
            match told.begin.is_none() && self.parts_now() {
                true => {
                    self.part(how, cx);
                    return Turn::Again;
                }
                // What was begun is done first.
                false => self.parting = Some(how).filter(|_| self.is_online()),
            }
        }
        if let Some(due) = told.begin
            && matches!(self.doing, Doing::Idle)
            && !told.leave
        {
            self.now = self.shard.clock.now();
            self.begin_iteration(due);
            return Turn::Again;
        }
        if told.fired {
            self.now = self.shard.clock.now();
            if let Doing::Rendezvous(waiting) = self.doing {
                self.meeting_woken(waiting);
                if !matches!(self.doing, Doing::Rendezvous(_)) {
                    return Turn::Again;
                }
            }
            if let Some(turn) = self.alarmed(cx) {
                return turn;
            }
        }
        if let Doing::Opening(opening) = &mut self.doing {
            let Poll::Ready(opened) = opening.poll(cx) else { return Turn::Wait };
            self.now = self.shard.clock.now();
            self.opened(opened);
            return Turn::Again;
        }
        let turn = self.listen(cx);
        // What was to be finished first may be finished now.
        match turn {
            Turn::Wait if told.leave && self.leaves_now() => Turn::Again,
            turn => turn,
        }
    }

    /// A moment that the user waits for has come, or one before.
    fn alarmed(&mut self, cx: &mut Context<'_>) -> Option<Turn> {
        if self.now >= self.target_has_until() {
            // What lies in the socket came in time: it is we who look late.
            let turn = self.listen(cx);
            if matches!(self.doing, Doing::Step) || self.alarm() > self.now {
                self.arm_alarm();
                return Some(turn);
            }
        }
        if self.now >= self.beats.alarm() {
            self.beats_woken(cx);
        }
        if self.besides.as_ref().is_some_and(|besides| self.now >= besides.alarm()) {
            self.besides_woken(cx);
        }
        if matches!(self.doing, Doing::Step) {
            return Some(Turn::Again);
        }
        if self.now >= self.deadline {
            let due = std::mem::replace(&mut self.deadline, Time::NEVER);
            if matches!(self.doing, Doing::Pause) {
                self.shard.recorder.borrow_mut().late(self.now - due);
            }
            self.deadline_passed();
            return Some(Turn::Again);
        }
        self.arm_alarm();
        None
    }

    /// Whether the user goes straight on when what it waits for comes: a shard that sleeps on
    /// holds it up, and its connection with it.
    fn would_be_held_up(&self) -> bool {
        let goes_on = || {
            let after = &self.shard.prepared.sessions[usize::from(self.session)].after;
            match after.get(self.pc as usize) {
                Some(After::Sends) => true,
                Some(After::Ends) => !self.once && !self.shard.paces_iterations(),
                Some(After::Waits) | None => false,
            }
        };
        match &self.doing {
            Doing::Step | Doing::Opening(_) | Doing::Sending(_) | Doing::Closing => true,
            // The rest of an answer comes only as fast as it is read.
            Doing::Answer(answer) => answer.first_byte > Time::ZERO || !self.is_sent() || goes_on(),
            Doing::Message(_) => !self.is_sent() || goes_on(),
            _ => !self.is_sent(),
        }
    }

    fn tell_haste(&mut self, is_hasty: bool) {
        if self.is_hasty.replace(is_hasty).unwrap_or_default() != is_hasty {
            let count = &self.shard.hasty;
            count.set(if is_hasty { count.get() + 1 } else { count.get() - 1 });
        }
    }

    /// The first moment from which on the target is late with something.
    fn target_has_until(&self) -> Time {
        if self.connection.is_none() {
            return Time::NEVER;
        }
        let own = match self.doing {
            Doing::Answer(_) | Doing::Message(_) | Doing::Stay => self.deadline,
            _ => Time::NEVER,
        };
        let besides = self.besides.as_ref().map_or(Time::NEVER, |one| one.waits_until());
        own.min(self.beats.waits_until()).min(besides)
    }

    /// When the user has something to do by itself.
    fn alarm(&self) -> Time {
        let besides = self.besides.as_ref().map_or(Time::NEVER, |besides| besides.alarm());
        self.deadline.min(self.beats.alarm()).min(besides).min(self.slow_until())
    }

    fn arm_alarm(&self) {
        let alarm = self.alarm();
        if alarm != Time::NEVER {
            self.shard.arm(self.slot, alarm);
        }
    }

    /// Sets what the user waits for, and until when.
    fn wait_for(&mut self, doing: Doing, deadline: Time) {
        self.doing = doing;
        self.deadline = deadline;
        self.arm_alarm();
    }

    /// What a user does when its deadline has passed.
    fn deadline_passed(&mut self) {
        match std::mem::replace(&mut self.doing, Doing::Step) {
            Doing::Step | Doing::Idle => {}
            Doing::Pause | Doing::Stay => self.pause_over(),
            Doing::Holding => {
                self.paused();
                self.due = self.now;
            }
            Doing::Gate => self.due = self.now,
            // It was looked at before its deadline was.
            Doing::Rendezvous(waiting) => self.meeting_woken(waiting),
            Doing::Closing => {
                self.goodbye_unanswered();
                self.drop_connection(Ended::ByUs);
                self.closed_in_order();
            }
            Doing::Opening(opening) => self.opening_timed_out(&opening),
            Doing::Answer(answer) => self.answer_timed_out(answer),
            Doing::Message(awaited) => self.message_timed_out(awaited),
            Doing::Sending(sent) => self.sending_timed_out(sent),
        }
    }

    /// Ends at once, in the middle of whatever it does.
    fn abort(&mut self) -> Turn {
        self.break_off();
        Turn::Gone
    }

    /// Nothing of what the user does is left.
    fn break_off(&mut self) {
        self.interrupt();
        self.give_up();
        self.leave_transactions(End::CutOff);
        self.drop_connection(Ended::CutOff);
        if std::mem::take(&mut self.running) {
            self.shard.iteration_ends(false);
        }
    }

    /// An attempt at the step begins, if it has not begun already.
    fn begin(&mut self, step: StepId) {
        if self.begun.replace(step).is_none() {
            if !std::mem::take(&mut self.is_scheduled) {
                self.due = self.now;
            }
            self.shard.recorder.borrow_mut().begun(step);
        }
    }

    /// A try at the step begins, if it has not begun already.
    fn flight_begins(&mut self, step: StepId) {
        self.begin(step);
        if !std::mem::replace(&mut self.in_flight, true) {
            self.shard.recorder.borrow_mut().gauges.in_flight += 1;
        }
    }

    fn flight_ends(&mut self) {
        if std::mem::take(&mut self.in_flight) {
            self.shard.recorder.borrow_mut().gauges.in_flight -= 1;
        }
    }

    /// The running step, if there is one, will not end.
    fn interrupt(&mut self) {
        self.flight_ends();
        if let Some(step) = self.begun.take() {
            let mut recorder = self.shard.recorder.borrow_mut();
            recorder.interrupted(step);
            recorder.population.interrupted += 1;
        }
    }
}

impl Future for User {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let user = self.get_mut();
        let mut turns = 0;
        if user.is_hasty.is_none() {
            user.introduce(cx);
        }
        user.shard.polls.set(user.shard.polls.get() + 1);
        loop {
            let turn = match user.doing {
                Doing::Step => user.step(cx),
                _ => user.wait(cx),
            };
            match turn {
                // A user that never has to wait lets the others have their turn, and hears what
                // has come meanwhile.
                Turn::Again if turns == TURNS_MAX => {
                    if matches!(user.doing, Doing::Step) {
                        user.listen(cx);
                    }
                    // A loop in which nothing waits ends by its time, too.
                    user.now = user.shard.clock.now();
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Turn::Again => turns += 1,
                Turn::Wait => {
                    user.tell_haste(user.would_be_held_up());
                    return Poll::Pending;
                }
                Turn::Gone => {
                    user.say_goodbye(cx);
                    return Poll::Ready(());
                }
            }
        }
    }
}

/// However a user ends, by its session, by an abort, or by a panic of its own: its seat is free
/// again and the others go on.
impl Drop for User {
    fn drop(&mut self) {
        self.break_off();
        self.tell_haste(false);
        if !self.connects() {
            self.shard.recorder.borrow_mut().gauges.users_online -= 1;
        }
        if self.shard.is_traced() {
            self.tell(What::Gone);
        }
        self.shard.user_gone(self.slot);
    }
}

#[cfg(test)]
mod tests;
