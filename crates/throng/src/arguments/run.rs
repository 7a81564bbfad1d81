//! The flags of the commands that run a scenario, or look at one: what is run, how much of it,
//! what it may take of this host, and what is told of it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use throng_program::Output;
use throng_run::fleet::bus::FLEET;
use throng_run::{HostLimits, LoadPart, Settings};
use throng_scenario::LoadChanges;

use super::values::{
    agents, bandwidth, count, duration, export, factor, few, label, load_part, memory, nice,
    precision, rate, shards, share_of_processors, size,
};

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Print the summary as JSON on standard output; see docs/json.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Print all metrics instead of the short summary, and the data sent and received in the first
    /// failures of each kind
    #[arg(long)]
    pub(crate) details: bool,
    /// Do not print progress lines during the run
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Show charts, steps, connections and errors in a full-screen view during the run; keys change
    /// the load
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    pub(crate) tui: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
    /// Label for the run, shown in reports; may be given more than once
    #[arg(long = "label", visible_alias = "tag", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Write the verdict as JUnit XML to this file, for CI
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the summary as Markdown to this file, for pull requests
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the HTML report to this file, in addition to `report.html` in the run directory
    #[arg(long, value_name = "FILE", conflicts_with = "no_record")]
    pub(crate) html: Option<PathBuf>,
    /// Send the metrics of each second to another program during the run, or write them to a file:
    /// `prometheus=127.0.0.1:9464`, `otlp=http://…`, `csv=FILE` and more; see docs/export.md
    #[arg(long = "export", value_name = "KIND=WHERE", value_parser = export)]
    pub(crate) exports: Vec<Output>,
    /// Serve a live page of the run, with controls, to anyone with the printed link: `--live` on a
    /// free port of this host, `--live=0.0.0.0:8080` also for other hosts; see docs/live.md
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0"
    )]
    pub(crate) live: Option<String>,
    /// Record the run in this new directory, instead of one under ./throng-runs
    #[arg(short = 'o', long, value_name = "DIR", conflicts_with = "no_record")]
    pub(crate) out: Option<PathBuf>,
    /// Do not record the run
    #[arg(long)]
    pub(crate) no_record: bool,
    /// Execute the commands of the scenario's events and audits on this host; see docs/events.md
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Copy data, bodies and certificates up to this total size to the run directory; for the rest,
    /// record only the path and SHA-256 [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "no_record")]
    pub(crate) copy_max: Option<u64>,
    /// Number of threads; by default one per processor, or more if the users need more file
    /// descriptors
    #[arg(long, visible_alias = "threads", value_parser = shards)]
    pub(crate) shards: Option<usize>,
    /// Generate the load in this many processes, each with its own descriptors and memory; their
    /// results are merged
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) processes: Option<u16>,
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
    pub(crate) fleet: Option<PathBuf>,
    /// Number of agents to use; throng waits until they are online; by default, all agents that are
    /// online
    #[arg(long, value_name = "N", requires = "fleet", value_parser = agents)]
    pub(crate) agents: Option<u64>,
    /// Use only agents with this label; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", requires = "fleet", value_parser = label)]
    pub(crate) agent_label: Vec<(String, String)>,
    /// Let the other agents take over the load of an agent that is lost or backs off
    #[arg(long, requires = "fleet")]
    pub(crate) redistribute: bool,
    /// Generate only this part of the load: `2/5`, or `1-3/8` for parts 1 to 3 of 8; merge the runs
    /// with `throng merge`
    #[arg(long, value_name = "K/N", value_parser = load_part, conflicts_with = "processes")]
    pub(crate) part: Option<LoadPart>,
}

impl OutputArguments {
    pub(crate) fn shown(&self) -> throng_terminal::Output {
        throng_terminal::Output {
            json: self.json,
            details: self.details,
            quiet: self.quiet,
            full_screen: self.tui,
            no_color: self.no_color,
        }
    }

    /// What of it the run is told; the rest is for the terminal.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            build: crate::version::build(),
            give_back: Some(crate::give_back_memory),
            labels: self.labels.clone(),
            out: self.out.clone(),
            no_record: self.no_record,
            copy_max: self.copy_max,
            junit: self.junit.clone(),
            markdown: self.markdown.clone(),
            html: self.html.clone(),
            exports: self.exports.clone(),
            live: self.live.clone(),
            allow_commands: self.allow_commands,
            shards: self.shards,
            part: self.part,
            processes: self.processes,
            fleet: self.fleet.clone(),
            agents: self.agents,
            agent_labels: self.agent_label.clone(),
            redistribute: self.redistribute,
        }
    }
}

/// What the generator may take of its host; see docs/limits.md.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Generator limits")]
pub(crate) struct LimitArguments {
    /// Stop adding users while the CPU usage of the host, or of throng on the processors it may
    /// use, is above this share: `80%`
    #[arg(long, value_name = "SHARE", value_parser = share_of_processors)]
    pub(crate) max_cpu: Option<f64>,
    /// Stop adding users while throng uses more memory than this, including kernel memory for
    /// connections; bodies and messages may use half of it: `8GiB`
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(crate) max_memory: Option<u64>,
    /// Stop adding users while an interface of this host sends or receives more than this:
    /// `200Mbit/s`
    #[arg(long, value_name = "RATE", value_parser = bandwidth)]
    pub(crate) max_bandwidth: Option<f64>,
    /// Stop adding users while an interface of this host sends or receives more packets than this:
    /// `50k/s`
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) max_packets: Option<f64>,
    /// Reduce the load generated here, down to a tenth, if other programs use more than this share
    /// of the host's processors for 3 s, and restore it gradually afterward: `60%`
    #[arg(long, value_name = "SHARE", value_parser = share_of_processors)]
    pub(crate) back_off: Option<f64>,
    /// throng's niceness, as in nice(1): -20 to 19; values below 0 require root
    #[arg(long, value_name = "N", value_parser = nice, allow_hyphen_values = true)]
    pub(crate) nice: Option<i32>,
    /// Start even if this host does not meet the requirements; `throng doctor` shows them
    #[arg(long)]
    pub(crate) force: bool,
}

impl LimitArguments {
    pub(crate) fn limits(&self) -> HostLimits {
        let LimitArguments { max_cpu, max_memory, max_bandwidth, max_packets, .. } = *self;
        let LimitArguments { back_off, nice, force, .. } = *self;
        HostLimits { max_cpu, max_memory, max_bandwidth, max_packets, back_off, nice, force }
    }
}

/// A scenario and what is set in it.
#[derive(Args, Debug)]
pub(crate) struct ScenarioArguments {
    /// The scenario file (YAML)
    pub(crate) file: PathBuf,
    /// Set a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Random seed, to reproduce the random choices of another run; by default that of the
    /// scenario, or a new one
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// What is changed of the load for once; its shape stays.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Load overrides for this run")]
pub(crate) struct LoadArguments {
    /// Peak number of users, instead of the scenario's; all phases are scaled in proportion
    #[arg(short = 'u', long, visible_alias = "vus", value_name = "N", value_parser = count)]
    pub(crate) users: Option<u64>,
    /// Total duration of the load; all phases are scaled in proportion
    #[arg(short = 'd', long = "for", visible_alias = "duration", value_name = "DURATION", value_parser = duration)]
    pub(crate) time: Option<Duration>,
    /// Duration of the longest phase with a constant load, such as `24h`; the exit code is 1 if
    /// response times, failures, memory or descriptors grow
    #[arg(long, value_name = "DURATION", conflicts_with = "time", value_parser = duration)]
    pub(crate) soak: Option<Duration>,
    /// Peak rate of arrivals or iterations per second; all phases are scaled in proportion
    #[arg(long, value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Maximum delay of a start, a heartbeat or the end of a pause, so that throng can process
    /// several in one wake-up; 0 disables this
    #[arg(long, value_name = "TIME", value_parser = precision)]
    pub(crate) precision: Option<Duration>,
}

impl LoadArguments {
    pub(crate) fn changes(self) -> LoadChanges {
        LoadChanges {
            users: self.users,
            time: self.time,
            soak: self.soak,
            rate: self.rate,
            precision: self.precision,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Replay the visits of this access log (common, combined or JSON; also gzip) instead of a
    /// scenario: the same paths in the same order with the same pauses; the argument is then the
    /// target's URL
    #[arg(long, value_name = "LOG", conflicts_with_all = ["set", "LoadArguments"])]
    pub(crate) replay: Option<PathBuf>,
    /// Replay the log faster or slower: `2` halves the duration
    #[arg(
        long,
        value_name = "FACTOR",
        requires = "replay",
        value_parser = factor,
        default_value = "1"
    )]
    pub(crate) speed: f64,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    /// Threshold in addition to those of the scenario, such as `http p99 < 50ms` or `errors <
    /// 0.1%`; may be given more than once
    #[arg(long = "threshold", value_name = "THRESHOLD")]
    pub(crate) thresholds: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
pub(crate) struct RerunArguments {
    /// The run directory; scenario, files, seed, shards and labels stay the same
    pub(crate) run: PathBuf,
    /// Set a secret variable that is masked in the run directory; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Run even if environment variables, or files that were not copied, have changed
    #[arg(long)]
    pub(crate) allow_changed: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TryArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Run only this session; by default, every session runs once
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Number of users per session; they run at the same time
    #[arg(long, default_value = "1", value_parser = few)]
    pub(crate) users: u64,
    /// Wait for the Enter key before each step
    #[arg(long)]
    pub(crate) step: bool,
    /// Show sent and received data in full, and run more than 100 iterations of a loop
    #[arg(long)]
    pub(crate) full: bool,
    /// Show passwords, tokens and cookies instead of masking them
    #[arg(long)]
    pub(crate) show_secrets: bool,
    /// Shorten all pauses, including `think` and `stay`, to at most this duration
    #[arg(long, value_parser = duration, default_value = "1s")]
    pub(crate) pause: Duration,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// Duration
    #[arg(short = 'd', long, value_parser = duration, default_value = "5s")]
    pub(crate) duration: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}
