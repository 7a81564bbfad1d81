//! How steps end, and what the user does then. Every step of every verb ends here.

use std::time::Duration;

use throng_base::{Said, StepId};
use throng_expression::Value;
use throng_metrics::{Blame, Cause, StopBy, UserState};
use throng_program::{OnError, Retry, Save, Statement};

use super::State;
use super::flow::{Session, back_off};
use super::task::{Active, Doing, GONE};
use super::watched::{as_text, figures};
use crate::failure::Finding;
use crate::prepared::code::Instruction;
use crate::recorder::evidence::{Evidence, Exchange};
use crate::recorder::{Attempt, Found, Iteration, RETRY_AFTER_MAX_S};
use crate::trace::What;

/// A target that violates the protocol counts as this many consecutive refusals.
const BREAKS_REFUSALS: u8 = 6;

/// Most bytes kept of one field of a row.
const FIELD_BYTES_MAX: usize = 200;

/// How a user continues after a failure that is only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onward {
    /// With the next step.
    NextStep,
    /// With the next step after a pause, because a connection did not open. Without the pause, a
    /// closed target would be asked 100,000 times a second.
    HoldBack,
    /// The step has no connection: restarts the session, after a pause if the connection was
    /// refused.
    Anew { refused: bool },
}

impl Active<'_> {
    /// The running step succeeded; the caller continues with `next_step`.
    #[inline]
    pub(super) fn step_ok(&mut self, step: StepId, attempt: &Attempt) {
        self.task.flight_ends(self.shard);
        let place = self.attempt_over();
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.ok(step, attempt);
        recorder.slow(step, attempt, || slow(self, None));
        if let Some(place) = place {
            recorder.targets.ended(place, attempt, true);
        }
        let may_sample = recorder.wants_tcp_sample();
        drop(recorder);
        // A lost segment blocks all streams of a connection. With one request at a time, the
        // slowest attempts show that.
        let line = self.user.lines.get(self.task.line);
        if may_sample && line.http2().is_some() {
            line.sample(self.shard);
        }
        self.user.tell_end(step, attempt, None);
    }

    /// The running step failed. Every failure goes through here: the step is retried if the
    /// scenario says so; otherwise the failure is recorded and handled as the scenario says.
    /// Afterwards the user has something new to do; nothing of the step is left, or it waits for
    /// its retry.
    ///
    /// A step with all its retries is one attempt: the last try decides, and earlier ones are
    /// counted separately. Without its connection, a step is not retried, except `connect` and
    /// `http`, which open their own.
    pub(super) fn step_failed(
        &mut self,
        step: StepId,
        attempt: &Attempt,
        finding: Finding,
        onward: Onward,
    ) {
        self.task.flight_ends(self.shard);
        if finding.0 == Cause::DataExhausted && self.shard.data_is_over() {
            // The scenario ends the run: this is not a failure.
            self.interrupt();
            return match self.task.is_body() {
                true => self.leave_from_body(),
                false => Session::new(self).leave(onward),
            };
        }
        let (cause, detail) = finding;
        Failed { active: self, step, attempt, cause, detail }.handle(onward);
    }

    /// A step of a body failed: reacts as the scenario says.
    fn body_failed(&mut self, onward: Onward, then: OnError) {
        match (then, onward) {
            (OnError::Count, Onward::Anew { .. }) | (OnError::Stop, _) => {
                self.task.return_from_body();
            }
            (OnError::Count, onward) => self.go_on(onward),
            (OnError::Next, _) => {
                self.branch_leaves();
                self.task.return_from_body();
            }
            (OnError::Leave, _) => self.leave_from_body(),
        }
    }

    /// Ends the whole run because this step failed.
    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    pub(super) fn stop_for(&self, step: StepId, cause: Cause, detail: Said) {
        let name = &self.shard.prepared.program.step(step).name;
        let reason = match detail.is_empty() {
            true => say!("step `{name}` failed: {}", cause.text()),
            false => say!("step `{name}` failed: {}: {detail}", cause.text()),
        };
        self.shard.stop_because(self.user.now, reason, StopBy::Rule);
    }

    pub(super) fn go_on(&mut self, onward: Onward) {
        match onward {
            Onward::NextStep => self.next_step(),
            Onward::HoldBack => {
                self.next_step();
                if !self.user.leaving {
                    self.hold_back();
                }
            }
            Onward::Anew { refused } => Session::new(self).restart(refused),
        }
    }

    /// An expression had no value in an instruction that is not a step. The failure is counted in a
    /// row of its own, and the iteration is abandoned.
    pub(super) fn expression_failed(&mut self, (cause, detail): Finding) {
        if cause == Cause::DataExhausted && self.shard.data_is_over() {
            return match self.task.is_body() {
                true => self.leave_from_body(),
                false => Session::new(self).leave(Onward::NextStep),
            };
        }
        match self.shard.prepared.program.expressions {
            Some(step) => {
                self.user.failed_apart(step, &Attempt::default(), &(cause, detail));
                self.branch_fails(step, cause);
                if !self.task.is_body() {
                    self.task.transactions_fail(step, cause);
                }
            }
            None => self.shard.log(self.user.now, self.user.id, detail.english().as_bytes()),
        }
        match self.task.is_body() {
            true => {
                self.branch_leaves();
                self.task.return_from_body();
            }
            false => Session::new(self).leave_iteration(Onward::HoldBack),
        }
    }

    /// Whether a user closes without the connection that its session opens: it never opened, or the
    /// user has closed it. Steps over it are skipped.
    pub(super) fn has_left(&self, line: u8) -> bool {
        let place = self.user.lines.get(line);
        self.user.leaving
            && place.connection.is_none()
            && place.loss.is_none()
            && self.user.link_in(self.shard, line).lasts
    }

    /// A verb did not find the connection that it needs.
    pub(super) fn without_connection(&mut self, step: StepId) {
        if self.has_left(self.task.line) {
            return self.next_step();
        }
        self.begin(step);
        let never = say!("the step requires a connection, but none is open: use `connect` first");
        let (code, (cause, detail)) = match &self.user.lines.get(self.task.line).loss {
            Some(loss) => {
                use Cause::{Malformed, MemoryLimit, TooLarge};
                let cause = match loss.cause() {
                    cause @ (Malformed | TooLarge | MemoryLimit | Cause::HeartbeatLost) => cause,
                    cause if cause.has_reason_code() => cause,
                    _ => Cause::Lost,
                };
                (loss.code(), (cause, loss.in_words()))
            }
            None => (0, (Cause::ScenarioFailed, never)),
        };
        // A body must not drop messages that the session can still take.
        if !self.task.is_body() {
            self.user.lines.get_mut(self.task.line).take_loss(self.shard);
        }
        // A target that speaks another protocol will do so the next time, too.
        let breaks = matches!(cause, Cause::Malformed | Cause::TooLarge);
        if breaks {
            self.user.refusals = self.user.refusals.max(BREAKS_REFUSALS);
        }
        let onward = Onward::Anew { refused: breaks || cause == Cause::ScenarioFailed };
        self.step_failed(step, &Attempt { code, ..Attempt::default() }, (cause, detail), onward);
    }

    /// Values were saved from a response.
    pub(super) fn saved(&mut self, saves: &[Save]) {
        self.user.follow_audiences();
        if !self.shard.is_traced() {
            return;
        }
        for save in saves {
            let value = self.user.memory().values().get(usize::from(save.slot)).cloned();
            let value = value.unwrap_or_default();
            let name = || self.user.name_of(save.slot);
            self.user.tell(|| What::Saved { name: name(), value: as_text(&value) });
        }
    }
}

impl Session<'_, '_> {
    /// Abandons the iteration; the load decides when the next one starts.
    pub(super) fn leave_iteration(&mut self, onward: Onward) {
        self.active.interrupt();
        if let Onward::Anew { refused } = onward {
            return self.restart(refused);
        }
        if !self.active.user.running || self.active.user.leaving {
            // Outside of iterations: what precedes the first one restarts, and what follows the
            // last one is over.
            return self.restart(true);
        }
        self.end_iteration(Iteration::Failed);
        if onward == Onward::HoldBack && !self.active.user.leaving {
            self.active.hold_back();
        }
    }

    /// The user leaves because of a failure.
    pub(super) fn leave(&mut self, onward: Onward) {
        let gone = matches!(onward, Onward::Anew { .. });
        let leaving = self.active.user.leaving;
        let over = match self.active.shard.data_is_over() {
            true => Iteration::Interrupted,
            false => Iteration::Failed,
        };
        self.take_leave(over);
        // A long-lived connection that is gone needs no close, and a failure during the close does
        // not start it again.
        if gone || leaving {
            self.active.task.pc = GONE;
        }
    }

    /// The reaction of the session to a failure outside of its steps.
    pub(in crate::user) fn answer_unasked(&mut self, then: OnError) {
        let pauses = matches!(self.active.task.doing, Doing::Pause | Doing::Stay);
        match then {
            OnError::Next if pauses && self.active.user.running && !self.active.user.leaving => {
                self.leave_iteration(Onward::NextStep);
            }
            OnError::Count | OnError::Next => {}
            OnError::Leave | OnError::Stop => {
                self.active.shard.slots.borrow_mut().leave(self.active.user.slot);
            }
        }
    }
}

impl State {
    /// A failure outside of the running step: starts and ends in one call, in a row of its own.
    pub(super) fn failed_apart(
        &mut self,
        step: StepId,
        attempt: &Attempt,
        (cause, detail): &Finding,
    ) {
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.begun(step);
        recorder.failed(step, attempt, *cause, self.now, || detail.clone());
        drop(recorder);
        self.tell_end(step, attempt, Some((*cause, detail)));
    }
}

/// A step that failed.
struct Failed<'v, 'a> {
    active: &'v mut Active<'a>,
    step: StepId,
    attempt: &'v Attempt,
    cause: Cause,
    detail: Said,
}

impl Failed<'_, '_> {
    /// Retries the step, or records the failure and reacts as the scenario says.
    fn handle(mut self, onward: Onward) {
        let (step, cause, instruction) = (self.step, self.cause, self.active.instruction());
        let failing = instruction.failing();
        // A scenario that always fails must not fail as fast as it can.
        let onward = match onward {
            Onward::NextStep
                if cause.blame() == Blame::Scenario && self.attempt.latency.is_none() =>
            {
                Onward::HoldBack
            }
            onward => onward,
        };
        let asks = matches!(instruction, Instruction::Do(one) if one.opens_itself());
        let opens = asks || matches!(instruction, Instruction::Do(Statement::Connect(_)));
        if (opens || !matches!(onward, Onward::Anew { .. }))
            && failing.retry.is_some_and(|retry| self.tries_again(retry))
        {
            return self.retry();
        }
        self.record();
        let Failed { active, detail, .. } = self;
        let (user, line) = (&mut *active.user, active.task.line);
        match instruction {
            Instruction::Do(Statement::Connect(_)) => {
                user.life(line).ends(false);
                active.shard.strives(user.slot, user.id, UserState::Failed);
            }
            _ if asks || active.task.is_body() => {}
            _ => user.life(line).login_failed(cause),
        }
        active.branch_fails(step, cause);
        if failing.then == OnError::Stop {
            active.stop_for(step, cause, detail);
        }
        if active.task.is_body() {
            return active.body_failed(onward, failing.then);
        }
        active.task.transactions_fail(step, cause);
        match failing.then {
            OnError::Count => active.go_on(onward),
            OnError::Next => Session::new(active).leave_iteration(onward),
            OnError::Leave | OnError::Stop => Session::new(active).leave(onward),
        }
    }

    /// The last try failed, and so the attempt.
    fn record(&mut self) {
        let Failed { active, step, attempt, cause, detail } = self;
        let finding = Some((*cause, &*detail));
        active.user.tell_end(*step, attempt, finding);
        let (shard, place) = (active.shard, active.attempt_over());
        let mut recorder = shard.recorder.borrow_mut();
        if let Some(place) = place {
            recorder.targets.ended(place, attempt, false);
        }
        let now = active.user.now;
        if recorder.failed(*step, attempt, *cause, now, || detail.clone()) {
            recorder.add_evidence(evidence(active, attempt.code));
        }
        recorder.slow(*step, attempt, || slow(active, Some(*cause)));
        if std::mem::take(&mut active.task.retries) > 0 {
            recorder.given_up(*step);
        }
    }

    /// Waits before the next try of the running step; false if none is left.
    fn tries_again(&mut self, retry: Retry) -> bool {
        let Failed { active, attempt, cause, .. } = self;
        // A user that is leaving does not retry without limit.
        let on = retry.on.holds(*cause, attempt.code);
        if !on
            || !retry
                .times
                .map_or(!active.user.leaving, |times| u32::from(active.task.retries) < times)
        {
            return false;
        }
        let random = &mut active.user.random;
        let wait = back_off(random, retry.low, retry.high, active.task.retries);
        active.task.retries = active.task.retries.saturating_add(1);
        let told = Duration::from_secs(attempt.retry_after_s.min(RETRY_AFTER_MAX_S));
        active.hold(wait.max(told));
        true
    }

    /// The try failed, and another follows.
    fn retry(self) {
        let Failed { active, step, attempt, cause, detail } = self;
        let place = active.user.lines.get(active.task.line).place;
        let mut recorder = active.shard.recorder.borrow_mut();
        if let Some(row) = recorder.targets.of(place) {
            row.bytes_in += attempt.bytes_in;
            row.bytes_out += attempt.bytes_out;
        }
        recorder.retried(step, attempt, cause);
        drop(recorder);
        let (failure, figures) = ((cause, detail), || figures(attempt));
        active.user.tell(|| What::TryFails { step, failure, figures: figures() });
    }
}

/// Identifies an attempt that just ended in the logs of other systems.
#[cold]
fn slow(active: &Active<'_>, cause: Option<Cause>) -> Found {
    let (at, user) = (active.user.now, active.user.id.0);
    let connection = active.user.lines.connection(active.task.line);
    let info = connection.and_then(|connection| connection.transport.tcp_info());
    let read = active.shard.clock.now() - at;
    Found { at, user, cause, read, retransmits: info.map(|info| info.retransmits) }
}

/// The user that fails, and the rows it used.
#[cold]
fn evidence(active: &Active<'_>, code: u16) -> Evidence {
    let mut row = Vec::new();
    let memory = active.user.memory.as_deref();
    for (number, source) in active.shard.prepared.program.data.iter().enumerate() {
        let Some(taken) = memory.and_then(|memory| memory.row(number as u16)) else { continue };
        let mut add = |name: String, value: &Value| {
            let mut json = Vec::new();
            value.write_json(&mut json);
            json.truncate(FIELD_BYTES_MAX);
            row.push((name, String::from_utf8_lossy(&json).into_owned()));
        };
        for (column, name) in source.used().enumerate() {
            add(format!("{}.{name}", source.name), taken.field(column as u16));
        }
        if *taken.whole() != Value::Null {
            add(source.name.clone(), taken.whole());
        }
    }
    let exchange = Exchange::default();
    Evidence { user: active.user.id, iteration: active.user.iterations, code, row, exchange }
}
