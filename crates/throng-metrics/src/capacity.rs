//! How much a service carries: the answer of a search for the highest load. The search fills it in,
//! and the record of the run holds it as one event, so that every report of the run shows it.

mod judge;
pub mod sample;
mod words;

use serde::{Deserialize, Serialize};
use throng_base::Secrets;

pub use words::{load_text, number};

/// Of the capacity that a machine is to use at a peak.
const MACHINE_SHARE: f64 = 0.7;

/// How many machines a peak needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machines {
    /// By the promise.
    pub count: u64,
    /// By the ends of the interval; the low one is not known without an upper end.
    pub low: Option<u64>,
    pub high: u64,
}

impl Capacity {
    /// Masks secrets: a threshold may contain the name of a step.
    pub fn mask(&mut self, secrets: &Secrets) {
        let mask = |text: &mut String| *text = secrets.mask(text).into_owned();
        self.thresholds.iter_mut().chain(&mut self.varied).for_each(mask);
        let levels = self.levels.iter_mut().filter_map(|level| match &mut level.verdict {
            LevelVerdict::NotMet(by) => Some(by),
            LevelVerdict::Met | LevelVerdict::GeneratorBound(_) => None,
        });
        let ended = match &mut self.ended_by {
            EndedBy::BaseFails(by) => Some(by),
            _ => None,
        };
        for by in levels.chain(&mut self.fails_by).chain(ended) {
            if let FailedBy::Threshold(text) = by {
                mask(text);
            }
        }
    }

    /// Moves it in time: records of several machines are merged.
    pub fn shift(&mut self, seconds: f64) {
        self.levels.iter_mut().for_each(|level| level.at_s += seconds);
    }

    /// How many machines [`Capacity::peak`] needs; unknown without a promise.
    pub fn machines(&self) -> Option<Machines> {
        let (peak, carries) = (self.peak?, self.carries.filter(|load| *load > 0.0)?);
        let count = |load: f64| (peak / (MACHINE_SHARE * load)).ceil().max(1.0) as u64;
        let high = self.high.filter(|_| self.basis != Basis::AtLeast);
        Some(Machines {
            count: count(carries),
            low: high.map(count),
            high: count(self.low.map_or(carries, |low| low.min(carries))),
        })
    }
}

/// What a search found. Loads are in [`Capacity::unit`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    pub unit: LoadUnit,
    /// The load that was varied, where the scenario has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub varied: Option<String>,
    /// What had to be met, as written.
    pub thresholds: Vec<String>,
    /// The promise: the service carried this load for `confirmed_s`.
    pub carries: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// What `low` and `high` are.
    pub basis: Basis,
    pub confirmed_s: f64,
    /// The lowest load above the estimate that failed, and by what.
    pub fails_at: Option<f64>,
    pub fails_by: Option<FailedBy>,
    #[serde(flatten)]
    pub overload: Overload,
    /// How the capacity changed per minute of the search, as a part of it, where that is sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<f64>,
    pub knee: Knee,
    /// In the order of time.
    pub levels: Vec<Level>,
    pub ended_by: EndedBy,
    /// Seconds of load.
    pub spent_s: f64,
    pub budget_s: f64,
    /// The load that it had to carry (`--at-least`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The load for which machines are counted (`--peak`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<f64>,
}

words! {
    LoadUnit {
        PerS, "per_s";
        Users, "users";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A 95 % interval of the highest load at which all thresholds are met.
    Interval,
    /// The highest load that passed and the lowest that failed.
    Bracket,
    /// `low` passed; no higher load was tried, or none could be offered.
    AtLeast,
    /// Nothing passed.
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailedBy {
    /// As written.
    Threshold(String),
    /// More attempts waited for a response than the service could give in time.
    Backlog,
    /// More than half of the attempts failed.
    Failing,
    /// Users are varied, and some of them were not online at the end.
    Offline,
    /// No response for 5 s.
    Silence,
    /// The process or the host of the target is gone.
    Gone,
}

words! {
    GeneratorLimit {
        Lateness, "lateness", "lateness";
        Cpu, "cpu", "CPU";
        Ports, "ports", "source ports";
        Memory, "memory", "memory";
        /// No user was free for a start.
        Users, "users", "too few users";
        /// More users need more descriptors.
        Descriptors, "descriptors", "open files";
        /// Each user needs a row of data, and there are no more.
        Rows, "rows", "too few rows of data";
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndedBy {
    Found,
    BaseFails(FailedBy),
    /// The highest load that is allowed was met.
    Max,
    Generator(GeneratorLimit),
    Budget,
    /// No load near the interval's lower end met the thresholds for as long as was asked.
    NotConfirmed,
    /// After a failure, the service did not recover at a fraction of the load that it had carried.
    NotRecovered,
    /// It collapsed a second time, although loads only rose in small steps.
    CollapsedAgain,
    /// The run ended first: a person ended it, or the target was lost.
    Asked,
}

/// What too much load does to the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// The deliberate overload, and how many seconds after it all thresholds were met again.
    #[serde(rename = "overloaded_at")]
    pub at: Option<f64>,
    pub recovered_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collapse: Option<Collapse>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collapse {
    pub at: f64,
    /// Goodput per second there.
    pub served: f64,
    /// The highest load tried at which it recovered.
    pub recovers_at: Option<f64>,
    /// It did not recover at half of the load that it had carried.
    pub stays: bool,
}

/// Where the character of the service changes, independent of how far was measured. Loads as
/// ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Knee {
    /// Light to heavy: about here, 1 % more load costs 1 % more response time. Loads between the
    /// slopes 3/4 and 4/3, where the power (load over response time) is within 2 % of its maximum.
    pub optimal: Option<(f64, f64)>,
    /// Where goodput stops growing: the highest goodput of a level that was served as offered, and
    /// the lowest level that was not. None if all levels were served.
    pub maximum: Option<(f64, f64)>,
    /// The lowest load above it whose goodput was at least a fifth less than the highest one.
    pub collapse: Option<f64>,
}

words! {
    Purpose {
        /// To find a load that fails, from below.
        Climb, "climb", "climb";
        /// To narrow the range between the highest load that passed and the lowest that failed.
        Bracket, "bracket", "bracket";
        /// To collect counts on both sides of the border.
        Refine, "refine", "refine";
        /// To see the promise met for longer.
        Confirm, "confirm", "confirm";
        /// To see what too much load does, and whether the service recovers.
        Beyond, "beyond", "overload";
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelVerdict {
    Met,
    NotMet(FailedBy),
    /// The generator did not offer the load.
    GeneratorBound(GeneratorLimit),
}

/// One hold of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// What was asked for.
    pub load: f64,
    pub purpose: Purpose,
    /// When it began to count, in seconds of the run, and how long it counted.
    pub at_s: f64,
    pub seconds: f64,
    /// Attempts per second that were due, and that ended without an error.
    pub offered: f64,
    pub served: f64,
    pub attempts: u64,
    /// The largest share of bad attempts as a multiple of what its threshold allows.
    pub strain: Option<f64>,
    pub mean_s: f64,
    pub p50_s: Option<f64>,
    pub p90_s: Option<f64>,
    pub p99_s: Option<f64>,
    /// The mean number of attempts without a response, and that of Little's law: the attempts per
    /// second times their mean response time.
    pub in_flight: f64,
    pub in_flight_expected: f64,
    /// If users are varied: how many were online at its end.
    pub online: Option<u64>,
    pub verdict: LevelVerdict,
}

impl Level {
    pub fn is_met(&self) -> bool {
        self.verdict == LevelVerdict::Met
    }

    /// The middle of the time that it counted, in seconds of the run.
    pub fn middle_s(&self) -> f64 {
        self.at_s + self.seconds / 2.0
    }
}

#[cfg(test)]
mod tests;
