//! What `throng explain` shows: every code that throng says has a section in both languages, no
//! section is of a code that nobody says, and the examples are what they claim to be.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;
use throng_base::{Diagnostic, Severity, Source};
use throng_metrics::Cause;

use super::compile_set;
use crate::curl;

/// The files, with the words that begin a wrong and a right example.
const FILES: [(&str, &str, &str); 2] =
    [("docs/codes.md", "# wrong", "# right"), ("docs/zh/codes.md", "# 错误", "# 正确")];

/// The most lines that a section may have: it is read at a terminal.
const SECTION_LINES_MAX: usize = 40;
const LINE_COLUMNS_MAX: usize = 100;
/// The first sentence stands beside the code in the list of all codes.
const BRIEF_COLUMNS_MAX: usize = 80;

#[derive(Debug)]
struct Example {
    is_wrong: bool,
    /// `yaml`, or `sh` for command lines.
    kind: String,
    text: String,
}

#[derive(Debug)]
struct Section {
    code: String,
    text: String,
    examples: Vec<Example>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sections(file: &str, wrong: &str, right: &str) -> Vec<Section> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let section = |part: &str| {
        let (code, text) = part.split_once('\n').unwrap();
        let fenced = text.split("\n```").skip(1).step_by(2);
        let examples = fenced.map(|block| {
            let (kind, text) = block.split_once('\n').unwrap();
            let first = text.lines().next().unwrap();
            assert!([wrong, right].contains(&first), "{file}: {code} begins with {first}");
            Example { is_wrong: first == wrong, kind: kind.into(), text: text.into() }
        });
        Section { code: code.into(), examples: examples.collect(), text: text.into() }
    };
    text.split("\n## ").skip(1).map(section).collect()
}

fn all_sections() -> impl Iterator<Item = (&'static str, Section)> {
    FILES.into_iter().flat_map(|(file, wrong, right)| {
        sections(file, wrong, right).into_iter().map(move |section| (file, section))
    })
}

/// The Rust sources of all crates, without their tests.
fn sources(folder: &Path, out: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(name.as_str(), "tests" | "target") {
            sources(&path, out);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            out.push(code.to_string());
        }
    }
}

/// Every code that the sources say; a code stands first in one of these calls, or beside the
/// message that goes with it.
fn said() -> BTreeSet<String> {
    let calls =
        r#"\b(?:error|warning|wrong|fail|whole|mistake|say|new)\(\s*"([a-z]+(?:-[a-z0-9]+)*)","#;
    let tuples = r#"\(\s*"([a-z]+(?:-[a-z]+)+)",\s*say!\(\s*"[^"]*",?\s*\),\s*say!"#;
    let patterns = r#"(?:Result<Pick|Pick::\w+\)), "([a-z]+-[a-z]+)","#;
    let mut texts = Vec::new();
    sources(&root().join("crates"), &mut texts);
    let mut said = BTreeSet::new();
    for pattern in [calls, tuples, patterns] {
        let pattern = Regex::new(pattern).unwrap();
        let found = texts.iter().flat_map(|text| pattern.captures_iter(text));
        said.extend(found.map(|found| found[1].to_string()));
    }
    // The reasons of failures in reports are explained too.
    said.extend(throng_data::CODES.map(String::from));
    said.extend(Cause::ALL.iter().map(|cause| cause.word().to_string()));
    said
}

#[test]
fn every_code_is_explained_and_nothing_else() {
    let said = said();
    for (file, wrong, right) in FILES {
        let codes: Vec<String> =
            sections(file, wrong, right).into_iter().map(|section| section.code).collect();
        let mut sorted = codes.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(codes, sorted, "{file} is not sorted");
        let explained: BTreeSet<String> = codes.into_iter().collect();
        let missing: Vec<_> = said.difference(&explained).collect();
        let unsaid: Vec<_> = explained.difference(&said).collect();
        assert!(missing.is_empty(), "{file} lacks {missing:?}");
        assert!(unsaid.is_empty(), "{file} explains what nobody says: {unsaid:?}");
    }
}

#[test]
fn sections_are_short_and_begin_with_one_sentence() {
    for (file, section) in all_sections() {
        let lines: Vec<&str> = section.text.trim().lines().collect();
        assert!(lines.len() <= SECTION_LINES_MAX, "{file}: {} is too long", section.code);
        for line in &lines {
            let is_example = section.examples.iter().any(|example| example.text.contains(line));
            assert!(columns(line) <= LINE_COLUMNS_MAX || is_example, "{file}: {line}");
        }
        let first = section.text.trim().split("\n\n").next().unwrap();
        let brief = first.split_inclusive(['.', '。']).next().unwrap();
        assert!(brief.ends_with(['.', '。']), "{file}: {brief}");
        assert!(!brief.contains('\n') && columns(brief) <= BRIEF_COLUMNS_MAX, "{file}: {brief}");
    }
}

/// Wide signs take two columns.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if ('\u{1100}'..='\u{ffe6}').contains(&c) { 2 } else { 1 }).sum()
}

/// What an example gives: whether it can be used, and the codes of what is said about it.
fn outcome(example: &Example) -> (bool, Vec<Diagnostic>) {
    let source = Source::new("example", example.text.as_str());
    // A protocol file is told by its packet.
    let is_protocol = example.text.lines().any(|line| line.starts_with("packet:"));
    match example.kind.as_str() {
        "yaml" if is_protocol => {
            let told = crate::protocol::tests::told(&example.text);
            (told.iter().all(|one| one.severity != Severity::Error), told)
        }
        "yaml" => match compile_set(&source, &[]) {
            Ok((_, warnings)) => (true, warnings),
            Err(errors) => (false, errors),
        },
        _ => match curl::parse(&source) {
            Ok(request) => (true, request.warnings),
            Err(errors) => (false, errors),
        },
    }
}

/// Whether it is read here; command lines of `throng` are tried with the binary.
fn is_read_here(example: &Example) -> bool {
    example.kind == "yaml" || example.text.lines().any(|line| line.starts_with("curl"))
}

#[test]
fn examples_are_wrong_and_right_as_they_say() {
    let mut problems = Vec::new();
    for (file, section) in all_sections() {
        let code = &section.code;
        for example in &section.examples {
            assert!(matches!(example.kind.as_str(), "yaml" | "sh"), "{file}: {code}");
            if !is_read_here(example) && code != "curl-empty" {
                continue;
            }
            let (is_good, told) = outcome(example);
            let codes: BTreeSet<&str> = told.iter().map(|one| one.code).collect();
            let has_errors = told.iter().any(|one| one.severity == Severity::Error);
            assert_eq!(is_good, !has_errors);
            let as_said = match example.is_wrong {
                true => codes.len() == 1 && codes.contains(code.as_str()),
                false => codes.is_empty(),
            };
            if !as_said {
                problems.push(format!("{file}: {code}: {codes:?}\n{}", example.text));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn both_languages_show_the_same_examples() {
    let [english, chinese] = FILES.map(|(file, wrong, right)| sections(file, wrong, right));
    for (one, other) in english.iter().zip(&chinese) {
        let body = |example: &Example| {
            let (_, text) = example.text.split_once('\n').unwrap();
            (example.is_wrong, text.to_string())
        };
        let bodies = |section: &Section| section.examples.iter().map(body).collect::<Vec<_>>();
        assert_eq!(bodies(one), bodies(other), "{}", one.code);
        assert!(other.text.chars().any(|c| c >= '\u{4e00}'), "{} is not Chinese", other.code);
    }
}

#[test]
fn codes_of_the_language_have_a_wrong_and_a_right_example() {
    let shown: String = super::markdown_files().into_iter().map(|(_, text)| text).collect();
    for (file, section) in all_sections() {
        let of_language = shown.contains(&format!("[{}]: ", section.code));
        let wrong = section.examples.iter().any(|example| example.is_wrong);
        let right = section.examples.iter().any(|example| !example.is_wrong);
        // More than 200,000 steps are no example.
        let is_excused = section.code == "too-many";
        assert!(!of_language || is_excused || (wrong && right), "{file}: {}", section.code);
    }
}
