//! The chat room: a private TCP protocol with rooms, fan-out, presence and a kick on double login.
//!
//! `join` puts a connection into a room and is answered by `joined`; what is `say`d there is
//! `said` to everyone in the room, the sender included; `gift`, `say` and `light` are answered by
//! `done`, and `ping` by `pong`, with the seq of the request. `leave` and bad packets end the
//! connection in order.

pub(crate) mod codec;
mod hall;

pub(crate) use codec::KIND_AT;
pub(crate) use hall::{Hall, Room};

#[cfg(test)]
pub(crate) use codec::tests as packets;
