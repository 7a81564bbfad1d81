//! What a computer is and is doing: facts, limits, the resources of this process.
//!
//! - [`facts`]: what does not change during a run; written into its record.
//! - [`usage`]: what this process and the whole host are using, read once a second.
//!
//! Everything is read from files below a [`Root`], so that tests can describe other computers.
//! What cannot be read is absent, never guessed.

pub mod facts;
pub mod usage;

use std::path::{Path, PathBuf};

pub use facts::{HostFacts, facts};
pub use usage::{HostCpu, HostShare, ProcessUsage};

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
