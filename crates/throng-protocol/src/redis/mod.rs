//! Redis as a client speaks it: commands go out, one reply to each comes back, in order.
//!
//! This is RESP2, which every server and proxy speaks and which needs no greeting (`HELLO 3`); its
//! messages of publish/subscribe are told from replies because only subscribers get any.
//!
//! - [`Client`] is a connection: commands are asked, replies are counted off, messages are given
//!   out. [`Message`] takes such a message apart.
//! - [`write_head`] and [`write_word`] write a command; [`read_reply`] reads a reply as a tree.
//! - [`Violation`] is what a server sends that is not RESP2, or is larger than allowed.

mod client;
mod json;
mod message;
mod reply;
mod scan;
mod violation;
mod write;

#[cfg(test)]
mod tests;

pub use client::{Answer, Came, Client, Form};
pub use message::Message;
pub use reply::{Reply, read_reply};
pub use violation::{Foreign, Violation};
pub use write::{write_command, write_head, write_word};
