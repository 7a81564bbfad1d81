//! `cargo xtask tidy`: the rules of this project that no compiler checks. Rules are pure functions
//! from text to findings; only this file reads the disk.

mod catalogue;
mod circles;
mod dependencies;
mod layers;
mod methods;
mod orphans;
mod source;
mod sources;
mod systems;
#[cfg(test)]
mod tests;
mod tokens;
mod unsafety;
mod words;

use std::fmt;
use std::fs;

use crate::voice;
use crate::workspace::{self, Workspace};
use source::Source;

/// A broken rule: where, what, and how to fix it.
#[derive(Debug, PartialEq)]
struct Finding {
    file: String,
    line: usize,
    what: String,
    cure: String,
}

impl Finding {
    fn new(file: &str, line: usize, what: impl Into<String>, cure: impl Into<String>) -> Finding {
        Finding { file: file.to_string(), line, what: what.into(), cure: cure.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n  cure: {}", self.file, self.line, self.what, self.cure)
    }
}

/// Checks every rule on every file, and prints all findings.
pub(crate) fn run() -> Result<(), String> {
    let workspace = workspace::load()?;
    let files = workspace::files(&workspace.root)?;
    let findings = check(&workspace, &files);
    if findings.is_empty() {
        crate::say(&format!("tidy: {} files, nothing found", files.len()));
        return Ok(());
    }
    for finding in &findings {
        crate::say(&finding.to_string());
    }
    Err(format!("tidy: {} findings in {} files", findings.len(), files.len()))
}

fn check(workspace: &Workspace, files: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    for file in files {
        findings.extend(sources::check_name(file));
        // A file that is no text, such as a picture, has nothing to be tidied.
        let Ok(text) = fs::read_to_string(workspace.root.join(file)) else { continue };
        findings.extend(sources::check_machine_paths(file, &text));
        if file.ends_with(".rs") {
            sources.push(Source::new(file, text));
        }
    }
    for source in &sources {
        findings.extend(sources::check_rust(source));
        findings.extend(systems::check(source));
    }
    let read = |file: &str| fs::read_to_string(workspace.root.join(file)).unwrap_or_default();
    let packages = &workspace.packages;
    findings.extend(layers::check(&read(layers::FILE), packages));
    findings.extend(dependencies::check_lock(&read("Cargo.lock")));
    let declared = dependencies::declared(&read("Cargo.toml"), packages);
    findings.extend(dependencies::check_reasons(&read(dependencies::FILE), &declared));
    findings.extend(catalogue::check(&read(catalogue::FILE), &sources));
    findings.extend(circles::check(&sources));
    findings.extend(orphans::check(&sources));
    findings.extend(unsafety::check(&read(unsafety::FILE), &sources));
    findings.extend(methods::check(&sources));
    findings.extend(words::check(&read(words::FILE), &voice::all(&workspace.root, files)));
    findings
}
