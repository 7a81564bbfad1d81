//! What a task does whose exchange ends badly, or whose connection is lost while it waits.

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

/// The words for a close that met a request on its way.
const CLOSED_WHILE_IDLE: Said =
    say!("the target closed the idle connection just as the request was sent");

/// So often a request is sent once more that the target says it has not looked at: a target that
/// refuses all is not asked for ever. It is what Go's client does.
const RESENDS_MAX: u8 = 6;

impl Active<'_> {
    /// The connection of this task is of no more use to anybody. Its own step fails for that, and
    /// the user tells the others.
    pub(in crate::user) fn lose(&mut self, failure: Failure, ended: Ended) {
        let line = self.task.line;
        self.user.lose(line, Loss::new(failure, ended));
        if !self.task.is_body() {
            self.user.lines.get_mut(line).take_loss(self.shard);
        }
    }

    /// Nothing more comes of what this task asked for.
    pub(in crate::user) fn exchange_lost(&mut self, line: u8) {
        let Some(mut exchange) = self.task.take_exchange() else { return };
        let lacking = lacking(self, &exchange);
        // What is sent again has no more time than it had.
        let until = std::mem::replace(&mut self.task.deadline, Time::NEVER);
        let loss = match self.task.is_body() {
            // The session hears of it, too.
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

/// An exchange of a task that ends without what was asked for.
pub(in crate::user) struct Unanswered<'v, 'a> {
    active: &'v mut Active<'a>,
    exchange: Exchange,
}

impl<'v, 'a> Unanswered<'v, 'a> {
    pub(in crate::user) fn new(active: &'v mut Active<'a>, exchange: Exchange) -> Self {
        Unanswered { active, exchange }
    }

    /// It did not end in time. Where messages do not say what they answer, what still comes could
    /// be taken for the next answer, so the connection is of no more use.
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
        // What it waits for may be among what we have dropped.
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
        // What was wrong before the end is why there is none.
        let found = self.exchange.rare.as_mut().and_then(|rare| rare.finding.take());
        let finding = found.or(lacking).unwrap_or((Cause::Timeout, detail));
        self.failed(finding, true, onward);
    }

    /// What was asked for was wrong, or came too late (then it is timed), or never came.
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

    /// No answer comes any more, or not the rest of it. A request that the target has not looked at
    /// has not failed: it is sent once more, and its time goes on.
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

    /// Whether a request that was lost is sent once more.
    fn goes_again(&self, unheard: Unheard) -> bool {
        let may = match (unheard, self.active.at_pc().1) {
            (Unheard::No, _) => false,
            // What only seems so is safe with what may be done twice.
            (Unheard::Idle, Plan::Http(plan)) => plan.idempotent,
            (Unheard::Idle, _) => false,
            // What the target says holds for every method (RFC 9113, 8.7).
            (Unheard::Told, _) => self.exchange.resends() < RESENDS_MAX,
        };
        may && self.active.shard.prepared.program.connection.resend
    }
}

/// Why a task may not find what it waits for although the target has said it.
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
