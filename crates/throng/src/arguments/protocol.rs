//! Flags of `throng protocol`.

use std::path::PathBuf;

use clap::Args;
use throng_base::Diagnostic;

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
