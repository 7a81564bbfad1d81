//! Encodes values as messages, mapped as in proto3 JSON (protobuf.dev, "ProtoJSON Format"): field
//! names as in the file or in camel case, 64-bit numbers also as text, bytes as base64, enums by
//! name. What a scenario gives is encoded in the same way, with its leaves left open.

use std::fmt::Display;
use std::sync::Arc;

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{self, GeneralPurpose};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use throng_base::diagnostic::did_you_mean;
use throng_expression::Value;

use throng_base::Said;

use super::leaves::{Leaves, Target};
use super::schema::{Count, Field, Message, Schema, Shape, Type, is_many, listed};
use super::well_known;
use super::wire::{Raw, Scalar, begin_part, end_part, write_bytes, write_tag};
use super::{DEPTH_MAX, Given, Refused};
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

/// What is written.
#[derive(Clone, Copy)]
pub(super) enum Input<'g> {
    Value(&'g Value),
    Leaf(u16),
    Fields(&'g [(String, Given)]),
    Items(&'g [Given]),
}

impl<'g> Input<'g> {
    pub(super) fn of(given: &'g Given) -> Input<'g> {
        match given {
            Given::Literal(value) => Input::Value(value),
            Given::Leaf(leaf) => Input::Leaf(*leaf),
            Given::Fields(fields) => Input::Fields(fields),
            Given::Items(items) => Input::Items(items),
        }
    }

    fn is_null(self) -> bool {
        matches!(self, Input::Value(Value::Null))
    }

    /// A value of its type.
    fn value(self) -> Value {
        match self {
            Input::Value(value) => value.clone(),
            Input::Items(_) => Value::List(Arc::default()),
            Input::Fields(_) | Input::Leaf(_) => Value::Map(Arc::default()),
        }
    }

    fn type_name(self) -> Said {
        self.value().type_name()
    }

    fn entries(self) -> Option<impl Iterator<Item = (&'g str, Input<'g>)>> {
        let (values, given) = match self {
            Input::Value(Value::Map(entries)) => (&**entries, &[][..]),
            Input::Fields(fields) => (&[][..], fields),
            _ => return None,
        };
        let values = values.iter().map(|(name, value)| (&**name, Input::Value(value)));
        Some(values.chain(given.iter().map(|(name, given)| (name.as_str(), Input::of(given)))))
    }

    fn entry(self, name: &str) -> Option<Input<'g>> {
        self.entries()?.find(|(own, _)| *own == name).map(|(_, input)| input)
    }

    fn items(self) -> Option<impl ExactSizeIterator<Item = Input<'g>>> {
        let (values, given) = match self {
            Input::Value(Value::List(items)) => (&**items, &[][..]),
            Input::Items(items) => (&[][..], items),
            _ => return None,
        };
        let count = values.len() + given.len();
        Some(
            (0..count).map(|at| values.get(at).map_or_else(|| Input::of(&given[at]), Input::Value)),
        )
    }
}

/// Appends to a message.
pub(super) struct Writer<'w> {
    pub(super) schema: &'w Schema,
    pub(super) out: &'w mut Vec<u8>,
    /// Where leaves are noted; a value has none.
    pub(super) leaves: Option<&'w mut Leaves>,
}

impl Writer<'_> {
    fn leaf(&mut self, leaf: u16, target: Target) -> Written {
        if let Some(leaves) = &mut self.leaves {
            leaves.add(leaf, target, self.out.len());
        }
        Ok(())
    }

    fn within(&mut self, name: impl Display, inner: impl FnOnce(&mut Self) -> Written) -> Written {
        if let Some(leaves) = &mut self.leaves {
            leaves.here.push(name.to_string());
        }
        let result = inner(self);
        if let Some(leaves) = &mut self.leaves {
            leaves.here.pop();
        }
        result.map_err(|refused| refused.within(&name.to_string()))
    }

    /// A part with its length before it, after the tag of `number`.
    fn part(&mut self, number: u32, inner: impl FnOnce(&mut Self) -> Written) -> Written {
        write_tag(number, 2, self.out);
        let begin = begin_part(self.out);
        if let Some(leaves) = &mut self.leaves {
            leaves.open(begin);
        }
        inner(self)?;
        let written = self.out.len();
        if !self.leaves.as_mut().is_some_and(|leaves| leaves.close(begin, written)) {
            end_part(begin, self.out);
        }
        Ok(())
    }

    /// The fields of a message.
    pub(super) fn message(&mut self, message: u32, input: Input<'_>, left: usize) -> Written {
        let this = self.schema.at(message);
        // A value of any type is as deep as its list or map.
        let Some(left) = left.checked_sub(usize::from(this.shape != Shape::Any)) else {
            let reason = say!("protobuf messages are nested more than {DEPTH_MAX} levels deep");
            return Err(Refused::new(reason));
        };
        match (this.shape, input) {
            (_, Input::Leaf(leaf)) => return self.leaf(leaf, Target::Message(message)),
            (Shape::Timestamp, Input::Value(Value::Text(text))) => {
                self.moment(well_known::timestamp(text).map_err(Refused::new)?);
            }
            (Shape::Duration, Input::Value(Value::Text(text))) => {
                self.moment(well_known::duration(text).map_err(Refused::new)?);
            }
            (Shape::FieldMask, Input::Value(Value::Text(text))) => {
                for path in text.split(',').filter(|path| !path.is_empty()) {
                    write_bytes(1, well_known::snake_case(path).as_bytes(), self.out);
                }
            }
            (Shape::Any, input) => return self.any(message, input, left),
            (Shape::Sole, input)
                if this.fields[0].count == Count::Map || input.entries().is_none() =>
            {
                return self.field(message, 0, input, left);
            }
            (Shape::Packed, input) => match input.entry(TYPE_KEY) {
                Some(Input::Value(url)) => {
                    return self.packed(url.as_text().unwrap_or_default(), input, left);
                }
                Some(_) => {
                    let reason = say!("the type of an `Any` must be the same for all users");
                    return Err(Refused::new(reason).within(TYPE_KEY));
                }
                None => return self.fields(message, input, left),
            },
            (_, input) => return self.fields(message, input, left),
        }
        Ok(())
    }

    fn moment(&mut self, (seconds, nanos): (i64, i32)) {
        for (number, part) in [(1, seconds as u64), (2, i64::from(nanos) as u64)] {
            if part != 0 {
                write_tag(number, 0, self.out);
                Raw::Varint(part).write(self.out);
            }
        }
    }

    fn fields(&mut self, message: u32, input: Input<'_>, left: usize) -> Written {
        let this = self.schema.at(message);
        let Some(entries) = input.entries() else {
            let found = input.type_name();
            return Err(Refused::new(match this.shape {
                Shape::Timestamp => {
                    say!("expected a time such as `2026-01-31T10:00:00Z`, not {found}")
                }
                Shape::Duration => say!("expected a duration such as `1.5s`, not {found}"),
                _ => say!("expected a map of fields, not {found}"),
            }));
        };
        let mut seen = GivenFields::default();
        for (name, input) in entries.filter(|(name, _)| *name != TYPE_KEY) {
            let index = field_of(this, name)?;
            if !input.is_null() {
                seen.field(this, index, name)?;
            }
            self.within(name, |this| this.field(message, index, input, left))?;
        }
        seen.finish(this)
    }

    /// An `Any`: its type, and the message as bytes.
    fn packed(&mut self, url: &str, input: Input<'_>, left: usize) -> Written {
        let inner = self.schema.of_type_url(url).ok_or_else(|| {
            let reason = say!("there is no message `{}`", coerce::shortened(url));
            let help = say!("write `type.googleapis.com/package.Message`");
            Refused { help, ..Refused::new(reason).within(TYPE_KEY) }
        })?;
        write_bytes(1, url.as_bytes(), self.out);
        self.part(2, |this| match (this.schema.at(inner).shape, input.entry("value")) {
            (Shape::Plain, _) => this.fields(inner, input, left),
            (_, Some(input)) => this.within("value", |this| this.message(inner, input, left)),
            (_, None) => Err(Refused::new(say!("`value` is missing next to `@type`"))),
        })
    }

    /// The content of a `google.protobuf.Value`: the field of its type.
    fn any(&mut self, message: u32, input: Input<'_>, left: usize) -> Written {
        let (index, input) = match input {
            Input::Value(Value::Null) => (0, Input::Value(&Value::Int(0))),
            Input::Value(Value::Text(_)) => (2, input),
            Input::Value(Value::Bytes(bytes)) => {
                let text = Value::from(general_purpose::STANDARD.encode(bytes));
                return self.item(message, 2, Input::Value(&text), left);
            }
            Input::Value(Value::Bool(_)) => (3, input),
            Input::Value(Value::Map(_)) | Input::Fields(_) | Input::Leaf(_) => (4, input),
            Input::Value(Value::List(_)) | Input::Items(_) => (5, input),
            Input::Value(number) if number.as_f64().is_some_and(f64::is_finite) => (1, input),
            Input::Value(_) => {
                return Err(Refused::new(say!("JSON cannot represent this number")));
            }
        };
        self.item(message, index, input, left)
    }

    /// A field with all its items. Null is omitted, and so is the default of a field without
    /// presence.
    pub(super) fn field(
        &mut self,
        message: u32,
        index: usize,
        input: Input<'_>,
        left: usize,
    ) -> Written {
        let field = &self.schema.at(message).fields[index];
        let is_null = input.is_null();
        match (field.count, input) {
            (_, Input::Leaf(leaf)) => self.leaf(leaf, Target::Field((message, index as u16))),
            (count, _) if is_null && (is_many(count) || !is_any(self.schema, field)) => Ok(()),
            (Count::Map, input) => {
                let found = || Refused::new(say!("expected a map, not {}", input.type_name()));
                let mut entries = input.entries().ok_or_else(found)?;
                entries.try_for_each(|(key, input)| {
                    self.within(key, |this| this.entry(field, key, input, left))
                })
            }
            (Count::Packed | Count::Repeated, input) => {
                let found = || Refused::new(say!("expected a list, not {}", input.type_name()));
                let items = input.items().ok_or_else(found)?;
                let is_empty = items.len() == 0;
                let mut items = items.enumerate();
                match field.count {
                    Count::Packed if is_empty => Ok(()),
                    Count::Packed => self.part(field.number, |this| {
                        items.try_for_each(|(at, input)| {
                            this.within(at, |this| this.number(message, index, input))
                        })
                    }),
                    _ => items.try_for_each(|(at, input)| {
                        self.within(at, |this| this.item(message, index, input, left))
                    }),
                }
            }
            (Count::Implicit, input) => {
                let begin = self.out.len();
                self.item(message, index, input, left)?;
                drop_zero(field, begin, self.out);
                Ok(())
            }
            (Count::Optional | Count::Required, input) => self.item(message, index, input, left),
        }
    }

    /// An entry of a map.
    fn entry(&mut self, field: &Field, key: &str, input: Input<'_>, left: usize) -> Written {
        let Type::Message(entry) = field.ty else { return Ok(()) };
        self.part(field.number, |this| {
            match this.schema.at(entry).fields[0].ty {
                Type::Scalar(scalar) => {
                    write_tag(1, scalar.wire_type(), this.out);
                    let raw = scalar.raw_of_text(key, &|_| None).map_err(Refused::new)?;
                    raw.write(this.out);
                }
                _ => write_bytes(1, key.as_bytes(), this.out),
            }
            this.item(entry, 1, input, left)
        })
    }

    /// One item with its tag.
    pub(super) fn item(
        &mut self,
        message: u32,
        index: usize,
        input: Input<'_>,
        left: usize,
    ) -> Written {
        let field = &self.schema.at(message).fields[index];
        if input.is_null() && !is_any(self.schema, field) {
            return Err(Refused::new(say!("null cannot be in a list or a map")));
        }
        let given;
        let value = match (input, field.ty) {
            (Input::Leaf(leaf), _) => {
                return self.leaf(leaf, Target::Item((message, index as u16)));
            }
            (input, Type::Message(inner)) => {
                return self.part(field.number, |this| this.message(inner, input, left));
            }
            (Input::Value(value), _) => value,
            (input, _) => {
                given = input.value();
                &given
            }
        };
        let wire_type = match field.ty {
            Type::Scalar(scalar) => scalar.wire_type(),
            Type::Enum(_) => 0,
            _ => 2,
        };
        write_tag(field.number, wire_type, self.out);
        if wire_type != 2 {
            number(self.schema, field, value)?.write(self.out);
            return Ok(());
        }
        let begin = begin_part(self.out);
        match field.ty {
            Type::Text => coerce::text(value, self.out).map_err(Refused::new)?,
            Type::Bytes => bytes(value, self.out)?,
            _ => return Err(Refused::new(say!("protobuf groups are not supported"))),
        }
        end_part(begin, self.out);
        Ok(())
    }

    /// A number of a packed field, without a tag.
    pub(super) fn number(&mut self, message: u32, index: usize, input: Input<'_>) -> Written {
        let field = &self.schema.at(message).fields[index];
        match input {
            Input::Leaf(leaf) => self.leaf(leaf, Target::Number((message, index as u16))),
            input => {
                number(self.schema, field, &input.value())?.write(self.out);
                Ok(())
            }
        }
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

/// A number without its tag.
fn number(schema: &Schema, field: &Field, value: &Value) -> Result<Raw, Refused> {
    let names = match field.ty {
        Type::Scalar(scalar) => return scalar.raw(value, &|_| None).map_err(Refused::new),
        Type::Enum(at) => schema.enumeration(at),
        _ => return Err(Refused::new(say!("expected a number"))),
    };
    let raw = Scalar::Int32.raw(value, &|text| names.number(text));
    raw.map_err(|reason| {
        let Value::Text(text) = value else { return Refused::new(reason) };
        let known = names.values.iter().map(|(name, _)| &**name);
        let help = match did_you_mean(text, known.clone()) {
            Some(near) => say!("did you mean `{near}`? available: {}", listed(known)),
            None => say!("available: {}", listed(known)),
        };
        let reason = say!("`{}` is not a value of `{}`", coerce::shortened(text), names.name);
        Refused { help, ..Refused::new(reason) }
    })
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

/// The oneof members and required fields that a message was given.
#[derive(Default)]
struct GivenFields {
    oneofs: Vec<(u16, usize)>,
    required: Vec<usize>,
}

impl GivenFields {
    /// Records a field that is given and not null.
    fn field(&mut self, message: &Message, index: usize, name: &str) -> Written {
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
    fn finish(&self, message: &Message) -> Written {
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
fn field_of(message: &Message, name: &str) -> Result<usize, Refused> {
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
