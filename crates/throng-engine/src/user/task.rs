//! A task runs instructions one after another, with its own program counter, clock and wait. The
//! session of a user is a task, and so is each body of a handler or recurring action.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use throng_base::{StepId, Time};
use throng_metrics::{Cause, Ending};
use throng_program::{CloseMode, Statement};

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
    /// Start time of the running step: when it started, or when it was due.
    pub(super) due: Time,
    /// When the current wait times out.
    pub(super) deadline: Time,
    pub(super) doing: Doing,
    /// The open transactions; `None` for a task that never is in one.
    pub(super) transactions: Option<Box<Transactions>>,
    /// Set if a request differs from its step.
    pub(super) detour: Option<Box<Detour>>,
    pub(super) pc: u32,
    /// Program counter where a body starts; 0 for the session. A pass starts where the session
    /// does, and stores the low bits of its iteration's number here.
    body: u32,
    /// Failed tries of the running step that were retried.
    pub(super) retries: u16,
    /// The line that the task uses.
    pub(super) line: u8,
    /// For a body, the line it belongs to: it ends with that connection. [`NO_LINE`] for a branch,
    /// [`PASS`] for a pass.
    pub(super) of: u8,
    /// For a body, whether its end completes the handling of a message.
    pub(super) answers: bool,
    /// Whether the current step has started and not ended, also while its connection opens and
    /// between its tries.
    pub(super) begun: Begun,
    /// A try of a step is in flight.
    pub(super) in_flight: bool,
    /// The next step is timed from when it was due, not from its start.
    pub(super) is_scheduled: bool,
}

/// Progress of an attempt at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    No,
    Yes,
    /// It was sent to an address, or opens a connection to one, and is counted there, too.
    Out,
}

pub(super) const NO_LINE: u8 = u8::MAX;
/// Marks a pass: one of several iterations that a user runs in parallel.
pub(super) const PASS: u8 = NO_LINE - 1;

/// What a task waits for.
pub(super) enum Doing {
    /// Nothing: it is ready to run the current instruction.
    Step,
    /// A connection to open.
    Opening(Box<Opening>),
    /// A free connection to the target, since this time.
    Queued { since: Time },
    /// The response to a request, or room in the socket for what it sends.
    Exchange(Exchange),
    /// The end of all its branches.
    Join,
    /// Its deadline: think time.
    Pause,
    /// Its deadline: it stays and listens.
    Stay,
    /// Its deadline: backoff after a refusal, or before a retry.
    Holding,
    /// Other users, or its deadline.
    Rendezvous(Waiting),
    /// Its deadline, after which it asks the observer again.
    Gate,
    /// The end of a connection that the target is to close, or that we have closed.
    Closing,
    /// An iteration.
    Idle,
}

/// A connection that is opening.
pub(super) struct Opening {
    pub(super) work: Pin<Box<dyn Future<Output = Result<Opened, Failure>>>>,
    pub(super) progress: Rc<Progress>,
    pub(super) begun: Time,
    pub(super) target: u16,
    /// The stage that is missing if its handshake takes too long.
    pub(super) missing: Option<Missing>,
}

impl Opening {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Opened, Failure>> {
        self.work.as_mut().poll(cx)
    }

    /// The connection attempt is abandoned.
    fn given_up(&self, shard: &Lane) {
        shard.recorder.borrow_mut().interval.gauges.connections_opening -= 1;
        self.failed(shard, None);
    }

    /// The connection does not open. If it was established, counts which side ended it.
    pub(super) fn failed(&self, shard: &Lane, cause: Option<Cause>) {
        let established = self.progress.established.get();
        let ending = match cause {
            // No host answered.
            Some(Cause::ConnectTimeout) => Ending::TimedOut,
            _ if established == Time::NEVER => return,
            Some(Cause::ClosedEarly) => Ending::ClosedByTarget,
            Some(Cause::Reset) => Ending::Reset,
            Some(Cause::Timeout | Cause::Unreachable | Cause::NetworkFailed) => Ending::TimedOut,
            // We ended it: the certificate or the response was not acceptable, or the run is over.
            _ => Ending::ClosedByUs,
        };
        let lived = shard.clock.now() - established;
        shard.recorder.borrow_mut().connection_ended(ending, false, lived);
    }
}

/// The transactions a user is in; not allocated for users that never are in one.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// The innermost is last.
    pub(super) open: Vec<Open>,
    /// Total pause of the user since its first transaction started.
    pub(super) paused: Duration,
}

/// A transaction that has started and not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) step: StepId,
    pub(super) begin: Time,
    /// Value of [`Transactions::paused`] at the start.
    pub(super) paused: Duration,
    /// The first failed step in it.
    pub(super) failed: Option<(StepId, Cause)>,
}

/// Instruction of a task whose session is over, but whose connection is still open.
static BEHIND_THE_END: Instruction =
    Instruction::Do(Statement::Disconnect { link: 0, how: CloseMode::Fin });
static NO_PLAN: Plan = Plan::Nothing;
/// Its program counter: the code after the session belongs to the bodies of handlers.
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

    /// A body that starts, for a handler or a recurring action.
    pub(super) fn body(body: u32, of: u8, due: Time, answers: bool) -> Task {
        Task { pc: body, body, of, answers, is_scheduled: !answers, ..Task::session(due) }
    }

    /// A branch of the session, just as late if its iteration started late.
    pub(super) fn branch(begins: u32, session: &Task, now: Time) -> Task {
        // On time, a branch is due when it starts: a wait for a connection does not make it late.
        let is_scheduled = session.is_scheduled && session.due < now;
        let due = if is_scheduled { session.due } else { now };
        Task { pc: begins, body: begins, of: NO_LINE, is_scheduled, ..Task::session(due) }
    }

    /// One of several passes through the steps, due when the session is, for this iteration of the
    /// user.
    pub(super) fn pass(session: &Task, iteration: u64) -> Task {
        let (pc, is_scheduled) = (session.pc, session.is_scheduled);
        Task { pc, body: iteration as u32, of: PASS, is_scheduled, ..Task::session(session.due) }
    }

    /// The number of its iteration, after the user has started `begun` of them: a pass keeps its
    /// number while later iterations start.
    pub(super) fn iteration(&self, begun: u64) -> u64 {
        let later = match self.is_pass() {
            true => (begun as u32).wrapping_sub(self.body),
            false => 0,
        };
        begun - u64::from(later)
    }

    /// A branch or a pass: it reports a failure or `leave` to the session.
    pub(super) fn is_branch(&self) -> bool {
        self.of >= PASS
    }

    pub(super) fn is_pass(&self) -> bool {
        self.of == PASS
    }

    /// True for every task except the session.
    pub(super) fn is_body(&self) -> bool {
        self.body > 0 || self.is_pass()
    }

    /// Where its body starts, if it is one.
    pub(super) fn begins(&self) -> Option<u32> {
        Some(self.body).filter(|body| *body > 0 && !self.is_pass())
    }

    /// Whether it has the connection of a line to itself: to open it, or for its request.
    pub(super) fn uses(&self, line: u8) -> bool {
        let asks = matches!(self.doing, Doing::Opening(_) | Doing::Exchange(_));
        self.line == line && (asks || self.in_flight)
    }

    /// Its exchange on this connection.
    pub(super) fn exchange_on(&self, line: u8) -> Option<&Exchange> {
        match &self.doing {
            Doing::Exchange(exchange) if self.line == line => Some(exchange),
            _ => None,
        }
    }

    /// Takes the exchange that it waits for, and ends the wait.
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

    /// The redirect of this step's request, if any.
    pub(super) fn redirect(&self) -> Option<&Redirect> {
        self.detour.as_ref()?.redirect.as_ref()
    }

    /// Takes the request to resend, if this try is a resend.
    pub(super) fn take_again(&mut self) -> Option<Again> {
        let again = self.detour.as_mut().and_then(|detour| detour.again.take());
        again.filter(|again| again.is_of(self.pc, self.due))
    }

    /// Whether it waits for this on a connection.
    pub(super) fn awaits(&self, line: u8, what: Awaits) -> bool {
        self.exchange_on(line).is_some_and(|exchange| exchange.awaits == what)
    }

    /// Whether it waits for the end of this connection.
    pub(super) fn is_closing(&self, line: u8) -> bool {
        matches!(self.doing, Doing::Closing) && self.line == line
    }

    /// Cancels a resend.
    pub(super) fn withdraw_again(&mut self, shard: &Lane, now: Time) {
        let again = self.detour.as_mut().and_then(|detour| detour.again.take());
        if let Some(sent) = again.and_then(|again| again.sent) {
            deliver::withdraw(sent, shard, now);
        }
    }

    /// A try of the step ends.
    pub(super) fn flight_ends(&mut self, shard: &Lane) {
        if std::mem::take(&mut self.in_flight) {
            shard.recorder.borrow_mut().interval.gauges.in_flight -= 1;
        }
    }
}

/// One of a user's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Session,
    /// A background task, by its index.
    Other(usize),
}

/// A running task: it sees itself and what all tasks of its user share.
pub(super) struct Active<'a> {
    pub(super) shard: &'a Lane,
    pub(super) user: &'a mut State,
    pub(super) task: &'a mut Task,
    /// The session, if this is another task; needed to see which connection the session uses.
    pub(super) session: Option<&'a Task>,
}

impl<'a> Active<'a> {
    /// The current instruction and its prepared plan.
    pub(super) fn at_pc(&self) -> (&'a Instruction, &'a Plan) {
        at(self.shard, self.user.session, self.task.pc)
    }

    pub(super) fn instruction(&self) -> &'a Instruction {
        self.at_pc().0
    }

    /// The code of the user's session.
    pub(super) fn of_session(&self) -> &'a Code {
        &self.shard.prepared.sessions[usize::from(self.user.session)].code
    }

    /// Starts to wait for something, until the deadline.
    pub(super) fn wait_for(&mut self, doing: Doing, deadline: Time) {
        self.task.doing = doing;
        self.task.deadline = deadline;
        self.user.arm(deadline);
    }

    /// Starts an attempt at the step, unless one has started.
    pub(super) fn begin(&mut self, step: StepId) {
        if self.task.begun == Begun::No {
            self.task.begun = Begun::Yes;
            if !std::mem::take(&mut self.task.is_scheduled) {
                self.task.due = self.user.now;
            }
            self.shard.recorder.borrow_mut().begun(step);
        }
    }

    /// The running attempt goes to an address: that of its connection, open or opening.
    #[inline]
    pub(super) fn goes_out(&mut self) {
        if std::mem::replace(&mut self.task.begun, Begun::Out) == Begun::Yes {
            let place = self.user.lines.get(self.task.line).place;
            if let Some(row) = self.shard.recorder.borrow_mut().targets.of(place) {
                row.begun += 1;
            }
        }
    }

    /// The running attempt ended; returns the address it went to, if any.
    #[inline]
    pub(super) fn attempt_over(&mut self) -> Option<u16> {
        let was_out = std::mem::replace(&mut self.task.begun, Begun::No) == Begun::Out;
        was_out.then(|| self.user.lines.get(self.task.line).place)
    }

    /// Starts a try of the step, unless one has started.
    pub(super) fn flight_begins(&mut self, step: StepId) {
        self.begin(step);
        if !std::mem::replace(&mut self.task.in_flight, true) {
            self.shard.recorder.borrow_mut().interval.gauges.in_flight += 1;
        }
    }

    /// Takes the running step, if any, and the address it went to.
    pub(super) fn take_begun(&mut self) -> Option<(StepId, Option<u16>)> {
        let begun = self.task.begun != Begun::No;
        let place = self.attempt_over();
        Some((self.instruction().step().filter(|_| begun)?, place))
    }

    /// The running step, if any, will not finish.
    pub(super) fn interrupt(&mut self) {
        self.task.flight_ends(self.shard);
        if let Some((step, place)) = self.take_begun() {
            let mut recorder = self.shard.recorder.borrow_mut();
            recorder.interrupted(step);
            recorder.targets.interrupted(place);
            recorder.interval.population.interrupted += 1;
        }
    }

    /// Abandons the current wait.
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

    /// What this task asked for is no longer needed.
    pub(super) fn withdraw_exchange(&mut self) {
        if let Some(exchange) = self.task.take_exchange() {
            exchange.withdraw(self.shard, self.user.now);
            exchange.forget(self.shard);
        }
    }
}

/// An instruction of a session, and its prepared plan.
pub(super) fn at(shard: &Lane, session: u16, pc: u32) -> (&Instruction, &Plan) {
    let (session, pc) = (&shard.prepared.sessions[usize::from(session)], pc as usize);
    let (instruction, plan) = (session.code.all.get(pc), session.plans.get(pc));
    (instruction.unwrap_or(&BEHIND_THE_END), plan.unwrap_or(&NO_PLAN))
}
