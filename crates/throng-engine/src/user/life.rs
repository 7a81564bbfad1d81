//! The life of a long-lived connection: it opens, its user logs in and is online, it ends. Here is
//! counted how far each of them comes; and what a user does that falls out and comes back.

use std::task::Context;
use std::time::Duration;

use throng_base::Time;
use throng_metrics::{Cause, Stage};
use throng_program::{Parting, Retry};

use super::flow::GONE;
use super::link::{Connection, Ended};
use super::transaction::End;
use super::{Doing, User};

/// A connection that was online for so long was no refusal.
const LASTING: Duration = Duration::from_secs(10);

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// HTTP: it comes and goes, and nobody is online by it.
    Passing,
    /// Open, the login is not done.
    Login,
    /// Open, the login has failed.
    Stranger,
    Online,
    /// Our goodbye is said: whether its user had been online, and whether it is still to be
    /// answered.
    Ending {
        complete: bool,
        asked: bool,
    },
}

impl User {
    /// A life begins with the first attempt to open a connection that lasts.
    pub(super) fn life_begins(&mut self) {
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.connections.reconnects += u64::from(self.fell_out);
        if !std::mem::replace(&mut self.alive, true) {
            recorder.lifecycle.begun += 1;
        }
    }

    /// A life is over, as the scenario wanted or not.
    pub(super) fn life_ends(&mut self, complete: bool) {
        if std::mem::take(&mut self.alive) {
            let lifecycle = &mut self.shard.recorder.borrow_mut().lifecycle;
            match complete {
                true => lifecycle.complete += 1,
                false => lifecycle.broken += 1,
            }
        }
    }

    /// The connection that was just opened lasts.
    pub(super) fn connected(&mut self, has_login: bool) {
        self.fell_out = false;
        match has_login {
            true => {
                self.shard.recorder.borrow_mut().stage_begins(Stage::Login);
                self.now_is(Life::Login);
            }
            false => self.come_online(),
        }
    }

    /// The last message of the login was answered.
    pub(super) fn logged_in(&mut self) {
        if let Some(Connection { life: Life::Login, since, .. }) = self.connection {
            self.shard.recorder.borrow_mut().stage_ok(Stage::Login, self.now - since);
            self.come_online();
        }
    }

    fn come_online(&mut self) {
        self.now_is(Life::Online);
        self.losses = 0;
        let mut recorder = self.shard.recorder.borrow_mut();
        recorder.gauges.users_online += 1;
        recorder.stage_begins(Stage::FirstMessage);
        recorder.stage_begins(Stage::Steady);
        drop(recorder);
        self.shard.seats.borrow_mut().connected(self.slot, true);
        self.sample();
        self.begin_beats();
        self.begin_every();
        self.join_audiences();
    }

    fn now_is(&mut self, life: Life) {
        let now = self.now;
        if let Some(connection) = &mut self.connection {
            (connection.life, connection.since) = (life, now);
        }
    }

    pub(super) fn is_online(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.life == Life::Online)
    }

    /// The target said something that nobody has asked for.
    pub(super) fn first_message(&mut self) {
        if let Some(Connection { life: Life::Online, since, heard, .. }) = &mut self.connection
            && !std::mem::replace(heard, true)
        {
            let time = self.now - *since;
            self.shard.recorder.borrow_mut().stage_ok(Stage::FirstMessage, time);
        }
    }

    /// A step of the login failed, and the connection is still there.
    pub(super) fn login_failed(&mut self, cause: Cause) {
        if let Some(Connection { life: life @ Life::Login, .. }) = &mut self.connection {
            *life = Life::Stranger;
            self.shard.recorder.borrow_mut().stage_failed(Stage::Login, cause);
        }
    }

    /// Asks the kernel how the connection is, now and then.
    pub(super) fn sample(&mut self) {
        let Some(connection) = &self.connection else { return };
        let mut recorder = self.shard.recorder.borrow_mut();
        if recorder.wants_tcp_sample()
            && let Some(info) = connection.transport.tcp_info()
        {
            recorder.tcp_sample(&info);
        }
    }

    /// We begin to take leave: the user is not online any more.
    pub(super) fn goodbye_said(&mut self) {
        self.end_beats(None);
        self.end_besides(None);
        let Some(Connection { life, since, .. }) = &mut self.connection else { return };
        let time = self.now - *since;
        let was = std::mem::replace(life, Life::Ending { complete: false, asked: true });
        *since = self.now;
        let mut recorder = self.shard.recorder.borrow_mut();
        if was == Life::Passing {
            *life = was;
            return;
        }
        recorder.stage_begins(Stage::End);
        if was == Life::Online {
            *life = Life::Ending { complete: true, asked: true };
            recorder.stage_ok(Stage::Steady, time);
            drop(recorder);
            self.offline();
        }
    }

    /// Nobody answered our goodbye in time.
    pub(super) fn goodbye_unanswered(&mut self) {
        if let Some(Connection { life: life @ Life::Ending { .. }, .. }) = &mut self.connection {
            *life = Life::Ending { complete: false, asked: false };
            self.shard.recorder.borrow_mut().stage_failed(Stage::End, Cause::Timeout);
        }
    }

    fn offline(&mut self) {
        self.leave_audiences();
        self.shard.recorder.borrow_mut().gauges.users_online -= 1;
        self.shard.seats.borrow_mut().connected(self.slot, false);
    }

    /// The connection is gone: counts how far it came. Without a cause it ended as we wanted.
    pub(super) fn connection_over(&mut self, (life, since): (Life, Time), cause: Option<Cause>) {
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
                self.offline();
                if cause.is_none() {
                    let mut recorder = shard.recorder.borrow_mut();
                    recorder.stage_begins(Stage::End);
                    recorder.stage_ok(Stage::End, Duration::ZERO);
                }
            }
            Life::Ending { asked: true, .. } => stage(Stage::End),
            Life::Ending { asked: false, .. } => {}
        }
        let complete = match life {
            Life::Online => cause.is_none(),
            Life::Ending { complete, .. } => complete,
            _ => false,
        };
        self.fell_out |= cause.is_some() && !matches!(life, Life::Ending { .. });
        self.life_ends(complete);
    }

    /// The run is over for the user, wherever its connection was.
    pub(super) fn cut_off(&mut self, life: Life) {
        if life == Life::Online {
            self.offline();
        }
        self.alive = false;
    }

    /// Told to fall out: whether what the user does can be left at once.
    pub(super) fn parts_now(&self) -> bool {
        let can = matches!(
            self.doing,
            Doing::Pause | Doing::Stay | Doing::Idle | Doing::Rendezvous(_) | Doing::Step
        );
        let may = !self.in_flight && !self.in_transaction() && !self.leaving;
        can && may && self.is_online()
    }

    /// The connection ends in the way that is told, and the session begins anew.
    pub(super) fn part(&mut self, how: Parting, cx: &mut Context<'_>) {
        self.now = self.shard.clock.now();
        self.break_off_step();
        self.leave_transactions(End::CutOff);
        self.iteration_over(false);
        self.shard.seats.borrow_mut().not_idle(self.slot);
        self.go_to(0);
        self.rejoins = true;
        self.end_by(how, cx);
        self.fell_out = true;
        if !matches!(self.doing, Doing::Closing) {
            self.rejoin();
        }
    }

    /// We end the connection, one way or another.
    pub(super) fn end_by(&mut self, how: Parting, cx: &mut Context<'_>) {
        match how {
            Parting::Fin => self.close(cx),
            Parting::Reset => self.drop_connection(Ended::ResetByUs),
            Parting::Vanish => self.drop_connection(Ended::Vanished),
            Parting::HalfClose => self.drop_connection(Ended::HalfClosed),
        }
    }

    /// Whose connection is gone comes back, as `reconnect` has it.
    pub(super) fn rejoin(&mut self) {
        self.rejoins = false;
        let session = usize::from(self.session);
        if let Some(retry) = self.shard.prepared.sessions[session].links[0].reconnect {
            self.reconnect(retry);
        }
    }

    /// Waits before the session begins anew, longer with every loss in a row; leaves when no
    /// attempt is left.
    pub(super) fn reconnect(&mut self, retry: Retry) {
        if retry.times.is_some_and(|times| self.losses >= times) {
            self.leaving = true;
            return self.go_to(GONE);
        }
        let most = retry.low.saturating_mul(1 << self.losses.min(30)).min(retry.high);
        self.losses = self.losses.saturating_add(1);
        let most = most.as_secs_f64();
        // Half of it is chance, so that users who were lost together do not come back together.
        let wait = self.random.uniform(most / 2.0, most);
        self.hold(Duration::from_secs_f64(wait));
    }
}
