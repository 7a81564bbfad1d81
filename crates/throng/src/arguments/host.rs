//! What `throng plan` and `throng doctor` are told: how much there is to be, and on what.

use std::path::PathBuf;

use clap::Args;

use super::values::{count, part, rate};
use crate::machine::Described;

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  throng plan im-websocket.yaml               by what a user of \
    its last run has cost\n  throng plan im-websocket.yaml --users 2M --machine 8cores,32GiB\n  \
    throng plan --users 1M                      idle users on WebSockets\n  throng plan --rate \
    50k/s                    requests over HTTP\n  throng plan --pv 3M --per-machine 58/s      the \
    peak of a day"
)]
pub(crate) struct PlanArguments {
    /// The scenario; without one, idle users on WebSockets, or users who ask over HTTP
    pub(crate) file: Option<PathBuf>,
    /// Sets a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "file")]
    pub(crate) set: Vec<String>,
    /// Users at the same time, instead of those of the scenario
    #[arg(long, value_parser = count)]
    pub(crate) users: Option<u64>,
    /// Requests per second of all users together
    #[arg(long, value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Page views a day: the rate is that of their peak
    #[arg(long, value_name = "VIEWS", value_parser = count, conflicts_with = "rate")]
    pub(crate) pv: Option<u64>,
    /// The share of the views that comes in the peak; 80% if left out
    #[arg(long, value_parser = part, requires = "pv")]
    pub(crate) share: Option<f64>,
    /// The part of the day that the peak lasts; 20% if left out
    #[arg(long, value_name = "SHARE", value_parser = part, requires = "pv")]
    pub(crate) of_day: Option<f64>,
    /// What one machine of the service carries, measured before; that of the last run if left out
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "pv")]
    pub(crate) per_machine: Option<f64>,
    /// What the machines for throng are like, `8cores,16GiB`; this host if left out
    #[arg(long, visible_alias = "machines", value_name = "MACHINE", value_parser = Described::parse)]
    pub(crate) machine: Option<Described>,
    /// How many agents of a fleet that needs, each on a machine like that of the run, and the
    /// commands that start them
    #[arg(long, conflicts_with = "pv")]
    pub(crate) fleet: bool,
    /// Take the cost of a user from this run, instead of the last one of this scenario
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Say where the bytes of a user go
    #[arg(long)]
    pub(crate) explain: bool,
    /// The plan as JSON; see docs/plan.md
    #[arg(long)]
    pub(crate) json: bool,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  throng doctor shop.yaml             the host that runs this \
    scenario\n  throng doctor --users 1M            the host that runs so many users\n  throng \
    doctor --users 1M --target   the host of the service\n  throng doctor shop.yaml --fix       \
    as root: sets what the kernel lets it set\n\nExit codes: 0 fit, 2 usage or scenario wrong, \
    3 not fit. The rules are explained in docs/doctor.md.")]
pub(crate) struct DoctorArguments {
    /// A scenario: its users, targets and source addresses are what the host has to carry
    pub(crate) file: Option<PathBuf>,
    /// Sets a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "file")]
    pub(crate) set: Vec<String>,
    /// So many users; those of the scenario if left out, or 10,000
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) users: Option<u64>,
    /// Look at the host of the service under test, not at the one that runs throng
    #[arg(long)]
    pub(crate) target: bool,
    /// Set the settings of the kernel that are too low, and look again
    #[arg(long)]
    pub(crate) fix: bool,
    /// The same as JSON; see docs/doctor.md
    #[arg(long)]
    pub(crate) json: bool,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}
