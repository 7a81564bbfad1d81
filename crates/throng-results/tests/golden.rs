//! Twenty recorded runs of every kind, with their JSON, CSV, Markdown and terminal output.
//! Unintended changes of results are detected here.
//!
//! `UPDATE_EXPECT=1` rewrites the outputs; the message names the first line that differs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use throng_base::Language;
use throng_results::csv::seconds_csv;
use throng_results::markdown::summary_markdown;
use throng_results::terminal::{Style, summary_text};
use throng_results::{Run, Summary, summary_json};

/// A compressed file of `tests/golden`.
#[derive(Serialize, Deserialize)]
struct Golden {
    /// The run directory.
    files: BTreeMap<String, String>,
    #[serde(default)]
    texts: BTreeMap<String, String>,
}

const PACKING_LEVEL: i32 = 19;

#[test]
fn reports_of_recorded_runs_are_unchanged() {
    let paths = golden_files();
    assert!(paths.len() >= 20, "{} records", paths.len());
    for path in paths {
        let packed = fs::read(&path).unwrap();
        let mut golden: Golden =
            serde_json::from_slice(&zstd::decode_all(packed.as_slice()).unwrap()).unwrap();
        let texts = told(&golden.files);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            if golden.texts != texts {
                golden.texts = texts;
                let text = serde_json::to_vec(&golden).unwrap();
                fs::write(&path, zstd::encode_all(text.as_slice(), PACKING_LEVEL).unwrap())
                    .unwrap();
            }
            continue;
        }
        assert_eq!(golden.texts.keys().collect::<Vec<_>>(), texts.keys().collect::<Vec<_>>());
        for (kind, text) in &texts {
            compare(&path, kind, &golden.texts[kind], text);
        }
    }
}

fn golden_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    paths
}

/// All outputs for a run directory.
fn told(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let directory = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file");
    }
    let run = Run::open(directory.path()).expect("a run");
    let mut summary = run.summary().expect("a summary");
    summary.directory = None;
    let mut csv = String::new();
    seconds_csv(&run, |piece| csv += piece).expect("CSV");
    let json = serde_json::to_string_pretty(&summary_json(&summary)).expect("JSON");
    let markdown = summary_markdown(&summary);
    let texts = [
        ("json", json),
        ("csv", csv),
        ("markdown", markdown),
        ("short", terminal(&summary, Language::English, false)),
        ("details", terminal(&summary, Language::English, true)),
        ("details in Chinese", terminal(&summary, Language::Chinese, true)),
    ];
    texts.into_iter().map(|(kind, text)| (kind.to_string(), text)).collect()
}

fn terminal(summary: &Summary, language: Language, details: bool) -> String {
    let style = Style {
        colour: false,
        width: 100,
        language,
        details,
        ascii: false,
        newest: false,
        page: false,
    };
    summary_text(summary, &style)
}

fn compare(path: &Path, kind: &str, wanted: &str, text: &str) {
    let name = path.file_name().expect("text").display();
    for (number, (wanted, line)) in wanted.lines().zip(text.lines()).enumerate() {
        assert_eq!(line, wanted, "{name}: line {} of {kind}", number + 1);
    }
    assert!(text == wanted, "{name}: the {kind} is longer or shorter than it was");
}
