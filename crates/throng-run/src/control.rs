//! Commands to a run, and the socket in the run directory that receives them.

pub mod command;
pub mod socket;
