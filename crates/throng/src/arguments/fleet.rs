//! The flags of a fleet: of its operator, and of the machines that take part.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use throng_run::fleet::bus::FLEET;

use super::run::{LimitArguments, OutputArguments};
use super::values::{count, duration, label, rate};

#[derive(Args, Debug)]
pub(crate) struct FleetArguments {
    /// Directory with the fleet's keys
    #[arg(long, global = true, value_name = "DIR", default_value = FLEET)]
    pub(crate) fleet: PathBuf,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    #[command(subcommand)]
    pub(crate) what: FleetWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetWhat {
    /// Creates the keys of a new fleet
    Init {
        /// Address and port at which agents reach this machine; may be given more than once
        #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:4222")]
        address: Vec<SocketAddr>,
    },
    /// Creates and prints the token that one machine needs to join the fleet
    Token {
        /// Name of the machine in reports: letters, digits, `-` and `_`
        name: String,
        /// How long the token is valid
        #[arg(long, value_name = "DURATION", default_value = "365d", value_parser = duration)]
        valid: Duration,
    },
    /// Runs the bus until it is interrupted
    Serve {
        /// Path of the program `nats-server`, if it is not in PATH
        #[arg(long, value_name = "FILE")]
        nats_server: Option<PathBuf>,
    },
    /// Lists the fleet's machines: which are online, and what each is doing
    Agents {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Ends the run in progress: users finish their step and leave
    Stop,
}

#[derive(Args, Debug)]
pub(crate) struct ResumeArguments {
    /// The run ID; by default the newest run in progress
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Wait until the run's controller is gone, then take over
    #[arg(long)]
    pub(crate) standby: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
pub(crate) struct CollectArguments {
    /// The `--dir` directory of each agent, or a copy of it
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directories: Vec<PathBuf>,
    /// The run ID, if the agents have kept several runs
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
pub(crate) struct AgentArguments {
    /// File with the token of this machine, from `throng fleet token NAME`; `-` reads it from
    /// standard input; the token itself is also accepted
    #[arg(long, value_name = "TOKEN")]
    pub(crate) join: String,
    /// Directory for run inputs and unsent results
    #[arg(long = "dir", value_name = "DIR", default_value = "throng-agent")]
    pub(crate) directory: PathBuf,
    /// Label of this machine, by which runs can select it: `region=east`; may be given more than
    /// once
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Maximum number of users on this agent
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) users_max: Option<u64>,
    /// Maximum number of starts per second on this agent
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate_max: Option<f64>,
    /// Leave after the first run
    #[arg(long)]
    pub(crate) once: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}
