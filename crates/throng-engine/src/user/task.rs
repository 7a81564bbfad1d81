//! A task: what runs instructions, one after another, with its own program counter, clock and
//! whatever it waits for. The session of a user is one, and so is each body of a handler or of
//! what is done every so often.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use throng_base::{StepId, Time};
use throng_metrics::{Cause, Ending};
use throng_program::{Parting, Statement};

use super::exchange::{Awaits, Exchange};
use super::redirect::{Again, Detour, Redirect};
use super::{State, deliver};
use crate::connector::protocol::Missing;
use crate::connector::{Opened, Progress};
use crate::failure::Failure;
use crate::prepared::Plan;
use crate::prepared::code::{Code, Instruction};
use crate::rendezvous::Waiting;
use crate::shard::Lane;

pub(super) struct Task {
    /// From when on the running step counts: when it began, or was due.
    pub(super) due: Time,
    /// When the task stops waiting for what it waits for.
    pub(super) deadline: Time,
    pub(super) doing: Doing,
    /// What is timed together; tasks that never are in a transaction have none.
    pub(super) transactions: Option<Box<Transactions>>,
    /// Of a request that is not sent as its step says.
    pub(super) detour: Option<Box<Detour>>,
    pub(super) pc: u32,
    /// Where a body begins; 0 in the session. A pass begins where the session does, and keeps the
    /// low bits of its iteration's number here.
    body: u32,
    /// Tries at the running step that failed and were followed by another.
    pub(super) retries: u16,
    /// Over which connection it does what it does.
    pub(super) line: u8,
    /// Of a body, the connection that it is about: it goes on as long as that is there. A branch
    /// is about [`NO_LINE`], a pass about [`PASS`].
    pub(super) of: u8,
    /// Of a body, whether a message of the target is done with when it is over.
    pub(super) answers: bool,
    /// Whether the step there has begun and not ended: also while its connection opens, and between
    /// its tries.
    pub(super) begun: Begun,
    /// A try at a step is on its way.
    pub(super) in_flight: bool,
    /// The next step counts from when it was due, and not from when it begins.
    pub(super) is_scheduled: bool,
}

/// How far an attempt at a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    No,
    Yes,
    /// It went out to an address, or opens a connection to one: it counts there, too.
    Out,
}

pub(super) const NO_LINE: u8 = u8::MAX;
/// Of a pass through the steps of a session whose users do several at once.
pub(super) const PASS: u8 = NO_LINE - 1;

/// What a task waits for, if it waits.
pub(super) enum Doing {
    /// The instruction at the program counter is to be done.
    Step,
    /// A connection opens.
    Opening(Box<Opening>),
    /// A connection that other tasks use, to ask over it; since when.
    Queued { since: Time },
    /// The answer to what it asked for, or room in the socket for what it sends.
    Exchange(Exchange),
    /// The ends of all its branches.
    Join,
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

/// A connection that opens.
pub(super) struct Opening {
    pub(super) work: Pin<Box<dyn Future<Output = Result<Opened, Failure>>>>,
    pub(super) progress: Rc<Progress>,
    pub(super) begun: Time,
    pub(super) target: u16,
    /// What has not come, if its handshake takes too long.
    pub(super) missing: Option<Missing>,
}

impl Opening {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Opened, Failure>> {
        self.work.as_mut().poll(cx)
    }

    /// It is given up.
    fn given_up(&self, shard: &Lane) {
        shard.recorder.borrow_mut().gauges.connections_opening -= 1;
        self.failed(shard, None);
    }

    /// It does not open. Where it was established, it has ended: counts who ended it.
    pub(super) fn failed(&self, shard: &Lane, cause: Option<Cause>) {
        let established = self.progress.established.get();
        let ending = match cause {
            // Nobody was there.
            Some(Cause::ConnectTimeout) => Ending::TimedOut,
            _ if established == Time::NEVER => return,
            Some(Cause::ClosedEarly) => Ending::ClosedByTarget,
            Some(Cause::Reset) => Ending::Reset,
            Some(Cause::Timeout | Cause::Unreachable | Cause::NetworkFailed) => Ending::TimedOut,
            // It was our word: the certificate, or the answer, is not to our liking; or all is
            // over.
            _ => Ending::ClosedByUs,
        };
        let lived = shard.clock.now() - established;
        shard.recorder.borrow_mut().connection_ended(ending, false, lived);
    }
}

/// The transactions a user is in. Users who never are in one have none of it.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// The innermost last.
    pub(super) open: Vec<Open>,
    /// How long the user has paused since it began with its first one.
    pub(super) paused: Duration,
}

/// A transaction that has begun and not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) step: StepId,
    pub(super) begin: Time,
    /// What [`Transactions::paused`] was then.
    pub(super) paused: Duration,
    /// The first step that failed in it.
    pub(super) failed: Option<(StepId, Cause)>,
}

/// Where a task is whose session is over, but whose connection is not.
static BEHIND_THE_END: Instruction =
    Instruction::Do(Statement::Disconnect { link: 0, how: Parting::Fin });
static NO_PLAN: Plan = Plan::Nothing;
/// The program counter there: what stands behind the session are the bodies of its handlers.
pub(super) const GONE: u32 = u32::MAX;

impl Task {
    pub(super) fn session(due: Time) -> Task {
        Task {
            due,
            deadline: Time::NEVER,
            doing: Doing::Step,
            transactions: None,
            detour: None,
            pc: 0,
            body: 0,
            retries: 0,
            line: 0,
            of: 0,
            answers: false,
            begun: Begun::No,
            in_flight: false,
            is_scheduled: false,
        }
    }

    /// A body that begins: a handler's, or one that was due.
    pub(super) fn body(body: u32, of: u8, due: Time, answers: bool) -> Task {
        Task { pc: body, body, of, answers, is_scheduled: !answers, ..Task::session(due) }
    }

    /// A branch of the session: as late as that, where its iteration started late.
    pub(super) fn branch(begins: u32, session: &Task, now: Time) -> Task {
        // On time, they are due when they begin: what waits for a connection is not late.
        let is_scheduled = session.is_scheduled && session.due < now;
        let due = if is_scheduled { session.due } else { now };
        Task { pc: begins, body: begins, of: NO_LINE, is_scheduled, ..Task::session(due) }
    }

    /// One of several passes through the steps, due as the session is: this iteration of the user.
    pub(super) fn pass(session: &Task, iteration: u64) -> Task {
        let (pc, is_scheduled) = (session.pc, session.is_scheduled);
        Task { pc, body: iteration as u32, of: PASS, is_scheduled, ..Task::session(session.due) }
    }

    /// The number of its iteration, where the user has begun `begun`: a pass keeps its number while
    /// later iterations begin.
    pub(super) fn iteration(&self, begun: u64) -> u64 {
        let later = match self.is_pass() {
            true => (begun as u32).wrapping_sub(self.body),
            false => 0,
        };
        begun - u64::from(later)
    }

    /// A branch, or a pass: what fails or leaves in it is told to the session.
    pub(super) fn is_branch(&self) -> bool {
        self.of >= PASS
    }

    pub(super) fn is_pass(&self) -> bool {
        self.of == PASS
    }

    /// Whether it is any but the session.
    pub(super) fn is_body(&self) -> bool {
        self.body > 0 || self.is_pass()
    }

    /// Where the body begins that it is.
    pub(super) fn begins(&self) -> Option<u32> {
        Some(self.body).filter(|body| *body > 0 && !self.is_pass())
    }

    /// Whether it uses the connection of a line alone: to open it, or for its request.
    pub(super) fn uses(&self, line: u8) -> bool {
        let asks = matches!(self.doing, Doing::Opening(_) | Doing::Exchange(_));
        self.line == line && (asks || self.in_flight)
    }

    /// The exchange that it has over this connection.
    pub(super) fn exchange_on(&self, line: u8) -> Option<&Exchange> {
        match &self.doing {
            Doing::Exchange(exchange) if self.line == line => Some(exchange),
            _ => None,
        }
    }

    /// The exchange that it waits for; it does not any more.
    pub(super) fn take_exchange(&mut self) -> Option<Exchange> {
        match std::mem::replace(&mut self.doing, Doing::Step) {
            Doing::Exchange(exchange) => Some(exchange),
            other => {
                self.doing = other;
                None
            }
        }
    }

    /// The instruction `return`: the body is over.
    pub(super) fn return_from_body(&mut self) {
        (self.pc, self.deadline, self.doing) = (GONE, Time::NEVER, Doing::Step);
    }

    /// Where the request of this step goes instead, if it does.
    pub(super) fn redirect(&self) -> Option<&Redirect> {
        self.detour.as_ref()?.redirect.as_ref()
    }

    /// What is to be sent once more, where this try is that.
    pub(super) fn take_again(&mut self) -> Option<Again> {
        let again = self.detour.as_mut().and_then(|detour| detour.again.take());
        again.filter(|again| again.is_of(self.pc, self.due))
    }

    /// Whether it waits for this over a connection.
    pub(super) fn awaits(&self, line: u8, what: Awaits) -> bool {
        self.exchange_on(line).is_some_and(|exchange| exchange.awaits == what)
    }

    /// Whether it waits for the end of this connection.
    pub(super) fn is_closing(&self, line: u8) -> bool {
        matches!(self.doing, Doing::Closing) && self.line == line
    }

    /// A request that was to be sent once more is not.
    pub(super) fn withdraw_again(&mut self, shard: &Lane, now: Time) {
        let again = self.detour.as_mut().and_then(|detour| detour.again.take());
        if let Some(sent) = again.and_then(|again| again.sent) {
            deliver::withdraw(sent, shard, now);
        }
    }

    /// A try at the step ends.
    pub(super) fn flight_ends(&mut self, shard: &Lane) {
        if std::mem::take(&mut self.in_flight) {
            shard.recorder.borrow_mut().gauges.in_flight -= 1;
        }
    }
}

/// One of a user's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Session,
    /// Of those that go on besides, by its place.
    Other(usize),
}

/// A task at work: it sees itself and what all tasks of its user share.
pub(super) struct Active<'a> {
    pub(super) shard: &'a Lane,
    pub(super) user: &'a mut State,
    pub(super) task: &'a mut Task,
    /// What the session does where it is another task; of interest is which connection it uses.
    pub(super) session: Option<&'a Task>,
}

impl<'a> Active<'a> {
    /// The instruction at the program counter, and what is known of it beforehand.
    pub(super) fn at_pc(&self) -> (&'a Instruction, &'a Plan) {
        at(self.shard, self.user.session, self.task.pc)
    }

    pub(super) fn instruction(&self) -> &'a Instruction {
        self.at_pc().0
    }

    /// What the session of the user does.
    pub(super) fn of_session(&self) -> &'a Code {
        &self.shard.prepared.sessions[usize::from(self.user.session)].code
    }

    /// Sets what the task waits for, and until when.
    pub(super) fn wait_for(&mut self, doing: Doing, deadline: Time) {
        self.task.doing = doing;
        self.task.deadline = deadline;
        self.user.arm(deadline);
    }

    /// An attempt at the step begins, if it has not begun already.
    pub(super) fn begin(&mut self, step: StepId) {
        if self.task.begun == Begun::No {
            self.task.begun = Begun::Yes;
            if !std::mem::take(&mut self.task.is_scheduled) {
                self.task.due = self.user.now;
            }
            self.shard.recorder.borrow_mut().begun(step);
        }
    }

    /// The running attempt goes to an address: that of its connection, be it open or to be opened.
    #[inline]
    pub(super) fn goes_out(&mut self) {
        if std::mem::replace(&mut self.task.begun, Begun::Out) == Begun::Yes {
            let place = self.user.lines.get(self.task.line).place;
            if let Some(row) = self.shard.recorder.borrow_mut().targets.of(place) {
                row.begun += 1;
            }
        }
    }

    /// The running attempt ended; says where, if it had gone anywhere.
    #[inline]
    pub(super) fn attempt_over(&mut self) -> Option<u16> {
        let was_out = std::mem::replace(&mut self.task.begun, Begun::No) == Begun::Out;
        was_out.then(|| self.user.lines.get(self.task.line).place)
    }

    /// A try at the step begins, if it has not begun already.
    pub(super) fn flight_begins(&mut self, step: StepId) {
        self.begin(step);
        if !std::mem::replace(&mut self.task.in_flight, true) {
            self.shard.recorder.borrow_mut().gauges.in_flight += 1;
        }
    }

    /// The running step, if there is one, and where it had gone; it does not run any more.
    pub(super) fn take_begun(&mut self) -> Option<(StepId, Option<u16>)> {
        let begun = self.task.begun != Begun::No;
        let place = self.attempt_over();
        Some((self.instruction().step().filter(|_| begun)?, place))
    }

    /// The running step, if there is one, will not end.
    pub(super) fn interrupt(&mut self) {
        self.task.flight_ends(self.shard);
        if let Some((step, place)) = self.take_begun() {
            let mut recorder = self.shard.recorder.borrow_mut();
            recorder.interrupted(step);
            recorder.targets.interrupted(place);
            recorder.population.interrupted += 1;
        }
    }

    /// What the user waits for is given up: nobody counts on it any more.
    pub(super) fn give_up(&mut self) {
        match std::mem::replace(&mut self.task.doing, Doing::Step) {
            Doing::Opening(opening) => opening.given_up(self.shard),
            Doing::Exchange(exchange) => exchange.forget(self.shard),
            Doing::Rendezvous(waiting) => {
                self.shard.meeting.go(self.user.slot, waiting.place);
                self.shard.places.withdraw(waiting);
            }
            _ => {}
        }
    }

    /// What this task asked for is of no use any more.
    pub(super) fn withdraw_exchange(&mut self) {
        if let Some(exchange) = self.task.take_exchange() {
            exchange.withdraw(self.shard, self.user.now);
            exchange.forget(self.shard);
        }
    }
}

/// An instruction of a session, and what is known of it beforehand.
pub(super) fn at(shard: &Lane, session: u16, pc: u32) -> (&Instruction, &Plan) {
    let (session, pc) = (&shard.prepared.sessions[usize::from(session)], pc as usize);
    let (instruction, plan) = (session.code.all.get(pc), session.plans.get(pc));
    (instruction.unwrap_or(&BEHIND_THE_END), plan.unwrap_or(&NO_PLAN))
}
