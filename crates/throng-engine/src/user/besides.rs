//! What a user does besides its session: the bodies of its handlers, and what it does every so
//! often. Each runs the instructions of its own, with the user's verbs; while it does, its program
//! counter and what it waits for are the user's, and those of the session are put aside.
//!
//! A body runs once at a time: what comes for it meanwhile waits in order, and what is due
//! meanwhile is skipped. So its loops and values are its own.

use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use throng_base::{StepId, Time};
use throng_metrics::Cause;
use throng_program::{Every, Handler, OnError};
use throng_protocol::framed::{MessageId, Packet};

use super::backlog::{Backlog, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX, Waits};
use super::beat::first_time;
use super::flow::{GONE, at_pc};
use super::hear::takes_any;
use super::link::Ended;
use super::outcome::Onward;
use super::{Doing, User};
use crate::connector::Failure;
use crate::prepared::HandlerPlan;
use crate::recorder::Attempt;
use crate::scope::scope;
use crate::verify::{Finding, Looked};

/// What a body does before the user's session has its turn.
const TURNS_MAX: u32 = 1000;
/// When a body goes on that has done so much.
const SOON: Duration = Duration::from_millis(1);

/// What a user does besides.
#[derive(Default)]
pub(super) struct Besides {
    /// When what is done every so often is due: those of the session, if the user came online, then
    /// those of a `stay`.
    every: Vec<Time>,
    of_session: usize,
    of_stay: usize,
    /// Bodies that wait for something.
    running: Vec<Strand>,
    /// Messages for bodies of handlers that run.
    waiting: Backlog<Waiting>,
    /// What waits is given out; who does it goes on until nothing is left.
    is_serving: bool,
}

/// A message for the body of a handler, which runs.
struct Waiting {
    body: u32,
    payload: Vec<u8>,
}

impl Waits for Waiting {
    fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// A body that runs: what of a user is its own.
struct Strand {
    /// Where it begins: which one it is.
    body: u32,
    pc: u32,
    retries: u16,
    due: Time,
    deadline: Time,
    doing: Doing,
    in_flight: bool,
    begun: Option<StepId>,
    is_scheduled: bool,
    /// It is the body of a handler: a message of the target is not done with before it is over.
    answers: bool,
}

impl Strand {
    /// One that begins: a handler's, or one that was due.
    fn new(body: u32, due: Time, answers: bool) -> Strand {
        Strand {
            body,
            pc: body,
            retries: 0,
            due,
            deadline: Time::NEVER,
            doing: Doing::Step,
            in_flight: false,
            begun: None,
            is_scheduled: !answers,
            answers,
        }
    }
}

/// What ended the connection in the middle of a body.
pub(crate) type Loss = (Failure, Ended);

impl Besides {
    /// Whether a try at a step of a body is on its way.
    pub(super) fn is_in_flight(&self) -> bool {
        self.running.iter().any(|strand| strand.in_flight)
    }

    /// Messages that came and are not done with: those that wait, and those whose body pauses.
    fn owed(&self) -> u64 {
        let paused = self.running.iter().filter(|strand| strand.answers && !strand.in_flight);
        (self.waiting.len() + paused.count()) as u64
    }

    /// Whether a user that has to leave does something first.
    pub(super) fn holds_back(&self) -> bool {
        self.is_in_flight() || self.owed() > 0
    }

    pub(super) fn alarm(&self) -> Time {
        let running = self.running.iter().map(|strand| strand.deadline);
        self.every.iter().copied().chain(running).min().unwrap_or(Time::NEVER)
    }

    /// When the target has no time any more to answer one of the bodies.
    pub(super) fn waits_until(&self) -> Time {
        self.running.iter().map(|strand| strand.deadline).min().unwrap_or(Time::NEVER)
    }
}

impl User {
    /// The user is online: what its session does every so often begins.
    pub(super) fn begin_every(&mut self) {
        let shard = Rc::clone(&self.shard);
        let every = &shard.prepared.program.sessions[usize::from(self.session)].links[0].every;
        self.schedule(every);
        if !every.is_empty() {
            self.besides.get_or_insert_default().of_session = every.len();
        }
    }

    pub(super) fn begin_every_of_stay(&mut self, every: &[Every]) {
        self.schedule(every);
        if !every.is_empty() {
            self.besides.get_or_insert_default().of_stay = every.len();
        }
    }

    fn schedule(&mut self, every: &[Every]) {
        if every.is_empty() {
            return;
        }
        let (id, now, share) = (self.id, self.now, self.shard.share);
        let besides = self.besides.get_or_insert_default();
        besides.every.extend(every.iter().map(|one| first_time(id, one.time, now, share)));
        self.arm_alarm();
    }

    /// The user does not stay any more.
    pub(super) fn end_every_of_stay(&mut self) {
        if let Some(besides) = &mut self.besides {
            let of_stay = std::mem::take(&mut besides.of_stay);
            besides.every.truncate(besides.every.len() - of_stay);
        }
    }

    fn is_running(&self, body: u32) -> bool {
        let running = self.besides.iter().flat_map(|besides| &besides.running);
        running.into_iter().any(|strand| strand.body == body)
    }

    /// Does with a message what its handler says.
    pub(super) fn handle(
        &mut self,
        handler: &Handler,
        plan: &HandlerPlan,
        looked: &Looked<'_>,
        cx: &mut Context<'_>,
    ) {
        let payload = looked.document.bytes();
        let busy = handler.body.filter(|body| self.is_running(*body));
        let shard = Rc::clone(&self.shard);
        let mut scope = scope!(self, &shard);
        // What a body works with is saved when it begins.
        let saves = if busy.is_some() { &[][..] } else { &handler.saves };
        let mut verdict = plan.look.judge(&handler.checks, saves, looked, &mut scope);
        shard.recorder.borrow_mut().messages.pushes += 1;
        self.first_message();
        if let (Some(body), Ok(())) = (busy, &verdict) {
            verdict = self.wait_for_body(body, payload);
        }
        let attempt = Attempt { bytes_in: self.wire_bytes(payload), ..Attempt::default() };
        let Err((cause, detail)) = verdict else {
            shard.recorder.borrow_mut().came(handler.step, &attempt);
            if shard.is_traced() {
                self.trace_ended(handler.step, &attempt, None);
            }
            if let (Some(body), None) = (handler.body, busy) {
                self.answer(body, cx);
            }
            return;
        };
        let mut recorder = shard.recorder.borrow_mut();
        recorder.begun(handler.step);
        recorder.failed(handler.step, &attempt, cause, self.now, || detail.clone());
        drop(recorder);
        if shard.is_traced() {
            self.trace_ended(handler.step, &attempt, Some((cause, &detail)));
        }
        match handler.failing.then {
            OnError::Stop => self.stop_for(handler.step, cause, &detail),
            then => self.answer_unasked(then),
        }
    }

    /// The same with a message that has waited for the body, and was counted when it came.
    fn handle_waited(&mut self, body: u32, payload: &[u8], cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        let Some((handler, plan)) = shard.prepared.handler_with(self.session, body) else { return };
        let mut verdict = Ok(());
        self.look_again(payload, |user, looked| {
            let mut scope = scope!(user, &shard);
            verdict = plan.look.judge(&handler.checks, &handler.saves, looked, &mut scope);
        });
        match verdict {
            Ok(()) => self.answer(body, cx),
            // It was good when it came, and is counted so; what the body needs of it is not there.
            Err(_) => shard.recorder.borrow_mut().messages.skipped += 1,
        }
    }

    /// What is done when something fails that no step is about.
    pub(super) fn answer_unasked(&mut self, then: OnError) {
        let pauses = matches!(self.doing, Doing::Pause | Doing::Stay);
        match then {
            OnError::Next if pauses && self.running && !self.leaving => {
                self.leave_iteration(Onward::NextStep);
            }
            OnError::Count | OnError::Next => {}
            OnError::Leave | OnError::Stop => self.told_to_leave(),
        }
    }

    /// Keeps a message until the body is free. A user that has to leave keeps none.
    // sentences
    fn wait_for_body(&mut self, body: u32, payload: &[u8]) -> Result<(), Finding> {
        if self.shard.seats.borrow().must_leave(self.slot) {
            self.shard.recorder.borrow_mut().messages.skipped += 1;
            return Ok(());
        }
        let waiting = &mut self.besides.get_or_insert_default().waiting;
        if waiting.has_room(payload.len()) {
            waiting.push(Waiting { body, payload: payload.to_vec() });
            return Ok(());
        }
        self.shard.recorder.borrow_mut().messages.dropped += 1;
        Err((Cause::MessagesDropped, no_room("the steps of this handler are not done in time")))
    }

    /// Begins the body of a handler. Its message came a while ago, as the kernel has it: what the
    /// body sends counts from now.
    fn answer(&mut self, body: u32, cx: &mut Context<'_>) {
        let came = self.now;
        self.now = self.shard.clock.now();
        self.begin_body(Strand::new(body, self.now, true), cx);
        self.now = came;
    }

    fn begin_body(&mut self, strand: Strand, cx: &mut Context<'_>) {
        self.go_through(strand, cx, |_| {});
    }

    /// Runs a body until it waits for something or is over.
    fn go_through(
        &mut self,
        mut strand: Strand,
        cx: &mut Context<'_>,
        begin: impl FnOnce(&mut User),
    ) {
        self.swap(&mut strand);
        self.in_body = true;
        begin(self);
        let mut turns = 0;
        while matches!(self.doing, Doing::Step) && self.pc != GONE {
            if turns == TURNS_MAX {
                self.wait_for(Doing::Holding, self.now + SOON);
                break;
            }
            self.instruct(cx);
            turns += 1;
        }
        let over = self.pc == GONE;
        self.in_body = false;
        self.swap(&mut strand);
        let served = Some(strand.body).filter(|_| over && strand.answers);
        if !over {
            self.besides.get_or_insert_default().running.push(strand);
            self.arm_alarm();
        }
        let loss = self.shard.body_loss.take();
        if let Some((failure, ended)) = loss {
            return self.lost(&failure, ended);
        }
        if let Some(body) = served {
            self.serve_waiting(body, cx);
        }
    }

    /// The body is free again: it does with what waits for it what it did with what came before.
    fn serve_waiting(&mut self, body: u32, cx: &mut Context<'_>) {
        // A body that ends at once comes here again: whoever began goes on.
        if let Some(besides) = self.besides.as_mut().filter(|besides| !besides.is_serving) {
            besides.is_serving = true;
        } else {
            return;
        }
        while !self.is_running(body)
            && let Some(besides) = &mut self.besides
            && let Some(one) = besides.waiting.take_first(|one| one.body == body)
        {
            self.handle_waited(body, &one.payload, cx);
        }
        if let Some(besides) = &mut self.besides {
            besides.is_serving = false;
        }
    }

    /// The socket has taken everything: bodies that have sent something go on.
    pub(super) fn bodies_sent(&mut self, cx: &mut Context<'_>) {
        let sends = |strand: &Strand| matches!(strand.doing, Doing::Sending(_));
        while self.is_sent()
            && let Some(besides) = &mut self.besides
            && let Some(index) = besides.running.iter().position(sends)
        {
            let strand = besides.running.swap_remove(index);
            self.now = self.shard.clock.now();
            self.go_through(strand, cx, User::sent);
        }
    }

    fn swap(&mut self, strand: &mut Strand) {
        std::mem::swap(&mut self.pc, &mut strand.pc);
        std::mem::swap(&mut self.retries, &mut strand.retries);
        std::mem::swap(&mut self.due, &mut strand.due);
        std::mem::swap(&mut self.deadline, &mut strand.deadline);
        std::mem::swap(&mut self.doing, &mut strand.doing);
        std::mem::swap(&mut self.in_flight, &mut strand.in_flight);
        std::mem::swap(&mut self.begun, &mut strand.begun);
        std::mem::swap(&mut self.is_scheduled, &mut strand.is_scheduled);
    }

    /// The instruction `return`: the body is over.
    pub(super) fn return_from_body(&mut self) {
        self.pc = GONE;
        self.deadline = Time::NEVER;
        self.doing = Doing::Step;
    }

    /// The verb `leave` in a body: the user leaves as soon as it can.
    pub(super) fn leave_from_body(&mut self) {
        self.told_to_leave();
        self.return_from_body();
    }

    fn told_to_leave(&self) {
        self.shard.seats.borrow_mut().leave(self.slot);
    }

    /// A step of a body failed: what the scenario says is done.
    pub(super) fn body_failed(
        &mut self,
        step: StepId,
        (cause, detail): (Cause, &str),
        onward: Onward,
        then: OnError,
    ) {
        match then {
            OnError::Count => match onward {
                Onward::Anew { .. } => self.return_from_body(),
                onward => self.go_on(onward),
            },
            OnError::Next => self.return_from_body(),
            OnError::Leave => self.leave_from_body(),
            OnError::Stop => {
                self.stop_for(step, cause, detail);
                self.return_from_body();
            }
        }
    }

    /// The connection is lost while a body runs: the session hears of it when it has its turn.
    pub(super) fn lost_in_body(&mut self, failure: &Failure, ended: Ended) {
        let finding = (failure.cause, failure.detail.clone());
        self.shard.body_loss.borrow_mut().get_or_insert_with(|| (failure.clone(), ended));
        match std::mem::replace(&mut self.doing, Doing::Step) {
            Doing::Message(awaited) => {
                self.message_failed(&awaited, finding, None, Onward::Anew { refused: false });
            }
            Doing::Sending(sent) => self.sending_failed(&sent, failure),
            _ => {}
        }
        self.return_from_body();
    }

    /// A moment has come for which something besides waits.
    pub(super) fn besides_woken(&mut self, cx: &mut Context<'_>) {
        let shard = Rc::clone(&self.shard);
        at_pc!(self, _shard, instruction, _plan);
        let session = &shard.prepared.program.sessions[usize::from(self.session)].links[0].every;
        let of_stay = match instruction {
            throng_program::Instruction::Stay(stay) => &*stay.every,
            _ => &[],
        };
        let of_session = self.besides.as_ref().map_or(0, |besides| besides.of_session);
        let session = &session[..of_session.min(session.len())];
        for (index, every) in session.iter().chain(of_stay).enumerate() {
            let Some(besides) = &mut self.besides else { return };
            let Some(due) = besides.every.get_mut(index) else { break };
            // What is due when a `stay` is over is not due any more, however late we are.
            if *due > self.now || (index >= session.len() && *due >= self.deadline) {
                continue;
            }
            let begun = *due;
            let mut skipped = 0;
            *due = *due + every.time;
            while *due <= self.now {
                *due = *due + every.time;
                skipped += 1;
            }
            let runs = self.is_running(every.body);
            let from = shard.recurs_late(begun, self.now);
            let mut recorder = shard.recorder.borrow_mut();
            recorder.messages.overdue += skipped + u64::from(runs);
            drop(recorder);
            // Who is to leave begins nothing more.
            if !runs && !shard.seats.borrow().must_leave(self.slot) {
                self.begin_body(Strand::new(every.body, from, false), cx);
            }
        }
        // Each has its turn once: what is due again at once waits for the next waking.
        let is_due = |strand: &Strand| strand.deadline <= self.now;
        let running = self.besides.iter().flat_map(|besides| &besides.running);
        let mut left = running.filter(|strand| is_due(strand)).count();
        while left > 0
            && let Some(besides) = &mut self.besides
            && let Some(index) = besides.running.iter().position(|one| one.deadline <= self.now)
        {
            left -= 1;
            let strand = besides.running.swap_remove(index);
            self.go_through(strand, cx, User::deadline_passed);
        }
    }

    /// The body that waits for this message.
    ///
    /// A body that takes whatever comes next does not where a handler is `handled`.
    pub(super) fn body_that_awaits(
        &mut self,
        looked: &mut Looked<'_>,
        packet: Option<Packet>,
        handled: bool,
    ) -> Option<(usize, Time)> {
        let shard = Rc::clone(&self.shard);
        let besides = self.besides.take()?;
        let code = &shard.prepared.program.sessions[usize::from(self.session)].code;
        let mut scope = scope!(self, &shard);
        let elapsed = looked.elapsed;
        let mut awaits = |strand: &Strand| {
            let Doing::Message(awaited) = &strand.doing else { return false };
            if handled && takes_any(code.get(strand.pc as usize)) {
                return false;
            }
            looked.elapsed = scope.now - strand.due;
            User::is_awaited(strand.pc, awaited, looked, packet, &mut scope)
        };
        // Where replies do not say what they answer, who asked first is answered first.
        let all = besides.running.iter().enumerate().filter(|(_, strand)| awaits(strand));
        let first = all.min_by_key(|(_, strand)| strand.due).map(|(index, one)| (index, one.due));
        looked.elapsed = first.map_or(elapsed, |(_, due)| self.now - due);
        self.besides = Some(besides);
        first
    }

    /// The body that waits for the message that is broken.
    pub(super) fn body_with_broken(
        &self,
        read: (Option<MessageId>, Option<u64>),
        is_sole: bool,
    ) -> Option<usize> {
        let running = &self.besides.as_ref()?.running;
        running.iter().position(|strand| match &strand.doing {
            Doing::Message(awaited) => {
                self.is_broken_answer(strand.pc, awaited, read).unwrap_or(is_sole)
            }
            _ => false,
        })
    }

    /// How many bodies wait for a message.
    pub(super) fn bodies_that_await(&self) -> usize {
        let running = self.besides.iter().flat_map(|besides| &besides.running);
        running.filter(|strand| matches!(strand.doing, Doing::Message(_))).count()
    }

    pub(super) fn break_body(&mut self, index: usize, finding: Finding, cx: &mut Context<'_>) {
        let Some(besides) = &mut self.besides else { return };
        let strand = besides.running.swap_remove(index);
        self.go_through(strand, cx, |user| user.answer_broken(finding));
    }

    pub(super) fn answer_body(
        &mut self,
        index: usize,
        looked: &Looked<'_>,
        packet: Option<Packet>,
        cx: &mut Context<'_>,
    ) {
        let Some(besides) = &mut self.besides else { return };
        let strand = besides.running.swap_remove(index);
        self.go_through(strand, cx, |user| user.answer_came(looked, packet));
    }

    /// The connection has ended, for this cause if it was not us: nothing is done besides.
    pub(super) fn end_besides(&mut self, cause: Option<Cause>) {
        let Some(besides) = self.besides.take() else { return };
        let shard = Rc::clone(&self.shard);
        for strand in &besides.running {
            if let Doing::Message(awaited) | Doing::Sending(awaited) = &strand.doing {
                self.withdraw(awaited);
            }
            let Some(step) = strand.begun else { continue };
            let mut recorder = shard.recorder.borrow_mut();
            recorder.gauges.in_flight -= u64::from(strand.in_flight);
            match cause {
                Some(cause) => {
                    // sentences
                    let detail = || "the connection ended before the answer came".into();
                    recorder.failed(step, &Attempt::default(), cause, self.now, detail);
                    if strand.retries > 0 {
                        recorder.given_up(step);
                    }
                }
                None => {
                    recorder.interrupted(step);
                    recorder.population.interrupted += 1;
                }
            }
        }
        shard.recorder.borrow_mut().messages.skipped += besides.owed();
    }
}

/// The bytes of messages that wait for handlers.
pub(super) fn waiting_bytes(besides: &Option<Box<Besides>>) -> usize {
    besides.as_ref().map_or(0, |besides| besides.waiting.bytes())
}

/// Why a message was dropped.
// sentences
pub(super) fn no_room(reason: &str) -> String {
    let most = throng_base::units::format_count(WAITING_MESSAGES_MAX as u64);
    let mebibytes = WAITING_BYTES_MAX >> 20;
    format!("more than {most} messages or {mebibytes} MiB waited for one user: {reason}")
}
