//! What the verbs do, each in a module of its own, and which of them an answer is for.

mod asking;
pub(super) mod close_mode;
mod control;
mod grpc;
pub(super) mod http;
pub(super) mod messages;
pub(super) mod opening;
pub(super) mod rendezvous;
pub(super) mod secure;
mod sql;
pub(super) mod stay;
pub(super) mod unanswered;

use std::task::Context;

use throng_base::Time;
use throng_program::Statement;
use throng_protocol::http1::{Event as Part, Jar};
use throng_protocol::machine::Answered;

use super::exchange::Exchange;
use super::redirect::Detour;
use super::send::Acknowledgement;
use super::task::{Active, Doing};
use super::verb::grpc::{Listened, ask_for_call};
use super::verb::http::{Listening, answer_complete};
use super::verb::unanswered::Unanswered;
use crate::failure::Failure;
use crate::prepared::Plan;
use crate::prepared::code::Instruction;
use crate::scope::UserScope;
use crate::shard::Lane;

/// What reads the response to a request over a stream.
pub(super) enum Asker<'a> {
    Http(Listening<'a>),
    Call(Listened<'a>),
}

/// What of a user a response may change.
pub(super) type Changed<'a, 'b> = (&'a mut Option<Box<Jar>>, &'a mut UserScope<'b>);

impl<'a> Asker<'a> {
    /// Of what a task does; None if that asks nothing over a stream.
    #[inline]
    pub(super) fn of(
        shard: &'a Lane,
        at: (&'a Instruction, &'a Plan),
        detour: Option<&'a Detour>,
        (target, due): (u16, Time),
    ) -> Option<Asker<'a>> {
        match at {
            (Instruction::Do(Statement::Http(http)), Plan::Http(plan)) => {
                let redirect = detour.and_then(|detour| detour.redirect.as_ref());
                Some(Asker::Http(Listening { shard, http, plan, redirect, target }))
            }
            (Instruction::Do(Statement::Call(call)), Plan::Call(plan)) => {
                Some(Asker::Call(Listened { shard, call, plan, due }))
            }
            _ => None,
        }
    }

    #[inline]
    pub(super) fn read(
        &self,
        part: &Part<'_>,
        exchange: &mut Exchange,
        (jar, scope): Changed<'_, '_>,
    ) -> Result<(), Failure> {
        match (self, part) {
            (Asker::Http(http), Part::Head(head)) => http.head(head, exchange, jar, scope),
            (Asker::Http(http), Part::Body(bytes)) => {
                exchange.piece(bytes, http.plan, None, http.shard);
            }
            (Asker::Call(call), Part::Head(head)) => return call.head(head, exchange),
            (Asker::Call(call), Part::Body(bytes)) => return call.data(bytes, exchange, scope),
            (Asker::Call(call), Part::Trailers(trailers)) => {
                return call.trailers(*trailers, exchange);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The response over a stream is complete.
pub(super) fn stream_complete(active: &mut Active<'_>) {
    match active.instruction() {
        Instruction::Do(Statement::Call(_)) => grpc::call_complete(active),
        _ => answer_complete(active, true, None),
    }
}

/// What a task has asked is answered in full.
pub(super) fn answered(active: &mut Active<'_>, answer: &Answered<'_>) {
    match (answer, Acknowledgement::of(answer, active.instruction().checks())) {
        (_, Some(acknowledgement)) => messages::acknowledged(active, &acknowledgement),
        (Answered::Sql(reply), None) => sql::done(active, reply),
        _ => {}
    }
}

impl Active<'_> {
    /// A task's deadline has passed.
    pub(super) fn deadline_passed(&mut self) {
        let until = std::mem::replace(&mut self.task.deadline, Time::NEVER);
        match std::mem::replace(&mut self.task.doing, Doing::Step) {
            Doing::Step | Doing::Idle | Doing::Join => {}
            Doing::Pause | Doing::Stay => stay::pause_over(self, until),
            Doing::Holding => {
                self.paused();
                self.task.due = self.user.now;
            }
            Doing::Gate => self.task.due = self.user.now,
            // It was checked before its deadline.
            Doing::Rendezvous(waiting) => rendezvous::woken(self, waiting),
            Doing::Closing => {
                self.user.life(self.task.line).goodbye_unanswered();
                self.user.drop_connection(self.task.line, super::Ended::ByUs);
                self.closed_in_order(until);
            }
            Doing::Queued { since } => asking::queued_in_vain(self, since),
            Doing::Opening(one) => opening::timed_out(self, &one),
            Doing::Exchange(exchange) => Unanswered::new(self, exchange).timed_out(),
        }
    }

    pub(super) fn instruct(&mut self, cx: &mut Context<'_>) {
        match self.at_pc() {
            (Instruction::Do(Statement::Http(http)), Plan::Http(plan)) => {
                http::ask(self, http, plan, cx);
            }
            (Instruction::Do(Statement::Call(call)), Plan::Call(plan)) => {
                grpc::ask(self, call, plan, cx);
            }
            (Instruction::Do(Statement::Sql(sql)), Plan::Sql { keeps, .. }) => {
                sql::execute(self, sql, *keeps, cx);
            }
            (Instruction::Do(Statement::Connect(connect)), plan) => {
                opening::connect(self, connect, plan);
            }
            (Instruction::Do(Statement::Disconnect { link, how }), _) => {
                self.pass_on();
                let line = self.user.line_of(*link);
                close_mode::end_by(self, line, *how, cx);
            }
            (Instruction::Do(Statement::Secure(secure)), _) => secure::secure(self, secure),
            (Instruction::Do(Statement::Send(send)), _) => messages::send(self, send, cx),
            (Instruction::Do(Statement::Expect(expect)), _) => messages::expect(self, expect),
            (Instruction::Do(Statement::Request(request)), _) => {
                messages::request(self, request, cx);
            }
            (Instruction::Do(Statement::Stay(stay)), Plan::Stay(plan)) => {
                stay::begin(self, stay, plan);
            }
            (Instruction::Parallel(branches), _) => control::parallel(self, branches),
            (Instruction::Return, _) => self.task.return_from_body(),
            (Instruction::Do(Statement::Slow { link, slow }), _) => {
                let (now, line) = (self.user.now, self.user.line_of(*link));
                if let Some(connection) = self.user.lines.connection_mut(line) {
                    connection.slow_down(*slow, now);
                }
                self.pass_on();
            }
            // Each of these has its plan: instruction and plan are created together.
            (Instruction::Do(Statement::Stay(_)), _) => self.next_step(),
            (Instruction::Do(one), _) if one.opens_itself() => self.next_step(),
            (other, _) => control::control(self, other),
        }
    }
}
