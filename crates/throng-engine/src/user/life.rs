//! The life of a long-lived connection: it opens, its user logs in and is online, it ends. Here is
//! counted how far each of them comes; and what a user does that falls out and comes back.

use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use throng_base::Time;
use throng_metrics::{Cause, Ending, Stage, UserState};

use super::State;
use super::connection::{Connection, Life, Loss};
use super::deliver::departures;
use super::task::{Active, Doing, Task};
use crate::failure::Ended;
use crate::recorder::{Attempt, Iteration};
use crate::scope::scope;

/// A connection that was online for so long was no refusal.
const LASTING: Duration = Duration::from_secs(10);

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
        if let Some(Connection { life: Life::Login, since, .. }) = self.lines.connection(line) {
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
                let target = self.lines.connection(line).map_or(0, |connection| connection.target);
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
        if let Some(connection) = self.lines.connection_mut(line) {
            (connection.life, connection.since) = (life, now);
        }
    }

    pub(super) fn is_online(&self) -> bool {
        self.online > 0
    }

    /// The target said something that nobody has asked for.
    pub(super) fn first_message(&mut self, line: u8) {
        let now = self.now;
        if let Some(Connection { life: Life::Online, since, heard, .. }) =
            self.lines.connection_mut(line)
            && !std::mem::replace(heard, true)
        {
            let time = now - *since;
            self.shard.recorder.borrow_mut().stage_ok(Stage::FirstMessage, time);
        }
    }

    /// A step of the login failed, and the connection is still there.
    pub(super) fn login_failed(&mut self, line: u8, cause: Cause) {
        if let Some(Connection { life: life @ Life::Login, .. }) = self.lines.connection_mut(line) {
            *life = Life::Stranger;
            self.shard.recorder.borrow_mut().stage_failed(Stage::Login, cause);
            self.shard.strives(self.slot, self.id, UserState::Failed);
        }
    }

    /// We begin to take leave: the user is not online any more.
    pub(super) fn goodbye_said(&mut self, line: u8) {
        self.end_beats(line, None);
        self.end_bodies(line, None);
        let now = self.now;
        let Some(Connection { life, since, .. }) = self.lines.connection_mut(line) else { return };
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
        if let Some(Connection { life: life @ Life::Ending { .. }, .. }) =
            self.lines.connection_mut(line)
        {
            *life = Life::Ending { complete: false, asked: false };
            self.shard.recorder.borrow_mut().stage_failed(Stage::End, Cause::Timeout);
        }
    }

    fn offline(&mut self, line: u8, ended: Ended) {
        let shard = Rc::clone(&self.shard);
        let link = self.link_in(&shard, line);
        let departures = departures(link, &mut scope!(self, &shard));
        self.audiences.leave(link, &shard, self.now);
        departures.into_iter().for_each(|one| one.enter(&shard, self.id, self.now));
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
    pub(super) fn goes_away(&mut self) {
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
        let shard = Rc::clone(&self.shard);
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

    /// Bytes came that answer nothing: the connection cannot be trusted any more.
    pub(super) fn unasked(&mut self, line: u8) {
        self.shard.recorder.borrow_mut().messages.unasked += 1;
        self.drop_connection(line, Ended::ByUs);
    }

    pub(super) fn drop_connections(&mut self, ended: Ended) {
        for line in 0..self.lines.count() {
            self.drop_connection(line, ended);
        }
    }

    /// The connection is forgotten, and counted by who ended it.
    pub(super) fn drop_connection(&mut self, line: u8, ended: Ended) {
        self.end_connection(line, ended, ended.cause());
    }

    /// The connection is gone in the middle of something, or of nothing. Tasks that wait for it
    /// hear of that from the user.
    pub(super) fn lose(&mut self, line: u8, loss: Loss) {
        let cause = (!loss.is_wanted).then(|| loss.cause());
        self.end_connection(line, loss.ended, cause);
        self.lines.get_mut(line).loss = Some(Box::new(loss));
        self.has_loss = true;
    }

    /// As [`State::drop_connection`], with why it was not what we wanted, if it was not.
    pub(super) fn end_connection(&mut self, line: u8, ended: Ended, cause: Option<Cause>) {
        if self.lines.connection(line).is_some() {
            self.end_beats(line, cause);
            self.end_bodies(line, cause);
        }
        // Nobody has asked for what was kept.
        let kept = self.lines.get_mut(line).take_kept();
        self.count_unasked(&kept);
        let place = self.lines.get_mut(line);
        let Some(connection) = place.connection.take() else {
            // What they had of the budget is given back.
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
        recorder.gauges.connections_open -= 1;
        let ending = match connection.life {
            // Whatever the target made of our goodbye: it was ours.
            Life::Ending { .. } => Ending::ClosedByUs,
            _ => ended.ending(),
        };
        recorder.connection_ended(ending, true, self.now - connection.established);
        drop(recorder);
        match ended {
            Ended::CutOff => self.cut_off(line, connection.life),
            _ => {
                let lived = (connection.life, connection.since);
                self.connection_over(line, lived, (ended, cause));
            }
        }
        match ended {
            Ended::ResetByUs => connection.transport.reset(),
            Ended::Vanished => self.shard.connector.vanish(connection.transport, self.now),
            Ended::HalfClosed => self.shard.connector.half_close(connection.transport, self.now),
            // It has taken leave and got our answer: the end is its own (RFC 6455, 7.1.1).
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

    /// The connection is of no more use, and the target is to close it: nobody waits for that.
    pub(super) fn leave_to_target(&mut self, line: u8) {
        if let Some(connection) = self.lines.get_mut(line).connection.take() {
            let Connection { transport, established, .. } = connection;
            let mut left = self.shard.left.borrow_mut();
            left.add(transport, established, self.now, &self.shard.recorder);
        }
    }

    /// The last words of a user that goes without having disconnected.
    pub(super) fn disconnect_all(&mut self, cx: &mut Context<'_>) {
        for line in 0..self.lines.count() {
            if self.lines.connection(line).is_some_and(|it| it.machine.traits().goodbyes) {
                let _ = self.send_close(line, 1000, cx);
            }
            if let Some(connection) = self.lines.connection_mut(line) {
                connection.transport.say_goodbye(cx);
            }
            self.drop_connection(line, Ended::ByUs);
        }
    }

    /// The connection has ended, for this cause if it was not us: nothing of what it is about is
    /// done besides.
    pub(super) fn end_bodies(&mut self, line: u8, cause: Option<Cause>) {
        let Some(agenda) = &mut self.agenda else { return };
        let (over, skipped) = agenda.end_of(line);
        self.forget_agenda();
        self.shard.recorder.borrow_mut().messages.skipped += skipped;
        for task in over {
            self.end_body(task, line, cause);
        }
    }

    pub(super) fn end_body(&mut self, mut task: Task, line: u8, cause: Option<Cause>) {
        let elsewhere = task.line != line;
        let shard = Rc::clone(&self.shard);
        let mut active = Active { shard: &shard, user: self, task: &mut task, session: None };
        if elsewhere && matches!(active.task.doing, Doing::Exchange(_)) {
            // What it has asked for there would be taken for the answer of somebody else.
            active.user.drop_connection(active.task.line, Ended::CutOff);
        }
        active.withdraw_exchange();
        active.give_up();
        if active.task.is_pass() {
            shard.iteration_ends(active.user.session, Iteration::Interrupted);
        }
        let Some((step, place)) = active.take_begun() else { return };
        let mut recorder = shard.recorder.borrow_mut();
        recorder.gauges.in_flight -= u64::from(task.in_flight);
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
                recorder.population.interrupted += 1;
            }
        }
    }
}
