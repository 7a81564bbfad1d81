//! gRPC statuses by name.

use throng_program::StatusSet;
use throng_protocol::grpc::Code;

use crate::message::answer::StatusNames;
use crate::read::Context;
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::{Kind, Node};
use crate::words::shorten;

pub(super) static STATUS_NAMES: StatusNames = StatusNames { are_in: names_codes, read: read_codes };

/// `NOT_FOUND`, `5`, or a list of them.
fn read_codes(cx: &mut Context<'_>, node: &Node) -> Option<StatusSet> {
    let nodes = match &node.kind {
        Kind::List(items) if items.is_empty() => {
            return cx.bad_value(
                node,
                say!("the list of statuses is empty"),
                say!("write `status: OK`"),
            );
        }
        Kind::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut ranges = Vec::new();
    for node in nodes {
        let text = cx.text(node, say!("a status"))?;
        let Some(code) = Code::named(text.trim()) else {
            let message = say!("`{}` is not a gRPC status", shorten(&text));
            let label = near_label(near_code(&text), say!("a name, or 0 to 16"));
            let help = say!("write `OK`, `NOT_FOUND`, `5`, or a list: `[OK, NOT_FOUND]`");
            return cx.refuse("bad-value", node.place, message, label, help);
        };
        ranges.push((code.status(), code.status()));
    }
    Some(StatusSet { ranges })
}

/// Whether a check contains names of gRPC statuses, which no field has.
fn names_codes(node: &Node) -> bool {
    let is_name = |node: &Node| match &node.kind {
        Kind::Scalar { text, .. } => Code::ALL.iter().any(|code| code.name() == text),
        _ => false,
    };
    match &node.kind {
        Kind::List(items) => items.iter().any(is_name),
        _ => is_name(node),
    }
}

/// The gRPC status that was probably meant: `NotFound`, `not-found`.
fn near_code(text: &str) -> Option<&'static str> {
    let plain = |text: &str| text.replace(['_', '-', ' '], "").to_ascii_uppercase();
    let names = Code::ALL.map(Code::name);
    let same = names.into_iter().find(|name| plain(name) == plain(text));
    same.or_else(|| did_you_mean(&text.to_ascii_uppercase(), names))
}
