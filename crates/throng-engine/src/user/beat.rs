//! Heartbeats of an online user: sent on their own schedule, answered or lost.

use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use throng_base::{StepId, Time};
use throng_metrics::Cause;
use throng_program::{Beat, Heartbeat, Statement};
use throng_protocol::framed::{MessageId, Packet, Protocol};

use super::State;
use super::grid::first_time;
use super::send::Sent;
use super::task::at;
use crate::failure::Finding;
use crate::looked::Looked;
use crate::prepared::Plan;
use crate::prepared::check_plan::CheckPlan;
use crate::prepared::code::Instruction;
use crate::recorder::Attempt;
use crate::scope::scope;
use crate::shard::Lane;

/// State of the heartbeats of a connection.
#[derive(Clone, Copy)]
pub(super) struct Beats {
    /// When the next one is due; [`Time::NEVER`] without any.
    pub(super) due: Time,
    /// Scheduled send time of the unanswered heartbeat; [`Time::NEVER`] without one.
    asked: Time,
    /// Reply timeout in milliseconds.
    patience_ms: u32,
    /// Correlation number of the reply, if the protocol has one.
    number: u32,
    /// Sent on this connection, saturating.
    sent: u16,
    /// The row of the unanswered heartbeat.
    pub(super) step: StepId,
    /// A heartbeat was lost on this connection, and replies do not say which heartbeat they answer:
    /// an early reply may be a late one. Its latency is not measured.
    pub(super) is_unsure: bool,
    /// The current `stay` has a heartbeat of its own.
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

    pub(super) fn alarm(&self) -> Time {
        self.due.min(self.waits_until())
    }

    /// Deadline of the reply that is waited for, if any.
    pub(super) fn waits_until(&self) -> Time {
        self.asked + Duration::from_millis(u64::from(self.patience_ms))
    }

    pub(super) fn answered_at(&mut self) -> Time {
        std::mem::replace(&mut self.asked, Time::NEVER)
    }

    /// Whether a reply is waited for.
    pub(super) fn waits(&self) -> bool {
        self.asked != Time::NEVER
    }

    /// These heartbeats are over. The unanswered one is undetermined.
    pub(super) fn over(&mut self, shard: &Lane) {
        if self.answered_at() != Time::NEVER {
            let mut recorder = shard.recorder.borrow_mut();
            recorder.interval.heartbeats.interrupted += 1;
            recorder.interrupted(self.step);
        }
        *self = Beats::NONE;
    }

    /// Whether a pong answers the ping that is waited for. Pings carry their scheduled send time,
    /// so that a late pong is not taken for an early one.
    pub(super) fn is_answered_by_pong(&self, payload: &[u8]) -> bool {
        self.asked != Time::NEVER && payload == self.asked.as_nanos().to_be_bytes()
    }
}

/// The heartbeats of a user on one of its lines.
pub(super) struct Heartbeats<'u> {
    user: &'u mut State,
    line: u8,
}

impl State {
    pub(super) fn heartbeats(&mut self, line: u8) -> Heartbeats<'_> {
        Heartbeats { user: self, line }
    }
}

impl Heartbeats<'_> {
    fn beats(&mut self) -> &mut Beats {
        &mut self.user.lines.get_mut(self.line).beats
    }

    /// The active heartbeat and how its reply is checked; that of the current `stay` goes first.
    pub(super) fn current<'a>(
        &self,
        shard: &'a Lane,
        stay: u32,
    ) -> Option<(&'a Heartbeat, &'a CheckPlan)> {
        let (session, line) = (self.user.session, self.user.lines.get(self.line));
        if line.beats.of_stay
            && let (Instruction::Do(Statement::Stay(stay)), Plan::Stay(plan)) =
                at(shard, session, stay)
        {
            return Some((stay.heartbeat.as_ref()?, &plan.answer));
        }
        let links = &shard.prepared.program.sessions[usize::from(session)].links;
        let link = links.get(usize::from(line.link))?;
        Some((link.heartbeat.as_ref()?, &self.user.link_in(shard, self.line).hears.answer))
    }

    /// The user is online on the line: the heartbeats of its link start.
    pub(super) fn begin(&mut self) {
        let shard = Rc::clone(&self.user.shard);
        let sent = self.beats().sent;
        self.beats().over(&shard);
        if self.user.lines.get(self.line).is_online()
            && let Some((heartbeat, _)) = self.current(&shard, 0)
        {
            let due = self.first(heartbeat);
            *self.beats() = Beats { sent, due, ..*self.beats() };
            self.user.arm(due);
        }
    }

    pub(super) fn begin_of_stay(&mut self, heartbeat: &Heartbeat) {
        let shard = Rc::clone(&self.user.shard);
        let (due, sent) = (self.first(heartbeat), self.beats().sent);
        self.beats().over(&shard);
        *self.beats() = Beats { of_stay: true, due, sent, ..Beats::NONE };
        self.user.arm(due);
    }

    fn first(&self, heartbeat: &Heartbeat) -> Time {
        let State { id, now, shard, .. } = &*self.user;
        first_time(*id, heartbeat.every, *now, shard.share) + heartbeat.fault.late
    }

    pub(super) fn stay_over(&mut self) {
        if self.beats().of_stay {
            self.begin();
        }
    }

    /// Sends the heartbeat that is due.
    pub(super) fn send(
        &mut self,
        heartbeat: &Heartbeat,
        cx: &mut Context<'_>,
    ) -> std::io::Result<()> {
        let now = self.user.now;
        let due = self.beats().due;
        let fault = heartbeat.fault;
        let from = self.user.shard.recurs_late(due, now);
        let mut next = due + heartbeat.every;
        while next <= now {
            // A heartbeat that could not be sent in its own period is not sent in the next one.
            self.user.shard.recorder.borrow_mut().interval.heartbeats.skipped += 1;
            next = next + heartbeat.every;
        }
        self.beats().due = next;
        if fault.stop_after.is_some_and(|most| self.beats().sent >= most) {
            self.user.shard.recorder.borrow_mut().interval.heartbeats.faulty += 1;
            return Ok(());
        }
        for time in 0..fault.times.max(1) {
            let sent = match &heartbeat.beat {
                Beat::Message(message) => {
                    match self.user.outbound(self.line).message(message, cx) {
                        Ok(sent) => sent?,
                        Err(finding) => {
                            self.user.shard.recorder.borrow_mut().begun(heartbeat.step);
                            self.failed(heartbeat.step, &Attempt::default(), finding);
                            return Ok(());
                        }
                    }
                }
                Beat::Ping => {
                    let bytes =
                        self.user.outbound(self.line).ping(&from.as_nanos().to_be_bytes(), cx)?;
                    Sent { bytes, ..Sent::default() }
                }
            };
            let (is_first, lost_after) = (time == 0, heartbeat.lost_after);
            let mut recorder = self.user.shard.recorder.borrow_mut();
            recorder.beat_sent(heartbeat.step, sent.bytes, is_first, lost_after.is_some());
            drop(recorder);
            if let Some(patience) = lost_after.filter(|_| is_first) {
                let beats = self.beats();
                beats.asked = from;
                beats.patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
                (beats.number, beats.step) = (sent.number, heartbeat.step);
            }
        }
        let beats = self.beats();
        beats.sent = beats.sent.saturating_add(1);
        let doubles = u64::from(fault.times.max(1)) - 1;
        self.user.shard.recorder.borrow_mut().interval.heartbeats.faulty +=
            doubles + u64::from(!fault.late.is_zero());
        Ok(())
    }

    /// Whether the message is the reply to the heartbeat that is waited for.
    pub(super) fn is_answer(
        &mut self,
        stay: u32,
        looked: &Looked<'_>,
        packet: Option<Packet>,
    ) -> bool {
        if !self.beats().waits() {
            return false;
        }
        let shard = Rc::clone(&self.user.shard);
        let Some((heartbeat, check_plan)) = self.current(&shard, stay) else { return false };
        let Beat::Message(_) = heartbeat.beat else { return false };
        if let Some(packet) = packet {
            let meant = &heartbeat.answer.messages;
            let number = u64::from(self.beats().number);
            let numbered = packet.correlation.is_none_or(|it| it == number);
            if !numbered || !meant.is_empty() && !meant.contains(&packet.message) {
                return false;
            }
        }
        let mut scope = scope!(self.user, &shard);
        check_plan.fits(&heartbeat.answer.checks, looked, &mut scope)
    }

    /// Whether a malformed message is the reply to the heartbeat that is waited for.
    pub(super) fn is_broken_answer(
        &self,
        stay: u32,
        read: (Option<MessageId>, Option<u64>),
    ) -> bool {
        let beats = &self.user.lines.get(self.line).beats;
        let heartbeat = self.current(&self.user.shard, stay).filter(|_| beats.waits());
        let Some((heartbeat, _)) = heartbeat else { return false };
        match read {
            (Some(message), _) if !heartbeat.answer.messages.contains(&message) => false,
            (_, Some(carried)) if beats.number > 0 => carried == u64::from(beats.number),
            (message, _) => message.is_some(),
        }
    }

    /// The heartbeat is lost: its reply did not arrive in time.
    pub(super) fn lost(&mut self, heartbeat: &Heartbeat) {
        let asked = self.beats().answered_at();
        if asked == Time::NEVER {
            return;
        }
        let waited = self.user.now - asked;
        // With a correlation number, a late reply can be recognized.
        let correlates = self.user.protocol(self.line).is_some_and(Protocol::correlates);
        let is_bare = self.user.lines.get(self.line).has_bare_pings();
        let beats = self.beats();
        let numbered = correlates && beats.number > 0;
        beats.is_unsure = is_bare || matches!(heartbeat.beat, Beat::Message(_)) && !numbered;
        let step = beats.step;
        self.user.shard.recorder.borrow_mut().interval.heartbeats.lost += 1;
        let attempt = Attempt { latency: Some(waited), ..Attempt::default() };
        let waited = throng_base::units::format_duration(waited);
        let finding = (Cause::HeartbeatLost, say!("no matching message within {waited}"));
        self.failed(step, &attempt, finding);
    }

    /// A heartbeat that fails has no effect on its user.
    pub(super) fn failed(&mut self, step: StepId, attempt: &Attempt, finding: Finding) {
        let (cause, detail) = finding;
        let mut recorder = self.user.shard.recorder.borrow_mut();
        recorder.failed(step, attempt, cause, self.user.now, || detail.clone());
        drop(recorder);
        self.user.tell_end(step, attempt, Some((cause, &detail)));
    }

    /// The connection ended, with this cause if the user did not end it: a reply that is waited for
    /// never arrives.
    pub(super) fn end(&mut self, cause: Option<Cause>) {
        if let Some(cause) = cause
            && self.beats().answered_at() != Time::NEVER
        {
            self.user.shard.recorder.borrow_mut().interval.heartbeats.lost += 1;
            let detail = say!("the connection ended before the reply arrived");
            let step = self.beats().step;
            self.failed(step, &Attempt::default(), (cause, detail));
        }
        let shard = Rc::clone(&self.user.shard);
        self.beats().over(&shard);
    }
}
