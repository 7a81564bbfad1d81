//! An HTTP/1.1 server (RFC 9110 and 9112): heads, bodies, routes. HTTP/2 uses the same routes.

mod body;
mod chat;
mod digest;
mod events;
mod head;
mod push;
mod routes;
mod shop;
mod tail;

pub(crate) use body::Body;
pub(crate) use digest::Digest;
pub(crate) use events::{After, Events};
pub(crate) use head::{Fields, Head, find_end, parse};
pub(crate) use routes::{
    Content, Plan, Reply, answer, default_answer, pieces, plan, refuse, render, switching_protocols,
};

pub(crate) use tail::{Pieces, Tail};

/// Maximum length of a request head.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of a body that is stored to be echoed or broadcast.
pub(crate) const KEPT_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum length of a body that is read and discarded.
pub(crate) const DRAINED_BODY_BYTES_MAX: u64 = 1 << 30;

/// The connection preface of HTTP/2 (RFC 9113, section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Whether this is the start of HTTP/2, or may become it.
pub(crate) fn begins_http2(input: &[u8]) -> bool {
    let common = input.len().min(PREFACE.len());
    input[..common] == PREFACE[..common]
}

/// Names and values of a query, as written.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Why a request is rejected: the status and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
}

impl Refusal {
    pub(crate) const fn new(status: u16, reason: &'static str) -> Refusal {
        Refusal { status, reason }
    }

    pub(crate) const fn bad(reason: &'static str) -> Refusal {
        Refusal::new(400, reason)
    }
}
