//! The documentation of the language: each YAML block compiles, the reference matches the tables in
//! the code, and links on all pages are valid.
//!
//! A `yaml` block is a whole scenario without warnings; `yaml steps`, `yaml steps ws` and `yaml
//! steps tcp` are steps of a session; `yaml fragment` contains keys of a scenario. A block whose
//! first line is `# NAME.yaml` is a file that other blocks can include. `THRONG_WRITE_TESTS=1`
//! rewrites the reference.

use std::path::{Path, PathBuf};

use throng_base::{Diagnostic, Source};
use throng_expression::FUNCTIONS;
use throng_metrics::{Cause, Counter, Interval};
use throng_program::Program;

use crate::keys::{self, KeyDoc, MapKind, Shape};
use crate::protocol::keys::PROTOCOL_KINDS;
use crate::{CompileOptions, RunOptions, compile};

/// In both languages.
const GUIDES: [&str; 2] = ["docs/scenario.md", "docs/zh/scenario.md"];
const GRPC: [&str; 2] = ["docs/grpc.md", "docs/zh/grpc.md"];
const MQTT: [&str; 2] = ["docs/mqtt.md", "docs/zh/mqtt.md"];
const REDIS: [&str; 2] = ["docs/redis.md", "docs/zh/redis.md"];
const SQL: [&str; 2] = ["docs/sql.md", "docs/zh/sql.md"];
const REFERENCE: &str = "docs/reference.md";

/// Pages with scenarios, and the minimum number of blocks of each.
const PAGES: [(&str, usize); 15] = [
    (GUIDES[0], 25),
    (GUIDES[1], 25),
    ("docs/connections.md", 5),
    ("docs/load.md", 3),
    ("docs/delivery.md", 2),
    ("docs/language.md", 8),
    ("README.md", 1),
    (GRPC[0], 3),
    (GRPC[1], 3),
    (MQTT[0], 4),
    (MQTT[1], 4),
    (REDIS[0], 2),
    (REDIS[1], 2),
    (SQL[0], 2),
    (SQL[1], 2),
];

const GENERATED: &str =
    "<!-- generated: THRONG_WRITE_TESTS=1 cargo test -p throng-scenario docs -->";
const GENERATED_END: &str = "<!-- end of the generated part -->";

struct Block {
    line: usize,
    /// The text after the backticks.
    kind: String,
    text: String,
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(path(file)).unwrap()
}

/// The fenced blocks of a file whose kind begins with `yaml`.
fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let inside: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        if kind.split(' ').next() == Some("yaml") {
            let text = inside.join("\n") + "\n";
            blocks.push(Block { line: at + 1, kind: kind.into(), text });
        }
    }
    blocks
}

/// A whole scenario around steps, with everything that they may use.
fn around_steps(steps: &str, target: &str) -> String {
    // A loop that does nothing is a mistake, so the scenario ends with a step.
    let (connect, end) = match target.starts_with("http") {
        true => ("", "      - http: GET /\n"),
        false => ("      - connect\n", ""),
    };
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "target: {target}\nsessions:\n  user:\n    before:\n{connect}      - set: \
         {{total: 0}}\n    steps:\n{steps}{end}load: [{{users: 10, for: 1h}}]\n"
    )
}

/// Adds required keys that a fragment lacks.
fn around_fragment(text: &str) -> String {
    let sessions = "sessions: {user: {steps: [{transaction: buy, steps: [{http: POST /buy, name: \
                    login}, {think: 1s}]}]}}\n";
    let load = "load: [{name: warm-up, users: 10, for: 10s, measured: false}, \
                {name: steady, for: 5m}]\n";
    let needed =
        [("target:", "target: http://127.0.0.1:8080\n"), ("sessions:", sessions), ("load:", load)];
    let mut whole = text.to_string();
    for (key, addition) in needed {
        if !text.lines().any(|line| line.starts_with(key)) {
            whole.push_str(addition);
        }
    }
    whole
}

fn compile_block(
    block: &Block,
    all: &[Block],
) -> Result<(Program, Vec<Diagnostic>), Vec<Diagnostic>> {
    let text = match block.kind.as_str() {
        "yaml" => block.text.clone(),
        "yaml steps" => around_steps(&block.text, "http://127.0.0.1:8080"),
        "yaml steps ws" => around_steps(&block.text, "ws://127.0.0.1:8089"),
        "yaml steps tcp" => around_steps(&block.text, "tcp://127.0.0.1:9000"),
        "yaml fragment" => around_fragment(&block.text),
        other => panic!("line {}: `{other}` is no kind of block", block.line),
    };
    let read_file = |path: &Path, bytes_max: usize| {
        let head = format!("# {}\n", path.file_name().unwrap_or_default().to_string_lossy());
        match all.iter().find(|block| block.text.starts_with(&head)) {
            Some(block) => Ok(block.text.clone().into_bytes()),
            None => super::memory_file(path, bytes_max).or_else(|error| example(path).ok_or(error)),
        }
    };
    let options = CompileOptions {
        set: Vec::new(),
        // Rows of `data` are read from there.
        base: "tests-md/files".into(),
        read_file: &read_file,
        env: &super::memory_env,
        run: RunOptions::default(),
    };
    compile(&Source::new("block.yaml", text), &options)
}

/// The file of this name among the examples.
fn example(path: &Path) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    std::fs::read(folder.join(path.file_name()?)).ok()
}

#[test]
fn every_block_of_the_documentation_compiles() {
    let mut wrong = String::new();
    for (file, at_least) in PAGES {
        let blocks = blocks(&read(file));
        assert!(blocks.len() >= at_least, "{file} has {} blocks", blocks.len());
        for block in &blocks {
            let told = match compile_block(block, &blocks) {
                // A fragment may declare names that only the rest of its scenario uses.
                Ok((_, warnings)) if block.kind == "yaml" => warnings,
                Ok(_) => Vec::new(),
                Err(errors) => errors,
            };
            if !told.is_empty() {
                wrong += &format!("{file}:{}\n{}\n", block.line, super::render(&told));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A block without comments at line ends.
fn without_remarks(block: &Block) -> (String, String) {
    let line = |line: &str| line.split(" #").next().unwrap_or(line).trim_end().to_string();
    let lines: Vec<String> = block.text.lines().map(line).collect();
    (block.kind.clone(), lines.join("\n"))
}

#[test]
fn both_languages_show_the_same_blocks() {
    for files in [GUIDES, GRPC, MQTT] {
        let [english, chinese] = files.map(|file| blocks(&read(file)));
        for (one, other) in english.iter().zip(&chinese) {
            let at = format!("{files:?}, lines {} and {}", one.line, other.line);
            assert_eq!(without_remarks(one), without_remarks(other), "{at}");
        }
        assert_eq!(english.len(), chinese.len(), "{files:?}");
    }
}

#[test]
fn the_reference_matches_the_code() {
    let text = read(REFERENCE);
    let (before, rest) = text.split_once(GENERATED).expect("where the reference begins");
    let (_, after) = rest.split_once(GENERATED_END).expect("where the reference ends");
    let right = format!("{before}{GENERATED}\n\n{}{GENERATED_END}{after}", reference());
    if right == text {
        return;
    }
    if std::env::var_os("THRONG_WRITE_TESTS").is_some() {
        std::fs::write(path(REFERENCE), &right).unwrap();
        return;
    }
    let differs = right.lines().zip(text.lines()).find(|(a, b)| a != b);
    panic!("{REFERENCE} is not current, write it anew with THRONG_WRITE_TESTS=1: {differs:?}");
}

/// All pages: the README and those in `docs`.
fn pages() -> Vec<String> {
    let (mut pages, mut folders) = (vec!["README.md".to_string()], vec!["docs".to_string()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(path(&folder)).unwrap() {
            let name = format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy());
            match name.ends_with(".md") {
                true => pages.push(name),
                false if path(&name).is_dir() => folders.push(name),
                false => {}
            }
        }
    }
    pages.sort();
    pages
}

/// The lines outside of fenced blocks.
fn prose(markdown: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    markdown.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fence && !is_fenced
    })
}

/// The link targets of a page within the project.
fn links(markdown: &str) -> Vec<String> {
    let lines: Vec<&str> = prose(markdown).collect();
    let mut links = Vec::new();
    for paragraph in lines.join("\n").split("\n\n") {
        // Text in backticks is code.
        let text: String = paragraph.split('`').step_by(2).collect();
        let targets = text.split("](").skip(1).filter_map(|part| part.split_once(')'));
        let within = targets.map(|(target, _)| target).filter(|target| !target.contains("://"));
        links.extend(within.map(str::to_string));
    }
    links
}

/// Why a link of a page is invalid.
fn mistake(page: &str, link: &str) -> Option<String> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => path(page),
        _ => path(page).parent()?.join(file),
    };
    if !target.exists() {
        return Some(format!("there is no file `{file}`"));
    }
    if anchor.is_empty() {
        return None;
    }
    let text = std::fs::read_to_string(target).unwrap_or_default();
    let headings = prose(&text).filter(|line| line.starts_with('#'));
    match headings.filter(|line| slug(line) == anchor).count() {
        1 => None,
        count => Some(format!("{count} headings are `#{anchor}`")),
    }
}

#[test]
fn links_of_all_pages_are_valid() {
    let (pages, mut wrong) = (pages(), String::new());
    assert!(pages.len() > 30, "{} pages", pages.len());
    for page in pages {
        for link in links(&read(&page)) {
            if let Some(mistake) = mistake(&page, &link) {
                wrong += &format!("{page}: ({link}): {mistake}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn links_are_found_outside_of_code() {
    let text = "# Head\n[a](b.md) `[c](d)` ![e](f.png#g)\n```md\n# No\n[h](i)\n```\n\n\
                [j](https://k) and\n[l `m`](#head)\n";
    assert_eq!(links(text), ["b.md", "f.png#g", "#head"]);
    assert_eq!(prose(text).filter(|line| line.starts_with('#')).count(), 1);
}

/// The anchor of a heading: lowercase, with hyphens for spaces and without other signs.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn title(kind: &MapKind) -> String {
    let what = kind.what.english();
    let mut letters = what.chars();
    let first = letters.next().unwrap();
    first.to_uppercase().chain(letters).collect()
}

/// The kinds of maps in this shape, each with its place within the value.
fn kinds_in(shape: &Shape) -> Vec<(String, &'static MapKind)> {
    let within = |inner, place: &str| {
        let kinds = kinds_in(inner).into_iter();
        kinds.map(|(rest, kind)| (format!("{place}{rest}"), kind)).collect()
    };
    match shape {
        Shape::Kind(kind) => vec![(String::new(), kind)],
        Shape::List(inner) => within(inner, "[]"),
        Shape::Map(inner) => within(inner, ".NAME"),
        Shape::OneOf(shapes) => shapes.iter().flat_map(kinds_in).collect(),
        _ => Vec::new(),
    }
}

/// A short kind that only one key uses: its keys are listed below that key.
fn is_listed_within(kind: &MapKind) -> bool {
    let all = keys::MAP_KINDS.iter().chain(PROTOCOL_KINDS);
    let keys = all.flat_map(|(_, kind)| kind.keys);
    let kinds = keys.flat_map(|key| kinds_in(&key.shape));
    kind.keys.len() <= 8 && kinds.filter(|(_, one)| std::ptr::eq(*one, kind)).count() == 1
}

/// A kind with few keys that several keys use: such kinds share a table.
fn is_short(kind: &MapKind) -> bool {
    kind.keys.len() <= 6 && !is_listed_within(kind)
}

fn link(kind: &MapKind) -> String {
    let what = kind.what.english();
    match is_listed_within(kind) {
        true => "map".into(),
        false if is_short(kind) => format!("[{what}](#short-maps)"),
        false => format!("[{what}](#{})", slug(&what)),
    }
}

fn reference() -> String {
    let is_verb = |kind: &MapKind| keys::VERBS.iter().any(|(_, verb)| std::ptr::eq(*verb, kind));
    let (mut out, mut short) = (steps(), String::new());
    for (name, kind) in keys::MAP_KINDS {
        // An included file has a subset of the keys of a scenario.
        match is_verb(kind) || *name == "INCLUDED" {
            true => {}
            false if is_short(kind) => {
                let keys: String = kind.keys.iter().map(|key| rows(key, "| ", "")).collect();
                short += &keys.replacen("| |", &format!("| {} |", kind.what.english()), 1);
            }
            false => out += &table(kind),
        }
    }
    let head = "## Short maps\n\n| map | key | value | meaning |\n| --- | --- | --- | --- |\n";
    format!("{out}{head}{short}\n{}{}{}", functions(), counters(), causes())
}

/// The keys of a kind of map, unless they are listed below the key that uses it.
pub(crate) fn table(kind: &MapKind) -> String {
    if is_listed_within(kind) {
        return String::new();
    }
    let rows = kind.keys.iter().map(|key| rows(key, "", "")).collect::<String>();
    let head = "| key | value | meaning |\n| --- | --- | --- |";
    format!("## {}\n\n{head}\n{}\n", title(kind), joined(&rows))
}

/// Rows of a table; rows with the same value and meaning are merged.
fn joined(rows: &str) -> String {
    let mut out: Vec<(String, &str)> = Vec::new();
    for (key, rest) in rows.lines().filter_map(|row| row.split_once("` | ")) {
        match out.iter_mut().find(|(_, known)| *known == rest) {
            Some((keys, _)) => *keys += &key.replacen("| ", "`, ", 1),
            None => out.push((key.into(), rest)),
        }
    }
    out.iter().map(|(keys, rest)| format!("{keys}` | {rest}\n")).collect()
}

/// All verbs with their keys. Keys that several verbs share are listed once.
fn steps() -> String {
    let row = |key: &KeyDoc| rows(key, "", "");
    let sharing = |key: &KeyDoc| -> Vec<&str> {
        let shares = |kind: &MapKind| kind.keys.iter().any(|one| row(one) == row(key));
        keys::VERBS.iter().filter(|(_, kind)| shares(kind)).map(|(verb, _)| *verb).collect()
    };
    let is_shared = |key: &KeyDoc| sharing(key).len() >= 2;
    let (mut verbs, mut shared) = (String::new(), Vec::new());
    for (verb, kind) in keys::VERBS {
        let own = kind.find(verb).expect("the verb is a key");
        let others = kind.keys.iter().filter(|key| key.name != *verb);
        let own = rows(own, "| ", "");
        verbs += &own.replacen(&format!("| | `{verb}` |"), &format!("| `{verb}` | |"), 1);
        for key in others {
            let shared_row = format!("| {} {}", words(&sharing(key)), row(key));
            match is_shared(key) {
                false => verbs += &rows(key, "| ", ""),
                true if shared.contains(&shared_row) => {}
                true => shared.push(shared_row),
            }
        }
    }
    format!(
        "## Verbs\n\n| step | key | value | meaning |\n| --- | --- | --- | --- |\n{verbs}{}\n\
         These steps can be written without a value: {}.\n\n",
        shared.concat(),
        words(keys::BARE_VERBS)
    )
}

fn words(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The row of a key, followed by those of the keys in its value.
fn rows(key: &KeyDoc, before: &str, within: &str) -> String {
    let KeyDoc { name, doc, shape, later } = key;
    let (value, doc) = match later {
        Some(instead) => (
            "–".to_string(),
            format!("{} *Not in this version:* {}.", cell(doc), cell(&instead.english())),
        ),
        None => (cell(&value(shape)), cell(doc)),
    };
    let mut out = format!("{before}| `{within}{name}` | {value} | {doc} |\n");
    for (place, kind) in kinds_in(shape).into_iter().filter(|(_, kind)| is_listed_within(kind)) {
        let within = format!("{within}{name}{place}.");
        kind.keys.iter().for_each(|key| out += &rows(key, before, &within));
    }
    out
}

/// Suffixes of function variants, and their descriptions.
const VARIANTS: [(&str, &str); 2] = [("_base64", ", or in base64"), ("_bytes", ", or as bytes")];

/// Functions; aliases and variants share the row of the function.
fn functions() -> String {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for function in FUNCTIONS {
        let signature = function.signature();
        let name = signature.split('(').next().unwrap_or_default().to_string();
        let (call, doc) = (format!("`{}`", cell(&signature)), cell(&function.doc.english()));
        let variant =
            VARIANTS.iter().find_map(|(end, says)| Some((name.strip_suffix(*end)?, *says)));
        let other = doc.strip_prefix("the same as ").or(variant.map(|(of, _)| of));
        match rows.iter_mut().find(|row| other == Some(row[0].as_str())) {
            Some([_, calls, result, _]) => {
                *calls += &format!(", {call}");
                *result += variant.map_or("", |(_, says)| says);
            }
            None => rows.push([name, call, doc, cell(function.example)]),
        }
    }
    let row = |[_, calls, result, example]: &[String; 4]| {
        format!("| {calls} | {result} | `{example}` |\n")
    };
    let rows: String = rows.iter().map(row).collect();
    format!("## Functions\n\n| call | result | example |\n| --- | --- | --- |\n{rows}\n")
}

/// The counters that thresholds can use.
fn counters() -> String {
    let has_share = |counter: &&Counter| counter.whole(&Interval::default()).is_some();
    let (with, without): (Vec<_>, Vec<_>) = Counter::ALL.iter().partition(has_share);
    let list = |counters: Vec<&Counter>| {
        words(&counters.iter().map(|counter| counter.word()).collect::<Vec<_>>())
    };
    format!(
        "## Counters\n\nA threshold can use a counter as a total, per second (`rate`) or as a \
         [share](load.md#counters-and-gauges).\n\n- with a share (`%`): {}\n- without \
         a share: {}\n\n",
        list(with),
        list(without)
    )
}

/// The causes of failures, as reports and `retry` name them, grouped by blame.
fn causes() -> String {
    let mut blames: Vec<(String, Vec<String>)> = Vec::new();
    for cause in Cause::ALL {
        let (word, blame) = (format!("`{}`", cause.word()), cause.blame().text().english());
        match blames.iter_mut().find(|(known, _)| *known == blame) {
            Some((_, words)) => words.push(word),
            None => blames.push((blame, vec![word])),
        }
    }
    let row = |(blame, words): &(String, Vec<String>)| format!("- {blame}: {}\n", words.join(", "));
    let rows: String = blames.iter().map(row).collect();
    format!(
        "## Causes of failure\n\n[Codes](codes.md) explains each cause. Reports assign the blame \
         as follows:\n\n{rows}\n"
    )
}

/// Escapes a text for a table cell: `|` would end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The value of a key; a list or map with its own section is described in a sentence.
fn value(shape: &Shape) -> String {
    match shape {
        Shape::List(Shape::Kind(kind)) if !is_listed_within(kind) => {
            format!("list; each item is {}", link(kind))
        }
        Shape::Map(Shape::Kind(kind)) if !is_listed_within(kind) => {
            format!("map; each value is {}", link(kind))
        }
        _ => describe(shape),
    }
}

fn describe(shape: &Shape) -> String {
    match shape {
        Shape::Text => "text".into(),
        Shape::Whole => "whole number".into(),
        Shape::Count => "count".into(),
        Shape::CountRange => "count or range".into(),
        Shape::Duration => "duration".into(),
        Shape::DurationRange => "duration or range".into(),
        Shape::Size => "size".into(),
        Shape::Rate => "rate".into(),
        Shape::Share => "share".into(),
        Shape::Bool => "`true` or `false`".into(),
        Shape::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        Shape::Expression => "expression".into(),
        Shape::Nothing => "null".into(),
        Shape::Steps => "[steps](#verbs)".into(),
        Shape::List(inner) => format!("list of {}", of(inner)),
        Shape::Map(inner) => format!("map of names to {}", of(inner)),
        Shape::Kind(kind) => link(kind),
        Shape::OneOf(shapes) => {
            let shapes: Vec<String> = shapes.iter().map(describe).collect();
            match &shapes[..] {
                [first @ .., last] if first.len() > 1 => format!("{}, or {last}", first.join(", ")),
                _ => shapes.join(" or "),
            }
        }
        Shape::Anything => "anything".into(),
    }
}

/// The shape after "of", in brackets if it has alternatives.
fn of(shape: &Shape) -> String {
    match shape {
        Shape::OneOf(_) => format!("({})", describe(shape)),
        _ => describe(shape),
    }
}
