//! The options of a run in addition to its program: where results are written, which machines
//! generate the load, and the limits on their resources. They are also flags of the command line,
//! so that each is described once. The defaults are those of `throng run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use throng_base::flags::{
    bandwidth, count, duration, label, memory, nice, positive_share, rate, size,
};
use throng_base::{LoadPart, Said};
use throng_fleet::presence::AGENTS_MAX;
use throng_program::Output;
use throng_results::BuildInfo;

/// Default directory of a fleet's keys.
pub const FLEET: &str = "throng-fleet";

/// Where results are written, and which machines generate the load.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct Settings {
    // The build of the program that conducts the run; recorded, and compared with that of agents.
    #[arg(skip)]
    pub build: BuildInfo,
    // Returns memory that the calling thread has freed to the system.
    #[arg(skip)]
    pub give_back: Option<fn()>,
    /// Label for the run, shown in reports; may be given more than once
    #[arg(long = "label", visible_alias = "tag", value_name = "NAME=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Write the verdict as JUnit XML to this file, for CI
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the summary as Markdown to this file, for pull requests
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the HTML report to this file, in addition to `report.html` in the run directory
    #[arg(long, value_name = "FILE", conflicts_with = "no_record")]
    pub html: Option<PathBuf>,
    /// Send the metrics of each second to another program during the run, or write them to a file:
    /// `prometheus=127.0.0.1:9464`, `otlp=http://…`, `csv=FILE` and more; see docs/export.md
    #[arg(long = "export", value_name = "KIND=WHERE", value_parser = export)]
    pub exports: Vec<Output>,
    /// Serve a live page of the run, with controls, to anyone with the printed link: `--live` on a
    /// free port of this host, `--live=0.0.0.0:8080` also for other hosts; see docs/live.md
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0"
    )]
    pub live: Option<String>,
    /// Record the run in this new directory, instead of one under ./throng-runs
    #[arg(short = 'o', long, value_name = "DIR", conflicts_with = "no_record")]
    pub out: Option<PathBuf>,
    /// Do not record the run
    #[arg(long)]
    pub no_record: bool,
    /// Execute the commands of the scenario's events and audits on this host; see docs/events.md
    #[arg(long)]
    pub allow_commands: bool,
    /// Copy data, bodies and certificates up to this total size to the run directory; for the rest,
    /// record only the path and SHA-256 [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "no_record")]
    pub copy_max: Option<u64>,
    /// Number of threads; by default one per processor, or more if the users need more file
    /// descriptors
    #[arg(long, visible_alias = "threads", value_parser = shards)]
    pub shards: Option<usize>,
    // Above 1 only for the program `throng`, which starts itself with the same command line.
    /// Generate the load in this many processes, each with its own descriptors and memory; their
    /// results are merged
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub processes: Option<u16>,
    /// Let the agents of a fleet generate the load; the directory with its keys is `throng-fleet`
    /// by default; see docs/fleet.md
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = FLEET,
        conflicts_with_all = ["processes", "part"]
    )]
    pub fleet: Option<PathBuf>,
    /// Number of agents to use; throng waits until they are online; by default, all agents that are
    /// online
    #[arg(long, value_name = "N", requires = "fleet", value_parser = agents)]
    pub agents: Option<u64>,
    /// Use only agents with this label; may be given more than once
    #[arg(
        long = "agent-label",
        value_name = "NAME=VALUE",
        requires = "fleet",
        value_parser = label
    )]
    pub agent_labels: Vec<(String, String)>,
    /// Let the other agents take over the load of an agent that is lost or backs off
    #[arg(long, requires = "fleet")]
    pub redistribute: bool,
    /// Generate only this part of the load: `2/5`, or `1-3/8` for parts 1 to 3 of 8; merge the runs
    /// with `throng merge`
    #[arg(long, value_name = "K/N", value_parser = load_part, conflicts_with = "processes")]
    pub part: Option<LoadPart>,
}

/// What the generator may take of its host; see docs/limits.md.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Generator limits")]
pub struct HostLimits {
    // Shares are from 0 to 1, and bandwidth is in bits per second.
    /// Stop adding users while the CPU usage of the host, or of throng on the processors it may
    /// use, is above this share: `80%`
    #[arg(long, value_name = "SHARE", value_parser = positive_share)]
    pub max_cpu: Option<f64>,
    /// Stop adding users while throng uses more memory than this, including kernel memory for
    /// connections; bodies and messages may use half of it: `8GiB`
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub max_memory: Option<u64>,
    /// Stop adding users while an interface of this host sends or receives more than this:
    /// `200Mbit/s`
    #[arg(long, value_name = "RATE", value_parser = bandwidth)]
    pub max_bandwidth: Option<f64>,
    /// Stop adding users while an interface of this host sends or receives more packets than this:
    /// `50k/s`
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub max_packets: Option<f64>,
    /// Reduce the load generated here, down to a tenth, if other programs use more than this share
    /// of the host's processors for 3 s, and restore it gradually afterward: `60%`
    #[arg(long, value_name = "SHARE", value_parser = positive_share)]
    pub back_off: Option<f64>,
    /// throng's niceness, as in nice(1): -20 to 19; values below 0 require root
    #[arg(long, value_name = "N", value_parser = nice, allow_hyphen_values = true)]
    pub nice: Option<i32>,
    /// Start even if this host does not meet the requirements; `throng doctor` shows them
    #[arg(long)]
    pub force: bool,
}

impl HostLimits {
    /// The flags for a child process.
    pub(crate) fn flags(&self) -> Vec<String> {
        let HostLimits { max_cpu, max_memory, max_bandwidth, max_packets, .. } = self;
        let flags = [
            max_cpu.map(|share| format!("--max-cpu={}%", share * 100.0)),
            max_memory.map(|bytes| format!("--max-memory={bytes}B")),
            max_bandwidth.map(|bits| format!("--max-bandwidth={}kbit/s", bits / 1e3)),
            max_packets.map(|rate| format!("--max-packets={rate}/s")),
            self.back_off.map(|share| format!("--back-off={}%", share * 100.0)),
            self.nice.map(|nice| format!("--nice={nice}")),
            self.force.then(|| "--force".to_string()),
        ];
        flags.into_iter().flatten().collect()
    }
}

/// How a capacity is searched; see docs/capacity.md. Recorded, so that the search can be repeated,
/// also by the agents of a fleet.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[command(next_help_heading = "Search for the capacity")]
pub struct SearchOptions {
    /// Maximum time under load; the search then reports what it has found
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "20m")]
    pub budget: Duration,
    /// The first level: a rate, or a number of users with `--vary users`; it should be a light load
    #[arg(long, value_name = "LOAD", value_parser = load)]
    pub from: Option<f64>,
    /// The highest level; the search never goes above it
    #[arg(long, value_name = "LOAD", value_parser = load)]
    pub max: Option<f64>,
    /// How long the service must sustain the resulting load
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub confirm: Duration,
    /// At the end, overload the service on purpose and measure how long it takes to recover; the
    /// default for private addresses
    #[arg(long, overrides_with = "no_overload")]
    pub overload: bool,
    /// Do not overload the service on purpose
    #[arg(long)]
    pub no_overload: bool,
    /// What to vary: `rate`, `users` (for long-lived connections), or the name of one of several
    /// loads
    #[arg(long, value_name = "WHAT")]
    pub vary: Option<String>,
    /// For CI: exit with code 1 if the capacity is certainly below this load
    #[arg(long, value_name = "LOAD", value_parser = load)]
    pub at_least: Option<f64>,
    /// Calculate how many machines like the target are needed for this peak load
    #[arg(long, value_name = "LOAD", value_parser = load)]
    pub peak: Option<f64>,
    /// Search even if the target has a public address and no list of allowed targets contains it
    #[arg(long)]
    pub yes: bool,
}

fn export(text: &str) -> Result<Output, String> {
    text.parse().map_err(|told: Said| told.spoken())
}

fn load_part(text: &str) -> Result<LoadPart, String> {
    let wrong = || say!("write `2/5`, or `1-3/8` for parts 1 to 3 of 8").spoken();
    let read = || {
        let (parts, of) = text.split_once('/')?;
        let (first, last) = parts.split_once('-').unwrap_or((parts, parts));
        let [first, last, of] = [first, last, of].map(|number| number.trim().parse::<u64>().ok());
        let (first, last, of) = (first?, last?, of?);
        let fits = (1..=last).contains(&first) && last <= of && of <= PARTS_MAX;
        fits.then_some(LoadPart { first: first - 1, width: last - first + 1, of })
    };
    read().ok_or_else(wrong)
}

/// More parts than any run has.
const PARTS_MAX: u64 = 1 << 20;

/// Agents of a fleet.
fn agents(text: &str) -> Result<u64, String> {
    match count(text)? {
        agents if agents <= AGENTS_MAX as u64 => Ok(agents),
        _ => Err(tell!("a fleet has at most {AGENTS_MAX} agents")),
    }
}

/// A load of a search: a rate, or a number of users.
fn load(text: &str) -> Result<f64, String> {
    rate(text.strip_suffix(" users").unwrap_or(text))
}

fn shards(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(shards @ 1..=1024) => Ok(shards),
        _ => Err(tell!("it must be a number from 1 to 1024")),
    }
}
