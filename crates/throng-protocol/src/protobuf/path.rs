//! Field paths, resolved once against the schema; inside values without a schema
//! (`google.protobuf.Struct`), names and indices are searched at run time.

use throng_base::diagnostic::did_you_mean;

use throng_base::Said;

use super::schema::{Count, MessageType, Schema, Shape, Type, is_many, listed};
use super::wire::Scalar;
use super::{FieldPath, PathMistake, Range};
use crate::fields::{Parts, PathPart};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// The index of a field of the message.
    Field(u16),
    /// An item of a repeated field, or of a value.
    Index(u32),
    /// A key of a map, or of a value.
    Key(Box<str>),
}

/// The target of a path so far.
#[derive(Clone, Copy)]
enum Here {
    Message(u32),
    /// The message and the index of a field that is a list or a map.
    Many(u32, usize),
    /// A value of unknown shape.
    Value,
    /// A value without parts.
    Single,
}

pub(super) fn resolve(
    schema: &Schema,
    message: MessageType,
    path: &str,
) -> Result<FieldPath, PathMistake> {
    let mut here = of_message(schema, message.0);
    let mut steps = Vec::new();
    let mut parts = Parts::new(path)?;
    while let Some(part) = parts.next()? {
        here = match (here, &part) {
            (Here::Message(at), PathPart::Name(name)) => {
                let index = field_of(schema, at, name)?;
                steps.push(Step::Field(index as u16));
                of_field(schema, at, index)
            }
            (Here::Many(at, index), part) => of_item(schema, at, index, part, &mut steps)?,
            (Here::Value, part) => {
                steps.push(match part {
                    PathPart::Name(name) => Step::Key((*name).into()),
                    PathPart::Index(index) => Step::Index(*index),
                });
                Here::Value
            }
            (Here::Message(_), PathPart::Index(_)) => {
                return Err(no_part(
                    &part,
                    say!("an index can only follow a list"),
                    say!("write a name"),
                ));
            }
            (Here::Single, _) => {
                return Err(no_part(
                    &part,
                    say!("a single value has no fields or items"),
                    say!("end the path before this element"),
                ));
            }
        };
    }
    Ok(FieldPath { message, written: path.into(), steps: steps.into() })
}

pub(super) fn range(schema: &Schema, path: &FieldPath) -> Range {
    let mut ty = Type::Message(path.message.0);
    // The next step selects the item type of a list or map.
    let mut many = None;
    for step in &path.steps {
        ty = match (many.take(), step, ty) {
            (Some(item), ..) => item,
            (None, Step::Field(index), Type::Message(at)) => {
                let field = &schema.at(at).fields[usize::from(*index)];
                many = is_many(field.count).then(|| item_of(schema, field.count, field.ty));
                field.ty
            }
            // A value of unknown shape.
            _ => return Range::Any,
        };
    }
    match ty {
        _ if many.is_some() => Range::Any,
        Type::Enum(at) => {
            let values = schema.enumeration(at).values.iter();
            let values = values.map(|(name, number)| (name.to_string(), i64::from(*number)));
            Range::Named(values.collect())
        }
        Type::Text => Range::Text,
        Type::Bytes => Range::Bytes,
        Type::Scalar(scalar) => of_scalar(scalar),
        Type::Message(_) | Type::Group => Range::Any,
    }
}

/// The type of a list's items, or of a map's values.
fn item_of(schema: &Schema, count: Count, ty: Type) -> Type {
    match (count, ty) {
        (Count::Map, Type::Message(entry)) => schema.at(entry).fields[1].ty,
        _ => ty,
    }
}

fn of_scalar(scalar: Scalar) -> Range {
    match scalar {
        Scalar::Bool => Range::Bool,
        Scalar::Float | Scalar::Double => Range::Float,
        whole => {
            let (low, high) = whole.range();
            Range::Whole { low, high, names: Vec::new() }
        }
    }
}

fn no_part(part: &PathPart<'_>, message: Said, help: Said) -> PathMistake {
    let part = match part {
        PathPart::Name(name) => (*name).to_owned(),
        PathPart::Index(index) => index.to_string(),
    };
    PathMistake { message, part, help }
}

fn field_of(schema: &Schema, message: u32, name: &str) -> Result<usize, PathMistake> {
    let message = schema.at(message);
    message.field(name).ok_or_else(|| {
        let names = message.fields.iter().map(|field| &*field.name);
        let help = match did_you_mean(name, names.clone()) {
            Some(near) => say!("did you mean `{near}`?"),
            None if message.fields.is_empty() => say!("it has no fields"),
            None => say!("available: {}", listed(names)),
        };
        let reason = say!("`{}` has no field `{name}`", message.name);
        PathMistake { message: reason, part: name.to_owned(), help }
    })
}

/// An item of a list, or the value of a map's key.
fn of_item(
    schema: &Schema,
    message: u32,
    index: usize,
    part: &PathPart<'_>,
    steps: &mut Vec<Step>,
) -> Result<Here, PathMistake> {
    let field = &schema.at(message).fields[index];
    match (field.count, part, field.ty) {
        (Count::Map, part, Type::Message(entry)) => {
            steps.push(Step::Key(match part {
                PathPart::Name(name) => (*name).into(),
                PathPart::Index(index) => index.to_string().into(),
            }));
            Ok(of_type(schema, schema.at(entry).fields[1].ty))
        }
        (_, PathPart::Index(index), ty) => {
            steps.push(Step::Index(*index));
            Ok(of_type(schema, ty))
        }
        (_, PathPart::Name(name), _) => {
            let message = say!("`{}` is a list", field.name);
            let help = say!("write `{}[0].{name}` for its first item", field.name);
            Err(PathMistake { message, part: (*name).to_owned(), help })
        }
    }
}

fn of_message(schema: &Schema, message: u32) -> Here {
    let this = schema.at(message);
    match this.shape {
        Shape::Plain => Here::Message(message),
        Shape::Any | Shape::Packed => Here::Value,
        Shape::Sole if is_many(this.fields[0].count) => Here::Value,
        _ => Here::Single,
    }
}

fn of_field(schema: &Schema, message: u32, index: usize) -> Here {
    let field = &schema.at(message).fields[index];
    match field.count {
        Count::Map | Count::Packed | Count::Repeated => Here::Many(message, index),
        _ => of_type(schema, field.ty),
    }
}

fn of_type(schema: &Schema, ty: Type) -> Here {
    match ty {
        Type::Message(message) => of_message(schema, message),
        _ => Here::Single,
    }
}
