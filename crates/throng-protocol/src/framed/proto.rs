//! Messages of `.proto` files in packets: checked without allocating, read into values, written
//! from values. Unknown fields are skipped, and groups.

use std::sync::Arc;

use throng_expression::Value;

use super::coerce;
use super::declaration::{ProtoField, ProtoType};
use super::path::Inner;
use super::table::Proto;
use crate::protobuf::wire::{self, Fields, Scalar, Wire, Wrong, end_part};

/// Messages within each other.
pub(super) const PROTO_DEPTH_MAX: usize = 32;

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
    let mut fields = Fields::new(bytes);
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
    let mut fields = Fields::new(bytes);
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
            check_within(protos, *message, bytes, left).map_err(|wrong| wrong.from(start))
        }
        (ty, Wire::Bytes { start, bytes }) if field.repeated && is_packable(ty) => {
            packed(ty, bytes, &mut |_| {}).map_err(|wrong| wrong.from(start))
        }
        (ty, wire) if read(ty, wire).is_some() => Ok(()),
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

/// The number that a field is; None of those that have a length.
fn scalar(ty: &ProtoType) -> Option<Scalar> {
    Some(match ty {
        ProtoType::Double => Scalar::Double,
        ProtoType::Float => Scalar::Float,
        ProtoType::Int32 | ProtoType::Enum(_) => Scalar::Int32,
        ProtoType::Int64 => Scalar::Int64,
        ProtoType::Uint32 => Scalar::Uint32,
        ProtoType::Uint64 => Scalar::Uint64,
        ProtoType::Sint32 => Scalar::Sint32,
        ProtoType::Sint64 => Scalar::Sint64,
        ProtoType::Fixed32 => Scalar::Fixed32,
        ProtoType::Fixed64 => Scalar::Fixed64,
        ProtoType::Sfixed32 => Scalar::Sfixed32,
        ProtoType::Sfixed64 => Scalar::Sfixed64,
        ProtoType::Bool => Scalar::Bool,
        ProtoType::Text | ProtoType::Bytes | ProtoType::Message(_) | ProtoType::Map(_) => {
            return None;
        }
    })
}

fn is_packable(ty: &ProtoType) -> bool {
    scalar(ty).is_some()
}

fn read(ty: &ProtoType, wire: Wire<'_>) -> Option<Value> {
    scalar(ty)?.read(wire)
}

/// Every number of a packed field.
fn packed(ty: &ProtoType, bytes: &[u8], each: &mut dyn FnMut(Value)) -> Result<(), Wrong> {
    scalar(ty).map_or(Ok(()), |scalar| scalar.packed(bytes, each))
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
    let mut fields = Fields::new(bytes);
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
    let mut fields = Fields::new(bytes);
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
            (ty, wire) => items.extend(read(ty, wire)),
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
    if let Some(scalar) = scalar(&field.ty) {
        wire::write_tag(field.number, scalar.wire_type(), out);
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

/// Begins a part whose length stands before it; [`end_part`] ends it.
pub(super) fn begin_part(field: &ProtoField, out: &mut Vec<u8>) -> usize {
    wire::write_tag(field.number, 2, out);
    wire::begin_part(out)
}

/// Appends a number without its tag.
pub(super) fn write_number(
    field: &ProtoField,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let named = |text: &str| {
        let ProtoType::Enum(names) = &field.ty else { return None };
        let found = names.iter().find(|(name, _)| name == text);
        found.map(|(_, number)| i64::from(*number))
    };
    let Some(scalar) = scalar(&field.ty) else { return Ok(()) };
    scalar.raw(value, &named).map_err(Refused::new)?.write(out);
    Ok(())
}
