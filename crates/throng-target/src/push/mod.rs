//! A realistic push service: devices bind and stay, their presence is kept in memory and mirrored
//! to Redis, and an admin pushes to one, some or all of them.

pub(crate) mod codec;
pub(crate) mod counts;
mod pusher;
mod service;

pub(crate) use codec::KIND_AT;
pub(crate) use pusher::{TooMany, post_by_worker};
pub(crate) use service::Service;

#[cfg(test)]
mod tests;
