//! The properties and the activity of a host: facts, limits, the resources of this process.
//!
//! - [`costs`]: the cost of users and connections without a measurement.
//! - [`doctor`]: what prevents this host from running this many users, and how to fix it.
//! - [`facts`]: properties that do not change during a run; part of its record.
//! - [`listening`]: the processes that listen on a port, and their CPU time.
//! - [`usage`]: resource usage of this process and of the whole host.
//! - [`monitor`]: all of that and more, once per second. `threads`, `memory`, `network`, `quota`:
//!   its parts.
//! - [`probe`]: the whole host as series, for `throng monitor` on the host of a target.
//! - `unix`: system calls; `windows`: the same names there.
//! - `kernel`: parsers for `/proc`; `monitor` and `probe` share it.
//!
//! Everything is read from files below a [`Root`], so that tests can describe other hosts. A value
//! that cannot be read is absent, never guessed.

#[macro_use]
extern crate throng_base;

pub mod costs;
pub mod doctor;
pub mod facts;
mod kernel;
pub mod listening;
mod memory;
pub mod monitor;
mod network;
pub mod probe;
mod quota;
mod threads;
#[cfg(unix)]
mod unix;
pub mod usage;
#[cfg(not(unix))]
mod windows;

use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use facts::{HostFacts, facts};
pub use listening::Listening;
pub use memory::{MemoryBound, MemoryLeft, address_space_limit, room};
pub use monitor::{Monitor, Reading};
pub use network::{SocketCost, Throughput, source_ports};
pub use system::{SIGINT, SIGKILL, SIGTERM, end_with_parent, set_nice, signal_group};
#[cfg(unix)]
use unix as system;
pub use usage::{HostCpu, HostShare, ProcessUsage, kill_group};
#[cfg(not(unix))]
use windows as system;

/// The parent directory of `/proc`, `/sys` and `/etc`.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Root {
        Root(PathBuf::from("/"))
    }
}

impl Root {
    pub fn new(path: impl Into<PathBuf>) -> Root {
        Root(path.into())
    }

    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.0.join(relative)
    }

    /// The text of a file; bytes that are not UTF-8 are replaced.
    fn read(&self, relative: impl AsRef<Path>) -> Option<String> {
        let bytes = std::fs::read(self.path(relative)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The first line of a file, trimmed; absent if it is empty.
    fn line(&self, relative: impl AsRef<Path>) -> Option<String> {
        let text = self.read(relative)?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_string())
    }

    fn number(&self, relative: impl AsRef<Path>) -> Option<u64> {
        self.line(relative)?.parse().ok()
    }

    /// A line of this many numbers.
    fn numbers<T: FromStr, const N: usize>(&self, relative: impl AsRef<Path>) -> Option<[T; N]> {
        let line = self.line(relative)?;
        let numbers: Vec<T> = line.split_whitespace().map_while(|it| it.parse().ok()).collect();
        numbers.try_into().ok()
    }
}

#[cfg(test)]
mod tests;
