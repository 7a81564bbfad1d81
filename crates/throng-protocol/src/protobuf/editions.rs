//! Descriptors of `protoc` and servers. Those of editions (protobuf.dev, "Feature Settings for
//! Editions") are converted to proto3 or proto2: the linker supports no others, and the wire format
//! is the same.

use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};

use throng_base::Said;

use super::DEPTH_MAX;
use super::wire::{Fields, Wire, Wrong};

/// Reads a `FileDescriptorSet`, as written by `protoc --descriptor_set_out`.
///
/// # Errors
/// A sentence that says why it cannot be read.
pub fn descriptor_set(bytes: &[u8]) -> Result<Vec<FileDescriptorProto>, Said> {
    let mut files = Vec::new();
    let mut fields = Fields::new(bytes);
    let broken = |wrong: Wrong| say!("byte {}: {}", wrong.position, wrong.reason);
    while let Some((_, number, wire)) = fields.next().map_err(broken)? {
        match (number, wire) {
            (1, Wire::Bytes { bytes, .. }) => files.push(descriptor(bytes)?),
            // Bytes with other fields are not a descriptor set, even if they start like one.
            _ => return Err(say!("it is not a descriptor set")),
        }
    }
    match files.is_empty() {
        true => Err(say!("it is not a descriptor set")),
        false => Ok(files),
    }
}

/// Reads a `FileDescriptorProto`.
///
/// # Errors
/// A sentence that says why it cannot be read.
pub fn descriptor(bytes: &[u8]) -> Result<FileDescriptorProto, Said> {
    let mut file =
        FileDescriptorProto::decode(bytes).map_err(|error| Said::of_others(error.to_string()))?;
    if file.syntax() == "editions" {
        convert(&mut file, bytes).map_err(|wrong| wrong.reason)?;
    }
    Ok(file)
}

/// The features of a part of a file.
#[derive(Clone, Copy, Debug)]
struct Features {
    has_presence: bool,
    is_packed: bool,
    is_delimited: bool,
}

impl Features {
    /// The defaults of all editions up to 2024.
    const DEFAULT: Features = Features { has_presence: true, is_packed: true, is_delimited: false };

    /// Adds the features in the options of a part, which are in the field `number`.
    fn with(mut self, options: Option<&[u8]>, number: u32) -> Result<Features, Wrong> {
        let Some(features) = options.map(|options| only(options, number)).transpose()?.flatten()
        else {
            return Ok(self);
        };
        let mut fields = Fields::new(features);
        while let Some((_, number, wire)) = fields.next()? {
            match (number, wire) {
                (1, Wire::Varint(presence)) => self.has_presence = presence != 2,
                (3, Wire::Varint(encoding)) => self.is_packed = encoding != 2,
                (5, Wire::Varint(encoding)) => self.is_delimited = encoding == 2,
                _ => {}
            }
        }
        Ok(self)
    }
}

/// The last length-delimited field with this number.
fn only(bytes: &[u8], wanted: u32) -> Result<Option<&[u8]>, Wrong> {
    Ok(all(bytes, wanted)?.pop())
}

fn all(bytes: &[u8], wanted: u32) -> Result<Vec<&[u8]>, Wrong> {
    let mut found = Vec::new();
    let mut fields = Fields::new(bytes);
    while let Some((_, number, wire)) = fields.next()? {
        if let (true, Wire::Bytes { bytes, .. }) = (number == wanted, wire) {
            found.push(bytes);
        }
    }
    Ok(found)
}

/// The field numbers of features in the options of a file, a message and a field.
const OF_FILE: u32 = 50;
const OF_MESSAGE: u32 = 12;
const OF_FIELD: u32 = 21;

fn convert(file: &mut FileDescriptorProto, bytes: &[u8]) -> Result<(), Wrong> {
    let features = Features::DEFAULT.with(only(bytes, 8)?, OF_FILE)?;
    for (message, bytes) in file.message_type.iter_mut().zip(all(bytes, 4)?) {
        of_message(message, bytes, features, DEPTH_MAX)?;
    }
    // The first value of a proto3 enum must be 0.
    let is_plain = all_enums(&file.enum_type, &file.message_type);
    file.syntax = Some(if is_plain { "proto3" } else { "proto2" }.to_owned());
    Ok(())
}

fn all_enums(enums: &[EnumDescriptorProto], messages: &[DescriptorProto]) -> bool {
    let first = |one: &EnumDescriptorProto| one.value.first().is_none_or(|one| one.number() == 0);
    enums.iter().all(first)
        && messages.iter().all(|message| all_enums(&message.enum_type, &message.nested_type))
}

fn of_message(
    message: &mut DescriptorProto,
    bytes: &[u8],
    features: Features,
    left: usize,
) -> Result<(), Wrong> {
    let Some(left) = left.checked_sub(1) else { return Ok(()) };
    let features = features.with(only(bytes, 7)?, OF_MESSAGE)?;
    let is_entry = message.options.as_ref().is_some_and(|options| options.map_entry());
    for (field, bytes) in message.field.iter_mut().zip(all(bytes, 2)?) {
        of_field(field, features.with(only(bytes, 8)?, OF_FIELD)?, is_entry);
    }
    for (message, bytes) in message.nested_type.iter_mut().zip(all(bytes, 3)?) {
        of_message(message, bytes, features, left)?;
    }
    Ok(())
}

fn of_field(field: &mut FieldDescriptorProto, features: Features, is_entry: bool) {
    if field.r#type() == Type::Message && features.is_delimited && !is_entry {
        field.set_type(Type::Group);
    }
    let is_packable =
        !matches!(field.r#type(), Type::String | Type::Bytes | Type::Message | Type::Group);
    match field.label() {
        Label::Repeated if is_packable => {
            field.options.get_or_insert_default().packed = Some(features.is_packed);
        }
        Label::Optional if field.oneof_index.is_none() && !is_entry && features.has_presence => {
            field.proto3_optional = Some(true);
        }
        _ => {}
    }
}
