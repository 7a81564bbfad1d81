//! A push service as a real one would be: devices bind and stay, their presence is kept in memory
//! and mirrored to a Redis, and an admin pushes to one, to some or to all of them.

pub(crate) mod codec;
pub(crate) mod counts;
mod pusher;
mod service;

pub(crate) use codec::KIND_AT;
pub(crate) use pusher::{TooMany, post_by_worker};
pub(crate) use service::Service;

#[cfg(test)]
mod tests;
