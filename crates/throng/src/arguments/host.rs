//! The flags of `throng plan` and `throng doctor`: a load, and machines for it.

use std::path::PathBuf;

use clap::Args;
use throng_base::flags::{count, positive_share, rate};

use throng_plan::machine::Described;

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng plan im-websocket.yaml               use the cost per user in its last run\n\
     \x20 throng plan im-websocket.yaml --users 2M --machine 8cores,32GiB\n\
     \x20 throng plan --users 1M                      idle WebSocket users\n\
     \x20 throng plan --rate 50k/s                    HTTP requests\n\
     \x20 throng plan --pv 3M --per-machine 58/s      daily peak")]
pub(crate) struct PlanArguments {
    /// Scenario; without one, idle WebSocket users, or HTTP users if --rate or --pv is given
    pub(crate) file: Option<PathBuf>,
    /// Set a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "file")]
    pub(crate) set: Vec<String>,
    /// Number of concurrent users; overrides the scenario
    #[arg(long, value_parser = count)]
    pub(crate) users: Option<u64>,
    /// Total requests per second for all users
    #[arg(long, value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Page views per day; the rate is calculated for the daily peak
    #[arg(long, value_name = "VIEWS", value_parser = count, conflicts_with = "rate")]
    pub(crate) pv: Option<u64>,
    /// Share of the daily page views during the peak; 80% by default
    #[arg(long, value_parser = positive_share, requires = "pv")]
    pub(crate) share: Option<f64>,
    /// Length of the peak as a share of the day; 20% by default
    #[arg(long, value_name = "SHARE", value_parser = positive_share, requires = "pv")]
    pub(crate) of_day: Option<f64>,
    /// Measured capacity of one service machine; by default from the last run
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "pv")]
    pub(crate) per_machine: Option<f64>,
    /// Size of each machine that runs throng, `8cores,16GiB`; this host by default
    #[arg(long, visible_alias = "machines", value_name = "MACHINE", value_parser = Described::parse)]
    pub(crate) machine: Option<Described>,
    /// Show how many fleet agents are needed on machines like the one that ran the test, and the
    /// commands to start them
    #[arg(long, conflicts_with = "pv")]
    pub(crate) fleet: bool,
    /// Take the cost per user from this run, instead of the last run of this scenario
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Show a breakdown of the memory per user
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print the plan as JSON; see docs/plan.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng doctor shop.yaml             check this host for this scenario\n\
     \x20 throng doctor --users 1M            check this host for 1 million users\n\
     \x20 throng doctor --users 1M --target   check the host of the service under test\n\
     \x20 throng doctor shop.yaml --fix       as root: change the kernel settings\n\
     \n\
     Exit codes: 0 requirements met, 2 usage or scenario error, 3 requirements not met. The \
     rules are explained in docs/doctor.md.")]
pub(crate) struct DoctorArguments {
    /// Scenario whose users, targets and source addresses the host must support
    pub(crate) file: Option<PathBuf>,
    /// Set a variable of the scenario: `users=500`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "file")]
    pub(crate) set: Vec<String>,
    /// Number of users; by default that of the scenario, or 10,000 without a scenario
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) users: Option<u64>,
    /// Check this host for the service under test instead of for throng
    #[arg(long)]
    pub(crate) target: bool,
    /// Change kernel settings that are too low, then check again
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print the result as JSON; see docs/doctor.md
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}
