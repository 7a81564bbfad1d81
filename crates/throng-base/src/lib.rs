//! Shared basics that all crates need.
//!
//! - [`clock`]: the clock, and simulated time for tests.
//! - [`units`]: durations, sizes, rates and shares with units.
//! - [`random`]: seeded randomness; the same seed gives the same users.
//! - [`ids`]: IDs as types. [`share`]: the exact parts of a run.
//! - [`clean`](mod@clean): makes foreign text harmless. [`secret`]: masks secrets.
//! - [`calendar`]: days as numbers.
//! - [`columns`]: text in terminal columns.
//! - [`diagnostic`]: errors with their place, cause and fix.
//! - [`flags`]: values of command-line flags.
//! - [`form`]: submitted forms.
//! - [`language`]: English or Chinese. [`Said`]: a message in either.
//! - [`status`]: the statuses of all protocols, a module for each.
//! - [`exit`]: the exit codes.
//! - [`scalars!`]: methods of serde's visitors.
//! - [`turns`]: the turns of a duel. [`words!`]: enums whose variants have words.
//! - [`plain`]: reads regular files of others, with a size limit. [`private`]: files that only the
//!   owner can access. [`system`]: differences between Unix and Windows.

#![forbid(unsafe_code)]

// `say!` and the paths it uses must also work in this crate.
extern crate self as throng_base;
#[macro_use]
extern crate throng_words;

pub mod calendar;
pub mod clean;
pub mod clock;
pub mod columns;
pub mod diagnostic;
pub mod exit;
pub mod flags;
pub mod form;
pub mod ids;
pub mod language;
pub mod packed;
pub mod plain;
pub mod private;
pub mod random;
mod said;
mod scalars;
pub mod secret;
pub mod share;
pub mod status;
pub mod turns;
pub mod units;
#[cfg(unix)]
pub mod unix;
#[cfg(not(unix))]
pub mod windows;
mod words;

pub use clean::clean;
pub use clock::{Clock, Time};
pub use diagnostic::{Diagnostic, Severity, Source, Span};
pub use exit::Exit;
pub use form::form_decoded;
pub use ids::{SessionId, ShardId, StepId, UserId};
pub use language::Language;
pub use random::Random;
pub use said::{Argument, Said, Speak, Told};
pub use secret::Secrets;
pub use share::{Dealt, LoadPart, Share};
pub use status::*;
pub use throng_words::{packed, say, tell};
pub use turns::{SETTLING, Side, Turns};
#[cfg(unix)]
pub use unix as system;
#[cfg(not(unix))]
pub use windows as system;
