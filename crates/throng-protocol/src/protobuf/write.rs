//! Encodes values as messages, mapped as in proto3 JSON (protobuf.dev, "ProtoJSON Format"): field
//! names as in the file or in camel case, 64-bit numbers also as text, bytes as base64, enums by
//! name.

use std::sync::Arc;

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::GeneralPurpose;
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use throng_base::diagnostic::did_you_mean;
use throng_expression::Value;

use throng_base::Said;

use super::schema::{Count, Field, Schema, Shape, Type, is_many, listed};
use super::well_known;
use super::wire::{Raw, begin_part, end_part, write_bytes, write_tag};
use super::{DEPTH_MAX, Refused};
use crate::fields::coerce;

/// Base64 with or without padding, of both alphabets.
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// The key with the type of an `Any`.
pub(super) const TYPE_KEY: &str = "@type";

pub(super) type Written = Result<(), Refused>;

/// The oneof members and required fields that a message was given.
#[derive(Default)]
pub(super) struct Seen {
    oneofs: Vec<(u16, usize)>,
    required: Vec<usize>,
}

impl Seen {
    /// Records a field that is given and not null.
    pub(super) fn field(
        &mut self,
        schema: &Schema,
        message: u32,
        index: usize,
        name: &str,
    ) -> Written {
        let message = schema.at(message);
        let field = &message.fields[index];
        if field.count == Count::Required {
            self.required.push(index);
        }
        let Some(oneof) = field.oneof else { return Ok(()) };
        if let Some((_, other)) = self.oneofs.iter().find(|(known, _)| *known == oneof) {
            let other = &message.fields[*other].name;
            let group = &message.oneofs[usize::from(oneof)];
            let reason = say!("`{other}` and `{name}` both belong to the oneof `{group}`");
            let help = say!("set only one of them");
            return Err(Refused { help, ..Refused::new(reason).within(name) });
        }
        self.oneofs.push((oneof, index));
        Ok(())
    }

    /// Checks that all required fields are given.
    pub(super) fn finish(&self, schema: &Schema, message: u32) -> Written {
        let message = schema.at(message);
        let needed = |(index, field): &(usize, &Field)| {
            field.count == Count::Required && !self.required.contains(index)
        };
        match message.fields.iter().enumerate().find(needed) {
            Some((_, field)) => {
                let reason = say!("the required field `{}` is missing", field.name);
                Err(Refused::new(reason).within(&field.name))
            }
            None => Ok(()),
        }
    }
}

/// The index of a field by name.
pub(super) fn field_of(schema: &Schema, message: u32, name: &str) -> Result<usize, Refused> {
    let message = schema.at(message);
    let found = message.field(name).filter(|at| message.fields[*at].ty != Type::Group);
    found.ok_or_else(|| {
        let names = message.fields.iter().map(|field| &*field.name);
        let near = did_you_mean(name, names.clone());
        let list = match message.fields.is_empty() {
            true => say!("it has no fields"),
            false => say!("available: {}", listed(names)),
        };
        let help = match near {
            Some(near) => say!("did you mean `{near}`? {list}"),
            None => list,
        };
        let reason = say!("`{}` has no field `{name}`", message.name);
        Refused { help, ..Refused::new(reason).within(name) }
    })
}

/// Appends the fields of a message.
pub(super) fn message(
    schema: &Schema,
    message: u32,
    value: &Value,
    out: &mut Vec<u8>,
    left: usize,
) -> Written {
    let Some(left) = left.checked_sub(1) else {
        return Err(too_deep());
    };
    match (schema.at(message).shape, value) {
        (Shape::Timestamp, Value::Text(text)) => {
            let (seconds, nanos) = well_known::timestamp(text).map_err(Refused::new)?;
            write_moment(seconds, nanos, out);
            Ok(())
        }
        (Shape::Duration, Value::Text(text)) => {
            let (seconds, nanos) = well_known::duration(text).map_err(Refused::new)?;
            write_moment(seconds, nanos, out);
            Ok(())
        }
        (Shape::FieldMask, Value::Text(text)) => {
            for path in text.split(',').filter(|path| !path.is_empty()) {
                write_bytes(1, well_known::snake_case(path).as_bytes(), out);
            }
            Ok(())
        }
        (Shape::Struct, Value::Map(entries)) => structure(entries, out, left),
        (Shape::ListValue, Value::List(items)) => list(items, out, left),
        (Shape::Any, value) => json(value, out, left),
        (Shape::Packed, Value::Map(entries)) if value.get(TYPE_KEY).is_some() => {
            packed(schema, entries, value, out, left)
        }
        (Shape::Wrapper, value) if !matches!(value, Value::Map(_)) => {
            field(schema, message, 0, value, out, left)
        }
        (_, Value::Map(entries)) => plain(schema, message, entries, out, left),
        (shape, other) => {
            let found = other.type_name();
            Err(Refused::new(match shape {
                Shape::Timestamp => {
                    say!("expected a time such as `2026-01-31T10:00:00Z`, not {found}")
                }
                Shape::Duration => say!("expected a duration such as `1.5s`, not {found}"),
                Shape::ListValue => say!("expected a list, not {found}"),
                _ => say!("expected a map of fields, not {found}"),
            }))
        }
    }
}

fn too_deep() -> Refused {
    Refused::new(say!("protobuf messages are nested more than {DEPTH_MAX} levels deep"))
}

fn plain(
    schema: &Schema,
    message: u32,
    entries: &[(Arc<str>, Value)],
    out: &mut Vec<u8>,
    left: usize,
) -> Written {
    let mut seen = Seen::default();
    for (name, value) in entries.iter().filter(|(name, _)| **name != *TYPE_KEY) {
        let index = field_of(schema, message, name)?;
        if !value.is_null() {
            seen.field(schema, message, index, name)?;
        }
        let written = field(schema, message, index, value, out, left);
        written.map_err(|refused| refused.within(name))?;
    }
    seen.finish(schema, message)
}

fn write_moment(seconds: i64, nanos: i32, out: &mut Vec<u8>) {
    for (number, part) in [(1, seconds as u64), (2, i64::from(nanos) as u64)] {
        if part != 0 {
            write_tag(number, 0, out);
            Raw::Varint(part).write(out);
        }
    }
}

/// An `Any`: its type, and the message as bytes.
fn packed(
    schema: &Schema,
    entries: &[(Arc<str>, Value)],
    value: &Value,
    out: &mut Vec<u8>,
    left: usize,
) -> Written {
    let url = value.get(TYPE_KEY).and_then(Value::as_text).unwrap_or_default();
    let inner = type_of(schema, url)?;
    write_bytes(1, url.as_bytes(), out);
    write_tag(2, 2, out);
    let begin = begin_part(out);
    match schema.at(inner).shape {
        Shape::Plain => plain(schema, inner, entries, out, left)?,
        _ => match value.get("value") {
            Some(value) => message(schema, inner, value, out, left)?,
            None => return Err(Refused::new(say!("`value` is missing next to `@type`"))),
        },
    }
    end_part(begin, out);
    Ok(())
}

pub(super) fn type_of(schema: &Schema, url: &str) -> Result<u32, Refused> {
    schema.of_type_url(url).ok_or_else(|| {
        let reason = say!("there is no message `{}`", coerce::shortened(url));
        let help = say!("write `type.googleapis.com/package.Message`");
        Refused { help, ..Refused::new(reason).within(TYPE_KEY) }
    })
}

/// Appends a field with all its items. Null is omitted, and so is the default of a field without
/// presence.
pub(super) fn field(
    schema: &Schema,
    message: u32,
    index: usize,
    value: &Value,
    out: &mut Vec<u8>,
    left: usize,
) -> Written {
    let this = &schema.at(message).fields[index];
    match (this.count, value) {
        (count, Value::Null) if is_many(count) || !is_any(schema, this) => Ok(()),
        (Count::Map, Value::Map(entries)) => entries.iter().try_for_each(|(key, value)| {
            let written = entry(schema, this, key, value, out, left);
            written.map_err(|refused| refused.within(key))
        }),
        (Count::Map, other) => {
            let found = other.type_name();
            Err(Refused::new(say!("expected a map, not {found}")))
        }
        (Count::Packed, Value::List(items)) if items.is_empty() => Ok(()),
        (Count::Packed, Value::List(items)) => {
            write_tag(this.number, 2, out);
            let begin = begin_part(out);
            let numbered = items.iter().enumerate();
            let written = numbered.map(|(at, item)| {
                let raw = number(schema, this, item).map_err(|refused| refused.at(at))?;
                raw.write(out);
                Ok(())
            });
            let written: Written = written.collect();
            end_part(begin, out);
            written
        }
        (Count::Repeated, Value::List(items)) => {
            items.iter().enumerate().try_for_each(|(at, value)| {
                item(schema, message, index, value, out, left).map_err(|refused| refused.at(at))
            })
        }
        (Count::Packed | Count::Repeated, other) => {
            let found = other.type_name();
            Err(Refused::new(say!("expected a list, not {found}")))
        }
        (Count::Implicit, value) => {
            let begin = out.len();
            item(schema, message, index, value, out, left).map(|()| drop_zero(this, begin, out))
        }
        _ => item(schema, message, index, value, out, left),
    }
}

/// Whether null is one of its values.
fn is_any(schema: &Schema, field: &Field) -> bool {
    matches!(field.ty, Type::Message(at) if schema.at(at).shape == Shape::Any)
}

/// Removes a field, written from `begin` on, that equals its default.
pub(super) fn drop_zero(field: &Field, begin: usize, out: &mut Vec<u8>) {
    // Of an empty text only its length is written, which is 0 as well.
    let is_zero = out[begin + tag_bytes(field)..].iter().all(|byte| *byte == 0);
    if field.count == Count::Implicit && is_zero {
        out.truncate(begin);
    }
}

fn tag_bytes(field: &Field) -> usize {
    match field.number {
        0..16 => 1,
        16..2_048 => 2,
        2_048..262_144 => 3,
        262_144..33_554_432 => 4,
        _ => 5,
    }
}

fn entry(
    schema: &Schema,
    field: &Field,
    key: &Arc<str>,
    value: &Value,
    out: &mut Vec<u8>,
    left: usize,
) -> Written {
    let Some(begin) = begin_entry(schema, field, key, out)? else { return Ok(()) };
    let Type::Message(entry) = field.ty else { return Ok(()) };
    item(schema, entry, 1, value, out, left)?;
    end_part(begin, out);
    Ok(())
}

/// Starts an entry of a map with its key.
pub(super) fn begin_entry(
    schema: &Schema,
    field: &Field,
    key: &Arc<str>,
    out: &mut Vec<u8>,
) -> Result<Option<usize>, Refused> {
    let Type::Message(entry) = field.ty else { return Ok(None) };
    write_tag(field.number, 2, out);
    let begin = begin_part(out);
    item(schema, entry, 0, &Value::Text(key.clone()), out, DEPTH_MAX)?;
    Ok(Some(begin))
}

/// Appends one item with its tag.
pub(super) fn item(
    schema: &Schema,
    message: u32,
    index: usize,
    value: &Value,
    out: &mut Vec<u8>,
    left: usize,
) -> Written {
    let field = &schema.at(message).fields[index];
    if value.is_null() && !is_any(schema, field) {
        return Err(Refused::new(say!("null cannot be in a list or a map")));
    }
    let wire_type = match field.ty {
        Type::Scalar(scalar) => scalar.wire_type(),
        Type::Enum(_) => 0,
        _ => 2,
    };
    write_tag(field.number, wire_type, out);
    if wire_type != 2 {
        number(schema, field, value)?.write(out);
        return Ok(());
    }
    let begin = begin_part(out);
    match field.ty {
        Type::Text => coerce::text(value, out).map_err(Refused::new)?,
        Type::Bytes => bytes(value, out)?,
        Type::Message(inner) => self::message(schema, inner, value, out, left)?,
        _ => return Err(Refused::new(say!("protobuf groups are not supported"))),
    }
    end_part(begin, out);
    Ok(())
}

/// A number without its tag.
pub(super) fn number(schema: &Schema, field: &Field, value: &Value) -> Result<Raw, Refused> {
    match field.ty {
        Type::Scalar(scalar) => scalar.raw(value, &|_| None).map_err(Refused::new),
        Type::Enum(at) => {
            let names = schema.enumeration(at);
            let raw = super::wire::Scalar::Int32.raw(value, &|text| names.number(text));
            raw.map_err(|reason| refused_enum(names, value, reason))
        }
        _ => Err(Refused::new(say!("expected a number"))),
    }
}

pub(super) fn refused_enum(
    names: &super::schema::Enumeration,
    value: &Value,
    reason: Said,
) -> Refused {
    let Value::Text(text) = value else { return Refused::new(reason) };
    let known = names.values.iter().map(|(name, _)| &**name);
    let help = match did_you_mean(text, known.clone()) {
        Some(near) => say!("did you mean `{near}`? available: {}", listed(known)),
        None => say!("available: {}", listed(known)),
    };
    let reason = say!("`{}` is not a value of `{}`", coerce::shortened(text), names.name);
    Refused { help, ..Refused::new(reason) }
}

/// Appends bytes; text is decoded as base64.
fn bytes(value: &Value, out: &mut Vec<u8>) -> Written {
    let text = match value {
        Value::Bytes(bytes) => {
            out.extend_from_slice(bytes);
            return Ok(());
        }
        Value::Text(text) => text,
        other => {
            let found = other.type_name();
            let reason = say!("expected bytes as base64, not {found}");
            return Err(Refused::new(reason));
        }
    };
    let engine = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    engine.decode_vec(text.as_bytes(), out).map_err(|_| {
        let shown = coerce::shortened(text);
        Refused::new(say!("expected bytes as base64, not the text `{shown}`"))
    })
}

/// Appends the content of a `google.protobuf.Value`.
pub(super) fn json(value: &Value, out: &mut Vec<u8>, left: usize) -> Written {
    let Some(left) = left.checked_sub(1) else {
        return Err(too_deep());
    };
    match value {
        Value::Null => out.extend_from_slice(&[1 << 3, 0]),
        Value::Bool(value) => out.extend_from_slice(&[4 << 3, u8::from(*value)]),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => {
            let number = value.as_f64().filter(|number| number.is_finite());
            let Some(number) = number else {
                return Err(Refused::new(say!("JSON cannot represent this number")));
            };
            write_tag(2, 1, out);
            Raw::Fixed64(number.to_bits()).write(out);
        }
        Value::Text(text) => write_bytes(3, text.as_bytes(), out),
        Value::Bytes(bytes) => {
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            write_bytes(3, text.as_bytes(), out);
        }
        Value::Map(entries) => {
            write_tag(5, 2, out);
            let begin = begin_part(out);
            structure(entries, out, left)?;
            end_part(begin, out);
        }
        Value::List(items) => {
            write_tag(6, 2, out);
            let begin = begin_part(out);
            list(items, out, left)?;
            end_part(begin, out);
        }
    }
    Ok(())
}

fn structure(entries: &[(Arc<str>, Value)], out: &mut Vec<u8>, left: usize) -> Written {
    for (key, value) in entries {
        write_tag(1, 2, out);
        let begin = begin_part(out);
        write_bytes(1, key.as_bytes(), out);
        write_tag(2, 2, out);
        let content = begin_part(out);
        json(value, out, left).map_err(|refused| refused.within(key))?;
        end_part(content, out);
        end_part(begin, out);
    }
    Ok(())
}

fn list(items: &[Value], out: &mut Vec<u8>, left: usize) -> Written {
    for (at, value) in items.iter().enumerate() {
        write_tag(1, 2, out);
        let begin = begin_part(out);
        json(value, out, left).map_err(|refused| refused.at(at))?;
        end_part(begin, out);
    }
    Ok(())
}
