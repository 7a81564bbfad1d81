//! An MQTT 3.1.1 and 5 broker: subscriptions with wildcards and in groups, QoS 0 to 2, retained
//! messages, wills, sessions that outlive their connection.
//!
//! Messages are sent as letters to the workers of their subscribers, so that delivery faults apply
//! to each delivery.

mod broker;
mod client;
pub(crate) mod codec;
mod topics;

pub(crate) use broker::{Accepted, Broker, Bundle};
pub(crate) use client::{Client, Message, Target};
pub(crate) use codec::KIND_AT;

#[cfg(test)]
mod tests;
