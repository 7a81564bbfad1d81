//! The chat room: a private TCP protocol with rooms, fan-out, presence, and disconnection on double
//! login.
//!
//! `join` adds a connection to a room; the reply is `joined`. A `say` is sent as `said` to all
//! users in the room, including the sender. The reply to `gift`, `say` and `light` is `done`, and
//! that to `ping` is `pong`, with the seq of the request. `leave` and invalid packets close the
//! connection gracefully.

pub(crate) mod codec;
mod rooms;

pub(crate) use codec::KIND_AT;
pub(crate) use rooms::{Room, Rooms};

#[cfg(test)]
pub(crate) use codec::tests as packets;
