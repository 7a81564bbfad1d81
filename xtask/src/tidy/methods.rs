//! Circles between the modules of a crate by the methods that they call, which no path shows, and
//! types with more methods or fields, and folders with more files, than a reader can keep in mind.
//!
//! What a call leads to is told without types: `self.name(…)` inside an `impl` is a method of that
//! type; any other `.name(…)` is the method that only one type of the crate has. A name that is
//! called in a crate that has no such method belongs to the standard library or to another crate,
//! and one that a crate of ours makes public may be meant wherever that crate is named: both say
//! nothing. So a circle that is reported exists; a circle may be larger than is reported.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::circles::{self, Uses};
use super::source::{self, Path};
use super::tokens::{Token, TokenKind};

/// A type with more has more than one task.
const METHODS_MAX: usize = 40;

/// A struct with more has more than one subject. Of the crates whose structs are tables of figures:
/// a field there is a row of several outputs.
const FIELDS_MAX: usize = 20;
const FIELDS_IN: [&str; 2] = ["throng-metrics", "throng-results"];

/// What the names of our crates begin with in paths.
const OURS: &str = "throng_";

/// A folder with more sources is several folders.
const FILES_MAX: usize = 25;
const END_TO_END_FILES_MAX: usize = 15;

/// What one source says of methods.
#[derive(Default)]
struct Module<'s> {
    file: &'s str,
    folder: &'s str,
    path: Path,
    /// The types that it defines.
    types: BTreeSet<String>,
    /// Structs with named fields, and how many.
    structs: Vec<(String, usize)>,
    methods: Vec<Method>,
    calls: Vec<Call>,
    /// The crates that it names, as paths spell them.
    crates: BTreeSet<String>,
}

/// A method of an `impl` that is of no trait.
struct Method {
    of: String,
    name: String,
    is_public: bool,
}

struct Call {
    line: usize,
    name: String,
    /// The type of the `impl` around a call on `self`.
    of: Option<String>,
}

/// A type: its crate, the module that defines it, its name.
type Type<'s> = (&'s str, Path, String);

/// The types of a crate that have a method of a name, each with the modules of its `impl`s.
type Owners<'s> = BTreeMap<(&'s str, String), BTreeSet<(Type<'s>, Path)>>;

/// Compares the sources with the limits.
pub(super) fn check(sources: &[source::Source]) -> Vec<Finding> {
    let modules: Vec<Module<'_>> = source::modules(sources)
        .into_iter()
        .map(|(folder, path, source)| {
            MethodReader { tokens: source.code(), at: 0 }.read(&source.file, folder, path.clone())
        })
        .collect();
    let mut findings = Vec::new();
    let owners = owners(&modules);
    let mut counts: BTreeMap<&Type<'_>, usize> = BTreeMap::new();
    for (of, _) in owners.values().flatten() {
        *counts.entry(of).or_default() += 1;
    }
    for ((folder, path, name), count) in counts.into_iter().filter(|(_, it)| *it > METHODS_MAX) {
        let what = format!("`{folder}::{name}` has {count} methods; at most {METHODS_MAX}");
        let place = circles::name(folder, path);
        findings.push(Finding::new(&place, 1, what, "give it parts that are types of their own"));
    }
    for module in modules.iter().filter(|module| FIELDS_IN.contains(&module.folder)) {
        for (name, count) in module.structs.iter().filter(|(_, count)| *count > FIELDS_MAX) {
            let name = format!("{}::{name}", module.folder);
            let what = format!("`{name}` has {count} fields; at most {FIELDS_MAX}");
            let cure = "give what is read together a struct of its own";
            findings.push(Finding::new(module.file, 1, what, cure));
        }
    }
    let folders: BTreeSet<&str> = modules.iter().map(|module| module.folder).collect();
    for folder in folders {
        let uses = uses(folder, &modules, &owners);
        for (parent, circle) in circles::circles(&uses) {
            let name = circles::name(folder, &parent);
            let what =
                format!("modules of `{name}` call methods in a circle: {}", circle.join(", "));
            let cure = circles::told(&parent, &circle, &uses);
            findings.push(Finding::new(folder, 1, what, cure));
        }
    }
    findings.extend(full_folders(sources));
    findings
}

fn full_folders(sources: &[source::Source]) -> impl Iterator<Item = Finding> {
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for (folder, _) in sources.iter().filter_map(|source| source.file.rsplit_once('/')) {
        *files.entry(folder).or_default() += 1;
    }
    files.into_iter().filter_map(|(folder, count)| {
        let is_end_to_end = folder.contains("/tests/e2e");
        let most = if is_end_to_end { END_TO_END_FILES_MAX } else { FILES_MAX };
        let what = format!("`{folder}` has {count} sources; at most {most}");
        (count > most).then(|| Finding::new(folder, 1, what, "give each subject a folder"))
    })
}

/// The type that a source means by a name: of several, the one that is defined nearest to it.
fn type_of<'s>(from: &Module<'s>, name: &str, sources: &[Module<'s>]) -> Type<'s> {
    let near = |path: &Path| path.iter().zip(&from.path).take_while(|(a, b)| a == b).count();
    let defined = sources
        .iter()
        .filter(|source| source.folder == from.folder && source.types.contains(name))
        .max_by_key(|source| (near(&source.path), source.path == from.path));
    let path = defined.map_or_else(Path::new, |source| source.path.clone());
    (from.folder, path, name.to_string())
}

fn owners<'s>(sources: &[Module<'s>]) -> Owners<'s> {
    let mut owners = Owners::new();
    for source in sources {
        for method in &source.methods {
            let key = (source.folder, method.name.clone());
            let owner = (type_of(source, &method.of, sources), source.path.clone());
            owners.entry(key).or_default().insert(owner);
        }
    }
    owners
}

/// Which child of which module calls methods of which of its siblings.
fn uses<'s>(folder: &str, sources: &'s [Module<'s>], owners: &Owners<'s>) -> Uses<'s> {
    let (own, others): (Vec<_>, Vec<_>) =
        sources.iter().partition(|source| source.folder == folder);
    let named: BTreeSet<&String> = own.iter().flat_map(|source| &source.crates).collect();
    let of_named = others.iter().filter(|it| named.contains(&it.folder.replace('-', "_")));
    let public = of_named.flat_map(|it| &it.methods).filter(|method| method.is_public);
    let elsewhere: BTreeSet<&str> = others
        .iter()
        .flat_map(|source| source.calls.iter().map(move |call| (source.folder, &*call.name)))
        .filter(|(of, name)| !owners.contains_key(&(*of, (*name).to_string())))
        .map(|(_, name)| name)
        .chain(public.map(|method| &*method.name))
        .collect();
    let mut uses = Uses::new();
    for source in own {
        for call in &source.calls {
            let Some(owners) = owners.get(&(source.folder, call.name.clone())) else { continue };
            let to = match &call.of {
                Some(of) => {
                    let of = type_of(source, of, sources);
                    owners.iter().find(|(owner, _)| *owner == of)
                }
                None if elsewhere.contains(&*call.name) => None,
                None => owners.first().filter(|_| owners.len() == 1),
            };
            let Some((_, to)) = to else { continue };
            circles::add(&mut uses, &source.path, to, (source.file, call.line));
        }
    }
    uses
}

/// Reads the methods and calls of a source.
struct MethodReader {
    tokens: Vec<Token>,
    at: usize,
}

impl MethodReader {
    fn read<'s>(mut self, file: &'s str, folder: &'s str, path: Path) -> Module<'s> {
        let mut source = Module { file, folder, path, ..Module::default() };
        // The `impl` that is read: its type, whether it is of a trait, and the depth of its body.
        let mut within: Option<(String, bool, usize)> = None;
        let mut depth = 0usize;
        while let Some(token) = self.tokens.get(self.at) {
            match &token.kind {
                TokenKind::Mark('{') => depth += 1,
                TokenKind::Mark('}') => {
                    depth = depth.saturating_sub(1);
                    within = within.filter(|(.., body)| depth >= *body);
                }
                TokenKind::Mark('.') => source.calls.extend(self.call(within.as_ref())),
                TokenKind::Word(word)
                    if within.is_none() && word == "impl" && self.begins_item() =>
                {
                    if let Some((of, is_trait)) = self.head() {
                        within = Some((of, is_trait, depth + 1));
                        continue;
                    }
                }
                TokenKind::Word(word) if word.starts_with(OURS) => {
                    source.crates.insert(word.clone());
                }
                TokenKind::Word(word) if word == "struct" || word == "enum" => {
                    let name = self.word(1).map(str::to_string);
                    source.structs.extend(name.clone().zip(self.fields()));
                    source.types.extend(name);
                }
                TokenKind::Word(word) if word == "fn" => match &within {
                    Some((of, false, body)) if depth == *body && self.takes_self() => {
                        let name = self.word(1).unwrap_or_default().to_string();
                        let is_public = self.is_public();
                        source.methods.push(Method { of: of.clone(), name, is_public });
                    }
                    _ => {}
                },
                _ => {}
            }
            self.at += 1;
        }
        source
    }

    /// Whether an item may begin here, and not a type in one.
    fn begins_item(&self) -> bool {
        let before = self.at.checked_sub(1).map(|at| &self.tokens[at].kind);
        before.is_none_or(|kind| match kind {
            TokenKind::Mark(mark) => matches!(mark, '{' | '}' | ';' | ']'),
            TokenKind::Word(word) => word == "unsafe",
            TokenKind::Text(_) | TokenKind::Doc(_) => false,
        })
    }

    fn word(&self, behind: usize) -> Option<&str> {
        self.tokens.get(self.at + behind)?.word()
    }

    fn is_mark(&self, behind: usize, mark: char) -> bool {
        self.tokens.get(self.at + behind).is_some_and(|token| token.is_mark(mark))
    }

    /// The head of an `impl`, up to its `{`: its type, and whether it is of a trait. None where no
    /// body follows, as in `-> impl Trait;`.
    fn head(&mut self) -> Option<(String, bool)> {
        let (mut angles, mut name, mut is_trait) = (0usize, None, false);
        let mut before = ' ';
        for at in self.at + 1..self.tokens.len() {
            match &self.tokens[at].kind {
                TokenKind::Mark('{') => {
                    self.at = at;
                    return name.map(|name| (name, is_trait));
                }
                TokenKind::Mark(';' | ')' | '}' | '=' | ',') if angles == 0 => return None,
                TokenKind::Mark('<') => angles += 1,
                // `->` closes nothing.
                TokenKind::Mark('>') if before != '-' => angles = angles.saturating_sub(1),
                TokenKind::Word(word) if angles == 0 && word == "for" => {
                    (name, is_trait) = (None, true);
                }
                TokenKind::Word(word) if angles == 0 && word == "where" => {
                    let body = self.tokens[at..].iter().position(|token| token.is_mark('{'))?;
                    self.at = at + body;
                    return name.map(|name| (name, is_trait));
                }
                TokenKind::Word(word) if angles == 0 => name = Some(word.clone()),
                _ => {}
            }
            before = match &self.tokens[at].kind {
                TokenKind::Mark(mark) => *mark,
                _ => ' ',
            };
        }
        None
    }

    /// How many fields the struct has; None where they have no names.
    fn fields(&self) -> Option<usize> {
        let rest = &self.tokens[self.at..];
        let body =
            rest.iter().position(|it| matches!(it.kind, TokenKind::Mark('{' | '(' | ';')))?;
        let (mut depth, mut count) = (0usize, 0);
        for at in body..rest.len() {
            let is = |at: usize, mark| rest.get(at).is_some_and(|token| token.is_mark(mark));
            match &rest[at].kind {
                TokenKind::Mark('{' | '(' | '[' | '<') => depth += 1,
                // `->` and `=>` close nothing.
                TokenKind::Mark('>') if is(at - 1, '-') || is(at - 1, '=') => {}
                TokenKind::Mark('}' | ')' | ']' | '>') => depth -= 1,
                TokenKind::Mark(':') if depth == 1 && !is(at - 1, ':') && !is(at + 1, ':') => {
                    count += 1;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        rest[body].is_mark('{').then_some(count)
    }

    /// Whether other crates may call the function: `pub const fn`, and not `pub(super) fn`.
    fn is_public(&self) -> bool {
        let before = self.tokens[..self.at].iter().rev();
        before.map_while(Token::word).take(2).any(|word| word == "pub")
    }

    /// Whether the function has a receiver.
    fn takes_self(&self) -> bool {
        let rest = &self.tokens[self.at..];
        let Some(open) = rest.iter().position(|token| token.is_mark('(')) else { return false };
        let first = rest[open + 1..]
            .iter()
            .take_while(|token| !token.is_mark(',') && !token.is_mark(')') && !token.is_mark(':'));
        first.into_iter().any(|token| token.is_word("self"))
    }

    /// The call of a method behind a `.`, if it is one.
    fn call(&self, within: Option<&(String, bool, usize)>) -> Option<Call> {
        let name = self.word(1)?;
        let is_turbofish = self.is_mark(2, ':') && self.is_mark(3, ':') && self.is_mark(4, '<');
        if !self.is_mark(2, '(') && !is_turbofish {
            return None;
        }
        let is_self = self.at > 0
            && self.tokens[self.at - 1].is_word("self")
            && !(self.at > 1 && self.tokens[self.at - 2].is_mark('.'));
        let of = within.filter(|_| is_self).map(|(of, ..)| of.clone());
        Some(Call { line: self.tokens[self.at + 1].line, name: name.to_string(), of })
    }
}
