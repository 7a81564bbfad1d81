//! A broker for MQTT 3.1.1 and 5: subscriptions with wildcards and in groups, QoS 0 to 2, retained
//! messages, wills, sessions that outlive their connection.
//!
//! Messages go through the mailboxes of the subscribers' workers, so that the faults of deliveries
//! apply to each.

mod broker;
mod client;
pub(crate) mod codec;
mod topics;

pub(crate) use broker::{Accepted, Broker, Bundle};
pub(crate) use client::{Client, Message, Target};
pub(crate) use codec::KIND_AT;

#[cfg(test)]
mod tests;
