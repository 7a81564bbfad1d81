//! Findings: what went wrong in a run and why, with evidence. Each is a pure function of a
//! [`Record`], in a file of its own; `docs/why.md` describes them all.
//!
//! - [`finding`]: a finding, and why a rule cannot judge.
//! - `gave_way`: what failed at the border of a search for the highest load.
//! - [`timeline`]: the seconds of a run, in columns.
//! - [`record`]: what rules look at.
//! - `stability`: whether a long load stayed as it was.
//! - [`stats`]: medians, slopes, evenness.
//! - `rules`: one file for each finding, and the order in which they are judged.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod around;
pub mod finding;
mod gave_way;
pub mod record;
mod rules;
mod stability;
pub mod stats;
pub mod timeline;

#[cfg(test)]
mod tests;

pub use around::{Around, Change, Effect, Happened, Stretch, around};
pub use finding::{Code, Figure, Finding, Level, Needs, Rival, Span, Unknown};
pub use gave_way::GaveWay;
pub use record::{BUSY, Facts, FailedLevel, MissedRate, PhaseFacts, Record, SearchFacts, Watched};
pub use rules::{Judged, judge};
pub use stability::{Measured, Stability, Trend};
pub use timeline::Timeline;
