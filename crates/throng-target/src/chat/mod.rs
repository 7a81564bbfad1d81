//! The chat room: a private TCP protocol with rooms, fan-out, presence, and disconnection on double
//! login.
//!
//! `join` puts a connection into a room, and its reply is `joined`; a `say` is sent as `said` to
//! all members of the room, including the sender; the reply to `gift`, `say` and `light` is `done`,
//! and to `ping` it is `pong`, with the seq of the request. `leave` and bad packets close the
//! connection gracefully.

pub(crate) mod codec;
mod hall;

pub(crate) use codec::KIND_AT;
pub(crate) use hall::{Hall, Room};

#[cfg(test)]
pub(crate) use codec::tests as packets;
