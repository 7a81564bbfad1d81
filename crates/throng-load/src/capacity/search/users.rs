//! Phases of a search for a number of users, which only increases.

use throng_metrics::capacity::{EndedBy, Purpose};

use crate::capacity::hold::{Order, Until, Wait, Why};

use super::{Estimate, RECOVER_MAX_S, SETTLE_S, Search, Stage, round};

pub(super) const HOLD_S: u32 = 30;
/// A strained level must pass this many holds.
const HOLDS: usize = 3;
const LIGHT: f64 = 1.5;
const STRAINED: f64 = 1.1;
const CLOSE: f64 = 1.03;
/// Minimum strain of a level that is not light; lower than for rates, because users cannot be
/// removed.
const STRAIN_LIGHT: f64 = 0.05;
const STRAIN_CLOSE: f64 = 0.5;
/// Half the width of the interval around the number of users that stay online while others are
/// refused.
const ONLINE_HALF: f64 = 0.01;
/// The share of users that is disconnected to observe their return.
const CUT: f64 = 0.1;

/// Six light levels, and three levels of three holds each.
pub(super) fn budget_min_s() -> f64 {
    f64::from((6 + 3 * HOLDS as u32) * (SETTLE_S + HOLD_S))
}

impl Search {
    /// After a hold of a level: again, more users, or the answer.
    pub(super) fn users_held(&mut self) {
        let Some(last) = self.levels.last().map(|visit| visit.level.clone()) else { return };
        if self.stage == Stage::Confirm {
            return self.users_confirmed(last.is_met(), last.load, last.seconds);
        }
        if !last.is_met() {
            return self.users_failed(last.load, last.online);
        }
        let strain = last.strain.unwrap_or(0.0);
        let is_light = strain <= STRAIN_LIGHT && !self.levels.is_strained();
        let held = self.levels.all().filter(|level| level.load == last.load).count();
        let at_max = self.settings.max.is_some_and(|max| last.load >= max);
        if (!is_light || at_max) && held < HOLDS {
            return self.users_hold(last.load, Why::Strained);
        }
        if at_max {
            (self.promise, self.confirmed_s) = (Some(last.load), f64::from(HOLD_S) * held as f64);
            return self.finish(EndedBy::Max);
        }
        let (factor, why) = match strain {
            _ if is_light => (LIGHT, Why::Light),
            strain if strain > STRAIN_CLOSE => (CLOSE, Why::Strained),
            _ => (STRAINED, Why::Strained),
        };
        self.users_hold((last.load * factor).round().max(last.load + 1.0), why);
    }

    fn users_hold(&mut self, load: f64, why: Why) {
        if self.left_s() < f64::from(HOLD_S) {
            return self.finish(EndedBy::Budget);
        }
        self.order = self.hold(load, (SETTLE_S, HOLD_S), Purpose::Climb, why);
    }

    /// A level failed. If some users were refused and the others are online, the search tries the
    /// number of those: only users without a connection have to leave for it.
    fn users_failed(&mut self, load: f64, online: Option<u64>) {
        let online = online.map(|online| online as f64);
        let stayed = online.filter(|online| {
            *online < load && self.levels.passed.is_some_and(|passed| *online >= passed)
        });
        match stayed {
            Some(online) => {
                self.stage = Stage::Confirm;
                self.promise = Some(online);
                let seconds = self.settings.confirm_s;
                self.order =
                    self.hold(online, (SETTLE_S, seconds), Purpose::Confirm, Why::StayedOnline);
            }
            None => {
                let held = self.levels.all().filter(|level| Some(level.load) == self.levels.passed);
                self.confirmed_s = held.map(|level| level.seconds).sum();
                self.promise = self.levels.passed;
                self.finish(EndedBy::Found);
            }
        }
    }

    fn users_confirmed(&mut self, met: bool, load: f64, seconds: f64) {
        if !met {
            self.promise = None;
            return self.finish(EndedBy::NotConfirmed);
        }
        self.confirmed_s = seconds;
        let (low, high) = (load * (1.0 - ONLINE_HALF), load * (1.0 + ONLINE_HALF));
        self.estimate = Some(Estimate { low, border: load, high, trend: None });
        if !self.settings.overload {
            return self.finish(EndedBy::Found);
        }
        self.stage = Stage::Recover;
        self.overload.at = self.levels.failed;
        let until = Until::Back { cut: CUT };
        self.order = Order::Wait(Wait { load: round(load), seconds_max: RECOVER_MAX_S, until });
    }
}
