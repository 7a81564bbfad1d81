//! Runs a [`Program`](throng_program::Program): shards, users, transports, pacing, recording.
//!
//! [`start`] brings up one thread per shard, each with a runtime of its own. A shard's driver
//! brings users as the [schedule](throng_load::Schedule) has it and wakes them when they are due; a
//! user is one small future that runs the instructions of its session and always listens to its
//! connection. Once a second every shard hands its interval to the caller, merged by [`Run::next`].
//!
//! - `run`: threads, start and end, merging. `tls`: the TLS configuration.
//! - `shard`, `seats`, `due`, `alarm`: what a shard is, who is there, when who is woken.
//! - `user`: what a user does. `verify`: what an answer is checked for.
//! - `connector`, `transport`: how connections open, and their bytes.
//! - `prepared`: what is rendered once. `recorder`: what is written down.
//! - `system`: the system calls; all unsafe code of the engine.

mod alarm;
mod connector;
mod due;
mod prepared;
mod recorder;
mod run;
mod seats;
mod shard;
mod system;
mod tls;
mod transport;
mod user;
mod verify;
#[cfg(test)]
mod world;

pub use recorder::Example;
pub use run::{Options, Run, StartError, Update, start};
pub use shard::Control;
