//! Commands to a run: what they are, and the socket in the run directory that takes them.

pub mod command;
pub mod socket;
