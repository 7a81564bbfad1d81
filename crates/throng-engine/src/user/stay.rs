//! The verb `stay`: a user is there and listens.

use std::task::Context;

use throng_base::Time;
use throng_program::Stay;

use super::{Doing, User};

impl User {
    /// The verb `stay`.
    pub(super) fn stay(&mut self, stay: &Stay, cx: &mut Context<'_>) {
        let offline = self.connection.is_none();
        let needs = stay.heartbeat.is_some() || !stay.every.is_empty();
        if offline && (needs || self.loss.is_some()) {
            return self.without_connection(stay.step);
        }
        self.begin(stay.step);
        if let Some(heartbeat) = &stay.heartbeat {
            self.begin_beats_of_stay(heartbeat);
        }
        self.begin_every_of_stay(&stay.every);
        let until = stay.time.map_or(Time::NEVER, |time| self.due + time);
        self.wait_for(Doing::Stay, until);
        self.hear_later(cx);
    }

    /// What went on besides a `stay` ends with it.
    pub(super) fn stay_over(&mut self) {
        self.stay_beats_over();
        self.end_every_of_stay();
    }
}
