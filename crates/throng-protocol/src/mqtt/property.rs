//! The properties of MQTT 5 (2.2.2): read, checked and written.

use super::flaw::Flaw;
use super::kind::PacketType;
use super::property_id::{PUBLISH, PropertyId, ROWS, Row, ValueKind, WILL};
use super::wire::{Fields, write_bytes, write_varint};

use PropertyId as P;
use ValueKind as K;

/// The value of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Number(u32),
    Text(&'a str),
    Bytes(&'a [u8]),
    Pair(&'a str, &'a str),
}

/// The properties of a packet, without their length: valid and allowed there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a>(&'a [u8]);

impl<'a> Properties<'a> {
    pub const NONE: Properties<'static> = Properties(&[]);

    /// Reads properties in `place`, with their length before them.
    pub(super) fn read(fields: &mut Fields<'a>, place: u16) -> Result<Properties<'a>, Flaw> {
        let length = fields.varint()?;
        let bytes = fields.take(length as usize)?;
        let (mut rest, mut seen) = (Fields(bytes), 0_u64);
        while !rest.is_empty() {
            let (row, _) = read_one(&mut rest)?;
            if row.places & place == 0 {
                return Err(Flaw::PropertyMisplaced(row.id));
            }
            let bit = 1 << row.id as u8;
            // A message contains the identifiers of all matching subscriptions.
            let repeats = row.kind == ValueKind::Pair
                || row.id == P::SubscriptionIdentifier && place == PUBLISH;
            if seen & bit != 0 && !repeats {
                return Err(Flaw::PropertyTwice(row.id));
            }
            seen |= bit;
        }
        Ok(Properties(bytes))
    }

    /// Properties written with [`write_property`] for this packet.
    ///
    /// # Errors
    /// A property that is not allowed there, or has an invalid value.
    pub fn new(bytes: &'a [u8], packet: PacketType) -> Result<Properties<'a>, Flaw> {
        Properties::checked(bytes, packet.bit())
    }

    /// The same for the will of a CONNECT.
    ///
    /// # Errors
    /// A property that is not allowed there, or has an invalid value.
    pub fn of_will(bytes: &'a [u8]) -> Result<Properties<'a>, Flaw> {
        Properties::checked(bytes, WILL)
    }

    fn checked(bytes: &'a [u8], place: u16) -> Result<Properties<'a>, Flaw> {
        let mut measured = Vec::with_capacity(bytes.len() + 4);
        write_varint(bytes.len() as u32, &mut measured);
        measured.extend_from_slice(bytes);
        Properties::read(&mut Fields(&measured), place)?;
        Ok(Properties(bytes))
    }

    /// Properties that were checked before.
    pub(super) fn of_read(bytes: &'a [u8]) -> Properties<'a> {
        Properties(bytes)
    }

    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    pub fn iter(self) -> impl Iterator<Item = (PropertyId, Value<'a>)> {
        let mut rest = Fields(self.0);
        std::iter::from_fn(move || read_one(&mut rest).ok().map(|(row, value)| (row.id, value)))
    }

    /// The first value of a property.
    pub fn get(self, id: PropertyId) -> Option<Value<'a>> {
        self.iter().find(|(found, _)| *found == id).map(|(_, value)| value)
    }

    pub fn number(self, id: PropertyId) -> Option<u32> {
        match self.get(id)? {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    pub fn text(self, id: PropertyId) -> Option<&'a str> {
        match self.get(id)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

fn read_one<'a>(fields: &mut Fields<'a>) -> Result<(&'static Row, Value<'a>), Flaw> {
    let id = fields.varint()?;
    let row = ROWS.iter().find(|row| row.id as u32 == id).ok_or(Flaw::PropertyUnknown(id))?;
    let value = match row.kind {
        K::Flag => Value::Number(u32::from(fields.byte()?)),
        K::Two | K::TwoPositive => Value::Number(u32::from(fields.two()?)),
        K::Four | K::FourPositive => Value::Number(fields.four()?),
        K::VarintPositive => Value::Number(fields.varint()?),
        K::Text => Value::Text(fields.text()?),
        K::Bytes => Value::Bytes(fields.bytes()?),
        K::Pair => Value::Pair(fields.text()?, fields.text()?),
    };
    let is_allowed = match (row.kind, value) {
        (K::Flag, Value::Number(number)) => number <= 1,
        (K::TwoPositive | K::FourPositive | K::VarintPositive, Value::Number(number)) => number > 0,
        _ => true,
    };
    if is_allowed { Ok((row, value)) } else { Err(Flaw::PropertyValue(row.id)) }
}

/// Writes one property. A value of the wrong kind writes nothing.
pub fn write_property(id: PropertyId, value: Value<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(id as u8);
    match (id.kind(), value) {
        (K::Flag, Value::Number(number)) => out.push(number as u8),
        (K::Two | K::TwoPositive, Value::Number(number)) => {
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        (K::Four | K::FourPositive, Value::Number(number)) => {
            out.extend_from_slice(&number.to_be_bytes());
        }
        (K::VarintPositive, Value::Number(number)) => write_varint(number, out),
        (K::Text, Value::Text(text)) => write_bytes(text.as_bytes(), out),
        (K::Bytes, Value::Bytes(bytes)) => write_bytes(bytes, out),
        (K::Pair, Value::Pair(name, value)) => {
            write_bytes(name.as_bytes(), out);
            write_bytes(value.as_bytes(), out);
        }
        _ => out.truncate(start),
    }
}
