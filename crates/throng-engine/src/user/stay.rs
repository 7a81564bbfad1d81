//! The verb `stay`: a user is there and listens.

use throng_base::Time;
use throng_program::Stay;

use super::task::{Active, Doing};

impl Active<'_> {
    /// The verb `stay`.
    pub(super) fn stay(&mut self, stay: &Stay) {
        self.task.line = stay.link;
        let line = self.user.lines.get(stay.link);
        let needs = stay.heartbeat.is_some() || !stay.every.is_empty() || line.loss.is_some();
        if line.connection.is_none() && needs {
            return self.without_connection(stay.step);
        }
        self.begin(stay.step);
        if let Some(heartbeat) = &stay.heartbeat {
            self.user.begin_beats_of_stay(stay.link, heartbeat);
        }
        self.user.schedule(stay.link, &stay.every, true);
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
