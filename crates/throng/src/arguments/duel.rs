//! The flags of a duel between two targets.

use std::time::Duration;

use clap::Args;
use throng_base::flags::{duration, share};

use super::bench::BenchArguments;

const DUEL_HELP: &str = "Examples:\n\
    \x20 throng duel http://127.0.0.1:8080/ http://127.0.0.1:8081/ -c 20\n\
    \x20 throng duel http://127.0.0.1:8080/ http://127.0.0.1:8081/ --rate 500 --for 10m \\\n\
    \x20     --fail-if 'p99 > +5%' --fail-if 'cpu_per_attempt > +3%'\n\
    \x20 throng duel shop.yaml --target http://127.0.0.1:8080 --target http://127.0.0.1:8081\n\
    \x20 throng duel shop.yaml --a path=/v1 --b path=/v2";

/// Flags of `bench` define the requests.
#[derive(Args, Debug)]
#[command(after_help = DUEL_HELP)]
pub(crate) struct DuelArguments {
    #[command(flatten)]
    pub(crate) bench: BenchArguments,
    /// URL of side B; without it, the first argument is a scenario file
    #[arg(value_name = "B")]
    pub(crate) other: Option<String>,
    /// Target of the scenario: given twice, first for side A, then for side B
    #[arg(
        long = "target",
        value_name = "URL",
        help_heading = "The duel",
        conflicts_with_all = REQUEST
    )]
    pub(crate) targets: Vec<String>,
    /// Set a variable of the scenario for both sides: `users=500`; may be given more than once
    #[arg(
        long = "set",
        value_name = "NAME=VALUE",
        help_heading = "The duel",
        conflicts_with_all = REQUEST
    )]
    pub(crate) set: Vec<String>,
    /// Set a variable of the scenario for side A; may be given more than once
    #[arg(
        long = "a",
        value_name = "NAME=VALUE",
        help_heading = "The duel",
        conflicts_with_all = REQUEST
    )]
    pub(crate) set_a: Vec<String>,
    /// Set a variable of the scenario for side B; may be given more than once
    #[arg(
        long = "b",
        value_name = "NAME=VALUE",
        help_heading = "The duel",
        conflicts_with_all = REQUEST
    )]
    pub(crate) set_b: Vec<String>,
    /// Duration of a slice, in which only one side is loaded: whole seconds, at least 2s
    #[arg(long, value_parser = duration, default_value = "5s", help_heading = "The duel")]
    pub(crate) slice: Duration,
    /// End as soon as the confidence interval is within plus or minus this percentage
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1%", help_heading = "The duel")]
    pub(crate) within: f64,
    /// Exit with code 1 if B differs from A by more than this limit: `p99 > +5%`, `rate < -5%`; may
    /// be given more than once; see docs/compare.md
    #[arg(long = "fail-if", value_name = "CONDITION", help_heading = "The duel")]
    pub(crate) conditions: Vec<String>,
}

/// Flags that a scenario replaces.
const REQUEST: [&str; 7] = [
    "concurrency",
    "rate",
    "think",
    "RequestArguments",
    "CallArguments",
    "ConnectionArguments",
    "RouteArguments",
];
