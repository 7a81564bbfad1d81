//! What a run comes to before it is run: how many users, requests, rows and connections, how often
//! and for how long, by session and load and over time. All who ask that ask here.
//!
//! How fast a target is is not known beforehand: what depends on it takes the time of an answer.

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

/// What is taken for what only the run can tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// Of each request.
    pub answer_seconds: f64,
    pub bound: Bound,
}

impl Bound {
    /// What is done more often the shorter pauses are, is there for less time.
    fn opposite(self) -> Bound {
        match self {
            Bound::Least => Bound::Most,
            Bound::Mean => Bound::Mean,
            Bound::Most => Bound::Least,
        }
    }
}

impl Assumed {
    /// On average, when every answer takes so long.
    pub fn mean(answer_seconds: f64) -> Assumed {
        Assumed { answer_seconds, bound: Bound::Mean }
    }

    /// At least, when no answer takes longer.
    pub fn least(answer_seconds: f64) -> Assumed {
        Assumed { answer_seconds, bound: Bound::Least }
    }

    /// At most, however fast the target is.
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

/// What is known of a run beforehand.
pub struct Forecast<'p> {
    program: &'p Program,
    loads: Vec<Part<'p>>,
    /// What is expected of each session.
    pub sessions: Vec<SessionExpected>,
    /// The part of all users who do each. Together they are 1.
    pub shares: Vec<f64>,
}

/// One of the loads of a run.
struct Part<'p> {
    load: &'p Load,
    planned: Vec<Planned>,
}

impl Part<'_> {
    /// Those who stay at this time: the most of the phases that meet there.
    fn staying_at(&self, time: f64) -> f64 {
        let last = self.planned.len().saturating_sub(1);
        let at = |(index, one): (usize, &Planned)| {
            let within = time - one.begin.as_secs_f64();
            let length = match one.length {
                Some(length) => length.as_secs_f64(),
                // Nobody knows when it ends.
                None if index == last => f64::INFINITY,
                None => 0.0,
            };
            (within >= 0.0 && within <= length).then(|| one.users_at_seconds(within))
        };
        self.planned.iter().enumerate().filter_map(at).fold(0.0, f64::max)
    }

    /// Those who arrive.
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

    /// When its last phase is over, and all who are still there go.
    fn end(&self) -> f64 {
        let end = |one: &Planned| match one.length {
            Some(length) => (one.begin + length).as_secs_f64(),
            None => f64::INFINITY,
        };
        self.planned.last().map_or(0.0, end)
    }

    /// How many users come in a phase.
    fn coming(&self, one: &Planned, bound: Bound) -> u64 {
        coming(&self.load.phases[one.phase], one, bound)
    }

    /// More of those who arrive are not there at once; infinite where a phase has no limit.
    fn arrived_max(&self) -> f64 {
        let max = |phase: &Phase| match &phase.drive {
            Drive::Arrivals(arrivals) => Some(arrivals.max.map_or(f64::INFINITY, |it| it as f64)),
            Drive::Users(_) | Drive::Iterations(_) | Drive::Hold => None,
        };
        self.load.phases.iter().filter_map(max).fold(0.0, f64::max)
    }

    /// Whether those who arrive do so by chance.
    fn is_by_chance(&self) -> bool {
        self.load.phases.iter().any(|phase| match &phase.drive {
            Drive::Arrivals(arrivals) => arrivals.spacing == Spacing::Poisson,
            Drive::Users(_) | Drive::Iterations(_) | Drive::Hold => false,
        })
    }

    /// How many users come in all: those who stay, and those who arrive.
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
            Part { load, planned }
        };
        Forecast {
            program,
            loads: program.loads.iter().enumerate().map(part).collect(),
            sessions: program.sessions.iter().map(SessionExpected::of).collect(),
            shares: program.session_shares(),
        }
    }

    /// All phases in time.
    pub fn planned(&self) -> impl Iterator<Item = &Planned> {
        self.loads.iter().flat_map(|part| &part.planned)
    }

    /// Whether the time of each phase is known: none ends when its work is done.
    pub fn has_known_end(&self) -> bool {
        self.planned().all(|one| one.length.is_some())
    }

    /// How many users come in all: those who stay, and those who arrive.
    pub fn users(&self) -> (u64, u64) {
        let add = |sum: (u64, u64), (staying, arriving): (u64, u64)| {
            (sum.0.saturating_add(staying), sum.1.saturating_add(arriving))
        };
        self.loads.iter().map(Part::users).fold((0, 0), add)
    }

    /// The most users who are there at once. [`Bound::Least`] of users are those of the shortest
    /// pauses: who is gone sooner is there less.
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
            let load = |(part, arriving): (&Part<'_>, &Option<Presence>)| {
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

    /// The most users who stay at once, as far as the phases have time to bring them.
    pub fn staying_at_once(&self) -> u64 {
        let most = |part: &Part<'_>| {
            part.planned.iter().map(|one| one.users.0.max(one.users.1)).max().unwrap_or(0)
        };
        self.loads.iter().map(most).fold(0, u64::saturating_add)
    }

    /// Those who arrive in each load, by the share of each session and how long its users are
    /// there.
    fn presences(&self, bound: Bound, answer_seconds: f64) -> Vec<Option<Presence>> {
        let assumed = Assumed { answer_seconds, bound: bound.opposite() };
        let of = |(number, part): (usize, &Part<'_>)| {
            let mut parts: Vec<(f64, f64)> = Vec::new();
            let arriving = part.users().1.max(1) as f64;
            let users = users_of_sessions(self.program, number, arriving);
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

    /// The most users who arrive per second.
    pub fn arrivals_per_second(&self) -> Option<f64> {
        let rates = self.planned().filter_map(|one| one.arrivals.as_ref());
        rates.map(Profile::peak).reduce(f64::max)
    }

    /// Whether the pauses of those who arrive say how long they are there.
    pub fn pauses_say_who_is_there(&self) -> bool {
        let least = |one: &SessionExpected| there(one, Assumed::most());
        self.shares.iter().zip(&self.sessions).any(|(share, one)| share * least(one) > 0.0)
    }

    /// Heartbeats, and what users do every so often, per second of a user.
    pub fn beats_per_user(&self) -> f64 {
        let each = self.shares.iter().zip(&self.sessions).map(|(share, it)| share * it.steps.beats);
        each.filter(|beats| beats.is_finite()).sum()
    }

    /// How many rows of a source are taken at most. None where they are not used up, or nobody
    /// knows.
    pub fn rows(&self, source: u16, most: &Course) -> Option<u64> {
        let take = self.program.data.get(usize::from(source))?.take;
        let last = |(number, part): (usize, &Part<'_>)| {
            let users = part.planned.iter().map(|one| part.coming(one, Bound::Most)).sum();
            self.program.last_user_with(number, source, users) as f64
        };
        let rows = match take {
            Take::PerUser => self.loads.iter().enumerate().map(last).sum(),
            _ => most.iterations_of(&self.program.sessions_with(source)),
        };
        (take.can_end() && rows.is_finite() && self.has_known_end()).then_some(rows.ceil() as u64)
    }

    /// The part of all users who do such sessions.
    pub fn share_of(&self, wanted: impl Fn(&Session) -> bool) -> f64 {
        let shares = self.program.sessions.iter().zip(&self.shares);
        shares.filter(|(session, _)| wanted(session)).map(|(_, share)| share).sum::<f64>().min(1.0)
    }
}

/// Who arrives, and the share of those who are there for so many seconds.
type Presence = (Flow, Vec<(f64, f64)>);

/// What starts during so many seconds of a phase, in pieces of begin and length in seconds.
fn rates(profile: Option<&Profile>, length: f64) -> Vec<(f64, f64, (f64, f64))> {
    let Some(profile) = profile else { return vec![(0.0, length, (0.0, 0.0))] };
    profile.pieces(length).into_iter().map(|it| (it.begin, it.length, it.rates)).collect()
}

/// How many of the first so many users of a load do each session.
fn users_of_sessions(program: &Program, load: usize, users: f64) -> Vec<f64> {
    program.users_of_sessions(load, users)
}

/// How long a user who arrives is there.
fn there(expected: &SessionExpected, assumed: Assumed) -> f64 {
    let whole = expected.before.then(expected.steps);
    let answers = if whole.requests.is_finite() { whole.requests } else { 0.0 };
    pauses(&whole, assumed) + answers * assumed.answer_seconds
}

fn pauses(expected: &Expected, assumed: Assumed) -> f64 {
    assumed.seconds(expected.low_seconds, expected.mean_seconds, expected.high_seconds)
}

/// It has long-lived connections.
pub fn connects(session: &Session) -> bool {
    session.all().any(|step| matches!(step, Statement::Connect(_)))
}
