//! A whole host as series of figures: what `throng monitor` reads on the host of a target.
//!
//! - [`series`]: every series with its unit and meaning, and their texts for programs.
//! - `system`, `network`, `processes`, `groups`: readings of `/proc` and `/sys`.
//! - [`listeners`]: the queues of listening sockets, looked at often; `diag`: how the kernel is
//!   asked for sockets.
//!
//! Figures of the whole host have the names that node_exporter gives them, so whoever reads one
//! can read the other. What it does not have begins with `throng_`.

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

/// Reads a host. Only files with a fixed name are read, and nothing is written or started.
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

    /// Everything as it is now.
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
