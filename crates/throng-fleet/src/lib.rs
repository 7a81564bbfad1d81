//! A fleet of machines: its decisions as pure state machines over time and messages, and the agents
//! and controllers that run them over a [`throng_bus::Bus`]. With the in-memory bus and simulated
//! time, a test of an hour with faults takes a moment, and a seed reproduces it.
//!
//! - [`agent`]: a machine that generates a share of the load; [`controller`]: assigns the shares
//!   and collects the agents' lines; [`wire`]: the messages between them.
//!
//! - [`monitor`]: readings of the target's host, on request.
//! - [`assign`]: the share of the load of each agent.
//! - [`presence`]: which agents are online, by heartbeats.
//! - [`lease`]: elects one controller at a time.
//! - [`orphan`]: ends the load of an isolated agent.
//! - [`uplink`]: which lines an agent sends and resends.
//! - [`receipt`]: which numbered lines of each agent have arrived, and which are missing.
//! - [`offset`]: the offset between a machine's clock and the controller's.

#![allow(async_fn_in_trait)] // Each machine uses the bus on one thread.

#[macro_use]
extern crate throng_base;

pub mod agent;
pub mod assign;
pub mod controller;
pub mod lease;
pub mod monitor;
pub mod offset;
pub mod orphan;
pub mod presence;
pub mod receipt;
pub mod uplink;
pub mod wire;

use std::time::Duration;

use throng_base::Time;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

/// A monotonic clock that tests can control.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticking(Instant);

pub(crate) fn ticking() -> Ticking {
    Ticking(Instant::now())
}

/// Ticks at this interval; after a delay it continues from there.
pub(crate) fn every(period: Duration) -> Interval {
    let mut every = interval(period);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    every
}

impl Ticking {
    pub(crate) fn now(self) -> Time {
        Time(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
