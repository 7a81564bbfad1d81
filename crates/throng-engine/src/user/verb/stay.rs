//! The verb `stay`: a user is there and listens.

use std::time::Duration;

use throng_base::Time;
use throng_metrics::Cause;
use throng_program::{Statement, Stay};

use crate::code::Instruction;
use crate::prepared::StayPlan;
use crate::recorder::Attempt;
use crate::user::outcome::Onward;
use crate::user::task::{Active, Doing};

impl Active<'_> {
    /// The verb `stay`.
    pub(in crate::user) fn stay(&mut self, stay: &Stay, plan: &StayPlan) {
        let line = self.user.line_of(stay.link);
        self.task.line = line;
        if self.user.lines.get(line).is_over_as_wanted() {
            // It ended just before. What it said is for the handlers.
            self.begin(stay.step);
            if self.user.lines.get(line).keeps_something() && !self.task.is_body() {
                return self.wait_for(Doing::Stay, Time::NEVER);
            }
            self.user.lines.get_mut(line).take_loss(self.shard);
            return self.end_came(stay);
        }
        let place = self.user.lines.get(line);
        let needs = stay.heartbeat.is_some()
            || !stay.every.is_empty()
            || stay.awaits_end
            || place.loss.is_some()
            || self.has_left(line);
        if place.connection.is_none() && needs {
            return self.without_connection(stay.step);
        }
        let is_scheduled = self.task.is_scheduled;
        self.begin(stay.step);
        let late = if is_scheduled { self.user.now - self.task.due } else { Duration::ZERO };
        if let Some(time) = stay.time.filter(|time| {
            let is_late = late > *time;
            let has_duties =
                stay.heartbeat.is_some() || !stay.every.is_empty() || !stay.handlers.is_empty();
            is_late && !time.is_zero() && !stay.awaits_end && !has_duties
        }) {
            self.step_ok(stay.step, &Attempt::default());
            return self.catch_up(time);
        }
        if let Some(heartbeat) = &stay.heartbeat {
            self.user.heartbeats(line).begin_of_stay(heartbeat);
        }
        self.user.schedule(line, (&stay.every, plan), true);
        // Without length, it does not hide how late the next step is.
        self.task.is_scheduled = stay.time == Some(Duration::ZERO) && !late.is_zero();
        let until = stay.time.map_or(Time::NEVER, |time| self.task.due + time);
        self.wait_for(Doing::Stay, until);
    }

    /// The target ended the connection as the scenario has it.
    pub(in crate::user) fn end_came(&mut self, stay: &Stay) {
        self.step_ok(stay.step, &self.awaited(stay));
        if !stay.awaits_end {
            self.paused();
        }
        self.next_step();
    }

    /// The connection was lost while the user was there and listened.
    pub(in crate::user) fn stay_lost(&mut self, line: u8) {
        let Some(loss) = self.user.lines.get_mut(line).take_loss(self.shard) else { return };
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

    /// The target did not end the connection in time.
    fn end_missed(&mut self, stay: &Stay) {
        let waited = throng_base::units::format_duration(self.user.now - self.task.due);
        let detail = say!("the target did not close the connection within {waited}");
        let attempt = self.awaited(stay);
        self.step_failed(stay.step, &attempt, (Cause::Timeout, detail), Onward::NextStep);
    }

    /// Who stays for a time is not timed.
    fn awaited(&self, stay: &Stay) -> Attempt {
        let latency = stay.awaits_end.then(|| self.user.now - self.task.due);
        Attempt { latency, ..Attempt::default() }
    }

    /// The time of thinking or staying is over.
    pub(in crate::user) fn pause_over(&mut self, until: Time) {
        if let Instruction::Do(Statement::Stay(stay)) = self.instruction() {
            if stay.awaits_end {
                return self.end_missed(stay);
            }
            self.step_ok(stay.step, &Attempt::default());
        }
        self.paused();
        // One without length; any other in a late iteration was caught up with.
        match until <= self.task.due {
            true => self.pass_on(),
            false => self.next_step(),
        }
    }
}
