//! Redis, client side: commands are sent, and each gets one reply, in order.
//!
//! This is RESP2, which every server and proxy supports and which needs no greeting (`HELLO 3`);
//! its publish/subscribe messages are recognized because only subscribers get any.
//!
//! - [`Client`] is a connection: sends commands, counts their replies, and returns messages.
//!   [`Message`] splits such a message.
//! - [`write_head`] and [`write_word`] write a command; [`read_reply`] reads a reply as a tree.
//! - [`Violation`] is input that is not RESP2, or exceeds a limit.

mod client;
mod json;
mod message;
mod reply;
mod scan;
mod violation;
mod write;

#[cfg(test)]
mod tests;

pub use client::{Came, Client, Form, RedisAnswer};
pub use message::Message;
pub use reply::{Reply, read_reply};
pub use violation::{Foreign, Violation};
pub use write::{write_command, write_head, write_word};
