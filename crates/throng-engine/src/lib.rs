//! Runs a [`Program`](throng_program::Program): shards, users, transports, pacing, recording.
//!
//! [`start`] brings up one thread per shard, each with a runtime of its own. A shard's driver
//! brings users as the [schedule](throng_load::Schedule) has it and wakes them when they are due; a
//! user is one small future that runs the instructions of its session and always listens to its
//! connection. Once a second every shard hands its interval to the caller, merged by [`Run::next`].
//!
//! - `run`: threads, start and end, merging. In it `spread`: how many shards; `bridge`: what goes
//!   to the other machines of a run and comes from them.
//! - `driver`: brings the users of a shard, and wakes them. In it `window`: when users share a
//!   waking.
//! - `shard`: what a shard is. In it `seats`, `due`, `alarm`: its users, and when each is woken;
//!   `wall`: the wall clock, and when bytes arrived according to the kernel; `rare`: what only some
//!   answers need.
//! - `user`: what a user does. `scope`: what its expressions see; in it `memory`: what it keeps.
//! - `looked`: an answer that is looked at. `verify`: what it is checked for and what is saved from
//!   it.
//! - `control`: how a run is stopped. `rendezvous`: where users of all shards wait for each other.
//!   `peers`: how often the machines of a run speak, and which of them are there.
//! - `network`, `connector`, `transport`: with what and how connections open, and their bytes. In
//!   `network`: `routes` and `sources`, where they lead and come from; `vanished`, those that we
//!   left without FIN or RST. In `connector`: `protocol`, the handshakes; `resolve`, the addresses
//!   of targets; `allowed`, which targets may be loaded.
//! - `prepared`: what is rendered once. In it `code`: the instructions of a session; `template`:
//!   requests that differ; `haste`: which users a shared waking would delay.
//! - `recorder`: what is written down. In it `logs`, and `presence`: who is online, for audits.
//! - `sizes`: where the bytes of a user go.
//! - `trace`: every step of a user, told to who watches it.
//! - `system`: the system calls; all unsafe code of the engine.

#[macro_use]
extern crate throng_base;

mod connector;
mod control;
mod driver;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod failure;
mod ledger;
mod looked;
mod network;
mod peers;
mod prepared;
mod recorder;
mod rendezvous;
mod run;
mod scope;
mod shard;
mod sizes;
mod start_error;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
mod trace;
mod transport;
mod user;
mod verify;
#[cfg(test)]
mod world;

pub use connector::allowed::{AllowList, is_public};
pub use connector::resolve::addresses;
pub use connector::{ReflectError, reflect};
pub use control::{Control, GROWTH_AHEAD, Gate, Holder, Stopped, StoppedBy};
pub use network::lookups::NameNews;
pub use network::pem;
pub use network::sources::{source_count, source_fill, source_ports, target_shares};
pub use network::tls::{certificate_words, config as tls_config};
pub use recorder::Example;
pub use recorder::evidence::{EVIDENCE_BYTES_MAX, Evidence, Exchange};
pub use recorder::logs::{LOGS_PER_SECOND_MAX, Line};
pub use recorder::presence::Presences;
pub use run::bridge::{Announced, Bridge};
pub use run::spread::{Spare, SpareLimit};
pub use run::{Options, Ready, Run, Update, last_user_with, prepare, start};
pub use shard::Oddity;
pub use shard::kept::Kept;
pub use sizes::{RecorderSizes, SizeKind, SizePart, Sizes, TYPICAL_OCTAVES, sizes};
pub use start_error::StartError;
pub use trace::{Figures, SHOWN_BYTES_MAX, Shown, Trace, What};
