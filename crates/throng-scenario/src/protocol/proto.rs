//! Messages of `.proto` files for `protobuf(Message)`: tables of the messages that are used, and of
//! those in them.

use std::collections::HashMap;

use prost_reflect::{Cardinality, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use throng_protocol::framed::declaration::{ProtoField, ProtoMessage, ProtoType};

use crate::proto::{PROTO_HELP, ProtoFiles};
use crate::read::{Context, shorten};
use crate::synonyms::did_you_mean;
use crate::syntax::Place;

/// The most messages that the tables have.
pub(super) const PROTO_MESSAGES_MAX: usize = 4096;

/// The messages of the files, and the tables that were made of them.
pub(super) struct Protos {
    files: ProtoFiles,
    /// The messages that have tables, with their numbers.
    made: HashMap<String, usize>,
    pub(super) tables: Vec<ProtoMessage>,
    /// Messages whose fields are not made yet.
    open: Vec<MessageDescriptor>,
}

impl Protos {
    pub(super) fn new(files: ProtoFiles) -> Protos {
        Protos { files, made: HashMap::new(), tables: Vec::new(), open: Vec::new() }
    }

    /// The number of the table of a message, which may be named without its package.
    pub(super) fn message(
        &mut self,
        cx: &mut Context<'_>,
        name: &str,
        place: Place,
    ) -> Option<usize> {
        let plain = name.trim_start_matches('.');
        let ending = format!(".{plain}");
        let all = self.files.pool.all_messages().filter(|message| !message.is_map_entry());
        let mut found: Vec<MessageDescriptor> = all
            .filter(|one| one.full_name() == plain || one.full_name().ends_with(&ending))
            .collect();
        found.sort_unstable_by(|one, other| one.full_name().cmp(other.full_name()));
        // The full name means itself, whatever else ends so.
        let exact = found.iter().position(|message| message.full_name() == plain);
        match (exact, &found[..]) {
            (None, []) => self.unknown(cx, name, place),
            (None, [first, second, ..]) => {
                let message = format!("`{}` is the name of several messages", shorten(name));
                let error = cx.error("bad-proto", message, place);
                let label = format!("`{}` and `{}`", first.full_name(), second.full_name());
                let help = format!("write the full name: `protobuf({})`", first.full_name());
                cx.fail(error.label(label).help(help))
            }
            (at, _) => {
                let table = self.table(&found[at.unwrap_or(0)]);
                self.fill(cx, place);
                Some(table)
            }
        }
    }

    fn unknown<T>(&self, cx: &mut Context<'_>, name: &str, place: Place) -> Option<T> {
        let message = format!("there is no message `{}` in the `.proto` files", shorten(name));
        let error = cx.error("unknown-type", message, place);
        let messages = self.files.pool.all_messages().filter(|message| !message.is_map_entry());
        let mut names: Vec<String> = messages.map(|one| one.full_name().to_owned()).collect();
        // Those of protobuf itself come last.
        names.sort_unstable_by_key(|name| (name.starts_with("google."), name.clone()));
        let full = names.iter().map(String::as_str);
        let meant = did_you_mean(name, full.clone()).or_else(|| {
            did_you_mean(name, full.clone().filter_map(|name| name.rsplit('.').next()))
        });
        let error = error.label(match meant {
            Some(word) => format!("did you mean `{word}`?"),
            None => "not known here".into(),
        });
        let first: Vec<&str> = full.take(8).collect();
        cx.fail(error.help(match first.is_empty() {
            true => PROTO_HELP.to_string(),
            false => format!("the files have `{}`", first.join("`, `")),
        }))
    }

    /// The number of a table, which is filled later.
    fn table(&mut self, message: &MessageDescriptor) -> usize {
        let name = message.full_name();
        if let Some(number) = self.made.get(name) {
            return *number;
        }
        self.tables.push(ProtoMessage { name: name.to_owned(), fields: Vec::new() });
        self.made.insert(name.to_owned(), self.tables.len() - 1);
        self.open.push(message.clone());
        self.tables.len() - 1
    }

    /// Makes the fields of all tables that have none yet.
    fn fill(&mut self, cx: &mut Context<'_>, place: Place) {
        while let Some(message) = self.open.pop() {
            let mut made = Vec::new();
            // In the order of the file.
            for field in &message.descriptor_proto().field {
                let field = message.get_field(field.number() as u32);
                made.extend(field.and_then(|field| self.field(cx, &field)));
            }
            let table = self.made[message.full_name()];
            self.tables[table].fields = made;
            if self.tables.len() > PROTO_MESSAGES_MAX {
                let message =
                    format!("more than {PROTO_MESSAGES_MAX} messages of protobuf are used");
                let error = cx.error("too-many", message, place).label("one too many");
                cx.note(error.help("declare the messages that are used"));
                self.open.clear();
            }
        }
    }

    fn field(&mut self, cx: &mut Context<'_>, field: &FieldDescriptor) -> Option<ProtoField> {
        if field.is_group() {
            let place = self.files.place(field.parent_file().file_descriptor_proto(), field.path());
            let message = "throng does not know groups of protobuf".to_string();
            let label = format!("the field `{}`", shorten(field.full_name()));
            let error = cx.error("proto-feature", message, place).label(label);
            return cx.fail(error.help("make it a message of its own"));
        }
        if field.is_map() {
            return self.map(field);
        }
        let ty = self.field_type(&field.kind());
        Some(ProtoField {
            repeated: field.is_list(),
            packed: is_packed(field),
            required: field.cardinality() == Cardinality::Required,
            ..plain(field, ty)
        })
    }

    fn map(&mut self, field: &FieldDescriptor) -> Option<ProtoField> {
        let Kind::Message(entry) = field.kind() else { return None };
        let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
        let (key_type, value_type) = (self.field_type(&key.kind()), self.field_type(&value.kind()));
        let name = format!("{}.{}", field.parent_message().full_name(), field.name());
        let fields = vec![plain(&key, key_type), plain(&value, value_type)];
        self.tables.push(ProtoMessage { name, fields });
        let entry = ProtoType::Map(self.tables.len() - 1);
        Some(ProtoField { repeated: true, ..plain(field, entry) })
    }

    fn field_type(&mut self, kind: &Kind) -> ProtoType {
        match kind {
            Kind::Double => ProtoType::Double,
            Kind::Float => ProtoType::Float,
            Kind::Int32 => ProtoType::Int32,
            Kind::Int64 => ProtoType::Int64,
            Kind::Uint32 => ProtoType::Uint32,
            Kind::Uint64 => ProtoType::Uint64,
            Kind::Sint32 => ProtoType::Sint32,
            Kind::Sint64 => ProtoType::Sint64,
            Kind::Fixed32 => ProtoType::Fixed32,
            Kind::Fixed64 => ProtoType::Fixed64,
            Kind::Sfixed32 => ProtoType::Sfixed32,
            Kind::Sfixed64 => ProtoType::Sfixed64,
            Kind::Bool => ProtoType::Bool,
            Kind::String => ProtoType::Text,
            Kind::Bytes => ProtoType::Bytes,
            Kind::Message(message) => ProtoType::Message(self.table(message)),
            Kind::Enum(names) => ProtoType::Enum(values(names)),
        }
    }
}

/// What the option says; prost-reflect looks before it has read the options of a text.
fn is_packed(field: &FieldDescriptor) -> bool {
    let options = field.field_descriptor_proto().options.as_ref();
    options.and_then(|options| options.packed).unwrap_or(field.is_packed())
}

/// A field that is there once or not at all.
fn plain(field: &FieldDescriptor, ty: ProtoType) -> ProtoField {
    ProtoField {
        name: field.name().to_owned(),
        number: field.number(),
        ty,
        repeated: false,
        packed: false,
        required: false,
    }
}

/// In the order of the file.
fn values(names: &EnumDescriptor) -> Vec<(String, i32)> {
    let values = &names.enum_descriptor_proto().value;
    values.iter().map(|value| (value.name().to_owned(), value.number())).collect()
}
