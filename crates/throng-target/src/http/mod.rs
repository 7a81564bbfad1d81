//! HTTP/1.1 as a server reads and writes it (RFC 9110 and 9112): heads, bodies, routes.

mod body;
mod head;
mod routes;
mod shop;

pub(crate) use body::Body;
pub(crate) use head::{Fields, Head, find_end, parse};
pub(crate) use routes::{Plan, Reply, default_answer, plan, refuse, render, switching_protocols};

/// The longest head of a request.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The longest body that is kept to be echoed or broadcast.
pub(crate) const KEPT_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The longest body that is read and forgotten.
pub(crate) const DRAINED_BODY_BYTES_MAX: u64 = 1 << 30;

/// Why a request is refused: the status and what is wrong with it.
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
