//! Heartbeats that are due, and what answers them.

use std::rc::Rc;
use std::task::Context;

use throng_metrics::Cause;

use crate::failure::{Ended, Failure, Finding};
use crate::recorder::Attempt;
use crate::shard::Lane;
use crate::user::User;
use crate::user::connection::mask_at;

impl User {
    /// The moment may have come for the next heartbeat, or for the end of the wait for the last
    /// one.
    pub(in crate::user) fn beats_woken(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        for line in 0..self.state.lines.count() {
            keep_alive(self, shard, line, cx);
            let beats = &self.state.lines.get(line).beats;
            let (now, due, until) = (self.state.now, beats.due, beats.waits_until());
            if now < due && now < until {
                continue;
            }
            let Some((heartbeat, _)) = self.state.heartbeat(shard, line, self.session.pc) else {
                self.state.lines.get_mut(line).beats.over(shard);
                continue;
            };
            // Where the period is shorter than the deadline, an answer has its period.
            self.state.beat_lost(line, heartbeat);
            if now >= due
                && let Err(error) = self.state.beat(line, heartbeat, cx)
            {
                self.broken(shard, line, &error, cx);
            }
        }
    }

    /// A pong came.
    pub(in crate::user) fn pong(&mut self, shard: &Lane, line: u8, payload: &[u8]) {
        let place = self.state.lines.get(line);
        let is_its = match place.has_bare_pings() {
            true => place.beats.waits(),
            false => place.beats.is_answered_by_pong(payload),
        };
        if is_its {
            shard.recorder.borrow_mut().messages.received += 1;
            self.beat_answered(line, payload.len() as u64);
        }
    }

    /// The heartbeat that was waited for is answered.
    pub(in crate::user) fn beat_answered(&mut self, line: u8, bytes_in: u64) {
        let shard = Rc::clone(&self.state.shard);
        let Some((heartbeat, _)) = self.state.heartbeat(&shard, line, self.session.pc) else {
            return;
        };
        let due = self.state.lines.get_mut(line).beats.answered_at();
        shard.rearm(self.state.slot, self.alarm());
        let is_unsure = self.state.lines.get_mut(line).beats.is_unsure;
        let latency = (!is_unsure).then(|| self.state.now - due);
        let attempt = Attempt { latency, bytes_in, ..Attempt::default() };
        let mut recorder = shard.recorder.borrow_mut();
        recorder.heartbeats.answered += 1;
        recorder.ok(heartbeat.step, &attempt);
        drop(recorder);
        self.state.sample(line);
        self.state.tell_end(heartbeat.step, &attempt, None);
    }

    pub(in crate::user) fn beat_broken(&mut self, line: u8, finding: Finding) {
        let shard = Rc::clone(&self.state.shard);
        let due = self.state.lines.get_mut(line).beats.answered_at();
        shard.rearm(self.state.slot, self.alarm());
        let latency = Some(self.state.now - due);
        let attempt = Attempt { latency, ..Attempt::default() };
        shard.recorder.borrow_mut().heartbeats.lost += 1;
        let step = self.state.lines.get_mut(line).beats.step;
        self.state.beat_failed(step, &attempt, finding);
    }
}

/// Says what keeps a connection alive, where that is due.
fn keep_alive(user: &mut User, shard: &Lane, line: u8, cx: &mut Context<'_>) {
    let now = user.state.now;
    let Some(connection) = user.state.lines.connection_mut(line) else { return };
    if now < connection.machine.due() {
        return;
    }
    let mut out = Vec::new();
    let kept = connection.machine.keep_alive(now, mask_at(now), &mut out);
    let sent = user.state.send(line, &out, cx);
    match (kept, sent) {
        (Err(violation), _) => {
            let failure = Failure::new(Cause::HeartbeatLost, violation.said());
            user.lost(shard, line, failure, Ended::TimedOut, cx);
        }
        (Ok(()), Err(error)) => user.broken(shard, line, &error, cx),
        (Ok(()), Ok(())) => {}
    }
}
