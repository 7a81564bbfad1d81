//! Events on the time line of a run: what is done at set times beside its load.

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
    /// Its command, as a person compares it.
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
    /// So long after the begin of a phase, by its number through all loads.
    Phase { phase: u16, offset: Duration },
    /// So long after another event has ended, by its number; that one stands before it.
    After { event: u16, offset: Duration },
    /// As soon as a condition has held for its time.
    When(Box<AbortRule>),
}

/// What an event does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A program of the controller's host with its arguments.
    Run {
        command: Vec<String>,
        timeout: Duration,
    },
    Http(Box<HttpCall>),
    /// Nothing: it names a moment.
    Mark,
    Amend {
        load: u16,
        change: Steering,
    },
    /// An audit, by its number.
    Audit(u16),
}

/// A request that the controller sends.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpCall {
    pub method: String,
    /// `http://` or `https://`.
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The statuses that are good; empty: all from 200 to 299.
    pub statuses: Vec<u16>,
    pub timeout: Duration,
}

/// What an event does to a load, as `throng control` does it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steering {
    Change(Change),
    Pause,
    GoOn,
}

/// A change of the phase that runs; those that follow stay as they are. Events, users and fleets
/// use the same words for it: it is serialized.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Its level, times this: what is held or constant changes at once, and what goes on its way
    /// gets another target.
    Times(f64),
    /// So many users stay.
    Users(u64),
    /// So many start per second.
    Rate(f64),
    /// Its rest falls away.
    EndPhase,
}

impl Action {
    /// The word that records carry.
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
