//! What a session gives out, and what it is lent.

use throng_base::Time;

use super::packet::{Codes, Publish};
use super::property::Properties;
use super::reason::Reason;

/// What a session borrows while it reads; the buffers serve all connections of a thread.
pub struct Lent<'e, 'o> {
    /// Gets a packet that came in pieces.
    pub whole: &'e mut Vec<u8>,
    /// Gets the topic of a message that names only its alias.
    pub topic: &'e mut String,
    /// Gets what the session says by itself.
    pub out: &'o mut Vec<u8>,
    pub now: Time,
    /// How large a packet may be if the server was not told a limit.
    pub packet_bytes_max: u32,
}

/// One packet of the server, and what it means. None of them borrows from the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    Connected {
        session_present: bool,
        /// Messages of the last connection that were sent again.
        resent: usize,
        /// Messages of the last connection that the server knows nothing of.
        lost: usize,
        properties: Properties<'a>,
    },
    Refused {
        reason: &'static Reason,
        properties: Properties<'a>,
    },
    /// A message, with its topic even if the packet had only its alias.
    Message(Publish<'a>),
    /// A message of QoS 2 that was given out before and is not released.
    Duplicate(u16),
    /// Our message of QoS 2 is at the server (PUBREC).
    Received(u16),
    /// A message of QoS 2 may not come again (PUBREL).
    Released(u16),
    /// The same of one that never came, or was released before: it is answered.
    Unreleased(u16),
    /// Our message is acknowledged, or refused.
    Published {
        id: u16,
        reason: &'static Reason,
    },
    Subscribed {
        codes: Codes<'a>,
        /// How many subscriptions have a lower QoS than asked for.
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

/// What became of a message that was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing answers it.
    Gone,
    /// Sent; [`Event::Published`] with this identifier follows.
    Flying(u16),
    /// Not sent yet, because the receive maximum of the server is reached.
    Waiting(u16),
}
