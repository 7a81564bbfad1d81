//! What `throng explain` shows: every code in the sources has a section in both languages and every
//! section is of such a code. The examples are on the English page and are checked there; the
//! Chinese page links to them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;
use throng_base::{Diagnostic, Severity, Source};
use throng_metrics::Cause;

use super::compile_set;
use crate::curl;

const ENGLISH: &str = "docs/codes.md";
const CHINESE: &str = "docs/zh/codes.md";

/// A section is read at a terminal: it should fit on one screen.
const SECTION_LINES_MAX: usize = 40;
const LINE_COLUMNS_MAX: usize = 100;
/// `throng explain` lists the first sentence of each section beside its code.
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

fn sections(file: &str) -> Vec<Section> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let section = |part: &str| {
        let (code, text) = part.split_once('\n').unwrap();
        let fenced = text.split("\n```").skip(1).step_by(2);
        let examples = fenced.map(|block| {
            let (kind, text) = block.split_once('\n').unwrap();
            let first = text.lines().next().unwrap();
            assert!(["# wrong", "# right"].contains(&first), "{file}: {code} begins with {first}");
            Example { is_wrong: first == "# wrong", kind: kind.into(), text: text.into() }
        });
        Section { code: code.into(), examples: examples.collect(), text: text.into() }
    };
    text.split("\n## ").skip(1).map(section).collect()
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

/// Every code in the sources: the first argument of one of these calls, or a literal beside its
/// message.
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
    for file in [ENGLISH, CHINESE] {
        let codes: Vec<String> = sections(file).into_iter().map(|section| section.code).collect();
        let mut sorted = codes.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(codes, sorted, "{file} is not sorted");
        let explained: BTreeSet<String> = codes.into_iter().collect();
        let missing: Vec<_> = said.difference(&explained).collect();
        let unsaid: Vec<_> = explained.difference(&said).collect();
        assert!(missing.is_empty(), "{file} lacks {missing:?}");
        assert!(unsaid.is_empty(), "{file} explains unused codes: {unsaid:?}");
    }
}

#[test]
fn sections_are_short_and_begin_with_one_sentence() {
    let all = |file| sections(file).into_iter().map(move |section| (file, section));
    for (file, section) in all(ENGLISH).chain(all(CHINESE)) {
        let lines: Vec<&str> = section.text.trim().lines().collect();
        assert!(lines.len() <= SECTION_LINES_MAX, "{file}: {} is too long", section.code);
        for line in &lines {
            let is_example = section.examples.iter().any(|example| example.text.contains(line));
            assert!(columns(line) <= LINE_COLUMNS_MAX || is_example, "{file}: {line}");
        }
        let text = format!("{}\n", section.text.trim());
        let end = [". ", ".\n", "。"].iter().filter_map(|stop| text.find(stop)).min().unwrap();
        let brief = &text[..end];
        assert!(!brief.contains('\n') && columns(brief) < BRIEF_COLUMNS_MAX, "{file}: {brief}");
    }
}

/// Wide characters take two columns.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if ('\u{1100}'..='\u{ffe6}').contains(&c) { 2 } else { 1 }).sum()
}

/// Whether an example compiles, and its diagnostics.
fn outcome(example: &Example) -> (bool, Vec<Diagnostic>) {
    let source = Source::new("example", example.text.as_str());
    // Only protocol files have a packet.
    let is_protocol = example.text.lines().any(|line| line.starts_with("packet:"));
    match example.kind.as_str() {
        "yaml" if is_protocol => {
            let diagnostics = crate::protocol::tests::told(&example.text);
            (diagnostics.iter().all(|one| one.severity != Severity::Error), diagnostics)
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

/// Command lines of `throng` are run by the end-to-end tests, not here.
fn is_checked_here(example: &Example) -> bool {
    example.kind == "yaml" || example.text.lines().any(|line| line.starts_with("curl"))
}

#[test]
fn wrong_examples_have_their_code_and_right_ones_none() {
    let mut problems = Vec::new();
    for section in sections(ENGLISH) {
        let code = &section.code;
        for example in &section.examples {
            assert!(matches!(example.kind.as_str(), "yaml" | "sh"), "{code}");
            if !is_checked_here(example) && code != "curl-empty" {
                continue;
            }
            let (is_good, diagnostics) = outcome(example);
            let codes: BTreeSet<&str> = diagnostics.iter().map(|one| one.code).collect();
            let has_errors = diagnostics.iter().any(|one| one.severity == Severity::Error);
            assert_eq!(is_good, !has_errors);
            let is_as_marked = match example.is_wrong {
                true => codes.len() == 1 && codes.contains(code.as_str()),
                false => codes.is_empty(),
            };
            if !is_as_marked {
                problems.push(format!("{code}: {codes:?}\n{}", example.text));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_chinese_page_links_to_the_examples_in_order() {
    for (english, chinese) in sections(ENGLISH).iter().zip(&sections(CHINESE)) {
        let code = &english.code;
        let links = english.examples.iter().map(|example| {
            let word = if example.is_wrong { "错误示例" } else { "正确示例" };
            format!("[{word}](../codes.md#{code})")
        });
        let found = chinese.text.lines().filter(|line| line.contains("](../codes.md#"));
        assert_eq!(found.collect::<Vec<_>>(), links.collect::<Vec<_>>(), "{code}");
        assert!(chinese.examples.is_empty(), "{code} keeps an example twice");
        assert!(chinese.text.chars().any(|c| c >= '\u{4e00}'), "{code} is not Chinese");
    }
}

#[test]
fn codes_of_the_language_have_a_wrong_example() {
    let shown: String = super::markdown_files().into_iter().map(|(_, text)| text).collect();
    for section in sections(ENGLISH) {
        let code = &section.code;
        let is_of_language = shown.contains(&format!("[{code}]: "));
        let has_wrong = section.examples.iter().any(|example| example.is_wrong);
        // An example with more than 200,000 steps is too long.
        let is_exempt = code == "too-many";
        assert!(!is_of_language || is_exempt || has_wrong, "{code}");
    }
}
