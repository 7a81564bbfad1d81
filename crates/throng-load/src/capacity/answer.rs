//! The result of a search: the promise, the interval, the levels, and the reason of the end.

use crate::capacity::hold::{GaveUp, Limit, Percentiles, Purpose, Unit};

/// The reason why a level failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedBy {
    /// A threshold that counts attempts: its index in `Goals::shares`.
    Share(usize),
    /// A threshold that does not count attempts.
    Plain(usize),
    GaveUp(GaveUp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelVerdict {
    Met,
    NotMet(FailedBy),
    /// The generator did not produce the load.
    GeneratorBound(Limit),
}

/// One hold, as a row of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The requested load: starts per second or users.
    pub load: f64,
    pub purpose: Purpose,
    /// Start of the measurement, in seconds of the search.
    pub at_s: f64,
    /// Duration of the measurement, in seconds.
    pub seconds: f64,
    /// Attempts that were due, per second.
    pub offered: f64,
    /// Attempts that ended without an error, per second: the goodput.
    pub served: f64,
    /// Attempts that ended, and those that were overdue at the end.
    pub attempts: f64,
    /// The number of these attempts that violate each threshold.
    pub bad: Vec<f64>,
    /// The threshold with the greatest share of bad attempts, and that share as a multiple of the
    /// allowed one.
    pub strain: Option<(usize, f64)>,
    /// Mean response time of the ended attempts.
    pub response_s: f64,
    pub percentiles: Option<Percentiles>,
    /// Mean number of attempts without a response. By Little's law it is the attempts per second
    /// times their mean response time.
    pub in_flight: f64,
    /// Number of users online at the end, if the load is a number of users.
    pub online: Option<u64>,
    pub was_skipped: bool,
    pub verdict: LevelVerdict,
}

impl Level {
    pub fn is_met(&self) -> bool {
        self.verdict == LevelVerdict::Met
    }

    /// Attempts in flight as a multiple of the number that Little's law predicts; None if no
    /// attempt ended.
    pub fn little(&self) -> Option<f64> {
        let expected = self.attempts / self.seconds * self.response_s;
        (expected > 0.0).then(|| self.in_flight / expected)
    }
}

/// The meaning of `low` and `high` of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A 95 % interval of the highest load at which all thresholds are met.
    Interval,
    /// The highest load that passed and the lowest that failed, each in one hold.
    Bracket,
    /// `low` passed, and no higher load was tried or could be produced.
    AtLeast,
    /// No load passed.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// The answer is complete.
    Found,
    /// The first level failed. Nothing higher was tried.
    BaseFails(FailedBy),
    /// The service met the thresholds at the highest allowed load.
    Max,
    Generator(Limit),
    Budget,
    /// No load near the lower end of the interval met the thresholds for the requested time.
    NotConfirmed,
    /// After a failure, the service did not recover even at an eighth of the load that it had
    /// carried.
    NotRecovered,
    /// It collapsed a second time, although loads only rose in small steps.
    CollapsedAgain,
    /// The user of throng ended the search.
    Asked,
}

/// A load at which the goodput fell, or after which the service recovered only at a far lower load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collapse {
    pub at: f64,
    /// Goodput per second at the end of that level.
    pub served: f64,
    /// The highest tried load at which the service recovered; None if it did not recover.
    pub recovers_at: Option<f64>,
    /// True if the service did not recover at half of the load that it had carried before.
    pub stays: bool,
}

/// The loads at which the behavior of the service changes, independent of the measured range.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Knee {
    /// Light to heavy: about here, 1 % more load costs 1 % more response time. Loads between the
    /// slopes 3/4 and 4/3, where the power (load over response time) is within 2 % of its maximum.
    pub optimal: Option<(f64, f64)>,
    /// Where goodput stops growing: the highest goodput of a level that was served as offered, and
    /// the lowest level that was not. None where all levels were served.
    pub maximum: Option<(f64, f64)>,
    /// The lowest load above it whose goodput was at least a fifth less than the highest one.
    pub collapse: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The promise: the service carried this load for `confirmed_s` seconds.
    pub carries: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The meaning of `low` and `high`.
    pub basis: Basis,
    pub unit: Unit,
    pub confirmed_s: f64,
    /// The lowest load above the estimate that failed.
    pub fails_at: Option<f64>,
    pub fails_by: Option<FailedBy>,
    /// The deliberate overload, and how long after it all thresholds were met again.
    pub overloaded_at: Option<f64>,
    pub recovered_s: Option<f64>,
    pub collapse: Option<Collapse>,
    /// Relative change of the capacity per minute during the refinement, if it is significant.
    pub trend: Option<f64>,
    pub knee: Knee,
    pub levels: Vec<Level>,
    pub ended_by: EndedBy,
    pub spent_s: f64,
}
