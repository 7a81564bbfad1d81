//! Commands to a run, and the socket in the run directory that receives them.

pub mod command;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
pub mod socket;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
