//! Events on the timeline of a run: actions at set times, in parallel to the load.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_metrics::AbortRule;

/// An event of the scenario. It happens at most once in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedEvent {
    pub name: String,
    pub trigger: Trigger,
    pub action: Action,
}

impl TimedEvent {
    /// Its command in readable form.
    pub fn command(&self) -> Option<String> {
        match &self.action {
            Action::Run { command, .. } => Some(written(command)),
            _ => None,
        }
    }
}

/// The text of a shell, or the words of a command.
pub fn written(command: &[String]) -> String {
    match command {
        [shell, option, text] if shell == "/bin/sh" && option == "-c" => text.clone(),
        words => words.join(" "),
    }
}

/// When an event happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// This long after the start of the run.
    At(Duration),
    /// This long after the start of a phase, by its number across all loads.
    Phase { phase: u16, offset: Duration },
    /// This long after another event has ended, by its index; that event precedes it.
    After { event: u16, offset: Duration },
    /// As soon as a condition has held for its duration.
    When(Box<AbortRule>),
}

/// What an event does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A program on the controller's host with its arguments.
    Run {
        command: Vec<String>,
        timeout: Duration,
    },
    Http(Box<HttpCall>),
    /// No action: it marks a time.
    Mark,
    Amend {
        load: u16,
        change: Steering,
    },
    /// An audit, by its index.
    Audit(u16),
}

/// A request of the controller.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpCall {
    pub method: String,
    /// `http://` or `https://`.
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The accepted statuses; empty: 200 to 299.
    pub statuses: Vec<u16>,
    pub timeout: Duration,
}

/// The effect of an event on a load, as with `throng control`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steering {
    Change(Change),
    Pause,
    GoOn,
}

/// A change of the current phase; later phases are unchanged. Events, operators and fleets use the
/// same serialized form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Multiplies its level: a constant level changes immediately, and a ramp gets another target.
    Times(f64),
    /// This many users stay.
    Users(u64),
    /// This many start per second.
    Rate(f64),
    /// Skips the rest of the phase.
    EndPhase,
}

impl Action {
    /// Its name in record files.
    pub fn word(&self) -> &'static str {
        match self {
            Action::Run { .. } => "run",
            Action::Http(_) => "http",
            Action::Mark => "mark",
            Action::Amend { .. } => "amend",
            Action::Audit(_) => "audit",
        }
    }
}

impl HttpCall {
    pub fn accepts(&self, status: u16) -> bool {
        match self.statuses.is_empty() {
            true => (200..300).contains(&status),
            false => self.statuses.contains(&status),
        }
    }
}
