//! A whole host as series: the readings of `throng monitor` on the host of a target.
//!
//! - [`series`]: every series with its unit and meaning, and their text formats.
//! - `system`, `network`, `processes`, `groups`: readings of `/proc` and `/sys`.
//! - [`listeners`]: the queues of listening sockets, which are read often; `diag`: the kernel
//!   interface for sockets.
//!
//! Figures of the whole host have the names of node_exporter, so that either can be used. Names of
//! other figures start with `throng_`.

mod diag;
mod groups;
pub mod listeners;
mod network;
mod processes;
pub mod series;
mod system;

use crate::Root;
use processes::Processes;
pub use processes::Wanted;
pub use series::{Figures, Format};

/// Reads a host. It only reads files with a fixed name, and neither writes nor starts anything.
#[derive(Debug)]
pub struct Probe {
    root: Root,
    throng_version: String,
    processes: Processes,
}

impl Probe {
    pub fn new(root: Root, throng_version: &str, wanted: Vec<Wanted>) -> Probe {
        let processes = Processes::new(root.clone(), wanted);
        Probe { root, throng_version: throng_version.to_string(), processes }
    }

    /// All current values.
    pub fn read(&mut self) -> Figures {
        let mut figures = Figures::default();
        system::read(&self.root, &self.throng_version, &mut figures);
        network::read(&self.root, &mut figures);
        self.processes.read(&mut figures);
        let groups = self.processes.groups();
        groups::read(&self.root, &groups, &mut figures);
        figures
    }
}

#[cfg(test)]
mod tests;
