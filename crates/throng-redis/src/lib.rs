//! A small client of Redis: pipelines of commands over one connection, and their replies. It
//! blocks, and every exchange has a deadline.
//!
//! - [`address`]: where a Redis is and how to log in.
//! - [`link`]: one connection. [`throng_protocol::redis`] is what is spoken on it.

#![forbid(unsafe_code)]

#[macro_use]
extern crate throng_base;

pub mod address;
pub mod link;

pub use address::RedisAddress;
pub use link::Link;
pub use throng_protocol::redis::{Reply, write_command, write_head, write_word};
