//! Heartbeats that are due, and their replies.

use std::task::Context;

use throng_metrics::Cause;

use crate::failure::{Ended, Failure, Finding};
use crate::recorder::Attempt;
use crate::shard::Lane;
use crate::user::connection::mask_at;
use crate::user::listen::Inbound;
use crate::user::{State, User};

impl User {
    /// Sends the next heartbeat if it is due, and ends the wait for the last one if its time is up.
    pub(in crate::user) fn beats_woken(&mut self, shard: &Lane, cx: &mut Context<'_>) {
        for line in 0..self.state.lines.count() {
            let mut inbound = self.inbound(line, shard, cx);
            inbound.keep_alive();
            inbound.beat_woken();
        }
    }
}

impl Inbound<'_, '_> {
    fn beat_woken(&mut self) {
        let State { lines, now, .. } = &mut self.user.state;
        let (now, beats) = (*now, &mut lines.get_mut(self.line).beats);
        let is_due = now >= beats.due;
        if !is_due && now < beats.waits_until() {
            return;
        }
        let (stay, mut beats) = (self.user.session.pc, self.user.state.heartbeats(self.line));
        let Some((heartbeat, _)) = beats.current(self.shard, stay) else {
            return self.user.state.lines.get_mut(self.line).beats.over(self.shard);
        };
        // If the period is shorter than the timeout, a reply has one period.
        beats.lost(heartbeat);
        if is_due && let Err(error) = beats.send(heartbeat, self.cx) {
            self.broken(&error);
        }
    }

    pub(super) fn pong(&mut self, payload: &[u8]) {
        let place = self.user.state.lines.get(self.line);
        let is_its = match place.has_bare_pings() {
            true => place.beats.waits(),
            false => place.beats.is_answered_by_pong(payload),
        };
        if is_its {
            self.shard.recorder.borrow_mut().interval.traffic.messages.received += 1;
            self.beat_answered(payload.len() as u64);
        }
    }

    /// The reply to the heartbeat has arrived.
    pub(super) fn beat_answered(&mut self, bytes_in: u64) {
        let stay = self.user.session.pc;
        let beats = self.user.state.heartbeats(self.line);
        let Some((heartbeat, _)) = beats.current(self.shard, stay) else {
            return;
        };
        let due = self.user.state.lines.get_mut(self.line).beats.answered_at();
        self.shard.rearm(self.user.state.slot, self.user.alarm());
        let is_unsure = self.user.state.lines.get_mut(self.line).beats.is_unsure;
        let latency = (!is_unsure).then(|| self.user.state.now - due);
        let attempt = Attempt { latency, bytes_in, ..Attempt::default() };
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.interval.heartbeats.answered += 1;
        recorder.ok(heartbeat.step, &attempt);
        drop(recorder);
        self.user.state.lines.get(self.line).sample(self.shard);
        self.user.state.tell_end(heartbeat.step, &attempt, None);
    }

    pub(super) fn beat_broken(&mut self, finding: Finding) {
        let due = self.user.state.lines.get_mut(self.line).beats.answered_at();
        self.shard.rearm(self.user.state.slot, self.user.alarm());
        let latency = Some(self.user.state.now - due);
        let attempt = Attempt { latency, ..Attempt::default() };
        self.shard.recorder.borrow_mut().interval.heartbeats.lost += 1;
        let step = self.user.state.lines.get_mut(self.line).beats.step;
        self.user.state.heartbeats(self.line).failed(step, &attempt, finding);
    }

    /// Sends the keep-alive of the connection if it is due.
    fn keep_alive(&mut self) {
        let now = self.user.state.now;
        let Some(connection) = self.user.state.lines.connection_mut(self.line) else { return };
        if now < connection.machine.due() {
            return;
        }
        let mut out = Vec::new();
        let kept = connection.machine.keep_alive(now, mask_at(now), &mut out);
        let sent = self.user.state.outbound(self.line).send(&out, self.cx);
        match (kept, sent) {
            (Err(violation), _) => {
                let failure = Failure::new(Cause::HeartbeatLost, violation.said());
                self.lost(failure, Ended::TimedOut);
            }
            (Ok(()), Err(error)) => self.broken(&error),
            (Ok(()), Ok(())) => {}
        }
    }
}
