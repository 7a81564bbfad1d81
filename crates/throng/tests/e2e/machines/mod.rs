//! Several processes and machines: fleets, agents, parts of a run.

mod bridged;
pub(crate) mod fleet;
mod handed_over;
mod joined;
pub(crate) mod processes;
mod rerun;
mod services;
pub(crate) mod takeover;
