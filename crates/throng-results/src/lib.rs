//! Run directories, and everything that is computed from them: terminal output, JSON, pages.
//!
//! - [`back_off`]: machines that backed off.
//! - [`capacity`]: the result of a capacity search.
//! - [`collector`]: sums up a run line by line.
//! - [`compare`]: compares runs, taking noise into account.
//! - [`csv`]: one row per second and step.
//! - [`directory`]: the contents of `run.json`, and the names of run directories.
//! - [`event`]: the lines of `events.ndjson`.
//! - [`evidence`]: the evidence of the first failures of each kind.
//! - [`gauges`]: the current gauges of all loads.
//! - [`record`]: writes a run directory during a run.
//! - [`merge`]: merges the lines of several machines.
//! - [`read`]: reads run directories, including those of killed runs.
//! - [`summary`]: all results of a run, computed only from its directory.
//! - [`window`]: results of a sliding window of seconds.
//! - [`verdict`]: the validity of a result, and the exit code.
//! - [`terminal`]: text for a terminal, as pure functions.
//! - [`json`]: the summary as JSON.
//! - [`page`]: the HTML report.
//! - [`junit`]: JUnit XML.
//! - [`markdown`]: Markdown for pull requests.
//!
//! The end of a run and `throng report` use the same code: both feed a [`Collector`].

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod actions;
pub mod audits;
pub mod back_off;
pub mod collector;
pub mod compare;
pub mod csv;
pub mod directory;
pub mod event;
pub mod evidence;
pub mod gauges;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod merge;
pub mod monitors;
pub mod once;
pub mod page;
pub mod read;
pub mod record;
pub mod summary;
pub mod terminal;
pub mod verdict;
pub mod window;

#[cfg(test)]
mod tests;

pub use audits::{AuditRow, ViewRow};
pub use back_off::{BackOff, BackOffs, machine_name};
pub use collector::Collector;
pub use directory::{
    AuditInfo, BuildInfo, EndInfo, FORMAT, FileInfo, GeneratorInfo, MachineInfo, ModeInfo,
    MonitorInfo, NetworkInfo, Outcome, PhaseInfo, RunInfo, SourcesInfo, Stairs, StepInfo,
    TablesInfo, TargetsInfo, ThresholdInfo, TimeInfo, create_directory, timestamp,
};
pub use event::{ActionStatus, Event, StopBy, moved};
pub use evidence::{EVIDENCE_MAX, Evidence, FailureRow, Piece};
pub use gauges::AllGauges;
pub use json::{judged_json, slowest_json, summary_json};
pub use junit::junit;
pub use merge::{Line, Merge, merge_runs};
pub use monitors::{MonitorRow, SeriesRow};
pub use once::{OnceFailure, OnceOutcome, OncePart, OnceRun, OnceStep};
pub use page::{LivePage, report_html};
pub use read::Run;
pub use record::{RecordError, Recorder};
pub use summary::{Damage, InvalidReason, Summary, Validity};
pub use verdict::{exit_code, is_connecting};
pub use window::{AbortRules, Ruling};
