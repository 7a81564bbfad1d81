//! The arguments of `throng import`.

use clap::Args;
use throng_import::Format;
use throng_import::file::ImportOptions;

use super::choice::Choice;

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
    #[arg(value_parser = Choice::<Format>::new())]
    pub(crate) kind: Format,
    #[command(flatten)]
    pub(crate) options: ImportOptions,
}
