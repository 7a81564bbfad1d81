//! Checks what a scenario gives for a message and turns it into a [`Template`]: parts without
//! leaves are encoded once, here.

use std::sync::Arc;

use throng_expression::Value;

use super::encode::{Op, Target};
use super::schema::{Count, MessageType, Schema, Shape, Type};
use super::wire::{write_bytes, write_tag};
use super::write::{self, Seen, TYPE_KEY, Written};
use super::{DEPTH_MAX, Given, GivenMistake, Refused, Template};

pub(super) fn prepare(
    schema: &Schema,
    message: MessageType,
    given: &Given,
) -> Result<Template, GivenMistake> {
    let mut preparer = Preparer {
        schema,
        ops: Vec::new(),
        bytes: Vec::new(),
        paths: Vec::new(),
        here: Vec::new(),
    };
    match preparer.message(message.0, given, DEPTH_MAX) {
        Ok(()) => Ok(Template {
            message,
            ops: preparer.ops.into(),
            bytes: preparer.bytes.into(),
            paths: preparer.paths.into(),
        }),
        Err(Refused { path, reason, help }) => Err(GivenMistake { path, message: reason, help }),
    }
}

/// The value of something without leaves.
fn literal(given: &Given) -> Option<Value> {
    match given {
        Given::Leaf(_) => None,
        Given::Literal(value) => Some(value.clone()),
        Given::Items(items) => {
            items.iter().map(literal).collect::<Option<Vec<_>>>().map(Value::from)
        }
        Given::Fields(fields) => {
            let entries = fields
                .iter()
                .map(|(name, given)| Some((Arc::from(name.as_str()), literal(given)?)));
            entries.collect::<Option<Vec<_>>>().map(Value::from)
        }
    }
}

struct Preparer<'s> {
    schema: &'s Schema,
    ops: Vec<Op>,
    bytes: Vec<u8>,
    paths: Vec<Box<str>>,
    /// The path to the current field.
    here: Vec<String>,
}

impl Preparer<'_> {
    /// Records what was written since `from` as an operation.
    fn constant(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Written) -> Written {
        let from = self.bytes.len() as u32;
        write(&mut self.bytes)?;
        let until = self.bytes.len() as u32;
        match self.ops.last_mut() {
            Some(Op::Bytes { until: last, .. }) if *last == from => *last = until,
            _ if from == until => {}
            _ => self.ops.push(Op::Bytes { from, until }),
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: u16, target: Target) {
        let path = self.paths.len() as u16;
        self.paths.push(self.here.join(".").into());
        self.ops.push(Op::Leaf { leaf, target, path });
    }

    fn within(&mut self, name: &str, inner: impl FnOnce(&mut Self) -> Written) -> Written {
        self.here.push(name.to_owned());
        let result = inner(self);
        self.here.pop();
        result.map_err(|refused| refused.within(name))
    }

    /// A part with its length before it, after the tag of `number`.
    fn part(&mut self, number: u32, inner: impl FnOnce(&mut Self) -> Written) -> Written {
        self.constant(|out| {
            write_tag(number, 2, out);
            Ok(())
        })?;
        self.ops.push(Op::Open);
        inner(self)?;
        self.ops.push(Op::Close);
        Ok(())
    }

    fn message(&mut self, message: u32, given: &Given, left: usize) -> Written {
        let schema = self.schema;
        if let Some(value) = literal(given) {
            return self.constant(|out| write::message(schema, message, &value, out, left));
        }
        let Some(left) = left.checked_sub(1) else {
            let reason = say!("protobuf messages are nested more than {DEPTH_MAX} levels deep");
            return Err(Refused::new(reason));
        };
        let shape = schema.at(message).shape;
        match given {
            Given::Leaf(leaf) => {
                self.leaf(*leaf, Target::Message(message));
                Ok(())
            }
            given if shape == Shape::Any => self.json(given, left),
            Given::Fields(fields) if shape == Shape::Struct => self.structure(fields, left),
            Given::Items(items) if shape == Shape::ListValue => self.list(items, left),
            Given::Fields(fields) if shape == Shape::Packed => self.packed(message, fields, left),
            Given::Fields(fields) => self.fields(message, fields, left),
            _ => Err(Refused::new(say!("expected a map of fields, not a list"))),
        }
    }

    fn fields(&mut self, message: u32, fields: &[(String, Given)], left: usize) -> Written {
        let mut seen = Seen::default();
        for (name, given) in fields.iter().filter(|(name, _)| name != TYPE_KEY) {
            let index = write::field_of(self.schema, message, name)?;
            if !matches!(given, Given::Literal(Value::Null)) {
                seen.field(self.schema, message, index, name)?;
            }
            self.within(name, |this| this.field(message, index, given, left))?;
        }
        seen.finish(self.schema, message)
    }

    fn field(&mut self, message: u32, index: usize, given: &Given, left: usize) -> Written {
        let schema = self.schema;
        let field = &schema.at(message).fields[index];
        let place = (message, index as u16);
        match (given, field.count) {
            (Given::Leaf(leaf), _) => self.leaf(*leaf, Target::Field(place)),
            (Given::Fields(entries), Count::Map) => {
                for (key, given) in entries {
                    self.within(key, |this| this.entry(message, index, key, given, left))?;
                }
            }
            (Given::Items(items), Count::Packed) if literal(given).is_none() => {
                self.part(field.number, |this| {
                    for (at, item) in items.iter().enumerate() {
                        this.within(&at.to_string(), |this| this.number(message, index, item))?;
                    }
                    Ok(())
                })?;
            }
            (Given::Items(items), Count::Repeated) => {
                for (at, item) in items.iter().enumerate() {
                    let name = at.to_string();
                    self.within(&name, |this| this.item(message, index, item, left))?;
                }
            }
            (given, _) => match literal(given) {
                Some(value) => {
                    self.constant(|out| write::field(schema, message, index, &value, out, left))?;
                }
                None => self.part_of(message, index, given, left)?,
            },
        }
        Ok(())
    }

    /// A field that is neither a list of items nor a map of entries.
    fn part_of(&mut self, message: u32, index: usize, given: &Given, left: usize) -> Written {
        match (given, self.schema.at(message).fields[index].count) {
            (Given::Fields(_), Count::Repeated | Count::Packed) => {
                let found = Value::Map(Arc::default()).type_name();
                Err(Refused::new(say!("expected a list, not {found}")))
            }
            (Given::Items(_), Count::Map) => {
                let found = Value::List(Arc::default()).type_name();
                Err(Refused::new(say!("expected a map, not {found}")))
            }
            _ => self.item(message, index, given, left),
        }
    }

    fn entry(
        &mut self,
        message: u32,
        index: usize,
        key: &str,
        given: &Given,
        left: usize,
    ) -> Written {
        let schema = self.schema;
        let field = &schema.at(message).fields[index];
        let Type::Message(entry) = field.ty else { return Ok(()) };
        self.part(field.number, |this| {
            let key = Value::from(key);
            this.constant(|out| write::item(schema, entry, 0, &key, out, left))?;
            this.item(entry, 1, given, left)
        })
    }

    /// One number of a packed field.
    fn number(&mut self, message: u32, index: usize, given: &Given) -> Written {
        let schema = self.schema;
        match given {
            Given::Leaf(leaf) => self.leaf(*leaf, Target::Number((message, index as u16))),
            Given::Literal(value) => {
                let field = &schema.at(message).fields[index];
                let raw = write::number(schema, field, value)?;
                self.constant(|out| {
                    raw.write(out);
                    Ok(())
                })?;
            }
            _ => return Err(Refused::new(say!("expected a number, not a list or a map"))),
        }
        Ok(())
    }

    /// One item with its tag.
    fn item(&mut self, message: u32, index: usize, given: &Given, left: usize) -> Written {
        let schema = self.schema;
        if let Some(value) = literal(given) {
            return self.constant(|out| write::item(schema, message, index, &value, out, left));
        }
        let field = &schema.at(message).fields[index];
        match (given, field.ty) {
            (Given::Leaf(leaf), _) => {
                self.leaf(*leaf, Target::Item((message, index as u16)));
                Ok(())
            }
            (given, Type::Message(inner)) => {
                self.part(field.number, |this| this.message(inner, given, left))
            }
            (Given::Items(_), _) => Err(Refused::new(say!("expected a single value, not a list"))),
            _ => Err(Refused::new(say!("expected a single value, not a map"))),
        }
    }

    /// The content of a `google.protobuf.Value`.
    fn json(&mut self, given: &Given, left: usize) -> Written {
        if let Some(value) = literal(given) {
            return self.constant(|out| write::json(&value, out, left));
        }
        let Some(left) = left.checked_sub(1) else {
            let reason = say!("protobuf messages are nested more than {DEPTH_MAX} levels deep");
            return Err(Refused::new(reason));
        };
        match given {
            Given::Fields(fields) => self.part(5, |this| this.structure(fields, left)),
            Given::Items(items) => self.part(6, |this| this.list(items, left)),
            Given::Leaf(leaf) => {
                self.leaf(*leaf, Target::Json);
                Ok(())
            }
            Given::Literal(_) => Ok(()),
        }
    }

    fn structure(&mut self, fields: &[(String, Given)], left: usize) -> Written {
        for (key, given) in fields {
            self.within(key, |this| {
                this.part(1, |this| {
                    this.constant(|out| {
                        write_bytes(1, key.as_bytes(), out);
                        Ok(())
                    })?;
                    this.part(2, |this| this.json(given, left))
                })
            })?;
        }
        Ok(())
    }

    fn list(&mut self, items: &[Given], left: usize) -> Written {
        for (at, given) in items.iter().enumerate() {
            self.within(&at.to_string(), |this| this.part(1, |this| this.json(given, left)))?;
        }
        Ok(())
    }

    /// An `Any` with its type.
    fn packed(&mut self, message: u32, fields: &[(String, Given)], left: usize) -> Written {
        let find = |wanted: &str| fields.iter().find(|(name, _)| name == wanted);
        let url = match find(TYPE_KEY) {
            None => return self.fields(message, fields, left),
            Some((_, Given::Literal(Value::Text(url)))) => url,
            Some(_) => {
                let reason = say!("the type of an `Any` must be the same for all users");
                return Err(Refused::new(reason).within(TYPE_KEY));
            }
        };
        let inner = write::type_of(self.schema, url)?;
        self.constant(|out| {
            write_bytes(1, url.as_bytes(), out);
            Ok(())
        })?;
        self.part(2, |this| match (this.schema.at(inner).shape, find("value")) {
            (Shape::Plain, _) => this.fields(inner, fields, left),
            (_, Some((_, given))) => this.within("value", |this| this.message(inner, given, left)),
            (_, None) => Err(Refused::new(say!("`value` is missing next to `@type`"))),
        })
    }
}
