//! A user that stays: its heartbeats, on a schedule of their own, and what it makes of messages
//! that nobody has asked for.

use std::task::Context;
use std::time::Duration;

use throng_base::{Time, UserId};
use throng_load::Share;
use throng_metrics::Cause;
use throng_program::{Beat, Heartbeat, Instruction, Stay};
use throng_protocol::websocket::{Opcode, write_frame};

use super::flow::at_pc;
use super::{Doing, User};
use crate::prepared::{Plan, StayPlan};
use crate::recorder::Attempt;
use crate::scope::UserScope;
use crate::verify::{Finding, Looked};

/// The moments of heartbeats lie on a grid: those of a shard that are due together are sent in one
/// waking. Each shard has its own place on it, so that the shards do not wake together, and all are
/// still spread evenly.
const GRID: Duration = Duration::from_millis(10);

/// What a user that stays waits for, besides what the target says.
#[derive(Clone, Copy)]
pub(super) struct Staying {
    until: Time,
    /// When the next heartbeat is due; [`Time::NEVER`] without any.
    beat: Time,
    /// When the one was due that is not answered; [`Time::NEVER`] when there is none.
    asked: Time,
    /// One was lost on this connection, and messages do not say which one they answer: what looks
    /// like an early answer may be a late one. It has no latency any more.
    is_unsure: bool,
}

impl Staying {
    /// Whether it ends only when the user is told to leave.
    pub(super) fn is_endless(&self) -> bool {
        self.until == Time::NEVER
    }

    /// When the heartbeat that was sent is lost.
    fn answer_until(&self, heartbeat: Option<&Heartbeat>) -> Time {
        match heartbeat.and_then(|heartbeat| heartbeat.lost_after) {
            Some(time) if self.asked != Time::NEVER => self.asked + time,
            _ => Time::NEVER,
        }
    }

    fn deadline(&self, heartbeat: Option<&Heartbeat>) -> Time {
        self.until.min(self.beat).min(self.answer_until(heartbeat))
    }
}

/// What a message is that comes while a user stays.
pub(super) enum Meant {
    /// It was counted by its handler, or is nobody's.
    Push,
    /// The answer to the heartbeat that was due then.
    Answer(Time),
}

/// Who listens while a user stays.
pub(super) struct Listening<'a> {
    stay: &'a Stay,
    plan: &'a StayPlan,
    asked: Time,
}

impl<'a> Listening<'a> {
    pub(super) fn new(
        doing: &Doing,
        instruction: &'a Instruction,
        plan: &'a Plan,
    ) -> Option<Listening<'a>> {
        match (doing, instruction, plan) {
            (Doing::Stay(staying), Instruction::Stay(stay), Plan::Stay(plan)) => {
                Some(Listening { stay, plan, asked: staying.asked })
            }
            _ => None,
        }
    }

    /// Whose message it is; the handlers' are counted here.
    pub(super) fn meant(&mut self, message: &[u8], scope: &mut UserScope<'_>) -> Meant {
        let looked = Looked::new(None, message, Duration::ZERO);
        for (handler, look) in self.stay.handlers.iter().zip(&self.plan.handlers) {
            if look.fits(&handler.message, &looked, scope) {
                let bytes_in = message.len() as u64;
                let attempt = Attempt { bytes_in, ..Attempt::default() };
                scope.shard.recorder.borrow_mut().ok(handler.step, &attempt);
                return Meant::Push;
            }
        }
        if let Some(Heartbeat { beat: Beat::Message(_), answer, .. }) = &self.stay.heartbeat
            && self.asked != Time::NEVER
            && self.plan.answer.fits(answer, &looked, scope)
        {
            return Meant::Answer(std::mem::replace(&mut self.asked, Time::NEVER));
        }
        Meant::Push
    }

    /// A pong came: the ping that it answers, if that is the one we wait for. Pings carry when
    /// they were due, so that a late answer is not taken for an early one.
    pub(super) fn pong(&mut self, payload: &[u8]) -> Option<Time> {
        let asked = self.asked != Time::NEVER && payload == self.asked.as_nanos().to_be_bytes();
        asked.then(|| std::mem::replace(&mut self.asked, Time::NEVER))
    }
}

/// The first moment after `now` at which this user's heartbeat is due: the users are spread evenly
/// over the period, in the order in which they come as well as all together.
fn first_beat(user: UserId, every: Duration, now: Time, share: Share) -> Time {
    // The multiples of the golden section's fraction, modulo one, lie apart from each other for
    // any number of them (Weyl's sequence); as a share of 2^64.
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let every_ns = every.as_nanos().max(1) as u64;
    let place = (u128::from(user.0.wrapping_mul(GOLDEN)) * u128::from(every_ns)) >> 64;
    let grid = GRID.as_nanos() as u64;
    let offset = match every_ns > 2 * grid {
        true => place as u64 / grid * grid + grid * share.index / share.of,
        false => place as u64,
    };
    let passed = now.as_nanos().saturating_sub(offset);
    let begun = passed / every_ns + u64::from(now.as_nanos() >= offset);
    Time(offset + begun * every_ns)
}

impl User {
    /// The verb `stay`.
    pub(super) fn stay(&mut self, stay: &Stay) {
        let offline = self.connection.is_none();
        if offline && (stay.heartbeat.is_some() || self.loss.is_some()) {
            return self.without_connection(stay.step);
        }
        let until = stay.time.map_or(Time::NEVER, |time| self.due + time);
        let beat = match &stay.heartbeat {
            Some(heartbeat) => first_beat(self.id, heartbeat.every, self.now, self.shard.share),
            None => Time::NEVER,
        };
        let staying = Staying { until, beat, asked: Time::NEVER, is_unsure: false };
        self.wait_for(Doing::Stay(staying), staying.deadline(None));
    }

    /// A moment has come for which a user that stays has waited.
    pub(super) fn stay_woken(&mut self, mut staying: Staying, cx: &mut Context<'_>) {
        at_pc!(self, _shard, instruction, _plan);
        let Instruction::Stay(stay) = instruction else { return self.pause_over() };
        if let Some(heartbeat) = &stay.heartbeat {
            // Where the period is shorter than the deadline, an answer has its period.
            if self.now >= staying.answer_until(Some(heartbeat)) || self.now >= staying.beat {
                self.beat_lost(heartbeat, &mut staying);
            }
            if self.now >= staying.beat
                && let Err(error) = self.beat(heartbeat, &mut staying, cx)
            {
                self.doing = Doing::Stay(staying);
                return self.broken(&error);
            }
        }
        match self.now >= staying.until {
            true => self.pause_over(),
            false => {
                let deadline = staying.deadline(stay.heartbeat.as_ref());
                self.wait_for(Doing::Stay(staying), deadline);
            }
        }
    }

    /// Sends the heartbeat that is due.
    fn beat(
        &mut self,
        heartbeat: &Heartbeat,
        staying: &mut Staying,
        cx: &mut Context<'_>,
    ) -> std::io::Result<()> {
        let due = staying.beat;
        self.shard.recorder.borrow_mut().late(due, self.now);
        staying.beat = due + heartbeat.every;
        while staying.beat <= self.now {
            // What could not be sent in its own period is not sent in another's.
            self.shard.recorder.borrow_mut().heartbeats.skipped += 1;
            staying.beat = staying.beat + heartbeat.every;
        }
        let sent = match &heartbeat.beat {
            Beat::Message(message) => match self.send_message(message, cx) {
                Ok(sent) => sent,
                Err(finding) => {
                    self.beat_failed(heartbeat, &Attempt::default(), finding);
                    return Ok(());
                }
            },
            Beat::Ping => self.send_ping(due, cx),
        };
        let bytes = sent?;
        self.shard.recorder.borrow_mut().beat_sent(heartbeat.step, bytes);
        match heartbeat.lost_after {
            Some(_) => staying.asked = due,
            // Nobody answers: that it is on its way is all there is to know.
            None => self.shard.recorder.borrow_mut().ok(heartbeat.step, &Attempt::default()),
        }
        Ok(())
    }

    fn send_ping(&mut self, due: Time, cx: &mut Context<'_>) -> std::io::Result<u64> {
        let shard = std::rc::Rc::clone(&self.shard);
        let mask = Some(self.random.next_u32().to_ne_bytes());
        let mut frame = shard.write_buffer.borrow_mut();
        frame.clear();
        write_frame(&mut frame, Opcode::Ping, true, false, mask, &due.as_nanos().to_be_bytes());
        self.send(&frame, cx)?;
        Ok(frame.len() as u64)
    }

    /// The answer to the heartbeat that was due then.
    pub(super) fn beat_answered(&mut self, due: Time, bytes: usize) {
        at_pc!(self, shard, instruction, _plan);
        let (Doing::Stay(staying), Instruction::Stay(stay)) = (&mut self.doing, instruction) else {
            return;
        };
        let Some(heartbeat) = &stay.heartbeat else { return };
        staying.asked = Time::NEVER;
        self.deadline = staying.deadline(Some(heartbeat));
        shard.rearm(self.slot, self.deadline);
        let latency = (!staying.is_unsure).then(|| self.now - due);
        let attempt = Attempt { latency, bytes_in: bytes as u64, ..Attempt::default() };
        let mut recorder = shard.recorder.borrow_mut();
        recorder.heartbeats.answered += 1;
        recorder.ok(heartbeat.step, &attempt);
        drop(recorder);
        self.sample();
        if shard.is_traced() {
            self.trace_ended(heartbeat.step, &attempt, None);
        }
    }

    fn beat_lost(&mut self, heartbeat: &Heartbeat, staying: &mut Staying) {
        let asked = std::mem::replace(&mut staying.asked, Time::NEVER);
        if asked == Time::NEVER {
            return;
        }
        let waited = self.now - asked;
        staying.is_unsure = matches!(heartbeat.beat, Beat::Message(_));
        self.shard.recorder.borrow_mut().heartbeats.lost += 1;
        let attempt = Attempt { latency: Some(waited), ..Attempt::default() };
        let waited = throng_base::units::format_duration(waited);
        let finding = (Cause::HeartbeatLost, format!("no answer after {waited}"));
        self.beat_failed(heartbeat, &attempt, finding);
    }

    /// A heartbeat that fails changes nothing for its user: it stays.
    fn beat_failed(&mut self, heartbeat: &Heartbeat, attempt: &Attempt, finding: Finding) {
        let (cause, detail) = finding;
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.failed(heartbeat.step, attempt, cause, self.now, || detail.clone());
        drop(recorder);
        if self.shard.is_traced() {
            self.trace_ended(heartbeat.step, attempt, Some((cause, &detail)));
        }
    }

    /// The connection ended while a heartbeat was not answered: it never will be.
    pub(super) fn beat_cut_off(&mut self, staying: Staying, stay: &Stay, cause: Cause) {
        if staying.asked == Time::NEVER {
            return;
        }
        if let Some(heartbeat) = &stay.heartbeat {
            self.shard.recorder.borrow_mut().heartbeats.lost += 1;
            // sentences
            let detail = "the connection ended before the answer came";
            self.beat_failed(heartbeat, &Attempt::default(), (cause, detail.into()));
        }
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
                let share = Share { index: id % 60, of: 60 };
                let first = first_beat(UserId(id), every, now, share);
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
            let first = first_beat(UserId(id), every, Time(5_000_000), Share::WHOLE);
            assert!(first > Time(5_000_000) && first <= Time(5_700_000));
        }
    }
}
