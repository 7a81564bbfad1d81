//! The address of a connection for deliveries.

/// The slot of a connection, from its acceptance to its end. An address may safely outlive its
/// connection: the generation shows that the slot was reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) worker: u16,
    pub(crate) generation: u16,
    pub(crate) place: u32,
}
