//! Findings while files are read: sources, declarations, and mistakes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use throng_base::{Diagnostic, Said, Secrets, Source, Span};
use throng_expression::Value;

use super::Redirects;
use super::mistakes::Mistakes;
use crate::keys::MapKind;
use crate::scope::{Data, Descriptors, FileRole, Named, Picks, Vars};
use crate::synonyms::{did_you_mean, near_label};
use crate::syntax::{self, Key, Kind, Node, OTHER_QUOTES, Place};
use crate::words::{self, shorten};

/// Maximum total size of the constant values of all expressions: variables that are built from
/// others grow with them, so a few lines can make huge values.
pub(crate) const VALUE_BYTES_MAX: usize = 64 << 20;
/// Findings while files are read: sources, variables, rows and mistakes.
#[derive(Default)]
pub(crate) struct Found {
    /// The files, by the number in each [`Place`], with the base folders of their paths.
    sources: Vec<(Arc<Source>, PathBuf)>,
    pub(crate) vars: Vars,
    pub(crate) data: Data,
    /// Saved values with the same slots in all sessions.
    pub(crate) shared_slots: Vec<String>,
    pub(crate) extractors: Picks,
    /// `run.id`.
    pub(crate) run_id: String,
    pub(crate) redirects: Redirects,
    /// The declarations in the files of `proto`.
    pub(crate) descriptors: Descriptors,
    /// The total size of expression values so far.
    value_bytes: usize,
    pub(crate) secrets: Secrets,
    /// Places that must not be shown.
    hidden: Vec<Place>,
    /// For recording the run.
    pub(crate) named_files: Vec<Named>,
    pub(super) files: HashMap<PathBuf, Arc<[u8]>>,
    pub(crate) mistakes: Mistakes,
}

impl Found {
    /// All mistakes in the order of their places; those of the command line first. True if one of
    /// them is an error.
    pub(crate) fn finish(mut self) -> (Vec<Diagnostic>, bool) {
        let failed = self.mistakes.errors() > 0;
        let mut diagnostics = std::mem::take(&mut self.mistakes)
            .finish(|source| self.sources.iter().position(|(own, _)| Arc::ptr_eq(own, source)));
        self.mask(&mut diagnostics);
        (diagnostics, failed)
    }

    /// Masks secrets in messages and quoted lines.
    fn mask(&self, diagnostics: &mut [Diagnostic]) {
        let blotted: Vec<Arc<Source>> = self
            .sources
            .iter()
            .enumerate()
            .map(|(file, (source, _))| {
                let mut ranges = self.secrets.value_ranges(source.text.as_bytes());
                let hidden = self.hidden.iter().filter(|place| usize::from(place.file) == file);
                ranges.extend(hidden.map(|place| place.start()..place.end()));
                match ranges.is_empty() {
                    true => source.clone(),
                    false => source.blotted(&ranges),
                }
            })
            .collect();
        for diagnostic in diagnostics {
            if let Some(span) = &mut diagnostic.span
                && let Some(file) =
                    self.sources.iter().position(|(own, _)| Arc::ptr_eq(own, &span.source))
            {
                span.source = blotted[file].clone();
            }
            let texts = diagnostic.label.iter_mut().chain(&mut diagnostic.help);
            for text in texts.chain(&mut diagnostic.notes).chain([&mut diagnostic.message]) {
                text.change_texts(&|text| self.secrets.mask_sentence(text).into_owned());
            }
        }
    }

    pub(crate) fn span(&self, place: Place) -> Span {
        place.span(self.source(place))
    }

    /// The file of a place.
    pub(crate) fn source(&self, place: Place) -> &Arc<Source> {
        &self.sources[usize::from(place.file)].0
    }

    /// The written text at a place.
    pub(crate) fn written(&self, place: Place) -> &str {
        self.source(place).text.get(place.start()..place.end()).unwrap_or("")
    }

    /// The line of a place, from 1.
    pub(crate) fn line(&self, place: Place) -> usize {
        self.source(place).line_column(place.start()).0
    }

    /// Adds a file; its number is part of the places of its nodes.
    pub(crate) fn add_source(&mut self, source: Arc<Source>, base: PathBuf) -> u16 {
        self.sources.push((source, base));
        (self.sources.len() - 1) as u16
    }

    /// Adds and parses a file. If it is not of this kind, no line of it is quoted: it can be any
    /// file that the user can read, and the scenario may come from a stranger.
    pub(crate) fn parse_file(
        &mut self,
        source: &Arc<Source>,
        base: PathBuf,
        kind: &MapKind,
    ) -> Result<Option<Node>, Box<Diagnostic>> {
        let file = self.add_source(source.clone(), base);
        let parsed = syntax::parse(source, file);
        let is_known = |(key, _): &(Key, Node)| {
            kind.find(&key.text).is_some() || did_you_mean(&key.text, kind.names()).is_some()
        };
        let error = match parsed {
            Ok(Some(Node { kind: Kind::Map(entries), place })) => {
                if entries.is_empty() || entries.iter().any(is_known) {
                    return Ok(Some(Node { kind: Kind::Map(entries), place }));
                }
                self.not_of_kind(kind, place)
            }
            Ok(Some(root)) => self.not_of_kind(kind, root.place),
            Ok(None) => return Ok(None),
            Err(error) => *error,
        };
        let private = source.private();
        self.sources[usize::from(file)].0 = private.clone();
        let mut told = error.label(say!("its content is not shown"));
        if told.message.english().contains('`') {
            told.message = say!("this is not valid YAML");
        }
        told.span = told.span.map(|span| Span { source: private, ..span });
        Err(Box::new(told.help(kind.key_list())))
    }

    fn not_of_kind(&self, kind: &MapKind, place: Place) -> Diagnostic {
        self.error("wrong-type", say!("this file is not {}", kind.what), place)
    }

    /// Hides the text at this place in diagnostics.
    pub(crate) fn hide(&mut self, place: Place) {
        self.hidden.push(place);
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.sources.iter().map(|(source, _)| source)
    }

    pub(crate) fn error(&self, code: &'static str, message: Said, place: Place) -> Diagnostic {
        Diagnostic::error(code, message).at(self.span(place))
    }

    pub(crate) fn warning(&self, code: &'static str, message: Said, place: Place) -> Diagnostic {
        Diagnostic::warning(code, message).at(self.span(place))
    }

    pub(crate) fn note(&mut self, diagnostic: Diagnostic) {
        self.mistakes.add(diagnostic);
    }

    /// Notes a mistake in place of a value.
    pub(crate) fn fail<T>(&mut self, diagnostic: Diagnostic) -> Option<T> {
        self.note(diagnostic);
        None
    }

    /// Notes an error.
    pub(crate) fn report(
        &mut self,
        code: &'static str,
        place: Place,
        message: impl Into<Said>,
        label: impl Into<Said>,
        help: impl Into<Said>,
    ) {
        let error = self.error(code, message.into(), place).label(label).help(help);
        self.note(error);
    }

    /// Notes an error in place of a value.
    pub(crate) fn refuse<T>(
        &mut self,
        code: &'static str,
        place: Place,
        message: impl Into<Said>,
        label: impl Into<Said>,
        help: impl Into<Said>,
    ) -> Option<T> {
        self.report(code, place, message, label, help);
        None
    }

    pub(crate) fn warn(
        &mut self,
        code: &'static str,
        place: Place,
        message: Said,
        label: Said,
        help: impl Into<Said>,
    ) {
        let warning = self.warning(code, message, place).label(label).help(help);
        self.note(warning);
    }

    /// Refuses a name that is none of `names`. `none` is the help if there are no names.
    pub(crate) fn unknown<'n, T>(
        &mut self,
        code: &'static str,
        place: Place,
        message: Said,
        (name, names): (&str, impl Iterator<Item = &'n str> + Clone),
        label: Said,
        none: Said,
    ) -> Option<T> {
        let label = near_label(did_you_mean(name, names.clone()), label);
        let list = words::names(names);
        let help = if list.is_empty() { none } else { say!("available: {list}") };
        self.refuse(code, place, message, label, help)
    }

    pub(crate) fn too_many(&mut self, place: Place, message: Said, help: Said) {
        self.report("too-many", place, message, say!("this exceeds the limit"), help);
    }

    pub(crate) fn empty(&mut self, place: Place, message: Said, help: Said) {
        self.report("empty", place, message, say!("empty"), help);
    }

    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    pub(crate) fn not_yet(&mut self, what: Said, place: Place, help: Said) {
        let message = say!("{what} is not supported in this version");
        self.report("not-yet", place, message, say!("not supported yet"), help);
    }

    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    pub(crate) fn wrong_type<T>(&mut self, node: &Node, want: Said, help: Said) -> Option<T> {
        let message = say!("expected {want} here, not {}", node.what());
        self.refuse("wrong-type", node.place, message, say!("this is {}", node.what()), help)
    }

    /// The place of a part of a scalar's text, if quotes and escapes permit finding it.
    pub(crate) fn place_of(&self, node: &Node, part: &str) -> Place {
        match self.written(node.place).find(part) {
            Some(at) if !part.is_empty() => node.place.part(at, part.len()),
            _ => node.place,
        }
    }

    /// The path of a file named at this place.
    pub(crate) fn path(&self, place: Place, name: &str) -> PathBuf {
        self.sources[usize::from(place.file)].1.join(name)
    }

    /// Like [`Found::path`], for a file that is recorded with the run.
    pub(crate) fn named_path(&mut self, place: Place, name: &str, role: FileRole) -> PathBuf {
        let path = self.path(place, name);
        self.named_files.push(Named { place, path: path.clone(), role });
        path
    }

    pub(crate) fn bad_value<T>(&mut self, node: &Node, message: Said, help: Said) -> Option<T> {
        self.refuse("bad-value", node.place, message, say!("not allowed"), help)
    }
}

/// Lists and maps of named things.
impl Found {
    /// The entries of a map; duplicate keys are mistakes.
    pub(crate) fn entries<'n>(
        &mut self,
        node: &'n Node,
        want: Said,
        help: Said,
    ) -> Option<Vec<(&'n Key, &'n Node)>> {
        match &node.kind {
            Kind::Map(entries) => Some(self.unique(entries.iter())),
            _ => self.wrong_type(node, want, help),
        }
    }

    /// Removes entries with duplicate keys, which are mistakes.
    pub(crate) fn unique<'n>(
        &mut self,
        entries: impl ExactSizeIterator<Item = &'n (Key, Node)>,
    ) -> Vec<(&'n Key, &'n Node)> {
        // Almost all maps are small, and scanning them is faster than hashing.
        const SMALL_MAX: usize = 16;
        let small = entries.len() <= SMALL_MAX;
        let mut seen: HashMap<&str, Place> = HashMap::new();
        let mut out: Vec<(&Key, &Node)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let first = match small {
                true => out.iter().find(|(other, _)| other.text == key.text).map(|(k, _)| k.place),
                false => seen.insert(&key.text, key.place),
            };
            match first {
                None => out.push((key, value)),
                Some(first) => self.duplicate_key(key, first),
            }
        }
        out
    }

    /// The items of a list that must not be empty, or the node where a single item needs no list.
    pub(crate) fn some_items<'n>(
        &mut self,
        node: &'n Node,
        none: Said,
        help: Said,
    ) -> Option<&'n [Node]> {
        let items = node.one_or_more();
        if items.is_empty() {
            self.empty(node.place, none, help);
        }
        Some(items).filter(|items| !items.is_empty())
    }

    /// Like [`Found::entries`], for a map that must not be empty.
    pub(crate) fn filled_map<'n>(
        &mut self,
        node: &'n Node,
        want: Said,
        none: Said,
        help: Said,
    ) -> Vec<(&'n Key, &'n Node)> {
        let entries = self.entries(node, want, help.clone()).unwrap_or_default();
        if entries.is_empty() && matches!(node.kind, Kind::Map(_)) {
            self.empty(node.place, none, help);
        }
        entries
    }

    /// Like [`Found::items`], for a list that must not be empty.
    pub(crate) fn filled_list<'n>(
        &mut self,
        node: &'n Node,
        want: Said,
        none: Said,
        help: Said,
    ) -> &'n [Node] {
        let items = self.items(node, want, help.clone());
        if let Some([]) = items {
            self.empty(node.place, none, help);
        }
        items.unwrap_or_default()
    }

    pub(crate) fn duplicate_key(&mut self, key: &Key, first: Place) {
        if self.mistakes.is_full() {
            return self.mistakes.count_error();
        }
        let line = self.line(first);
        let message = say!("`{}` is given twice", shorten(&key.text));
        let label = say!("the first one is on line {line}");
        self.report("duplicate-key", key.place, message, label, say!("remove one of them"));
    }

    pub(crate) fn items<'n>(
        &mut self,
        node: &'n Node,
        want: Said,
        help: Said,
    ) -> Option<&'n [Node]> {
        match &node.kind {
            Kind::List(items) => Some(items),
            _ => self.wrong_type(node, want, help),
        }
    }
}

/// Texts with expressions in them.
impl Found {
    /// Called before a value is written into the program: their total size is limited.
    pub(super) fn bounded(
        &mut self,
        node: &Node,
        inner: &str,
        at: usize,
        value: &Value,
    ) -> Option<()> {
        if let Some(bytes) = value.written_bytes(VALUE_BYTES_MAX - self.value_bytes) {
            self.value_bytes += bytes;
            return Some(());
        }
        let message = say!("the values of this scenario are larger than 64 MiB in total");
        let place = self.place_in(node, at, inner.len() + 3);
        let help = say!(
            "a variable that contains another one twice is twice as large; put long text into \
             separate files: `body: {{file: large.json}}`"
        );
        self.refuse("value-too-large", place, message, say!("this exceeds the limit"), help)
    }

    #[allow(clippy::needless_pass_by_value)] // Messages are passed by value.
    pub(super) fn differs<T>(
        &mut self,
        node: &Node,
        inner: &str,
        at: usize,
        want: Said,
    ) -> Option<T> {
        let message = say!("`${{{}}}` is not allowed here", shorten(inner));
        let place = self.place_in(node, at, inner.len() + 3);
        let label = say!("the value differs from user to user");
        let help = say!("{want} must be the same for all users: use `${{vars.name}}`");
        self.refuse("expression-place", place, message, label, help)
    }

    /// Warns of quotes that are not YAML quotes.
    fn warn_quotes(&mut self, node: &Node, text: &str) {
        let first = text.chars().next().filter(|c| OTHER_QUOTES.contains(c));
        let Some(first) = first.filter(|_| text.ends_with(OTHER_QUOTES)) else { return };
        let message = say!("these quotes are part of the text");
        let place = self.place_in(node, 0, first.len_utf8());
        let help = say!(
            "use the straight quotes `\"` or `'`; to keep typographic quotes, put straight \
             quotes around them"
        );
        self.warn("other-quotes", place, message, say!("a typographic quote"), help);
    }

    /// The text of a scalar that is not null.
    pub(crate) fn scalar<'n>(&mut self, node: &'n Node, want: Said) -> Option<&'n str> {
        match &node.kind {
            Kind::Scalar { .. } if node.is_null() => {
                self.wrong_type(node, want, say!("write a value after the colon"))
            }
            Kind::Scalar { text, plain } => {
                if *plain && text.as_bytes().first().is_some_and(|byte| !byte.is_ascii()) {
                    self.warn_quotes(node, text);
                }
                Some(text)
            }
            _ => self.wrong_type(node, want, say!("write a single value, in quotes if necessary")),
        }
    }

    /// The place of a part of a scalar, by its position in the text; the whole scalar if quotes and
    /// escapes hide it.
    pub(crate) fn place_in(&self, node: &Node, at: usize, length: usize) -> Place {
        let Kind::Scalar { text, .. } = &node.kind else { return node.place };
        let Some(part) = text.get(at..at + length) else { return node.place };
        match self.written(node.place).find(text.as_str()) {
            Some(begin) => node.place.part(begin + at, length),
            None => self.place_of(node, part),
        }
    }

    /// The place of a part of a text at `place`, which may be quoted.
    pub(crate) fn place_inside(&self, place: Place, text: &str, start: usize, end: usize) -> Place {
        if start >= end {
            return place;
        }
        match self.written(place).find(text) {
            Some(begin) if !text.is_empty() => place.part(begin + start, end - start),
            _ => place,
        }
    }
}
