//! Orders for holds and waits, and the counts while they last.

/// The thresholds that a service must meet at a load to carry it.
#[derive(Clone, Debug, PartialEq)]
pub struct Goals {
    /// Thresholds that count attempts.
    pub shares: Vec<Share>,
    /// Number of thresholds that do not count attempts (deliveries lost, audits). The caller
    /// decides whether a hold meets them.
    pub plain: usize,
}

/// A threshold that counts attempts: at most this part of them may be bad. `p99 < 50ms` is "at most
/// 0.01 fail or take longer than 0.05 s".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Greater than 0, less than 1.
    pub allowed: f64,
    /// Time in seconds after which an attempt without a response is bad. None: only errors are bad.
    pub within_s: Option<f64>,
}

/// The unit of the load of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Arrivals or iterations per second.
    PerSecond,
    /// Users with long-lived connections, which the search only adds.
    Users,
}

/// The purpose of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find a load that fails, from below.
    Climb,
    /// To narrow the range between the highest load that passed and the lowest that failed.
    Bracket,
    /// To collect counts on both sides of the border.
    Refine,
    /// To confirm the promise for a longer time.
    Confirm,
    /// To overload the service, and see whether it recovers.
    Beyond,
}

/// The reason for a load, for display.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// The first level.
    Base,
    /// The level before was light.
    Light,
    /// The level before showed strain, a longer response time or less goodput than was offered.
    Strained,
    /// Between the highest load that passed and the lowest that failed.
    Between,
    /// The service collapsed above, so loads rise in small steps only.
    Careful,
    /// The strain that is expected at this load.
    Expected(f64),
    /// The lower end of the interval.
    LowerEnd,
    /// The thresholds were not met at the previous promise.
    Lower,
    /// The highest allowed load.
    Max,
    /// The number of users that stayed online at a level that the service partly refused.
    StayedOnline,
    /// A deliberate overload.
    Overload,
}

/// An order to hold a load. The settle time comes first and is not counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hold {
    pub load: f64,
    /// For users, it begins when all of them are online or were refused.
    pub settle_s: u32,
    pub seconds: u32,
    pub purpose: Purpose,
    pub why: Why,
}

/// An order to keep a load until a condition is true, or for a maximum time in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    pub load: f64,
    pub seconds_max: u32,
    pub until: Until,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// No backlog, and the median response time is no more than 1.2 times this.
    Drained { p50_s: Option<f64> },
    /// All thresholds that count attempts are met for three seconds in a row.
    Met,
    /// Disconnect this part of the users, then wait until as many are online as before.
    Back { cut: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    Hold(Hold),
    Wait(Wait),
    /// The search has ended: see `Search::answer`.
    Finish,
}

/// The counts of one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// Attempts that were due.
    pub begun: u64,
    /// Attempts that ended, in time or not.
    pub ended: u64,
    /// Attempts that ended without an error.
    pub good: u64,
    /// Number of ended attempts that violate each threshold, in the order of `Goals::shares`.
    pub bad: Vec<u64>,
    /// Attempts without a response at the end of the second, also those that wait for a start.
    pub unanswered: u64,
    /// Sum of the response times of all ended attempts.
    pub response_s: f64,
    /// Median response time; None if no attempt ended.
    pub p50_s: Option<f64>,
}

/// The reason why a hold was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// More attempts wait for a response than the service can serve in time.
    Backlog,
    /// This threshold can no longer be met, by far.
    Strain(usize),
    /// More than half of the attempts fail.
    Failing,
    /// No response for 5 s.
    Silence,
    /// The process or the host of the target is gone.
    Gone,
}

/// The limit that kept the generator from producing the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Lateness,
    Cpu,
    Ports,
    Memory,
    /// No user was free for a start.
    Users,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Full,
    GaveUp(GaveUp),
    /// The user of throng skipped the rest.
    Skipped,
    /// The generator did not produce the load, so the counts say nothing about the target.
    GeneratorBound(Limit),
}

/// Response times of a hold, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    pub p50_s: f64,
    pub p90_s: f64,
    pub p99_s: f64,
}

/// A finished hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// Settle time before the measurement.
    pub settled_s: f64,
    /// The counts since then.
    pub seconds: Vec<Second>,
    pub ended: Ended,
    /// The first threshold that does not count attempts and was not met.
    pub unmet: Option<usize>,
    pub percentiles: Option<Percentiles>,
    /// Number of users online at the end, if the load is a number of users.
    pub online: Option<u64>,
}

/// A finished wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waited {
    pub seconds: f64,
    /// Whether the condition of the wait became true, or the wait was skipped.
    pub reached: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Held(Held),
    Waited(Waited),
}

impl Goals {
    /// With fewer attempts, a hold without a bad one does not prove with 99 % certainty that the
    /// strictest threshold is met (459 for 1 %; binomial).
    pub fn attempts_min(&self) -> f64 {
        let needed = |share: &Share| 0.01_f64.ln() / (1.0 - share.allowed).ln();
        self.shares.iter().map(needed).fold(0.0, f64::max).ceil()
    }

    /// The threshold with the greatest strain, and that strain: the share of bad attempts as a
    /// multiple of the allowed one.
    pub fn strain(&self, attempts: f64, bad: &[f64]) -> Option<(usize, f64)> {
        let strain =
            |(index, share): (usize, &Share)| (index, bad[index] / attempts / share.allowed);
        let all = self.shares.iter().enumerate().map(strain);
        if attempts > 0.0 { all.max_by(|a, b| a.1.total_cmp(&b.1)) } else { None }
    }
}
