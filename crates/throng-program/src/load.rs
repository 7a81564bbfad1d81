//! The loads of a run, their phases, and what each phase drives.

use std::time::Duration;

use throng_base::Turns;

use crate::Program;
use crate::rate::{Rate, Spacing};

/// One of the parallel loads of a run: phases one after another, with its own sessions and users.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Empty for a single load.
    pub name: String,
    /// The sessions of its users; `None` is all of the run.
    pub sessions: Option<Box<[u16]>>,
    pub start: Start,
    pub phases: Vec<Phase>,
    /// Set for the sides of a duel: its users start iterations only in its own slices. Their
    /// connections stay open in the others.
    pub turns: Option<Turns>,
}

/// When the first phase of a load starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// This long after the start of the run.
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

    /// Whether its users run this session.
    pub fn has(&self, session: u16) -> bool {
        self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&session))
    }

    /// Most staying users at a time; arriving users are not included, because it is not known in
    /// advance how long they stay.
    pub fn staying_max(&self) -> u64 {
        let of = |drive: &Drive| match drive {
            Drive::Users(users) => users.to,
            Drive::Iterations(iterations) => iterations.users,
            Drive::Arrivals(_) | Drive::Hold => 0,
        };
        self.phases.iter().map(|phase| of(&phase.drive)).max().unwrap_or(0)
    }
}

/// The default precision of a run: as fine as is cheap according to `cargo xtask bench rate`.
pub const PRECISION: Duration = Duration::from_micros(250);
/// The coarsest. A generator that is twice as late cannot keep up.
pub const PRECISION_MAX: Duration = Duration::from_millis(5);

/// The loads of a run together. Phases are numbered across all of them, in order.
impl Program {
    /// How late heartbeats, recurring actions and ends of pauses may be if nothing starts at a
    /// rate: users that wait anyway need no higher precision.
    pub fn idle_precision(&self) -> Duration {
        (self.precision * 4).min(PRECISION_MAX)
    }

    /// All phases in order of their numbers.
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

    /// Most staying users, if all loads reach their maximum at the same time.
    pub fn staying_max(&self) -> u64 {
        self.loads.iter().map(Load::staying_max).fold(0, u64::saturating_add)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    pub name: String,
    pub drive: Drive,
    /// `None`: until the drive is complete (a number of iterations, or a ramp).
    pub time: Option<Duration>,
    /// Users that disconnect and return during the phase.
    pub churn: Option<Churn>,
    /// False keeps the phase out of the summary and the thresholds, as a warm-up.
    pub measured: bool,
}

/// What a phase drives.
#[derive(Clone, Debug, PartialEq)]
pub enum Drive {
    /// Keeps the current level.
    Hold,
    /// The number of online users: the closed model.
    Users(Users),
    /// New users per second, each of which runs its session once: the open model.
    Arrivals(Arrivals),
    /// Starts of iterations on staying users: constant throughput, or a number of iterations.
    Iterations(Iterations),
}

impl Drive {
    /// Whether users or iterations start at a rate, whatever the target does.
    pub fn is_paced(&self) -> bool {
        self.rate().is_some()
    }

    /// The starts per second, if given.
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
    /// Users per second during an even ramp.
    pub fn rate(self) -> Option<f64> {
        match self.coming {
            Coming::Rate(rate) => Some(rate),
            Coming::AtOnce | Coming::Steps { .. } => None,
        }
    }
}

/// How users are added or removed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coming {
    AtOnce,
    /// Evenly, this many per second.
    Rate(f64),
    /// This many at a time when the phase starts, and again each time this period has passed.
    Steps {
        size: u64,
        every: Duration,
    },
}

/// Users that stay but whose connection is closed: they reconnect as the same users.
#[derive(Clone, Debug, PartialEq)]
pub struct Churn {
    pub amount: Amount,
    /// The close modes, in turn. Not empty.
    pub ways: Vec<Parting>,
}

/// How many users disconnect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// This share of the staying users, 0 to 1, together, each time this period has passed.
    Share { share: f64, every: Duration },
    /// This many per second, evenly.
    Rate(f64),
}

/// The close mode of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parting {
    /// Graceful: WebSocket close, FIN.
    Fin,
    /// RST.
    Reset,
    /// Silent: nothing is sent anymore, not even by the kernel, as if a phone had lost its network.
    Vanish,
    /// Our half is closed by a FIN, and the socket is kept unread until the target closes its half
    /// (RFC 9293, 3.6: half-closed).
    HalfClose,
}

impl Parting {
    pub const ALL: [Parting; 4] =
        [Parting::Fin, Parting::Reset, Parting::Vanish, Parting::HalfClose];

    /// The name in the scenario language.
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
    /// Most concurrent users: further arrivals are dropped.
    pub max: Option<u64>,
}

impl Arrivals {
    /// A linear ramp without a limit.
    pub fn ramp(from: f64, to: f64) -> Arrivals {
        Arrivals { rate: Rate::Ramp { from, to }, spacing: Spacing::Even, max: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Iterations {
    /// Users that run them.
    pub users: u64,
    /// Starts per second; `None` is as fast as the users can.
    pub rate: Option<Rate>,
    pub spacing: Spacing,
    /// Total number; `None` is as many as fit into the time.
    pub total: Option<u64>,
    /// A start without a free user is dropped; otherwise it waits for one.
    pub drops: bool,
}

impl Iterations {
    /// At an even rate, if any; starts without a free user wait.
    pub fn new(users: u64, rate: Option<f64>, total: Option<u64>) -> Iterations {
        let rate = rate.map(Rate::constant);
        Iterations { users, rate, spacing: Spacing::Even, total, drops: false }
    }
}
