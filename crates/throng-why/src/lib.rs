//! Findings: what went wrong in a run and why, with evidence. Each is a pure function of a
//! [`Record`] in a separate file; `docs/why.md` describes them all.
//!
//! - [`finding`]: findings, and the reasons that a rule is not evaluated.
//! - `gave_way`: what limited the service at the border of a capacity search.
//! - [`timeline`]: the seconds of a run, in columns.
//! - [`record`]: the input of rules.
//! - `stability`: whether a long load was stable.
//! - [`stats`]: medians, slopes, evenness.
//! - `rules`: one file per finding, and their order.

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
