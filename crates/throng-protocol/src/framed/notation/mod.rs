//! The formats of documents: where the parts of a document are, what they are, and how values are
//! written. JSON, CBOR and MessagePack share the search for parts; XML has attributes, and finds
//! its parts itself.

mod binary;
mod heads;
mod json;
#[cfg(test)]
mod tests;
pub(super) mod xml;

use std::ops::Range;

use throng_base::Said;
use throng_expression::Value;

use super::declaration::Format;
use super::wanted::{ABSENT, Inner, Span, Wanted};
use binary::Binary;
use json::Json;
pub(super) use xml::ExtentSearch;

/// Lists and maps within each other.
const DEPTH_MAX: usize = 64;

/// What a value has in it.
enum Inside {
    Entries,
    Items,
    Nothing,
}

/// Reads one notation. Errors are the places where the bytes stop being a document.
trait Syntax: Copy {
    /// Where the value begins that is at `at` or behind spaces there.
    fn start(self, bytes: &[u8], at: usize) -> usize;
    /// Behind the value at `at`.
    fn skip(self, bytes: &[u8], at: usize, depth_left: usize) -> Result<usize, usize>;
    fn inside(self, bytes: &[u8], at: usize) -> Inside;
    /// Behind the map or list at `at`; `part` reads one of its entries or items.
    fn parts(
        self,
        bytes: &[u8],
        at: usize,
        depth_left: usize,
        part: impl FnMut(usize, usize) -> Result<usize, usize>,
    ) -> Result<usize, usize>;
    /// The end of the key at `at`, and where its value begins.
    fn key(self, bytes: &[u8], at: usize, depth_left: usize) -> Result<(usize, usize), usize>;
    fn is_key(self, written: &[u8], wanted: &str) -> bool;
}

/// A document, and nothing else.
fn whole(
    syntax: impl Syntax,
    bytes: &[u8],
    value: impl FnOnce(usize) -> Result<usize, usize>,
) -> Result<(), usize> {
    let end = syntax.start(bytes, value(syntax.start(bytes, 0))?);
    if end == bytes.len() { Ok(()) } else { Err(end) }
}

/// Behind the value at `at`, of which some parts are wanted.
fn wanted_value(
    syntax: impl Syntax,
    bytes: &[u8],
    at: usize,
    depth_left: usize,
    wanted: &Wanted,
    found: &mut [Span],
) -> Result<usize, usize> {
    let inside = match wanted.children.is_empty() {
        true => Inside::Nothing,
        false => syntax.inside(bytes, at),
    };
    let end = match inside {
        Inside::Nothing => syntax.skip(bytes, at, depth_left)?,
        Inside::Entries => syntax.parts(bytes, at, depth_left, |at, depth_left| {
            let (end, value) = syntax.key(bytes, at, depth_left)?;
            let child = wanted.below(|step| match step {
                Inner::Key(key) => syntax.is_key(&bytes[at..end], key),
                Inner::Index(_) => false,
            });
            wanted_part(syntax, bytes, value, depth_left, child, found)
        })?,
        Inside::Items => {
            let mut index = 0;
            syntax.parts(bytes, at, depth_left, |at, depth_left| {
                let child = wanted.below(|step| *step == Inner::Index(index));
                index += 1;
                wanted_part(syntax, bytes, at, depth_left, child, found)
            })?
        }
    };
    if let Some(slot) = wanted.slot {
        found[usize::from(slot)] = (at as u32, end as u32);
    }
    Ok(end)
}

/// The value of a key or of an item. Of a key that is there twice, the last one counts.
fn wanted_part(
    syntax: impl Syntax,
    bytes: &[u8],
    at: usize,
    depth_left: usize,
    wanted: Option<&Wanted>,
    found: &mut [Span],
) -> Result<usize, usize> {
    let Some(wanted) = wanted else { return syntax.skip(bytes, at, depth_left) };
    found[usize::from(wanted.slots.start)..usize::from(wanted.slots.end)].fill(ABSENT);
    wanted_value(syntax, bytes, at, depth_left, wanted, found)
}

/// Where the part is that `steps` lead to in a document that was checked.
fn search(syntax: impl Syntax, bytes: &[u8], steps: &[Inner]) -> Option<Range<usize>> {
    let mut at = syntax.start(bytes, 0);
    for step in steps {
        let (mut found, mut index) = (None, 0);
        let searched = match (syntax.inside(bytes, at), step) {
            (Inside::Entries, Inner::Key(wanted)) => {
                syntax.parts(bytes, at, DEPTH_MAX, |at, depth_left| {
                    let (end, value) = syntax.key(bytes, at, depth_left)?;
                    if syntax.is_key(&bytes[at..end], wanted) {
                        found = Some(value);
                    }
                    syntax.skip(bytes, value, depth_left)
                })
            }
            (Inside::Items, Inner::Index(wanted)) => {
                syntax.parts(bytes, at, DEPTH_MAX, |at, depth_left| {
                    if index == *wanted {
                        found = Some(at);
                        // There is nothing to look for behind it.
                        return Err(at);
                    }
                    index += 1;
                    syntax.skip(bytes, at, depth_left)
                })
            }
            _ => return None,
        };
        // A document that is broken behind the part has no such part; a list is left early.
        at = found.filter(|at| searched.is_ok() || searched == Err(*at))?;
    }
    Some(at..syntax.skip(bytes, at, DEPTH_MAX).ok()?)
}

/// What is known of a document that begins with some bytes.
pub(super) enum Extent {
    Complete(usize),
    /// As many bytes are needed before more is known.
    Needs(usize),
}

/// How text or bytes stand in a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    Text,
    /// Elements and text of XML, as they are written.
    Markup,
    Bytes,
}

/// What a part of a document is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PartKind {
    Null,
    Bool(bool),
    Whole(i128),
    Float(f64),
    Text,
    Bytes,
    ListOrMap,
    /// What only other programs can give a meaning: its type, and what such types are called.
    Foreign(i16, &'static str),
}

impl PartKind {
    pub(super) fn float(self) -> Option<f64> {
        match self {
            PartKind::Float(number) => Some(number),
            PartKind::Whole(number) => Some(number as f64),
            _ => None,
        }
    }
}

/// What reads and writes a format.
enum Notation {
    Json,
    Binary(Binary),
    Xml,
}

/// Calls a function with the syntax of a format; `xml` is what XML does instead.
macro_rules! with_syntax {
    ($format:expr, $syntax:ident => $then:expr, $xml:expr) => {
        match $format.notation() {
            Notation::Json => {
                let $syntax = Json;
                $then
            }
            Notation::Binary($syntax) => $then,
            Notation::Xml => $xml,
        }
    };
}

impl Format {
    pub const WORDS: [(&'static str, Format); 4] = [
        ("json", Format::Json),
        ("cbor", Format::Cbor),
        ("msgpack", Format::MessagePack),
        ("xml", Format::Xml),
    ];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "JSON",
            Format::Cbor => "CBOR",
            Format::MessagePack => "MessagePack",
            Format::Xml => "XML",
        }
    }

    /// As a declaration has it.
    pub fn word(self) -> &'static str {
        Format::WORDS[self as usize].0
    }

    /// Documents that are bytes, and end by themselves.
    pub fn is_binary(self) -> bool {
        matches!(self.notation(), Notation::Binary(_))
    }

    /// In XML, every value is a text.
    pub(super) fn has_types(self) -> bool {
        self != Format::Xml
    }

    /// Whether a path leads to markup, whose value is as it is written.
    pub(super) fn is_markup(self, path: &[Inner]) -> bool {
        self == Format::Xml && xml::is_markup(path)
    }

    fn notation(self) -> Notation {
        match self {
            Format::Json => Notation::Json,
            Format::Cbor => Notation::Binary(Binary::Cbor),
            Format::MessagePack => Notation::Binary(Binary::MessagePack),
            Format::Xml => Notation::Xml,
        }
    }

    fn binary(self) -> Option<Binary> {
        match self.notation() {
            Notation::Binary(binary) => Some(binary),
            _ => None,
        }
    }

    /// Where the bytes stop being one document; the caller has made sure that text is UTF-8.
    pub(super) fn check(self, bytes: &[u8]) -> Result<(), usize> {
        with_syntax!(
            self,
            syntax => whole(syntax, bytes, |at| syntax.skip(bytes, at, DEPTH_MAX)),
            xml::scan(bytes, &[], &Wanted::default(), &mut [])
        )
    }

    /// Records where the wanted parts are, in one pass over the document. In XML, each tag of the
    /// element `root` is a packet.
    pub(super) fn scan(
        self,
        root: &[u8],
        bytes: &[u8],
        wanted: &Wanted,
        found: &mut [Span],
    ) -> Result<(), usize> {
        with_syntax!(
            self,
            syntax => whole(syntax, bytes, |at| {
                wanted_value(syntax, bytes, at, DEPTH_MAX, wanted, found)
            }),
            xml::scan(bytes, root, wanted, found)
        )
    }

    /// The position of the part at `steps` in a document. Nothing is looked up in markup.
    pub(super) fn find(self, bytes: &[u8], steps: &[Inner]) -> Option<Range<usize>> {
        with_syntax!(
            self,
            syntax => search(syntax, bytes, steps),
            steps.is_empty().then_some(0..bytes.len())
        )
    }

    /// The end of a document that determines it itself: only JSON does not. Of XML, bytes that were
    /// `seen` are not looked at again.
    pub(super) fn extent(
        self,
        root: &[u8],
        bytes: &[u8],
        seen: &mut ExtentSearch,
    ) -> Result<Extent, (usize, Said)> {
        match self.notation() {
            Notation::Json => Ok(Extent::Complete(bytes.len())),
            Notation::Xml => xml::end(bytes, root, seen),
            Notation::Binary(binary) => match binary.skip(bytes, 0, DEPTH_MAX) {
                Ok(end) => Ok(Extent::Complete(end)),
                Err(at) => match binary.needs(bytes, at) {
                    Some(needed) => Ok(Extent::Needs(needed)),
                    None => Err((at, self.wrong(bytes, at))),
                },
            },
        }
    }

    /// The message for bytes that stop being a document there.
    #[cold]
    pub(super) fn wrong(self, bytes: &[u8], at: usize) -> Said {
        match self.notation() {
            Notation::Json => json::wrong(bytes, at),
            Notation::Binary(binary) => binary.wrong(self.name(), bytes, at),
            Notation::Xml => xml::wrong(bytes, at),
        }
    }

    /// The value of a part.
    pub(super) fn value(self, part: &[u8]) -> Option<Value> {
        match self.notation() {
            Notation::Json => Value::parse_json(part).ok(),
            Notation::Binary(binary) => binary.value(part),
            Notation::Xml => Some(Value::from(&*String::from_utf8_lossy(&xml::text(part)))),
        }
    }

    /// The value of a part that is text or bytes.
    pub(super) fn content(self, form: Form, part: &[u8]) -> Option<Value> {
        match form {
            Form::Markup => Some(Value::from(&*String::from_utf8_lossy(part))),
            Form::Text | Form::Bytes => self.value(part),
        }
    }

    /// A part as people are shown it: documents in bytes as JSON.
    #[cold]
    pub(super) fn shown(self, part: &[u8], bytes_max: usize) -> String {
        if let PartKind::Foreign(kind, name) = self.kind(part) {
            return format!("{name} {kind}");
        }
        let mut written = Vec::new();
        let text = match self.binary() {
            None => part,
            Some(binary) => {
                binary.value(part).unwrap_or_default().write_json(&mut written);
                &written
            }
        };
        String::from_utf8_lossy(&text[..text.len().min(bytes_max)]).into_owned()
    }

    pub(super) fn kind(self, part: &[u8]) -> PartKind {
        match self.notation() {
            Notation::Json => json::kind(part),
            Notation::Binary(binary) => binary.kind(part),
            Notation::Xml => PartKind::Text,
        }
    }

    /// What is in a text, or in bytes, if it is there as it is.
    pub(super) fn plain(self, part: &[u8]) -> Option<&[u8]> {
        match self.notation() {
            Notation::Json => json::plain(part),
            Notation::Binary(binary) => binary.plain(part),
            Notation::Xml => xml::is_plain(part).then_some(part),
        }
    }

    /// Appends a value.
    pub(super) fn write(self, value: &Value, out: &mut Vec<u8>) {
        match (self.binary(), value) {
            (Some(binary), _) => binary.write(value, out),
            (None, Value::Text(text)) if self == Format::Xml => {
                let begin = out.len();
                out.extend_from_slice(text.as_bytes());
                xml::escape(out, begin);
            }
            (None, _) => value.write_json(out),
        }
    }

    /// The same where any value may be: a text that is itself a JSON object or list is taken as
    /// that.
    pub(super) fn write_any(self, value: &Value, out: &mut Vec<u8>) {
        match (value, self.binary()) {
            (Value::Text(text), None) if is_json(text) => out.extend_from_slice(text.as_bytes()),
            (Value::Text(text), Some(binary)) if is_json(text) => {
                let parsed = Value::parse_json(text.as_bytes());
                binary.write(parsed.as_ref().unwrap_or(value), out);
            }
            _ => self.write(value, out),
        }
    }

    /// Appends a number of four bytes where there is one.
    pub(super) fn write_single(self, number: f32, out: &mut Vec<u8>) {
        match self.binary() {
            None => Value::Float(f64::from(number)).write_json(out),
            Some(binary) => binary.write_single(number, out),
        }
    }

    /// Makes a text, or bytes, of what is behind `begin`.
    pub(super) fn put(self, form: Form, begin: usize, out: &mut Vec<u8>) {
        let is_text = form != Form::Bytes;
        if is_text && std::str::from_utf8(&out[begin..]).is_err() {
            let text = String::from_utf8_lossy(&out[begin..]).into_owned();
            out.truncate(begin);
            out.extend_from_slice(text.as_bytes());
        }
        match self.notation() {
            Notation::Json => json::quote(out, begin),
            Notation::Binary(binary) => binary.enclose(is_text, begin, out),
            Notation::Xml if form == Form::Markup => {}
            Notation::Xml => xml::escape(out, begin),
        }
    }

    /// The same, if it can stand in a document.
    pub(super) fn enclose(self, form: Form, begin: usize, out: &mut Vec<u8>) -> Result<(), Said> {
        self.put(form, begin, out);
        match form == Form::Markup && !xml::is_whole(&out[begin..]) {
            true => Err(say!("it is not well-formed XML")),
            false => Ok(()),
        }
    }

    /// Begins a list or a map of so many items or entries.
    pub(super) fn open(self, is_list: bool, count: usize, out: &mut Vec<u8>) {
        match self.binary() {
            None => out.push(if is_list { b'[' } else { b'{' }),
            Some(binary) => binary.open(is_list, count, out),
        }
    }

    /// Comes before the item or entry with this index.
    pub(super) fn separate(self, index: usize, out: &mut Vec<u8>) {
        if index > 0 && self == Format::Json {
            out.push(b',');
        }
    }

    /// The key of an entry.
    pub(super) fn write_key(self, key: &str, out: &mut Vec<u8>) {
        self.write(&Value::from(key), out);
        if self == Format::Json {
            out.push(b':');
        }
    }

    /// The key that a path names: in binary documents, one of digits is a whole number.
    pub(super) fn write_path_key(self, key: &str, out: &mut Vec<u8>) {
        match (self.binary(), binary::whole_key(key)) {
            (Some(binary), Some(number)) => binary.write(&Value::Int(number), out),
            _ => self.write_key(key, out),
        }
    }

    /// Ends a list or a map.
    pub(super) fn close(self, is_list: bool, out: &mut Vec<u8>) {
        if self == Format::Json {
            out.push(if is_list { b']' } else { b'}' });
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && Format::Json.check(text.as_bytes()).is_ok()
}
