//! Messages of many shapes, with prost-reflect's dynamic messages as the reference.

mod editions;
mod fuzz;
mod mistakes;
mod reference;
mod schema;

use prost_reflect::DescriptorPool;
use throng_expression::Value;

use super::*;

const SHAPES: &str = include_str!("tests/shapes.proto");
const OLD: &str = include_str!("tests/old.proto");

fn pool() -> DescriptorPool {
    let mut pool = DescriptorPool::global();
    for (name, text) in [("shapes.proto", SHAPES), ("old.proto", OLD)] {
        let file = protox_parse::parse(name, text).unwrap();
        pool.add_file_descriptor_proto(file).unwrap();
    }
    pool
}

impl Schema {
    pub(crate) fn from_descriptor_set(bytes: &[u8]) -> Result<Schema, Said> {
        Schema::link(descriptor_set(bytes)?)
    }
}

fn schema() -> Schema {
    Schema::new(&pool())
}

/// What a scenario gives, without leaves.
fn given(json: &serde_json::Value) -> Given {
    match json {
        serde_json::Value::Array(items) => Given::Items(items.iter().map(given).collect()),
        serde_json::Value::Object(fields) => {
            Given::Fields(fields.iter().map(|(name, value)| (name.clone(), given(value))).collect())
        }
        plain => Given::Literal(Value::from_json(plain)),
    }
}

/// The same with a leaf in place of every value.
fn leaves_of(json: &serde_json::Value, leaves: &mut Vec<Value>) -> Given {
    match json {
        serde_json::Value::Array(items) => {
            Given::Items(items.iter().map(|item| leaves_of(item, leaves)).collect())
        }
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| match name.as_str() {
                // The type of an `Any` is the same for all users.
                "@type" => (name.clone(), given(value)),
                _ => (name.clone(), leaves_of(value, leaves)),
            });
            Given::Fields(fields.collect())
        }
        plain => {
            leaves.push(Value::from_json(plain));
            Given::Leaf((leaves.len() - 1) as u16)
        }
    }
}

/// Writes a template whose leaves have these values; texts in place if `in_place`.
fn encoded(
    schema: &Schema,
    template: &Template,
    leaves: &[Value],
    in_place: bool,
) -> Result<Vec<u8>, EncodeError<()>> {
    let mut out = b"before".to_vec();
    let mut leaf = |number: u16, out: &mut Vec<u8>| {
        let value = &leaves[usize::from(number)];
        match value {
            Value::Text(text) if in_place => {
                out.extend_from_slice(text.as_bytes());
                Ok(None)
            }
            value => Ok(Some(value.clone())),
        }
    };
    let result = schema.encode(template, &mut leaf, &mut out);
    let written = out.split_off(6);
    assert_eq!(out, b"before");
    assert!(result.is_ok() || written.is_empty());
    result.map(|()| written)
}

/// The bytes of a message without leaves.
fn bytes_of(schema: &Schema, message: &str, json: &str) -> Vec<u8> {
    let json = serde_json::from_str(json).unwrap();
    let message = schema.message(message).unwrap();
    let template = schema.prepare(message, &given(&json)).unwrap();
    let bytes = encoded(schema, &template, &[], false).unwrap();
    assert_eq!(template.constant(), Some(&bytes[..]));
    bytes
}
