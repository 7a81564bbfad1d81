//! The prepared data of a gRPC call: its header block and its messages, as far as they are the same
//! for all users.

use std::convert::Infallible;
use std::sync::Arc;

use throng_expression::Scope;
use throng_program::{Call, Check, Opened, Pick, Program};
use throng_protocol::grpc::{self, Code, metadata};
use throng_protocol::http2::{write_field, write_request, write_secret};
use throng_protocol::protobuf::{MessageType, Schema};

pub(crate) use throng_protocol::grpc::Response as CallResponse;

use super::PreparedTarget;
use crate::prepared::look::Look;

pub(crate) struct CallPlan {
    pub(crate) head: CallHead,
    /// All messages with their prefixes, if they are the same for all users.
    pub(crate) body: Option<Arc<[u8]>>,
    /// The type of a reply.
    pub(crate) reply: MessageType,
    /// It has exactly one reply.
    pub(crate) is_single: bool,
    /// Replies are needed by checks or saves.
    pub(crate) needs_replies: bool,
    pub(crate) looks_at_headers: bool,
    pub(crate) look: Look,
    /// The checks of each reply before the last, and how to run them: status, metadata and time are
    /// those of the call.
    pub(crate) of_each: (Box<[Check]>, Look),
}

/// The header block of a call.
pub(crate) struct CallHead {
    /// Per target, except for metadata that differ per user.
    pub(crate) blocks: Box<[Box<[u8]>]>,
    /// Those, by their numbers.
    varying: Box<[u16]>,
}

impl CallPlan {
    /// `None` if the program has no schema that could contain the method.
    pub(super) fn new(
        call: &Call,
        program: &Program,
        targets: &[PreparedTarget],
    ) -> Option<CallPlan> {
        let schema = program.schema.as_deref()?;
        let method = schema.method(call.opened.method);
        let is_status = |pick: &Pick| matches!(pick, Pick::Status | Pick::Time | Pick::Header(_));
        let of_each = call.checks.iter().filter(|check| !is_status(&check.pick));
        let of_each: Box<[Check]> = of_each.cloned().collect();
        let checked = call.checks.iter().map(|check| &check.pick);
        let mut picks = checked.chain(call.saves.iter().map(|save| &save.pick));
        let looks_at_headers = picks.clone().any(Pick::needs_headers);
        Some(CallPlan {
            head: CallHead::new(&call.opened, Some(call.timeout), schema, targets),
            body: constant(&call.opened).map(Arc::from),
            reply: method.output,
            is_single: !method.kind.streams_replies(),
            needs_replies: !picks.all(is_status),
            looks_at_headers,
            look: Look::new(&call.checks, &call.saves),
            of_each: (of_each.clone(), Look::new(&of_each, &[])),
        })
    }

    /// Whether a status is one that the scenario expects.
    pub(crate) fn wants(checks: &[Check], code: u16) -> bool {
        let mut wanted = checks.iter().filter_map(Check::status).peekable();
        match wanted.peek() {
            None => code == Code::Ok.status(),
            Some(_) => wanted.any(|set| set.contains(code)),
        }
    }
}

impl CallHead {
    pub(crate) fn new(
        opened: &Opened,
        timeout: Option<std::time::Duration>,
        schema: &Schema,
        targets: &[PreparedTarget],
    ) -> CallHead {
        let path = &schema.method(opened.method).path;
        let block = |target: &PreparedTarget| {
            let mut block = Vec::new();
            let scheme = if target.target.scheme.is_secure() { "https" } else { "http" };
            write_request(&mut block, "POST", scheme, &target.authority, path);
            grpc::request_fields(opened.encoding, timeout, &mut |name, value| {
                write_field(&mut block, name, value);
            });
            let agent = concat!("throng/", env!("CARGO_PKG_VERSION"));
            write_field(&mut block, "user-agent", agent.as_bytes());
            for (name, text) in &opened.metadata {
                if let Some(value) = text.as_literal() {
                    let _ = write_metadata(&mut block, name, value);
                }
            }
            block.into()
        };
        let metadata = (0..).zip(&opened.metadata);
        let varies = |(at, (_, text)): (u16, &(String, throng_program::Text))| {
            text.as_literal().is_none().then_some(at)
        };
        CallHead {
            blocks: targets.iter().map(block).collect(),
            varying: metadata.filter_map(varies).collect(),
        }
    }

    /// Whether it is the same for all users.
    pub(crate) fn is_fixed(&self) -> bool {
        self.varying.is_empty()
    }

    /// Appends the header block of one user.
    ///
    /// # Errors
    /// An expression without a value, or a value that cannot be sent.
    pub(crate) fn write(
        &self,
        opened: &Opened,
        target: u16,
        scope: &mut dyn Scope,
        out: &mut Vec<u8>,
    ) -> Result<(), throng_expression::Fault> {
        out.extend_from_slice(&self.blocks[usize::from(target)]);
        let mut value = Vec::new();
        for at in &self.varying {
            let (name, text) = &opened.metadata[usize::from(*at)];
            value.clear();
            text.render(&mut value, scope)?;
            write_metadata(out, name, &value)
                .map_err(|mistake| throng_expression::Fault(mistake.message))?;
        }
        Ok(())
    }
}

fn write_metadata(
    block: &mut Vec<u8>,
    name: &str,
    value: &[u8],
) -> Result<(), metadata::MetadataMistake> {
    let mut written = Vec::new();
    metadata::write_value(name, value, &mut written)?;
    match name {
        "authorization" | "cookie" => write_secret(block, name, &written),
        _ => write_field(block, name, &written),
    }
    Ok(())
}

/// All messages with their prefixes; `None` if one differs per user.
fn constant(opened: &Opened) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    for message in &opened.messages {
        let constant = message.template.constant()?;
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(constant);
            Ok::<(), Infallible>(())
        };
        let _ = grpc::write_message(opened.encoding, &mut body, write);
    }
    Some(body)
}
