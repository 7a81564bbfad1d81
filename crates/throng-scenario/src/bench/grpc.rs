//! gRPC calls of a command line.

use std::path::Path;

use super::{Bench, BenchBody, Writer};
use crate::native;
use crate::quote::text;
use crate::read::template;

impl Bench {
    /// Whether requests are gRPC calls.
    pub fn calls(&self) -> bool {
        native::of_scheme(self.scheme()).methods
    }
}

impl Writer<'_> {
    /// What declares the methods that are called.
    pub(super) fn descriptors(&mut self) {
        let bench = self.bench;
        let keys = [("proto", &bench.proto), ("proto_path", &bench.proto_path)];
        for (key, paths) in keys.into_iter().filter(|(_, paths)| !paths.is_empty()) {
            let paths: Vec<String> = paths.iter().map(|path| shown(path)).collect();
            match paths.as_slice() {
                [one] => self.line(&format!("{key}: {one}")),
                many => self.line(&format!("{key}: [{}]", many.join(", "))),
            }
        }
    }

    pub(super) fn call_session(&mut self) {
        self.line("    steps:");
        let method = self.path.trim_start_matches('/').to_string();
        self.line(&format!("      - grpc: {}", text(&method)));
        if let BenchBody::Text(body) = &self.bench.body {
            // JSON is YAML, and has line ends only between its parts.
            let body = template::escape(&body.replace(['\n', '\r', '\t'], " "));
            let key = if body.trim_start().starts_with('[') { "messages" } else { "message" };
            self.line(&format!("        {key}: {}", body.trim()));
        }
        self.pairs("metadata");
        self.timeout();
        self.checks();
        self.think();
    }
}

fn shown(path: &Path) -> String {
    text(&path.to_string_lossy())
}
