//! The wire format of protobuf (protobuf.dev, "Encoding"): fields of a message, and encoded
//! numbers.

use throng_expression::Value;

use throng_base::Said;

use crate::fields::coerce;
use crate::fields::number::{Varint, insert_varint, read_varint, unzigzag, write_varint, zigzag};

/// The highest number that a field may have (protobuf.dev, "Assigning Field Numbers").
const FIELD_MAX: u32 = (1 << 29) - 1;
/// Most nested groups that are skipped.
const GROUPS_MAX: usize = 32;

/// Bytes that are not the message; positions count from its first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub position: usize,
    pub reason: Said,
}

impl Wrong {
    /// The same for a message that starts at `start` of another.
    pub(crate) fn from(mut self, start: usize) -> Wrong {
        self.position += start;
        self
    }
}

/// One field in wire format.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes {
        start: usize,
        bytes: &'a [u8],
    },
    /// A group, with its content.
    Group,
}

/// The fields of a message, one after another.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, at: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The start of the next field, its number and its value.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, u32, Wire<'a>)>, Wrong> {
        if self.is_empty() {
            return Ok(None);
        }
        let start = self.at;
        let (number, wire_type) = self.tag()?;
        let wire = match wire_type {
            3 => {
                self.skip_group(number, GROUPS_MAX)?;
                Wire::Group
            }
            wire_type => self.plain(start, number, wire_type)?,
        };
        Ok(Some((start, number, wire)))
    }

    fn tag(&mut self) -> Result<(u32, u64), Wrong> {
        let start = self.at;
        let tag = self.varint()?;
        match u32::try_from(tag >> 3).ok().filter(|number| (1..=FIELD_MAX).contains(number)) {
            Some(number) => Ok((number, tag & 7)),
            None => {
                let reason = say!("{} is not a valid protobuf field number", tag >> 3);
                Err(Wrong { position: start, reason })
            }
        }
    }

    fn plain(&mut self, start: usize, number: u32, wire_type: u64) -> Result<Wire<'a>, Wrong> {
        Ok(match wire_type {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                let left = self.bytes.len() - self.at;
                let Some(length) = usize::try_from(length).ok().filter(|length| *length <= left)
                else {
                    let reason =
                        say!("field {number} has {length} bytes, but only {left} are left");
                    return Err(Wrong { position: start, reason });
                };
                let from = self.at;
                self.at += length;
                Wire::Bytes { start: from, bytes: &self.bytes[from..self.at] }
            }
            other => {
                let reason = say!("field {number} has the wire type {other}, which is not valid");
                return Err(Wrong { position: start, reason });
            }
        })
    }

    /// Skips to the end of a group.
    fn skip_group(&mut self, group: u32, left: usize) -> Result<(), Wrong> {
        loop {
            let start = self.at;
            let (number, wire_type) = self.tag()?;
            match wire_type {
                4 if number == group => return Ok(()),
                3 if left > 0 => self.skip_group(number, left - 1)?,
                wire_type => {
                    self.plain(start, number, wire_type)?;
                }
            }
        }
    }

    fn varint(&mut self) -> Result<u64, Wrong> {
        match read_varint(&self.bytes[self.at..]) {
            Varint::Complete { raw, bytes } => {
                self.at += bytes;
                Ok(raw)
            }
            Varint::Short => Err(self.cut()),
            Varint::Long => {
                let reason = say!("the number uses more bytes than a 64-bit value needs");
                Err(Wrong { position: self.at, reason })
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let Some(array) = self.bytes[self.at..].first_chunk() else { return Err(self.cut()) };
        self.at += N;
        Ok(*array)
    }

    fn cut(&self) -> Wrong {
        Wrong { position: self.at, reason: say!("the protobuf message ends inside a field") }
    }
}

/// The type of a number or boolean field. An enum is an `Int32` whose values have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Double,
    Float,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Bool,
}

/// An encoded number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
}

impl Raw {
    /// Whether it equals the value of a missing field.
    pub(crate) fn is_zero(self) -> bool {
        matches!(self, Raw::Varint(0) | Raw::Fixed64(0) | Raw::Fixed32(0))
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Raw::Varint(raw) => write_varint(raw, out),
            Raw::Fixed64(raw) => out.extend_from_slice(&raw.to_le_bytes()),
            Raw::Fixed32(raw) => out.extend_from_slice(&raw.to_le_bytes()),
        }
    }
}

impl Scalar {
    pub(crate) fn wire_type(self) -> u64 {
        match self {
            Scalar::Double | Scalar::Fixed64 | Scalar::Sfixed64 => 1,
            Scalar::Float | Scalar::Fixed32 | Scalar::Sfixed32 => 5,
            _ => 0,
        }
    }

    /// The number in a field without a length.
    pub(crate) fn read(self, wire: Wire<'_>) -> Option<Value> {
        Some(match (self, wire) {
            (Scalar::Double, Wire::Fixed64(raw)) => Value::Float(f64::from_bits(raw)),
            (Scalar::Float, Wire::Fixed32(raw)) => Value::Float(f64::from(f32::from_bits(raw))),
            (Scalar::Int32, Wire::Varint(raw)) => Value::from(raw as i32),
            (Scalar::Int64, Wire::Varint(raw)) => Value::Int(raw as i64),
            (Scalar::Uint32, Wire::Varint(raw)) => Value::from(raw as u32),
            (Scalar::Uint64, Wire::Varint(raw)) => Value::from(raw),
            (Scalar::Sint32, Wire::Varint(raw)) => {
                Value::from(unzigzag(u64::from(raw as u32)) as i32)
            }
            (Scalar::Sint64, Wire::Varint(raw)) => Value::Int(unzigzag(raw)),
            (Scalar::Bool, Wire::Varint(raw)) => Value::Bool(raw != 0),
            (Scalar::Fixed32, Wire::Fixed32(raw)) => Value::from(raw),
            (Scalar::Sfixed32, Wire::Fixed32(raw)) => Value::from(raw as i32),
            (Scalar::Fixed64, Wire::Fixed64(raw)) => Value::from(raw),
            (Scalar::Sfixed64, Wire::Fixed64(raw)) => Value::Int(raw as i64),
            _ => return None,
        })
    }

    /// Every number of a packed field.
    pub(crate) fn packed(self, bytes: &[u8], each: &mut dyn FnMut(Value)) -> Result<(), Wrong> {
        let mut fields = Fields::new(bytes);
        while !fields.is_empty() {
            let wire = match self.wire_type() {
                1 => Wire::Fixed64(u64::from_le_bytes(fields.array()?)),
                5 => Wire::Fixed32(u32::from_le_bytes(fields.array()?)),
                _ => Wire::Varint(fields.varint()?),
            };
            if let Some(value) = self.read(wire) {
                each(value);
            }
        }
        Ok(())
    }

    /// The encoded value; `named` knows the names of an enum.
    pub(crate) fn raw(
        self,
        value: &Value,
        named: &dyn Fn(&str) -> Option<i64>,
    ) -> Result<Raw, Said> {
        match self {
            Scalar::Double => Ok(Raw::Fixed64(coerce::float(value, f64::MAX)?.to_bits())),
            Scalar::Float => {
                let number = coerce::float(value, f64::from(f32::MAX))?;
                Ok(Raw::Fixed32((number as f32).to_bits()))
            }
            Scalar::Bool => Ok(Raw::Varint(u64::from(coerce::bool(value)?))),
            _ => self.whole(coerce::whole(value, named)?),
        }
    }

    /// As [`Scalar::raw`], for a text that is not a value yet.
    pub(crate) fn raw_of_text(
        self,
        text: &str,
        named: &dyn Fn(&str) -> Option<i64>,
    ) -> Result<Raw, Said> {
        match self {
            Scalar::Double | Scalar::Float | Scalar::Bool => self.raw(&Value::from(text), named),
            _ => match named(text) {
                Some(number) => self.whole(i128::from(number)),
                None => self.whole(coerce::whole_text(text)?),
            },
        }
    }

    /// The least and the greatest whole number that it holds.
    pub(crate) fn range(self) -> (i128, i128) {
        match self {
            Scalar::Int32 | Scalar::Sint32 | Scalar::Sfixed32 => (i32::MIN.into(), i32::MAX.into()),
            Scalar::Int64 | Scalar::Sint64 | Scalar::Sfixed64 => (i64::MIN.into(), i64::MAX.into()),
            Scalar::Uint32 | Scalar::Fixed32 => (0, u32::MAX.into()),
            _ => (0, u64::MAX.into()),
        }
    }

    fn whole(self, number: i128) -> Result<Raw, Said> {
        let (low, high) = self.range();
        let number = coerce::within(number, low, high)?;
        Ok(match self {
            Scalar::Sint32 | Scalar::Sint64 => Raw::Varint(zigzag(number as i64)),
            Scalar::Fixed32 | Scalar::Sfixed32 => Raw::Fixed32(number as u32),
            Scalar::Fixed64 | Scalar::Sfixed64 => Raw::Fixed64(number as u64),
            _ => Raw::Varint(number as u64),
        })
    }
}

pub(crate) fn write_tag(number: u32, wire_type: u64, out: &mut Vec<u8>) {
    write_varint(u64::from(number) << 3 | wire_type, out);
}

/// Appends a length-delimited field.
pub(crate) fn write_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    write_tag(number, 2, out);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Starts a part with a length prefix; [`end_part`] writes the length.
pub(crate) fn begin_part(out: &mut Vec<u8>) -> usize {
    out.push(0);
    out.len()
}

/// Most parts are shorter than 128 bytes: their length fits into the reserved byte.
pub(crate) fn end_part(begin: usize, out: &mut Vec<u8>) {
    let length = (out.len() - begin) as u64;
    if length < 0x80 {
        out[begin - 1] = length as u8;
    } else {
        out[begin - 1] = length as u8 | 0x80;
        insert_varint(length >> 7, begin, out);
    }
}
