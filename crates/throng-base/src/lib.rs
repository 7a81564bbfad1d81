//! Words that all crates need, and nothing that only one needs.
//!
//! - [`clock`]: the only place where time is read; simulated time for tests.
//! - [`units`]: durations, sizes, rates and shares as people write them.
//! - [`random`]: seeded randomness; the same seed gives the same users.
//! - [`ids`]: who and what is meant. [`share`]: which part of a run is ours.
//! - [`clean`](mod@clean): foreign text made harmless. [`secret`]: what must not be told.
//! - [`calendar`]: days as numbers.
//! - [`columns`]: text as wide as a terminal has room for.
//! - [`diagnostic`]: a mistake with its place, cause and cure, and how it is printed.
//! - [`form`]: names and values of forms as they are sent.
//! - [`language`]: English or Chinese, by one catalogue. [`Said`]: a sentence in either.
//! - [`status`]: the statuses of all protocols. [`grpc`]: codes of gRPC; [`mqtt`]: reason codes of
//!   MQTT; [`redis`]: errors of Redis; [`sql`]: SQLSTATEs.
//! - [`exit`]: the exit codes.
//! - [`scalars!`]: methods of serde's visitors.
//! - [`turns`]: which of two sides works when. [`words!`]: enums whose variants have words.
//! - [`plain`]: files that others name: plain ones, up to a bound. [`private`]: files for their
//!   owner alone. [`system`]: what differs between Unix and Windows.

#![forbid(unsafe_code)]

// What `say!` names, and `say!` itself, in this crate too.
extern crate self as throng_base;
#[macro_use]
extern crate throng_words;

pub mod calendar;
pub mod clean;
pub mod clock;
pub mod columns;
pub mod diagnostic;
pub mod exit;
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
pub use share::{Dealt, Share};
pub use status::{grpc, mqtt, redis, sql};
pub use throng_words::{packed, say, tell};
pub use turns::{SETTLING, Side, Turns};
#[cfg(unix)]
pub use unix as system;
#[cfg(not(unix))]
pub use windows as system;
