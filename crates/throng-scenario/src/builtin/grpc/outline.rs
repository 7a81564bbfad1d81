//! Calls in the outline, in the words of the scenario.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_program::{Connect, Opened, Statement, Text};
use throng_protocol::grpc::Encoding;
use throng_protocol::protobuf::MethodId;

use crate::phrases::{Words, limits, shown};

pub(super) fn line(words: &Words<'_>, step: &Statement, notes: &mut Vec<String>) -> Option<String> {
    let Statement::Call(one) = step else { return None };
    let method = method(words, one.opened.method);
    words.name(one.step, &method, notes);
    if one.opened.messages.len() != 1 {
        notes.push(format!("messages {}", one.opened.messages.len()));
    }
    opened(&one.opened, notes);
    words.notes(&one.checks, &one.saves, notes);
    limits(Some(one.timeout), one.failing, notes);
    Some(format!("grpc {method}"))
}

/// A call opened by a `connect`.
pub(super) fn connect_line(
    words: &Words<'_>,
    connect: &Connect,
    notes: &mut Vec<String>,
) -> Option<String> {
    let call = connect.options.as_ref()?.call()?;
    opened(call, notes);
    Some(format!("connect {}", method(words, call.method)))
}

/// `package.Service/Method`
fn method(words: &Words<'_>, id: MethodId) -> String {
    let schema = words.program.schema.as_deref();
    let path = schema.map_or("", |schema| &schema.method(id).path);
    path.trim_start_matches('/').to_string()
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
