//! Addresses of connections within a server.

/// The address of a connection from its acceptance to its end. An outdated address is harmless: its
/// generation shows that the slot has been reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) worker: u16,
    pub(crate) generation: u16,
    pub(crate) place: u32,
}
