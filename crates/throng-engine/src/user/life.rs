//! The life of a long-lived connection: it opens, its user logs in and is online, it ends. Here is
//! counted how far each of them comes; and what a user does that falls out and comes back.

use std::task::Context;
use std::time::Duration;

use throng_base::Time;
use throng_metrics::{Cause, Stage, UserState};
use throng_program::{Parting, Retry};

use super::connection::{Connection, Life};
use super::task::{Active, Doing, GONE};
use super::transaction::End;
use super::{State, Turn};
use crate::failure::Ended;
use crate::recorder::Iteration;

/// A connection that was online for so long was no refusal.
const LASTING: Duration = Duration::from_secs(10);
/// How long a WebSocket may take to end in order once we have said goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(5);

impl State {
    /// A life begins with the first attempt to open a connection that lasts.
    pub(super) fn life_begins(&mut self, line: u8) {
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.connections.reconnects += u64::from(self.fell_out);
        if !std::mem::replace(&mut self.lines.get_mut(line).alive, true) {
            recorder.lifecycle.begun += 1;
        }
        drop(recorder);
        self.shard.strives(self.slot, self.id, UserState::Connecting);
    }

    /// A life is over, as the scenario wanted or not.
    pub(super) fn life_ends(&mut self, line: u8, complete: bool) {
        if std::mem::take(&mut self.lines.get_mut(line).alive) {
            let lifecycle = &mut self.shard.recorder.borrow_mut().lifecycle;
            match complete {
                true => lifecycle.complete += 1,
                false => lifecycle.broken += 1,
            }
        }
    }

    /// The connection that was just opened lasts.
    pub(super) fn connected(&mut self, line: u8, has_login: bool) {
        self.fell_out = false;
        match has_login {
            true => {
                self.shard.recorder.borrow_mut().stage_begins(Stage::Login);
                self.now_is(line, Life::Login);
                self.shard.strives(self.slot, self.id, UserState::LoggingIn);
            }
            false => self.come_online(line),
        }
    }

    /// The last message of the login was answered.
    pub(super) fn logged_in(&mut self, line: u8) {
        if let Some(Connection { life: Life::Login, since, .. }) = self.connection(line) {
            let time = self.now - *since;
            self.shard.recorder.borrow_mut().stage_ok(Stage::Login, time);
            self.come_online(line);
        }
    }

    fn come_online(&mut self, line: u8) {
        self.now_is(line, Life::Online);
        self.losses = 0;
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.stage_begins(Stage::FirstMessage);
        recorder.stage_begins(Stage::Steady);
        self.online += 1;
        if self.online == 1 {
            let mut seats = self.shard.seats.borrow_mut();
            if let Some(since) = seats.is_back(self.slot) {
                recorder.stage_ok(Stage::Away, self.now.since(since));
            }
            recorder.gauges.users_online += 1;
            seats.connected(self.slot, true);
            if let Some(presence) = &self.shard.presence {
                let target = self.connection(line).map_or(0, |connection| connection.target);
                let lane = &self.shard;
                presence.online(lane.plan(), lane.load(), self.id, self.now, target);
            }
        }
        drop(recorder);
        if self.online == 1 {
            self.shard.comes_to(self.slot, self.id, UserState::Online);
        }
        self.sample(line);
        self.begin_beats(line);
        self.begin_every(line);
        self.join_audiences(line);
    }

    fn now_is(&mut self, line: u8, life: Life) {
        let now = self.now;
        if let Some(connection) = self.connection_mut(line) {
            (connection.life, connection.since) = (life, now);
        }
    }

    pub(super) fn is_online(&self) -> bool {
        self.online > 0
    }

    pub(super) fn is_online_on(&self, line: u8) -> bool {
        self.connection(line).is_some_and(|connection| connection.life == Life::Online)
    }

    /// The target said something that nobody has asked for.
    pub(super) fn first_message(&mut self, line: u8) {
        let now = self.now;
        if let Some(Connection { life: Life::Online, since, heard, .. }) = self.connection_mut(line)
            && !std::mem::replace(heard, true)
        {
            let time = now - *since;
            self.shard.recorder.borrow_mut().stage_ok(Stage::FirstMessage, time);
        }
    }

    /// A step of the login failed, and the connection is still there.
    pub(super) fn login_failed(&mut self, line: u8, cause: Cause) {
        if let Some(Connection { life: life @ Life::Login, .. }) = self.connection_mut(line) {
            *life = Life::Stranger;
            self.shard.recorder.borrow_mut().stage_failed(Stage::Login, cause);
            self.shard.strives(self.slot, self.id, UserState::Failed);
        }
    }

    /// Asks the kernel how the connection is, now and then.
    pub(super) fn sample(&mut self, line: u8) {
        let Some(connection) = &self.lines.get(line).connection else { return };
        let mut recorder = self.shard.recorder.borrow_mut();
        if recorder.wants_tcp_sample()
            && let Some(info) = connection.transport.tcp_info()
        {
            recorder.tcp_sample(&info);
        }
    }

    /// We begin to take leave: the user is not online any more.
    fn goodbye_said(&mut self, line: u8) {
        self.end_beats(line, None);
        self.end_bodies(line, None);
        let now = self.now;
        let Some(Connection { life, since, .. }) = self.connection_mut(line) else { return };
        if *life == Life::Passing {
            *since = now;
            return;
        }
        let complete = *life == Life::Online;
        let time = now - std::mem::replace(since, now);
        *life = Life::Ending { complete, asked: true };
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.stage_begins(Stage::End);
        if complete {
            recorder.stage_ok(Stage::Steady, time);
            drop(recorder);
            self.offline(line, Ended::ByUs);
        }
    }

    /// Nobody answered our goodbye in time.
    pub(super) fn goodbye_unanswered(&mut self, line: u8) {
        if let Some(Connection { life: life @ Life::Ending { .. }, .. }) = self.connection_mut(line)
        {
            *life = Life::Ending { complete: false, asked: false };
            self.shard.recorder.borrow_mut().stage_failed(Stage::End, Cause::Timeout);
        }
    }

    fn offline(&mut self, line: u8, ended: Ended) {
        let departures = self.departures(line);
        self.leave_audiences(line);
        self.enter_departures(departures);
        self.online = self.online.saturating_sub(1);
        if self.online == 0 {
            self.shard.recorder.borrow_mut().gauges.users_online -= 1;
            self.shard.seats.borrow_mut().connected(self.slot, false);
            self.shard.comes_to(self.slot, self.id, UserState::Disconnected);
            if let Some(presence) = &self.shard.presence {
                let (lane, change) = (&self.shard, ended.change());
                presence.offline(lane.plan(), lane.load(), self.id, self.now, change);
            }
        }
    }

    /// A user that was online has lost the last of its connections, and is to come back.
    fn goes_away(&mut self) {
        if self.online > 0 {
            return;
        }
        if self.shard.seats.borrow_mut().goes_away(self.slot, self.now) {
            self.shard.recorder.borrow_mut().stage_begins(Stage::Away);
        }
        self.shard.comes_to(self.slot, self.id, UserState::Away);
    }

    /// The connection is gone: counts how far it came. Without a cause it ended as we wanted.
    pub(super) fn connection_over(
        &mut self,
        line: u8,
        (life, since): (Life, Time),
        (ended, cause): (Ended, Option<Cause>),
    ) {
        let time = self.now - since;
        let shard = std::rc::Rc::clone(&self.shard);
        let stage = |stage: Stage| {
            let mut recorder = shard.recorder.borrow_mut();
            match cause {
                Some(cause) => recorder.stage_failed(stage, cause),
                None => recorder.stage_ok(stage, time),
            }
        };
        match life {
            Life::Passing => return,
            Life::Login if cause.is_none() => {}
            Life::Login => stage(Stage::Login),
            Life::Stranger => {}
            Life::Online => {
                stage(Stage::Steady);
                if time >= LASTING {
                    self.refusals = 0;
                }
                self.offline(line, ended);
                if cause.is_some() {
                    self.goes_away();
                }
                if cause.is_none() {
                    let mut recorder = shard.recorder.borrow_mut();
                    recorder.stage_begins(Stage::End);
                    recorder.stage_ok(Stage::End, Duration::ZERO);
                }
            }
            Life::Ending { asked: true, .. } => stage(Stage::End),
            Life::Ending { asked: false, .. } => {}
        }
        match (life, cause) {
            (Life::Login | Life::Stranger, Some(_)) => {
                self.shard.strives(self.slot, self.id, UserState::Failed);
            }
            (Life::Login, None) => self.shard.strives(self.slot, self.id, UserState::Disconnected),
            _ => {}
        }
        let complete = match life {
            Life::Online => cause.is_none(),
            Life::Ending { complete, .. } => complete,
            _ => false,
        };
        self.fell_out |= cause.is_some() && !matches!(life, Life::Ending { .. });
        self.life_ends(line, complete);
    }

    /// The run is over for the user, wherever its connection was.
    pub(super) fn cut_off(&mut self, line: u8, life: Life) {
        if life == Life::Online {
            self.offline(line, Ended::CutOff);
        }
        self.lines.get_mut(line).alive = false;
    }
}

impl Active<'_> {
    /// Told to fall out: whether what the user does can be left at once.
    pub(super) fn parts_now(&self) -> bool {
        let can = matches!(
            self.task.doing,
            Doing::Pause | Doing::Stay | Doing::Idle | Doing::Rendezvous(_) | Doing::Step
        );
        let may = !self.task.in_flight && !self.in_transaction() && !self.user.leaving;
        can && may && self.user.is_online()
    }

    /// The connections that last end in the way that is told, and the session begins anew.
    pub(super) fn part(&mut self, how: Parting, cx: &mut Context<'_>) {
        self.user.now = self.shard.clock.now();
        self.break_off_step();
        self.leave_transactions(End::CutOff);
        self.iteration_over(Iteration::Interrupted);
        self.shard.seats.borrow_mut().not_idle(self.user.slot);
        self.go_to(0);
        self.user.rejoins = true;
        for line in 0..self.user.lines.count() {
            if self.user.is_online_on(line) {
                self.end_by(line, how, cx);
            }
        }
        self.user.fell_out = true;
        self.user.goes_away();
        if !matches!(self.task.doing, Doing::Closing) {
            self.rejoin();
        }
    }

    /// We end a connection, one way or another.
    pub(super) fn end_by(&mut self, line: u8, how: Parting, cx: &mut Context<'_>) {
        match how {
            Parting::Fin => self.close(line, cx),
            Parting::Reset => self.user.drop_connection(line, Ended::ResetByUs),
            Parting::Vanish => self.user.drop_connection(line, Ended::Vanished),
            Parting::HalfClose => self.user.drop_connection(line, Ended::HalfClosed),
        }
    }

    /// Ends a connection in order: a WebSocket by its close handshake, others by FIN. Whoever
    /// waits for the end of one already says goodbye to another without waiting.
    pub(super) fn close(&mut self, line: u8, cx: &mut Context<'_>) {
        let Some(connection) = self.user.connection(line) else { return };
        let machine = &connection.machine;
        let (closes, awaits_end) = (machine.traits().closes, machine.awaits_end());
        if closes && self.user.send_close(line, 1000, cx).is_ok() && awaits_end {
            self.user.goodbye_said(line);
            if !matches!(self.task.doing, Doing::Closing) {
                self.task.line = line;
                return self.wait_for(Doing::Closing, self.user.now + GOODBYE_MAX);
            }
        }
        if let Some(connection) = self.user.connection_mut(line) {
            connection.transport.say_goodbye(cx);
        }
        self.user.drop_connection(line, Ended::ByUs);
    }

    /// The connection is closed, as it was to be until then.
    pub(super) fn closed_in_order(&mut self, until: Time) -> Turn {
        self.task.deadline = Time::NEVER;
        self.task.doing = Doing::Step;
        // The time that closing took is not the next step's; how late that is already is.
        self.task.due = match self.task.is_scheduled {
            true => self.task.due + GOODBYE_MAX.saturating_sub(until - self.user.now),
            false => self.task.due.max(self.user.now),
        };
        if self.user.rejoins {
            self.rejoin();
        }
        Turn::Again
    }

    /// Whose connection is gone comes back, as `reconnect` has it.
    pub(super) fn rejoin(&mut self) {
        self.user.rejoins = false;
        if let Some(retry) = self.user.reconnects() {
            self.reconnect(retry);
        }
    }

    /// Waits before the session begins anew, longer with every loss in a row and no less than the
    /// target has asked for; leaves when no attempt is left.
    pub(super) fn reconnect(&mut self, retry: Retry) {
        let user = &mut *self.user;
        if retry.times.is_some_and(|times| u32::from(user.losses) >= times) {
            user.leaving = true;
            return self.go_to(GONE);
        }
        let most = retry.low.saturating_mul(1 << user.losses.min(30)).min(retry.high);
        user.losses = user.losses.saturating_add(1);
        let most = most.as_secs_f64();
        // Half of it is chance, so that users who were lost together do not come back together.
        let wait = Duration::from_secs_f64(user.random.uniform(most / 2.0, most));
        let least = user.left_alone().unwrap_or_default();
        self.hold(wait.max(least));
    }
}
