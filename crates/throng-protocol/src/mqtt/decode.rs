//! Decodes packets.

use super::flaw::Flaw;
use super::kind::{PacketType, Qos, Version};
use super::packet::{
    Ack, Codes, Connack, Connect, Farewell, Packet, Publish, Subscribe, SubscribeOptions,
    Unsubscribe, Will,
};
use super::property::Properties;
use super::property_id::WILL;
use super::reason::Reason;
use super::topic::has_wildcard;
use super::wire::Fields;

/// Checks the first byte of a packet before the rest has arrived.
///
/// # Errors
/// A reserved type, or flags that the type does not have.
pub(super) fn check_first(first: u8, version: Version) -> Result<PacketType, Flaw> {
    let packet = PacketType::of(first, version).ok_or(Flaw::UnknownType(first >> 4))?;
    let flags = first & 0x0f;
    match packet.flags() {
        Some(fixed) if fixed != flags => Err(Flaw::Flags(flags)),
        None if flags & 6 == 6 => Err(Flaw::QosThree),
        None if flags & 0x0e == 8 => Err(Flaw::DupAtQosZero),
        _ => Ok(packet),
    }
}

/// Reads a packet: `first` is its first byte, `body` everything after its length.
///
/// # Errors
/// The flaw of the packet.
pub fn decode(version: Version, first: u8, body: &[u8]) -> Result<Packet<'_>, Flaw> {
    let packet = check_first(first, version)?;
    let mut fields = Fields(body);
    let decoder = Decoder { version, packet };
    let read = match packet {
        PacketType::Connect => Packet::Connect(connect(&mut fields)?),
        PacketType::Connack => Packet::Connack(decoder.connack(&mut fields)?),
        // The payload is all that follows.
        PacketType::Publish => return decoder.publish(first, fields).map(Packet::Publish),
        PacketType::Puback => Packet::Puback(decoder.ack(&mut fields)?),
        PacketType::Pubrec => Packet::Pubrec(decoder.ack(&mut fields)?),
        PacketType::Pubrel => Packet::Pubrel(decoder.ack(&mut fields)?),
        PacketType::Pubcomp => Packet::Pubcomp(decoder.ack(&mut fields)?),
        PacketType::Subscribe => return decoder.subscribe(fields).map(Packet::Subscribe),
        PacketType::Suback => return decoder.codes(fields).map(Packet::Suback),
        PacketType::Unsubscribe => return decoder.unsubscribe(fields).map(Packet::Unsubscribe),
        PacketType::Unsuback => return decoder.codes(fields).map(Packet::Unsuback),
        PacketType::Pingreq => Packet::Pingreq,
        PacketType::Pingresp => Packet::Pingresp,
        PacketType::Disconnect => Packet::Disconnect(decoder.farewell(&mut fields)?),
        PacketType::Auth => Packet::Auth(decoder.farewell(&mut fields)?),
    };
    fields.end().map(|()| read)
}

/// Context of a packet: the connection's version, and its type.
struct Decoder {
    version: Version,
    packet: PacketType,
}

impl Decoder {
    fn properties<'a>(&self, fields: &mut Fields<'a>) -> Result<Properties<'a>, Flaw> {
        match self.version {
            Version::V3 => Ok(Properties::NONE),
            Version::V5 => Properties::read(fields, self.packet.bit()),
        }
    }

    fn code(&self, code: u8) -> Result<u8, Flaw> {
        match Reason::of(self.version, self.packet, code) {
            Some(_) => Ok(code),
            None => Err(Flaw::ReasonCode(code)),
        }
    }

    fn connack<'a>(&self, fields: &mut Fields<'a>) -> Result<Connack<'a>, Flaw> {
        let flags = fields.byte()?;
        if flags > 1 {
            return Err(Flaw::Flags(flags));
        }
        let code = self.code(fields.byte()?)?;
        let properties = self.properties(fields)?;
        Ok(Connack { session_present: flags == 1, code, properties })
    }

    fn publish<'a>(&self, first: u8, mut fields: Fields<'a>) -> Result<Publish<'a>, Flaw> {
        let qos = Qos::new(first >> 1 & 3).ok_or(Flaw::QosThree)?;
        let topic = fields.text()?;
        if has_wildcard(topic) {
            return Err(Flaw::WildcardInTopic);
        }
        if topic.is_empty() && self.version == Version::V3 {
            return Err(Flaw::TopicMissing);
        }
        let id = if qos == Qos::AtMostOnce { 0 } else { fields.packet_id()? };
        let properties = self.properties(&mut fields)?;
        let (retain, dup) = (first & 1 != 0, first & 8 != 0);
        Ok(Publish { topic, payload: fields.0, qos, retain, dup, id, properties })
    }

    fn ack<'a>(&self, fields: &mut Fields<'a>) -> Result<Ack<'a>, Flaw> {
        let id = fields.packet_id()?;
        let Farewell { code, properties } = self.farewell(fields)?;
        Ok(Ack { id, code, properties })
    }

    /// A reason code and properties, which are omitted if empty. 3.1.1 has neither.
    fn farewell<'a>(&self, fields: &mut Fields<'a>) -> Result<Farewell<'a>, Flaw> {
        if self.version == Version::V3 || fields.is_empty() {
            return Ok(Farewell::default());
        }
        let code = self.code(fields.byte()?)?;
        let properties = match fields.is_empty() {
            true => Properties::NONE,
            false => self.properties(fields)?,
        };
        Ok(Farewell { code, properties })
    }

    fn codes<'a>(&self, mut fields: Fields<'a>) -> Result<Codes<'a>, Flaw> {
        let id = fields.packet_id()?;
        let properties = self.properties(&mut fields)?;
        if self.version == Version::V3 && self.packet == PacketType::Unsuback {
            fields.end()?;
            return Ok(Codes { id, properties, codes: &[] });
        }
        if fields.is_empty() {
            return Err(Flaw::Empty);
        }
        fields.0.iter().try_for_each(|code| self.code(*code).map(drop))?;
        Ok(Codes { id, properties, codes: fields.0 })
    }

    fn subscribe<'a>(&self, mut fields: Fields<'a>) -> Result<Subscribe<'a>, Flaw> {
        let id = fields.packet_id()?;
        let properties = self.properties(&mut fields)?;
        let filters = fields.0;
        if fields.is_empty() {
            return Err(Flaw::Empty);
        }
        while !fields.is_empty() {
            fields.text()?;
            let byte = fields.byte()?;
            SubscribeOptions::of_byte(byte, self.version).ok_or(Flaw::SubscribeOptions(byte))?;
        }
        Ok(Subscribe { id, properties, filters })
    }

    fn unsubscribe<'a>(&self, mut fields: Fields<'a>) -> Result<Unsubscribe<'a>, Flaw> {
        let id = fields.packet_id()?;
        let properties = self.properties(&mut fields)?;
        let filters = fields.0;
        if fields.is_empty() {
            return Err(Flaw::Empty);
        }
        while !fields.is_empty() {
            fields.text()?;
        }
        Ok(Unsubscribe { id, properties, filters })
    }
}

/// The version that a CONNECT requests.
///
/// # Errors
/// It is not a CONNECT of a known version.
pub fn version_of_connect(body: &[u8]) -> Result<Version, Flaw> {
    let mut fields = Fields(body);
    if fields.bytes()? != b"MQTT" {
        return Err(Flaw::ProtocolName);
    }
    match fields.byte()? {
        4 => Ok(Version::V3),
        5 => Ok(Version::V5),
        level => Err(Flaw::ProtocolLevel(level)),
    }
}

fn connect<'a>(fields: &mut Fields<'a>) -> Result<Connect<'a>, Flaw> {
    let version = version_of_connect(fields.0)?;
    // The name with its length, and the level.
    fields.take(7)?;
    let decoder = Decoder { version, packet: PacketType::Connect };
    let flags = fields.byte()?;
    let has = |bit: u8| flags & bit != 0;
    let will_qos = Qos::new(flags >> 3 & 3).ok_or(Flaw::ConnectFlags(flags))?;
    let idle_will = !has(4) && flags & 0x38 != 0;
    let password_alone = version == Version::V3 && has(0x40) && !has(0x80);
    if has(1) || idle_will || password_alone {
        return Err(Flaw::ConnectFlags(flags));
    }
    let keep_alive_s = fields.two()?;
    let properties = decoder.properties(fields)?;
    let client_id = fields.text()?;
    let will = match has(4) {
        true => Some(will(version, fields, will_qos, has(0x20))?),
        false => None,
    };
    let user = has(0x80).then(|| fields.text()).transpose()?;
    let password = has(0x40).then(|| fields.bytes()).transpose()?;
    let clean_start = has(2);
    Ok(Connect { clean_start, keep_alive_s, client_id, will, user, password, properties })
}

fn will<'a>(
    version: Version,
    fields: &mut Fields<'a>,
    qos: Qos,
    retain: bool,
) -> Result<Will<'a>, Flaw> {
    let properties = match version {
        Version::V3 => Properties::NONE,
        Version::V5 => Properties::read(fields, WILL)?,
    };
    let topic = fields.text()?;
    match topic {
        "" => return Err(Flaw::TopicMissing),
        _ if has_wildcard(topic) => return Err(Flaw::WildcardInTopic),
        _ => {}
    }
    Ok(Will { topic, payload: fields.bytes()?, qos, retain, properties })
}
