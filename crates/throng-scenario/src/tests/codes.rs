//! The pages of `throng explain`: each code in the sources has a section in both languages, and
//! there are no other sections. `wrong.txt` has an example of each code of the language.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use regex::Regex;
use throng_base::{Diagnostic, Source};
use throng_metrics::Cause;

use super::compile_set;

const ENGLISH: &str = "docs/codes.md";
const CHINESE: &str = "docs/zh/codes.md";
/// Mistakes by code: a command line, or an addition to a minimal scenario or protocol.
const EXAMPLES: &str = include_str!("wrong.txt");

const SECTION_LINES_MAX: usize = 6;
const LINE_COLUMNS_MAX: usize = 100;
/// `throng explain` lists the first sentence of each section next to its code.
const BRIEF_COLUMNS_MAX: usize = 80;

#[derive(Debug)]
struct Section {
    code: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sections(file: &str) -> Vec<Section> {
    parts(&std::fs::read_to_string(root().join(file)).unwrap())
}

fn parts(page: &str) -> Vec<Section> {
    let section = |part: &str| {
        let (code, text) = part.trim_end().split_once('\n').unwrap();
        Section { code: code.into(), text: text.into() }
    };
    page.split("\n## ").skip(1).map(section).collect()
}

/// The Rust sources of all crates, without tests.
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

/// All codes in the sources: the first argument of one of these calls, or a literal next to its
/// message.
fn said() -> BTreeSet<String> {
    let names = "error|warning|report|refuse|warn|wrong|fail|whole|mistake|say|new";
    let calls = format!(r#"\b(?:{names})\(\s*"([a-z]+(?:-[a-z0-9]+)*)","#);
    let tuples = r#"\(\s*"([a-z]+(?:-[a-z]+)+)",\s*say!\(\s*"[^"]*",?\s*\),\s*say!"#;
    let patterns = r#"(?:Result<Extractor|Extractor::\w+\)),\s*"([a-z]+-[a-z]+)","#;
    let mut texts = Vec::new();
    sources(&root().join("crates"), &mut texts);
    let mut said = BTreeSet::new();
    for pattern in [&calls, tuples, patterns] {
        let pattern = Regex::new(pattern).unwrap();
        let found = texts.iter().flat_map(|text| pattern.captures_iter(text));
        said.extend(found.map(|found| found[1].to_string()));
    }
    // The causes of failures in reports are explained too.
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
        let lines: Vec<&str> = section.text.lines().collect();
        assert!(lines.len() <= SECTION_LINES_MAX, "{file}: {} is too long", section.code);
        let wide = lines.iter().find(|line| columns(line) > LINE_COLUMNS_MAX);
        assert!(wide.is_none(), "{file}: {wide:?}");
        let text = format!("{}\n", section.text);
        let end = [". ", ".\n", "。"].iter().filter_map(|stop| text.find(stop)).min().unwrap();
        let brief = &text[..end];
        assert!(!brief.contains('\n') && columns(brief) < BRIEF_COLUMNS_MAX, "{file}: {brief}");
    }
}

/// Wide characters take two columns.
fn columns(line: &str) -> usize {
    line.chars().map(|c| if ('\u{1100}'..='\u{ffe6}').contains(&c) { 2 } else { 1 }).sum()
}

/// The framing of packets in an example, unless it declares its own.
const PACKET: &str = "packet: [{id: length, type: u16, counts: body}, {id: body}]\n";
const PACKET_WITH_KIND: &str = "packet: [{id: length, type: u16, counts: body}, \
                                {id: kind, type: u8, selects: message}, {id: body}]\n";

/// Completes an example with what each scenario or protocol requires.
fn whole(example: &str) -> String {
    let has = |key: &str| example.lines().any(|line| line.starts_with(key));
    if has("messages:") {
        let packet = if example.contains("kind:") { PACKET_WITH_KIND } else { PACKET };
        return format!("{example}{}", if has("packet:") { "" } else { packet });
    }
    let (mut session, mut rest, mut is_session) = (String::new(), String::new(), false);
    for line in example.lines() {
        let of_session = ["before:", "steps:", "every:", "on:"];
        if !line.starts_with(' ') {
            is_session = of_session.iter().any(|key| line.starts_with(key));
        }
        match is_session {
            true => session += &format!("    {line}\n"),
            false => rest += &format!("{line}\n"),
        }
    }
    let target = if has("protocol:") { "127.0.0.1:9000" } else { "http://127.0.0.1:8080" };
    let session = if session.is_empty() { "    steps: [{http: GET /}]\n" } else { &session };
    let needed = [
        ("target", format!("target: {target}\n")),
        ("sessions", format!("sessions:\n  user:\n{session}")),
        ("load", "load: [{users: 10, for: 30s}]\n".to_string()),
    ];
    needed.iter().filter(|(key, _)| !has(key)).for_each(|(_, text)| rest += text);
    rest
}

/// The diagnostics of an example. End-to-end tests run the command lines of `throng`.
fn diagnostics(example: &str) -> Option<Vec<Diagnostic>> {
    let errors = match example.split([' ', '=']).next()? {
        "throng" | "THRONG_BUDGET" | "THRONG_TARGETS" => return None,
        _ if example.lines().any(|line| line.starts_with("messages:")) => {
            return Some(crate::protocol::tests::told(&whole(example)));
        }
        _ => {
            compile_set(&Source::new("example", whole(example)), &[]).map(|(_, warnings)| warnings)
        }
    };
    Some(errors.unwrap_or_else(|errors| errors))
}

#[test]
fn examples_have_only_their_own_code() {
    let mut problems = Vec::new();
    for Section { code, text } in parts(EXAMPLES) {
        let Some(found) = diagnostics(&format!("{text}\n")) else { continue };
        let codes: BTreeSet<&str> = found.iter().map(|one| one.code).collect();
        if codes != BTreeSet::from([code.as_str()]) {
            problems.push(format!("{code}: {codes:?}\n{text}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_chinese_page_is_chinese() {
    for Section { code, text } in sections(CHINESE) {
        assert!(text.chars().any(|c| c >= '\u{4e00}'), "{code} is not Chinese");
    }
}

#[test]
fn codes_of_the_language_have_an_example() {
    let shown: String = super::markdown_files().into_iter().map(|(_, text)| text).collect();
    let examples: BTreeSet<String> = parts(EXAMPLES).into_iter().map(|one| one.code).collect();
    for Section { code, .. } in sections(ENGLISH) {
        let is_of_language = shown.contains(&format!("[{code}]: "));
        // Examples of these would be too long; messages about cURL commands show the command.
        let is_exempt =
            ["too-many", "value-too-large"].contains(&code.as_str()) || code.starts_with("curl-");
        assert!(!is_of_language || is_exempt || examples.contains(&code), "{code}");
    }
}
