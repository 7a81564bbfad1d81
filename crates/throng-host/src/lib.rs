//! What a computer is and is doing: facts, limits, the resources of this process.
//!
//! - [`costs`]: what users and connections cost where nothing was measured.
//! - [`doctor`]: what stands between this host and so many users, and what cures it.
//! - [`facts`]: what does not change during a run; written into its record.
//! - [`listening`]: the processes that listen on a port, and their CPU time.
//! - [`usage`]: what this process and the whole host are using.
//! - [`monitor`]: all of that and more, once a second. `threads`, `memory`, `network`,
//!   `quota`: its parts.
//! - [`probe`]: the whole host as series, for `throng monitor` on the host of a target.
//! - `unix`: system calls; `windows`: the same names there.
//! - `kernel`: the texts of `/proc`, parsed; `monitor` and `probe` share it.
//!
//! Everything is read from files below a [`Root`], so that tests can describe other computers.
//! What cannot be read is absent, never guessed.

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

/// Where `/proc`, `/sys` and `/etc` are.
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

    /// The first line of a file without the space around it; absent when it is empty.
    fn line(&self, relative: impl AsRef<Path>) -> Option<String> {
        let text = self.read(relative)?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_string())
    }

    fn number(&self, relative: impl AsRef<Path>) -> Option<u64> {
        self.line(relative)?.parse().ok()
    }
}

#[cfg(test)]
mod tests;
