//! What is changed of a load while it runs, and what its phases are from then on. Pure.

use std::time::Duration;

use throng_base::Time;
use throng_program::{Change, Coming, Drive, Phase, Rate, Users};

use crate::profile::Profile;

/// From an instant on the rest of a load's phases is another. All shards hear of it before, and
/// each reckons the same rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amendment {
    pub at: Time,
    pub change: Adjustment,
    /// More users of all shards than these do not stay, whatever the change says.
    pub users_max: u64,
}

/// What is changed at that instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adjustment {
    Change(Change),
    /// Who hears of it makes this part of what the load wants of it, now and in all phases behind,
    /// whatever else is changed. A number of iterations stays what it is.
    Portion(f64),
}

impl From<Change> for Adjustment {
    fn from(change: Change) -> Adjustment {
        Adjustment::Change(change)
    }
}

impl Adjustment {
    /// What the phase drives from then on, where so many users of the whole stay and so much of
    /// it has passed; None where the change changes nothing of it. `usual` is how the load brings
    /// its users.
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
            // A number of iterations is dealt out to the users that there are.
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
            // What the load wants stays the same.
            Adjustment::Portion(_) => Some(before),
            Adjustment::Change(Change::Rate(_) | Change::EndPhase) => None,
        }
    }

    /// What is left of a rate after so much of its phase.
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
