//! Messages of `.proto` files for `protobuf(Message)`: reads the files and what they import, and
//! makes tables of the messages that are used, and of those in them.

mod parse;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use throng_base::Source;
use throng_protocol::framed::declaration::{ProtoField, ProtoMessage, ProtoType};

use crate::read::{Context, shorten};
use crate::recorded::Named;
use crate::synonyms::did_you_mean;
use crate::syntax::{Kind, Node, Place};
use parse::{Field, Label, joined};

/// How many `.proto` files may be read, those that are imported among them.
pub(super) const PROTO_FILES_MAX: usize = 64;

/// The largest `.proto` file.
pub(super) const PROTO_BYTES_MAX: usize = 1024 * 1024;

/// The most messages that the tables have.
pub(super) const PROTO_MESSAGES_MAX: usize = 4096;

const HELP: &str = "write `proto: shop.proto` or `proto: [shop.proto, user.proto]`";

/// All that the files declare.
#[derive(Default)]
pub(super) struct Protos {
    read: Vec<PathBuf>,
    files: Vec<(u16, parse::File)>,
    symbols: HashMap<String, Symbol>,
    /// The messages that have tables, with their numbers.
    made: HashMap<(usize, usize), usize>,
    pub(super) tables: Vec<ProtoMessage>,
    /// Messages whose fields are not made yet.
    open: Vec<(usize, usize)>,
}

#[derive(Clone, Copy)]
enum Symbol {
    /// The number of the file, and in it.
    Message(usize, usize),
    Enum(usize, usize),
}

/// A file that is to be read: its path, what the person calls it, and where that stands.
struct Wanted {
    path: PathBuf,
    /// Where imports are looked for.
    root: PathBuf,
    name: String,
    place: Place,
}

impl Protos {
    /// Reads the files of the key `proto`.
    pub(super) fn read(cx: &mut Context<'_>, node: &Node) -> Protos {
        let mut protos = Protos::default();
        let nodes = match &node.kind {
            Kind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        for node in nodes {
            if node.is_null() || !matches!(node.kind, Kind::Scalar { .. }) {
                cx.wrong_type::<()>(node, "the path of a `.proto` file", HELP);
                continue;
            }
            let Some(name) = cx.text(node, "the path of a `.proto` file") else { continue };
            let path = cx.path(node.place, &name);
            let root = path.parent().unwrap_or(Path::new("")).to_path_buf();
            protos.read_all(cx, Wanted { path, root, name, place: node.place });
        }
        protos
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Reads a file and what it imports.
    fn read_all(&mut self, cx: &mut Context<'_>, first: Wanted) {
        let mut wanted = vec![first];
        while let Some(one) = wanted.pop() {
            if self.read.contains(&one.path) {
                continue;
            }
            if self.read.len() >= PROTO_FILES_MAX {
                let message = format!("more than {PROTO_FILES_MAX} `.proto` files are read");
                let error = cx.error("too-many", message, one.place).label("one too many");
                return cx.note(error.help("put the messages that are used into one file"));
            }
            self.read.push(one.path.clone());
            let Some(text) = read_text(cx, &one) else { continue };
            let number =
                cx.add_source(Source::new(one.name.as_str(), text.as_str()), one.root.clone());
            let at = |(start, end): (usize, usize)| Place::new(number, start, end);
            match parse::parse(&text) {
                Ok(file) => {
                    for (name, place) in &file.imports {
                        let (path, root) = (one.root.join(name), one.root.clone());
                        wanted.push(Wanted { path, root, name: name.clone(), place: at(*place) });
                    }
                    self.add(number, file);
                }
                Err(wrong) => {
                    let error = cx.error(wrong.code, wrong.message, at(wrong.place));
                    cx.note(error.label(wrong.label).help(wrong.help));
                }
            }
        }
    }

    fn add(&mut self, number: u16, file: parse::File) {
        let at = self.files.len();
        for (i, message) in file.messages.iter().enumerate() {
            self.symbols.entry(message.name.clone()).or_insert(Symbol::Message(at, i));
        }
        for (i, one) in file.enums.iter().enumerate() {
            self.symbols.entry(one.name.clone()).or_insert(Symbol::Enum(at, i));
        }
        self.files.push((number, file));
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
        let mut found: Vec<(&String, (usize, usize))> = self
            .symbols
            .iter()
            .filter_map(|(full, symbol)| match symbol {
                Symbol::Message(file, i) => Some((full, (*file, *i))),
                Symbol::Enum(..) => None,
            })
            .filter(|(full, _)| *full == plain || full.ends_with(&ending))
            .collect();
        // The full name means itself, whatever else ends so.
        found.sort_unstable();
        let exact = found.iter().position(|(full, _)| *full == plain);
        match (exact, &found[..]) {
            (Some(at), _) => {
                let id = found[at].1;
                let table = self.table(id);
                self.fill(cx);
                Some(table)
            }
            (None, [(_, id)]) => {
                let id = *id;
                let table = self.table(id);
                self.fill(cx);
                Some(table)
            }
            (None, []) => self.unknown(cx, name, place),
            (None, [first, second, ..]) => {
                let message = format!("`{}` is the name of several messages", shorten(name));
                let error = cx.error("bad-proto", message, place);
                let label = format!("`{}` and `{}`", first.0, second.0);
                let help = format!("write the full name: `protobuf({})`", first.0);
                cx.fail(error.label(label).help(help))
            }
        }
    }

    fn unknown<T>(&self, cx: &mut Context<'_>, name: &str, place: Place) -> Option<T> {
        let message = format!("there is no message `{}` in the `.proto` files", shorten(name));
        let error = cx.error("unknown-type", message, place);
        let names = self.files.iter().flat_map(|(_, file)| &file.messages);
        let short = names.map(|message| message.name.as_str());
        let meant = did_you_mean(name, short.clone()).or_else(|| {
            did_you_mean(name, short.clone().filter_map(|name| name.rsplit('.').next()))
        });
        let error = error.label(match meant {
            Some(word) => format!("did you mean `{word}`?"),
            None => "not known here".into(),
        });
        let mut first: Vec<&str> = short.take(8).collect();
        first.sort_unstable();
        cx.fail(error.help(match first.is_empty() {
            true => HELP.to_string(),
            false => format!("the files have `{}`", first.join("`, `")),
        }))
    }

    /// The number of a table, which is filled later.
    fn table(&mut self, id: (usize, usize)) -> usize {
        if let Some(number) = self.made.get(&id) {
            return *number;
        }
        let name = self.files[id.0].1.messages[id.1].name.clone();
        self.tables.push(ProtoMessage { name, fields: Vec::new() });
        self.made.insert(id, self.tables.len() - 1);
        self.open.push(id);
        self.tables.len() - 1
    }

    /// Makes the fields of all tables that have none yet.
    fn fill(&mut self, cx: &mut Context<'_>) {
        while let Some(id) = self.open.pop() {
            let (number, file) = &mut self.files[id.0];
            let (number, name) = (*number, file.messages[id.1].name.clone());
            // A table is filled once; what it was made from is not needed any more.
            let fields = std::mem::take(&mut file.messages[id.1].fields);
            let mut made = Vec::with_capacity(fields.len());
            for field in &fields {
                made.extend(self.field(cx, number, &name, field));
            }
            let table = self.made[&id];
            self.tables[table].fields = made;
            if self.tables.len() > PROTO_MESSAGES_MAX {
                let message =
                    format!("more than {PROTO_MESSAGES_MAX} messages of protobuf are used");
                let error = cx.error("too-many", message, Place::new(number, 0, 0));
                cx.note(error.label("one too many").help("declare the messages that are used"));
                self.open.clear();
            }
        }
    }

    fn field(
        &mut self,
        cx: &mut Context<'_>,
        file: u16,
        scope: &str,
        field: &Field,
    ) -> Option<ProtoField> {
        let ty = self.field_type(cx, file, scope, &field.ty, field)?;
        let plain = |name: &str, number, ty| ProtoField {
            name: name.to_string(),
            number,
            ty,
            repeated: false,
            packed: false,
            required: false,
        };
        let Some(key) = &field.map_key else {
            let repeated = field.label == Label::Repeated;
            let can_pack =
                !matches!(ty, ProtoType::Text | ProtoType::Bytes | ProtoType::Message(_));
            return Some(ProtoField {
                repeated,
                packed: repeated && can_pack && field.packed,
                required: field.label == Label::Required,
                ..plain(&field.name, field.number, ty)
            });
        };
        let key = scalar(key)
            .filter(|key| !matches!(key, ProtoType::Double | ProtoType::Float | ProtoType::Bytes));
        let Some(key) = key else {
            let place = Place::new(file, field.place.0, field.place.1);
            let message = format!("the keys of the map `{}` are no keys", shorten(&field.name));
            let error = cx.error("bad-proto", message, place).label("of this map");
            return cx.fail(error.help("keys are whole numbers, `bool` or `string`"));
        };
        let name = format!("{scope}.{}", field.name);
        let fields = vec![plain("key", 1, key), plain("value", 2, ty)];
        self.tables.push(ProtoMessage { name, fields });
        let entry = ProtoType::Map(self.tables.len() - 1);
        Some(ProtoField { repeated: true, ..plain(&field.name, field.number, entry) })
    }

    fn field_type(
        &mut self,
        cx: &mut Context<'_>,
        file: u16,
        scope: &str,
        name: &str,
        field: &Field,
    ) -> Option<ProtoType> {
        if let Some(ty) = scalar(name) {
            return Some(ty);
        }
        match self.resolve(scope, name) {
            Some(Symbol::Message(file, i)) => Some(ProtoType::Message(self.table((file, i)))),
            Some(Symbol::Enum(file, i)) => {
                Some(ProtoType::Enum(self.files[file].1.enums[i].values.clone()))
            }
            None => {
                let place = Place::new(file, field.place.0, field.place.1);
                let message = format!("there is no type `{}`", shorten(name));
                let error = cx.error("bad-proto", message, place).label("not known here");
                cx.fail(error.help("declare it, or import the file that declares it"))
            }
        }
    }

    /// Looks for a name from the innermost scope outwards.
    fn resolve(&self, scope: &str, name: &str) -> Option<Symbol> {
        if let Some(full) = name.strip_prefix('.') {
            return self.symbols.get(full).copied();
        }
        let mut scope = Some(scope);
        while let Some(inner) = scope {
            if let Some(symbol) = self.symbols.get(&joined(inner, name)) {
                return Some(*symbol);
            }
            scope = match inner.rfind('.') {
                Some(dot) => Some(&inner[..dot]),
                None => (!inner.is_empty()).then_some(""),
            };
        }
        None
    }
}

fn scalar(name: &str) -> Option<ProtoType> {
    Some(match name {
        "double" => ProtoType::Double,
        "float" => ProtoType::Float,
        "int32" => ProtoType::Int32,
        "int64" => ProtoType::Int64,
        "uint32" => ProtoType::Uint32,
        "uint64" => ProtoType::Uint64,
        "sint32" => ProtoType::Sint32,
        "sint64" => ProtoType::Sint64,
        "fixed32" => ProtoType::Fixed32,
        "fixed64" => ProtoType::Fixed64,
        "sfixed32" => ProtoType::Sfixed32,
        "sfixed64" => ProtoType::Sfixed64,
        "bool" => ProtoType::Bool,
        "string" => ProtoType::Text,
        "bytes" => ProtoType::Bytes,
        _ => return None,
    })
}

/// The files that protobuf itself has, as far as their messages are plain.
fn well_known(name: &str) -> Option<&'static str> {
    Some(match name {
        "google/protobuf/timestamp.proto" => {
            "syntax = \"proto3\"; package google.protobuf;\n\
             message Timestamp { int64 seconds = 1; int32 nanos = 2; }\n"
        }
        "google/protobuf/duration.proto" => {
            "syntax = \"proto3\"; package google.protobuf;\n\
             message Duration { int64 seconds = 1; int32 nanos = 2; }\n"
        }
        "google/protobuf/empty.proto" => {
            "syntax = \"proto3\"; package google.protobuf; message Empty {}\n"
        }
        "google/protobuf/any.proto" => {
            "syntax = \"proto3\"; package google.protobuf;\n\
             message Any { string type_url = 1; bytes value = 2; }\n"
        }
        "google/protobuf/field_mask.proto" => {
            "syntax = \"proto3\"; package google.protobuf;\n\
             message FieldMask { repeated string paths = 1; }\n"
        }
        "google/protobuf/wrappers.proto" => {
            "syntax = \"proto3\"; package google.protobuf;\n\
             message DoubleValue { double value = 1; } message FloatValue { float value = 1; }\n\
             message Int64Value { int64 value = 1; } message UInt64Value { uint64 value = 1; }\n\
             message Int32Value { int32 value = 1; } message UInt32Value { uint32 value = 1; }\n\
             message BoolValue { bool value = 1; } message StringValue { string value = 1; }\n\
             message BytesValue { bytes value = 1; }\n"
        }
        // Only for options, which are passed over.
        "google/protobuf/descriptor.proto" => "syntax = \"proto2\"; package google.protobuf;\n",
        _ => return None,
    })
}

fn read_text(cx: &mut Context<'_>, wanted: &Wanted) -> Option<String> {
    let unreadable = |cx: &mut Context<'_>, label: String, help: &str| {
        let message = format!("`{}` cannot be read", shorten(&wanted.name));
        let error = cx.error("file-unreadable", message, wanted.place);
        cx.fail(error.label(label).help(help))
    };
    let bytes = match (cx.read(&wanted.path, PROTO_BYTES_MAX), well_known(&wanted.name)) {
        (Ok(bytes), _) => {
            let path = wanted.path.clone();
            cx.named_files.push(Named { place: wanted.place, path, is_protocol: true });
            bytes
        }
        (Err(_), Some(text)) => return Some(text.to_string()),
        (Err(reason), None) => {
            let help = "the path counts from the folder of the protocol file, that of an import \
                        from the folder of the first `.proto` file";
            return unreadable(cx, reason.to_string(), help);
        }
    };
    if bytes.len() > PROTO_BYTES_MAX {
        let message = "the `.proto` file is larger than 1 MiB".to_string();
        let error = cx.error("file-too-large", message, wanted.place).label("too large");
        return cx.fail(error.help("put the messages that are used into a file of their own"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(_) => unreadable(cx, "it is not UTF-8".into(), "save the file as UTF-8"),
    }
}
