//! Protocol files: YAML → located syntax → [`Declaration`] → [`Protocol`]. Keys and words of Kaitai
//! Struct are accepted if they mean the same. Contradictions are found by [`Protocol::compile`];
//! its mistakes get their places here.

mod field;
pub mod given;
pub mod keys;
pub mod library;
mod proto;
mod values;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use throng_base::{Diagnostic, Said, Source};
use throng_protocol::framed::declaration::{
    self, Acknowledgement, Copied, Declaration, Endian, Framing, Heartbeat, Layer, Literal,
    Message, More, Placed, Struct, Transport,
};
use throng_protocol::framed::{Mistake, Protocol};

use crate::CompileOptions;
use crate::ast::{self, Field};
use crate::read::{Context, Found};
use crate::scope::{FileRole, SessionNames};
use crate::syntax::{self, Kind, Node, Place, SOURCE_BYTES_MAX};
use crate::words::shorten;
use field::Within;
use proto::Protos;
use values::parse_int;

/// The default maximum size of a packet that ends with a delimiter.
pub const DELIMITED_BYTES_MAX: u32 = 64 * 1024;

const PROTOCOL_HELP: Said = say!("write `packet: [...]` and `messages: {{...}}`");
const FIELDS_HELP: Said =
    say!("write `[{{id: room, type: u64}}, {{id: text, type: str, length: u16}}]`");
const NAME_HELP: Said = say!("a name consists of letters, digits and `_`: `user_id`");

/// Why the bytes of a protocol file are not a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoText {
    TooLarge,
    NotUtf8,
}

/// The text of a protocol file, from the bytes that [`crate::read_disk`] returned.
pub fn text_of(bytes: Vec<u8>) -> Result<String, NoText> {
    match bytes.len() > SOURCE_BYTES_MAX {
        true => Err(NoText::TooLarge),
        false => String::from_utf8(bytes).map_err(|_| NoText::NotUtf8),
    }
}

/// Reads a protocol file. Returns the protocol and warnings, or all mistakes; both in the order of
/// their places. Paths of `.proto` files are relative to the base of the options.
pub fn read_protocol(
    source: &Arc<Source>,
    options: &CompileOptions<'_>,
) -> Result<(Arc<Protocol>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (mut found, mut names) = (Found::default(), SessionNames::default());
    let of_disk = (options.read_file, options.env);
    let mut cx = Context::new((&mut found, &mut names), (source, &options.base), of_disk);
    let protocol = match syntax::parse(source, 0) {
        Ok(root) => {
            let nothing = Kind::Scalar { text: String::new(), plain: true };
            let root = root.unwrap_or(Node { place: Place::default(), kind: nothing });
            read(&mut cx, &root)
        }
        Err(error) => cx.fail(*error),
    };
    let (diagnostics, failed) = found.finish();
    match protocol {
        Some(protocol) if !failed => Ok((protocol, diagnostics)),
        _ => Err(diagnostics),
    }
}

/// The value of the key `protocol` of a scenario: the path of a protocol file, or its content.
pub(crate) fn load_protocol(cx: &mut Context<'_>, node: &Node) -> Option<Arc<Protocol>> {
    const HELP: Said =
        say!("write `protocol: chat.protocol.yaml`, or declare the protocol here as a map");
    match &node.kind {
        Kind::Map(_) => return read(cx, node),
        Kind::Scalar { .. } if !node.is_null() => {}
        _ => return cx.wrong_type(node, say!("a protocol file"), HELP),
    }
    let name = cx.text(node, say!("the path of a protocol file"))?;
    if let Some(shipped) = name.strip_prefix(library::PREFIX) {
        return load_shipped(cx, node, shipped);
    }
    let path = cx.named_path(node.place, &name, FileRole::Protocol);
    let unreadable = |cx: &mut Context<'_>, label: Said, help: Said| {
        let message = say!("`{}` cannot be read", shorten(&name));
        cx.refuse("file-unreadable", node.place, message, label, help)
    };
    let text = match cx.read(&path, SOURCE_BYTES_MAX).map(text_of) {
        Ok(Ok(text)) => text,
        Ok(Err(NoText::TooLarge)) => {
            let message = say!("the protocol file is larger than 16 MiB");
            let help = say!("split the protocol into several files");
            return cx.refuse("file-too-large", node.place, message, say!("too large"), help);
        }
        Ok(Err(NoText::NotUtf8)) => {
            return unreadable(cx, say!("it is not UTF-8"), say!("save the file as UTF-8"));
        }
        Err(reason) => {
            let help =
                say!("write the path of the protocol file relative to the scenario file's folder");
            return unreadable(cx, Said::of_error(&reason), help);
        }
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    // Named relative to the scenario, so that users find it.
    let own = Path::new(&cx.source(node.place).name).parent().map(|folder| folder.join(&name));
    let shown = own.map_or_else(|| name.clone(), |path| path.to_string_lossy().into_owned());
    parsed(cx, node, &Source::new(shown, text), folder)
}

/// A protocol file that is included in throng.
fn load_shipped(cx: &mut Context<'_>, node: &Node, name: &str) -> Option<Arc<Protocol>> {
    match library::find(name) {
        Some(shipped) => parsed(cx, node, &shipped.source(), PathBuf::new()),
        None => {
            let mistake = library::unknown(name);
            let help = mistake.help.unwrap_or_default();
            cx.refuse(mistake.code, node.place, mistake.message, say!("unknown"), help)
        }
    }
}

fn parsed(
    cx: &mut Context<'_>,
    node: &Node,
    source: &Arc<Source>,
    folder: PathBuf,
) -> Option<Arc<Protocol>> {
    match cx.parse_file(source, folder, &keys::PROTOCOL) {
        Ok(Some(root)) => read(cx, &root),
        Ok(None) => {
            let label = say!("it is empty");
            cx.refuse("empty", node.place, say!("the protocol file is empty"), label, PROTOCOL_HELP)
        }
        Err(error) => cx.fail(*error),
    }
}

/// Reads and compiles a protocol.
fn read(cx: &mut Context<'_>, root: &Node) -> Option<Arc<Protocol>> {
    let before = cx.mistakes.errors();
    let mut reader = ProtocolReader {
        cx,
        places: Vec::new(),
        types: Vec::new(),
        enums: Vec::new(),
        protos: None,
        format: None,
        has_text_kinds: false,
    };
    let declaration = reader.protocol(root)?;
    let ProtocolReader { cx, places, .. } = reader;
    if cx.mistakes.errors() > before {
        return None;
    }
    match Protocol::compile(declaration) {
        Ok(protocol) => Some(Arc::new(protocol)),
        Err(mistakes) => {
            for mistake in mistakes {
                let told = told(cx, &places, mistake);
                cx.note(told);
            }
            None
        }
    }
}

/// A mistake of the compiler as a diagnostic with its place in the file.
fn told(cx: &Context<'_>, places: &[Place], mistake: Mistake) -> Diagnostic {
    let place = |place: declaration::PlaceId| {
        places.get(place.0 as usize).or(places.first()).copied().unwrap_or_default()
    };
    let error = cx.error(mistake.code, mistake.message, place(mistake.place));
    let error = error.label(mistake.label).help(mistake.help);
    match mistake.other {
        Some((other, label)) => {
            let line = cx.line(place(other));
            error.note(say!("line {line}: {label}"))
        }
        None => error,
    }
}

/// `big` or `little`, and their names in Kaitai Struct.
fn read_endian(cx: &mut Context<'_>, node: &Node) -> Option<Endian> {
    let words = [
        ("big", Endian::Big),
        ("little", Endian::Little),
        ("be", Endian::Big),
        ("le", Endian::Little),
    ];
    cx.word(node, &words)
}

/// Texts are UTF-8, which includes ASCII; other encodings are refused.
fn check_encoding(cx: &mut Context<'_>, field: Field<'_>) {
    if let Some(node) = field.node() {
        cx.word(node, &[("UTF-8", ()), ("utf-8", ()), ("ASCII", ()), ("ascii", ())]);
    }
}

/// The names of values, with their places.
type Labels = Vec<(Placed<String>, i64)>;

/// The state of reading a protocol.
struct ProtocolReader<'c, 'a> {
    cx: &'c mut Context<'a>,
    /// By the numbers in [`declaration::PlaceId`]; the first is that of the whole protocol.
    places: Vec<Place>,
    /// The names of the structures.
    types: Vec<String>,
    enums: Vec<(String, Labels)>,
    /// The inner None means that the files could not be used.
    protos: Option<Option<Protos>>,
    /// Packets are documents.
    format: Option<declaration::Format>,
    /// The field that selects the message is a text.
    has_text_kinds: bool,
}

impl ProtocolReader<'_, '_> {
    /// Registers a place and returns its number.
    fn at(&mut self, place: Place) -> declaration::PlaceId {
        self.places.push(place);
        declaration::PlaceId((self.places.len() - 1) as u32)
    }

    fn place(&self, place: declaration::PlaceId) -> Place {
        self.places.get(place.0 as usize).copied().unwrap_or_default()
    }

    fn protocol(&mut self, root: &Node) -> Option<Declaration> {
        if matches!(root.kind, Kind::Scalar { .. }) {
            return self.cx.wrong_type(root, say!("a protocol"), PROTOCOL_HELP);
        }
        let place = self.at(root.place);
        let fields = keys::Protocol::read(self.cx, root)?;
        let transport = fields.transport.node().and_then(|node| read_transport(self.cx, node));
        let is_text = fields.text.node().and_then(|node| self.cx.bool(node)).unwrap_or_default();
        let words = declaration::Format::WORDS;
        self.format = fields.format.node().and_then(|node| self.cx.word(node, &words));
        self.binary(&fields);
        let meta = fields.meta.node().and_then(|node| read_meta(self.cx, node));
        let endian = fields.endian.node().and_then(|node| read_endian(self.cx, node));
        if let (Some(key), Some(_), Some(_)) = (fields.endian.key(), meta, endian) {
            let message = say!("`endian` is set both here and in `meta`");
            let help = say!("keep one of them");
            self.cx.report("conflicting-keys", key.place, message, say!("the second one"), help);
        }
        let framing = self.framing(&fields);
        if let Some(node) = fields.proto.node() {
            let files = crate::message::proto::read(self.cx, node, fields.proto_path.node());
            self.protos = Some(files.map(Protos::new));
        }
        if let Some(node) = fields.enums.node() {
            self.enums(node);
        }
        let types = fields.types.node().map(|node| self.types(node)).unwrap_or_default();
        let packet = ast::one_of(self.cx, &[fields.packet, fields.seq]);
        let packet = packet.map(|(_, node)| self.fields(node, Within::Packet));
        let selects_by_text = |field: &declaration::Field| {
            let is_text =
                matches!(field.ty, declaration::Type::Text(_) | declaration::Type::Bytes(_));
            field.role == declaration::Role::Selects && is_text
        };
        self.has_text_kinds = packet.iter().flatten().any(selects_by_text);
        let help =
            say!("write `messages: {{ping: {{kind: 1}}, pong: {{kind: 2, answers: ping}}}}`");
        let messages = fields.need(self.cx, fields.messages, help);
        let messages = messages.map(|node| self.messages(node)).unwrap_or_default();
        let heartbeat = fields.heartbeat.node().and_then(|node| self.heartbeat(node));
        if packet.is_none() && !fields.packet.is_meant() {
            fields.need(
                self.cx,
                fields.packet,
                say!(
                    "write `packet: [{{id: length, type: u32, counts: body}}, \
                {{id: kind, type: u8, selects: message}}, {{id: body}}]`"
                ),
            );
        }
        let protos = self.protos.take().flatten();
        let schema = protos.map(|protos| protos.schema).unwrap_or_default();
        Some(Declaration {
            transport: transport.unwrap_or_default(),
            is_text,
            format: self.format,
            endian: endian.or(meta).unwrap_or_default(),
            framing,
            packet: packet.unwrap_or_default(),
            messages,
            heartbeat,
            types,
            schema,
            place,
        })
    }

    /// Binary documents are no text, and end by themselves.
    fn binary(&mut self, fields: &keys::Protocol<'_>) {
        let Some(format) = self.format.filter(|format| format.is_binary()) else { return };
        for field in [fields.text, fields.delimiter, fields.fixed, fields.frame] {
            let Some(key) = field.key() else { continue };
            let (name, place) = (&key.text, key.place);
            let message = say!("`{name}` cannot be used with {} documents", format.name());
            let help = say!("remove it: a document is binary, and says itself where it ends");
            self.cx.report("conflicting-keys", place, message, say!("not here"), help);
        }
    }

    fn framing(&mut self, fields: &keys::Protocol<'_>) -> Framing {
        let max = fields.max.node().and_then(|node| read_bytes(self.cx, node));
        if self.format.is_some_and(declaration::Format::is_binary) {
            no_stream(self.cx, fields);
            let bytes_max = max.unwrap_or(DELIMITED_BYTES_MAX);
            let place = declaration::PlaceId::default();
            return Framing::Document { root: None, bytes_max, place };
        }
        match ast::one_of(self.cx, &[fields.delimiter, fields.fixed, fields.frame]) {
            Some((key, node)) if fields.frame.is(key) => {
                let is_xml = self.cx.word(node, &[("fields", false), ("xml", true)]) == Some(true);
                let (bytes_max, place) = (max.unwrap_or(DELIMITED_BYTES_MAX), self.at(node.place));
                if !is_xml {
                    no_stream(self.cx, fields);
                    return Framing::Fields { bytes_max, place };
                }
                let root = fields.stream.node().and_then(|node| {
                    let value = self.cx.text(node, say!("the name of an element"))?;
                    Some(Placed { value, place: self.at(node.place) })
                });
                Framing::Document { root, bytes_max, place }
            }
            Some((key, node)) if fields.delimiter.is(key) => {
                no_stream(self.cx, fields);
                let bytes = values::read_bytes(self.cx, node).unwrap_or_default();
                let bytes = Placed { value: bytes, place: self.at(node.place) };
                Framing::Delimiter { bytes, bytes_max: max.unwrap_or(DELIMITED_BYTES_MAX) }
            }
            other => {
                no_stream(self.cx, fields);
                if let Some(key) = fields.max.key() {
                    let message = say!("`max` requires `delimiter` here");
                    let label = say!("there is no delimiter");
                    let help = say!("write `max` next to `counts`, or remove `max`");
                    self.cx.report("conflicting-keys", key.place, message, label, help);
                }
                let size =
                    other.and_then(|(_, node)| Some((read_bytes(self.cx, node)?, node.place)));
                match size {
                    Some((value, place)) => Framing::Fixed(Placed { value, place: self.at(place) }),
                    None => Framing::Length,
                }
            }
        }
    }

    fn enums(&mut self, node: &Node) {
        let help = say!("write `enums: {{code: {{0: ok, 1: full}}}}`");
        for (key, value) in self.cx.entries(node, say!("a map of enums"), help).unwrap_or_default()
        {
            let labels = self.enumeration(value);
            self.enums.push((key.text.clone(), labels));
        }
    }

    /// Structures by name; all names are collected before the first is read.
    fn types(&mut self, node: &Node) -> Vec<Struct> {
        let help = say!("write `types: {{item: [{{id: price, type: u32}}]}}`");
        let entries = self.cx.entries(node, say!("a map of types"), help).unwrap_or_default();
        for (key, _) in &entries {
            if let Ok(Some(_)) | Err(_) = words::parse(&key.text) {
                let message = say!("the type `{}` already exists", shorten(&key.text));
                let help = say!("give it another name");
                self.cx.report("duplicate-name", key.place, message, say!("a built-in type"), help);
            }
            self.types.push(key.text.clone());
        }
        let mut types = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let name = Placed { value: key.text.clone(), place: self.at(key.place) };
            let fields = match value.kind {
                Kind::Map(_) => keys::Structure::read(self.cx, value)
                    .and_then(|fields| {
                        let help = say!("write `item: [{{id: price, type: u32}}]`");
                        let found = ast::one_of(self.cx, &[fields.seq, fields.fields]);
                        found
                            .map(|(_, node)| node)
                            .or_else(|| fields.need(self.cx, fields.seq, help))
                    })
                    .map(|node| self.fields(node, Within::Type)),
                _ => Some(self.fields(value, Within::Type)),
            };
            types.push(Struct { name, fields: fields.unwrap_or_default() });
        }
        types
    }

    fn messages(&mut self, node: &Node) -> Vec<Message> {
        let help = say!("write `messages: {{ping: {{kind: 1}}}}`");
        let entries = self.cx.entries(node, say!("a map of messages"), help).unwrap_or_default();
        let mut messages = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            if !values::is_name(&key.text) {
                let message = say!("`{}` is not a valid message name", shorten(&key.text));
                let label = say!("not a valid name");
                self.cx.report("bad-value", key.place, message, label, NAME_HELP);
                continue;
            }
            let place = self.at(key.place);
            let name = Placed { value: key.text.clone(), place };
            messages.extend(self.message(name, place, value));
        }
        messages
    }

    fn message(
        &mut self,
        name: Placed<String>,
        place: declaration::PlaceId,
        node: &Node,
    ) -> Option<Message> {
        let mut message = Message {
            name,
            kind: None,
            answers: Vec::new(),
            push: false,
            more: None,
            holds_packets: false,
            body: Vec::new(),
            acknowledged_by: None,
            place,
        };
        if node.is_null() {
            return Some(message);
        }
        let fields = keys::DeclaredMessage::read(self.cx, node)?;
        if let Some(node) = fields.kind.node() {
            let value = self.kind(node);
            message.kind = value.map(|value| Placed { value, place: self.at(node.place) });
        }
        if let Some(node) = fields.answers.node() {
            message.answers = self.names(node, say!("the name of a message"));
        }
        message.push = fields.push.node().and_then(|node| self.cx.bool(node)).unwrap_or_default();
        match ast::one_of(self.cx, &[fields.body, fields.seq, fields.packets]) {
            Some((key, node)) if fields.packets.is(key) => {
                let words = Layer::WORDS.map(|(word, layer)| (word, Some(layer)));
                let words = [&[("plain", None)][..], &words[..]].concat();
                if let Some(layer) = self.cx.word(node, &words) {
                    message.body = vec![self.packets(layer, node.place)];
                    message.holds_packets = true;
                }
            }
            Some((_, node)) if !node.is_null() => message.body = self.fields(node, Within::Body),
            _ => {}
        }
        if let Some(node) = fields.more.node() {
            message.more = self.more(node, &message.body);
        }
        if let Some(node) = fields.acknowledged_by.node() {
            message.acknowledged_by = self.acknowledgement(node);
        }
        Some(message)
    }

    /// The only field of a message that contains packets.
    fn packets(&mut self, layer: Option<Layer>, place: Place) -> declaration::Field {
        let place = self.at(place);
        let id = Placed { value: "packets".to_string(), place };
        let ty = declaration::Type::Bytes(declaration::Extent::Rest);
        declaration::Field { layer, ..declaration::Field::new(id, ty, place) }
    }

    /// `true`, or a condition on a field of the message or of the packet.
    fn more(&mut self, node: &Node, body: &[declaration::Field]) -> Option<More> {
        match &node.kind {
            Kind::Scalar { text, plain: true } if text == "true" || text == "false" => {
                self.cx.bool(node)?.then_some(More::Always)
            }
            _ => self.condition(node, body).map(More::If),
        }
    }

    /// `3`, `[10, 11]`, `PUB`.
    fn kind(&mut self, node: &Node) -> Option<declaration::MessageKind> {
        const WANT: Said = say!("a message kind");
        if self.has_text_kinds {
            let text = self.cx.text(node, WANT)?;
            values::check_escapes(self.cx, node, &text)?;
            return Some(declaration::MessageKind::Text(text.into_bytes()));
        }
        let nodes = node.one_or_more();
        let numbers = nodes.iter().map(|node| values::read_int(self.cx, node, WANT));
        Some(declaration::MessageKind::Numbers(numbers.collect::<Option<_>>()?))
    }

    /// `received`, or `{received: {id: id}}`.
    fn acknowledgement(&mut self, node: &Node) -> Option<Acknowledgement> {
        const HELP: Said = say!("write `acknowledged_by: {{received: {{id: id}}}}`");
        let Kind::Map(_) = node.kind else {
            let message = self.name(node, say!("the name of a message"))?;
            return Some(Acknowledgement { message, fields: Vec::new() });
        };
        let entries = self.cx.entries(node, say!("a message"), HELP)?;
        let [(key, given)] = entries[..] else {
            let text = say!("a message must be acknowledged by exactly one other message");
            let label = say!("this is not a single message");
            return self.cx.refuse("bad-value", node.place, text, label, HELP);
        };
        let message = Placed { value: key.text.clone(), place: self.at(key.place) };
        let mut fields = Vec::new();
        if !given.is_null() {
            let help = say!(
                "write `{{id: id}}`: the field to set, then the field of the received \
                     message to copy"
            );
            for (key, value) in self.cx.entries(given, say!("a map of fields"), help)? {
                let Some(copied) = read_copied(self.cx, value) else { continue };
                let place = self.at(value.place);
                let id = Placed { value: key.text.clone(), place: self.at(key.place) };
                fields.push((id, Placed { value: copied, place }));
            }
        }
        Some(Acknowledgement { message, fields })
    }

    fn heartbeat(&mut self, node: &Node) -> Option<Heartbeat> {
        let fields = keys::Beat::read(self.cx, node)?;
        let help =
            say!("write `heartbeat: {{send: ping, expect: pong, every: 30s, lost_after: 10s}}`");
        let send = fields.need(self.cx, fields.send, help.clone());
        let send = send.and_then(|node| self.name(node, say!("the name of a message")));
        let every = fields.need(self.cx, fields.every, help.clone());
        let every = every.and_then(|node| self.cx.time_limit(node));
        let expect =
            fields.expect.node().and_then(|node| self.name(node, say!("the name of a message")));
        let lost_after = fields.lost_after.node().and_then(|node| self.cx.time_limit(node));
        if let (Some(key), None) = (fields.lost_after.key(), fields.expect.node()) {
            let message =
                say!("`lost_after` requires `expect`: a heartbeat without a reply cannot be lost");
            self.cx.report("missing-key", key.place, message, say!("`expect` is missing"), help);
        }
        let place = self.at(node.place);
        Some(Heartbeat { send: send?, expect, every: every?, lost_after, place })
    }

    /// A word that names something, with its place.
    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    fn name(&mut self, node: &Node, want: Said) -> Option<Placed<String>> {
        let text = self.cx.text(node, want.clone())?;
        if !values::is_name(&text) {
            let message = say!("`{}` is not {want}", shorten(&text));
            let label = say!("not a valid name");
            return self.cx.refuse("bad-value", node.place, message, label, NAME_HELP);
        }
        Some(Placed { value: text, place: self.at(node.place) })
    }

    /// One name or a list of them.
    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    fn names(&mut self, node: &Node, want: Said) -> Vec<Placed<String>> {
        let nodes = node.one_or_more();
        nodes.iter().filter_map(|node| self.name(node, want.clone())).collect()
    }
}

/// Only elements have one around all of them.
fn no_stream(cx: &mut Context<'_>, fields: &keys::Protocol<'_>) {
    if let Some(key) = fields.stream.key() {
        let label = say!("packets do not end with their element");
        let help = say!("add `frame: xml`, or remove `stream`");
        cx.report("missing-key", key.place, say!("`stream` requires `frame: xml`"), label, help);
    }
}

fn read_bytes(cx: &mut Context<'_>, node: &Node) -> Option<u32> {
    let size = cx.size(node)?;
    match u32::try_from(size) {
        Ok(size) => Some(size),
        Err(_) => cx.bad_value(node, say!("the number is too large"), say!("write `64KiB`")),
    }
}

fn read_meta(cx: &mut Context<'_>, node: &Node) -> Option<Endian> {
    let fields = keys::Meta::read(cx, node)?;
    check_encoding(cx, fields.encoding);
    fields.endian.node().and_then(|node| read_endian(cx, node))
}

fn read_transport(cx: &mut Context<'_>, node: &Node) -> Option<Transport> {
    let words = [
        ("tcp", Transport::Tcp),
        ("tls", Transport::Tls),
        ("udp", Transport::Udp),
        ("ws", Transport::WebSocket),
        ("wss", Transport::WebSocketTls),
    ];
    cx.word(node, &words)
}

/// A plain word is a field of the received message; numbers and quoted texts are literals.
fn read_copied(cx: &mut Context<'_>, node: &Node) -> Option<Copied> {
    let Kind::Scalar { text, plain } = &node.kind else {
        let help = say!("write the name of a field: `{{id: id}}`");
        return cx.wrong_type(node, say!("a field or a single value"), help);
    };
    let path = text.strip_prefix("${message.").and_then(|text| text.strip_suffix('}'));
    if let Some(path) = path {
        return Some(Copied::Field(path.trim().to_string()));
    }
    if !plain {
        return Some(Copied::Literal(Literal::Text(text.clone())));
    }
    let literal = match text.as_str() {
        "true" => Some(Literal::Bool(true)),
        "false" => Some(Literal::Bool(false)),
        text => parse_int(text).map(Literal::Int).or_else(|| {
            let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            text.parse().ok().filter(|_| is_number).map(Literal::Float)
        }),
    };
    Some(match literal {
        Some(literal) => Copied::Literal(literal),
        None => Copied::Field(text.clone()),
    })
}

#[cfg(test)]
pub(crate) mod tests;
