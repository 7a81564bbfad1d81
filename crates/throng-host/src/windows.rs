//! The functions of `unix.rs` on Windows, where throng neither generates load nor measures hosts.

use std::io;
use std::process::Command;

pub use libc::{SIGINT, SIGTERM};

pub const SIGKILL: i32 = 9;

pub(crate) fn cpu_time() -> (u64, u64) {
    (0, 0)
}

pub(crate) fn page_bytes() -> u64 {
    4096
}

pub(crate) fn ticks_per_second() -> f64 {
    100.0
}

pub fn set_nice(_: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Windows has no signals for groups: [`kill_group`](crate::kill_group) only ends the child.
pub fn signal_group(_: u32, _: i32) {}

/// Only Linux notifies a process that its parent has ended.
pub fn end_with_parent(_: &mut Command) {}
