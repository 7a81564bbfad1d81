//! Circles between the modules of a crate: found in what their sources say, tests left out.
//!
//! A path that begins with `crate`, `super`, `self` or a module beside it leads to the module in
//! which its item is defined, also through the names that modules on the way hand on. A module and
//! its children are one thing to those beside it: what a path says is a use between the two
//! children of their nearest common parent in which its ends lie. A module and its own parent may
//! use each other, as the parts of one thing do. So in each module, its children have an order in
//! which each uses only those before it, and can be read in that order.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::source::{self, Path, Source, spells};
use super::tokens::{Token, TokenKind};

/// The maximum number of re-exports that are followed for a name.
const HANDED_ON_MAX: usize = 8;

/// A module: where it is written, and what it names.
struct Module<'s> {
    file: &'s str,
    paths: Vec<Named>,
}

/// A path in a source; one of `use` gives its end a name.
struct Named {
    line: usize,
    path: Path,
    name: Option<String>,
}

/// The first place where a module uses another, by their parent and their names: its file and line.
pub(super) type Uses<'m> = BTreeMap<(Path, String, String), (&'m str, usize)>;

/// Checks the crates one by one.
pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, BTreeMap<Path, Module<'_>>> = BTreeMap::new();
    for (folder, path, source) in source::modules(sources) {
        crates.entry(folder).or_default().insert(path.clone(), read(source));
    }
    let mut findings = Vec::new();
    for (folder, modules) in crates {
        let uses = uses(&modules);
        for (parent, circle) in circles(&uses) {
            findings.push(finding(&name(folder, &parent), &parent, &circle, &uses));
        }
    }
    findings
}

/// A module as its paths spell it.
pub(super) fn name(folder: &str, path: &Path) -> String {
    std::iter::once(folder).chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join("::")
}

/// What a source names.
fn read(source: &Source) -> Module<'_> {
    let tokens = source.code();
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        at += if rest[0].is_word("use") {
            let mut reader = Tree { tokens: rest, at: 1 };
            reader.read(&mut Vec::new(), &mut paths);
            reader.at
        } else {
            path(rest, at.checked_sub(1).map(|before| &tokens[before]), &mut paths)
        };
    }
    Module { file: &source.file, paths }
}

/// A path in an expression or a type; how many tokens it has.
fn path(tokens: &[Token], before: Option<&Token>, paths: &mut Vec<Named>) -> usize {
    let mut path = Vec::new();
    let mut at = 0;
    while let Some(word) = tokens.get(at).and_then(Token::word) {
        path.push(word.to_string());
        at += 1;
        if !spells(&tokens[at..], &[":", ":"]) {
            break;
        }
        at += 2;
    }
    let goes_on = before.is_some_and(|token| token.is_mark(':') || token.is_mark('.'));
    if path.len() > 1 && !goes_on {
        paths.push(Named { line: tokens[0].line, path, name: None });
    }
    at.max(1)
}

/// Reads the tree of a `use`.
struct Tree<'t> {
    tokens: &'t [Token],
    at: usize,
}

impl Tree<'_> {
    fn takes(&mut self, mark: char) -> bool {
        let is_next = self.tokens.get(self.at).is_some_and(|token| token.is_mark(mark));
        self.at += usize::from(is_next);
        is_next
    }

    fn read(&mut self, before: &mut Path, paths: &mut Vec<Named>) {
        let depth = before.len();
        let mut name = None;
        while let Some(token) = self.tokens.get(self.at) {
            match &token.kind {
                TokenKind::Word(word) if word == "as" => {
                    name = self.tokens.get(self.at + 1).and_then(Token::word).map(str::to_string);
                    self.at += 2;
                }
                TokenKind::Word(word) => {
                    before.push(word.clone());
                    self.at += 1;
                }
                TokenKind::Mark(':') => self.at += 1,
                TokenKind::Mark('{') => {
                    self.at += 1;
                    while !self.takes('}') && self.at < self.tokens.len() {
                        self.read(before, paths);
                        self.takes(',');
                    }
                    before.truncate(depth);
                    return;
                }
                TokenKind::Mark('*') => {
                    before.push("*".to_string());
                    self.at += 1;
                }
                _ => break,
            }
        }
        let line = self.tokens[self.at.min(self.tokens.len()) - 1].line;
        before.pop_if(|last| last == "self" && depth > 0);
        let name = name.or_else(|| before.last().cloned());
        paths.push(Named { line, path: before.clone(), name });
        before.truncate(depth);
    }
}

/// Which child of which module uses which of its siblings.
fn uses<'s>(modules: &BTreeMap<Path, Module<'s>>) -> Uses<'s> {
    let mut uses = BTreeMap::new();
    for (from, module) in modules {
        for named in &module.paths {
            let Some(to) = resolve(modules, from, &named.path, HANDED_ON_MAX) else { continue };
            add(&mut uses, from, &to, (module.file, named.line));
        }
    }
    uses
}

/// Adds the use of a module by another: a use between children of their nearest common parent.
pub(super) fn add<'m>(uses: &mut Uses<'m>, from: &Path, to: &Path, place: (&'m str, usize)) {
    let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    if common < from.len() && common < to.len() {
        let key = (from[..common].to_vec(), from[common].clone(), to[common].clone());
        uses.entry(key).or_insert(place);
    }
}

/// The module in which a path ends; None if that is in another crate.
fn resolve(
    modules: &BTreeMap<Path, Module<'_>>,
    from: &Path,
    path: &[String],
    handed_on_max: usize,
) -> Option<Path> {
    let mut here = from.clone();
    let mut rest = path;
    while let [first, further @ ..] = rest {
        match first.as_str() {
            "crate" => here.clear(),
            "super" => drop(here.pop()),
            "self" => {}
            _ => break,
        }
        rest = further;
    }
    let mut is_inside = rest.len() < path.len();
    while let [first, further @ ..] = rest {
        here.push(first.clone());
        if modules.contains_key(&here) {
            is_inside = true;
            rest = further;
            continue;
        }
        here.pop();
        let module = modules.get(&here)?;
        let handed_on = module.paths.iter().find(|named| {
            named.name.as_ref() == Some(first) && !(here == *from && named.path == path)
        });
        if let (Some(named), 1..) = (handed_on, handed_on_max) {
            let path: Path = named.path.iter().chain(further).cloned().collect();
            let to = resolve(modules, &here, &path, handed_on_max - 1);
            // What a module has from another crate is that module's own.
            return to.or(is_inside.then_some(here));
        }
        break;
    }
    is_inside.then_some(here)
}

/// Each with its parent and its modules in order.
pub(super) fn circles(uses: &Uses<'_>) -> Vec<(Path, Vec<String>)> {
    let mut graphs: BTreeMap<&Path, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (parent, from, to) in uses.keys() {
        graphs.entry(parent).or_default().entry(from).or_default().insert(to);
    }
    let mut circles = Vec::new();
    for (parent, graph) in graphs {
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            graph.keys().map(|name| (*name, reached(&graph, name))).collect();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (name, reached) in &reach {
            if !reached.contains(name) || seen.contains(name) {
                continue;
            }
            let circle: Vec<&str> = reached
                .iter()
                .filter(|other| reach.get(*other).is_some_and(|back| back.contains(name)))
                .copied()
                .collect();
            seen.extend(circle.iter().copied());
            circles.push((parent.clone(), circle.iter().map(ToString::to_string).collect()));
        }
    }
    circles
}

/// All that a module uses, and what that uses.
fn reached<'g>(graph: &BTreeMap<&'g str, BTreeSet<&'g str>>, name: &'g str) -> BTreeSet<&'g str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        for to in graph.get(next).into_iter().flatten() {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

fn finding(name: &str, parent: &Path, circle: &[String], uses: &Uses<'_>) -> Finding {
    let within = |key: &(Path, String, String)| is_within(key, parent, circle);
    let first = uses.iter().find(|(key, _)| within(key)).map(|(_, place)| *place);
    let cure = format!("move what they share to where it belongs{}", told(parent, circle, uses));
    let what = format!("modules of `{name}` use each other in a circle: {}", circle.join(", "));
    let (file, line) = first.unwrap_or_default();
    Finding::new(file, line, what, cure)
}

/// What the modules of a circle use of each other, a line each.
pub(super) fn told(parent: &Path, circle: &[String], uses: &Uses<'_>) -> String {
    let within = uses.iter().filter(|(key, _)| is_within(key, parent, circle));
    let line = |((_, from, to), place): (&(Path, String, String), &(&str, usize))| {
        format!("\n    {from} uses {to}: {}:{}", place.0, place.1)
    };
    within.map(line).collect()
}

fn is_within(key: &(Path, String, String), parent: &Path, circle: &[String]) -> bool {
    let (above, from, to) = key;
    above == parent && circle.contains(from) && circle.contains(to)
}
