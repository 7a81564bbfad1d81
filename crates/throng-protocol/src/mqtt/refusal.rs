//! Packets that a client may not send, detected before they are sent. The scenario is at fault,
//! unless the connection is not open.

use throng_base::Said;

use super::topic::TopicError;

/// Why a packet is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NotConnected,
    Topic(TopicError),
    /// The server supports no higher QoS than this.
    Qos(u8),
    Retain,
    Wildcard,
    Shared,
    SubscriptionIdentifier,
    /// A shared subscription cannot exclude the client's own messages.
    NoLocalShared,
    NoFilter,
    /// The server accepts no larger packets.
    TooLarge {
        bytes: usize,
        bytes_max: u32,
    },
    /// This many messages wait for room within the receive maximum.
    Full(usize),
}

impl Refusal {
    /// The section of MQTT 5 that forbids it.
    pub fn section(self) -> &'static str {
        match self {
            Refusal::NotConnected => "3.1.4",
            Refusal::Topic(error) => error.section(),
            Refusal::Qos(_) => "3.2.2.3.4",
            Refusal::Retain => "3.2.2.3.5",
            Refusal::TooLarge { .. } => "3.2.2.3.6",
            Refusal::Wildcard => "3.2.2.3.11",
            Refusal::SubscriptionIdentifier => "3.2.2.3.12",
            Refusal::Shared => "3.2.2.3.13",
            Refusal::NoLocalShared => "3.8.3.1",
            Refusal::NoFilter => "3.8.3",
            Refusal::Full(_) => "4.9",
        }
    }

    pub fn said(self) -> Said {
        match self {
            Refusal::NotConnected => say!("the connection is not open"),
            Refusal::Topic(error) => error.said(),
            Refusal::Qos(qos) => say!("the server supports at most QoS {qos}"),
            Refusal::Retain => say!("the server does not support retained messages"),
            Refusal::Wildcard => say!("the server does not support wildcards in topic filters"),
            Refusal::Shared => say!("the server does not support shared subscriptions"),
            Refusal::SubscriptionIdentifier => {
                say!("the server does not support subscription identifiers")
            }
            Refusal::NoLocalShared => say!("a shared subscription cannot have `no_local`"),
            Refusal::NoFilter => say!("a topic filter is missing"),
            Refusal::TooLarge { bytes, bytes_max } => {
                say!("the packet has {bytes} bytes, but the server accepts at most {bytes_max}")
            }
            Refusal::Full(count) => {
                say!(
                    "{count} messages are already waiting: the target acknowledges messages too \
                     slowly"
                )
            }
        }
    }
}
