//! A push service as a real one would be: devices bind and stay, their presence is kept in memory
//! and mirrored to a Redis, and an admin pushes to one, to some or to all of them.

mod admin;
mod codec;
mod counts;
mod presence;
mod pusher;
mod service;
mod session;

pub(crate) use admin::route;
pub(crate) use codec::{KIND_AT, PushFrame};
pub(crate) use presence::{Device, Presence};
pub use service::PushOptions;
pub(crate) use service::Service;
pub(crate) use session::Push;

#[cfg(test)]
mod tests;
