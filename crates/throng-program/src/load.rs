//! The phases of a run, one after another, and what each drives.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    pub phases: Vec<Phase>,
    /// How long users in the middle of a step or transaction may go on after the last phase.
    pub graceful_stop: Duration,
}

impl Load {
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

#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    pub name: String,
    pub drive: Drive,
    /// None: until the drive is done (a number of iterations, or a ramp that is complete).
    pub time: Option<Duration>,
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

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Users {
    pub to: u64,
    /// Users per second on the way there; None is at once.
    pub rate: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrivals {
    /// Per second at the begin of the phase.
    pub rate: f64,
    /// Per second at its end; the rate changes evenly between.
    pub to: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iterations {
    /// Users who do them.
    pub users: u64,
    /// Starts per second; None is as fast as the users can.
    pub rate: Option<f64>,
    /// All together; None is as many as fit into the time.
    pub total: Option<u64>,
}
