//! MQTT 3.1.1 and 5.0, client side (the OASIS standards of 2014 and 2019).
//!
//! - [`Client`] is a session on a connection: its events, and what it sends. [`Message`] splits a
//!   message that it returns.
//! - [`Session`] is a client: bytes in, one [`Event`] for each packet; orders in, bytes out.
//! - [`Packet`] and [`decode`] are all packets of both ends, borrowed from their bytes.
//! - [`Properties`] and [`Reason`] are the tables of MQTT 5; [`topic`] has names and filters.
//! - [`Violation`] is a violation of the standard by a server, with its section.

mod client;
mod decode;
mod encode;
mod event;
mod flaw;
mod flights;
mod kind;
mod message;
mod packet;
mod property;
mod property_id;
mod reader;
mod reason;
mod refusal;
mod session;
pub mod topic;
mod violation;
mod wire;

#[cfg(test)]
mod tests;

pub use client::{Came, Client, ClientError, MqttAnswer, Reading, Room};
pub use decode::{decode, version_of_connect};
pub use event::{Event, Lent, Sent};
pub use flaw::Flaw;
pub use kind::{PacketType, Qos, Version};
pub use message::Message;
pub use packet::{
    Ack, Codes, Connack, Connect, Farewell, Packet, Publish, Subscribe, SubscribeOptions,
    Unsubscribe, Will,
};
pub use property::{Properties, Value, write_property};
pub use property_id::{PropertyId, ValueKind};
pub use reader::PacketReader;
pub use reason::{Blame, Reason};
pub use refusal::Refusal;
pub use session::{Session, WAITING_MESSAGES_MAX, Wishes};
pub use violation::{Breach, Violation};
