//! Life of a long-lived connection: it opens, its user logs in and is online, it ends. Counts how
//! many connections reach each stage, and handles users that disconnect and return.

use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use throng_base::Time;
use throng_metrics::{Cause, Ending, Stage, UserState};

use super::State;
use super::connection::{Connection, Life, Loss};
use super::deliver::departures;
use super::line::count_unasked;
use super::task::{Active, Doing, Task};
use crate::failure::Ended;
use crate::recorder::{Attempt, Iteration};
use crate::scope::scope;

/// A connection that was online this long was not refused.
const LASTING: Duration = Duration::from_secs(10);

/// The life cycle of one line.
pub(super) struct Lifecycle<'u> {
    user: &'u mut State,
    line: u8,
}

impl Lifecycle<'_> {
    fn connection(&mut self) -> Option<&mut Connection> {
        self.user.lines.connection_mut(self.line)
    }

    /// A life starts with the first attempt to open a long-lived connection.
    pub(super) fn begins(&mut self) {
        let mut recorder = self.user.shard.recorder.borrow_mut();
        recorder.interval.connections.counts.reconnects += u64::from(self.user.fell_out);
        if !std::mem::replace(&mut self.user.lines.get_mut(self.line).alive, true) {
            recorder.interval.lifecycle.begun += 1;
        }
        drop(recorder);
        self.user.shard.strives(self.user.slot, self.user.id, UserState::Connecting);
    }

    /// A life has ended, as the scenario intended or not.
    pub(super) fn ends(&mut self, complete: bool) {
        if std::mem::take(&mut self.user.lines.get_mut(self.line).alive) {
            let lifecycle = &mut self.user.shard.recorder.borrow_mut().interval.lifecycle;
            match complete {
                true => lifecycle.complete += 1,
                false => lifecycle.broken += 1,
            }
        }
    }

    /// A long-lived connection was just opened.
    pub(super) fn connected(&mut self, has_login: bool) {
        self.user.fell_out = false;
        match has_login {
            true => {
                self.user.shard.recorder.borrow_mut().stage_begins(Stage::Login);
                self.now_is(Life::Login);
                self.user.shard.strives(self.user.slot, self.user.id, UserState::LoggingIn);
            }
            false => self.come_online(),
        }
    }

    /// The last message of the login was answered.
    pub(super) fn logged_in(&mut self) {
        if let Some(Connection { life: Life::Login, since, .. }) =
            self.user.lines.connection(self.line)
        {
            let time = self.user.now - *since;
            self.user.shard.recorder.borrow_mut().stage_ok(Stage::Login, time);
            self.come_online();
        }
    }

    fn come_online(&mut self) {
        self.now_is(Life::Online);
        self.user.losses = 0;
        let mut recorder = self.user.shard.recorder.borrow_mut();
        recorder.stage_begins(Stage::FirstMessage);
        recorder.stage_begins(Stage::Steady);
        self.user.online += 1;
        if self.user.online == 1 {
            let mut slots = self.user.shard.slots.borrow_mut();
            if let Some(since) = slots.is_back(self.user.slot) {
                recorder.stage_ok(Stage::Away, self.user.now.since(since));
            }
            recorder.interval.gauges.users_online += 1;
            slots.connected(self.user.slot, true);
            if let Some(presence) = &self.user.shard.presence {
                let target =
                    self.user.lines.connection(self.line).map_or(0, |connection| connection.target);
                let lane = &self.user.shard;
                presence.online(lane.plan(), lane.load(), self.user.id, self.user.now, target);
            }
        }
        drop(recorder);
        if self.user.online == 1 {
            self.user.shard.comes_to(self.user.slot, self.user.id, UserState::Online);
        }
        self.user.lines.get(self.line).sample(&self.user.shard);
        self.user.heartbeats(self.line).begin();
        self.user.begin_every(self.line);
        self.user.join_audiences(self.line);
    }

    fn now_is(&mut self, life: Life) {
        let now = self.user.now;
        if let Some(connection) = self.connection() {
            (connection.life, connection.since) = (life, now);
        }
    }

    /// The target sent an unsolicited message.
    pub(super) fn first_message(&mut self) {
        let now = self.user.now;
        if let Some(Connection { life: Life::Online, since, heard, .. }) = self.connection()
            && !std::mem::replace(heard, true)
        {
            let time = now - *since;
            self.user.shard.recorder.borrow_mut().stage_ok(Stage::FirstMessage, time);
        }
    }

    /// A step of the login failed, and the connection is still open.
    pub(super) fn login_failed(&mut self, cause: Cause) {
        if let Some(Connection { life: life @ Life::Login, .. }) = self.connection() {
            *life = Life::Stranger;
            self.user.shard.recorder.borrow_mut().stage_failed(Stage::Login, cause);
            self.user.shard.strives(self.user.slot, self.user.id, UserState::Failed);
        }
    }

    /// We start to close: the user is no longer online.
    pub(super) fn goodbye_said(&mut self) {
        self.user.heartbeats(self.line).end(None);
        self.user.end_bodies(self.line, None);
        let now = self.user.now;
        let Some(Connection { life, since, .. }) = self.connection() else { return };
        if *life == Life::Passing {
            *since = now;
            return;
        }
        let complete = *life == Life::Online;
        let time = now - std::mem::replace(since, now);
        *life = Life::Ending { complete, asked: true };
        let mut recorder = self.user.shard.recorder.borrow_mut();
        recorder.stage_begins(Stage::End);
        if complete {
            recorder.stage_ok(Stage::Steady, time);
            drop(recorder);
            self.offline(Ended::ByUs);
        }
    }

    /// The target did not answer our close in time.
    pub(super) fn goodbye_unanswered(&mut self) {
        if let Some(Connection { life: life @ Life::Ending { .. }, .. }) = self.connection() {
            *life = Life::Ending { complete: false, asked: false };
            self.user.shard.recorder.borrow_mut().stage_failed(Stage::End, Cause::Timeout);
        }
    }

    fn offline(&mut self, ended: Ended) {
        let shard = Rc::clone(&self.user.shard);
        let link = self.user.link_in(&shard, self.line);
        let departures = departures(link, &mut scope!(self.user, &shard));
        self.user.audiences.leave(link, &shard, self.user.now);
        departures.into_iter().for_each(|one| one.enter(&shard, self.user.id, self.user.now));
        self.user.online = self.user.online.saturating_sub(1);
        if self.user.online == 0 {
            self.user.shard.recorder.borrow_mut().interval.gauges.users_online -= 1;
            self.user.shard.slots.borrow_mut().connected(self.user.slot, false);
            self.user.shard.comes_to(self.user.slot, self.user.id, UserState::Disconnected);
            if let Some(presence) = &self.user.shard.presence {
                let (lane, change) = (&self.user.shard, ended.change());
                presence.offline(lane.plan(), lane.load(), self.user.id, self.user.now, change);
            }
        }
    }

    /// The connection is gone: counts the stage it reached. Without a cause, the end was intended.
    pub(super) fn over(
        &mut self,
        (life, since): (Life, Time),
        (ended, cause): (Ended, Option<Cause>),
    ) {
        let time = self.user.now - since;
        let shard = Rc::clone(&self.user.shard);
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
                    self.user.refusals = 0;
                }
                self.offline(ended);
                if cause.is_some() {
                    self.user.goes_away();
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
                self.user.shard.strives(self.user.slot, self.user.id, UserState::Failed);
            }
            (Life::Login, None) => {
                self.user.shard.strives(self.user.slot, self.user.id, UserState::Disconnected);
            }
            _ => {}
        }
        let complete = match life {
            Life::Online => cause.is_none(),
            Life::Ending { complete, .. } => complete,
            _ => false,
        };
        self.user.fell_out |= cause.is_some() && !matches!(life, Life::Ending { .. });
        self.ends(complete);
    }

    /// The run is over for the user, whatever the stage of its connection.
    pub(super) fn cut_off(&mut self, life: Life) {
        if life == Life::Online {
            self.offline(Ended::CutOff);
        }
        self.user.lines.get_mut(self.line).alive = false;
    }
}

impl State {
    pub(super) fn life(&mut self, line: u8) -> Lifecycle<'_> {
        Lifecycle { user: self, line }
    }

    pub(super) fn is_online(&self) -> bool {
        self.online > 0
    }

    /// A user that was online has lost its last connection, and is to return.
    pub(super) fn goes_away(&mut self) {
        if self.online > 0 {
            return;
        }
        if self.shard.slots.borrow_mut().goes_away(self.slot, self.now) {
            self.shard.recorder.borrow_mut().stage_begins(Stage::Away);
        }
        self.shard.comes_to(self.slot, self.id, UserState::Away);
    }

    /// Unexpected bytes arrived: the connection can no longer be trusted.
    pub(super) fn unasked(&mut self, line: u8) {
        self.shard.recorder.borrow_mut().interval.traffic.messages.unasked += 1;
        self.drop_connection(line, Ended::ByUs);
    }

    pub(super) fn drop_connections(&mut self, ended: Ended) {
        for line in 0..self.lines.count() {
            self.drop_connection(line, ended);
        }
    }

    /// Drops the connection, and counts which side ended it.
    pub(super) fn drop_connection(&mut self, line: u8, ended: Ended) {
        self.end_connection(line, ended, ended.cause());
    }

    /// The connection is gone, in the middle of an exchange or while idle. The user notifies the
    /// tasks that wait for it.
    pub(super) fn lose(&mut self, line: u8, loss: Loss) {
        let cause = (!loss.is_wanted).then(|| loss.cause());
        self.end_connection(line, loss.ended, cause);
        self.lines.get_mut(line).loss = Some(Box::new(loss));
        self.has_loss = true;
    }

    /// As [`State::drop_connection`], with the cause if the end was not intended.
    pub(super) fn end_connection(&mut self, line: u8, ended: Ended, cause: Option<Cause>) {
        if self.lines.connection(line).is_some() {
            self.heartbeats(line).end(cause);
            self.end_bodies(line, cause);
        }
        // The kept messages were unsolicited.
        let kept = self.lines.get_mut(line).take_kept();
        count_unasked(&kept, &self.shard);
        let place = self.lines.get_mut(line);
        let Some(connection) = place.connection.take() else {
            // Their share of the budget is returned.
            if let Some(loss) = &mut place.loss {
                loss.left = None;
            }
            return;
        };
        let is_lost = cause.is_some() || matches!(ended, Ended::ResetByUs | Ended::Vanished);
        if is_lost && let Some(resume) = connection.machine.resume() {
            self.memory().keep_resume(line, Some(resume));
        }
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.interval.gauges.connections_open -= 1;
        let ending = match connection.life {
            // However the target reacts to our close, the end was ours.
            Life::Ending { .. } => Ending::ClosedByUs,
            _ => ended.ending(),
        };
        recorder.connection_ended(ending, true, self.now - connection.established);
        drop(recorder);
        match ended {
            Ended::CutOff => self.life(line).cut_off(connection.life),
            _ => {
                let lived = (connection.life, connection.since);
                self.life(line).over(lived, (ended, cause));
            }
        }
        match ended {
            Ended::ResetByUs => connection.transport.reset(),
            Ended::Vanished => self.shard.connector.vanish(connection.transport, self.now),
            Ended::HalfClosed => self.shard.connector.half_close(connection.transport, self.now),
            // The target has sent its close and got our answer: the end is the target's (RFC 6455,
            // 7.1.1).
            Ended::ByTarget if connection.machine.is_left() => {
                self.shard.left.borrow_mut().keep(
                    connection.transport,
                    self.now,
                    &self.shard.recorder,
                );
            }
            _ => {}
        }
        let mut machine = connection.machine;
        if machine.lost() {
            self.memory().keep_machine(line, machine);
        }
    }

    /// The connection is no longer needed, and the target is to close it; no task waits for that.
    pub(super) fn leave_to_target(&mut self, line: u8) {
        if let Some(connection) = self.lines.get_mut(line).connection.take() {
            let Connection { transport, established, .. } = connection;
            let mut left = self.shard.left.borrow_mut();
            left.add(transport, established, self.now, &self.shard.recorder);
        }
    }

    /// Disconnects a user that leaves without having disconnected.
    pub(super) fn disconnect_all(&mut self, cx: &mut Context<'_>) {
        for line in 0..self.lines.count() {
            if self.lines.connection(line).is_some_and(|it| it.machine.traits().goodbyes) {
                let _ = self.outbound(line).close(1000, cx);
            }
            if let Some(connection) = self.lines.connection_mut(line) {
                connection.transport.say_goodbye(cx);
            }
            self.drop_connection(line, Ended::ByUs);
        }
    }

    /// The connection has ended, with this cause if we did not end it: ends all background tasks
    /// that belong to it.
    pub(super) fn end_bodies(&mut self, line: u8, cause: Option<Cause>) {
        let Some(agenda) = &mut self.agenda else { return };
        let (over, skipped) = agenda.end_of(line);
        self.forget_agenda();
        self.shard.recorder.borrow_mut().interval.traffic.messages.skipped += skipped;
        for task in over {
            self.end_body(task, line, cause);
        }
    }

    pub(super) fn end_body(&mut self, mut task: Task, line: u8, cause: Option<Cause>) {
        let elsewhere = task.line != line;
        let shard = Rc::clone(&self.shard);
        let mut active = Active { shard: &shard, user: self, task: &mut task, session: None };
        if elsewhere && matches!(active.task.doing, Doing::Exchange(_)) {
            // A reply to its request would be taken for that of another task.
            active.user.drop_connection(active.task.line, Ended::CutOff);
        }
        active.withdraw_exchange();
        active.give_up();
        if active.task.is_pass() {
            shard.iteration_ends(active.user.session, Iteration::Interrupted);
        }
        let Some((step, place)) = active.take_begun() else { return };
        let mut recorder = shard.recorder.borrow_mut();
        recorder.interval.gauges.in_flight -= u64::from(task.in_flight);
        match cause {
            Some(cause) => {
                let detail = || say!("the connection ended before the reply arrived");
                recorder.failed(step, &Attempt::default(), cause, self.now, detail);
                if let Some(place) = place {
                    recorder.targets.ended(place, &Attempt::default(), false);
                }
                if task.retries > 0 {
                    recorder.given_up(step);
                }
            }
            None => {
                recorder.interrupted(step);
                recorder.targets.interrupted(place);
                recorder.interval.population.interrupted += 1;
            }
        }
    }
}
