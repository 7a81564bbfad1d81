//! Tables of the messages, enums and methods of compiled descriptors. Fields are found by index and
//! by number, so that neither reading nor writing accesses a descriptor.

use std::collections::HashMap;
use std::sync::Arc;

use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{
    Cardinality, DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    MethodDescriptor, Value as Given,
};
use throng_base::diagnostic::did_you_mean;
use throng_expression::Value;

use throng_base::Said;

use super::wire::Scalar;

/// Most names that a list shows.
const SHOWN_MAX: usize = 8;

/// A message of a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageType(pub(super) u32);

/// A method of a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodId(pub u32);

/// All declarations of a set of descriptors.
#[derive(Debug, Default)]
pub struct Schema {
    messages: Box<[Message]>,
    enums: Box<[Enumeration]>,
    services: Box<[Box<str>]>,
    methods: Box<[Method]>,
    by_name: HashMap<Box<str>, u32>,
}

/// Which side of a call sends more than one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    Unary,
    ServerStreaming,
    ClientStreaming,
    BidirectionalStreaming,
}

impl CallKind {
    pub fn streams_requests(self) -> bool {
        matches!(self, CallKind::ClientStreaming | CallKind::BidirectionalStreaming)
    }

    pub fn streams_replies(self) -> bool {
        matches!(self, CallKind::ServerStreaming | CallKind::BidirectionalStreaming)
    }
}

/// A method of a service.
#[derive(Clone, Debug)]
pub struct Method {
    /// `shop.v1.Orders`.
    pub service: Box<str>,
    /// `Get`.
    pub name: Box<str>,
    /// `/shop.v1.Orders/Get`, the path of its requests.
    pub path: Box<str>,
    pub input: MessageType,
    pub output: MessageType,
    pub kind: CallKind,
}

/// A name that the schema does not have, and a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub message: Said,
    pub near: Option<String>,
    pub help: Said,
}

#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: Box<str>,
    /// By number.
    pub(super) fields: Box<[Field]>,
    pub(super) oneofs: Box<[Box<str>]>,
    pub(super) shape: Shape,
}

/// The JSON form of a message (protobuf.dev, "ProtoJSON Format").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    Timestamp,
    Duration,
    FieldMask,
    /// That of its only field: `DoubleValue` to `BytesValue`, `Struct` and `ListValue`.
    Sole,
    /// `google.protobuf.Value`, with a field for each type.
    Any,
    /// `google.protobuf.Any`.
    Packed,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Arc<str>,
    pub(super) json_name: Box<str>,
    pub(super) number: u32,
    pub(super) ty: Type,
    pub(super) count: Count,
    pub(super) oneof: Option<u16>,
    /// Its value when it is missing: null if that can be distinguished from zero.
    pub(super) default: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// Zero is not written.
    Implicit,
    Optional,
    Required,
    Repeated,
    Packed,
    /// Its type is the message of an entry.
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Scalar(Scalar),
    Enum(u32),
    Text,
    Bytes,
    Message(u32),
    /// Proto2 only; skipped, and never written.
    Group,
}

#[derive(Debug)]
pub(super) struct Enumeration {
    pub(super) name: Box<str>,
    /// In the order of the file: the first of several names of a number counts.
    pub(super) values: Box<[(Arc<str>, i32)]>,
}

impl Enumeration {
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        let found = self.values.iter().find(|(known, _)| **known == *name);
        found.map(|(_, number)| i64::from(*number))
    }

    /// The name of a number; the number itself if it has none.
    pub(super) fn value(&self, number: i32) -> Value {
        match self.values.iter().find(|(_, known)| *known == number) {
            Some((name, _)) => Value::Text(name.clone()),
            None => Value::from(number),
        }
    }
}

impl Message {
    /// A field by its name in the file, or in JSON.
    pub(super) fn field(&self, name: &str) -> Option<usize> {
        let named = self.fields.iter().position(|field| *field.name == *name);
        named.or_else(|| self.fields.iter().position(|field| *field.json_name == *name))
    }

    pub(super) fn index_of(&self, number: u32) -> Option<usize> {
        // Fields are mostly numbered from 1 on without gaps.
        let guess = (number as usize).wrapping_sub(1);
        match self.fields.get(guess) {
            Some(field) if field.number == number => Some(guess),
            _ => self.fields.binary_search_by_key(&number, |field| field.number).ok(),
        }
    }
}

impl Schema {
    /// Builds the tables from linked descriptors.
    pub fn new(pool: &DescriptorPool) -> Schema {
        let names = pool.all_messages().enumerate();
        let by_name: HashMap<Box<str>, u32> =
            names.map(|(at, message)| (message.full_name().into(), at as u32)).collect();
        let names = pool.all_enums().enumerate();
        let enums: HashMap<String, u32> =
            names.map(|(at, one)| (one.full_name().to_owned(), at as u32)).collect();
        let builder = Builder { messages: &by_name, enums: &enums };
        let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        Schema {
            messages: pool.all_messages().map(|message| builder.message(&message)).collect(),
            enums: pool.all_enums().map(|one| enumeration(&one)).collect(),
            services: pool.services().map(|service| service.full_name().into()).collect(),
            methods: methods.map(|method| builder.method(&method)).collect(),
            by_name,
        }
    }

    /// Links the descriptors of files, in any order.
    ///
    /// # Errors
    /// A sentence about what does not fit together.
    pub fn link(files: Vec<FileDescriptorProto>) -> Result<Schema, Said> {
        let pool = super::link(files).map_err(|error| error.said())?;
        Ok(Schema::new(&pool))
    }

    /// A message by its full name.
    pub fn message(&self, name: &str) -> Option<MessageType> {
        self.by_name.get(name.trim_start_matches('.')).map(|at| MessageType(*at))
    }

    pub fn message_name(&self, message: MessageType) -> &str {
        &self.at(message.0).name
    }

    /// The names of the fields of a message, by number.
    pub fn field_names(&self, message: MessageType) -> impl Iterator<Item = &str> {
        self.at(message.0).fields.iter().map(|field| &*field.name)
    }

    /// The full names of all services.
    pub fn services(&self) -> impl Iterator<Item = &str> {
        self.services.iter().map(|name| &**name)
    }

    pub fn methods(&self) -> impl Iterator<Item = (MethodId, &Method)> {
        self.methods.iter().enumerate().map(|(at, method)| (MethodId(at as u32), method))
    }

    pub fn method(&self, id: MethodId) -> &Method {
        &self.methods[id.0 as usize]
    }

    /// A method by its name: `shop.v1.Orders/Get`, also with a leading slash or with a dot instead.
    /// The package may be omitted if only one service has this name.
    pub fn find_method(&self, name: &str) -> Result<MethodId, Unknown> {
        let plain = name.trim_start_matches('/');
        let Some((service, method)) = plain.rsplit_once(['/', '.']) else {
            let message = say!("`{name}` is not a method name");
            let near = self.near_method(plain);
            let help = say!("write `package.Service/Method`");
            return Err(Unknown { message, near, help });
        };
        let service = self.find_service(service)?;
        let of_service: Vec<(MethodId, &str)> = self
            .methods()
            .filter(|(_, one)| *one.service == *service)
            .map(|(id, one)| (id, &*one.name))
            .collect();
        if let Some((id, _)) = of_service.iter().find(|(_, name)| *name == method) {
            return Ok(*id);
        }
        let names = of_service.iter().map(|(_, name)| *name);
        let near = did_you_mean(method, names.clone());
        let near = near.map(|method| format!("{service}/{method}"));
        let message = say!("the service `{service}` has no method `{method}`");
        Err(Unknown { message, near, help: say!("available: {}", listed(names)) })
    }

    fn find_service(&self, name: &str) -> Result<&str, Unknown> {
        let ending = format!(".{name}");
        let exact = self.services().find(|known| *known == name);
        let mut ends = self.services().filter(|known| known.ends_with(&ending));
        match (exact, ends.next(), ends.next()) {
            (Some(service), _, _) | (None, Some(service), None) => Ok(service),
            (None, None, _) => {
                let message = say!("there is no service `{name}`");
                let short = |full: &str| full.rsplit('.').next().unwrap_or_default().to_lowercase();
                let same = self.services().find(|known| short(known) == short(name));
                let near = did_you_mean(name, self.services()).or(same).map(str::to_owned);
                Err(Unknown { message, near, help: self.help_of_services() })
            }
            (None, Some(first), Some(second)) => {
                let message = say!("several services are named `{name}`");
                let help = say!("write the full name: `{first}` or `{second}`");
                Err(Unknown { message, near: None, help })
            }
        }
    }

    fn help_of_services(&self) -> Said {
        match self.services.is_empty() {
            true => say!("the descriptors contain no services"),
            false => say!("available: {}", listed(self.services())),
        }
    }

    fn near_method(&self, name: &str) -> Option<String> {
        let near = did_you_mean(name, self.methods.iter().map(|method| &*method.name))?;
        let method = self.methods.iter().find(|method| *method.name == *near)?;
        Some(method.path.trim_start_matches('/').to_owned())
    }

    pub(super) fn at(&self, message: u32) -> &Message {
        &self.messages[message as usize]
    }

    pub(super) fn enumeration(&self, at: u32) -> &Enumeration {
        &self.enums[at as usize]
    }

    /// The message of a type URL of `Any`: the part after its last slash.
    pub(super) fn of_type_url(&self, url: &str) -> Option<u32> {
        self.by_name.get(url.rsplit('/').next()?).copied()
    }
}

pub(super) fn is_many(count: Count) -> bool {
    matches!(count, Count::Packed | Count::Repeated | Count::Map)
}

/// The first of some names.
pub(super) fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut shown: Vec<String> =
        names.take(SHOWN_MAX + 1).map(|name| format!("`{name}`")).collect();
    if shown.len() > SHOWN_MAX {
        shown[SHOWN_MAX] = "…".to_owned();
    }
    shown.join(", ")
}

/// The indexes of all messages and enums, by name.
struct Builder<'b> {
    messages: &'b HashMap<Box<str>, u32>,
    enums: &'b HashMap<String, u32>,
}

impl Builder<'_> {
    fn message(&self, message: &MessageDescriptor) -> Message {
        let mut fields: Vec<Field> = message.fields().map(|field| self.field(&field)).collect();
        fields.sort_unstable_by_key(|field| field.number);
        Message {
            name: message.full_name().into(),
            fields: fields.into(),
            oneofs: message.oneofs().map(|oneof| oneof.name().into()).collect(),
            shape: shape(message),
        }
    }

    fn field(&self, field: &FieldDescriptor) -> Field {
        let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
        let oneofs = field.parent_message();
        let oneof = oneof.and_then(|one| oneofs.oneofs().position(|other| other == one));
        let ty = match field.kind() {
            _ if field.is_group() => Type::Group,
            Kind::Message(message) => Type::Message(self.messages[message.full_name()]),
            Kind::Enum(one) => Type::Enum(self.enums[one.full_name()]),
            Kind::String => Type::Text,
            Kind::Bytes => Type::Bytes,
            kind => Type::Scalar(scalar(&kind)),
        };
        Field {
            name: field.name().into(),
            json_name: field.json_name().into(),
            number: field.number(),
            ty,
            count: count(field),
            oneof: oneof.map(|at| at as u16),
            default: default(field),
        }
    }

    fn method(&self, method: &MethodDescriptor) -> Method {
        let service = method.parent_service().full_name().to_owned();
        let of = |message: &MessageDescriptor| MessageType(self.messages[message.full_name()]);
        Method {
            path: format!("/{service}/{}", method.name()).into(),
            service: service.into(),
            name: method.name().into(),
            input: of(&method.input()),
            output: of(&method.output()),
            kind: match (method.is_client_streaming(), method.is_server_streaming()) {
                (false, false) => CallKind::Unary,
                (false, true) => CallKind::ServerStreaming,
                (true, false) => CallKind::ClientStreaming,
                (true, true) => CallKind::BidirectionalStreaming,
            },
        }
    }
}

fn count(field: &FieldDescriptor) -> Count {
    // prost-reflect reads the option before it has parsed those given as text.
    let options = field.field_descriptor_proto().options.as_ref();
    let is_packed = options.and_then(|options| options.packed).unwrap_or(field.is_packed());
    let is_packable = !matches!(field.kind(), Kind::String | Kind::Bytes | Kind::Message(_));
    match field.cardinality() {
        // Missing parts of an entry are zero, whatever its file says.
        _ if field.parent_message().is_map_entry() => Count::Implicit,
        _ if is_map(field) => Count::Map,
        Cardinality::Repeated if is_packed && is_packable => Count::Packed,
        Cardinality::Repeated => Count::Repeated,
        Cardinality::Required => Count::Required,
        Cardinality::Optional if field.supports_presence() => Count::Optional,
        Cardinality::Optional => Count::Implicit,
    }
}

/// Whether its entries have a key and a value and nothing else, as those of all maps should.
fn is_map(field: &FieldDescriptor) -> bool {
    let Kind::Message(entry) = field.kind() else { return false };
    let mut numbers: Vec<u32> = entry.fields().map(|field| field.number()).collect();
    numbers.sort_unstable();
    field.is_map() && numbers == [1, 2]
}

/// Explicit defaults of the file, and zeros for fields without presence.
fn default(field: &FieldDescriptor) -> Value {
    let is_said = field.field_descriptor_proto().default_value.is_some();
    match count(field) {
        Count::Map => return Value::from(Vec::<(Arc<str>, Value)>::new()),
        Count::Repeated | Count::Packed => return Value::from(Vec::<Value>::new()),
        Count::Optional | Count::Required if !is_said => return Value::Null,
        _ => {}
    }
    match field.default_value() {
        Given::Bool(value) => Value::Bool(value),
        Given::I32(value) => Value::from(value),
        Given::I64(value) => Value::Int(value),
        Given::U32(value) => Value::from(value),
        Given::U64(value) => Value::from(value),
        Given::F32(value) => Value::Float(f64::from(value)),
        Given::F64(value) => Value::Float(value),
        Given::String(value) => Value::from(value),
        Given::Bytes(value) => Value::from(&value[..]),
        Given::EnumNumber(number) => match field.kind() {
            Kind::Enum(one) => enumeration(&one).value(number),
            _ => Value::from(number),
        },
        _ => Value::Null,
    }
}

fn enumeration(one: &EnumDescriptor) -> Enumeration {
    let values = &one.enum_descriptor_proto().value;
    let values = values.iter().map(|value| (value.name().into(), value.number()));
    Enumeration { name: one.full_name().into(), values: values.collect() }
}

fn scalar(kind: &Kind) -> Scalar {
    match kind {
        Kind::Double => Scalar::Double,
        Kind::Float => Scalar::Float,
        Kind::Int64 => Scalar::Int64,
        Kind::Uint32 => Scalar::Uint32,
        Kind::Uint64 => Scalar::Uint64,
        Kind::Sint32 => Scalar::Sint32,
        Kind::Sint64 => Scalar::Sint64,
        Kind::Fixed32 => Scalar::Fixed32,
        Kind::Fixed64 => Scalar::Fixed64,
        Kind::Sfixed32 => Scalar::Sfixed32,
        Kind::Sfixed64 => Scalar::Sfixed64,
        Kind::Bool => Scalar::Bool,
        _ => Scalar::Int32,
    }
}

/// The shape of a message that has the fields of its well-known type.
fn shape(message: &MessageDescriptor) -> Shape {
    let name = message.full_name().strip_prefix("google.protobuf.").unwrap_or_default();
    let (shape, fields) = match name {
        "Timestamp" => (Shape::Timestamp, 2),
        "Duration" => (Shape::Duration, 2),
        "FieldMask" => (Shape::FieldMask, 1),
        "Value" => (Shape::Any, 6),
        "Any" => (Shape::Packed, 2),
        "Struct" | "ListValue" | "DoubleValue" | "FloatValue" | "Int64Value" | "UInt64Value"
        | "Int32Value" | "UInt32Value" | "BoolValue" | "StringValue" | "BytesValue" => {
            (Shape::Sole, 1)
        }
        _ => return Shape::Plain,
    };
    let has_all = (1..=fields).all(|number| message.get_field(number).is_some());
    if has_all && message.fields().len() == fields as usize { shape } else { Shape::Plain }
}
