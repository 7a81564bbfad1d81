//! The record of a run and all that is said about it: run directory, terminal, JSON.
//!
//! - [`back_off`]: which machines left their hosts to others.
//! - [`capacity`]: how much the service carries, where a search looked for it.
//! - [`collector`]: takes the record line by line, and makes the summary of it.
//! - [`compare`]: runs side by side, with the noise taken into account.
//! - [`csv`]: what a data frame sees: a row for each second and step.
//! - [`directory`]: what stands in `run.json`, and how run directories are named.
//! - [`event`]: what stands in `events.ndjson`.
//! - [`evidence`]: what the first failures of each kind are told by.
//! - [`gauges`]: how many there are at a moment, in all loads together.
//! - [`record`]: writes a run directory while the run goes on.
//! - [`merge`]: the lines of several machines in one order.
//! - [`read`]: reads one back, also of a run that was killed in the middle.
//! - [`summary`]: all figures of a run, from its record and from nothing else.
//! - [`window`]: figures of the last so many seconds, second by second.
//! - [`verdict`]: whether the result stands, and the exit code.
//! - [`terminal`]: what a person sees; pure functions that make text.
//! - [`json`]: what a program sees.
//! - [`page`]: what a browser shows.
//! - [`junit`]: what a build server sees.
//! - [`markdown`]: what a pull request shows.
//!
//! The end of a run and `throng report` are the same code: both feed a [`Collector`].

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
