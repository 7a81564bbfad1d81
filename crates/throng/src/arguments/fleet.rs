//! The flags of a fleet: of its operator, and of the machines that take part.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::run::{LimitArguments, OutputArguments};
use super::values::{FLEET, count, duration, label, rate};

#[derive(Args, Debug)]
pub(crate) struct FleetArguments {
    /// The directory with the keys of the fleet
    #[arg(long, global = true, value_name = "DIR", default_value = FLEET)]
    pub(crate) fleet: PathBuf,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    #[command(subcommand)]
    pub(crate) what: FleetWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetWhat {
    /// Makes the keys of a new fleet
    Init {
        /// Where the agents dial to: the address of this machine as they see it, with a port; may
        /// be given more than once
        #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:4222")]
        address: Vec<SocketAddr>,
    },
    /// Makes the token with which one machine joins, and prints it
    Token {
        /// What the machine is called in reports: letters, digits, `-` and `_`
        name: String,
        /// How long the token is valid
        #[arg(long, value_name = "DURATION", default_value = "365d", value_parser = duration)]
        valid: Duration,
    },
    /// Runs the bus, until it is interrupted
    Serve {
        /// The program `nats-server`, where it is not on the path
        #[arg(long, value_name = "FILE")]
        nats_server: Option<PathBuf>,
    },
    /// Lists the machines of the fleet: who is there, and what each is doing
    Agents {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Ends the run that goes on: users finish their step and leave
    Stop,
}

#[derive(Args, Debug)]
pub(crate) struct ResumeArguments {
    /// The id of the run; the newest one that goes on if left out
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Wait until the controller of the run is gone, and take over then
    #[arg(long)]
    pub(crate) standby: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
pub(crate) struct CollectArguments {
    /// What agents keep in their `--dir`: that directory or a copy of it, for each agent
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directories: Vec<PathBuf>,
    /// The id of the run, where they keep several
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Args, Debug)]
pub(crate) struct AgentArguments {
    /// A file with the token of this machine, from `throng fleet token NAME`; `-` reads it from the
    /// standard input, and the token itself is taken too
    #[arg(long, value_name = "TOKEN")]
    pub(crate) join: String,
    /// What a run needs here, and what it tells, until the fleet has it
    #[arg(long = "dir", value_name = "DIR", default_value = "throng-agent")]
    pub(crate) directory: PathBuf,
    /// A label of this machine, by which runs choose: `region=east`; may be given more than once
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// So many users at most, whatever a run asks for
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) users_max: Option<u64>,
    /// So many starts a second at most, whatever a run asks for
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate_max: Option<f64>,
    /// Leaves behind the first run
    #[arg(long)]
    pub(crate) once: bool,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}
