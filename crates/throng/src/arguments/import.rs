//! What `throng import` is told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use throng_import::Format;

use crate::choice::Choice;

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n\
     \x20 throng import har shop.har             what a browser has recorded, into shop.yaml\n\
     \x20 throng import openapi http://127.0.0.1:8080/openapi.json --out api.yaml\n\
     \x20 throng import postman shop.postman_collection.json\n\
     \x20 throng import jmx plan.jmx\n\
     \x20 throng import k6 script.js --out -     to standard output\n\
     \x20 throng import curl 'curl http://127.0.0.1:8080/'")]
pub(crate) struct ImportArguments {
    /// Format of the file
    #[arg(value_parser = Choice::<ImportKind>::new())]
    pub(crate) kind: ImportKind,
    /// File to import; `-` is standard input. For openapi also a URL, for curl also a command
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Scenario file to write; by default named after FILE; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// URL of the service to use instead of the main one in FILE, without a path
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// Keep a recording's images, scripts, styles and fonts, as `parallel` requests
    #[arg(long)]
    pub(crate) assets: bool,
    /// Also keep a recording's requests to this host, or to `all` hosts; may be given more than
    /// once
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Accept any certificate of the service
    #[arg(long, short = 'k')]
    pub(crate) insecure: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportKind {
    /// A browser or proxy recording (HTTP archive)
    Har,
    /// An API description: OpenAPI 3 or Swagger 2, as JSON or YAML
    #[value(name = "openapi")]
    OpenApi,
    /// A Postman collection, v2.1 or v2.0
    Postman,
    /// A JMeter test plan
    Jmx,
    /// A k6 script
    K6,
    /// A locustfile
    Locust,
    /// cURL commands, as copied from a browser
    Curl,
}

impl ImportKind {
    pub(crate) fn format(self) -> Format {
        match self {
            ImportKind::Har => Format::Har,
            ImportKind::OpenApi => Format::OpenApi,
            ImportKind::Postman => Format::Postman,
            ImportKind::Jmx => Format::Jmx,
            ImportKind::K6 => Format::K6,
            ImportKind::Locust => Format::Locust,
            ImportKind::Curl => Format::Curl,
        }
    }
}
