//! Changes of a running load, and its phases after a change. Pure.

use std::time::Duration;

use throng_base::Time;
use throng_program::{Change, Coming, Drive, Phase, Rate, Users};

use crate::profile::Profile;

/// A change of the rest of a load from a time on. All shards receive it before that time, and
/// compute the same rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amendment {
    pub at: Time,
    pub change: Adjustment,
    /// Maximum number of users of all shards after the change.
    pub users_max: u64,
}

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adjustment {
    Change(Change),
    /// The shards that receive this generate this portion of the load, now and in all later phases,
    /// regardless of other changes. Total numbers of iterations stay.
    Portion(f64),
}

impl From<Change> for Adjustment {
    fn from(change: Change) -> Adjustment {
        Adjustment::Change(change)
    }
}

impl Adjustment {
    /// The drive of the phase after the change, given the number of users and the time since the
    /// start of the phase; `None` if the change does not affect it. `usual` is how the load adds
    /// users.
    pub fn drive(
        self,
        phase: &Phase,
        (present, usual): (u64, Coming),
        passed: Duration,
    ) -> Option<Drive> {
        let mut drive = phase.drive.clone();
        let counted = matches!(&drive, Drive::Iterations(iterations) if iterations.total.is_some());
        if counted && matches!(self, Adjustment::Portion(_)) {
            return None;
        }
        if let Some(rate) = drive.rate_mut() {
            *rate = self.rate(rate, phase.time, passed)?;
            return Some(drive);
        }
        match &mut drive {
            Drive::Users(users) => users.to = self.users(users.to)?,
            // A total number of iterations is distributed over the existing users.
            Drive::Iterations(iterations) if iterations.total.is_none() => {
                iterations.users = self.users(iterations.users)?;
            }
            Drive::Hold => {
                let to = self.users(present)?;
                return Some(Drive::Users(Users { to, coming: usual }));
            }
            Drive::Arrivals(_) | Drive::Iterations(_) => return None,
        }
        Some(drive)
    }

    fn users(self, before: u64) -> Option<u64> {
        match self {
            Adjustment::Change(Change::Times(times)) => {
                let scaled = (before as f64 * times).round() as u64;
                Some(match times >= 1.0 {
                    true => scaled.max(before.saturating_add(u64::from(times > 1.0))),
                    false => scaled.min(before.saturating_sub(1)),
                })
            }
            Adjustment::Change(Change::Users(users)) => Some(users),
            // The load as ordered stays the same.
            Adjustment::Portion(_) => Some(before),
            Adjustment::Change(Change::Rate(_) | Change::EndPhase) => None,
        }
    }

    /// The rest of a rate after `passed`.
    fn rate(self, rate: &Rate, time: Option<Duration>, passed: Duration) -> Option<Rate> {
        let times = match self {
            Adjustment::Change(Change::Times(times)) => times,
            Adjustment::Portion(_) => 1.0,
            Adjustment::Change(Change::Rate(rate)) => return Some(Rate::constant(rate)),
            Adjustment::Change(Change::Users(_) | Change::EndPhase) => return None,
        };
        Some(match rate {
            Rate::Ramp { from, to } if from == to => Rate::constant(from * times),
            Rate::Ramp { to, .. } => {
                let reached = Profile::new(rate, time).rate_at(passed.as_secs_f64());
                Rate::Ramp { from: reached, to: to * times }
            }
            Rate::Sine(_) | Rate::Points(_) => rate.rest(passed).scaled(1.0, times),
        })
    }
}
