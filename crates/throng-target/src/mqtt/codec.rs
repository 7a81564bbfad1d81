//! The packets of MQTT 3.1.1 and 5 for a server. This codec is independent of throng's own.

/// Maximum length of a packet; longer ones close the connection.
pub(super) const PACKET_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Position of the packet type, which a fault corrupts.
pub(crate) const KIND_AT: usize = 0;

/// The version of MQTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    V3,
    #[default]
    V5,
}

/// A protocol violation and its reason code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) u8);

pub(crate) const MALFORMED: Broken = Broken(0x81);
pub(crate) const PROTOCOL_ERROR: Broken = Broken(0x82);

/// A packet from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    Connect(Box<Connect<'a>>),
    Publish(Publish<'a>),
    Puback(Ack),
    Pubrec(Ack),
    Pubrel(Ack),
    Pubcomp(Ack),
    Subscribe {
        id: u16,
        identifier: Option<u32>,
        filters: Vec<(&'a str, u8)>,
    },
    Unsubscribe {
        id: u16,
        filters: Vec<&'a str>,
    },
    Pingreq,
    /// The code, and the session expiry if it is changed.
    Disconnect(u8, Option<u32>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Connect<'a> {
    pub(crate) version: Version,
    pub(crate) clean_start: bool,
    pub(crate) keep_alive_s: u16,
    pub(crate) client_id: &'a str,
    pub(crate) will: Option<Will<'a>>,
    pub(crate) session_expiry_s: u32,
    pub(crate) receive_max: u16,
    pub(crate) packet_bytes_max: u32,
    /// It requests enhanced authentication.
    pub(crate) authenticates: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Will<'a> {
    pub(crate) message: Publish<'a>,
    pub(crate) delay_s: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Publish<'a> {
    pub(crate) topic: &'a str,
    pub(crate) payload: &'a [u8],
    pub(crate) qos: u8,
    pub(crate) retain: bool,
    pub(crate) dup: bool,
    pub(crate) id: u16,
    pub(crate) alias: Option<u16>,
    pub(crate) expiry_s: Option<u32>,
    /// The properties of the packet, which are forwarded.
    pub(crate) properties: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    pub(crate) id: u16,
    pub(crate) code: u8,
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(MALFORMED)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<u32, Broken> {
        Ok(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn two(&mut self) -> Result<u16, Broken> {
        self.number(2).map(|number| number as u16)
    }

    fn id(&mut self) -> Result<u16, Broken> {
        self.two().and_then(|id| if id == 0 { Err(PROTOCOL_ERROR) } else { Ok(id) })
    }

    fn bytes(&mut self) -> Result<&'a [u8], Broken> {
        let length = self.two()?;
        self.take(usize::from(length))
    }

    fn text(&mut self) -> Result<&'a str, Broken> {
        std::str::from_utf8(self.bytes()?).ok().filter(|text| !text.contains('\0')).ok_or(MALFORMED)
    }

    fn varint(&mut self) -> Result<u32, Broken> {
        let (number, used) = varint(self.0)?.ok_or(MALFORMED)?;
        self.0 = &self.0[used..];
        Ok(number)
    }

    /// Calls `found` with each property of an MQTT 5 packet: its identifier, its bytes, and its
    /// value as a number.
    fn properties(
        &mut self,
        version: Version,
        mut found: impl FnMut(u8, &'a [u8], u32),
    ) -> Result<&'a [u8], Broken> {
        if version == Version::V3 {
            return Ok(&[]);
        }
        let length = self.varint()? as usize;
        let all = self.take(length)?;
        let mut rest = Cursor(all);
        while !rest.0.is_empty() {
            let before = rest.0;
            let id = rest.number(1)? as u8;
            let number = match id {
                0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28..=0x2a => rest.number(1)?,
                0x13 | 0x21..=0x23 => rest.number(2)?,
                0x02 | 0x11 | 0x18 | 0x27 => rest.number(4)?,
                0x0b => rest.varint()?,
                0x03 | 0x08 | 0x12 | 0x15 | 0x1a | 0x1c | 0x1f => rest.text().map(|_| 0)?,
                0x09 | 0x16 => rest.bytes().map(|_| 0)?,
                0x26 => {
                    rest.text()?;
                    rest.text().map(|_| 0)?
                }
                _ => return Err(MALFORMED),
            };
            if matches!(id, 0x0b | 0x21 | 0x23 | 0x27) && number == 0 {
                return Err(PROTOCOL_ERROR);
            }
            found(id, &before[..before.len() - rest.0.len()], number);
        }
        Ok(all)
    }
}

fn varint(bytes: &[u8]) -> Result<Option<(u32, usize)>, Broken> {
    let mut number = 0;
    for at in 0..4 {
        let Some(byte) = bytes.get(at) else { return Ok(None) };
        number |= u32::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((number, at + 1)));
        }
    }
    Err(MALFORMED)
}

/// The first packet of `input` and its length; `None` if it is incomplete.
pub(crate) fn read(input: &[u8], version: Version) -> Result<Option<(Packet<'_>, usize)>, Broken> {
    let Some((first, rest)) = input.split_first() else { return Ok(None) };
    let Some((length, used)) = varint(rest)? else { return Ok(None) };
    let end = 1 + used + length as usize;
    if end > PACKET_BYTES_MAX {
        return Err(Broken(0x95));
    }
    let Some(body) = input.get(1 + used..end) else { return Ok(None) };
    Ok(Some((packet(*first, body, version)?, end)))
}

fn packet(first: u8, body: &[u8], version: Version) -> Result<Packet<'_>, Broken> {
    let (kind, flags) = (first >> 4, first & 15);
    let fixed = if matches!(kind, 6 | 8 | 10) { 2 } else { 0 };
    if kind != 3 && flags != fixed {
        return Err(MALFORMED);
    }
    let mut rest = Cursor(body);
    Ok(match kind {
        1 => Packet::Connect(Box::new(connect(rest)?)),
        3 => Packet::Publish(publish(flags, rest, version)?),
        4 => Packet::Puback(ack(rest)?),
        5 => Packet::Pubrec(ack(rest)?),
        6 => Packet::Pubrel(ack(rest)?),
        7 => Packet::Pubcomp(ack(rest)?),
        8 => {
            let (id, mut identifier) = (rest.id()?, None);
            rest.properties(version, |property, _, number| {
                identifier = identifier.or((property == 0x0b).then_some(number));
            })?;
            let mut filters = Vec::new();
            while !rest.0.is_empty() {
                filters.push((rest.text()?, rest.number(1)? as u8));
            }
            let wrong = |options: u8| options & 3 == 3 || options & 0xc0 != 0;
            if filters.is_empty() || filters.iter().any(|(_, options)| wrong(*options)) {
                return Err(PROTOCOL_ERROR);
            }
            Packet::Subscribe { id, identifier, filters }
        }
        10 => {
            let id = rest.id()?;
            rest.properties(version, |_, _, _| ())?;
            let mut filters = Vec::new();
            while !rest.0.is_empty() {
                filters.push(rest.text()?);
            }
            if filters.is_empty() {
                return Err(PROTOCOL_ERROR);
            }
            Packet::Unsubscribe { id, filters }
        }
        12 => Packet::Pingreq,
        14 => {
            let (code, mut expiry_s) =
                (if body.is_empty() { 0 } else { rest.number(1)? as u8 }, None);
            if !rest.0.is_empty() {
                rest.properties(version, |property, _, number| {
                    expiry_s = expiry_s.or((property == 0x11).then_some(number));
                })?;
            }
            Packet::Disconnect(code, expiry_s)
        }
        _ => return Err(PROTOCOL_ERROR),
    })
}

fn ack(mut rest: Cursor<'_>) -> Result<Ack, Broken> {
    let id = rest.id()?;
    let code = if rest.0.is_empty() { 0 } else { rest.number(1)? as u8 };
    Ok(Ack { id, code })
}

fn publish<'a>(flags: u8, mut rest: Cursor<'a>, version: Version) -> Result<Publish<'a>, Broken> {
    let qos = flags >> 1 & 3;
    let topic = rest.text()?;
    if qos == 3 || topic.contains(['+', '#']) {
        return Err(MALFORMED);
    }
    let id = if qos == 0 { 0 } else { rest.id()? };
    let (mut alias, mut expiry_s) = (None, None);
    let properties = rest.properties(version, |property, _, number| match property {
        0x02 => expiry_s = Some(number),
        0x23 => alias = Some(number as u16),
        _ => {}
    })?;
    if topic.is_empty() && alias.is_none() {
        return Err(PROTOCOL_ERROR);
    }
    let (retain, dup, payload) = (flags & 1 != 0, flags & 8 != 0, rest.0);
    Ok(Publish { topic, payload, qos, retain, dup, id, alias, expiry_s, properties })
}

fn connect(mut rest: Cursor<'_>) -> Result<Connect<'_>, Broken> {
    if rest.bytes()? != b"MQTT" {
        return Err(Broken(0x84));
    }
    let version = match rest.number(1)? {
        4 => Version::V3,
        5 => Version::V5,
        _ => return Err(Broken(0x84)),
    };
    let flags = rest.number(1)? as u8;
    if flags & 1 != 0 || flags & 0x18 == 0x18 {
        return Err(MALFORMED);
    }
    let keep_alive_s = rest.two()?;
    let clean_start = flags & 2 != 0;
    let mut connect = Connect {
        version,
        clean_start,
        keep_alive_s,
        client_id: "",
        will: None,
        // A 3.1.1 session without clean start never expires.
        session_expiry_s: if version == Version::V3 && !clean_start { u32::MAX } else { 0 },
        receive_max: u16::MAX,
        packet_bytes_max: u32::MAX,
        authenticates: false,
    };
    rest.properties(version, |property, _, number| match property {
        0x11 => connect.session_expiry_s = number,
        0x15 => connect.authenticates = true,
        0x21 => connect.receive_max = number as u16,
        0x27 => connect.packet_bytes_max = number,
        _ => {}
    })?;
    connect.client_id = rest.text()?;
    if flags & 4 != 0 {
        let (mut delay_s, mut expiry_s) = (0, None);
        let properties = rest.properties(version, |property, _, number| match property {
            0x02 => expiry_s = Some(number),
            0x18 => delay_s = number,
            _ => {}
        })?;
        let topic = rest.text()?;
        if topic.is_empty() || topic.contains(['+', '#']) {
            return Err(MALFORMED);
        }
        let payload = rest.bytes()?;
        let (qos, retain) = (flags >> 3 & 3, flags & 0x20 != 0);
        let message =
            Publish { topic, payload, qos, retain, expiry_s, properties, ..Publish::default() };
        connect.will = Some(Will { message, delay_s });
    }
    if flags & 0x80 != 0 {
        rest.text()?;
    }
    if flags & 0x40 != 0 {
        rest.bytes()?;
    }
    if rest.0.is_empty() { Ok(connect) } else { Err(MALFORMED) }
}

/// The properties of a message or will that are forwarded to subscribers.
pub(super) fn passed_on(properties: &[u8]) -> Vec<u8> {
    let mut measured = Vec::new();
    write_varint(properties.len(), &mut measured);
    measured.extend_from_slice(properties);
    let mut out = Vec::new();
    let read = Cursor(&measured).properties(Version::V5, |id, bytes, _| {
        if matches!(id, 0x01 | 0x03 | 0x08 | 0x09 | 0x26) {
            out.extend_from_slice(bytes);
        }
    });
    // They were parsed before.
    read.map_or(Vec::new(), |_| out)
}

fn write_varint(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a packet with this body.
pub(crate) fn write(first: u8, body: &[&[u8]], out: &mut Vec<u8>) {
    out.push(first);
    write_varint(body.iter().map(|part| part.len()).sum(), out);
    body.iter().for_each(|part| out.extend_from_slice(part));
}

/// Writes a CONNACK, optionally with an assigned identifier.
pub(crate) fn write_connack(
    version: Version,
    present: bool,
    code: u8,
    assigned: Option<&str>,
    out: &mut Vec<u8>,
) {
    let head = [u8::from(present), code];
    if version == Version::V3 {
        return write(0x20, &[&head], out);
    }
    let mut properties = Vec::new();
    if code == 0 {
        properties.extend_from_slice(&[0x22]);
        properties.extend_from_slice(&ALIAS_MAX.to_be_bytes());
    }
    if let Some(id) = assigned {
        properties.push(0x12);
        properties.extend_from_slice(&(id.len() as u16).to_be_bytes());
        properties.extend_from_slice(id.as_bytes());
    }
    let length = [properties.len() as u8];
    write(0x20, &[&head, &length, &properties], out);
}

/// Maximum number of topic aliases for a client.
pub(crate) const ALIAS_MAX: u16 = 16;

/// Writes PUBACK, PUBREC, PUBREL or PUBCOMP.
pub(crate) fn write_ack(version: Version, first: u8, id: u16, code: u8, out: &mut Vec<u8>) {
    let code = [code];
    let code: &[u8] = if version == Version::V5 && code != [0] { &code } else { &[] };
    write(first, &[&id.to_be_bytes(), code], out);
}

/// Writes SUBACK or UNSUBACK.
pub(crate) fn write_codes(version: Version, first: u8, id: u16, codes: &[u8], out: &mut Vec<u8>) {
    let properties: &[u8] = if version == Version::V5 { &[0] } else { &[] };
    let codes = if version == Version::V3 && first == 0xb0 { &[] } else { codes };
    write(first, &[&id.to_be_bytes(), properties, codes], out);
}

/// Writes a message to a subscriber.
pub(super) fn write_publish(
    version: Version,
    message: &Publish<'_>,
    identifiers: &[u32],
    out: &mut Vec<u8>,
) {
    let flags = u8::from(message.dup) << 3 | message.qos << 1 | u8::from(message.retain);
    let id = message.id.to_be_bytes();
    let id: &[u8] = if message.qos > 0 { &id } else { &[] };
    let (mut properties, mut length) = (Vec::new(), Vec::new());
    if version == Version::V5 {
        properties.extend_from_slice(message.properties);
        if let Some(expiry_s) = message.expiry_s {
            properties.push(0x02);
            properties.extend_from_slice(&expiry_s.to_be_bytes());
        }
        for identifier in identifiers {
            properties.push(0x0b);
            write_varint(*identifier as usize, &mut properties);
        }
        write_varint(properties.len(), &mut length);
    }
    let topic = message.topic.as_bytes();
    let topic_length = (topic.len() as u16).to_be_bytes();
    let body = [&topic_length, topic, id, &length, &properties, message.payload];
    write(0x30 | flags, &body, out);
}
