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

/// The words for a close that met a request on its way.
const CLOSED_WHILE_IDLE: Said =
    say!("the target closed the idle connection just as the request was sent");

/// So often a request is sent once more that the target says it has not looked at: a target that
/// refuses all is not asked for ever. It is what Go's client does.
const RESENDS_MAX: u8 = 6;

impl Active<'_> {
    /// It did not end in time. Where messages do not say what they answer, what still comes could
    /// be taken for the next answer, so the connection is of no more use.
    pub(in crate::user) fn exchange_timed_out(&mut self, mut exchange: Exchange) {
        let waited = throng_base::units::format_duration(self.user.now - self.task.due);
        let detail = exchange.progress(&waited);
        let named = match self.instruction() {
            Instruction::Do(Statement::Expect(expect)) => !expect.message.is_any(),
            Instruction::Do(Statement::Request(request)) => {
                exchange.number > 0 || !request.answer.is_any()
            }
            _ => false,
        };
        // What it waits for may be among what we have dropped.
        let lacking = self.lacking(&exchange);
        let onward = match exchange.awaits {
            Awaits::Answer { .. } if self.user.lines.get(self.task.line).multiplexes() => {
                self.user.cancel(self.task.line, exchange.number);
                self.user.end_if_going(self.task.line);
                Onward::NextStep
            }
            Awaits::Answer { .. } => {
                self.user.drop_connection(self.task.line, Ended::TimedOut);
                Onward::NextStep
            }
            Awaits::Message if named => Onward::NextStep,
            Awaits::Message | Awaits::Room | Awaits::Tls => {
                self.lose(Failure::new(Cause::Timeout, detail.clone()), Ended::TimedOut);
                Onward::Anew { refused: false }
            }
        };
        // What was wrong before the end is why there is none.
        let found = exchange.rare.as_mut().and_then(|rare| rare.finding.take());
        let finding = found.or(lacking).unwrap_or((Cause::Timeout, detail));
        self.exchange_failed(exchange, finding, true, onward);
    }

    /// Why a task may not find what it waits for although the target has said it.
    fn lacking(&self, exchange: &Exchange) -> Option<Finding> {
        if let Some(joined) = exchange.rare.as_ref().map(|rare| rare.joined).filter(|n| *n > 0) {
            let joined = throng_base::units::format_count(u64::from(joined));
            let detail = say!(
                "{joined} messages contained several JSON values that were not separated; one of \
                 them may be the expected value"
            );
            return Some((Cause::MessagesJoined, detail));
        }
        let dropped = self.user.lines.get(self.task.line).dropped();
        if dropped == 0 || !matches!(self.instruction(), Instruction::Do(Statement::Expect(_))) {
            return None;
        }
        let dropped = throng_base::units::format_count(dropped);
        let reason = say!("{dropped} messages were dropped");
        Some((Cause::MessagesDropped, no_room(reason.clone())))
    }

    /// The connection of this task is of no more use to anybody. Its own step fails for that, and
    /// the user tells the others.
    pub(in crate::user) fn lose(&mut self, failure: Failure, ended: Ended) {
        let line = self.task.line;
        self.user.lose(line, Loss::new(failure, ended));
        if !self.task.is_body() {
            self.user.take_loss(line);
        }
    }

    /// What was asked for was wrong, or came too late (then it is timed), or never came.
    pub(in crate::user) fn exchange_failed(
        &mut self,
        exchange: Exchange,
        (cause, detail): Finding,
        timed: bool,
        onward: Onward,
    ) {
        let Some(step) = self.instruction().step() else { return };
        let mut attempt = exchange.attempt(self.user.now, self.task.due);
        match exchange.awaits {
            Awaits::Answer { .. } => {
                self.witness(cause, &exchange, None);
                self.task.detour = None;
            }
            Awaits::Message | Awaits::Tls => {}
            Awaits::Room => attempt = Attempt::default(),
        }
        if !timed {
            attempt.latency = None;
        }
        self.withdraw(&exchange);
        let finding = (cause, exchange.traced(detail));
        exchange.forget(self.shard);
        self.step_failed(step, &attempt, finding, onward);
    }

    /// The connection was lost while the user was there and listened.
    pub(in crate::user) fn stay_lost(&mut self, line: u8) {
        let Some(loss) = self.user.take_loss(line) else { return };
        let Instruction::Do(Statement::Stay(stay)) = self.instruction() else { return };
        self.task.doing = Doing::Step;
        if loss.is_wanted {
            return self.end_came(stay);
        }
        let cause = match loss.failure.cause {
            Cause::Reset => Cause::Lost,
            _ => loss.cause(),
        };
        let finding = (cause, loss.in_words());
        let onward = Onward::Anew { refused: true };
        let attempt = Attempt { code: loss.code(), ..Attempt::default() };
        self.step_failed(stay.step, &attempt, finding, onward);
    }

    /// Nothing more comes of what this task asked for.
    pub(in crate::user) fn exchange_lost(&mut self, line: u8) {
        let Doing::Exchange(mut exchange) = std::mem::replace(&mut self.task.doing, Doing::Step)
        else {
            return;
        };
        let lacking = self.lacking(&exchange);
        // What is sent again has no more time than it had.
        let until = std::mem::replace(&mut self.task.deadline, Time::NEVER);
        let loss = match self.task.is_body() {
            // The session hears of it, too.
            true => None,
            false => self.user.take_loss(line),
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
        match exchange.awaits {
            Awaits::Answer { .. } => self.answer_lost(exchange, &failure, unheard, until),
            Awaits::Message | Awaits::Room | Awaits::Tls => {
                let finding = lacking.unwrap_or((failure.cause, failure.detail));
                let onward = Onward::Anew { refused: false };
                self.exchange_failed(exchange, finding, false, onward);
            }
        }
    }

    /// No answer comes any more, or not the rest of it. A request that the target has not looked at
    /// has not failed: it is sent once more, and its time goes on.
    pub(in crate::user) fn answer_lost(
        &mut self,
        exchange: Exchange,
        failure: &Failure,
        unheard: Unheard,
        until: Time,
    ) {
        if self.goes_again(&exchange, unheard) {
            let rare = exchange.rare.as_deref();
            let again = Again {
                bytes_out: exchange.bytes_out,
                resends: exchange.resends() + 1,
                until,
                before: rare.and_then(|rare| rare.before.clone()),
                sent: rare.and_then(|rare| rare.sent),
                pc: self.task.pc,
                due: self.task.due,
            };
            self.task.detour.get_or_insert_default().again = Some(again);
            exchange.forget(self.shard);
            self.task.doing = Doing::Step;
            return;
        }
        let detail = match (unheard, exchange.resends()) {
            (Unheard::Idle, _) => CLOSED_WHILE_IDLE,
            (Unheard::Told, resends @ 1..) => {
                let (detail, times) = (failure.detail.clone(), resends + 1);
                say!("{detail}; the request was sent {times} times")
            }
            _ => failure.detail.clone(),
        };
        self.exchange_failed(exchange, (failure.cause, detail), false, Onward::NextStep);
    }

    /// Whether a request that was lost is sent once more.
    pub(in crate::user) fn goes_again(&self, exchange: &Exchange, unheard: Unheard) -> bool {
        let may = match (unheard, self.at_pc().1) {
            (Unheard::No, _) => false,
            // What only seems so is safe with what may be done twice.
            (Unheard::Idle, Plan::Http(plan)) => plan.idempotent,
            (Unheard::Idle, _) => false,
            // What the target says holds for every method (RFC 9113, 8.7).
            (Unheard::Told, _) => exchange.resends() < RESENDS_MAX,
        };
        may && self.shard.prepared.program.connection.resend
    }
}
