//! A fleet of machines: what it decides, as pure machines over time and messages, and the agents
//! and controllers that are driven by them over a [`throng_bus::Bus`]. With the bus in memory and
//! the time of a test a fleet lives through an hour of faults in a moment, and a seed brings the
//! same hour again.
//!
//! - [`agent`]: a machine that makes a part of the load; [`controller`]: who gives the parts and
//!   gathers what agents tell; [`wire`]: what they tell each other.
//!
//! - [`monitor`]: what is read on the host of the target, for those who ask.
//! - [`assign`]: which part of the load each agent has.
//! - [`presence`]: which agents are there, by their heartbeats.
//! - [`lease`]: which controller commands; there is one at a time.
//! - [`orphan`]: when an agent that hears nobody ends its load.
//! - [`uplink`]: which lines an agent sends, and sends again.
//! - [`receipt`]: which numbered lines of each agent have come, and which are missing.
//! - [`offset`]: how far a machine's clock is from the controller's.

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
