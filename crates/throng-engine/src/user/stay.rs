//! The verb `stay`: a user is there and listens.

use throng_base::Time;
use throng_program::Stay;

use super::task::{Active, Doing};
use crate::prepared::StayPlan;

impl Active<'_> {
    /// The verb `stay`.
    pub(super) fn stay(&mut self, stay: &Stay, plan: &StayPlan) {
        let line = self.user.line_of(stay.link);
        self.task.line = line;
        let place = self.user.lines.get(line);
        let needs = stay.heartbeat.is_some() || !stay.every.is_empty() || place.loss.is_some();
        if place.connection.is_none() && needs {
            return self.without_connection(stay.step);
        }
        self.begin(stay.step);
        if let Some(heartbeat) = &stay.heartbeat {
            self.user.begin_beats_of_stay(line, heartbeat);
        }
        self.user.schedule(line, (&stay.every, plan), true);
        let until = stay.time.map_or(Time::NEVER, |time| self.task.due + time);
        self.wait_for(Doing::Stay, until);
    }

    /// What went on besides a `stay` ends with it.
    pub(super) fn stay_over(&mut self) {
        for line in 0..self.user.lines.count() {
            self.user.stay_beats_over(line);
        }
        self.user.end_every_of_stay();
    }
}
