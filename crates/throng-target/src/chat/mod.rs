//! The chat room: a private TCP protocol with rooms, fan-out, presence and a kick on double login.
//!
//! `join` adds a connection to a room; the reply is `joined`. A `say` is sent as `said` to all
//! users in the room, including the sender. The reply to `gift`, `say` and `light` is `done`, and
//! that to `ping` is `pong`, with the seq of the request. `leave` and invalid packets close the
//! connection gracefully.

pub(crate) mod codec;
mod hall;

pub(crate) use codec::KIND_AT;
pub(crate) use hall::{Hall, Room};

#[cfg(test)]
pub(crate) use codec::tests as packets;
