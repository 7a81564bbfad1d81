//! Calls of a command line.

use crate::quote::text;
use crate::read::template;
use crate::writer::{BenchBody, Writer};

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
