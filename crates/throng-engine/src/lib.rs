//! Runs a [`Program`](throng_program::Program): shards, users, transports, pacing, recording.
//!
//! [`start`] brings up one thread per shard, each with a runtime of its own. A shard's driver
//! brings users as the [schedule](throng_load::Schedule) has it and wakes them when they are due; a
//! user is one small future that runs the instructions of its session and always listens to its
//! connection. Once a second every shard hands its interval to the caller, merged by [`Run::next`].
//!
//! - `run`: threads, start and end, merging. `spread`: how many shards.
//!   `tls`: the TLS configuration.
//! - `driver`: brings the users of a shard, and wakes them.
//! - `shard`, `seats`, `due`, `alarm`: what a shard is, its users, and when each is woken.
//!   `window`: when users share a waking; `haste`: which users that would delay. `wall`: the wall
//!   clock, and when bytes arrived according to the kernel.
//! - `user`: what a user does. `memory`: what it keeps. `scope`: what its expressions see.
//! - `looked`: an answer that is looked at. `verify`: what it is checked for and what is saved from
//!   it. `rare`: what only some answers need.
//! - `control`: how a run is stopped. `rendezvous`: where users of all shards wait for each other.
//! - `bridge`: what goes to the other machines of a run and comes from them; `peers`: how often
//!   they speak, and which of them are there.
//! - `network`, `connector`, `transport`: with what and how connections open, and their bytes.
//!   `sources`: where they come from. `vanished`: connections that we left without FIN or RST.
//! - `resolve`: where they go. `allowed`: which targets may be loaded.
//! - `prepared`: what is rendered once. `template`: requests that differ.
//! - `recorder`, `logs`: what is written down. `presence`: who is online, for audits.
//! - `sizes`: where the bytes of a user go.
//! - `trace`: every step of a user, told to who watches it.
//! - `system`: the system calls; all unsafe code of the engine.

#[macro_use]
extern crate throng_base;

mod alarm;
mod allowed;
mod bridge;
mod budget;
mod code;
mod connector;
mod control;
mod cookies;
mod driver;
mod due;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod evidence;
mod expected;
mod failure;
mod haste;
mod instances;
mod kept;
mod ledger;
mod left;
mod logs;
mod look;
mod looked;
mod lookups;
mod memory;
mod network;
mod nobody;
mod peers;
pub mod pem;
mod prepared;
mod presence;
mod rare;
mod recorder;
mod reflect;
mod rendezvous;
mod repeats;
mod resolve;
mod routes;
mod run;
mod scope;
mod seats;
mod shard;
mod sizes;
mod sources;
mod spent;
mod spread;
mod start_error;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
mod template;
mod tls;
mod trace;
mod transport;
mod user;
mod vanished;
mod verify;
mod wall;
mod window;
#[cfg(test)]
mod world;

pub use allowed::{AllowList, is_public};
pub use bridge::{Announced, Bridge};
pub use control::{Control, GROWTH_AHEAD, Gate, Holder, Stopped, StoppedBy};
pub use evidence::{EVIDENCE_BYTES_MAX, Evidence, Exchange};
pub use kept::Kept;
pub use logs::{LOGS_PER_SECOND_MAX, Line};
pub use lookups::NameNews;
pub use presence::Presences;
pub use recorder::Example;
pub use reflect::{ReflectError, reflect};
pub use resolve::addresses;
pub use run::{Options, Ready, Run, Update, last_user_with, prepare, start};
pub use shard::Oddity;
pub use sizes::{RecorderSizes, SizeKind, SizePart, Sizes, TYPICAL_OCTAVES, sizes};
pub use sources::{source_count, source_fill, source_ports, target_shares};
pub use spread::{Spare, SpareLimit};
pub use start_error::StartError;
pub use tls::{certificate_words, config as tls_config};
pub use trace::{Figures, SHOWN_BYTES_MAX, Shown, Trace, What};
