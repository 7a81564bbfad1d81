//! The arguments of `throng control`.

use clap::{Args, Subcommand};
use throng_base::flags::{count, rate, share};

#[derive(Debug, Args)]
pub(crate) struct ControlArguments {
    /// The run directory or the run ID; by default the newest run in progress
    pub(crate) run: Option<String>,
    /// The load to control, if the run has several
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) load: Option<String>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) what: What,
}

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Shows the running loads and their current levels
    Status,
    /// Raises the number of users or the rate of the current phase, by 10 % by default
    More {
        #[arg(value_name = "SHARE", value_parser = share, default_value = "10%")]
        share: f64,
    },
    /// Lowers the number of users or the rate of the current phase by the same amount as `more`
    Less {
        #[arg(value_name = "SHARE", value_parser = share, default_value = "10%")]
        share: f64,
    },
    /// Sets the number of users in the current phase
    Users {
        #[arg(value_name = "COUNT", value_parser = count)]
        count: u64,
    },
    /// Sets how many users or iterations start per second in the current phase
    Rate {
        #[arg(value_name = "RATE", value_parser = rate)]
        rate: f64,
    },
    /// Stops adding users until `go-on`
    Pause,
    /// Resumes adding users
    GoOn,
    /// Ends the current phase and starts the next one
    EndPhase,
    /// Records a mark at the current time
    Mark {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Ends the run: users finish their step and leave
    Stop,
    /// Ends the run immediately
    Abort,
}
