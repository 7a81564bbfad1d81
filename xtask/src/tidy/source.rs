//! A Rust source, read once for all rules.

use super::tokens::{Line, Token, TokenKind, read};

const ONLY_TESTS: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// A module by the names that lead to it from the root of its crate.
pub(super) type Path = Vec<String>;

pub(super) struct Source {
    pub(super) file: String,
    pub(super) text: String,
    pub(super) lines: Vec<Line>,
    /// Without the items that only tests have.
    pub(super) tokens: Vec<Token>,
    /// The modules among those items.
    tests: Vec<String>,
    /// Of a module of a crate: the crate's folder, and the module's path.
    pub(super) place: Option<(String, Path)>,
}

impl Source {
    pub(super) fn new(file: &str, text: String) -> Source {
        let (all, lines) = read(&text);
        let (mut tokens, mut tests) = (Vec::new(), Vec::new());
        let mut rest = &all[..];
        while let [first, further @ ..] = rest {
            // Of constants, some hold messages of others that have a translation.
            let is_kept = rest.get(ONLY_TESTS.len()).is_some_and(|it| it.is_word("const"));
            if is_kept || !spells(rest, &ONLY_TESTS) {
                tokens.push(first.clone());
                rest = further;
                continue;
            }
            let item = &rest[ONLY_TESTS.len()..];
            let head = item.iter().take_while(|it| !it.is_mark(';') && !it.is_mark('{'));
            let mut name = head.skip_while(|it| !it.is_word("mod")).skip(1);
            tests.extend(name.next().and_then(Token::word).map(str::to_string));
            rest = &item[item_length(item)..];
        }
        Source { file: file.to_string(), text, lines, tokens, tests, place: place(file) }
    }

    /// Of the shipped program: no test, no example and no chore.
    pub(super) fn is_product(&self) -> bool {
        let file = &self.file;
        let is_test = file.contains("/tests/") || file.ends_with("/tests.rs");
        file.starts_with("crates/") && file.contains("/src/") && !is_test
    }

    /// Without strings and docs.
    pub(super) fn code(&self) -> Vec<Token> {
        let is_code = |it: &&Token| matches!(it.kind, TokenKind::Word(_) | TokenKind::Mark(_));
        self.tokens.iter().filter(is_code).cloned().collect()
    }
}

/// The modules of all crates, without those that only tests have: each with its folder and path.
pub(super) fn modules(sources: &[Source]) -> Vec<(&str, &Path, &Source)> {
    let placed = || {
        sources.iter().filter_map(|source| {
            let (folder, path) = source.place.as_ref()?;
            Some((folder.as_str(), path, source))
        })
    };
    let below = |(folder, path, source): (&'_ str, &Path, &Source)| {
        let module = |name: &String| path.iter().chain([name]).cloned().collect::<Path>();
        source.tests.iter().map(|name| (folder.to_string(), module(name))).collect::<Vec<_>>()
    };
    let tests: Vec<(String, Path)> = placed().flat_map(below).collect();
    let is_test = |folder: &str, path: &Path| {
        tests.iter().any(|(of, module)| *of == folder && path.starts_with(module))
    };
    placed().filter(|(folder, path, _)| !is_test(folder, path)).collect()
}

fn place(file: &str) -> Option<(String, Path)> {
    let (folder, inside) = file.strip_suffix(".rs")?.split_once("/src/")?;
    let mut path: Path = inside.split('/').map(str::to_string).collect();
    path.pop_if(|last| matches!(last.as_str(), "lib" | "main" | "mod"));
    Some((folder.rsplit('/').next()?.to_string(), path))
}

pub(super) fn spells(tokens: &[Token], marks: &[&str]) -> bool {
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
