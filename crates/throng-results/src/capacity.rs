//! How much a service carries: what a search for the highest load found. It is recorded as one
//! event, so that every report of the run has it.

mod judge;
mod words;

use serde::{Deserialize, Serialize};
use throng_base::Secrets;

pub(crate) use words::{load_text, number};

impl Capacity {
    /// Without secrets: a threshold may hold the name of a step.
    pub(crate) fn mask(&mut self, secrets: &Secrets) {
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

    /// Moves it in time, where records of machines are merged.
    pub(crate) fn shift(&mut self, seconds: f64) {
        self.levels.iter_mut().for_each(|level| level.at_s += seconds);
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
    /// The deliberate overload, and how many seconds after it all thresholds were met again.
    pub overloaded_at: Option<f64>,
    pub recovered_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collapse: Option<Collapse>,
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
    /// What the load had to be at least (`--at-least`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// A load that machines are wanted for (`--peak`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadUnit {
    PerS,
    Users,
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
    /// More attempts waited than the service could answer in time.
    Backlog,
    /// More than half of the attempts failed.
    Failing,
    /// No response for seconds.
    Silence,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorLimit {
    Lateness,
    Cpu,
    Ports,
    Memory,
    Users,
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
    /// After a failure the service did not recover at a fraction of the load it had carried.
    NotRecovered,
    CollapsedAgain,
    /// A person ended it.
    Asked,
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

/// Loads as ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Knee {
    /// About here 1 % more load costs 1 % more response time.
    pub optimal: Option<(f64, f64)>,
    /// Where goodput stops growing.
    pub maximum: Option<(f64, f64)>,
    /// From here on goodput falls.
    pub collapse: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Climb,
    Bracket,
    Refine,
    Confirm,
    Beyond,
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
    /// Of users: how many were online at its end.
    pub online: Option<u64>,
    pub verdict: LevelVerdict,
}

#[cfg(test)]
mod tests;
