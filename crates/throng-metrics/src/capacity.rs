//! The result of a capacity search. The run directory contains it as an event, so that every report
//! of the run shows it.

mod judge;
pub mod sample;
mod words;

use serde::{Deserialize, Serialize};
use throng_base::Secrets;

pub use words::{load_text, number};

/// The share of its capacity that a machine may use at a peak.
const MACHINE_SHARE: f64 = 0.7;

/// The number of machines for a peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Machines {
    /// Based on the promise.
    pub count: u64,
    /// Based on the ends of the interval; the lower number is unknown without an upper end.
    pub low: Option<u64>,
    pub high: u64,
}

impl Capacity {
    /// Masks secrets, because a threshold can contain the name of a step.
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

    /// Shifts its times when the run directories of several machines are merged.
    pub fn shift(&mut self, seconds: f64) {
        self.levels.iter_mut().for_each(|level| level.at_s += seconds);
    }

    /// The number of machines for [`Capacity::peak`]; `None` without a promise.
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

/// The result of a search. Loads are in [`Capacity::unit`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    pub unit: LoadUnit,
    /// The varied load, if the scenario has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub varied: Option<String>,
    /// The required thresholds as written.
    pub thresholds: Vec<String>,
    /// The promise: the service sustained this load for `confirmed_s`.
    pub carries: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The meaning of `low` and `high`.
    pub basis: Basis,
    pub confirmed_s: f64,
    /// The lowest load above the estimate that failed, and the reason.
    pub fails_at: Option<f64>,
    pub fails_by: Option<FailedBy>,
    #[serde(flatten)]
    pub overload: Overload,
    /// The relative change of the capacity per minute of the search, if it is significant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<f64>,
    pub knee: Knee,
    /// In the order of time.
    pub levels: Vec<Level>,
    pub ended_by: EndedBy,
    /// Seconds under load.
    pub spent_s: f64,
    pub budget_s: f64,
    /// The required load (`--at-least`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The load for which machines are calculated (`--peak`).
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
    /// No load passed.
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
    /// If users are varied: some of them were not online at the end.
    Offline,
    /// No response for 5 s.
    Silence,
    /// The process or the host of the target stopped.
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
    /// The maximum load passed.
    Max,
    Generator(GeneratorLimit),
    Budget,
    /// No load near the interval's lower end met the thresholds for the required time.
    NotConfirmed,
    /// After a failure, the service did not recover at a fraction of the load that it had
    /// sustained.
    NotRecovered,
    /// It collapsed a second time, although loads only rose in small steps.
    CollapsedAgain,
    /// The run ended first: the user stopped it, or the target was lost.
    Asked,
}

/// The effect of an overload on the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// The deliberate overload, and the number of seconds until all thresholds were met again.
    #[serde(rename = "overloaded_at")]
    pub at: Option<f64>,
    pub recovered_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collapse: Option<Collapse>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collapse {
    pub at: f64,
    /// Goodput per second at that load.
    pub served: f64,
    /// The highest load tried at which it recovered.
    pub recovers_at: Option<f64>,
    /// It did not recover at half of the load that it had sustained.
    pub stays: bool,
}

/// Loads at which the behavior of the service changes, as ranges. They do not depend on the highest
/// load that was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Knee {
    /// Light to heavy: about here, 1 % more load costs 1 % more response time. Loads between the
    /// slopes 3/4 and 4/3, where the power (load over response time) is within 2 % of its maximum.
    pub optimal: Option<(f64, f64)>,
    /// Where goodput stops growing: the highest goodput of a level that was served as offered, and
    /// the lowest level that was not. `None` if all levels were served.
    pub maximum: Option<(f64, f64)>,
    /// The lowest higher load whose goodput was at least a fifth below the maximum.
    pub collapse: Option<f64>,
}

words! {
    Purpose {
        /// Finds a load that fails, from below.
        Climb, "climb", "climb";
        /// Narrows the range between the highest load that passed and the lowest that failed.
        Bracket, "bracket", "bracket";
        /// Collects counts on both sides of the border.
        Refine, "refine", "refine";
        /// Confirms the promise for longer.
        Confirm, "confirm", "confirm";
        /// Tests an overload, and whether the service recovers.
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
    /// The requested load.
    pub load: f64,
    pub purpose: Purpose,
    /// The start of its measurement in seconds of the run, and its length.
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

    /// The middle of its measurement in seconds of the run.
    pub fn middle_s(&self) -> f64 {
        self.at_s + self.seconds / 2.0
    }
}

#[cfg(test)]
mod tests;
