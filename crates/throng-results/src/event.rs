//! What stands in `events.ndjson`: what happened once, with its time.

use serde::{Deserialize, Serialize};
use throng_metrics::Cause;

/// One line of `events.ndjson`. `at_ns` counts from the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    PhaseBegun {
        at_ns: u64,
        phase: u16,
    },
    /// Its time has passed, or all that it drives is done.
    PhaseEnded {
        at_ns: u64,
        phase: u16,
    },
    /// An example of a failure; not every failure has one.
    Failure {
        at_ns: u64,
        step: u16,
        cause: Cause,
        /// What exactly happened, such as the status line or the word of the system.
        detail: String,
    },
    /// A person asked the run to stop.
    Interrupted {
        at_ns: u64,
    },
    /// Something could not be recorded; `lost` lines so far.
    RecordingTrouble {
        at_ns: u64,
        lost: u64,
        detail: String,
    },
    /// The generator has something to say about itself.
    Notice {
        at_ns: u64,
        text: String,
    },
    /// The run was given up: for some time nothing was answered and no connection opened.
    TargetLost {
        at_ns: u64,
    },
    RunEnded {
        at_ns: u64,
    },
    /// An event of a newer throng.
    #[serde(other)]
    Unknown,
}
