//! The notations of documents: where the parts of a document are, what they are, and how values
//! are written. JSON, CBOR and MessagePack share the search for parts.

mod binary;
mod heads;
mod json;
#[cfg(test)]
mod tests;

use std::ops::Range;

use throng_base::Said;
use throng_expression::Value;

use super::declaration::Format;
use super::wanted::{ABSENT, Inner, Span, Wanted};
use binary::Binary;
use json::Json;

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

/// Calls a function with the syntax of a format.
macro_rules! with_syntax {
    ($format:expr, $syntax:ident => $then:expr) => {
        match $format {
            Format::Json => {
                let $syntax = Json;
                $then
            }
            Format::Cbor => {
                let $syntax = Binary::Cbor;
                $then
            }
            Format::MessagePack => {
                let $syntax = Binary::MessagePack;
                $then
            }
        }
    };
}

impl Format {
    pub const WORDS: [(&'static str, Format); 3] =
        [("json", Format::Json), ("cbor", Format::Cbor), ("msgpack", Format::MessagePack)];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "JSON",
            Format::Cbor => "CBOR",
            Format::MessagePack => "MessagePack",
        }
    }

    /// As a declaration has it.
    pub fn word(self) -> &'static str {
        Format::WORDS[self as usize].0
    }

    /// Documents that are bytes, and end by themselves.
    pub fn is_binary(self) -> bool {
        self.binary().is_some()
    }

    fn binary(self) -> Option<Binary> {
        match self {
            Format::Json => None,
            Format::Cbor => Some(Binary::Cbor),
            Format::MessagePack => Some(Binary::MessagePack),
        }
    }

    /// Where the bytes stop being one document; the caller has made sure that JSON is UTF-8.
    pub(super) fn check(self, bytes: &[u8]) -> Result<(), usize> {
        with_syntax!(self, syntax => whole(syntax, bytes, |at| syntax.skip(bytes, at, DEPTH_MAX)))
    }

    /// Notes where the wanted parts are, in one pass over the document.
    pub(super) fn scan(
        self,
        bytes: &[u8],
        wanted: &Wanted,
        found: &mut [Span],
    ) -> Result<(), usize> {
        with_syntax!(self, syntax => whole(syntax, bytes, |at| {
            wanted_value(syntax, bytes, at, DEPTH_MAX, wanted, found)
        }))
    }

    /// Where the part is that `steps` lead to in a document.
    pub(super) fn find(self, bytes: &[u8], steps: &[Inner]) -> Option<Range<usize>> {
        with_syntax!(self, syntax => search(syntax, bytes, steps))
    }

    /// Where a document ends that says so itself: only JSON does not.
    pub(super) fn extent(self, bytes: &[u8]) -> Result<Extent, (usize, Said)> {
        let Some(binary) = self.binary() else { return Ok(Extent::Complete(bytes.len())) };
        match binary.skip(bytes, 0, DEPTH_MAX) {
            Ok(end) => Ok(Extent::Complete(end)),
            Err(at) => match binary.needs(bytes, at) {
                Some(needed) => Ok(Extent::Needs(needed)),
                None => Err((at, self.wrong(bytes, at))),
            },
        }
    }

    /// What is said of bytes that stop being a document there.
    #[cold]
    pub(super) fn wrong(self, bytes: &[u8], at: usize) -> Said {
        match self.binary() {
            None => json::wrong(bytes, at),
            Some(binary) => binary.wrong(self.name(), bytes, at),
        }
    }

    /// The value of a part.
    pub(super) fn value(self, part: &[u8]) -> Option<Value> {
        match self.binary() {
            None => Value::parse_json(part).ok(),
            Some(binary) => binary.value(part),
        }
    }

    /// A part as people are shown it, as JSON.
    #[cold]
    pub(super) fn shown(self, part: &[u8], bytes_max: usize) -> String {
        if let Some((kind, name)) = self.binary().and_then(|binary| binary.foreign(part)) {
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

    pub(super) fn is_null(self, part: &[u8]) -> bool {
        self.binary().map_or(part == b"null", |binary| binary.is_null(part))
    }

    pub(super) fn is_text(self, part: &[u8]) -> bool {
        self.binary().map_or(part[0] == b'"', |binary| binary.is_text(part))
    }

    /// JSON has no bytes.
    pub(super) fn is_bytes(self, part: &[u8]) -> bool {
        self.binary().is_some_and(|binary| binary.is_bytes(part))
    }

    /// Whether a scenario can read the part: not what only other programs can give a meaning.
    pub(super) fn is_known(self, part: &[u8]) -> bool {
        self.binary().is_none_or(|binary| binary.foreign(part).is_none())
    }

    pub(super) fn bool(self, part: &[u8]) -> Option<bool> {
        match self.binary() {
            None => json::bool(part),
            Some(binary) => binary.bool(part),
        }
    }

    pub(super) fn whole(self, part: &[u8]) -> Option<i128> {
        match self.binary() {
            None => std::str::from_utf8(part).ok()?.parse().ok(),
            Some(binary) => binary.whole(part),
        }
    }

    pub(super) fn float(self, part: &[u8]) -> Option<f64> {
        match self.binary() {
            None => json::float(part),
            Some(binary) => binary.float(part),
        }
    }

    /// What is in a text, or in bytes, if it is there as it is.
    pub(super) fn plain(self, part: &[u8]) -> Option<&[u8]> {
        match self.binary() {
            None => json::plain(part),
            Some(binary) => binary.plain(part),
        }
    }

    /// Appends a value.
    pub(super) fn write(self, value: &Value, out: &mut Vec<u8>) {
        match self.binary() {
            None => value.write_json(out),
            Some(binary) => binary.write(value, out),
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
    pub(super) fn enclose(self, is_text: bool, begin: usize, out: &mut Vec<u8>) {
        if is_text && std::str::from_utf8(&out[begin..]).is_err() {
            let text = String::from_utf8_lossy(&out[begin..]).into_owned();
            out.truncate(begin);
            out.extend_from_slice(text.as_bytes());
        }
        match self.binary() {
            None => json::quote(out, begin),
            Some(binary) => binary.enclose(is_text, begin, out),
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
