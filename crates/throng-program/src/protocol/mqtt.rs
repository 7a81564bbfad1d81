//! MQTT clients: their identity, and the messages and subscriptions they send.
//!
//! The `connect` of its link has a [`Client`]. A message with an [`Order`] is one packet: `send` is
//! done when it is sent, `request` when the server has acknowledged it. The status of such a reply
//! is its reason code ([`throng_base::mqtt::status`]); without a check of it, an error is a
//! failure, and so is a subscription with a lower QoS than requested.
//!
//! A received message is its payload. Its other fields are read like headers
//! ([`crate::Pick::Header`]): `topic`, `qos`, `retain`, `dup`, the properties by their names
//! ([`PropertyId::name`]), user properties by their own. [`crate::Want::Topic`] is a topic filter.

use throng_expression::Expression;
use throng_protocol::mqtt::{PropertyId, Qos, SubscribeOptions, Version, Wishes};

use super::Command;
use crate::text::Text;

/// The identity of a user, and the options of its connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub version: Version,
    pub client_id: Text,
    /// Of 3.1.1: clean session.
    pub clean_start: bool,
    /// 0: none. Pings are sent automatically.
    pub keep_alive_s: u16,
    pub user: Option<Text>,
    pub password: Option<Text>,
    /// Published by the server when the client is lost.
    pub will: Option<Will>,
    /// Session expiry, receive maximum, topic alias maximum, user properties and others of CONNECT;
    /// none in 3.1.1.
    pub properties: Vec<Property>,
    pub wishes: Wishes,
}

/// Its delay and expiry are properties.
#[derive(Clone, Debug)]
pub struct Will {
    pub message: Publish,
}

/// A property of MQTT 5. The value of a number is its digits; of a flag, `0` or `1`.
#[derive(Clone, Debug)]
pub struct Property {
    pub id: PropertyId,
    /// For a pair (user properties).
    pub name: Option<Text>,
    pub value: Text,
}

/// A packet that a client sends.
#[derive(Clone, Debug)]
pub enum Order {
    Publish(Publish),
    Subscribe(Subscribe),
    Unsubscribe(Unsubscribe),
}

#[derive(Clone, Debug)]
pub struct Publish {
    pub topic: Text,
    pub payload: Text,
    pub qos: Qos,
    pub retain: bool,
    pub properties: Vec<Property>,
}

#[derive(Clone, Debug)]
pub struct Subscribe {
    /// At least one.
    pub filters: Vec<(Text, SubscribeOptions)>,
    pub properties: Vec<Property>,
}

#[derive(Clone, Debug)]
pub struct Unsubscribe {
    /// At least one.
    pub filters: Vec<Text>,
    pub properties: Vec<Property>,
}

impl Client {
    pub fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        let texts = [Some(&self.client_id), self.user.as_ref(), self.password.as_ref()];
        texts.into_iter().flatten().for_each(|text| text.expressions(visit));
        in_properties(&self.properties, visit);
        self.will.iter().for_each(|will| will.message.expressions(visit));
    }
}

impl Command for Order {
    fn verb(&self) -> &'static str {
        match self {
            Order::Publish(_) => "publish",
            Order::Subscribe(_) => "subscribe",
            Order::Unsubscribe(_) => "unsubscribe",
        }
    }

    fn text(&self) -> Option<&Text> {
        match self {
            Order::Publish(publish) => Some(&publish.payload),
            _ => None,
        }
    }

    fn subscribes(&self) -> bool {
        matches!(self, Order::Subscribe(_))
    }

    fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        match self {
            Order::Publish(publish) => publish.expressions(visit),
            Order::Subscribe(Subscribe { filters, properties }) => {
                filters.iter().for_each(|(filter, _)| filter.expressions(visit));
                in_properties(properties, visit);
            }
            Order::Unsubscribe(Unsubscribe { filters, properties }) => {
                filters.iter().for_each(|filter| filter.expressions(visit));
                in_properties(properties, visit);
            }
        }
    }
}

impl Publish {
    fn expressions(&self, visit: &mut dyn FnMut(&Expression)) {
        self.topic.expressions(visit);
        self.payload.expressions(visit);
        in_properties(&self.properties, visit);
    }
}

fn in_properties(properties: &[Property], visit: &mut dyn FnMut(&Expression)) {
    for Property { name, value, .. } in properties {
        name.iter().for_each(|name| name.expressions(visit));
        value.expressions(visit);
    }
}
