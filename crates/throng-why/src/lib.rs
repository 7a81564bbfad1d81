//! Findings: what went wrong in a run and why, with evidence. Each is a pure function of a
//! [`Record`], in a file of its own; `docs/why.md` describes them all.
//!
//! - [`finding`]: a finding, and why a rule cannot judge.
//! - [`timeline`]: the seconds of a run, in columns.
//! - [`record`]: what rules look at.
//! - [`stats`]: medians, slopes, evenness.
//! - `rules`: one file for each finding, and the order in which they are judged.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod finding;
pub mod record;
mod rules;
pub mod stats;
pub mod timeline;

#[cfg(test)]
mod simulation;

pub use finding::{Code, Figure, Finding, Level, Rival, Span, Unknown};
pub use record::{Facts, MissedRate, PhaseFacts, Record};
pub use rules::{Judged, NOT_RECORDED, judge};
pub use timeline::Timeline;
