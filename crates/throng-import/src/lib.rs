//! Scenarios from the files of other tools: HAR, OpenAPI, Postman, JMeter, k6, Locust and cURL.
//! Each reader builds the same model, a `Recording`, and one pipeline turns it into a scenario:
//! hosts become targets, requests get names, response values that are sent later are saved, secrets
//! are read from the environment. What is not supported becomes a comment in the scenario and is
//! counted; nothing is dropped silently. This crate needs no engine and sends nothing.
//!
//! [`mod@file`]: reads the file and writes the scenario, for `throng import`.
//! [`mod@replay`]: the visits of an access log as a scenario, with their order and their pauses.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

mod curl;
pub mod file;
mod form;
mod har;
mod jmx;
mod json;
mod k6;
mod locust;
mod model;
mod openapi;
mod postman;
pub mod replay;
mod script;
mod shape;
mod text;
mod write;
mod yaml;

use std::io::Read;

use clap::ValueEnum;
use throng_base::{Diagnostic, Said, Source, Span};

pub use model::LeftOut;

/// The maximum file size of formats that are not read as a stream.
pub const FILE_BYTES_MAX: usize = 64 << 20;

words! {
    /// The format of a file.
    #[derive(ValueEnum)]
    Format {
        /// A browser or proxy recording (HTTP archive)
        Har, "har";
        /// An API description: OpenAPI 3 or Swagger 2, as JSON or YAML
        #[value(name = "openapi")]
        OpenApi, "openapi";
        /// A Postman collection, v2.1 or v2.0
        Postman, "postman";
        /// A JMeter test plan
        Jmx, "jmx";
        /// A k6 script
        K6, "k6";
        /// A locustfile
        Locust, "locust";
        /// cURL commands, as copied from a browser
        Curl, "curl";
    }
}

/// The options of an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The file name of the scenario without its extension: the prefix of files beside it.
    pub stem: String,
    /// Keep images, scripts, style sheets and fonts, as branches of `parallel`.
    pub assets: bool,
    /// Hosts whose requests are kept in addition to those of the first page; `all` keeps every
    /// host.
    pub hosts: Vec<String>,
    /// The service to use instead of the file's main one: a URL without a path.
    pub target: Option<String>,
    /// The URL that the file was loaded from, for descriptions whose server is a path.
    pub origin: Option<String>,
    /// Accept any certificate.
    pub takes_insecure: bool,
    /// A file with the certificates to trust instead of the system's, as the scenario names it.
    pub authorities: Option<std::path::PathBuf>,
    /// The file was just written by `throng record`.
    pub is_recorded: bool,
    /// The folder of files that the file names; those that exist are used.
    pub folder: std::path::PathBuf,
}

/// A scenario, and its files.
#[derive(Debug, Default)]
pub struct Imported {
    pub scenario: String,
    /// Files beside the scenario: name and content.
    pub files: Vec<(String, Vec<u8>)>,
    pub requests: usize,
    pub targets: usize,
    pub saved: usize,
    /// Environment variables for secrets.
    pub secrets: Vec<String>,
    /// Variables that the file names but does not define.
    pub unknown: Vec<String>,
    pub left_out: Vec<LeftOut>,
    /// Warnings of the reader about differences in meaning.
    pub warnings: Vec<Diagnostic>,
}

/// Makes a scenario from `input`; `name` is its name in messages.
///
/// # Errors
/// Why the file cannot be imported, with the place and the fix.
pub fn import(
    format: Format,
    input: impl Read,
    name: &str,
    options: &Options,
) -> Result<Imported, Vec<Diagnostic>> {
    let mut warnings = Vec::new();
    let recording = match format {
        Format::Har => har::read(input, name, options).map_err(|error| vec![*error])?,
        _ => {
            let source = Source::new(name, text_of(input, name)?);
            match format {
                Format::OpenApi => openapi::read(&source.private(), options),
                Format::Postman => postman::read(&source.private(), options),
                Format::Jmx => jmx::read(&source.private(), options),
                Format::K6 => k6::read(&source.private(), options),
                Format::Locust => locust::read(&source.private(), options),
                _ => curl::read(&source, options, &mut warnings),
            }?
        }
    };
    let mut recording = recording;
    let counts = shape::shape(&mut recording, format, options);
    let mut imported = write::write(recording, format, name, &counts, options);
    imported.warnings = warnings;
    Ok(imported)
}

/// A whole file, for formats that are read at once.
fn text_of(input: impl Read, name: &str) -> Result<String, Vec<Diagnostic>> {
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX as u64 + 1;
    if let Err(error) = input.take(limit).read_to_end(&mut bytes) {
        return Err(vec![*Refusal::new(name, Said::of_error(&error)).unreadable()]);
    }
    if bytes.len() > FILE_BYTES_MAX {
        let refusal = Refusal::new(name, say!("it is larger than {} MiB", FILE_BYTES_MAX >> 20));
        return Err(vec![*refusal.unreadable()]);
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| vec![*Refusal::new(name, say!("it is not UTF-8 text")).unreadable()])?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

/// Why a file is not read.
pub(crate) struct Refusal {
    name: String,
    reason: Said,
    span: Option<Span>,
}

impl Refusal {
    pub(crate) fn new(name: &str, reason: Said) -> Refusal {
        Refusal { name: name.into(), reason, span: None }
    }

    /// A file that is not valid JSON, or not of the expected structure.
    pub(crate) fn of_json(name: &str, error: &serde_json::Error) -> Refusal {
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or(&text);
        let (line, column) = (error.line(), error.column());
        let name = format!("{name}:{line}:{column}");
        let reason = match error.classify() {
            serde_json::error::Category::Eof => say!("unexpected end of the JSON text"),
            serde_json::error::Category::Io => Said::of_others(text),
            serde_json::error::Category::Syntax => say!("it is not valid JSON: {text}"),
            serde_json::error::Category::Data => Said::of_others(text),
        };
        Refusal::new(&name, reason)
    }

    pub(crate) fn at(mut self, span: Span) -> Refusal {
        self.span = Some(span);
        self
    }

    fn diagnostic(self, code: &'static str, message: Said, help: Said) -> Box<Diagnostic> {
        let mut error = Diagnostic::error(code, message).help(help);
        if let Some(span) = self.span {
            error = error.at(span);
        }
        Box::new(error)
    }

    pub(crate) fn unreadable(self) -> Box<Diagnostic> {
        let message = say!("cannot read `{}`: {}", &self.name, &self.reason);
        self.diagnostic("file-unreadable", message, say!("check the path and the file"))
    }

    /// The file is not in this format, or has nothing to import.
    pub(crate) fn of_format(self, word: &str) -> Box<Diagnostic> {
        let message = say!("cannot import `{}`: {}", &self.name, &self.reason);
        let help = match word {
            "har" => say!("in the browser's network panel, choose Save all as HAR with content"),
            "record" => say!("start the browser with the printed command and open the service"),
            "openapi" => say!("give an OpenAPI 3 or Swagger 2 description, as JSON or YAML"),
            "postman" => say!("in Postman, export the collection as v2.1"),
            "jmx" => say!("give a test plan that JMeter saved (.jmx)"),
            "k6" => say!("give a k6 script with a default function"),
            "locust" => say!("give a locustfile with a subclass of HttpUser"),
            _ => say!("check the path and the file"),
        };
        self.diagnostic("import-unreadable", message, help)
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
