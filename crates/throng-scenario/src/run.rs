//! What a scenario says of a run beside its sessions and its load.
//!
//! - [`once`]: what one user does before and after all others.
//! - [`events`]: what is done at set times.
//! - [`audit`], [`deliveries`]: what the target says of its users, and who got which message.
//! - [`monitor`], [`output`], [`trace`]: figures from others and for others.
//! - [`thresholds`]: what the figures have to be.
//! - [`recorded`]: how the scenario is kept in the record of the run.

pub(crate) mod audit;
pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod monitor;
pub(crate) mod once;
pub(crate) mod output;
pub(crate) mod recorded;
pub(crate) mod thresholds;
pub(crate) mod trace;
