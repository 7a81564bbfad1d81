//! Runs a [`Program`](throng_program::Program): shards, users, transports, pacing, recording.
//!
//! [`start`] creates one thread per shard, each with its own runtime. A shard's driver starts users
//! on the [schedule](throng_load::Schedule) and wakes them when they are due; a user is one small
//! future that runs the instructions of its session and always listens on its connections. Once a
//! second every shard hands over its interval, and [`Run::next`] merges them.
//!
//! - `run`: threads, start, end, and merging. `spread`: the number of shards; `bridge`: messages to
//!   and from the other machines of a run.
//! - `driver`: starts the users of a shard, and wakes them. `window`: when users share a wake-up.
//! - `shard`: the state of a shard. `slots`, `due`, `alarm`: its users, and when each is woken;
//!   `wall`: the wall clock, and the kernel's arrival times; `scratch`: state that few responses
//!   need.
//! - `user`: what a user does. `scope`: what its expressions see; `memory`: its values.
//! - `looked`: a response or message, prepared for checks. `verify`: runs checks and saves values.
//! - `control`: stops a run. `rendezvous`: where users of all shards wait for each other. `peers`:
//!   how often the machines of a run communicate, and which of them are present.
//! - `network`, `connector`, `transport`: open connections and transfer their bytes. In `network`:
//!   `routes` and `sources`, the two ends of connections; `vanished`, connections that we left
//!   without FIN or RST. In `connector`: `protocol`, the handshakes; `resolve`, the addresses of
//!   targets; `allowed`, which targets may be loaded.
//! - `prepared`: what is rendered once. `code`: the instructions of a session; `template`: requests
//!   that differ per user; `haste`: which users a shared wake-up would delay.
//! - `recorder`: the measurements of a shard. `logs`: the lines of the verb `log`; `presence`:
//!   which users are online, for audits.
//! - `sizes`: the memory of a user, by part.
//! - `trace`: reports every step of a user to an observer.
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
pub use control::{Control, GROWTH_AHEAD, Gate, Holder, Stopped};
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
