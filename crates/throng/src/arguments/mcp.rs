//! The flags of the server for AI assistants.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use throng_base::flags::{count, duration, rate};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  throng mcp                              check, report, why, compare; \
                  nothing is sent\n  throng mcp --allow 127.0.0.1 --max-users 1000 --max-rate \
                  5000/s --max-time 10m"
)]
pub(crate) struct McpArguments {
    /// Target that `try` and `run` may load: a name, an address or a network, as in docs/limits.md;
    /// may be given more than once; without it, both refuse to send anything
    #[arg(long, value_name = "TARGET")]
    pub(crate) allow: Vec<String>,
    /// Maximum number of concurrent users of a run
    #[arg(long, value_name = "N", value_parser = count, default_value = "100")]
    pub(crate) max_users: u64,
    /// Maximum rate at which a run starts users or iterations
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "1000/s")]
    pub(crate) max_rate: f64,
    /// Maximum duration of a run
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    pub(crate) max_time: Duration,
    /// Working directory: relative paths start here, and runs are recorded in its `throng-runs`
    #[arg(long = "dir", value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub(crate) directory: PathBuf,
}
