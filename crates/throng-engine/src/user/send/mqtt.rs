//! Packets that an MQTT user sends, and the acknowledgements of its server. Received messages are
//! handled like those of other protocols.

use std::borrow::Cow;
use std::io;
use std::rc::Rc;
use std::task::Context;

use throng_base::Time;
use throng_metrics::Cause;
use throng_program::mqtt::{Client, Order, Property, Publish, Subscribe, Unsubscribe};
use throng_program::{Check, Text};
use throng_protocol::machine::{Fields, Machine};
use throng_protocol::mqtt;
use throng_protocol::mqtt::{
    Connect, Flaw, MqttAnswer, PacketType, Properties, Refusal, Session, Value, ValueKind, Will,
    write_property,
};

use super::{Acknowledgement, Outbound, Sent};
use crate::connector::protocol::Upgrade;
use crate::connector::protocol::mqtt::{self as connector, Greeting};
use crate::failure::{Finding, shown};
use crate::scope::{UserScope, scope};
use crate::trace::{Shown, What};
use crate::user::connection::{Connection, mask_at};

/// The first packet of a user; continues the session of its last connection if the scenario says
/// so.
pub(super) fn greeting(
    client: &Client,
    upgrade: Option<Upgrade>,
    kept: Option<Machine>,
    scope: &mut UserScope<'_>,
) -> Result<Greeting, Finding> {
    let mut hello = Vec::new();
    let texts = Texts::of(client, scope)?;
    let new = || Box::new(mqtt::Client::new(client.version, client.wishes));
    let mut own = match kept {
        Some(Machine::Mqtt(client)) => client,
        _ => new(),
    };
    own.session_mut().connect(&texts.connect(client)?, scope.now, &mut hello);
    Ok(Greeting { hello, upgrade, machine: Some(Machine::Mqtt(own)).into() })
}

impl Outbound<'_> {
    /// Sends a packet of MQTT. What a message contains lies in the shard's buffer behind that,
    /// unless it is the same for all users.
    pub(super) fn order(
        &mut self,
        (order, cut): (&Order, Option<u32>),
        cx: &mut Context<'_>,
    ) -> Result<io::Result<Sent>, Finding> {
        let shard = Rc::clone(&self.user.shard);
        shard.recorder.borrow_mut().interval.traffic.messages.sent += 1;
        let Some(Connection { machine: Machine::Mqtt(client), .. }) =
            self.user.lines.connection_mut(self.line)
        else {
            return Ok(Err(io::ErrorKind::NotConnected.into()));
        };
        let mut out = shard.write_buffer.borrow_mut();
        out.clear();
        let number = write_order(order, client, &mut scope!(self.user, &shard), &mut out)?;
        let cut = cut.map_or(out.len(), |cut| out.len().min(cut as usize));
        let sent = self.send(&out[..cut], cx);
        Ok(sent.map(|()| Sent { bytes: cut as u64, number: u32::from(number), ..Sent::default() }))
    }
}

/// Writes the packet of a step; returns the packet identifier of its acknowledgement, or 0 without
/// one. The payload is in the shard's buffer, unless all users send the same.
fn write_order(
    order: &Order,
    client: &mut mqtt::Client,
    scope: &mut UserScope<'_>,
    out: &mut Vec<u8>,
) -> Result<u16, Finding> {
    let mut packet = Packet { client, now: scope.now, out };
    match order {
        Order::Publish(publish) => packet.publish(publish, scope),
        Order::Subscribe(subscribe) => packet.subscribe(subscribe, scope),
        Order::Unsubscribe(unsubscribe) => packet.unsubscribe(unsubscribe, scope),
    }
}

/// Traces an order in readable form, with the values that are sent.
#[cold]
fn trace(verb: &str, topics: &[&str], payload: &[u8], scope: &UserScope<'_>) {
    let mut text = format!("{verb} {}", topics.join(" ")).into_bytes();
    if !payload.is_empty() {
        text.push(b'\n');
        text.extend_from_slice(payload);
    }
    scope.shard.tell(scope.who(), scope.now, || What::Sent(Shown::of(&text)));
}

/// A packet that is being written.
struct Packet<'p> {
    client: &'p mut mqtt::Client,
    now: Time,
    out: &'p mut Vec<u8>,
}

impl Packet<'_> {
    /// Returns the packet identifier of the acknowledgement, or 0 without one.
    fn publish(&mut self, publish: &Publish, scope: &mut UserScope<'_>) -> Result<u16, Finding> {
        let Publish { topic, payload, qos, retain, properties } = publish;
        let topic = string(topic, scope)?;
        let properties = written(properties, scope)?;
        let shard = scope.shard;
        let mut rendered = shard.content_buffer.borrow_mut();
        rendered.clear();
        let payload = match payload.as_literal() {
            Some(literal) => literal,
            None => {
                scope.render(payload, &mut rendered)?;
                &rendered
            }
        };
        if shard.is_traced() {
            trace("PUBLISH", &[&*topic], payload, scope);
        }
        let properties = checked(&properties, PacketType::Publish)?;
        let (qos, retain) = (*qos, *retain);
        let message =
            mqtt::Publish { topic: &topic, payload, qos, retain, dup: false, id: 0, properties };
        let sent = self.say(|session, now, out| session.publish(&message, now, out))?;
        Ok(match sent {
            mqtt::Sent::Gone => 0,
            mqtt::Sent::Flying(id) | mqtt::Sent::Waiting(id) => id,
        })
    }

    fn subscribe(&mut self, all: &Subscribe, scope: &mut UserScope<'_>) -> Result<u16, Finding> {
        let properties = written(&all.properties, scope)?;
        let properties = checked(&properties, PacketType::Subscribe)?;
        let texts = all.filters.iter().map(|(filter, _)| string(filter, scope));
        let texts = texts.collect::<Result<Vec<_>, Finding>>()?;
        let options = all.filters.iter().map(|(_, options)| *options);
        let topics: Vec<&str> = texts.iter().map(|text| &**text).collect();
        if scope.shard.is_traced() {
            trace("SUBSCRIBE", &topics, &[], scope);
        }
        let filters: Vec<_> = topics.into_iter().zip(options).collect();
        self.say(|session, now, out| session.subscribe(&filters, properties, now, out))
    }

    fn unsubscribe(
        &mut self,
        all: &Unsubscribe,
        scope: &mut UserScope<'_>,
    ) -> Result<u16, Finding> {
        let properties = written(&all.properties, scope)?;
        let properties = checked(&properties, PacketType::Unsubscribe)?;
        let texts = all.filters.iter().map(|filter| string(filter, scope));
        let texts = texts.collect::<Result<Vec<_>, Finding>>()?;
        let filters: Vec<&str> = texts.iter().map(|text| &**text).collect();
        if scope.shard.is_traced() {
            trace("UNSUBSCRIBE", &filters, &[], scope);
        }
        self.say(|session, now, out| session.unsubscribe(&filters, properties, now, out))
    }

    fn say<T>(
        &mut self,
        speak: impl FnOnce(&mut Session, Time, &mut Vec<u8>) -> Result<T, Refusal>,
    ) -> Result<T, Finding> {
        let now = self.now;
        let said = self.client.say(mask_at(now), self.out, |session, out| speak(session, now, out));
        said.map_err(|refusal| {
            let cause = match refusal {
                Refusal::Full(_) => Cause::Timeout,
                _ => Cause::ScenarioFailed,
            };
            (cause, refusal.said())
        })
    }
}

/// The texts of a CONNECT.
struct Texts<'c> {
    client_id: Cow<'c, str>,
    user: Option<Cow<'c, str>>,
    password: Option<Vec<u8>>,
    properties: Vec<u8>,
    will: Option<(Cow<'c, str>, Vec<u8>, Vec<u8>)>,
}

impl<'c> Texts<'c> {
    fn of(client: &'c Client, scope: &mut UserScope<'_>) -> Result<Texts<'c>, Finding> {
        let will = match &client.will {
            None => None,
            Some(will) => {
                let Publish { topic, payload, properties, .. } = &will.message;
                let topic = string(topic, scope)?;
                Some((topic, rendered(payload, scope)?, written(properties, scope)?))
            }
        };
        Ok(Texts {
            client_id: string(&client.client_id, scope)?,
            user: client.user.as_ref().map(|user| string(user, scope)).transpose()?,
            password: client.password.as_ref().map(|one| rendered(one, scope)).transpose()?,
            properties: written(&client.properties, scope)?,
            will,
        })
    }

    fn connect(&self, client: &Client) -> Result<Connect<'_>, Finding> {
        let will = match (&client.will, &self.will) {
            (Some(will), Some((topic, payload, properties))) => Some(Will {
                topic,
                payload,
                qos: will.message.qos,
                retain: will.message.retain,
                properties: Properties::of_will(properties).map_err(flawed)?,
            }),
            _ => None,
        };
        Ok(Connect {
            clean_start: client.clean_start,
            keep_alive_s: client.keep_alive_s,
            client_id: &self.client_id,
            will,
            user: self.user.as_deref(),
            password: self.password.as_deref(),
            properties: checked(&self.properties, PacketType::Connect)?,
        })
    }
}

fn rendered(text: &Text, scope: &mut UserScope<'_>) -> Result<Vec<u8>, Finding> {
    let mut out = Vec::new();
    scope.render(text, &mut out)?;
    Ok(out)
}

fn string<'t>(text: &'t Text, scope: &mut UserScope<'_>) -> Result<Cow<'t, str>, Finding> {
    let no_text = || (Cause::ExpressionFailed, say!("an MQTT string must be valid UTF-8"));
    match text.as_literal() {
        Some(literal) => std::str::from_utf8(literal).map(Cow::Borrowed).map_err(|_| no_text()),
        None => String::from_utf8(rendered(text, scope)?).map(Cow::Owned).map_err(|_| no_text()),
    }
}

/// Encodes properties as they are sent.
fn written(properties: &[Property], scope: &mut UserScope<'_>) -> Result<Vec<u8>, Finding> {
    let mut out = Vec::new();
    for Property { id, name, value } in properties {
        let bytes = rendered(value, scope)?;
        let text = std::str::from_utf8(&bytes);
        let name = name.as_ref().map(|name| string(name, scope)).transpose()?;
        let value = match (id.kind(), text) {
            (ValueKind::Bytes, _) => Value::Bytes(&bytes),
            (ValueKind::Text, Ok(text)) => Value::Text(text),
            (ValueKind::Pair, Ok(text)) => Value::Pair(name.as_deref().unwrap_or_default(), text),
            (_, Ok(text)) if let Ok(number) = text.parse() => Value::Number(number),
            _ => {
                let detail = say!("the property `{}` cannot be `{}`", id.name(), shown(&bytes));
                return Err((Cause::ExpressionFailed, detail));
            }
        };
        write_property(*id, value, &mut out);
    }
    Ok(out)
}

fn checked(properties: &[u8], packet: PacketType) -> Result<Properties<'_>, Finding> {
    match properties.is_empty() {
        true => Ok(Properties::NONE),
        false => Properties::new(properties, packet).map_err(flawed),
    }
}

fn flawed(flaw: Flaw) -> Finding {
    (Cause::ScenarioFailed, flaw.said())
}

/// An acknowledgement as its step looks at it.
pub(super) fn acknowledgement<'a>(
    answer: &MqttAnswer<'a>,
    checks: &[Check],
) -> Acknowledgement<'a> {
    Acknowledgement {
        status: Some(answer.reason.status()),
        content: answer.text.as_bytes(),
        fields: Fields::None,
        refusal: refusal(checks, answer),
    }
}

/// The finding about an acknowledgement, unless the step checks its status.
fn refusal(checks: &[Check], answer: &MqttAnswer<'_>) -> Option<Finding> {
    if checks.iter().any(|check| check.status().is_some()) {
        return None;
    }
    if answer.reason.is_error() {
        return Some(connector::refusal(answer));
    }
    (answer.lower > 0).then(|| {
        let (lower, packet) = (answer.lower, answer.packet.name());
        let detail =
            say!("{packet}: {lower} subscriptions were granted a lower QoS than requested");
        (Cause::MqttRequest, detail)
    })
}
