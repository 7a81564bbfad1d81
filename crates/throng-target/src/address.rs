//! Where a connection is found by others.

/// Where a connection is, from its acceptance to its end. An address outlives its connection
/// without harm: the generation says that the place is another's now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) worker: u16,
    pub(crate) generation: u16,
    pub(crate) place: u32,
}
