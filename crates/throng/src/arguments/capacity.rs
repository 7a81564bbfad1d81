//! The flags of a search for the capacity of a service.

use std::time::Duration;

use clap::Args;
use throng_run::SearchOptions;

use super::run::RunArguments;
use super::values::{duration, load};

#[derive(Args, Debug)]
pub(crate) struct CapacityArguments {
    #[command(flatten)]
    pub(crate) run: RunArguments,
    #[command(flatten)]
    pub(crate) search: SearchArguments,
}

/// How a capacity is searched; see docs/capacity.md.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Search for the capacity")]
pub(crate) struct SearchArguments {
    /// Maximum time under load; the search then reports what it has found
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "20m")]
    pub(crate) budget: Duration,
    /// The first level: a rate, or a number of users with `--vary users`; it should be a light load
    #[arg(long, value_name = "LOAD", value_parser = load)]
    pub(crate) from: Option<f64>,
    /// The highest level; the search never goes above it
    #[arg(long, value_name = "LOAD", value_parser = load)]
    pub(crate) max: Option<f64>,
    /// How long the service must sustain the resulting load
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) confirm: Duration,
    /// At the end, overload the service on purpose and measure how long it takes to recover; the
    /// default for private addresses
    #[arg(long, overrides_with = "no_overload")]
    pub(crate) overload: bool,
    /// Do not overload the service on purpose
    #[arg(long)]
    pub(crate) no_overload: bool,
    /// What to vary: `rate`, `users` (for long-lived connections), or the name of one of several
    /// loads
    #[arg(long, value_name = "WHAT")]
    pub(crate) vary: Option<String>,
    /// For CI: exit with code 1 if the capacity is certainly below this load
    #[arg(long, value_name = "LOAD", value_parser = load)]
    pub(crate) at_least: Option<f64>,
    /// Calculate how many machines like the target are needed for this peak load
    #[arg(long, value_name = "LOAD", value_parser = load)]
    pub(crate) peak: Option<f64>,
    /// Search even if the target has a public address and no list of allowed targets contains it
    #[arg(long)]
    pub(crate) yes: bool,
}

impl SearchArguments {
    pub(crate) fn options(&self) -> SearchOptions {
        let SearchArguments { budget, from, max, confirm, overload, no_overload, .. } = *self;
        SearchOptions {
            budget,
            from,
            max,
            confirm,
            overload,
            no_overload,
            vary: self.vary.clone(),
            at_least: self.at_least,
            peak: self.peak,
            yes: self.yes,
        }
    }
}
