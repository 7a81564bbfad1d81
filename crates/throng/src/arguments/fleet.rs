//! The flags of the commands of a fleet's operator.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use throng_base::flags::duration;
use throng_run::FLEET;

use super::run::OutputArguments;

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
