//! Events of a session, and the buffers that it borrows.

use throng_base::Time;

use super::packet::{Codes, Publish};
use super::property::Properties;
use super::reason::Reason;

/// Buffers that a session borrows while it reads; they serve all connections of a thread.
pub struct Lent<'e, 'o> {
    /// Receives a packet that arrived in pieces.
    pub whole: &'e mut Vec<u8>,
    /// Receives the topic of a message that contains only its alias.
    pub topic: &'e mut String,
    /// Receives packets that the session sends by itself.
    pub out: &'o mut Vec<u8>,
    pub now: Time,
    /// Maximum packet size if none was announced to the server.
    pub packet_bytes_max: u32,
}

/// A packet of the server, and its meaning. Events do not borrow from the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    Connected {
        session_present: bool,
        /// Messages of the last connection that were resent.
        resent: usize,
        /// Messages of the last connection that the server does not know.
        lost: usize,
        properties: Properties<'a>,
    },
    Refused {
        reason: &'static Reason,
        properties: Properties<'a>,
    },
    /// A message, with its topic even if the packet contained only its alias.
    Message(Publish<'a>),
    /// A QoS 2 message that was returned before and is not released.
    Duplicate(u16),
    /// The server has our QoS 2 message (PUBREC).
    Received(u16),
    /// A QoS 2 message is released (PUBREL).
    Released(u16),
    /// The same for one that never arrived, or was released before: it is answered.
    Unreleased(u16),
    /// Our message is acknowledged, or refused.
    Published {
        id: u16,
        reason: &'static Reason,
    },
    Subscribed {
        codes: Codes<'a>,
        /// How many subscriptions have a lower QoS than requested.
        lower: usize,
    },
    Unsubscribed(Codes<'a>),
    Pong,
    /// The server ends the connection.
    Disconnected {
        reason: &'static Reason,
        properties: Properties<'a>,
    },
    Auth {
        reason: &'static Reason,
        properties: Properties<'a>,
    },
}

/// The result of publishing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// No reply follows.
    Gone,
    /// Sent; [`Event::Published`] with this identifier follows.
    Flying(u16),
    /// Not sent yet, because the receive maximum of the server is reached.
    Waiting(u16),
}
