//! The flags of `throng bench` that only one protocol has.

use std::path::PathBuf;

use clap::Args;
use throng_scenario::bench::{Bench, BenchMqtt, BenchRedis};

/// The flags of one protocol.
trait OfScheme {
    fn apply(&self, bench: &mut Bench);

    /// Which of them are given.
    fn given(&self) -> impl Iterator<Item = (&'static str, bool)>;
}

macro_rules! protocols {
    ($($field:ident $arguments:ident,)*) => {
        #[derive(Args, Debug)]
        pub(crate) struct SchemeArguments {
            $(#[command(flatten)]
            $field: $arguments,)*
        }

        impl SchemeArguments {
            pub(crate) fn apply(&self, bench: &mut Bench) {
                $(self.$field.apply(bench);)*
            }

            /// Which of them are given.
            pub(crate) fn given(&self) -> Vec<(&'static str, bool)> {
                let mut given = Vec::new();
                $(given.extend(self.$field.given());)*
                given
            }
        }
    };
}

// In the order of the help.
protocols! {
    call CallArguments,
    mqtt MqttArguments,
    redis RedisArguments,
    sql SqlArguments,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "gRPC")]
struct CallArguments {
    /// A `.proto` file or descriptor set of the service; without one, throng uses the target's
    /// server reflection; may be given more than once
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    /// Directory to search for imported `.proto` files; may be given more than once
    #[arg(long, value_name = "DIR", requires = "proto")]
    proto_path: Vec<PathBuf>,
}

impl OfScheme for CallArguments {
    fn apply(&self, bench: &mut Bench) {
        bench.proto.clone_from(&self.proto);
        bench.proto_path.clone_from(&self.proto_path);
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [("--proto", !self.proto.is_empty())].into_iter()
    }
}

#[derive(Args, Debug)]
#[command(next_help_heading = "MQTT")]
struct MqttArguments {
    /// Quality of service for the published messages or the subscription: 0, 1 or 2
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=2))]
    qos: Option<u8>,
    /// Ask the broker to retain the published message for later subscribers
    #[arg(long)]
    retain: bool,
    /// Prefix of the client IDs: `dev` gives dev-1, dev-2, ...; by default, the broker assigns them
    #[arg(long, value_name = "PREFIX")]
    client_id: Option<String>,
    /// Use MQTT 3.1.1 instead of 5
    #[arg(long = "mqtt-3")]
    old: bool,
}

impl OfScheme for MqttArguments {
    fn apply(&self, bench: &mut Bench) {
        bench.mqtt = BenchMqtt {
            qos: self.qos,
            retain: self.retain,
            client_id: self.client_id.clone(),
            is_old: self.old,
        };
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [
            ("--qos", self.qos.is_some()),
            ("--retain", self.retain),
            ("--client-id", self.client_id.is_some()),
            ("--mqtt-3", self.old),
        ]
        .into_iter()
    }
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Redis")]
struct RedisArguments {
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

#[derive(Args, Debug)]
#[command(next_help_heading = "SQL")]
struct SqlArguments {
    /// The statement to execute; several statements are separated by `;` [default: select 1]
    #[arg(long, value_name = "TEXT")]
    sql: Option<String>,
}

impl OfScheme for SqlArguments {
    fn apply(&self, bench: &mut Bench) {
        bench.sql.clone_from(&self.sql);
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [("--sql", self.sql.is_some())].into_iter()
    }
}
