//! Forecasts a run: the number of users, requests, rows and connections, by session, by load and
//! over time. All estimates use this module.
//!
//! The target's response time is unknown in advance, so estimates that depend on it take it as an
//! assumption.

mod connections;
mod course;

use throng_data::Take;
use throng_program::{Drive, Load, Phase, Program, Session, Spacing, Statement};

use crate::expected::{Expected, SessionExpected};
use crate::flow::Flow;
use crate::plan::{Planned, coming, plan};
use crate::profile::Profile;
pub use crate::starts::Bound;
use crate::starts::Chances as _;

pub use course::{Course, Rates, Stretch};

/// Assumptions about what only the run can show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// Response time of each request.
    pub answer_seconds: f64,
    pub bound: Bound,
}

impl Bound {
    /// The bound for durations: shorter pauses mean more iterations, but less time per user.
    fn opposite(self) -> Bound {
        match self {
            Bound::Least => Bound::Most,
            Bound::Mean => Bound::Mean,
            Bound::Most => Bound::Least,
        }
    }
}

impl Assumed {
    /// The mean, with this response time.
    pub fn mean(answer_seconds: f64) -> Assumed {
        Assumed { answer_seconds, bound: Bound::Mean }
    }

    /// The minimum, if no response takes longer.
    pub fn least(answer_seconds: f64) -> Assumed {
        Assumed { answer_seconds, bound: Bound::Least }
    }

    /// The maximum, for any target.
    pub fn most() -> Assumed {
        Assumed { answer_seconds: 0.0, bound: Bound::Most }
    }

    fn seconds(self, low: f64, mean: f64, high: f64) -> f64 {
        match self.bound {
            Bound::Least => high,
            Bound::Mean => mean,
            Bound::Most => low,
        }
    }
}

/// The forecast of a run.
pub struct Forecast<'p> {
    program: &'p Program,
    loads: Vec<ForecastPart<'p>>,
    /// The estimate of each session.
    pub sessions: Vec<SessionExpected>,
    /// The share of users that run each session; the sum is 1.
    pub shares: Vec<f64>,
}

/// One load of a run.
struct ForecastPart<'p> {
    load: &'p Load,
    planned: Vec<Planned>,
}

impl ForecastPart<'_> {
    /// The number of users that stay at this time; at a phase boundary, the larger one.
    fn staying_at(&self, time: f64) -> f64 {
        let last = self.planned.len().saturating_sub(1);
        let at = |(index, one): (usize, &Planned)| {
            let within = time - one.begin.as_secs_f64();
            let length = match one.length {
                Some(length) => length.as_secs_f64(),
                // The end of this phase is unknown.
                None if index == last => f64::INFINITY,
                None => 0.0,
            };
            (within >= 0.0 && within <= length).then(|| one.users_at_seconds(within))
        };
        self.planned.iter().enumerate().filter_map(at).fold(0.0, f64::max)
    }

    /// The arrivals.
    fn arriving(&self) -> Flow {
        let mut flow = Flow::default();
        for one in &self.planned {
            let length = one.length.unwrap_or_default().as_secs_f64();
            for (after, seconds, rates) in rates(one.arrivals.as_ref(), length) {
                flow.add(one.begin.as_secs_f64() + after, seconds, rates);
            }
        }
        flow
    }

    fn arrives(&self) -> bool {
        self.planned.iter().any(|one| one.arrivals.is_some())
    }

    /// The end of the last phase, when all remaining users leave.
    fn end(&self) -> f64 {
        let end = |one: &Planned| match one.length {
            Some(length) => (one.begin + length).as_secs_f64(),
            None => f64::INFINITY,
        };
        self.planned.last().map_or(0.0, end)
    }

    /// The number of users that start in a phase.
    fn coming(&self, one: &Planned, bound: Bound) -> u64 {
        coming(&self.load.phases[one.phase], one, bound)
    }

    /// The maximum number of concurrent arrived users; infinite if a phase has no limit.
    fn arrived_max(&self) -> f64 {
        let max = |phase: &Phase| match &phase.drive {
            Drive::Arrivals(arrivals) => Some(arrivals.max.map_or(f64::INFINITY, |it| it as f64)),
            Drive::Users(_) | Drive::Iterations(_) | Drive::Hold => None,
        };
        self.load.phases.iter().filter_map(max).fold(0.0, f64::max)
    }

    /// Whether arrivals are random.
    fn is_by_chance(&self) -> bool {
        self.load.phases.iter().any(|phase| match &phase.drive {
            Drive::Arrivals(arrivals) => arrivals.spacing == Spacing::Poisson,
            Drive::Users(_) | Drive::Iterations(_) | Drive::Hold => false,
        })
    }

    /// The total number of users: those that stay, and those that arrive.
    fn users(&self) -> (u64, u64) {
        let (mut staying, mut arriving) = (0_u64, 0_u64);
        for one in &self.planned {
            let sum = if one.arrivals.is_some() { &mut arriving } else { &mut staying };
            *sum = sum.saturating_add(self.coming(one, Bound::Mean));
        }
        (staying, arriving)
    }
}

impl<'p> Forecast<'p> {
    pub fn new(program: &'p Program) -> Forecast<'p> {
        let all = plan(&program.loads);
        let part = |(number, load): (usize, &'p Load)| {
            let planned = all.iter().filter(|one| one.load == number).cloned().collect();
            ForecastPart { load, planned }
        };
        Forecast {
            program,
            loads: program.loads.iter().enumerate().map(part).collect(),
            sessions: program.sessions.iter().map(SessionExpected::of).collect(),
            shares: program.session_shares(),
        }
    }

    /// All phases in order.
    pub fn planned(&self) -> impl Iterator<Item = &Planned> {
        self.loads.iter().flat_map(|part| &part.planned)
    }

    /// Whether the length of every phase is known, so that none ends when its work is done.
    pub fn has_known_end(&self) -> bool {
        self.planned().all(|one| one.length.is_some())
    }

    /// The total number of users: those that stay, and those that arrive.
    pub fn users(&self) -> (u64, u64) {
        let add = |sum: (u64, u64), (staying, arriving): (u64, u64)| {
            (sum.0.saturating_add(staying), sum.1.saturating_add(arriving))
        };
        self.loads.iter().map(ForecastPart::users).fold((0, 0), add)
    }

    /// The maximum number of concurrent users. [`Bound::Least`] assumes the shortest pauses,
    /// because users that finish sooner are present for less time.
    pub fn users_at_once(&self, bound: Bound, answer_seconds: f64) -> f64 {
        let presences = self.presences(bound, answer_seconds);
        let times: Vec<f64> = self
            .loads
            .iter()
            .zip(&presences)
            .flat_map(|(part, it)| {
                let phases = part.planned.iter().flat_map(Planned::turns);
                let own = it.as_ref().map(|(flow, parts)| flow.turns(parts));
                phases.chain(own.into_iter().flatten()).collect::<Vec<f64>>()
            })
            .collect();
        let of = |time: f64| {
            let load = |(part, arriving): (&ForecastPart<'_>, &Option<Presence>)| {
                let arriving = arriving.as_ref().filter(|_| time <= part.end());
                let present = arriving.map_or(0.0, |(flow, it)| flow.present_at(time, it));
                let present = match part.is_by_chance() {
                    true => Spacing::Poisson.bound(present.ceil() as u64, bound) as f64,
                    false => present,
                };
                part.staying_at(time) + present.min(part.arrived_max())
            };
            self.loads.iter().zip(&presences).map(load).sum::<f64>()
        };
        times.into_iter().map(of).fold(0.0, f64::max)
    }

    /// The maximum number of users that stay at once, if the phases are long enough to add them.
    pub fn staying_at_once(&self) -> u64 {
        let most = |part: &ForecastPart<'_>| {
            part.planned.iter().map(|one| one.users.0.max(one.users.1)).max().unwrap_or(0)
        };
        self.loads.iter().map(most).fold(0, u64::saturating_add)
    }

    /// The arrivals of each load, with the share and the duration of each session.
    fn presences(&self, bound: Bound, answer_seconds: f64) -> Vec<Option<Presence>> {
        let assumed = Assumed { answer_seconds, bound: bound.opposite() };
        let of = |(number, part): (usize, &ForecastPart<'_>)| {
            let mut parts: Vec<(f64, f64)> = Vec::new();
            let arriving = part.users().1.max(1) as f64;
            let users = self.program.users_of_sessions(number, arriving);
            let all: f64 = users.iter().sum();
            for (own, expected) in users.into_iter().zip(&self.sessions) {
                let seconds = there(expected, assumed);
                match parts.iter_mut().find(|(_, known)| *known == seconds) {
                    Some((share, _)) => *share += own / all,
                    None => parts.push((own / all, seconds)),
                }
            }
            parts.retain(|(share, _)| *share > 0.0);
            (part.arriving(), parts)
        };
        let parts = self.loads.iter().enumerate();
        parts.map(|(number, part)| part.arrives().then(|| of((number, part)))).collect()
    }

    /// The maximum number of arrivals per second.
    pub fn arrivals_per_second(&self) -> Option<f64> {
        let rates = self.planned().filter_map(|one| one.arrivals.as_ref());
        rates.map(Profile::peak).reduce(f64::max)
    }

    /// Whether pauses alone determine how long arrived users are present.
    pub fn pauses_say_who_is_there(&self) -> bool {
        let least = |one: &SessionExpected| there(one, Assumed::most());
        self.shares.iter().zip(&self.sessions).any(|(share, one)| share * least(one) > 0.0)
    }

    /// Heartbeats and periodic requests per second and user.
    pub fn beats_per_user(&self) -> f64 {
        let each = self.shares.iter().zip(&self.sessions).map(|(share, it)| share * it.steps.beats);
        each.filter(|beats| beats.is_finite()).sum()
    }

    /// Maximum number of rows taken from a source; `None` if rows are reused or the number is
    /// unknown.
    pub fn rows(&self, source: u16, most: &Course) -> Option<u64> {
        let take = self.program.data.get(usize::from(source))?.take;
        let last = |(number, part): (usize, &ForecastPart<'_>)| {
            let users = part.planned.iter().map(|one| part.coming(one, Bound::Most)).sum();
            self.program.last_user_with(number, source, users) as f64
        };
        let rows = match take {
            Take::PerUser => self.loads.iter().enumerate().map(last).sum(),
            _ => most.iterations_of(&self.program.sessions_with(source)),
        };
        (take.can_end() && rows.is_finite() && self.has_known_end()).then_some(rows.ceil() as u64)
    }

    /// The share of users that run these sessions.
    pub fn share_of(&self, wanted: impl Fn(&Session) -> bool) -> f64 {
        let shares = self.program.sessions.iter().zip(&self.shares);
        shares.filter(|(session, _)| wanted(session)).map(|(_, share)| share).sum::<f64>().min(1.0)
    }
}

/// Arrivals, and the share of those that stay each number of seconds.
type Presence = (Flow, Vec<(f64, f64)>);

/// The starts during part of a phase, in pieces with their start and length in seconds.
fn rates(profile: Option<&Profile>, length: f64) -> Vec<(f64, f64, (f64, f64))> {
    let Some(profile) = profile else { return vec![(0.0, length, (0.0, 0.0))] };
    profile.pieces(length).into_iter().map(|it| (it.begin, it.length, it.rates)).collect()
}

/// How long an arrived user is present.
fn there(expected: &SessionExpected, assumed: Assumed) -> f64 {
    let whole = expected.before.then(expected.steps);
    let answers = if whole.requests.is_finite() { whole.requests } else { 0.0 };
    pauses(&whole, assumed) + answers * assumed.answer_seconds
}

fn pauses(expected: &Expected, assumed: Assumed) -> f64 {
    assumed.seconds(expected.low_seconds, expected.mean_seconds, expected.high_seconds)
}

/// Whether the session has long-lived connections.
pub fn connects(session: &Session) -> bool {
    session.all().any(|step| matches!(step, Statement::Connect(_)))
}
