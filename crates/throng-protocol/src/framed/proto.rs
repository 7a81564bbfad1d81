//! The wire format of protobuf (protobuf.dev, "Encoding") for messages of `.proto` files: checked
//! without allocating, read into values, written from values. Unknown fields are skipped; groups
//! are refused.

use std::sync::Arc;

use throng_expression::Value;

use super::coerce;
use super::declaration::{ProtoField, ProtoType};
use super::number::{Varint, insert_varint, read_varint, unzigzag, write_varint, zigzag};
use super::path::Inner;
use super::table::Proto;

/// Messages within each other.
pub(super) const PROTO_DEPTH_MAX: usize = 32;

/// Bytes that are not the message; positions count from its first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) position: usize,
    pub(super) reason: String,
}

/// One field as it lies there.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes { start: usize, bytes: &'a [u8] },
}

struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

// sentences
impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<Option<(usize, u32, Wire<'a>)>, Wrong> {
        if self.at == self.bytes.len() {
            return Ok(None);
        }
        let start = self.at;
        let tag = self.varint()?;
        let Some(number) = u32::try_from(tag >> 3).ok().filter(|number| *number > 0) else {
            let reason = format!("{} is no number of a protobuf field", tag >> 3);
            return Err(Wrong { position: start, reason });
        };
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                let left = self.bytes.len() - self.at;
                let Some(length) = usize::try_from(length).ok().filter(|length| *length <= left)
                else {
                    let reason = format!("field {number} has {length} bytes, and {left} are left");
                    return Err(Wrong { position: start, reason });
                };
                let from = self.at;
                self.at += length;
                Wire::Bytes { start: from, bytes: &self.bytes[from..self.at] }
            }
            other => {
                let reason = format!("field {number} has the wire type {other}, which is not used");
                return Err(Wrong { position: start, reason });
            }
        };
        Ok(Some((start, number, wire)))
    }

    fn varint(&mut self) -> Result<u64, Wrong> {
        match read_varint(&self.bytes[self.at..]) {
            Varint::Complete { raw, bytes } => {
                self.at += bytes;
                Ok(raw)
            }
            Varint::Short => Err(self.cut()),
            Varint::Long => {
                let reason = "the number has more bytes than 64 bits need".to_owned();
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
        Wrong { position: self.at, reason: "the protobuf message ends inside a field".to_owned() }
    }
}

/// Whether `bytes` are the message.
pub(super) fn check(protos: &[Proto], message: u32, bytes: &[u8]) -> Result<(), Wrong> {
    check_within(protos, message as usize, bytes, PROTO_DEPTH_MAX)
}

// sentences
fn check_within(protos: &[Proto], message: usize, bytes: &[u8], left: usize) -> Result<(), Wrong> {
    let Some(left) = left.checked_sub(1) else {
        let reason = format!("more than {PROTO_DEPTH_MAX} protobuf messages lie in each other");
        return Err(Wrong { position: 0, reason });
    };
    let proto = &protos[message];
    let mut fields = Fields { bytes, at: 0 };
    let mut seen = 0u64;
    while let Some((start, number, wire)) = fields.next()? {
        let Some(index) = index_of(proto, number) else { continue };
        seen |= 1u64.checked_shl(index as u32).unwrap_or(0);
        let field = &proto.fields[index];
        check_field(protos, field, start, wire, left)?;
    }
    for (index, field) in proto.fields.iter().enumerate().filter(|(_, field)| field.required) {
        let is_there = match index {
            0..64 => seen >> index & 1 == 1,
            _ => occurs(bytes, field.number),
        };
        if !is_there {
            let reason =
                format!("the required field `{}` of `{}` is missing", field.name, proto.name);
            return Err(Wrong { position: bytes.len(), reason });
        }
    }
    Ok(())
}

fn occurs(bytes: &[u8], wanted: u32) -> bool {
    let mut fields = Fields { bytes, at: 0 };
    while let Ok(Some((_, number, _))) = fields.next() {
        if number == wanted {
            return true;
        }
    }
    false
}

// sentences
fn check_field(
    protos: &[Proto],
    field: &ProtoField,
    start: usize,
    wire: Wire<'_>,
    left: usize,
) -> Result<(), Wrong> {
    let name = &field.name;
    match (&field.ty, wire) {
        (ProtoType::Text, Wire::Bytes { start, bytes }) => match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(error) => {
                let reason = format!("`{name}` is not UTF-8");
                Err(Wrong { position: start + error.valid_up_to(), reason })
            }
        },
        (ProtoType::Bytes, Wire::Bytes { .. }) => Ok(()),
        (ProtoType::Message(message) | ProtoType::Map(message), Wire::Bytes { start, bytes }) => {
            check_within(protos, *message, bytes, left)
                .map_err(|wrong| Wrong { position: start + wrong.position, reason: wrong.reason })
        }
        (ty, Wire::Bytes { start, bytes }) if field.repeated && is_packable(ty) => {
            packed(ty, bytes, &mut |_| {})
                .map_err(|wrong| Wrong { position: start + wrong.position, reason: wrong.reason })
        }
        (ty, wire) if scalar(ty, wire).is_some() => Ok(()),
        _ => {
            let reason = format!("`{name}` is not written as its type is");
            Err(Wrong { position: start, reason })
        }
    }
}

fn index_of(proto: &Proto, number: u32) -> Option<usize> {
    // Fields are mostly numbered from 1 on without gaps.
    let guess = number as usize - 1;
    match proto.fields.get(guess) {
        Some(field) if field.number == number => Some(guess),
        _ => proto.fields.binary_search_by_key(&number, |field| field.number).ok(),
    }
}

fn is_packable(ty: &ProtoType) -> bool {
    !matches!(ty, ProtoType::Text | ProtoType::Bytes | ProtoType::Message(_) | ProtoType::Map(_))
}

/// Every number of a packed field.
fn packed(ty: &ProtoType, bytes: &[u8], each: &mut dyn FnMut(Value)) -> Result<(), Wrong> {
    let mut fields = Fields { bytes, at: 0 };
    while fields.at < bytes.len() {
        let wire = match wire_type(ty) {
            1 => Wire::Fixed64(u64::from_le_bytes(fields.array()?)),
            5 => Wire::Fixed32(u32::from_le_bytes(fields.array()?)),
            _ => Wire::Varint(fields.varint()?),
        };
        if let Some(value) = scalar(ty, wire) {
            each(value);
        }
    }
    Ok(())
}

/// The number that a field without a length is.
fn scalar(ty: &ProtoType, wire: Wire<'_>) -> Option<Value> {
    Some(match (ty, wire) {
        (ProtoType::Double, Wire::Fixed64(raw)) => Value::Float(f64::from_bits(raw)),
        (ProtoType::Float, Wire::Fixed32(raw)) => Value::Float(f64::from(f32::from_bits(raw))),
        (ProtoType::Int32 | ProtoType::Enum(_), Wire::Varint(raw)) => Value::from(raw as i32),
        (ProtoType::Int64, Wire::Varint(raw)) => Value::Int(raw as i64),
        (ProtoType::Uint32, Wire::Varint(raw)) => Value::from(raw as u32),
        (ProtoType::Uint64, Wire::Varint(raw)) => Value::from(raw),
        (ProtoType::Sint32, Wire::Varint(raw)) => {
            Value::from(unzigzag(u64::from(raw as u32)) as i32)
        }
        (ProtoType::Sint64, Wire::Varint(raw)) => Value::Int(unzigzag(raw)),
        (ProtoType::Bool, Wire::Varint(raw)) => Value::Bool(raw != 0),
        (ProtoType::Fixed32, Wire::Fixed32(raw)) => Value::from(raw),
        (ProtoType::Sfixed32, Wire::Fixed32(raw)) => Value::from(raw as i32),
        (ProtoType::Fixed64, Wire::Fixed64(raw)) => Value::from(raw),
        (ProtoType::Sfixed64, Wire::Fixed64(raw)) => Value::Int(raw as i64),
        _ => return None,
    })
}

fn wire_type(ty: &ProtoType) -> u64 {
    match ty {
        ProtoType::Double | ProtoType::Fixed64 | ProtoType::Sfixed64 => 1,
        ProtoType::Float | ProtoType::Fixed32 | ProtoType::Sfixed32 => 5,
        ty if is_packable(ty) => 0,
        _ => 2,
    }
}

/// What `steps` lead to in a message that was checked; None when it is not there.
pub(super) fn find(protos: &[Proto], message: u32, bytes: &[u8], steps: &[Inner]) -> Option<Value> {
    let Some((first, rest)) = steps.split_first() else {
        return Some(message_value(protos, message as usize, bytes, PROTO_DEPTH_MAX));
    };
    let Inner::Proto(index) = first else { return None };
    let field = &protos[message as usize].fields[*index as usize];
    match (&field.ty, rest) {
        (ProtoType::Message(inner), [Inner::Proto(_), ..]) if !field.repeated => {
            find(protos, *inner as u32, last_bytes(bytes, field.number)?, rest)
        }
        _ => {
            let value = field_value(protos, field, bytes, PROTO_DEPTH_MAX)?;
            walk(protos, field, value, rest)
        }
    }
}

fn last_bytes(bytes: &[u8], wanted: u32) -> Option<&[u8]> {
    let mut found = None;
    let mut fields = Fields { bytes, at: 0 };
    while let Ok(Some((_, number, wire))) = fields.next() {
        if let (true, Wire::Bytes { bytes, .. }) = (number == wanted, wire) {
            found = Some(bytes);
        }
    }
    found
}

fn walk(protos: &[Proto], field: &ProtoField, value: Value, steps: &[Inner]) -> Option<Value> {
    let Some((first, rest)) = steps.split_first() else { return Some(value) };
    let (next, field) = match first {
        Inner::Index(index) => (value.index(*index as usize)?.clone(), field),
        Inner::Key(key) => {
            let ProtoType::Map(entry) = field.ty else { return None };
            let inner = protos[entry].fields.iter().find(|field| field.number == 2)?;
            (value.get(key)?.clone(), inner)
        }
        Inner::Proto(index) => {
            let ProtoType::Message(message) = field.ty else { return None };
            let inner = &protos[message].fields[*index as usize];
            (value.get(&inner.name)?.clone(), inner)
        }
    };
    walk(protos, field, next, rest)
}

/// The fields that are there, by name.
fn message_value(protos: &[Proto], message: usize, bytes: &[u8], left: usize) -> Value {
    let fields = &protos[message].fields;
    let entries = fields.iter().filter_map(|field| {
        let value = field_value(protos, field, bytes, left)?;
        Some((Arc::from(&*field.name), value))
    });
    Value::from(entries.collect::<Vec<(Arc<str>, Value)>>())
}

fn field_value(protos: &[Proto], field: &ProtoField, bytes: &[u8], left: usize) -> Option<Value> {
    let left = left.checked_sub(1)?;
    let mut items = Vec::new();
    let mut fields = Fields { bytes, at: 0 };
    while let Ok(Some((_, number, wire))) = fields.next() {
        if number != field.number {
            continue;
        }
        match (&field.ty, wire) {
            (ProtoType::Text, Wire::Bytes { bytes, .. }) => {
                items.push(Value::from(&*String::from_utf8_lossy(bytes)));
            }
            (ProtoType::Bytes, Wire::Bytes { bytes, .. }) => items.push(Value::from(bytes)),
            (ProtoType::Message(inner) | ProtoType::Map(inner), Wire::Bytes { bytes, .. }) => {
                items.push(message_value(protos, *inner, bytes, left));
            }
            (ty, Wire::Bytes { bytes, .. }) => {
                packed(ty, bytes, &mut |value| items.push(value)).ok()?;
            }
            (ty, wire) => items.extend(scalar(ty, wire)),
        }
        if !field.repeated && !matches!(field.ty, ProtoType::Map(_)) && items.len() > 1 {
            items.swap_remove(0);
        }
    }
    match &field.ty {
        _ if items.is_empty() => None,
        ProtoType::Map(entry) => Some(map_value(&protos[*entry], &items)),
        _ if field.repeated => Some(Value::from(items)),
        _ => items.pop(),
    }
}

/// Entries with a key and a value as a map; what is missing in an entry is empty.
fn map_value(entry: &Proto, items: &[Value]) -> Value {
    let part = |item: &Value, number: u32| {
        let field = entry.fields.iter().find(|field| field.number == number)?;
        item.get(&field.name).cloned()
    };
    let entries = items.iter().map(|item| {
        let key = part(item, 1).unwrap_or_default().to_text();
        (key, part(item, 2).unwrap_or_default())
    });
    Value::from(entries.collect::<Vec<_>>())
}

/// Why a value is not written: the names down to the field, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) path: Vec<String>,
    pub(super) reason: String,
}

impl Refused {
    pub(super) fn new(reason: String) -> Refused {
        Refused { path: Vec::new(), reason }
    }

    pub(super) fn within(mut self, name: &str) -> Refused {
        self.path.insert(0, name.to_owned());
        self
    }
}

/// Appends a message from a map of its fields.
pub(super) fn write(
    protos: &[Proto],
    message: usize,
    value: &Value,
    out: &mut Vec<u8>,
    left: usize,
) -> Result<(), Refused> {
    let Some(left) = left.checked_sub(1) else {
        let reason = format!("more than {PROTO_DEPTH_MAX} protobuf messages lie in each other");
        return Err(Refused::new(reason));
    };
    let Value::Map(entries) = value else {
        let found = value.type_name();
        return Err(Refused::new(format!("a map of fields is needed, not {found}")));
    };
    let proto = &protos[message];
    for (name, value) in entries.iter() {
        let Some(field) = proto.fields.iter().find(|field| *field.name == **name) else {
            let reason = format!("`{}` has no field `{name}`", proto.name);
            return Err(Refused::new(reason));
        };
        write_field(protos, field, value, out, left).map_err(|refused| refused.within(name))?;
    }
    let given = |name: &str| value.get(name).is_some_and(|value| !value.is_null());
    match proto.fields.iter().find(|field| field.required && !given(&field.name)) {
        Some(field) => Err(Refused::new("it is required".to_owned()).within(&field.name)),
        None => Ok(()),
    }
}

/// Appends a field with all its items; null is left out.
pub(super) fn write_field(
    protos: &[Proto],
    field: &ProtoField,
    value: &Value,
    out: &mut Vec<u8>,
    left: usize,
) -> Result<(), Refused> {
    match (value, &field.ty) {
        (Value::Null, _) => Ok(()),
        (Value::Map(entries), ProtoType::Map(_)) => entries.iter().try_for_each(|(key, value)| {
            let begin = begin_entry(protos, field, &Value::Text(Arc::clone(key)), out)
                .map_err(|refused| refused.within(key))?;
            if let Some(inner) = map_field(protos, field, 2) {
                write_item(protos, inner, value, out, left)
                    .map_err(|refused| refused.within(key))?;
            }
            end_part(begin, out);
            Ok(())
        }),
        (_, ProtoType::Map(_)) => {
            let found = value.type_name();
            Err(Refused::new(format!("a map is needed, not {found}")))
        }
        (Value::List(items), _) if field.repeated && is_packed(field) => {
            let begin = begin_part(field, out);
            for item in items.iter() {
                write_number(field, item, out)?;
            }
            end_part(begin, out);
            Ok(())
        }
        (Value::List(items), _) if field.repeated => {
            items.iter().try_for_each(|item| write_item(protos, field, item, out, left))
        }
        (value, _) if field.repeated => {
            let found = value.type_name();
            Err(Refused::new(format!("a list is needed, not {found}")))
        }
        _ => write_item(protos, field, value, out, left),
    }
}

/// Appends one item with its tag.
pub(super) fn write_item(
    protos: &[Proto],
    field: &ProtoField,
    value: &Value,
    out: &mut Vec<u8>,
    left: usize,
) -> Result<(), Refused> {
    if is_packable(&field.ty) {
        write_varint(u64::from(field.number) << 3 | wire_type(&field.ty), out);
        return write_number(field, value, out);
    }
    let begin = begin_part(field, out);
    match &field.ty {
        ProtoType::Text => coerce::text(value, out).map_err(Refused::new)?,
        ProtoType::Bytes => coerce::bytes(value, out).map_err(Refused::new)?,
        ProtoType::Message(inner) | ProtoType::Map(inner) => {
            write(protos, *inner, value, out, left)?;
        }
        _ => {}
    }
    end_part(begin, out);
    Ok(())
}

pub(super) fn is_packed(field: &ProtoField) -> bool {
    field.packed && is_packable(&field.ty)
}

/// The key (1) or value (2) of a map's entries.
pub(super) fn map_field<'a>(
    protos: &'a [Proto],
    field: &ProtoField,
    number: u32,
) -> Option<&'a ProtoField> {
    let ProtoType::Map(entry) = field.ty else { return None };
    protos[entry].fields.iter().find(|field| field.number == number)
}

/// Begins an entry of a map: its tag and its key; [`end_part`] ends it.
pub(super) fn begin_entry(
    protos: &[Proto],
    field: &ProtoField,
    key: &Value,
    out: &mut Vec<u8>,
) -> Result<usize, Refused> {
    let begin = begin_part(field, out);
    if let Some(inner) = map_field(protos, field, 1) {
        write_item(protos, inner, key, out, 1)?;
    }
    Ok(begin)
}

/// Begins a part whose length stands before it.
pub(super) fn begin_part(field: &ProtoField, out: &mut Vec<u8>) -> usize {
    write_varint(u64::from(field.number) << 3 | 2, out);
    out.len()
}

pub(super) fn end_part(begin: usize, out: &mut Vec<u8>) {
    insert_varint((out.len() - begin) as u64, begin, out);
}

/// Appends a number without its tag.
pub(super) fn write_number(
    field: &ProtoField,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let whole = |low: i128, high: i128| {
        let whole = coerce::whole(value, &|_| None)?;
        coerce::within(whole, low, high)
    };
    let (i32s, u32s) = ((i128::from(i32::MIN), i128::from(i32::MAX)), (0, i128::from(u32::MAX)));
    let (i64s, u64s) = ((i128::from(i64::MIN), i128::from(i64::MAX)), (0, i128::from(u64::MAX)));
    let result: Result<(), String> = (|| {
        match &field.ty {
            ProtoType::Double => {
                out.extend_from_slice(&coerce::float(value, f64::MAX)?.to_le_bytes());
            }
            ProtoType::Float => {
                let number = coerce::float(value, f64::from(f32::MAX))?;
                out.extend_from_slice(&(number as f32).to_le_bytes());
            }
            ProtoType::Bool => out.push(u8::from(coerce::bool(value)?)),
            ProtoType::Enum(names) => {
                let named = |text: &str| {
                    let found = names.iter().find(|(name, _)| name == text);
                    found.map(|(_, number)| i64::from(*number))
                };
                let number = coerce::within(coerce::whole(value, &named)?, i32s.0, i32s.1)?;
                write_varint(number as i64 as u64, out);
            }
            ProtoType::Int32 => write_varint(whole(i32s.0, i32s.1)? as i64 as u64, out),
            ProtoType::Int64 => write_varint(whole(i64s.0, i64s.1)? as i64 as u64, out),
            ProtoType::Uint32 => write_varint(whole(u32s.0, u32s.1)? as u64, out),
            ProtoType::Uint64 => write_varint(whole(u64s.0, u64s.1)? as u64, out),
            ProtoType::Sint32 => write_varint(zigzag(whole(i32s.0, i32s.1)? as i64), out),
            ProtoType::Sint64 => write_varint(zigzag(whole(i64s.0, i64s.1)? as i64), out),
            ProtoType::Fixed32 => {
                out.extend_from_slice(&(whole(u32s.0, u32s.1)? as u32).to_le_bytes());
            }
            ProtoType::Sfixed32 => {
                out.extend_from_slice(&(whole(i32s.0, i32s.1)? as i32).to_le_bytes());
            }
            ProtoType::Fixed64 => {
                out.extend_from_slice(&(whole(u64s.0, u64s.1)? as u64).to_le_bytes());
            }
            ProtoType::Sfixed64 => {
                out.extend_from_slice(&(whole(i64s.0, i64s.1)? as i64).to_le_bytes());
            }
            ProtoType::Text | ProtoType::Bytes | ProtoType::Message(_) | ProtoType::Map(_) => {}
        }
        Ok(())
    })();
    result.map_err(Refused::new)
}
