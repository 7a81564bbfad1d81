//! What a search orders (holds and waits), and what is counted while they last.

use throng_metrics::capacity::{FailedBy, GeneratorLimit, Purpose};

/// A service whose goodput is less than this part of its highest goodput has collapsed.
pub(in crate::capacity) const COLLAPSED: f64 = 0.8;

/// The thresholds that define whether a service sustains a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Goals {
    /// Thresholds that count attempts.
    pub shares: Vec<Share>,
    /// Thresholds that do not count attempts (deliveries lost, audits), as written. The caller says
    /// which of them a hold did not meet.
    pub plain: Vec<String>,
}

/// A threshold that counts attempts: at most this part of them may be bad. `p99 < 50ms` is "at most
/// 0.01 fail or take longer than 0.05 s".
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The threshold as written.
    pub text: String,
    /// Greater than 0, less than 1.
    pub allowed: f64,
    /// An attempt without a response is bad after this many seconds. None: only errors are bad.
    pub within_s: Option<f64>,
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
    /// The number of users that stayed online at a level that was refused in part.
    StayedOnline,
    /// A deliberate overload.
    Overload,
}

/// An order to hold a load. The settle time comes first and is not counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hold {
    pub load: f64,
    /// If users are varied, counting begins when all of them are online or were refused.
    pub settle_s: u32,
    pub seconds: u32,
    pub purpose: Purpose,
    pub why: Why,
}

/// Keep this load until a condition is true, for at most `seconds_max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    pub load: f64,
    pub seconds_max: u32,
    pub until: Until,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// No backlog, and the median response time is at most 1.2 times this value, or at most 0.2 ms
    /// above it.
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

/// What a threshold counts: all attempts, or only those of some steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub attempts: f64,
    /// How many of them are bad by the threshold.
    pub bad: f64,
}

impl Tally {
    pub(in crate::capacity) fn add(&mut self, other: &Tally) {
        self.attempts += other.attempts;
        self.bad += other.bad;
    }

    pub(in crate::capacity) fn share(&self) -> f64 {
        if self.attempts > 0.0 { self.bad / self.attempts } else { 0.0 }
    }
}

/// What was counted in one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// Attempts that were due.
    pub begun: u64,
    /// Attempts that ended, in time or not.
    pub ended: u64,
    /// Attempts that ended without an error.
    pub good: u64,
    /// What each threshold counts of the ended, in the order of `Goals::shares`.
    pub counted: Vec<Tally>,
    /// Attempts without a response at the end of the second, also those that wait for a start.
    pub unanswered: u64,
    /// The sum of the response times of all that ended.
    pub response_s: f64,
    /// Median response time; None if no attempt ended.
    pub p50_s: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Full,
    /// Its verdict was certain before its end.
    GaveUp(FailedBy),
    /// The user skipped the rest.
    Skipped,
    /// The generator did not offer the load, so the counts say nothing about the target.
    GeneratorBound(GeneratorLimit),
}

/// Response times of a hold in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    pub p50_s: f64,
    pub p90_s: f64,
    pub p99_s: f64,
}

/// A finished hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// How long it took from the order to the first second that counts.
    pub settled_s: f64,
    /// The counts since then.
    pub seconds: Vec<Second>,
    pub ended: Ended,
    /// The first threshold of [`Goals::plain`] that was not met.
    pub unmet: Option<usize>,
    pub percentiles: Option<Percentiles>,
    /// If users are varied: how many were online at the end.
    pub online: Option<u64>,
}

/// A finished wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waited {
    /// How long it took from the order until its load was set.
    pub delayed_s: f64,
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

    /// How a hold fails that does not meet the threshold with this number of [`Goals::shares`].
    pub(in crate::capacity) fn share_not_met(&self, index: usize) -> FailedBy {
        FailedBy::Threshold(self.shares[index].text.clone())
    }

    /// The threshold with the greatest strain, and that strain: the share of bad attempts as a
    /// multiple of the allowed one.
    pub fn strain(&self, counted: &[Tally]) -> Option<(usize, f64)> {
        let counted = self.shares.iter().zip(counted).enumerate();
        let counted = counted.filter(|(_, (_, tally))| tally.attempts > 0.0);
        let strains = counted.map(|(index, (share, tally))| (index, tally.share() / share.allowed));
        strains.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
