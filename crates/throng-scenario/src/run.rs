//! Settings of a run besides its sessions and its load.
//!
//! - [`once`]: steps that run once, before and after all users.
//! - [`events`]: actions at set times.
//! - [`audit`], [`deliveries`]: the target's view of its users, and which user got which message.
//! - [`monitor`], [`output`], [`trace`]: figures from and for other programs.
//! - [`thresholds`]: conditions on the figures.
//! - [`recorded`]: the scenario in the run directory.

pub(crate) mod audit;
pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod monitor;
pub(crate) mod once;
pub(crate) mod output;
pub(crate) mod recorded;
pub(crate) mod thresholds;
pub(crate) mod trace;
