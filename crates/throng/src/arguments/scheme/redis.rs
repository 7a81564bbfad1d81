//! Flags of `throng bench` for Redis.

use clap::Args;
use throng_scenario::bench::{Bench, BenchRedis};

use super::OfScheme;

#[derive(Args, Debug)]
#[command(next_help_heading = "Redis")]
pub(super) struct RedisArguments {
    /// The command to send, quoted as in redis-cli; `${random.int(1, 100000)}` gives other keys
    /// each time; by default PING
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// Send the command this many times in one write, and wait for all replies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pipeline: Option<u32>,
}

impl OfScheme for RedisArguments {
    fn apply(&self, bench: &mut Bench) {
        bench.redis = BenchRedis {
            command: self.command.clone(),
            pipeline: self.pipeline.unwrap_or_default(),
        };
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [("--command", self.command.is_some()), ("--pipeline", self.pipeline.is_some())].into_iter()
    }
}
