//! The flags of `throng bench` that only one protocol has.

use std::path::PathBuf;

use clap::Args;

/// A flag with its value.
pub(crate) type Given = (&'static str, String);

/// The flags of one protocol.
trait OfScheme {
    /// The flags that are present.
    fn given(&self) -> impl Iterator<Item = Given>;
}

fn flag(name: &'static str, value: Option<impl ToString>) -> Option<Given> {
    value.map(|value| (name, value.to_string()))
}

fn switch(name: &'static str, is_given: bool) -> Option<Given> {
    flag(name, is_given.then_some(true))
}

macro_rules! protocols {
    ($($field:ident $arguments:ident,)*) => {
        #[derive(Args, Debug)]
        pub(crate) struct SchemeArguments {
            $(#[command(flatten)]
            $field: $arguments,)*
        }

        impl SchemeArguments {
            /// The flags that are present.
            pub(crate) fn given(&self) -> Vec<Given> {
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
    fn given(&self) -> impl Iterator<Item = Given> {
        let file = |name: &'static str| move |path: &PathBuf| (name, path.display().to_string());
        let proto = self.proto.iter().map(file("--proto"));
        proto.chain(self.proto_path.iter().map(file("--proto-path")))
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
    fn given(&self) -> impl Iterator<Item = Given> {
        let given = [
            flag("--qos", self.qos),
            switch("--retain", self.retain),
            flag("--client-id", self.client_id.as_ref()),
            switch("--mqtt-3", self.old),
        ];
        given.into_iter().flatten()
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
    fn given(&self) -> impl Iterator<Item = Given> {
        let given = [flag("--command", self.command.as_ref()), flag("--pipeline", self.pipeline)];
        given.into_iter().flatten()
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
    fn given(&self) -> impl Iterator<Item = Given> {
        flag("--sql", self.sql.as_ref()).into_iter()
    }
}
