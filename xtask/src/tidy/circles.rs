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
use super::tokens::{Token, TokenKind, tokens};

/// How often a name that is handed on is followed.
const HANDED_ON_MAX: usize = 8;

const ONLY_TESTS: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// A module by the names that lead to it from the root of its crate.
pub(super) type Path = Vec<String>;

/// A module: where it is written, and what it names.
struct Module {
    file: String,
    paths: Vec<Named>,
    /// Modules that only tests have.
    tests: BTreeSet<String>,
}

/// A path in a source; one of `use` gives its end a name.
struct Named {
    line: usize,
    path: Path,
    name: Option<String>,
}

/// The first place where a module uses another, by their parent and their names: its file and line.
pub(super) type Uses<'m> = BTreeMap<(Path, String, String), (&'m str, usize)>;

/// Checks the crates one by one; `sources` are told by name and text.
pub(super) fn check(sources: &[(String, String)]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, BTreeMap<Path, Module>> = BTreeMap::new();
    for (file, text) in sources {
        if let Some((folder, path)) = place(file) {
            crates.entry(folder).or_default().insert(path, read(file, text));
        }
    }
    let mut findings = Vec::new();
    for (folder, mut modules) in crates {
        leave_out_tests(&mut modules);
        let uses = uses(&modules);
        for (parent, circle) in circles(&uses) {
            let name = std::iter::once(folder).chain(parent.iter().map(String::as_str));
            let name = name.collect::<Vec<_>>().join("::");
            findings.push(finding(&name, &parent, &circle, &uses));
        }
    }
    findings
}

/// The crate's folder, and the path of the module that a file holds.
pub(super) fn place(file: &str) -> Option<(&str, Path)> {
    let (folder, inside) = file.strip_suffix(".rs")?.split_once("/src/")?;
    let mut path: Path = inside.split('/').map(str::to_string).collect();
    path.pop_if(|last| matches!(last.as_str(), "lib" | "main" | "mod"));
    Some((folder.rsplit('/').next()?, path))
}

fn leave_out_tests(modules: &mut BTreeMap<Path, Module>) {
    let tests: Vec<Path> =
        modules.iter().flat_map(|(path, module)| tests_below(path, module)).collect();
    modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
}

fn tests_below<'m>(path: &'m Path, module: &'m Module) -> impl Iterator<Item = Path> + 'm {
    module.tests.iter().map(|name| path.iter().chain([name]).cloned().collect::<Path>())
}

/// The modules that only tests have, each with the folder of its crate.
pub(super) fn test_modules(sources: &[(String, String)]) -> Vec<(&str, Path)> {
    let mut tests = Vec::new();
    for (file, text) in sources {
        let Some((folder, path)) = place(file) else { continue };
        let module = read(file, text);
        tests.extend(tests_below(&path, &module).map(|test| (folder, test)));
    }
    tests
}

/// Whether an item begins here that only tests have.
pub(super) fn is_of_tests(tokens: &[Token]) -> bool {
    spells(tokens, &ONLY_TESTS)
}

/// The length of such an item, with its attribute.
pub(super) fn test_item_length(tokens: &[Token]) -> usize {
    ONLY_TESTS.len() + item_length(&tokens[ONLY_TESTS.len()..])
}

/// What stands in a source.
fn read(file: &str, text: &str) -> Module {
    let is_code = |token: &Token| matches!(token.kind, TokenKind::Word(_) | TokenKind::Mark(_));
    let tokens: Vec<Token> = tokens(text).into_iter().filter(is_code).collect();
    let mut module = Module { file: file.to_string(), paths: Vec::new(), tests: BTreeSet::new() };
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        at += if is_of_tests(rest) {
            let item = &rest[ONLY_TESTS.len()..];
            let declared =
                item.iter().take_while(|token| !matches!(token.kind, TokenKind::Mark(';' | '{')));
            let mut name = declared.skip_while(|token| !token.is_word("mod")).skip(1);
            module.tests.extend(name.next().and_then(Token::word).map(str::to_string));
            test_item_length(rest)
        } else if rest[0].is_word("use") {
            let mut reader = Tree { tokens: rest, at: 1 };
            reader.read(&mut Vec::new(), &mut module.paths);
            reader.at
        } else {
            path(rest, at.checked_sub(1).map(|before| &tokens[before]), &mut module.paths)
        };
    }
    module
}

fn spells(tokens: &[Token], marks: &[&str]) -> bool {
    let same = |(token, mark): (&Token, &&str)| match &token.kind {
        TokenKind::Word(word) => word == mark,
        TokenKind::Mark(own) => mark.chars().eq([*own]),
        _ => false,
    };
    tokens.len() >= marks.len() && tokens.iter().zip(marks).all(same)
}

/// Until behind its `;` or its last `}`.
fn item_length(tokens: &[Token]) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Mark('{' | '(' | '[') => depth += 1,
            TokenKind::Mark('}') if depth <= 1 => return at + 1,
            TokenKind::Mark('}' | ')' | ']') => depth = depth.saturating_sub(1),
            TokenKind::Mark(';') if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
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
fn uses(modules: &BTreeMap<Path, Module>) -> Uses<'_> {
    let mut uses = BTreeMap::new();
    for (from, module) in modules {
        for named in &module.paths {
            let Some(to) = resolve(modules, from, &named.path, HANDED_ON_MAX) else { continue };
            add(&mut uses, from, &to, (module.file.as_str(), named.line));
        }
    }
    uses
}

/// Notes that a module uses another, as a use between the children of their nearest common parent.
pub(super) fn add<'m>(uses: &mut Uses<'m>, from: &Path, to: &Path, place: (&'m str, usize)) {
    let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    if common < from.len() && common < to.len() {
        let key = (from[..common].to_vec(), from[common].clone(), to[common].clone());
        uses.entry(key).or_insert(place);
    }
}

/// The module in which a path ends; None if that is in another crate.
fn resolve(
    modules: &BTreeMap<Path, Module>,
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
