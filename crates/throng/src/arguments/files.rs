//! The arguments of commands that write initial files or describe their content.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::choice::Choice;

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng init                       asks for the kind of service\n\
     \x20 throng init api shop.yaml         an API with a login, and accounts.csv\n\
     \x20 throng init websocket --target ws://127.0.0.1:8089\n\
     \x20 throng init tcp -                 to standard output\n\
     \x20 throng init http shop.yaml --curl copied.txt\n\
     \x20                                   cURL commands copied from a browser")]
pub(crate) struct InitArguments {
    /// Kind of service to test; if omitted, `init` asks for it in a terminal and uses `http`
    /// elsewhere
    #[arg(value_parser = Choice::<InitKind>::new())]
    pub(crate) kind: Option<InitKind>,
    /// Output file; by default named after the kind, such as `http.yaml`; `-` is standard output
    pub(crate) file: Option<PathBuf>,
    /// URL of the service, without a path; a database is named in its path
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// Generate one step per cURL command in this file, as copied from a browser
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub(crate) curl: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

macro_rules! init_kinds {
    ($(#[doc = $doc:literal] $name:ident, $word:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub(crate) enum InitKind {
            $(#[doc = $doc] $name,)*
        }

        impl InitKind {
            pub(crate) fn word(self) -> &'static str {
                match self { $(InitKind::$name => $word,)* }
            }

            pub(crate) fn template(self) -> &'static str {
                match self {
                    $(InitKind::$name => include_str!(concat!("../init/", $word, ".yaml")),)*
                }
            }
        }
    };
}

init_kinds! {
    /// HTTP pages or API calls
    Http, "http";
    /// An API with a login and tokens; the accounts are read from a file
    Api, "api";
    /// Users that stay connected on a WebSocket
    Websocket, "websocket";
    /// Users in the rooms of a Socket.IO service
    Socketio, "socketio";
    /// Queries and mutations of a GraphQL API
    Graphql, "graphql";
    /// Responses that an LLM server streams token by token
    Llm, "llm";
    /// Devices that publish and subscribe on an MQTT broker
    Mqtt, "mqtt";
    /// Statements and transactions on PostgreSQL, MySQL or MariaDB
    Sql, "sql";
    /// Commands and pipelines on a Redis server
    Redis, "redis";
    /// Text or bytes over TCP
    Tcp, "tcp";
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// The code in brackets, such as `unknown-key`; by default lists all codes
    pub(crate) code: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArguments {
    /// Kind of file that the schema describes
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
