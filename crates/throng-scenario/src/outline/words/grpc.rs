//! gRPC calls in the words in which a person writes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_program::{Call, Opened, Text};
use throng_protocol::grpc::Encoding;
use throng_protocol::protobuf::MethodId;

use super::{Words, limits, shown};

impl Words<'_> {
    pub(super) fn call(&self, one: &Call, notes: &mut Vec<String>) -> String {
        let method = self.method(one.opened.method);
        self.name(one.step, &method, notes);
        if one.opened.messages.len() != 1 {
            notes.push(format!("messages {}", one.opened.messages.len()));
        }
        opened(&one.opened, notes);
        self.notes(&one.checks, &one.saves, notes);
        limits(Some(one.timeout), one.failing, notes);
        format!("grpc {method}")
    }

    /// A call that a `connect` opens.
    pub(super) fn open_call(&self, call: &Opened, notes: &mut Vec<String>) -> String {
        opened(call, notes);
        format!("connect {}", self.method(call.method))
    }

    /// `package.Service/Method`
    fn method(&self, id: MethodId) -> String {
        let schema = self.program.schema.as_deref();
        let path = schema.map_or("", |schema| &schema.method(id).path);
        path.trim_start_matches('/').to_string()
    }
}

fn opened(opened: &Opened, notes: &mut Vec<String>) {
    // Bytes are shown as they are sent.
    let value = |name: &str, text: &Text| match text.as_literal() {
        Some(bytes) if name.ends_with("-bin") => STANDARD.encode(bytes),
        _ => shown(text),
    };
    let metadata = opened.metadata.iter();
    notes.extend(metadata.map(|(name, text)| format!("metadata {name}: {}", value(name, text))));
    if opened.encoding != Encoding::Identity {
        notes.push(format!("compress {}", opened.encoding.name()));
    }
}
