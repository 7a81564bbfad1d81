//! The part of a response after its rendered bytes.

use std::time::Duration;

use super::Events;

/// What follows the rendered bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    None,
    /// This many bytes of filler.
    Filler(u64),
    /// This many bytes of filler in chunked coding.
    Chunked(u64),
    /// Pieces of filler, one after another.
    Pieces(Pieces),
    /// Events, one after another.
    Events(Box<Events>),
}

/// A slow response: the same piece `left` times, each after another `sleep`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    pub(crate) left: u32,
    pub(crate) sleep: Duration,
    pub(crate) piece: Vec<u8>,
    /// In chunked coding, or unframed until the connection closes.
    pub(crate) chunked: bool,
}
