//! Messages as values, mapped as in proto3 JSON, except that bytes stay bytes: checks complete
//! messages without allocating, and creates values only on request.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use throng_expression::Value;

use super::path::Step;
use super::schema::{Count, Field, Message, Schema, Shape, Type, is_many};
use super::well_known;
use super::wire::{Fields, Scalar, Wire, Wrong};
use super::write::TYPE_KEY;
use super::{DEPTH_MAX, VALUES_MAX};

/// Checks that `bytes` are the message.
pub(super) fn check(schema: &Schema, message: u32, bytes: &[u8], left: usize) -> Result<(), Wrong> {
    let Some(left) = left.checked_sub(1) else {
        let reason = say!("protobuf messages are nested more than {DEPTH_MAX} levels deep");
        return Err(Wrong { position: 0, reason });
    };
    let message = schema.at(message);
    let mut fields = Fields::new(bytes);
    let mut seen = 0u64;
    while let Some((start, number, wire)) = fields.next()? {
        let Some(index) = message.index_of(number) else { continue };
        seen |= 1u64.checked_shl(index as u32).unwrap_or(0);
        check_field(schema, &message.fields[index], start, wire, left)?;
    }
    let is_missing = |(index, field): &(usize, &Field)| {
        field.count == Count::Required
            && match index {
                0..64 => seen >> index & 1 == 0,
                _ => !occurs(field.number, bytes),
            }
    };
    match message.fields.iter().enumerate().find(is_missing) {
        Some((_, field)) => {
            let reason =
                say!("the required field `{}` of `{}` is missing", field.name, message.name);
            Err(Wrong { position: bytes.len(), reason })
        }
        None => Ok(()),
    }
}

fn occurs(wanted: u32, bytes: &[u8]) -> bool {
    let mut fields = Fields::new(bytes);
    std::iter::from_fn(|| fields.next().ok().flatten()).any(|(_, number, _)| number == wanted)
}

fn check_field(
    schema: &Schema,
    field: &Field,
    start: usize,
    wire: Wire<'_>,
    left: usize,
) -> Result<(), Wrong> {
    let name = &field.name;
    let is_list = matches!(field.count, Count::Packed | Count::Repeated);
    match (field.ty, wire) {
        (Type::Text, Wire::Bytes { start, bytes }) => match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(error) => {
                let reason = say!("`{name}` is not UTF-8");
                Err(Wrong { position: start + error.valid_up_to(), reason })
            }
        },
        (Type::Bytes, Wire::Bytes { .. }) | (Type::Group, Wire::Group) => Ok(()),
        (Type::Message(inner), Wire::Bytes { start, bytes }) => {
            check(schema, inner, bytes, left).map_err(|wrong| wrong.from(start))
        }
        (ty, Wire::Bytes { start, bytes }) if is_list && scalar(ty).is_some() => {
            let scalar = scalar(ty).unwrap_or(Scalar::Int32);
            scalar.packed(bytes, &mut |_| {}).map_err(|wrong| wrong.from(start))
        }
        (ty, wire) if scalar(ty).is_some_and(|scalar| scalar.read(wire).is_some()) => Ok(()),
        _ => {
            let reason = say!("`{name}` is not encoded as its type requires");
            Err(Wrong { position: start, reason })
        }
    }
}

fn scalar(ty: Type) -> Option<Scalar> {
    match ty {
        Type::Scalar(scalar) => Some(scalar),
        Type::Enum(_) => Some(Scalar::Int32),
        _ => None,
    }
}

/// The value at `steps`.
pub(super) fn find(
    schema: &Schema,
    message: u32,
    bytes: &[u8],
    steps: &[Step],
) -> Result<Option<Value>, Wrong> {
    let mut reader = MessageReader { schema, values_left: VALUES_MAX };
    reader.find(message, bytes, steps, DEPTH_MAX)
}

/// The whole message.
pub(super) fn whole(schema: &Schema, message: u32, bytes: &[u8]) -> Result<Value, Wrong> {
    MessageReader { schema, values_left: VALUES_MAX }.message(message, bytes, DEPTH_MAX)
}

struct MessageReader<'s> {
    schema: &'s Schema,
    values_left: usize,
}

impl<'s> MessageReader<'s> {
    fn find(
        &mut self,
        message: u32,
        bytes: &[u8],
        steps: &[Step],
        left: usize,
    ) -> Result<Option<Value>, Wrong> {
        let left = deeper(left)?;
        let this = self.schema.at(message);
        let (index, rest) = match steps {
            [Step::Field(index), rest @ ..] if this.shape == Shape::Plain => {
                (usize::from(*index), rest)
            }
            steps => {
                let value = self.message(message, bytes, left + 1)?;
                return Ok(part(value, steps));
            }
        };
        let field = &this.fields[index];
        match (field.count, field.ty, rest) {
            (Count::Repeated, Type::Message(inner), [Step::Index(at), rest @ ..]) => {
                match occurrences(bytes, field.number).nth(*at as usize) {
                    Some(bytes) => self.find(inner, bytes, rest, left),
                    None => Ok(None),
                }
            }
            (Count::Map, Type::Message(entry), [Step::Key(key), rest @ ..]) => {
                self.find_entry(field, entry, bytes, key, rest, left)
            }
            (count, Type::Message(inner), [_, ..]) if !is_many(count) => {
                match merged(this, field, bytes) {
                    Some(bytes) => self.find(inner, &bytes, rest, left),
                    None => Ok(None),
                }
            }
            _ => Ok(part(self.field(message, index, bytes, left)?, rest)),
        }
    }

    fn find_entry(
        &mut self,
        field: &Field,
        entry: u32,
        bytes: &[u8],
        key: &str,
        rest: &[Step],
        left: usize,
    ) -> Result<Option<Value>, Wrong> {
        let mut found = None;
        for bytes in occurrences(bytes, field.number) {
            self.take(1)?;
            if &*self.field(entry, 0, bytes, left)?.to_text() == key {
                found = Some(bytes);
            }
        }
        let Some(bytes) = found else { return Ok(None) };
        let value = Step::Field(1);
        let steps: Vec<Step> = std::iter::once(value).chain(rest.iter().cloned()).collect();
        // A message that is missing in an entry has no fields.
        match self.schema.at(entry).fields[1].ty {
            Type::Message(inner) if !has(bytes, 2) => self.find(inner, &[], rest, left),
            _ => self.find(entry, bytes, &steps, left),
        }
    }

    /// One field of a message; its default if it is missing.
    fn field(
        &mut self,
        message: u32,
        index: usize,
        bytes: &[u8],
        left: usize,
    ) -> Result<Value, Wrong> {
        let this = self.schema.at(message);
        let field = &this.fields[index];
        let mut slot = Slot::default();
        let mut fields = Fields::new(bytes);
        while let Some((_, number, wire)) = fields.next()? {
            if number == field.number {
                self.add(field, wire, &mut slot, left)?;
            } else {
                slot.is_cleared_by(this, field, number);
            }
        }
        self.close(field, slot, left)
    }

    /// The value of a message, with all its fields.
    fn message(&mut self, message: u32, bytes: &[u8], left: usize) -> Result<Value, Wrong> {
        let left = deeper(left)?;
        let this = self.schema.at(message);
        self.take(1 + this.fields.len())?;
        let mut chosen: Vec<Option<usize>> = vec![None; this.oneofs.len()];
        let mut slots: Vec<Slot<'_>> = Vec::new();
        slots.resize_with(this.fields.len(), Slot::default);
        let mut fields = Fields::new(bytes);
        while let Some((_, number, wire)) = fields.next()? {
            let Some(index) = this.index_of(number) else { continue };
            let field = &this.fields[index];
            self.add(field, wire, &mut slots[index], left)?;
            let Some(oneof) = field.oneof else { continue };
            // The last member of a oneof replaces the others.
            match chosen[usize::from(oneof)].replace(index) {
                Some(other) if other != index => slots[other] = Slot::default(),
                _ => {}
            }
        }
        let mut values = Vec::with_capacity(slots.len());
        for (field, slot) in this.fields.iter().zip(slots) {
            values.push(self.close(field, slot, left)?);
        }
        self.shaped(this, values, left)
    }

    /// Adds one occurrence of a field.
    fn add<'b>(
        &mut self,
        field: &Field,
        wire: Wire<'b>,
        slot: &mut Slot<'b>,
        left: usize,
    ) -> Result<(), Wrong> {
        let is_many = is_many(field.count);
        if is_many {
            self.take(1)?;
        }
        let value = match (field.ty, wire) {
            (Type::Text, Wire::Bytes { bytes, .. }) => {
                Value::from(&*String::from_utf8_lossy(bytes))
            }
            (Type::Bytes, Wire::Bytes { bytes, .. }) => Value::from(bytes),
            (Type::Message(inner), Wire::Bytes { bytes, .. }) if is_many => {
                self.item(field, inner, bytes, left)?
            }
            (Type::Message(_), Wire::Bytes { bytes, .. }) => {
                slot.merge(bytes);
                return Ok(());
            }
            (ty, Wire::Bytes { bytes, .. }) => {
                return self.packed(ty, bytes, slot);
            }
            (ty, wire) => match scalar(ty).and_then(|scalar| scalar.read(wire)) {
                Some(value) => self.named(ty, value),
                None => return Ok(()),
            },
        };
        if !is_many {
            slot.values.clear();
        }
        slot.values.push(value);
        Ok(())
    }

    fn packed(&mut self, ty: Type, bytes: &[u8], slot: &mut Slot<'_>) -> Result<(), Wrong> {
        let Some(scalar) = scalar(ty) else { return Ok(()) };
        let (mut count, most) = (0, self.values_left);
        let schema = self.schema;
        scalar.packed(bytes, &mut |value| {
            count += 1;
            if count <= most {
                slot.values.push(named(schema, ty, value));
            }
        })?;
        self.values_left = most.checked_sub(count).ok_or_else(too_many)?;
        Ok(())
    }

    /// An item that is a message; for a map, an entry as a list of its key and its value.
    fn item(
        &mut self,
        field: &Field,
        inner: u32,
        bytes: &[u8],
        left: usize,
    ) -> Result<Value, Wrong> {
        if field.count != Count::Map {
            return self.message(inner, bytes, left);
        }
        let key = self.field(inner, 0, bytes, left)?;
        let value = match self.schema.at(inner).fields[1].ty {
            Type::Message(message) if !has(bytes, 2) => self.message(message, &[], left)?,
            _ => self.field(inner, 1, bytes, left)?,
        };
        Ok(Value::from(vec![key, value]))
    }

    fn named(&self, ty: Type, value: Value) -> Value {
        named(self.schema, ty, value)
    }

    /// Combines all occurrences of a field.
    fn close(&mut self, field: &Field, mut slot: Slot<'_>, left: usize) -> Result<Value, Wrong> {
        match (field.count, field.ty, slot.bytes) {
            (_, Type::Message(inner), Some(bytes)) => self.message(inner, &bytes, left),
            (Count::Map, ..) if !slot.values.is_empty() => Ok(map(&slot.values)),
            (Count::Packed | Count::Repeated, ..) if !slot.values.is_empty() => {
                Ok(Value::from(slot.values))
            }
            _ => Ok(slot.values.pop().unwrap_or_else(|| field.default.clone())),
        }
    }

    /// The value of a message with these fields, in order.
    fn shaped(
        &mut self,
        message: &Message,
        values: Vec<Value>,
        left: usize,
    ) -> Result<Value, Wrong> {
        let whole = |at: usize| values.get(at).and_then(Value::as_i64).unwrap_or(0);
        let of = |text: Option<String>| text.map(Value::from);
        let shaped = match message.shape {
            Shape::Plain => None,
            Shape::Timestamp => of(well_known::timestamp_text(whole(0), whole(1) as i32)),
            Shape::Duration => of(well_known::duration_text(whole(0), whole(1) as i32)),
            Shape::FieldMask => values.first().and_then(Value::as_list).map(mask),
            Shape::Sole => values.first().cloned(),
            // One of its fields is set, or it is null.
            Shape::Any => {
                let found = values.iter().skip(1).find(|value| !value.is_null());
                Some(found.cloned().unwrap_or_default())
            }
            Shape::Packed => return self.unpacked(message, values, left),
        };
        Ok(shaped.unwrap_or_else(|| named_values(message, values)))
    }

    /// The message in an `Any`; unchanged if its type is unknown.
    fn unpacked(
        &mut self,
        message: &Message,
        values: Vec<Value>,
        left: usize,
    ) -> Result<Value, Wrong> {
        let [Value::Text(url), Value::Bytes(bytes)] = &values[..] else {
            return Ok(named_values(message, values));
        };
        let Some(inner) = self.schema.of_type_url(url) else {
            return Ok(named_values(message, values));
        };
        check(self.schema, inner, bytes, left)?;
        let value = self.message(inner, bytes, left)?;
        let mut entries: Vec<(Arc<str>, Value)> = vec![(TYPE_KEY.into(), Value::Text(url.clone()))];
        match (self.schema.at(inner).shape, value) {
            (Shape::Plain, Value::Map(inner)) => entries.extend(inner.iter().cloned()),
            (_, value) => entries.push(("value".into(), value)),
        }
        Ok(Value::from(entries))
    }

    fn take(&mut self, values: usize) -> Result<(), Wrong> {
        self.values_left = self.values_left.checked_sub(values).ok_or_else(too_many)?;
        Ok(())
    }
}

/// The occurrences of a field so far.
#[derive(Default)]
struct Slot<'b> {
    values: Vec<Value>,
    /// For a message that is not an item: its concatenated occurrences.
    bytes: Option<Cow<'b, [u8]>>,
}

impl<'b> Slot<'b> {
    fn merge(&mut self, bytes: &'b [u8]) {
        match &mut self.bytes {
            None => self.bytes = Some(Cow::Borrowed(bytes)),
            Some(all) => all.to_mut().extend_from_slice(bytes),
        }
    }

    /// Another field of its oneof replaces it.
    fn is_cleared_by(&mut self, message: &Message, field: &Field, number: u32) {
        if field.oneof.is_none() {
            return;
        }
        let other = message.index_of(number).map(|index| &message.fields[index]);
        let is_other = |other: &Field| other.number != field.number && other.oneof == field.oneof;
        if other.is_some_and(is_other) {
            *self = Slot::default();
        }
    }
}

fn deeper(left: usize) -> Result<usize, Wrong> {
    left.checked_sub(1).ok_or_else(|| {
        let reason = say!("protobuf messages are nested more than {DEPTH_MAX} levels deep");
        Wrong { position: 0, reason }
    })
}

fn too_many() -> Wrong {
    let reason = say!("it has more than {VALUES_MAX} values");
    Wrong { position: 0, reason }
}

fn named(schema: &Schema, ty: Type, value: Value) -> Value {
    match (ty, &value) {
        (Type::Enum(at), Value::Int(number)) => schema.enumeration(at).value(*number as i32),
        _ => value,
    }
}

fn named_values(message: &Message, values: Vec<Value>) -> Value {
    let all = message.fields.iter().zip(values);
    let named = all.filter(|(field, _)| field.ty != Type::Group);
    let entries = named.map(|(field, value)| (field.name.clone(), value));
    Value::from(entries.collect::<Vec<_>>())
}

/// Converts lists of a key and a value to a map; the last value of a key counts.
fn map(items: &[Value]) -> Value {
    let mut entries: Vec<(Arc<str>, Value)> = Vec::with_capacity(items.len());
    let mut places: HashMap<Arc<str>, usize> = HashMap::with_capacity(items.len());
    for item in items {
        let [key, value] = item.as_list().unwrap_or_default() else { continue };
        let key = key.to_text();
        match places.get(&key) {
            Some(at) => entries[*at].1 = value.clone(),
            None => {
                places.insert(key.clone(), entries.len());
                entries.push((key, value.clone()));
            }
        }
    }
    Value::from(entries)
}

fn mask(paths: &[Value]) -> Value {
    let paths = paths.iter().filter_map(Value::as_text).map(well_known::camel_case);
    Value::from(paths.collect::<Vec<_>>().join(","))
}

/// The part of a value at names and indices.
fn part(value: Value, steps: &[Step]) -> Option<Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key).cloned(),
        Step::Index(index) => value.index(*index as usize).cloned(),
        Step::Field(_) => None,
    })
}

/// All occurrences of a length-delimited field.
fn occurrences(bytes: &[u8], wanted: u32) -> impl Iterator<Item = &[u8]> {
    let mut fields = Fields::new(bytes);
    let all = std::iter::from_fn(move || fields.next().ok().flatten());
    all.filter_map(move |(_, number, wire)| match wire {
        Wire::Bytes { bytes, .. } if number == wanted => Some(bytes),
        _ => None,
    })
}

/// A message in several parts is their concatenation.
fn merged<'b>(message: &Message, field: &Field, bytes: &'b [u8]) -> Option<Cow<'b, [u8]>> {
    let mut slot = Slot::default();
    let mut fields = Fields::new(bytes);
    while let Ok(Some((_, number, wire))) = fields.next() {
        match wire {
            Wire::Bytes { bytes, .. } if number == field.number => slot.merge(bytes),
            _ => slot.is_cleared_by(message, field, number),
        }
    }
    slot.bytes
}

fn has(bytes: &[u8], number: u32) -> bool {
    occurrences(bytes, number).next().is_some()
}
