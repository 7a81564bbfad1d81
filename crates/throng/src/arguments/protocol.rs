//! Flags of `throng protocol`, and those of gRPC services.

use std::path::PathBuf;

use clap::Args;
use throng_base::Diagnostic;

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  throng protocol chat.yaml                           its packets as \
    drawings and tables\n  throng protocol chat.yaml --decode 'c4 a7 00 00'    bytes, also as xxd \
    and tcpdump print them\n  throng protocol chat.yaml --decode load.pcap --port 9000\n  throng \
    protocol chat.yaml --encode 'join: {room: 42, user: 7, token: t-7}' --seq 1\n  \
    throng protocol --reflect grpc://127.0.0.1:50051 -o shop.desc\n\nExit codes: 0 all bytes fit, 1 \
    bytes break the declaration, 2 usage or declaration wrong, 4 no server that reflects."
)]
pub(crate) struct ProtocolArguments {
    /// The protocol file, YAML
    #[arg(required_unless_present = "reflect", conflicts_with = "reflect")]
    pub(crate) file: Option<PathBuf>,
    /// Decode bytes: hex, a file with hex or bytes, a capture (pcap, pcapng), or `-`
    #[arg(long, value_name = "HEX|FILE", conflicts_with = "encode", allow_hyphen_values = true)]
    pub(crate) decode: Option<String>,
    /// Encode a message as it stands in a scenario: `join: {room: 42}`
    #[arg(long, value_name = "MESSAGE")]
    pub(crate) encode: Option<String>,
    #[command(flatten)]
    pub(crate) reflection: ReflectionArguments,
    /// Only this message
    #[arg(long, value_name = "NAME", conflicts_with = "encode")]
    pub(crate) message: Option<String>,
    /// Of a capture only connections with this port; it is the server's
    #[arg(long, value_name = "N", requires = "decode")]
    pub(crate) port: Option<u16>,
    /// The value of the field that correlates request and reply; 0 if left out
    #[arg(long, value_name = "N", requires = "encode")]
    pub(crate) seq: Option<u64>,
    /// Write the encoded bytes as they are
    #[arg(long, requires = "encode", conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Do not shorten fields and values
    #[arg(long)]
    pub(crate) full: bool,
    /// Of what is decoded only the sums
    #[arg(long, requires = "decode")]
    pub(crate) summary: bool,
    /// The same for programs; decoded packets are a line of JSON each
    #[arg(long)]
    pub(crate) json: bool,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub(crate) no_color: bool,
}

/// A server that tells its services.
#[derive(Args, Debug)]
pub(crate) struct ReflectionArguments {
    /// Ask a gRPC server for its services, grpc://HOST:PORT or grpcs://HOST, and write a set of
    /// descriptors, which scenarios name by `proto`
    #[arg(long, value_name = "URL", conflicts_with_all = ["decode", "encode", "message"])]
    pub(crate) reflect: Option<String>,
    /// Where the set is written; else it goes to the output
    #[arg(short = 'o', long, value_name = "FILE", requires = "reflect")]
    pub(crate) output: Option<PathBuf>,
    /// Metadata of the request, `name: value`; may be given more than once
    #[arg(
        short = 'H',
        long = "header",
        value_name = "HEADER",
        requires = "reflect",
        allow_hyphen_values = true
    )]
    pub(crate) headers: Vec<String>,
    /// Accept any certificate of the server
    #[arg(long, requires = "reflect")]
    pub(crate) insecure: bool,
    /// Trust the certificates of this file instead of those of the system
    #[arg(long, value_name = "FILE", requires = "reflect")]
    pub(crate) cacert: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "gRPC")]
pub(crate) struct CallArguments {
    /// A `.proto` file or set of descriptors of the service; the target is asked by server
    /// reflection without one; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) proto: Vec<PathBuf>,
    /// Where files that others import are looked for; may be given more than once
    #[arg(long, value_name = "DIR", requires = "proto")]
    pub(crate) proto_path: Vec<PathBuf>,
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
