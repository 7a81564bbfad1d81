//! Flags of `throng protocol`, and those of gRPC services.

use std::path::PathBuf;

use clap::Args;
use throng_base::Diagnostic;
use throng_scenario::bench::{Bench, BenchMqtt, BenchRedis};

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
         \x20 throng protocol chat.yaml                           packet layouts as diagrams and \
         tables\n\
         \x20 throng protocol chat.yaml --decode 'c4 a7 00 00'    bytes; output of xxd and tcpdump \
         works too\n\
         \x20 throng protocol chat.yaml --decode load.pcap --port 9000\n\
         \x20 throng protocol chat.yaml --encode 'join: {room: 42, user: 7, token: t-7}' --seq 1\n\
         \x20 throng protocol --reflect grpc://127.0.0.1:50051 -o shop.desc\n\
         \n\
         Exit codes: 0 all bytes match the declaration, 1 some do not, 2 usage or declaration \
         error, 4 no server reflection.")]
pub(crate) struct ProtocolArguments {
    /// Protocol file (YAML), or one that comes with throng: `throng:NAME`
    #[arg(
        required_unless_present_any = ["reflect", "list", "show"],
        conflicts_with_all = ["reflect", "list", "show"]
    )]
    pub(crate) file: Option<PathBuf>,
    /// List the protocols that come with throng
    #[arg(long, conflicts_with_all = ["decode", "encode", "message", "show", "reflect"])]
    pub(crate) list: bool,
    /// Print a protocol file that comes with throng
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["decode", "encode", "message", "reflect"]
    )]
    pub(crate) show: Option<String>,
    /// Decode bytes: hex, a file with hex or bytes, a capture (pcap, pcapng), or `-`
    #[arg(long, value_name = "HEX|FILE", conflicts_with = "encode", allow_hyphen_values = true)]
    pub(crate) decode: Option<String>,
    /// Encode a message, written as in a scenario: `join: {room: 42}`
    #[arg(long, value_name = "MESSAGE")]
    pub(crate) encode: Option<String>,
    #[command(flatten)]
    pub(crate) reflection: ReflectionArguments,
    /// Show only this message
    #[arg(long, value_name = "NAME", conflicts_with = "encode")]
    pub(crate) message: Option<String>,
    /// Use only connections to this server port
    #[arg(long, value_name = "N", requires = "decode")]
    pub(crate) port: Option<u16>,
    /// Value of the field that correlates requests and replies; 0 by default
    #[arg(long, value_name = "N", requires = "encode")]
    pub(crate) seq: Option<u64>,
    /// Write the encoded message as raw bytes
    #[arg(long, requires = "encode", conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Do not shorten fields and values
    #[arg(long)]
    pub(crate) full: bool,
    /// Print only the summary of decoded packets
    #[arg(long, requires = "decode")]
    pub(crate) summary: bool,
    /// Print JSON, with one line per decoded packet
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not use colors; the environment variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

/// A server that tells its services.
#[derive(Args, Debug)]
pub(crate) struct ReflectionArguments {
    /// Query a gRPC server (grpc://HOST:PORT or grpcs://HOST) by server reflection and write a
    /// descriptor set of its services, for `proto` in scenarios
    #[arg(long, value_name = "URL", conflicts_with_all = ["decode", "encode", "message"])]
    pub(crate) reflect: Option<String>,
    /// Write the descriptor set to this file; by default to standard output
    #[arg(short = 'o', long, value_name = "FILE", requires = "reflect")]
    pub(crate) output: Option<PathBuf>,
    /// Request metadata, `name: value`; may be given more than once
    #[arg(
        short = 'H',
        long = "header",
        value_name = "HEADER",
        requires = "reflect",
        allow_hyphen_values = true
    )]
    pub(crate) headers: Vec<String>,
    /// Accept any server certificate
    #[arg(long, requires = "reflect")]
    pub(crate) insecure: bool,
    /// Trust the certificates in this file instead of the system certificates
    #[arg(long, value_name = "FILE", requires = "reflect")]
    pub(crate) cacert: Option<PathBuf>,
}

/// The flags of `throng bench` that only one protocol has.
#[derive(Args, Debug)]
pub(crate) struct SchemeArguments {
    #[command(flatten)]
    call: CallArguments,
    #[command(flatten)]
    mqtt: MqttArguments,
    #[command(flatten)]
    redis: RedisArguments,
    #[command(flatten)]
    sql: SqlArguments,
}

impl SchemeArguments {
    pub(crate) fn apply(&self, bench: &mut Bench) {
        let SchemeArguments { call, mqtt, redis, sql } = self;
        bench.proto.clone_from(&call.proto);
        bench.proto_path.clone_from(&call.proto_path);
        bench.mqtt = BenchMqtt {
            qos: mqtt.qos,
            retain: mqtt.retain,
            client_id: mqtt.client_id.clone(),
            is_old: mqtt.old,
        };
        bench.redis = BenchRedis {
            command: redis.command.clone(),
            pipeline: redis.pipeline.unwrap_or_default(),
        };
        bench.sql.clone_from(&sql.sql);
    }

    /// Which of them are given.
    pub(crate) fn given(&self) -> [(&'static str, bool); 8] {
        let SchemeArguments { call, mqtt, redis, sql } = self;
        [
            ("--proto", !call.proto.is_empty()),
            ("--qos", mqtt.qos.is_some()),
            ("--retain", mqtt.retain),
            ("--client-id", mqtt.client_id.is_some()),
            ("--mqtt-3", mqtt.old),
            ("--command", redis.command.is_some()),
            ("--pipeline", redis.pipeline.is_some()),
            ("--sql", sql.sql.is_some()),
        ]
    }
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

#[derive(Args, Debug)]
#[command(next_help_heading = "SQL")]
struct SqlArguments {
    /// The statement to execute; several statements are separated by `;` [default: select 1]
    #[arg(long, value_name = "TEXT")]
    sql: Option<String>,
}

/// Headers, or metadata of calls, as the command line has them.
pub(crate) fn metadata(given: &[String]) -> Result<Vec<(String, String)>, Box<Diagnostic>> {
    let pair = |header: &String| match header.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_string(), value.trim().to_string()))
        }
        _ => {
            let message = say!("`{header}` is not a header");
            let error = Diagnostic::error("bad-header", message);
            Err(error.help(say!("write -H 'Name: value'")).into())
        }
    };
    given.iter().map(pair).collect()
}
