//! The setup and teardown of a run. Their results are separate from those of the load.

use serde::{Deserialize, Serialize};
use throng_base::{Said, Secrets};
pub use throng_metrics::OncePart;
use throng_metrics::{Cause, StepKind};

/// The setup or the teardown of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnceRun {
    pub part: OncePart,
    pub outcome: OnceOutcome,
    pub lasted_ns: u64,
    /// Absent after success, and if the cause is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<OnceFailure>,
    /// In the order of the scenario.
    pub steps: Vec<OnceStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnceOutcome {
    /// It completed.
    Done,
    Failed,
    /// It exceeded its timeout.
    TimedOut,
    /// The operator interrupted it.
    Interrupted,
}

/// The first step that failed, or the rule that ended it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnceFailure {
    /// Empty for a rule.
    pub step: String,
    /// Position of the step in the scenario: `shop.yaml:7:9`.
    pub place: String,
    pub cause: Option<Cause>,
    /// May contain text of the target.
    pub detail: Said,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnceStep {
    pub name: String,
    pub kind: StepKind,
    pub place: String,
    pub begun: u64,
    pub ok: u64,
    pub failed: u64,
    pub interrupted: u64,
    pub mean_ns: f64,
    pub max_ns: u64,
}

impl OnceRun {
    pub fn is_done(&self) -> bool {
        self.outcome == OnceOutcome::Done
    }

    pub(crate) fn mask(&mut self, secrets: &Secrets) {
        if let Some(failure) = &mut self.failure {
            failure.detail.change_texts(&|text| secrets.mask(text).into_owned());
        }
    }
}
