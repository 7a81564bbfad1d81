//! The loads of a run, their phases, and what each drives.

use std::time::Duration;

use throng_base::Turns;

use crate::Program;
use crate::rate::{Rate, Spacing};

/// One of the loads of a run, which go on side by side: phases one after another, with sessions and
/// users of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Empty where it is the only one.
    pub name: String,
    /// The sessions that its users do; None is all of the run.
    pub sessions: Option<Box<[u16]>>,
    pub start: Start,
    pub phases: Vec<Phase>,
    /// Some of a side of a duel: its users begin iterations only in its own slices. Their
    /// connections stay open in the others.
    pub turns: Option<Turns>,
}

/// When the first phase of a load begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// So long after the begin of the run.
    At(Duration),
    /// When the phases of this load are over.
    After(u16),
    /// With this load.
    With(u16),
}

impl Load {
    /// The only load of a run.
    pub fn alone(phases: Vec<Phase>) -> Load {
        let start = Start::At(Duration::ZERO);
        Load { name: String::new(), sessions: None, start, phases, turns: None }
    }

    /// Whether its users do this session.
    pub fn has(&self, session: u16) -> bool {
        self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&session))
    }

    /// The most users who stay at once; those who arrive are not in it, as nobody knows beforehand
    /// how long they are there.
    pub fn staying_max(&self) -> u64 {
        let of = |drive: &Drive| match drive {
            Drive::Users(users) => users.to,
            Drive::Iterations(iterations) => iterations.users,
            Drive::Arrivals(_) | Drive::Hold => 0,
        };
        self.phases.iter().map(|phase| of(&phase.drive)).max().unwrap_or(0)
    }
}

/// The precision of a run where none is given: as fine as `cargo xtask bench rate` finds cheap.
pub const PRECISION: Duration = Duration::from_micros(250);
/// The coarsest. A generator that is late by twice as much is one that cannot keep up.
pub const PRECISION_MAX: Duration = Duration::from_millis(5);

/// The loads of a run together. Phases are numbered through all of them, in their order.
impl Program {
    /// How late heartbeats, what is done every so often, and ends of pauses may be where nothing
    /// begins at a rate: users who wait anyway need no more.
    pub fn idle_precision(&self) -> Duration {
        (self.precision * 4).min(PRECISION_MAX)
    }

    /// All phases by their numbers.
    pub fn phases(&self) -> impl Iterator<Item = &Phase> + Clone {
        self.loads.iter().flat_map(|load| &load.phases)
    }

    /// The number of the first phase of each load.
    pub fn first_phases(&self) -> Vec<u16> {
        let first = |next: &mut u16, load: &Load| {
            let behind = *next + load.phases.len() as u16;
            Some(std::mem::replace(next, behind))
        };
        self.loads.iter().scan(0, first).collect()
    }

    /// The most users who stay at once, if all loads have theirs at the same time.
    pub fn staying_max(&self) -> u64 {
        self.loads.iter().map(Load::staying_max).fold(0, u64::saturating_add)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    pub name: String,
    pub drive: Drive,
    /// None: until the drive is done (a number of iterations, or a ramp that is complete).
    pub time: Option<Duration>,
    /// Who falls out and comes back while the phase lasts.
    pub churn: Option<Churn>,
    /// False keeps the phase out of the summary and the thresholds, as a warm-up.
    pub measured: bool,
}

/// What a phase drives.
#[derive(Clone, Debug, PartialEq)]
pub enum Drive {
    /// Holds what is there.
    Hold,
    /// How many users are online: the closed model.
    Users(Users),
    /// New users per second, each runs its session once: the open model.
    Arrivals(Arrivals),
    /// Starts of iterations on users who stay: constant throughput, or a number of them.
    Iterations(Iterations),
}

impl Drive {
    /// Whether users or iterations begin at a rate, whatever the target does.
    pub fn is_paced(&self) -> bool {
        self.rate().is_some()
    }

    /// What begins per second, where it is given.
    pub fn rate(&self) -> Option<&Rate> {
        match self {
            Drive::Arrivals(arrivals) => Some(&arrivals.rate),
            Drive::Iterations(iterations) => iterations.rate.as_ref(),
            Drive::Users(_) | Drive::Hold => None,
        }
    }

    pub fn rate_mut(&mut self) -> Option<&mut Rate> {
        match self {
            Drive::Arrivals(arrivals) => Some(&mut arrivals.rate),
            Drive::Iterations(iterations) => iterations.rate.as_mut(),
            Drive::Users(_) | Drive::Hold => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Users {
    pub to: u64,
    pub coming: Coming,
}

impl Users {
    /// Users per second on the way, where they come or go evenly.
    pub fn rate(self) -> Option<f64> {
        match self.coming {
            Coming::Rate(rate) => Some(rate),
            Coming::AtOnce | Coming::Steps { .. } => None,
        }
    }
}

/// How users come online, or go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coming {
    AtOnce,
    /// Evenly, so many a second.
    Rate(f64),
    /// So many at once when the phase begins, and again each time this time has passed.
    Steps {
        size: u64,
        every: Duration,
    },
}

/// Users whose connection ends though they stay: they connect again as the same users.
#[derive(Clone, Debug, PartialEq)]
pub struct Churn {
    pub amount: Amount,
    /// How connections end, in turn. Not empty.
    pub ways: Vec<Parting>,
}

/// How many users fall out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// This share of those who stay, 0 to 1, at once, each time this time has passed.
    Share { share: f64, every: Duration },
    /// So many a second, evenly.
    Rate(f64),
}

/// How we end a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parting {
    /// In order: WebSocket close, FIN.
    Fin,
    /// RST.
    Reset,
    /// Not at all: nothing is sent any more, not even an answer of the kernel, as of a phone that
    /// lost its network.
    Vanish,
    /// Our half is closed by a FIN, and the socket is kept without reading it until the target
    /// closes its own (RFC 9293, 3.6: half-closed).
    HalfClose,
}

impl Parting {
    pub const ALL: [Parting; 4] =
        [Parting::Fin, Parting::Reset, Parting::Vanish, Parting::HalfClose];

    /// The word of the language.
    pub fn word(self) -> &'static str {
        match self {
            Parting::Fin => "fin",
            Parting::Reset => "reset",
            Parting::Vanish => "vanish",
            Parting::HalfClose => "half_close",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    /// New users per second.
    pub rate: Rate,
    pub spacing: Spacing,
    /// More than these are not there at once: who comes then is dropped.
    pub max: Option<u64>,
}

impl Arrivals {
    /// From one rate to another, with no limit.
    pub fn ramp(from: f64, to: f64) -> Arrivals {
        Arrivals { rate: Rate::Ramp { from, to }, spacing: Spacing::Even, max: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Iterations {
    /// Users who do them.
    pub users: u64,
    /// Starts per second; None is as fast as the users can.
    pub rate: Option<Rate>,
    pub spacing: Spacing,
    /// All together; None is as many as fit into the time.
    pub total: Option<u64>,
    /// A start for which no user is free is dropped; else it waits for one.
    pub drops: bool,
}

impl Iterations {
    /// At an even rate, if at one at all; those that have no free user wait.
    pub fn new(users: u64, rate: Option<f64>, total: Option<u64>) -> Iterations {
        let rate = rate.map(Rate::constant);
        Iterations { users, rate, spacing: Spacing::Even, total, drops: false }
    }
}
