//! What a task does if its exchange fails, or if its connection is lost while it waits.

use throng_base::{Said, Time};
use throng_metrics::Cause;
use throng_program::Statement;

use crate::failure::{Ended, Failure, Finding};
use crate::prepared::Plan;
use crate::prepared::code::Instruction;
use crate::recorder::Attempt;
use crate::user::agenda::no_room;
use crate::user::connection::Loss;
use crate::user::exchange::{Awaits, Exchange, Unheard};
use crate::user::outcome::Onward;
use crate::user::redirect::Again;
use crate::user::task::{Active, Doing};
use crate::user::verb::http::witness;

/// Message for a close that crossed with a request.
const CLOSED_WHILE_IDLE: Said =
    say!("the target closed the idle connection just as the request was sent");

/// How often a request is resent that the target says it has not processed: a target that refuses
/// everything is not asked forever. Go's client uses the same limit.
const RESENDS_MAX: u8 = 6;

impl Active<'_> {
    /// The connection of this task can no longer be used. Its own step fails for that, and the user
    /// notifies the others.
    pub(in crate::user) fn lose(&mut self, failure: Failure, ended: Ended) {
        let line = self.task.line;
        self.user.lose(line, Loss::new(failure, ended));
        if !self.task.is_body() {
            self.user.lines.get_mut(line).take_loss(self.shard);
        }
    }

    /// Nothing more arrives for the exchange of this task.
    pub(in crate::user) fn exchange_lost(&mut self, line: u8) {
        let Some(mut exchange) = self.task.take_exchange() else { return };
        let lacking = lacking(self, &exchange);
        // A resent request keeps its first deadline.
        let until = std::mem::replace(&mut self.task.deadline, Time::NEVER);
        let loss = match self.task.is_body() {
            // The session is notified, too.
            true => None,
            false => self.user.lines.get_mut(line).take_loss(self.shard),
        };
        let (failure, unheard) = match loss.as_deref().or(self.user.lines.get(line).loss.as_deref())
        {
            Some(loss) if loss.unheard => (loss.failure.clone(), Unheard::Idle),
            Some(loss) => (loss.failure_of(&exchange), Unheard::No),
            None => return,
        };
        if failure.cause.has_reason_code() {
            exchange.status = failure.status;
        }
        let lost = Unanswered::new(self, exchange);
        match lost.exchange.awaits {
            Awaits::Answer { .. } => lost.answer_lost(&failure, unheard, until),
            Awaits::Message | Awaits::Room | Awaits::Tls => {
                let finding = lacking.unwrap_or((failure.cause, failure.detail));
                lost.failed(finding, false, Onward::Anew { refused: false });
            }
        }
    }
}

/// An exchange that ends without its response.
pub(in crate::user) struct Unanswered<'v, 'a> {
    active: &'v mut Active<'a>,
    exchange: Exchange,
}

impl<'v, 'a> Unanswered<'v, 'a> {
    pub(in crate::user) fn new(active: &'v mut Active<'a>, exchange: Exchange) -> Self {
        Unanswered { active, exchange }
    }

    /// It timed out. If messages do not say what they answer, a late reply could be taken for the
    /// next one, so the connection can no longer be used.
    pub(in crate::user) fn timed_out(mut self) {
        let line = self.active.task.line;
        let waited = self.active.user.now - self.active.task.due;
        let waited = throng_base::units::format_duration(waited);
        let detail = self.exchange.progress(&waited);
        let named = match self.active.instruction() {
            Instruction::Do(Statement::Expect(expect)) => !expect.message.is_any(),
            Instruction::Do(Statement::Request(request)) => {
                self.exchange.number > 0 || !request.answer.is_any()
            }
            _ => false,
        };
        // We may have dropped the message that it waits for.
        let lacking = lacking(self.active, &self.exchange);
        let onward = match self.exchange.awaits {
            Awaits::Answer { .. } if self.active.user.lines.get(line).multiplexes() => {
                self.active.user.outbound(line).cancel(self.exchange.number);
                self.active.user.end_if_going(line);
                Onward::NextStep
            }
            Awaits::Answer { .. } => {
                self.active.user.drop_connection(line, Ended::TimedOut);
                Onward::NextStep
            }
            Awaits::Message if named => Onward::NextStep,
            Awaits::Message | Awaits::Room | Awaits::Tls => {
                self.active.lose(Failure::new(Cause::Timeout, detail.clone()), Ended::TimedOut);
                Onward::Anew { refused: false }
            }
        };
        // An error found earlier explains why there is no response.
        let found = self.exchange.rare.as_mut().and_then(|rare| rare.finding.take());
        let finding = found.or(lacking).unwrap_or((Cause::Timeout, detail));
        self.failed(finding, true, onward);
    }

    /// The response was wrong, or too late (then it is timed), or never arrived.
    pub(in crate::user) fn failed(self, (cause, detail): Finding, timed: bool, onward: Onward) {
        let Unanswered { active, exchange } = self;
        let Some(step) = active.instruction().step() else { return };
        let mut attempt = exchange.attempt(active.user.now, active.task.due);
        match exchange.awaits {
            Awaits::Answer { .. } => {
                witness(active, cause, &exchange, None);
                active.task.detour = None;
            }
            Awaits::Message | Awaits::Tls => {}
            Awaits::Room => attempt = Attempt::default(),
        }
        if !timed {
            attempt.latency = None;
        }
        exchange.withdraw(active.shard, active.user.now);
        let finding = (cause, exchange.traced(detail));
        exchange.forget(active.shard);
        active.step_failed(step, &attempt, finding, onward);
    }

    /// The response, or the rest of it, never arrives. A request that the target has not processed
    /// has not failed: it is resent, with the same deadline.
    pub(in crate::user) fn answer_lost(self, failure: &Failure, unheard: Unheard, until: Time) {
        if self.goes_again(unheard) {
            let rare = self.exchange.rare.as_deref();
            let again = Again {
                bytes_out: self.exchange.bytes_out,
                resends: self.exchange.resends() + 1,
                until,
                before: rare.and_then(|rare| rare.before.clone()),
                sent: rare.and_then(|rare| rare.sent),
                pc: self.active.task.pc,
                due: self.active.task.due,
            };
            self.active.task.detour.get_or_insert_default().again = Some(again);
            self.exchange.forget(self.active.shard);
            self.active.task.doing = Doing::Step;
            return;
        }
        let detail = match (unheard, self.exchange.resends()) {
            (Unheard::Idle, _) => CLOSED_WHILE_IDLE,
            (Unheard::Told, resends @ 1..) => {
                let (detail, times) = (failure.detail.clone(), resends + 1);
                say!("{detail}; the request was sent {times} times")
            }
            _ => failure.detail.clone(),
        };
        self.failed((failure.cause, detail), false, Onward::NextStep);
    }

    /// Whether a request that was lost is resent.
    fn goes_again(&self, unheard: Unheard) -> bool {
        let may = match (unheard, self.active.at_pc().1) {
            (Unheard::No, _) => false,
            // If the target probably has not processed it, only idempotent requests are safe.
            (Unheard::Idle, Plan::Http(plan)) => plan.idempotent,
            (Unheard::Idle, _) => false,
            // The target's word is enough for every method (RFC 9113, 8.7).
            (Unheard::Told, _) => self.exchange.resends() < RESENDS_MAX,
        };
        may && self.active.shard.prepared.program.connection.resend
    }
}

/// Why the message that a task waits for may be missing although the target has sent it.
fn lacking(active: &Active<'_>, exchange: &Exchange) -> Option<Finding> {
    if let Some(joined) = exchange.rare.as_ref().map(|rare| rare.joined).filter(|n| *n > 0) {
        let joined = throng_base::units::format_count(u64::from(joined));
        let detail = say!(
            "{joined} messages contained several JSON values that were not separated; one of \
             them may be the expected value"
        );
        return Some((Cause::MessagesJoined, detail));
    }
    let dropped = active.user.lines.get(active.task.line).dropped();
    if dropped == 0 || !matches!(active.instruction(), Instruction::Do(Statement::Expect(_))) {
        return None;
    }
    let dropped = throng_base::units::format_count(dropped);
    let reason = say!("{dropped} messages were dropped");
    Some((Cause::MessagesDropped, no_room(reason.clone())))
}
