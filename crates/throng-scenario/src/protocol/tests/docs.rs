//! docs/protocol.md: each block compiles, the reference matches the tables in the code, and both
//! languages show the same blocks.
//!
//! A block of the kind `yaml` is a whole protocol file; `yaml body` are the fields of a message;
//! `yaml fragment` has no packet; `yaml steps` are run by end-to-end tests.
//! `THRONG_WRITE_TESTS=1` writes the reference anew.

use std::path::{Path, PathBuf};

use super::told;
use crate::protocol::keys::PROTOCOL_KINDS;
use crate::tests::docs::table;

const FILES: [&str; 2] = ["docs/protocol.md", "docs/zh/protocol.md"];

const GENERATED: &str =
    "<!-- generated: THRONG_WRITE_TESTS=1 cargo test -p throng-scenario docs -->";
const GENERATED_END: &str = "<!-- end of the generated part -->";

const PACKET: &str = "\
packet:
  - {id: length, type: u32, counts: body}
  - {id: kind, type: u8, selects: message}
  - {id: body}
";

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

/// The kinds and texts of the blocks.
fn blocks(file: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path(file)).unwrap();
    let fenced = text.split("\n```").skip(1).step_by(2);
    let blocks = fenced.map(|block| block.split_once('\n').unwrap());
    blocks.map(|(kind, text)| (kind.to_string(), format!("{text}\n"))).collect()
}

#[test]
fn every_block_of_the_documentation_compiles() {
    let mut wrong = String::new();
    for file in FILES {
        let blocks = blocks(file);
        assert!(blocks.len() > 8, "{file} has {} blocks", blocks.len());
        for (kind, text) in blocks {
            let whole = match kind.as_str() {
                "yaml" => text,
                "yaml fragment" => format!("{PACKET}{text}"),
                "yaml body" => {
                    let lines: String =
                        text.lines().map(|line| format!("      {line}\n")).collect();
                    format!("{PACKET}messages:\n  one:\n    kind: 1\n    body:\n{lines}")
                }
                "sh" | "text" | "yaml steps" => continue,
                other => panic!("{file}: `{other}` is no kind of block"),
            };
            for one in told(&whole) {
                wrong += &format!("{file}\n{}\n", one.render(false));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn both_languages_show_the_same_blocks() {
    let plain = |(kind, text): (String, String)| {
        let line = |line: &str| line.split(" #").next().unwrap_or(line).trim_end().to_string();
        let kept = text.lines().filter(|line| !line.starts_with('#'));
        (kind, kept.map(line).collect::<Vec<_>>())
    };
    let [english, chinese] = FILES.map(|file| blocks(file).into_iter().map(plain));
    assert_eq!(english.collect::<Vec<_>>(), chinese.collect::<Vec<_>>());
}

#[test]
fn the_reference_matches_the_code() {
    let file = FILES[0];
    let text = std::fs::read_to_string(path(file)).unwrap();
    let (before, rest) = text.split_once(GENERATED).expect("where the reference begins");
    let (_, after) = rest.split_once(GENERATED_END).expect("where the reference ends");
    let tables: String = PROTOCOL_KINDS.iter().map(|(_, kind)| table(kind)).collect();
    let tables = tables.replace("## ", "### ");
    let right = format!("{before}{GENERATED}\n\n{tables}{GENERATED_END}{after}");
    if right == text {
        return;
    }
    if std::env::var_os("THRONG_WRITE_TESTS").is_some() {
        std::fs::write(path(file), &right).unwrap();
        return;
    }
    let differs = right.lines().zip(text.lines()).find(|(a, b)| a != b);
    panic!("{file} is not current, write it anew with THRONG_WRITE_TESTS=1: {differs:?}");
}
