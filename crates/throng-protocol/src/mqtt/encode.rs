//! Encodes packets.

use super::kind::{PacketType, Qos, Version};
use super::packet::{Ack, Codes, Connect, Farewell, Packet, Publish, SubscribeOptions, Will};
use super::property::{Properties, Value, write_property};
use super::property_id::PropertyId;
use super::wire::{FIELD_BYTES_MAX, varint_bytes, write_bytes, write_measured, write_varint};

/// A topic alias as a property.
const ALIAS_BYTES: usize = 3;

impl Packet<'_> {
    /// Writes the packet in wire format.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        let packet = self.packet_type();
        if let Packet::Publish(publish) = self {
            return publish.write(version, 0, out);
        }
        out.push((packet as u8) << 4 | packet.flags().unwrap_or(0));
        write_measured(out, |out| match self {
            Packet::Connect(connect) => write_connect(connect, version, out),
            Packet::Connack(connack) => {
                out.extend_from_slice(&[u8::from(connack.session_present), connack.code]);
                write_properties(version, connack.properties, out);
            }
            Packet::Puback(ack)
            | Packet::Pubrec(ack)
            | Packet::Pubrel(ack)
            | Packet::Pubcomp(ack) => {
                out.extend_from_slice(&ack.id.to_be_bytes());
                write_farewell(version, ack.code, ack.properties, out);
            }
            Packet::Subscribe(subscribe) => {
                out.extend_from_slice(&subscribe.id.to_be_bytes());
                write_properties(version, subscribe.properties, out);
                out.extend_from_slice(subscribe.filters);
            }
            Packet::Unsubscribe(unsubscribe) => {
                out.extend_from_slice(&unsubscribe.id.to_be_bytes());
                write_properties(version, unsubscribe.properties, out);
                out.extend_from_slice(unsubscribe.filters);
            }
            Packet::Suback(codes) | Packet::Unsuback(codes) => write_codes(codes, version, out),
            Packet::Disconnect(farewell) | Packet::Auth(farewell) => {
                let Farewell { code, properties } = *farewell;
                write_farewell(version, code, properties, out);
            }
            Packet::Publish(_) | Packet::Pingreq | Packet::Pingresp => {}
        });
    }
}

impl Publish<'_> {
    /// Its total length, without a topic alias of the session.
    pub(super) fn bytes(&self, version: Version) -> usize {
        let body_bytes = self.body_bytes(version, 0);
        1 + varint_bytes(body_bytes as u32) + body_bytes
    }

    fn body_bytes(&self, version: Version, alias: u16) -> usize {
        let id = if self.qos == Qos::AtMostOnce { 0 } else { 2 };
        let properties = match version {
            Version::V3 => 0,
            Version::V5 => {
                let bytes = self.property_bytes(alias);
                varint_bytes(bytes as u32) + bytes
            }
        };
        2 + self.topic.len().min(FIELD_BYTES_MAX) + id + properties + self.payload.len()
    }

    fn property_bytes(&self, alias: u16) -> usize {
        self.properties.as_bytes().len() + if alias > 0 { ALIAS_BYTES } else { 0 }
    }

    /// Writes the packet, with this topic alias unless it is 0. The length is computed first, so
    /// that nothing is moved.
    pub(super) fn write(&self, version: Version, alias: u16, out: &mut Vec<u8>) {
        let flags = u8::from(self.dup) << 3 | self.qos.level() << 1 | u8::from(self.retain);
        let body_bytes = self.body_bytes(version, alias);
        out.reserve(body_bytes + 5);
        out.push((PacketType::Publish as u8) << 4 | flags);
        write_varint(body_bytes as u32, out);
        write_bytes(self.topic.as_bytes(), out);
        if self.qos != Qos::AtMostOnce {
            out.extend_from_slice(&self.id.to_be_bytes());
        }
        if version == Version::V5 {
            write_varint(self.property_bytes(alias) as u32, out);
            if alias > 0 {
                write_property(PropertyId::TopicAlias, Value::Number(u32::from(alias)), out);
            }
            out.extend_from_slice(self.properties.as_bytes());
        }
        out.extend_from_slice(self.payload);
    }
}

/// Writes an acknowledgement with only its packet identifier and its code.
pub(super) fn write_ack(
    version: Version,
    packet: PacketType,
    id: u16,
    code: u8,
    out: &mut Vec<u8>,
) {
    let ack = Ack { id, code, properties: Properties::NONE };
    let packet = match packet {
        PacketType::Puback => Packet::Puback(ack),
        PacketType::Pubrec => Packet::Pubrec(ack),
        PacketType::Pubrel => Packet::Pubrel(ack),
        _ => Packet::Pubcomp(ack),
    };
    packet.write(version, out);
}

/// Writes the filters of a SUBSCRIBE, for [`super::packet::Subscribe`].
pub(super) fn write_filters(
    version: Version,
    filters: &[(&str, SubscribeOptions)],
    out: &mut Vec<u8>,
) {
    for (filter, options) in filters {
        write_bytes(filter.as_bytes(), out);
        out.push(options.byte(version));
    }
}

fn write_properties(version: Version, properties: Properties<'_>, out: &mut Vec<u8>) {
    if version == Version::V5 {
        let bytes = properties.as_bytes();
        write_varint(bytes.len() as u32, out);
        out.extend_from_slice(bytes);
    }
}

/// A code and properties, which are omitted if empty (3.4.2.1, 3.14.2.1).
fn write_farewell(version: Version, code: u8, properties: Properties<'_>, out: &mut Vec<u8>) {
    if version == Version::V5 && (code != 0 || !properties.is_empty()) {
        out.push(code);
        if !properties.is_empty() {
            write_properties(version, properties, out);
        }
    }
}

fn write_codes(codes: &Codes<'_>, version: Version, out: &mut Vec<u8>) {
    out.extend_from_slice(&codes.id.to_be_bytes());
    write_properties(version, codes.properties, out);
    out.extend_from_slice(codes.codes);
}

fn write_connect(connect: &Connect<'_>, version: Version, out: &mut Vec<u8>) {
    let will = connect
        .will
        .map_or(0, |Will { qos, retain, .. }| 4 | qos.level() << 3 | u8::from(retain) << 5);
    let flags = u8::from(connect.clean_start) << 1
        | will
        | u8::from(connect.password.is_some()) << 6
        | u8::from(connect.user.is_some()) << 7;
    write_bytes(b"MQTT", out);
    out.extend_from_slice(&[version.level(), flags]);
    out.extend_from_slice(&connect.keep_alive_s.to_be_bytes());
    write_properties(version, connect.properties, out);
    write_bytes(connect.client_id.as_bytes(), out);
    if let Some(will) = &connect.will {
        write_properties(version, will.properties, out);
        write_bytes(will.topic.as_bytes(), out);
        write_bytes(will.payload, out);
    }
    if let Some(user) = connect.user {
        write_bytes(user.as_bytes(), out);
    }
    if let Some(password) = connect.password {
        write_bytes(password, out);
    }
}
