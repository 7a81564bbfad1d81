//! Reading the tree: maps by their tables, values by their type. A mistake is noted and reading
//! goes on, so that all mistakes of a file are answered at once.

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use throng_base::units::{self, UnitError};
use throng_base::{Diagnostic, Said, Secrets, Severity, Source, Span};
use throng_expression::Value;

use crate::keys::MapKind;
use crate::scope::{
    Data, Descriptors, FileRole, Named, Picks, SessionNames, SetupNames, Spoken, Vars,
};
use crate::synonyms::did_you_mean;
use crate::syntax::{self, Key, Kind, Node, Place};
use crate::words::{shorten, switch};

/// Reads a file, and of one with more bytes than the number only one too many: the only way this
/// crate gets at the disk.
pub type ReadFile<'a> = &'a dyn Fn(&Path, usize) -> std::io::Result<Vec<u8>>;

/// Gives a variable of the environment.
pub type ReadVariable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The most mistakes that are shown of one file; the last one tells how many more there are.
pub const DIAGNOSTICS_MAX: usize = 100;

/// What reading needs at a place: what is found out so far, and what may be used there.
pub(crate) struct Context<'a> {
    pub(crate) found: &'a mut Found,
    /// The names of the session that is being compiled.
    pub(crate) session: &'a mut SessionNames,
    pub(crate) scope: Scope<'a>,
    pub(crate) env: ReadVariable<'a>,
    read_file: ReadFile<'a>,
}

/// What may be used where something is read. It is handed down: a place inside another has a scope
/// of its own, made of that around it.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// What the messages are of that are being read.
    pub(crate) spoken: &'a Spoken,
    pub(crate) defaults: &'a Defaults,
    /// What `setup.NAME` may name.
    pub(crate) setup: &'a SetupNames,
    /// Whether expressions may look at an answer, and whether that is a declared message.
    pub(crate) answer: Option<AnswerKind>,
    /// It is only used where its values are there.
    pub(crate) in_time: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Parts,
    Fields,
}

impl Scope<'_> {
    const OUTSIDE: Scope<'static> = Scope {
        spoken: &Spoken::Plain,
        defaults: &Defaults::NONE,
        setup: &SetupNames::None,
        answer: None,
        in_time: false,
    };
}

/// What is found out while a file is read: its sources, variables and rows, the mistakes so far.
#[derive(Default)]
pub(crate) struct Found {
    /// The files, by the number in every [`Place`], with the folders that their paths count from.
    sources: Vec<(Arc<Source>, PathBuf)>,
    pub(crate) vars: Vars,
    pub(crate) data: Data,
    /// Saved values that have the same slots in all sessions.
    pub(crate) shared_slots: Vec<String>,
    pub(crate) picks: Picks,
    /// `run.id`.
    pub(crate) run_id: String,
    pub(crate) redirects: Redirects,
    /// What the files of `proto` declare.
    pub(crate) descriptors: Descriptors,
    /// How many bytes the values of expressions come to so far.
    value_bytes: usize,
    pub(crate) secrets: Secrets,
    /// Places that are not shown.
    hidden: Vec<Place>,
    /// For the record of the run.
    pub(crate) named_files: Vec<Named>,
    files: HashMap<PathBuf, Arc<[u8]>>,
    diagnostics: Vec<Diagnostic>,
    /// By the number of a mistake: further places of the same one, as file and byte.
    repeated: HashMap<usize, HashSet<(u16, usize)>>,
    more_errors: usize,
}

impl Deref for Context<'_> {
    type Target = Found;

    fn deref(&self) -> &Found {
        self.found
    }
}

impl DerefMut for Context<'_> {
    fn deref_mut(&mut self) -> &mut Found {
        self.found
    }
}

/// What the values of all expressions that are the same for all users may come to, written out: a
/// variable that is made of others is as large as they are, and few lines make very large ones.
pub(crate) const VALUE_BYTES_MAX: usize = 64 << 20;
/// No certificate or key is larger.
const PEM_BYTES_MAX: usize = 16 << 20;
/// What all files come to that a scenario sends.
const FILES_BYTES_MAX: usize = 1 << 30;

/// What steps take when they do not say it themselves.
#[derive(Clone)]
pub(crate) struct Defaults {
    pub(crate) headers: Vec<(String, throng_program::Text)>,
    pub(crate) cookies: Vec<(String, throng_program::Text)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) failing: throng_program::Failing,
}

/// The number of redirects is one for the whole program; steps may name it too.
#[derive(Default)]
pub(crate) struct Redirects {
    pub(crate) limit: Option<u8>,
}

impl Defaults {
    const NONE: Defaults = Defaults {
        headers: Vec::new(),
        cookies: Vec::new(),
        timeout: None,
        connect_timeout: None,
        failing: throng_program::Failing { retry: None, then: throng_program::OnError::Count },
    };
}

impl Found {
    pub(crate) fn has_errors(&self) -> bool {
        self.more_errors > 0 || self.diagnostics.iter().any(|one| one.severity == Severity::Error)
    }

    /// All mistakes, in the order of their places; those of the command line first.
    pub(crate) fn finish(mut self) -> (Vec<Diagnostic>, bool) {
        let failed = self.has_errors();
        for (number, places) in &self.repeated {
            self.diagnostics[*number].notes.push(match places.len() {
                1 => say!("the same problem occurs in 1 other place"),
                more => say!("the same problem occurs in {more} other places"),
            });
        }
        let number = |source: &Arc<Source>| {
            self.sources.iter().position(|(own, _)| Arc::ptr_eq(own, source))
        };
        self.diagnostics.sort_by_key(|diagnostic| match &diagnostic.span {
            Some(span) => (number(&span.source), span.start),
            None => (None, 0),
        });
        if let (more @ 1.., Some(last)) = (self.more_errors, self.diagnostics.last_mut()) {
            last.notes.push(say!("{more} more errors are not shown"));
        }
        self.mask();
        (self.diagnostics, failed)
    }

    /// Takes the secrets out of what is said and shown.
    fn mask(&mut self) {
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
        for diagnostic in &mut self.diagnostics {
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
}

impl<'a> Context<'a> {
    /// Where a file begins; `found` and `session` are empty.
    pub(crate) fn new(
        (found, session): (&'a mut Found, &'a mut SessionNames),
        (source, base): (&Arc<Source>, &Path),
        (read_file, env): (ReadFile<'a>, ReadVariable<'a>),
    ) -> Context<'a> {
        found.sources.push((source.clone(), base.to_path_buf()));
        Context { found, session, scope: Scope::OUTSIDE, env, read_file }
    }

    /// The same with another scope.
    pub(crate) fn scoped<'b>(&'b mut self, scope: Scope<'b>) -> Context<'b> {
        let Context { found, session, env, read_file, .. } = self;
        Context { found, session, scope, env: *env, read_file: *read_file }
    }

    /// The same for another session.
    pub(crate) fn in_session<'b>(&'b mut self, session: &'b mut SessionNames) -> Context<'b> {
        let Context { found, scope, env, read_file, .. } = self;
        Context { found, session, scope: *scope, env: *env, read_file: *read_file }
    }

    /// Takes so much of what the values of all expressions may come to; false when it is more
    /// than what is left.
    pub(crate) fn take_value(&mut self, value: &Value) -> bool {
        let left = VALUE_BYTES_MAX - self.value_bytes;
        let bytes = value.written_bytes(left);
        self.value_bytes += bytes.unwrap_or(0);
        bytes.is_some()
    }

    pub(crate) fn span(&self, place: Place) -> Span {
        place.span(self.source(place))
    }

    /// The file of a place.
    pub(crate) fn source(&self, place: Place) -> &Arc<Source> {
        &self.sources[usize::from(place.file)].0
    }

    /// What the person wrote at a place.
    pub(crate) fn written(&self, place: Place) -> &str {
        self.source(place).text.get(place.start()..place.end()).unwrap_or("")
    }

    /// The line of a place, from 1.
    pub(crate) fn line(&self, place: Place) -> usize {
        self.source(place).line_column(place.start()).0
    }

    /// Takes a further file; its number stands in the places of its nodes.
    pub(crate) fn add_source(&mut self, source: Arc<Source>, base: PathBuf) -> u16 {
        self.sources.push((source, base));
        (self.sources.len() - 1) as u16
    }

    /// Takes and parses a further file. Of one that is not of this kind no line is shown: it may
    /// be any file that this user can read, and a scenario may be a stranger's.
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

    /// What stands at this place is not shown where mistakes are.
    pub(crate) fn hide(&mut self, place: Place) {
        self.hidden.push(place);
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = &Arc<Source>> {
        self.sources.iter().map(|(source, _)| source)
    }

    /// Reads a file from the disk; of more than so many bytes only one too many.
    pub(crate) fn read(&self, path: &Path, bytes_max: usize) -> std::io::Result<Vec<u8>> {
        (self.read_file)(path, bytes_max)
    }

    pub(crate) fn error(&self, code: &'static str, message: Said, place: Place) -> Diagnostic {
        Diagnostic::error(code, message).at(self.span(place))
    }

    pub(crate) fn warning(&self, code: &'static str, message: Said, place: Place) -> Diagnostic {
        Diagnostic::warning(code, message).at(self.span(place))
    }

    /// Whether no more mistakes are shown: then places and likely words need not be looked for,
    /// which would take long in a large file full of mistakes.
    pub(crate) fn is_full(&self) -> bool {
        self.diagnostics.len() >= DIAGNOSTICS_MAX
    }

    pub(crate) fn note(&mut self, diagnostic: Diagnostic) {
        self.note_numbered(diagnostic);
    }

    /// Notes it; gives its number if it is shown.
    pub(crate) fn note_numbered(&mut self, mut diagnostic: Diagnostic) -> Option<usize> {
        diagnostic.label.get_or_insert_with(|| say!("here"));
        // What is wrong in a part is found wherever it is used.
        if let Some(number) = self.diagnostics.iter().position(|known| *known == diagnostic) {
            return Some(number);
        }
        if self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(diagnostic);
            return Some(self.diagnostics.len() - 1);
        }
        if diagnostic.severity == Severity::Error {
            self.more_errors += 1;
        }
        None
    }

    /// The mistake of this number is in this place too: it is said once, with how often.
    pub(crate) fn repeat(&mut self, number: usize, place: Place) {
        let span = self.span(place);
        if self.diagnostics.get(number).is_some_and(|first| first.span.as_ref() != Some(&span)) {
            self.repeated.entry(number).or_default().insert((place.file, place.start()));
        }
    }

    /// How many mistakes there are so far.
    pub(crate) fn errors(&self) -> usize {
        let shown = self.diagnostics.iter().filter(|one| one.severity == Severity::Error);
        shown.count() + self.more_errors
    }

    /// Notes a mistake where a value was to be read.
    pub(crate) fn fail<T>(&mut self, diagnostic: Diagnostic) -> Option<T> {
        self.note(diagnostic);
        None
    }

    #[allow(clippy::needless_pass_by_value)] // A sentence is handed over to what tells it.
    pub(crate) fn not_yet(&mut self, what: Said, place: Place, help: Said) {
        let message = say!("{what} is not supported in this version");
        let error =
            self.error("not-yet", message, place).label(say!("not supported yet")).help(help);
        self.note(error);
    }

    /// Reads what belongs to a connection, where its protocol is spoken.
    pub(crate) fn speaking<T>(
        &mut self,
        spoken: &Spoken,
        read: impl FnOnce(&mut Context<'_>) -> T,
    ) -> T {
        let scope = Scope { spoken, ..self.scope };
        read(&mut self.scoped(scope))
    }

    #[allow(clippy::needless_pass_by_value)] // A sentence is handed over to what tells it.
    pub(crate) fn wrong_type<T>(&mut self, node: &Node, want: Said, help: Said) -> Option<T> {
        let message = say!("expected {want} here, not {}", node.what());
        let error =
            self.error("wrong-type", message, node.place).label(say!("this is {}", node.what()));
        self.fail(error.help(help))
    }

    /// The place of a part of a scalar's text, as far as quotes and escapes let it be found.
    pub(crate) fn place_of(&self, node: &Node, part: &str) -> Place {
        match self.written(node.place).find(part) {
            Some(at) if !part.is_empty() => node.place.part(at, part.len()),
            _ => node.place,
        }
    }

    /// The path of a file that is named at this place.
    pub(crate) fn path(&self, place: Place, name: &str) -> PathBuf {
        self.sources[usize::from(place.file)].1.join(name)
    }

    /// As [`Context::path`], of a file that the record of the run has to know.
    pub(crate) fn named_path(&mut self, place: Place, name: &str, role: FileRole) -> PathBuf {
        let path = self.path(place, name);
        self.named_files.push(Named { place, path: path.clone(), role });
        path
    }

    /// The bytes of a file that the scenario names.
    pub(crate) fn file(&mut self, node: &Node, role: FileRole) -> Option<(PathBuf, Arc<[u8]>)> {
        let name = self.text(node, say!("the path of a file"))?;
        let path = self.named_path(node.place, &name, role);
        if let Some(bytes) = self.files.get(&path) {
            return Some((path.clone(), bytes.clone()));
        }
        let bytes_max = match role {
            FileRole::Certificate | FileRole::Key => PEM_BYTES_MAX,
            _ => FILES_BYTES_MAX - self.files.values().map(|bytes| bytes.len()).sum::<usize>(),
        };
        match (self.read_file)(&path, bytes_max) {
            Ok(bytes) if bytes.len() > bytes_max => {
                let message = match role {
                    FileRole::Certificate | FileRole::Key => say!("`{name}` is larger than 16 MiB"),
                    _ => say!("the files that the scenario sends are larger than 1 GiB in total"),
                };
                let error = self.error("file-too-large", message, node.place);
                let error = error.label(say!("too large"));
                self.fail(error.help(say!("use smaller files; all of them are kept in memory")))
            }
            Ok(bytes) => {
                let bytes: Arc<[u8]> = bytes.into();
                self.files.insert(path.clone(), bytes.clone());
                Some((path, bytes))
            }
            Err(reason) => {
                let error = self
                    .error("file-unreadable", say!("`{name}` cannot be read"), node.place)
                    .label(Said::of_error(&reason));
                let help =
                    say!("file paths are relative to the folder that contains the scenario file");
                self.fail(error.help(help))
            }
        }
    }
}

/// Lists and maps of things that have names.
impl Context<'_> {
    /// The entries of a map; keys that stand there twice are mistakes.
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

    /// Entries without those whose keys stand there already, which are mistakes.
    pub(crate) fn unique<'n>(
        &mut self,
        entries: impl ExactSizeIterator<Item = &'n (Key, Node)>,
    ) -> Vec<(&'n Key, &'n Node)> {
        // Almost all maps are small: looking through them beats hashing.
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

    /// One more mistake, which is not shown.
    pub(crate) fn count_error(&mut self) {
        self.more_errors += 1;
    }

    pub(crate) fn duplicate_key(&mut self, key: &Key, first: Place) {
        if self.is_full() {
            self.more_errors += 1;
            return;
        }
        let line = self.line(first);
        let message = say!("`{}` is given twice", shorten(&key.text));
        let error = self.error("duplicate-key", message, key.place);
        let label = say!("the first one is on line {line}");
        self.note(error.label(label).help(say!("remove one of them")));
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

/// Values with a type.
impl Context<'_> {
    #[allow(clippy::needless_pass_by_value)] // A sentence is handed over to what tells it.
    pub(crate) fn unit<T>(
        &mut self,
        node: &Node,
        want: Said,
        parse: impl Fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let text = self.text(node, want.clone())?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(reason) => {
                let message = say!("`{}` is not {want}", shorten(&text));
                let mut error = self
                    .error("bad-value", message, node.place)
                    .label(reason.message)
                    .help(reason.help);
                if let Some(name) = self.vars.single_name(node) {
                    error = error.note(say!("`vars.{name}` is `{}`", shorten(&text)));
                }
                self.fail(error)
            }
        }
    }

    pub(crate) fn duration(&mut self, node: &Node) -> Option<Duration> {
        self.unit(node, say!("a duration"), units::parse_time)
    }

    /// A duration that something has to have: zero is a mistake.
    pub(crate) fn time_limit(&mut self, node: &Node) -> Option<Duration> {
        let duration = self.duration(node)?;
        if duration.is_zero() {
            return self.bad_value(
                node,
                say!("the duration must be greater than zero"),
                say!("write `30s`"),
            );
        }
        Some(duration)
    }

    pub(crate) fn duration_range(&mut self, node: &Node) -> Option<(Duration, Duration)> {
        self.unit(node, say!("a duration or a range of durations"), units::parse_time_range)
    }

    pub(crate) fn size(&mut self, node: &Node) -> Option<u64> {
        let size = self.unit(node, say!("a size"), units::parse_size)?;
        match size {
            0 => self.bad_value(
                node,
                say!("the limit must be greater than zero"),
                say!("write `64KiB`"),
            ),
            _ => Some(size),
        }
    }

    pub(crate) fn rate(&mut self, node: &Node) -> Option<f64> {
        self.unit(node, say!("a rate"), units::parse_rate)
    }

    pub(crate) fn share(&mut self, node: &Node) -> Option<f64> {
        self.unit(node, say!("a share"), units::parse_share)
    }

    pub(crate) fn count(&mut self, node: &Node) -> Option<u64> {
        self.unit(node, say!("a count"), units::parse_count)
    }

    /// A count that fits into 32 bits, such as a weight.
    pub(crate) fn small_count(&mut self, node: &Node) -> Option<u32> {
        let count = self.count(node)?;
        match u32::try_from(count) {
            Ok(count) => Some(count),
            Err(_) => self.bad_value(
                node,
                say!("the number is too large"),
                say!("write at most 4 billion"),
            ),
        }
    }

    pub(crate) fn whole(&mut self, node: &Node) -> Option<u64> {
        let help = say!("a seed must be a whole number: `7`");
        self.unit(node, say!("a seed"), |text| {
            let plain = text.trim().replace('_', "");
            plain
                .parse()
                .map_err(|_| UnitError { message: say!("not a whole number"), help: help.clone() })
        })
    }

    pub(crate) fn bool(&mut self, node: &Node) -> Option<bool> {
        match self.text(node, say!("`true` or `false`"))?.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                let message = say!("`{}` is neither `true` nor `false`", shorten(other));
                let error = self.error("bad-value", message, node.place);
                let error = error.help(say!("write `true` or `false`"));
                self.fail(match switch(other) {
                    Some(value) => error.label(say!("did you mean `{value}`?")),
                    None => error.label(say!("not a boolean")),
                })
            }
        }
    }

    pub(crate) fn bad_value<T>(&mut self, node: &Node, message: Said, help: Said) -> Option<T> {
        let error = self.error("bad-value", message, node.place);
        self.fail(error.label(say!("not allowed")).help(help))
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&mut self, node: &Node, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, say!("a word"))?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let list: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let message = say!("`{}` is not allowed here", shorten(&text));
        let mut error = self.error("bad-value", message, node.place);
        if let Some(word) = did_you_mean(&text, words.iter().map(|(word, _)| *word)) {
            error = error.label(say!("did you mean `{word}`?"));
        }
        self.fail(error.help(say!("write one of these: {}", list.join(", "))))
    }
}
