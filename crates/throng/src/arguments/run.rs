//! The flags of the commands that run or examine a scenario: the scenario, the size of the run,
//! limits on this host, and the output.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use throng_base::flags::duration;
use throng_run::{HostLimits, Settings};
use throng_scenario::LoadChanges;

use super::values::{factor, few};

/// Where results go: terminal and files.
#[derive(Args, Debug)]
pub(crate) struct OutputArguments {
    #[command(flatten)]
    pub(crate) shown: throng_terminal::Output,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

impl OutputArguments {
    pub(crate) fn settings(&self) -> Settings {
        let (build, give_back) = (crate::version::build(), Some(crate::give_back_memory as fn()));
        Settings { build, give_back, ..self.settings.clone() }
    }
}

/// A scenario and its variables.
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

#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Replay the visits of this access log (common, combined or JSON; also gzip) instead of a
    /// scenario: the same paths in the same order with the same pauses; the argument is then the
    /// target's URL
    #[arg(long, value_name = "LOG", conflicts_with_all = ["set", "LoadChanges"])]
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
    pub(crate) load: LoadChanges,
    /// Threshold in addition to those of the scenario, such as `http p99 < 50ms` or `errors <
    /// 0.1%`; may be given more than once
    #[arg(long = "threshold", value_name = "THRESHOLD")]
    pub(crate) thresholds: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: HostLimits,
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
    pub(crate) limits: HostLimits,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) load: LoadChanges,
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
