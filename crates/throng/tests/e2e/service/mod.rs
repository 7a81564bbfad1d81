//! The target's side: monitors, audits, events, and servers of strangers.

mod audits;
pub(crate) mod host_monitor;
pub(crate) mod monitors;
mod strangers;
mod timed;
