//! What the commands are told that write files to begin with, and say what stands in them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::choice::Choice;

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  throng init                       an HTTP service, into \
    http.yaml\n  throng init api shop.yaml         an API with a login, and accounts.csv\n  throng \
    init websocket --target ws://127.0.0.1:8089\n  throng init tcp -                 to standard \
    output\n  throng init http shop.yaml --curl copied.txt\n                                    what \
    a browser has copied")]
pub(crate) struct InitArguments {
    /// What the scenario is for
    #[arg(default_value = "http", value_parser = Choice::<InitKind>::new())]
    pub(crate) kind: InitKind,
    /// Where to write it; `http.yaml` and so on if left out, `-` is standard output
    pub(crate) file: Option<PathBuf>,
    /// The service: a URL without a path
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// Make it of the cURL commands in this file, a step of each, as browsers copy them
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub(crate) curl: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitKind {
    /// Pages or calls over HTTP
    Http,
    /// An API with a login, tokens, accounts from a file
    Api,
    /// Users who stay on a WebSocket
    Websocket,
    /// Text or bytes over TCP
    Tcp,
}

impl InitKind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            InitKind::Http => "http",
            InitKind::Api => "api",
            InitKind::Websocket => "websocket",
            InitKind::Tcp => "tcp",
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The word in brackets: `unknown-key`; all codes if left out
    pub(crate) code: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArguments {
    /// Of which files
    #[arg(value_enum, default_value = "scenario")]
    pub(crate) of: SchemaKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// Scenarios: `NAME.yaml`
    Scenario,
    /// Private protocols: `NAME.protocol.yaml`
    Protocol,
}
