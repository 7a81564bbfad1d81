//! What `throng control` is told.

use clap::{Args, Subcommand};

use super::values::{count, rate, share};

#[derive(Debug, Args)]
pub(crate) struct ControlArguments {
    /// The directory of the run, or its id; the newest that goes on if left out
    pub(crate) run: Option<String>,
    /// The load that is meant, where the run has several
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) load: Option<String>,
    /// Prints the answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) what: What,
}

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Says which loads go on, and at what level
    Status,
    /// Raises the users or the rate of the running phase, by 10 % if nothing is said
    More {
        #[arg(value_name = "SHARE", value_parser = share, default_value = "10%")]
        share: f64,
    },
    /// Lowers the users or the rate of the running phase, by as much as `more` has raised it
    Less {
        #[arg(value_name = "SHARE", value_parser = share, default_value = "10%")]
        share: f64,
    },
    /// From now on so many users stay in the running phase
    Users {
        #[arg(value_name = "COUNT", value_parser = count)]
        count: u64,
    },
    /// From now on so many users or iterations begin per second in the running phase
    Rate {
        #[arg(value_name = "RATE", value_parser = rate)]
        rate: f64,
    },
    /// No more users come, until `go-on`
    Pause,
    /// Users come again
    GoOn,
    /// Ends the running phase: the next one begins
    EndPhase,
    /// Marks this moment in the record
    Mark {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Ends the run: users finish their step and leave
    Stop,
    /// Ends the run at once
    Abort,
}
