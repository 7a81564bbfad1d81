//! Parses YAML to a tree in which each node has its place. Other modules interpret it. Anchors,
//! aliases, tags and multiple documents are not part of the language.

mod letters;
mod mistake;

use std::slice;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};
use throng_base::{Diagnostic, Said, Source, Span};

pub(crate) use mistake::OTHER_QUOTES;

/// Maximum size of a scenario file.
pub const SOURCE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum nesting of maps and lists.
pub const NESTING_MAX: usize = 64;

/// A place as byte positions in one of the files; small, because every node has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    start: u32,
    end: u32,
    /// The number of the file: the scenario itself is 0.
    pub(crate) file: u16,
}

const _: () = assert!(SOURCE_BYTES_MAX <= u32::MAX as usize && size_of::<Place>() <= 16);

impl Place {
    pub(crate) fn new(file: u16, start: usize, end: usize) -> Place {
        Place { start: start as u32, end: end as u32, file }
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    /// A part of it: the offset from its start, and the length in bytes.
    pub(crate) fn part(self, at: usize, length: usize) -> Place {
        Place::new(self.file, self.start() + at, self.start() + at + length)
    }

    pub(crate) fn span(self, source: &Arc<Source>) -> Span {
        Span { source: source.clone(), start: self.start(), end: self.end() }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Plain means not quoted; only plain texts can be numbers, `true` or null.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) place: Place,
}

impl Node {
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// True for an empty map or list.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.kind {
            Kind::Scalar { .. } => false,
            Kind::List(items) => items.is_empty(),
            Kind::Map(entries) => entries.is_empty(),
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The entries of a map.
    pub(crate) fn entries(&self) -> &[(Key, Node)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key in a map, without parsing the other values.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries().iter().find(|(key, _)| key.text == name).map(|(_, value)| value)
    }

    /// The items of a list, or the node itself where a single item needs no list.
    pub(crate) fn one_or_more(&self) -> &[Node] {
        match &self.kind {
            Kind::List(items) => items,
            _ => slice::from_ref(self),
        }
    }

    /// A description of the node, for messages about unexpected types.
    pub(crate) fn what(&self) -> Said {
        match &self.kind {
            _ if self.is_null() => say!("an empty value"),
            Kind::Scalar { .. } => say!("text or a number"),
            Kind::List(_) => say!("a list"),
            Kind::Map(_) => say!("a map"),
        }
    }
}

/// Parses the tree; None for an empty file. `file` is its number in each place.
pub(crate) fn parse(source: &Arc<Source>, file: u16) -> Result<Option<Node>, Box<Diagnostic>> {
    if source.text.len() > SOURCE_BYTES_MAX {
        return Err(Box::new(
            Diagnostic::error("file-too-large", say!("the file is larger than 16 MiB"))
                .at(Place::default().span(source))
                .help(say!("put long text into a separate file: `body: {{file: large.json}}`")),
        ));
    }
    Builder::new(source, file).build()
}

/// An incomplete map or list: its start, and how many of the pending nodes or entries belong to the
/// enclosing ones.
enum Open {
    List { start: usize, before: usize },
    Map { start: usize, before: usize, key: Option<Key> },
}

struct Builder<'s> {
    source: &'s Arc<Source>,
    file: u16,
    positions: Positions<'s>,
    open: Vec<Open>,
    /// Nodes of the open lists and entries of the open maps. Completed ones are moved to
    /// allocations of exact size: large files have many small lists.
    items: Vec<Node>,
    entries: Vec<(Key, Node)>,
    root: Option<Node>,
    documents: usize,
    /// See [`letters`].
    has_stand_ins: bool,
}

impl<'s> Builder<'s> {
    fn new(source: &'s Arc<Source>, file: u16) -> Builder<'s> {
        let positions = Positions::new(&source.text);
        Builder {
            source,
            file,
            positions,
            open: Vec::new(),
            items: Vec::new(),
            entries: Vec::new(),
            root: None,
            documents: 0,
            has_stand_ins: false,
        }
    }

    fn build(mut self) -> Result<Option<Node>, Box<Diagnostic>> {
        let source = Arc::clone(self.source);
        let stood_in = letters::stood_in(&source.text);
        self.has_stand_ins = stood_in.is_some();
        let mut parser = Parser::new_from_str(stood_in.as_deref().unwrap_or(&source.text));
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| self.syntax_error(&error))?;
            let start = self.positions.byte(span.start.index());
            let place = Place::new(self.file, start, self.positions.byte(span.end.index()));
            self.event(event, place)?;
        }
        Ok(self.root)
    }

    fn event(&mut self, event: Event<'_>, place: Place) -> Result<(), Box<Diagnostic>> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                match self.documents {
                    1 => Ok(()),
                    _ => Err(self.feature(
                        place,
                        say!("a second document"),
                        say!("a file can contain only one scenario"),
                    )),
                }
            }
            Event::Alias(_) => Err(self.feature(
                place,
                say!("an alias"),
                say!("write the value out, or use `vars`"),
            )),
            Event::Scalar(text, style, anchor, tag) => {
                self.plain_node(place, anchor, tag.is_some())?;
                let plain = style == ScalarStyle::Plain;
                // The text from the parser has spare capacity.
                let text = match self.has_stand_ins {
                    true => letters::restored(&text, style == ScalarStyle::DoubleQuoted),
                    false => String::from(&*text),
                };
                let kind = Kind::Scalar { text, plain };
                self.add(Node { place, kind })
            }
            Event::SequenceStart(anchor, tag) => {
                self.plain_node(place, anchor, tag.is_some())?;
                let before = self.items.len();
                self.enter(place, Open::List { start: place.start(), before })
            }
            Event::MappingStart(anchor, tag) => {
                self.plain_node(place, anchor, tag.is_some())?;
                let before = self.entries.len();
                self.enter(place, Open::Map { start: place.start(), before, key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(place),
        }
    }

    fn plain_node(&self, place: Place, anchor: usize, tag: bool) -> Result<(), Box<Diagnostic>> {
        if tag {
            return Err(self.feature(
                place,
                say!("a tag"),
                say!("remove the word that starts with `!`"),
            ));
        }
        match anchor {
            0 => Ok(()),
            _ => Err(self.feature(
                place,
                say!("an anchor"),
                say!("write the value out, or use `vars`"),
            )),
        }
    }

    fn enter(&mut self, place: Place, open: Open) -> Result<(), Box<Diagnostic>> {
        if self.open.len() >= NESTING_MAX {
            return Err(Box::new(
                Diagnostic::error(
                    "too-deep",
                    say!("the YAML is nested more than {NESTING_MAX} levels deep"),
                )
                .at(place.span(self.source))
                .label(say!("this level is too deep"))
                .help(say!("put deeply nested JSON into a file: `body: {{file: deep.json}}`")),
            ));
        }
        if let Some(Open::Map { key: None, .. }) = self.open.last() {
            return Err(self.complex_key(place));
        }
        self.open.push(open);
        Ok(())
    }

    fn leave(&mut self, place: Place) -> Result<(), Box<Diagnostic>> {
        // A flow map ends at its bracket, a block map at its last entry: the parser places the end
        // of a block at the next token.
        let end_of = |last: Option<usize>| match (place.end() > place.start(), last) {
            (false, Some(last)) => last,
            _ => place.end(),
        };
        let node = match self.open.pop() {
            None => return Ok(()),
            Some(Open::List { start, before }) => {
                let items: Vec<Node> = self.items.drain(before..).collect();
                let end = end_of(items.last().map(|item| item.place.end())).max(start);
                Node { place: Place::new(self.file, start, end), kind: Kind::List(items) }
            }
            Some(Open::Map { start, before, .. }) => {
                let entries: Vec<(Key, Node)> = self.entries.drain(before..).collect();
                let last = entries.last().map(|(key, node)| node.place.end().max(key.place.end()));
                let end = end_of(last).max(start);
                Node { place: Place::new(self.file, start, end), kind: Kind::Map(entries) }
            }
        };
        self.add(node)
    }

    fn add(&mut self, node: Node) -> Result<(), Box<Diagnostic>> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { .. }) => self.items.push(node),
            Some(Open::Map { key, .. }) => match key.take() {
                Some(key) => self.entries.push((key, node)),
                None => match node.kind {
                    Kind::Scalar { text, .. } => *key = Some(Key { text, place: node.place }),
                    _ => return Err(self.complex_key(node.place)),
                },
            },
        }
        Ok(())
    }

    fn complex_key(&self, place: Place) -> Box<Diagnostic> {
        self.feature(
            place,
            say!("a key that is a map or a list"),
            say!("a key must be a word or quoted text"),
        )
    }

    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    fn feature(&self, place: Place, what: Said, help: Said) -> Box<Diagnostic> {
        Box::new(
            Diagnostic::error("yaml-feature", say!("this YAML feature is not supported: {what}"))
                .at(place.span(self.source))
                .label(say!("not allowed here"))
                .help(help),
        )
    }

    fn syntax_error(&self, error: &ScanError) -> Box<Diagnostic> {
        let at = self.positions.byte(error.marker().index());
        let mistake = mistake::find(self.source, error.info(), at);
        let (start, end) = mistake.bytes();
        let place = Place::new(self.file, start, end);
        Box::new(mistake.diagnostic().at(place.span(self.source)))
    }
}

/// Converts character positions to bytes: the parser counts characters.
struct Positions<'s> {
    text: &'s str,
    /// The byte position of each `STRIDE`th character; empty for ASCII text.
    marks: Vec<usize>,
}

const STRIDE: usize = 256;

impl<'s> Positions<'s> {
    fn new(text: &'s str) -> Positions<'s> {
        let marks = match text.is_ascii() {
            true => Vec::new(),
            false => text.char_indices().step_by(STRIDE).map(|(byte, _)| byte).collect(),
        };
        Positions { text, marks }
    }

    fn byte(&self, character: usize) -> usize {
        if self.marks.is_empty() {
            return character.min(self.text.len());
        }
        let Some(mark) = self.marks.get(character / STRIDE) else { return self.text.len() };
        let rest = &self.text[*mark..];
        rest.char_indices().nth(character % STRIDE).map_or(self.text.len(), |(byte, _)| mark + byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Node {
        parse(&Source::new("t.yaml", text), 0).unwrap().unwrap()
    }

    /// All scalars with the text at their places.
    fn scalars(node: &Node, text: &str, out: &mut Vec<(String, String)>) {
        let shown = |place: Place| text[place.start()..place.end()].to_string();
        match &node.kind {
            Kind::Scalar { text, .. } => out.push((text.clone(), shown(node.place))),
            Kind::List(items) => items.iter().for_each(|item| scalars(item, text, out)),
            Kind::Map(entries) => {
                for (key, value) in entries {
                    out.push((key.text.clone(), shown(key.place)));
                    scalars(value, text, out);
                }
            }
        }
    }

    #[test]
    fn places_are_bytes_even_after_wide_characters() {
        let text = format!("\u{feff}# {}\r\ngrüße: [\"ä\", 世界]\r\nx: y\n", "界".repeat(600));
        let mut found = Vec::new();
        scalars(&tree(&text), &text, &mut found);
        let want = [("grüße", "grüße"), ("ä", "\"ä\""), ("世界", "世界"), ("x", "x"), ("y", "y")];
        let want: Vec<_> = want.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn blocks_end_with_their_last_entry() {
        let text = "a:\n  b: 1\n  c: [2]\n\n# end\nd: 1\n";
        let Kind::Map(entries) = tree(text).kind else { panic!("a map") };
        let place = entries[0].1.place;
        assert_eq!(&text[place.start()..place.end()], "b: 1\n  c: [2]");
    }

    /// Found by fuzzing: the parser stops at the end of such a text, not at its quote.
    #[test]
    fn an_open_quote_is_reported_where_it_opens() {
        for text in ["%0 \n\"\u{1c}\u{fffd}", "a: 1\nb: \"c\n d", "a: 'b\n\n"] {
            let mistake = parse(&Source::new("t.yaml", text), 0).unwrap_err();
            let at = text.rfind(['"', '\'']).unwrap();
            let span = mistake.span.expect("a place");
            assert_eq!((span.start, span.end), (at, at + 1), "{text:?}");
        }
    }

    #[test]
    fn depth_and_size_are_limited() {
        let code = |text: String| parse(&Source::new("t.yaml", text), 0).unwrap_err().code;
        assert_eq!(code("[".repeat(100)), "too-deep");
        assert!(["too-deep", "yaml-syntax"].contains(&code("[".repeat(100_000))));
        assert_eq!(code("#".repeat(SOURCE_BYTES_MAX + 1)), "file-too-large");
        assert!(parse(&Source::new("t", "# nothing\n"), 0).unwrap().is_none());
    }
}
