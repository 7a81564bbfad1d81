//! A message as returned: one piece of bytes, which can be stored and split later. Its fields
//! precede its payload.

use super::kind::Qos;
use super::packet::Publish;
use super::property::{Properties, Value};
use super::property_id::PropertyId;
use super::wire::Fields;
use crate::field::Field;

const RETAIN: u8 = 4;
const DUP: u8 = 8;

/// A message, split into its parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    pub topic: &'a str,
    pub payload: &'a [u8],
    flags: u8,
    properties: Properties<'a>,
}

impl<'a> Message<'a> {
    pub(super) fn write(message: &Publish<'_>, out: &mut Vec<u8>) {
        let Publish { topic, payload, qos, retain, dup, properties, .. } = *message;
        let flag = |is: bool, flag| if is { flag } else { 0 };
        let properties = properties.as_bytes();
        out.reserve(7 + topic.len() + properties.len() + payload.len());
        out.push(qos.level() | flag(retain, RETAIN) | flag(dup, DUP));
        out.extend_from_slice(&(topic.len() as u16).to_be_bytes());
        out.extend_from_slice(topic.as_bytes());
        out.extend_from_slice(&(properties.len() as u32).to_be_bytes());
        out.extend_from_slice(properties);
        out.extend_from_slice(payload);
    }

    /// For a message that was returned; empty for anything else.
    pub fn of(message: &'a [u8]) -> Message<'a> {
        let mut fields = Fields(message);
        let mut read = || {
            let flags = fields.byte()?;
            let topic = fields.text()?;
            let length = fields.four()?;
            let properties = Properties::of_read(fields.take(length as usize)?);
            Ok::<_, super::Flaw>(Message { topic, payload: fields.0, flags, properties })
        };
        read().unwrap_or_default()
    }

    pub fn qos(self) -> Qos {
        Qos::new(self.flags & 3).unwrap_or_default()
    }

    /// Its fields besides the payload: the topic, `qos`, `retain` and `dup`, then its properties,
    /// user properties by their own names.
    pub fn fields(self) -> impl Iterator<Item = (&'a str, Field<'a>)> {
        let flag = |flag| if self.flags & flag == 0 { "false" } else { "true" };
        let own = [
            ("topic", Field::Bytes(self.topic.as_bytes())),
            ("qos", Field::Number(i64::from(self.qos().level()))),
            ("retain", Field::Bytes(flag(RETAIN).as_bytes())),
            ("dup", Field::Bytes(flag(DUP).as_bytes())),
        ];
        own.into_iter().chain(self.properties.iter().filter_map(field_of))
    }

    /// One of them by its name, ignoring case.
    pub fn field(self, name: &str) -> Option<Field<'a>> {
        match name {
            // Most matchers use the topic.
            "topic" => Some(Field::Bytes(self.topic.as_bytes())),
            name => self.fields().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|it| it.1),
        }
    }
}

fn field_of((id, value): (PropertyId, Value<'_>)) -> Option<(&str, Field<'_>)> {
    match value {
        // It has no meaning outside of the session, which has replaced it by the topic.
        _ if id == PropertyId::TopicAlias => None,
        Value::Number(number) => Some((id.name(), Field::Number(i64::from(number)))),
        Value::Text(text) => Some((id.name(), Field::Bytes(text.as_bytes()))),
        Value::Bytes(bytes) => Some((id.name(), Field::Bytes(bytes))),
        Value::Pair(name, value) => Some((name, Field::Bytes(value.as_bytes()))),
    }
}
