//! The heartbeats of a user that is online: on a schedule of their own, answered or lost.

use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use throng_base::{Share, StepId, Time, UserId};
use throng_metrics::Cause;
use throng_program::{Beat, Heartbeat, Statement};
use throng_protocol::framed::{MessageId, Packet, Protocol};

use super::State;
use super::send::Sent;
use super::task::at;
use crate::failure::Finding;
use crate::looked::Looked;
use crate::prepared::Plan;
use crate::prepared::code::Instruction;
use crate::prepared::look::Look;
use crate::recorder::Attempt;
use crate::scope::scope;
use crate::shard::Lane;

/// The moments of heartbeats lie on a grid: those of a shard that are due together are sent in one
/// waking. Each shard has its own place on it, so that the shards do not wake together, and all are
/// still spread evenly.
const GRID: Duration = Duration::from_millis(10);

/// Where a user is with its heartbeats.
#[derive(Clone, Copy)]
pub(super) struct Beats {
    /// When the next one is due; [`Time::NEVER`] without any.
    pub(super) due: Time,
    /// From when on the one counts that is not answered; [`Time::NEVER`] when there is none.
    asked: Time,
    /// How long the answer has, in milliseconds.
    patience_ms: u32,
    /// What its answer carries, where replies carry something.
    number: u32,
    /// On this connection; no more are counted than can be asked for.
    sent: u16,
    /// The row of the one that is not answered.
    pub(super) step: StepId,
    /// One was lost on this connection, and messages do not say which one they answer: what looks
    /// like an early answer may be a late one. It has no latency any more.
    pub(super) is_unsure: bool,
    /// The `stay` at the program counter has a heartbeat of its own.
    of_stay: bool,
}

impl Beats {
    pub(super) const NONE: Beats = Beats {
        due: Time::NEVER,
        asked: Time::NEVER,
        patience_ms: 0,
        number: 0,
        sent: 0,
        step: StepId(0),
        is_unsure: false,
        of_stay: false,
    };

    /// When something is to be done about them.
    pub(super) fn alarm(&self) -> Time {
        self.due.min(self.waits_until())
    }

    /// Whether an answer is waited for, and no longer than until now.
    pub(super) fn waits_until(&self) -> Time {
        self.asked + Duration::from_millis(u64::from(self.patience_ms))
    }

    pub(super) fn answered_at(&mut self) -> Time {
        std::mem::replace(&mut self.asked, Time::NEVER)
    }

    /// Whether an answer is waited for.
    pub(super) fn waits(&self) -> bool {
        self.asked != Time::NEVER
    }

    /// These heartbeats are over: of the one that is not answered it will not be known whether it
    /// would have been.
    pub(super) fn over(&mut self, shard: &Lane) {
        if self.answered_at() != Time::NEVER {
            let mut recorder = shard.recorder.borrow_mut();
            recorder.heartbeats.interrupted += 1;
            recorder.interrupted(self.step);
        }
        *self = Beats::NONE;
    }

    /// A pong came: whether it answers the ping that is waited for. Pings carry from when on they
    /// count, so that a late answer is not taken for an early one.
    pub(super) fn is_answered_by_pong(&self, payload: &[u8]) -> bool {
        self.asked != Time::NEVER && payload == self.asked.as_nanos().to_be_bytes()
    }
}

/// The first moment after `now` at which something that this user does every so often is due: the
/// users are spread evenly over the period, in the order in which they come as well as all
/// together.
pub(super) fn first_time(user: UserId, every: Duration, now: Time, share: Share) -> Time {
    // The multiples of the golden section's fraction, modulo one, lie apart from each other for
    // any number of them (Weyl's sequence); as a share of 2^64.
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let every_ns = every.as_nanos().max(1) as u64;
    let place = (u128::from(user.0.wrapping_mul(GOLDEN)) * u128::from(every_ns)) >> 64;
    let grid = GRID.as_nanos() as u64;
    let (thread, threads) = share.place();
    let offset = match every_ns > 2 * grid {
        true => place as u64 / grid * grid + grid * thread / threads,
        false => place as u64,
    };
    let passed = now.as_nanos().saturating_sub(offset);
    let begun = passed / every_ns + u64::from(now.as_nanos() >= offset);
    Time(offset + begun * every_ns)
}

impl State {
    /// The heartbeat that goes on now on a line, and how its answer is looked at; of a `stay`, it
    /// is the one there.
    pub(super) fn heartbeat<'a>(
        &self,
        shard: &'a Lane,
        line: u8,
        stay: u32,
    ) -> Option<(&'a Heartbeat, &'a Look)> {
        if self.lines.get(line).beats.of_stay
            && let (Instruction::Do(Statement::Stay(stay)), Plan::Stay(plan)) =
                at(shard, self.session, stay)
        {
            return Some((stay.heartbeat.as_ref()?, &plan.answer));
        }
        let links = &shard.prepared.program.sessions[usize::from(self.session)].links;
        let link = links.get(usize::from(self.lines.get(line).link))?;
        Some((link.heartbeat.as_ref()?, &self.link_in(shard, line).hears.answer))
    }

    /// The user is online on a line: the heartbeats of its link begin.
    pub(super) fn begin_beats(&mut self, line: u8) {
        let shard = Rc::clone(&self.shard);
        let sent = self.lines.get_mut(line).beats.sent;
        self.lines.get_mut(line).beats.over(&shard);
        if self.lines.get(line).is_online()
            && let Some((heartbeat, _)) = self.heartbeat(&shard, line, 0)
        {
            let due = self.first_beat(heartbeat);
            (self.lines.get_mut(line).beats.sent, self.lines.get_mut(line).beats.due) = (sent, due);
            self.arm(due);
        }
    }

    /// A `stay` has heartbeats of its own.
    pub(super) fn begin_beats_of_stay(&mut self, line: u8, heartbeat: &Heartbeat) {
        let (due, sent) = (self.first_beat(heartbeat), self.lines.get_mut(line).beats.sent);
        self.lines.get_mut(line).beats.over(&self.shard);
        self.lines.get_mut(line).beats = Beats { of_stay: true, due, sent, ..Beats::NONE };
        self.arm(due);
    }

    fn first_beat(&self, heartbeat: &Heartbeat) -> Time {
        first_time(self.id, heartbeat.every, self.now, self.shard.share) + heartbeat.fault.late
    }

    pub(super) fn stay_beats_over(&mut self, line: u8) {
        if self.lines.get(line).beats.of_stay {
            self.begin_beats(line);
        }
    }

    /// Sends the heartbeat that is due.
    pub(super) fn beat(
        &mut self,
        line: u8,
        heartbeat: &Heartbeat,
        cx: &mut Context<'_>,
    ) -> std::io::Result<()> {
        let now = self.now;
        let due = self.lines.get_mut(line).beats.due;
        let fault = heartbeat.fault;
        let from = self.shard.recurs_late(due, now);
        let mut next = due + heartbeat.every;
        while next <= now {
            // What could not be sent in its own period is not sent in another's.
            self.shard.recorder.borrow_mut().heartbeats.skipped += 1;
            next = next + heartbeat.every;
        }
        self.lines.get_mut(line).beats.due = next;
        if fault.stop_after.is_some_and(|most| self.lines.get_mut(line).beats.sent >= most) {
            self.shard.recorder.borrow_mut().heartbeats.faulty += 1;
            return Ok(());
        }
        for time in 0..fault.times.max(1) {
            let sent = match &heartbeat.beat {
                Beat::Message(message) => match self.send_message(line, message, cx) {
                    Ok(sent) => sent?,
                    Err(finding) => {
                        self.shard.recorder.borrow_mut().begun(heartbeat.step);
                        self.beat_failed(heartbeat.step, &Attempt::default(), finding);
                        return Ok(());
                    }
                },
                Beat::Ping => {
                    let bytes = self.send_ping(line, &from.as_nanos().to_be_bytes(), cx)?;
                    Sent { bytes, ..Sent::default() }
                }
            };
            let (is_first, lost_after) = (time == 0, heartbeat.lost_after);
            let mut recorder = self.shard.recorder.borrow_mut();
            recorder.beat_sent(heartbeat.step, sent.bytes, is_first, lost_after.is_some());
            drop(recorder);
            if let Some(patience) = lost_after.filter(|_| is_first) {
                let beats = &mut self.lines.get_mut(line).beats;
                beats.asked = from;
                beats.patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
                (beats.number, beats.step) = (sent.number, heartbeat.step);
            }
        }
        let beats = &mut self.lines.get_mut(line).beats;
        beats.sent = beats.sent.saturating_add(1);
        let doubles = u64::from(fault.times.max(1)) - 1;
        self.shard.recorder.borrow_mut().heartbeats.faulty +=
            doubles + u64::from(!fault.late.is_zero());
        Ok(())
    }

    /// Whether the message is the answer to the heartbeat that is waited for.
    pub(super) fn answers_beat(
        &mut self,
        line: u8,
        stay: u32,
        looked: &Looked<'_>,
        packet: Option<Packet>,
    ) -> bool {
        if !self.lines.get(line).beats.waits() {
            return false;
        }
        let shard = Rc::clone(&self.shard);
        let Some((heartbeat, look)) = self.heartbeat(&shard, line, stay) else { return false };
        let Beat::Message(_) = heartbeat.beat else { return false };
        if let Some(packet) = packet {
            let meant = &heartbeat.answer.messages;
            let number = u64::from(self.lines.get(line).beats.number);
            let numbered = packet.correlation.is_none_or(|it| it == number);
            if !numbered || !meant.is_empty() && !meant.contains(&packet.message) {
                return false;
            }
        }
        let mut scope = scope!(self, &shard);
        look.fits(&heartbeat.answer.checks, looked, &mut scope)
    }

    /// Whether a broken message is the answer to the heartbeat that is waited for.
    pub(super) fn is_broken_beat(
        &self,
        line: u8,
        stay: u32,
        read: (Option<MessageId>, Option<u64>),
    ) -> bool {
        let beats = &self.lines.get(line).beats;
        let heartbeat = self.heartbeat(&self.shard, line, stay).filter(|_| beats.waits());
        let Some((heartbeat, _)) = heartbeat else { return false };
        match read {
            (Some(message), _) if !heartbeat.answer.messages.contains(&message) => false,
            (_, Some(carried)) if beats.number > 0 => carried == u64::from(beats.number),
            (message, _) => message.is_some(),
        }
    }

    pub(super) fn beat_lost(&mut self, line: u8, heartbeat: &Heartbeat) {
        let asked = self.lines.get_mut(line).beats.answered_at();
        if asked == Time::NEVER {
            return;
        }
        let waited = self.now - asked;
        // What carries a number is known when it comes late.
        let correlates = self.protocol(line).is_some_and(Protocol::correlates);
        let is_bare = self.lines.get(line).has_bare_pings();
        let beats = &mut self.lines.get_mut(line).beats;
        let numbered = correlates && beats.number > 0;
        beats.is_unsure = is_bare || matches!(heartbeat.beat, Beat::Message(_)) && !numbered;
        let step = beats.step;
        self.shard.recorder.borrow_mut().heartbeats.lost += 1;
        let attempt = Attempt { latency: Some(waited), ..Attempt::default() };
        let waited = throng_base::units::format_duration(waited);
        let finding = (Cause::HeartbeatLost, say!("no matching message within {waited}"));
        self.beat_failed(step, &attempt, finding);
    }

    /// A heartbeat that fails changes nothing for its user.
    pub(super) fn beat_failed(&mut self, step: StepId, attempt: &Attempt, finding: Finding) {
        let (cause, detail) = finding;
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.failed(step, attempt, cause, self.now, || detail.clone());
        drop(recorder);
        self.tell_end(step, attempt, Some((cause, &detail)));
    }

    /// The connection ended, for this cause if it was not us: an answer that is waited for never
    /// comes.
    pub(super) fn end_beats(&mut self, line: u8, cause: Option<Cause>) {
        if let Some(cause) = cause
            && self.lines.get_mut(line).beats.answered_at() != Time::NEVER
        {
            self.shard.recorder.borrow_mut().heartbeats.lost += 1;
            let detail = say!("the connection ended before the reply arrived");
            let step = self.lines.get_mut(line).beats.step;
            self.beat_failed(step, &Attempt::default(), (cause, detail));
        }
        self.lines.get_mut(line).beats.over(&self.shard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeats_are_spread_evenly_and_lie_ahead() {
        let every = Duration::from_secs(30);
        for now in [Time::ZERO, Time(1), Time(29_999_999_999), Time(90_000_000_000)] {
            let mut seconds = [0u32; 30];
            for id in 1..=30_000 {
                let share = Share::WHOLE.thread(id % 60, 60);
                let first = first_time(UserId(id), every, now, share);
                assert!(first > now && first <= now + every, "{id} at {now:?}: {first:?}");
                seconds[(first.as_nanos() / 1_000_000_000 % 30) as usize] += 1;
            }
            assert!(seconds.iter().all(|count| (985..=1015).contains(count)), "{seconds:?}");
        }
    }

    #[test]
    fn a_short_period_is_not_pressed_onto_the_grid() {
        for id in 1..1000 {
            let every = Duration::from_micros(700);
            let first = first_time(UserId(id), every, Time(5_000_000), Share::WHOLE);
            assert!(first > Time(5_000_000) && first <= Time(5_700_000));
        }
    }
}
