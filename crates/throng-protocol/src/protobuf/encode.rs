//! Writes a [`Template`] for one user: constant parts unchanged, leaves by their types. Allocates
//! nothing beyond the buffer, except for values that are lists or maps.

use throng_expression::Value;

use super::leaves::{Op, Target};
use super::schema::{Count, Schema, Shape, Type};
use super::wire::{Scalar, begin_part, end_part, write_tag};
use super::write::{self, Input, Writer};
use super::{DEPTH_MAX, EncodeError, Refused, Template};

/// Returns the value of a leaf, or appends it as text.
type Leaves<'l, E> = &'l mut dyn FnMut(u16, &mut Vec<u8>) -> Result<Option<Value>, E>;

pub(super) fn encode<E>(
    schema: &Schema,
    template: &Template,
    leaf: Leaves<'_, E>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError<E>> {
    part(schema, template, &mut template.ops.iter(), leaf, out)
}

/// Writes up to the end of a part. Parts are nested no deeper than messages may be.
fn part<E>(
    schema: &Schema,
    template: &Template,
    ops: &mut std::slice::Iter<'_, Op>,
    leaf: Leaves<'_, E>,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError<E>> {
    while let Some(op) = ops.next() {
        match op {
            Op::Bytes { from, until } => {
                out.extend_from_slice(&template.bytes[*from as usize..*until as usize]);
            }
            Op::Open => {
                let begin = begin_part(out);
                part(schema, template, ops, leaf, out)?;
                end_part(begin, out);
            }
            Op::Close => break,
            Op::Leaf { leaf: number, target, path } => {
                write_leaf(schema, *number, *target, leaf, out).map_err(|wrong| match wrong {
                    Wrong::Leaf(error) => EncodeError::Leaf(error),
                    Wrong::Refused(wrong) => refuse(template, *path, wrong),
                })?;
            }
        }
    }
    Ok(())
}

enum Wrong<E> {
    Leaf(E),
    Refused(Refused),
}

fn refuse<E>(template: &Template, path: u16, refused: Refused) -> EncodeError<E> {
    let mut field = template.paths[usize::from(path)].to_string();
    for name in &refused.path {
        if !field.is_empty() {
            field.push('.');
        }
        field.push_str(name);
    }
    EncodeError::Value { field, reason: refused.reason }
}

fn write_leaf<E>(
    schema: &Schema,
    leaf: u16,
    target: Target,
    leaves: Leaves<'_, E>,
    out: &mut Vec<u8>,
) -> Result<(), Wrong<E>> {
    let begin = out.len();
    if let Some(result) = text_in_place(schema, leaf, target, leaves, out) {
        return result;
    }
    let value = match leaves(leaf, out).map_err(Wrong::Leaf)? {
        Some(value) => {
            out.truncate(begin);
            value
        }
        None => match number_of_text(schema, target, begin, out) {
            Some(result) => return result.map_err(Wrong::Refused),
            None => {
                let text = String::from_utf8_lossy(&out[begin..]).into_owned();
                out.truncate(begin);
                Value::from(text)
            }
        },
    };
    write_value(schema, target, &value, out).map_err(Wrong::Refused)
}

fn write_value(
    schema: &Schema,
    target: Target,
    value: &Value,
    out: &mut Vec<u8>,
) -> write::Written {
    let mut writer = Writer { schema, out, leaves: None };
    let input = Input::Value(value);
    match target {
        Target::Field((message, index)) => writer.field(message, index.into(), input, DEPTH_MAX),
        Target::Item((message, index)) => writer.item(message, index.into(), input, DEPTH_MAX),
        Target::Number(_) if value.is_null() => {
            Err(Refused::new(say!("null cannot be in a list or a map")))
        }
        Target::Number((message, index)) => writer.number(message, index.into(), input),
        Target::Message(message) if value.is_null() && schema.at(message).shape != Shape::Any => {
            let reason = say!("expected `{}`, not null", schema.at(message).name);
            Err(Refused::new(reason))
        }
        Target::Message(message) => writer.message(message, input, DEPTH_MAX),
    }
}

/// Writes a text field in place.
fn text_in_place<E>(
    schema: &Schema,
    leaf: u16,
    target: Target,
    leaves: Leaves<'_, E>,
    out: &mut Vec<u8>,
) -> Option<Result<(), Wrong<E>>> {
    let (Target::Field((message, index)) | Target::Item((message, index))) = target else {
        return None;
    };
    let field = &schema.at(message).fields[usize::from(index)];
    let is_list = matches!(field.count, Count::Repeated | Count::Map);
    if field.ty != Type::Text || is_list && matches!(target, Target::Field(_)) {
        return None;
    }
    let begin = out.len();
    write_tag(field.number, 2, out);
    let content = begin_part(out);
    Some(match leaves(leaf, out) {
        Err(error) => Err(Wrong::Leaf(error)),
        Ok(Some(value)) => {
            out.truncate(begin);
            write_value(schema, target, &value, out).map_err(Wrong::Refused)
        }
        Ok(None) if std::str::from_utf8(&out[content..]).is_err() => {
            let reason = say!("expected text, but these bytes are not UTF-8");
            Err(Wrong::Refused(Refused::new(reason)))
        }
        Ok(None) => {
            end_part(content, out);
            if matches!(target, Target::Field(_)) {
                write::drop_zero(field, begin, out);
            }
            Ok(())
        }
    })
}

/// Converts the text after `begin` to a number field.
fn number_of_text(
    schema: &Schema,
    target: Target,
    begin: usize,
    out: &mut Vec<u8>,
) -> Option<write::Written> {
    let (place, is_field) = match target {
        Target::Field(place) => (place, true),
        Target::Item(place) | Target::Number(place) => (place, false),
        _ => return None,
    };
    let field = &schema.at(place.0).fields[usize::from(place.1)];
    let scalar = match field.ty {
        Type::Scalar(scalar) if field.count == Count::Implicit || !is_field => scalar,
        _ => return None,
    };
    let text = std::str::from_utf8(&out[begin..]).ok()?;
    let raw = match scalar {
        Scalar::Bool | Scalar::Double | Scalar::Float => return None,
        scalar => scalar.raw_of_text(text, &|_| None),
    };
    out.truncate(begin);
    Some(raw.map_err(Refused::new).map(|raw| {
        if matches!(target, Target::Number(_)) {
            raw.write(out);
        } else if !(is_field && raw.is_zero()) {
            write_tag(field.number, scalar.wire_type(), out);
            raw.write(out);
        }
    }))
}
