//! What a user says of MQTT: who it is when it connects, and what it publishes and subscribes to.
//!
//! The `connect` of its link has a [`Client`]. A message with an
//! [`Order`] is one packet: with `send` it is done when it is sent, with `request` when the server
//! has acknowledged it. The status of such an answer is its reason code
//! ([`throng_base::mqtt::status`]); without a check of it, an error is a failure, and so is a
//! subscription with a lower QoS than it asked for.
//!
//! A message that comes is its payload. What it says besides is looked at as headers are
//! ([`crate::Pick::Header`]): `topic`, `qos`, `retain`, `dup`, the properties by their names
//! ([`PropertyId::name`]), user properties by their own. [`crate::Want::Topic`] is a topic filter.

use throng_expression::Expression;
use throng_protocol::mqtt::{PropertyId, Qos, SubscribeOptions, Version, Wishes};

use super::Command;
use crate::text::Text;

/// Who a user is for the server, and what it asks of it.
#[derive(Clone, Debug)]
pub struct Client {
    pub version: Version,
    pub client_id: Text,
    /// Of 3.1.1: clean session.
    pub clean_start: bool,
    /// 0: none. Pings are sent by themselves.
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
    /// Of a pair (user properties).
    pub name: Option<Text>,
    pub value: Text,
}

/// What a client says.
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
