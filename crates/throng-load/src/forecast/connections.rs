//! Forecasts connections: how fast they are opened, reopened and closed, and how many are open at
//! once. What the load does not determine is omitted.

use throng_program::{Amount, Churn, CloseMode, Coming, Drive, Phase, Rate, Session, Statement};

use super::course::falling_out;
use super::{Forecast, connects, rates};
use crate::expected::passes;
use crate::flow::Flow;
use crate::plan::Planned;
use crate::profile::Profile;

impl Forecast<'_> {
    /// The mean number of connections per user, at least 1.
    pub fn connections_per_user(&self) -> f64 {
        let sessions = self.program.sessions.iter().zip(&self.shares);
        sessions.map(|(session, share)| session.connections() as f64 * share).sum::<f64>().max(1.0)
    }

    fn phases(&self) -> impl Iterator<Item = (&Phase, &Planned)> {
        self.loads.iter().flat_map(|part| part.load.phases.iter().zip(&part.planned))
    }

    /// The maximum number opened per second.
    pub fn opened_per_second(&self) -> Option<f64> {
        let keeps = self.program.connection.keep_alive;
        let of = |(phase, _): (&Phase, &Planned)| match &phase.drive {
            Drive::Users(users) => Some(match users.coming {
                Coming::AtOnce => users.to as f64,
                Coming::Rate(rate) => rate.min(users.to as f64),
                Coming::Steps { size, .. } => size.min(users.to) as f64,
            }),
            Drive::Arrivals(arrivals) => Some(arrivals.rate.peak()),
            Drive::Iterations(it) if keeps => Some(it.users as f64),
            Drive::Iterations(it) => Some(it.rate.as_ref().map_or(it.users as f64, Rate::peak)),
            Drive::Hold => None,
        };
        self.phases().filter_map(of).reduce(f64::max)
    }

    /// The maximum number of users that start per second; `None` if all start at once.
    pub fn users_per_second(&self) -> Option<f64> {
        let of = |(phase, planned): (&Phase, &Planned)| match &phase.drive {
            Drive::Users(it) if planned.users.0 < planned.users.1 => it.rate(),
            Drive::Arrivals(arrivals) => Some(arrivals.rate.peak()),
            Drive::Users(_) | Drive::Iterations(_) | Drive::Hold => None,
        };
        self.phases().filter_map(of).reduce(f64::max)
    }

    /// Users per second that disconnect in one of these modes and reconnect, in the phase with the
    /// most of them.
    pub fn falling_out(&self, ways: &[CloseMode]) -> f64 {
        if !self.program.sessions.iter().any(connects) {
            return 0.0;
        }
        let of = |(phase, planned): (&Phase, &Planned)| {
            let churn = phase.churn.as_ref()?;
            let users = planned.users.0.max(planned.users.1) as f64;
            Some(falling_out(churn, users) * parting(churn, ways))
        };
        self.phases().filter_map(of).fold(0.0, f64::max)
    }

    /// Connections per second that serve a single request.
    pub fn closed_per_second(&self) -> f64 {
        if self.program.connection.keep_alive {
            return 0.0;
        }
        let rates = self.planned().filter_map(|one| one.iterations.as_ref()).map(Profile::peak);
        rates.fold(0.0, f64::max) * self.share_of(|session| !connects(session))
    }

    /// The number of silently closed connections within the time for which their sockets are kept.
    pub fn vanished(&self, kept_seconds: f64) -> u64 {
        let all: f64 = self
            .loads
            .iter()
            .enumerate()
            .map(|(number, part)| {
                let each = self.vanishing_of_each(number);
                let mut flow = Flow::default();
                for (phase, one) in part.load.phases.iter().zip(&part.planned) {
                    // A phase of unknown length is assumed to last at least that long.
                    let length = one.length.map_or(kept_seconds, |time| time.as_secs_f64());
                    let fall = phase.churn.as_ref().map_or(0.0, |churn| {
                        parting(churn, &[CloseMode::Vanish])
                            * within(churn, one, length, kept_seconds)
                    });
                    let begin = one.begin.as_secs_f64();
                    let starts = one.arrivals.as_ref().or(one.iterations.as_ref());
                    for (after, seconds, (from, to)) in rates(starts, length) {
                        let rates = (from * each + fall, to * each + fall);
                        flow.add(begin + after, seconds, rates);
                    }
                }
                flow.present(&[(1.0, kept_seconds)])
            })
            .sum();
        // Avoids rounding errors.
        (all - 1e-6).ceil() as u64
    }

    /// How many connections a user of a load closes silently in one pass through its session.
    fn vanishing_of_each(&self, load: usize) -> f64 {
        let vanishes =
            |step: &Statement| matches!(step, Statement::Disconnect { how: CloseMode::Vanish, .. });
        let (staying, arriving) = self.loads[load].users();
        let users = staying.saturating_add(arriving).max(1) as f64;
        let own = self.program.users_of_sessions(load, users);
        let sessions = self.program.sessions.iter().zip(own);
        sessions.map(|(session, own)| own / users * passes(session, &vanishes)).sum()
    }

    /// Whether any sockets are kept after a connection ends, because it was closed silently or
    /// half-closed.
    pub fn leaves_behind(&self) -> bool {
        let is_kept = |how: &CloseMode| matches!(how, CloseMode::Vanish | CloseMode::HalfClose);
        let mut churns = self.phases().filter_map(|(phase, _)| phase.churn.as_ref());
        let mut all = self.program.sessions.iter().flat_map(Session::all);
        churns.any(|churn| churn.ways.iter().any(is_kept))
            || all.any(|step| matches!(step, Statement::Disconnect { how, .. } if is_kept(how)))
    }
}

/// Users that disconnect per second, so that the total within `kept_seconds` is right: a share
/// disconnects all at once.
fn within(churn: &Churn, planned: &Planned, length: f64, kept_seconds: f64) -> f64 {
    let users = planned.users.0.max(planned.users.1);
    let (share, every) = match churn.amount {
        Amount::Rate(rate) => return if users > 0 { rate } else { 0.0 },
        Amount::Share { share, every } => (share, every.as_secs_f64().max(1e-3)),
    };
    let window = length.min(kept_seconds);
    if window <= 0.0 || every >= length {
        return 0.0;
    }
    // The last tick, at the end of the phase, does not happen.
    let all = (length / every).ceil() - 1.0;
    let count = (kept_seconds / every).ceil().min(all);
    count * (share * users as f64).round() / window
}

/// The share of disconnects that use one of these close modes.
fn parting(churn: &Churn, wanted: &[CloseMode]) -> f64 {
    let count = churn.ways.iter().filter(|way| wanted.contains(way)).count();
    count as f64 / churn.ways.len().max(1) as f64
}
