//! Rules about one file at a time: its name, its length, its opening, what it must not contain.

use super::Finding;
use super::source::Source;

const FILE_LINES_MAX: usize = 1000;
const LINE_CHARACTERS_MAX: usize = 100;

/// Names that say nothing about the contents of a file.
const NAMES_BANNED: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];

/// Code that must not be committed, and what to do instead.
const CODE_BANNED: &[(&str, &str)] = &[
    ("#[ignore", "make the test run, or remove it: an ignored test guards nothing"),
    ("todo!", "write it, or leave the feature out"),
    ("unimplemented!", "write it, or leave the feature out"),
    // Names that are not terms of the field; docs/writing.md has the terms.
    ("fn be(", "name what it does"),
    ("struct Making ", "name the process"),
    ("struct Moves ", "name what changes"),
    ("struct Ring ", "name what is compared: a duel"),
    ("struct Desk ", "a run has a controller"),
    ("struct Post ", "a run has generators"),
    ("struct Seat ", "a user has a slot"),
    ("struct Told ", "name what is reported"),
    ("struct Fault(", "an expression has an evaluation error"),
    ("enum Want ", "a check has a matcher"),
    ("enum Pick ", "a check has an extractor"),
    ("enum Parting ", "a connection has a close mode"),
];

/// The reference servers are fixtures: of the shipped binary one command links to them.
const FIXTURES: &str = "throng_target::";
const FIXTURES_ALLOWED: &[&str] = &["throng/src/target.rs", "throng/src/arguments/target.rs"];

/// Paths of one developer's machine; written in two parts so that this file is not a finding.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp", "/target")];

/// The names of a source file and of its folders.
pub(super) fn check_name(file: &str) -> Vec<Finding> {
    if ![".rs", ".ts", ".tsx"].iter().any(|end| file.ends_with(end)) {
        return Vec::new();
    }
    let words = file.split(['/', '_', '-', '.']);
    let banned = words.filter(|word| NAMES_BANNED.contains(word));
    let finding = |word| {
        let what = format!("`{word}` is not a name: it says nothing of what is inside");
        Finding::new(file, 1, what, "name the file after the one noun it is about")
    };
    banned.map(finding).collect()
}

/// Paths that exist only where the file was written.
pub(super) fn check_machine_paths(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for path in MACHINE_PATHS.iter().filter(|path| has_absolute(line, path)) {
            let what = format!("`{path}` is a path of one machine");
            findings.push(Finding::new(
                file,
                index + 1,
                what,
                "use a path relative to the project",
            ));
        }
    }
    findings
}

/// True if `path` stands in the line as the start of a path, not in the middle of another.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-}~*".contains(c))
    })
}

/// The rules of a Rust file.
pub(super) fn check_rust(source: &Source) -> Vec<Finding> {
    let (file, text) = (source.file.as_str(), source.text.as_str());
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        let cure = "open with one to five lines `//!`: what it is, and what it is not";
        findings.push(Finding::new(file, 1, "the file does not say what it is", cure));
    }
    let count = text.lines().count();
    if count > FILE_LINES_MAX {
        let what = format!("{count} lines; at most {FILE_LINES_MAX}");
        findings.push(Finding::new(file, FILE_LINES_MAX + 1, what, "split it along its nouns"));
    }
    for (index, (line, scanned)) in text.lines().zip(&source.lines).enumerate() {
        findings.extend(check_width(file, index + 1, line, scanned.has_string));
        let is_allowed = FIXTURES_ALLOWED.iter().any(|end| file.ends_with(end));
        if !is_allowed && contains_token(&scanned.code, FIXTURES) {
            let what = "the reference servers are linked from elsewhere than `throng target`";
            findings.push(Finding::new(
                file,
                index + 1,
                what,
                "leave them to crates/throng-target",
            ));
        }
        for (banned, cure) in CODE_BANNED {
            if contains_token(&scanned.code, banned) {
                let what = format!("`{banned}` in the code");
                findings.push(Finding::new(file, index + 1, what, *cure));
            }
        }
    }
    findings
}

fn check_width(file: &str, number: usize, line: &str, has_string: bool) -> Option<Finding> {
    let width = line.chars().count();
    if width <= LINE_CHARACTERS_MAX || has_string || line.contains("://") {
        return None;
    }
    let what = format!("{width} characters; at most {LINE_CHARACTERS_MAX}");
    Some(Finding::new(file, number, what, "break the line; `cargo fmt` breaks code"))
}

/// True if the code contains `token` and not merely a longer name that ends in it.
fn contains_token(code: &str, token: &str) -> bool {
    code.match_indices(token).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })
}
