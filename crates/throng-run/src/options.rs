//! The options of a run in addition to its program: where its results go, which machines generate
//! the load, and the limits on their resources. The defaults are those of `throng run`.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use throng_program::Output;
use throng_results::BuildInfo;

/// A part of the load: the first of so many, how many of them, and of how many in all.
#[derive(Clone, Copy, Debug)]
pub struct LoadPart {
    pub first: u64,
    pub width: u64,
    pub of: u64,
}

/// Where results go, and who generates the load.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Of the program that conducts the run; recorded, and compared with that of agents.
    pub build: BuildInfo,
    /// Returns memory that the calling thread has freed to the system.
    pub give_back: Option<fn()>,
    /// Labels in addition to those of the scenario, for a run that is taken over.
    pub labels: Vec<(String, String)>,
    /// The run directory; must be new or empty. By default, a new one below `throng-runs`.
    pub out: Option<PathBuf>,
    pub no_record: bool,
    /// Bytes of data, bodies and certificates that the run directory has copies of.
    pub copy_max: Option<u64>,
    /// Files for the verdict as JUnit XML, the summary as Markdown, and the HTML report.
    pub junit: Option<PathBuf>,
    pub markdown: Option<PathBuf>,
    pub html: Option<PathBuf>,
    /// In addition to those of the scenario.
    pub exports: Vec<Output>,
    /// The address of the live page.
    pub live: Option<String>,
    /// The scenario's events and audits may execute their commands on this host.
    pub allow_commands: bool,
    /// Threads; by default one per processor, or more if the users need more descriptors.
    pub shards: Option<usize>,
    pub part: Option<LoadPart>,
    /// Processes of this host that generate the load. Above 1 only for the program `throng`, which
    /// is started again with the same command line.
    pub processes: Option<u16>,
    /// The directory with the keys of a fleet whose agents generate the load.
    pub fleet: Option<PathBuf>,
    /// How many agents; by default all that are online.
    pub agents: Option<u64>,
    pub agent_labels: Vec<(String, String)>,
    /// Other agents take over the load of one that is lost or backs off.
    pub redistribute: bool,
}

/// What the generator may take of its host; see docs/limits.md.
#[derive(Clone, Debug, Default)]
pub struct HostLimits {
    /// Of the host's processors, 0 to 1.
    pub max_cpu: Option<f64>,
    /// Bytes.
    pub max_memory: Option<u64>,
    /// Bits per second.
    pub max_bandwidth: Option<f64>,
    /// Per second.
    pub max_packets: Option<f64>,
    /// Of the host's processors, 0 to 1: other programs may use so much before the load is reduced.
    pub back_off: Option<f64>,
    /// As in nice(1).
    pub nice: Option<i32>,
    /// Starts even if the host does not meet the requirements.
    pub force: bool,
}

/// How a capacity is searched; see docs/capacity.md. Recorded, so that the search can be repeated,
/// also by the agents of a fleet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchOptions {
    /// Maximum time under load.
    pub budget: Duration,
    /// The first level and the highest: a rate per second, or a number of users.
    pub from: Option<f64>,
    pub max: Option<f64>,
    /// How long the service must sustain the resulting load.
    pub confirm: Duration,
    /// Overload the service at the end, or never; by default only at private addresses.
    pub overload: bool,
    pub no_overload: bool,
    /// `rate`, `users`, or the name of one of several loads.
    pub vary: Option<String>,
    /// The exit code is 1 if the capacity is certainly below this load.
    pub at_least: Option<f64>,
    /// Computes how many such services this load needs.
    pub peak: Option<f64>,
    /// The target may have a public address that no list of allowed targets contains.
    pub yes: bool,
}
