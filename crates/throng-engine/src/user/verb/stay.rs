//! The verb `stay`: a user stays connected and listens.

use std::time::Duration;

use throng_base::Time;
use throng_metrics::Cause;
use throng_program::{Statement, Stay};

use crate::prepared::StayPlan;
use crate::prepared::code::Instruction;
use crate::recorder::Attempt;
use crate::user::outcome::Onward;
use crate::user::task::{Active, Doing};
use crate::user::verb::control::catch_up;

/// A task that stays and listens.
pub(super) struct Staying<'v, 'a> {
    pub(super) active: &'v mut Active<'a>,
    pub(super) stay: &'v Stay,
}

impl Staying<'_, '_> {
    /// The verb `stay`.
    pub(super) fn begin(self, plan: &StayPlan) {
        let stay = self.stay;
        let line = self.active.user.line_of(stay.link);
        self.active.task.line = line;
        if self.active.user.lines.get(line).is_over_as_wanted() {
            // It ended just before. Its messages are for the handlers.
            self.active.begin(stay.step);
            if self.active.user.lines.get(line).keeps_something() && !self.active.task.is_body() {
                return self.active.wait_for(Doing::Stay, Time::NEVER);
            }
            self.active.user.lines.get_mut(line).take_loss(self.active.shard);
            return self.end_came();
        }
        let place = self.active.user.lines.get(line);
        let needs = stay.heartbeat.is_some()
            || !stay.every.is_empty()
            || stay.awaits_end
            || place.loss.is_some()
            || self.active.has_left(line);
        if place.connection.is_none() && needs {
            return self.active.without_connection(stay.step);
        }
        let is_scheduled = self.active.task.is_scheduled;
        self.active.begin(stay.step);
        let late =
            if is_scheduled { self.active.user.now - self.active.task.due } else { Duration::ZERO };
        if let Some(time) = stay.time.filter(|time| {
            let is_late = late > *time;
            let has_duties =
                stay.heartbeat.is_some() || !stay.every.is_empty() || !stay.handlers.is_empty();
            is_late && !time.is_zero() && !stay.awaits_end && !has_duties
        }) {
            self.active.step_ok(stay.step, &Attempt::default());
            return catch_up(self.active, time);
        }
        if let Some(heartbeat) = &stay.heartbeat {
            self.active.user.heartbeats(line).begin_of_stay(heartbeat);
        }
        self.active.user.schedule(line, (&stay.every, plan), true);
        // A `stay` of length zero does not hide how late the next step is.
        self.active.task.is_scheduled = stay.time == Some(Duration::ZERO) && !late.is_zero();
        let until = stay.time.map_or(Time::NEVER, |time| self.active.task.due + time);
        self.active.wait_for(Doing::Stay, until);
    }

    /// The target ended the connection as the scenario expects.
    fn end_came(self) {
        let stay = self.stay;
        self.active.step_ok(stay.step, &self.awaited());
        if !stay.awaits_end {
            self.active.paused();
        }
        self.active.next_step();
    }

    /// The target did not end the connection in time.
    fn end_missed(self) {
        let stay = self.stay;
        let waited =
            throng_base::units::format_duration(self.active.user.now - self.active.task.due);
        let detail = say!("the target did not close the connection within {waited}");
        let attempt = self.awaited();
        self.active.step_failed(stay.step, &attempt, (Cause::Timeout, detail), Onward::NextStep);
    }

    /// A `stay` with a duration is not timed.
    fn awaited(&self) -> Attempt {
        let latency = self.stay.awaits_end.then(|| self.active.user.now - self.active.task.due);
        Attempt { latency, ..Attempt::default() }
    }
}

/// The connection was lost during a `stay`.
pub(in crate::user) fn lost(active: &mut Active<'_>, line: u8) {
    let Some(loss) = active.user.lines.get_mut(line).take_loss(active.shard) else { return };
    let Instruction::Do(Statement::Stay(stay)) = active.instruction() else { return };
    active.task.doing = Doing::Step;
    if loss.is_wanted {
        return Staying { active, stay }.end_came();
    }
    let cause = match loss.failure.cause {
        Cause::Reset => Cause::Lost,
        _ => loss.cause(),
    };
    let finding = (cause, loss.in_words());
    let onward = Onward::Anew { refused: true };
    let attempt = Attempt { code: loss.code(), ..Attempt::default() };
    active.step_failed(stay.step, &attempt, finding, onward);
}

/// A think time or `stay` is over.
pub(in crate::user) fn pause_over(active: &mut Active<'_>, until: Time) {
    if let Instruction::Do(Statement::Stay(stay)) = active.instruction() {
        if stay.awaits_end {
            return Staying { active, stay }.end_missed();
        }
        active.step_ok(stay.step, &Attempt::default());
    }
    active.paused();
    // One of length zero; any other in a late iteration has absorbed the delay.
    match until <= active.task.due {
        true => active.pass_on(),
        false => active.next_step(),
    }
}
