//! Calls of a command line.

use throng_base::Diagnostic;

use crate::quote::text;
use crate::read::template;
use crate::url::Url;
use crate::writer::{Bench, BenchBody, Writer};

/// A command line that asks the server of this URL for its services.
///
/// # Errors
/// The URL is none of gRPC.
pub fn to_reflect(url: &str) -> Result<Bench, Box<Diagnostic>> {
    if Url::parse(url).is_ok_and(|url| url.scheme.is_grpc()) {
        return Ok(Bench { url: url.into(), ..Bench::default() });
    }
    let message = say!("`{url}` is not the URL of a gRPC server");
    let help = say!("write grpc://HOST:PORT, or grpcs://HOST with TLS");
    Err(Box::new(Diagnostic::error("bad-url", message).help(help)))
}

pub(super) fn write_session(writer: &mut Writer<'_>) {
    writer.line("    steps:");
    let method = writer.path.trim_start_matches('/').to_string();
    writer.line(&format!("      - grpc: {}", text(&method)));
    if let BenchBody::Text(body) = &writer.bench.body {
        // JSON is valid YAML, and has line breaks only between its tokens.
        let body = template::escape(&body.replace(['\n', '\r', '\t'], " "));
        let key = if body.trim_start().starts_with('[') { "messages" } else { "message" };
        writer.line(&format!("        {key}: {}", body.trim()));
    }
    writer.pairs("metadata");
    writer.timeout();
    writer.checks();
    writer.think();
}
