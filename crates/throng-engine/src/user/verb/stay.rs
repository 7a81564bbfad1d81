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

/// The verb `stay`.
pub(super) fn begin(active: &mut Active<'_>, stay: &Stay, plan: &StayPlan) {
    let line = active.user.line_of(stay.link);
    active.task.line = line;
    if active.user.lines.get(line).is_over_as_wanted() {
        // It ended just before. Its messages are for the handlers.
        active.begin(stay.step);
        if active.user.lines.get(line).keeps_something() && !active.task.is_body() {
            return active.wait_for(Doing::Stay, Time::NEVER);
        }
        active.user.lines.get_mut(line).take_loss(active.shard);
        return end_came(active, stay);
    }
    let place = active.user.lines.get(line);
    let needs = stay.heartbeat.is_some()
        || !stay.every.is_empty()
        || stay.awaits_end
        || place.loss.is_some()
        || active.has_left(line);
    if place.connection.is_none() && needs {
        return active.without_connection(stay.step);
    }
    let is_scheduled = active.task.is_scheduled;
    active.begin(stay.step);
    let late = if is_scheduled { active.user.now - active.task.due } else { Duration::ZERO };
    if let Some(time) = stay.time.filter(|time| {
        let is_late = late > *time;
        let has_duties =
            stay.heartbeat.is_some() || !stay.every.is_empty() || !stay.handlers.is_empty();
        is_late && !time.is_zero() && !stay.awaits_end && !has_duties
    }) {
        active.step_ok(stay.step, &Attempt::default());
        return catch_up(active, time);
    }
    if let Some(heartbeat) = &stay.heartbeat {
        active.user.heartbeats(line).begin_of_stay(heartbeat);
    }
    active.user.schedule(line, (&stay.every, plan), true);
    // A `stay` of length zero does not hide how late the next step is.
    active.task.is_scheduled = stay.time == Some(Duration::ZERO) && !late.is_zero();
    let until = stay.time.map_or(Time::NEVER, |time| active.task.due + time);
    active.wait_for(Doing::Stay, until);
}

/// The target ended the connection as the scenario expects.
fn end_came(active: &mut Active<'_>, stay: &Stay) {
    active.step_ok(stay.step, &awaited(active, stay));
    if !stay.awaits_end {
        active.paused();
    }
    active.next_step();
}

/// The target did not end the connection in time.
fn end_missed(active: &mut Active<'_>, stay: &Stay) {
    let waited = throng_base::units::format_duration(active.user.now - active.task.due);
    let detail = say!("the target did not close the connection within {waited}");
    let attempt = awaited(active, stay);
    active.step_failed(stay.step, &attempt, (Cause::Timeout, detail), Onward::NextStep);
}

/// A `stay` with a duration is not timed.
fn awaited(active: &Active<'_>, stay: &Stay) -> Attempt {
    let latency = stay.awaits_end.then(|| active.user.now - active.task.due);
    Attempt { latency, ..Attempt::default() }
}
/// The connection was lost during a `stay`.
pub(in crate::user) fn lost(active: &mut Active<'_>, line: u8) {
    let Some(loss) = active.user.lines.get_mut(line).take_loss(active.shard) else { return };
    let Instruction::Do(Statement::Stay(stay)) = active.instruction() else { return };
    active.task.doing = Doing::Step;
    if loss.is_wanted {
        return end_came(active, stay);
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
            return end_missed(active, stay);
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
