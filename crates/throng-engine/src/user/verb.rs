//! The verbs, each in a module of its own.

mod asking;
mod control;
pub(super) mod grpc;
pub(super) mod http;
pub(super) mod opening;
pub(super) mod parting;
pub(super) mod rendezvous;
pub(super) mod secure;
pub(super) mod sql;
pub(super) mod stay;
pub(super) mod talk;
pub(super) mod unanswered;

use std::task::Context;

use throng_base::Time;
use throng_program::Statement;

use super::task::{Active, Doing};
use super::verb::sql::execute;
use super::verb::stay::Staying;
use super::verb::unanswered::Unanswered;
use crate::prepared::Plan;
use crate::prepared::code::Instruction;

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
            (Instruction::Do(Statement::Sql(sql)), Plan::Sql(plan)) => execute(self, sql, plan, cx),
            (Instruction::Do(Statement::Connect(connect)), plan) => {
                opening::connect(self, connect, plan);
            }
            (Instruction::Do(Statement::Disconnect { link, how }), _) => {
                self.pass_on();
                let line = self.user.line_of(*link);
                parting::end_by(self, line, *how, cx);
            }
            (Instruction::Do(Statement::Secure(secure)), _) => secure::secure(self, secure),
            (Instruction::Do(Statement::Send(send)), _) => talk::send(self, send, cx),
            (Instruction::Do(Statement::Expect(expect)), _) => talk::expect(self, expect),
            (Instruction::Do(Statement::Request(request)), _) => talk::request(self, request, cx),
            (Instruction::Do(Statement::Stay(stay)), Plan::Stay(plan)) => {
                Staying { active: self, stay }.begin(plan);
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
