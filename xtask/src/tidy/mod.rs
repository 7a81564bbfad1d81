//! `cargo xtask tidy`: the rules of the house that no compiler checks. Rules are pure functions
//! from text to findings; only this file reads the disk.

mod catalogue;
mod circles;
mod dependencies;
mod layers;
mod methods;
mod orphans;
mod sources;
mod systems;
#[cfg(test)]
mod tests;
mod tokens;
mod unsafety;

use std::fmt;
use std::fs;
use std::path::Path;

use crate::voice::{self, words};
use crate::workspace::{self, Workspace};

/// A rule broken: where, what, and what cures it.
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

/// Checks every rule on every file; all findings are told, not only the first.
pub(crate) fn run() -> Result<(), String> {
    let workspace = workspace::load()?;
    let files = workspace::files(&workspace.root)?;
    let mut findings = check_files(&workspace.root, &files);
    findings.extend(check_workspace(&workspace));
    findings.extend(check_catalogue(&workspace.root, &files));
    findings.extend(check_modules(&workspace.root, &files));
    findings.extend(check_words(&workspace.root, &files));
    if findings.is_empty() {
        crate::say(&format!("tidy: {} files, nothing found", files.len()));
        return Ok(());
    }
    for finding in &findings {
        crate::say(&finding.to_string());
    }
    Err(format!("tidy: {} findings in {} files", findings.len(), files.len()))
}

fn check_files(root: &Path, files: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(sources::check_name(file));
        // A file that is no text, such as a picture, has nothing to be tidied.
        let Ok(text) = fs::read_to_string(root.join(file)) else { continue };
        findings.extend(sources::check_machine_paths(file, &text));
        if file.ends_with(".rs") {
            findings.extend(sources::check_rust(file, &text));
            findings.extend(systems::check(file, &text));
        }
    }
    findings
}

fn check_workspace(workspace: &Workspace) -> Vec<Finding> {
    let read = |file: &str| fs::read_to_string(workspace.root.join(file)).unwrap_or_default();
    let packages = &workspace.packages;
    let mut findings = layers::check(&read(layers::FILE), packages, &read);
    findings.extend(dependencies::check_lock(&read("Cargo.lock")));
    let declared = dependencies::declared(&read("Cargo.toml"), packages);
    findings.extend(dependencies::check_reasons(&read(dependencies::FILE), &declared));
    findings
}

fn check_catalogue(root: &Path, files: &[String]) -> Vec<Finding> {
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let covered = files.iter().filter(|file| catalogue::covers(file));
    let sources: Vec<(String, String)> = covered.map(|file| (file.clone(), read(file))).collect();
    catalogue::check(&read(catalogue::FILE), &sources)
}

fn check_words(root: &Path, files: &[String]) -> Vec<Finding> {
    let page = fs::read_to_string(root.join(words::FILE)).unwrap_or_default();
    let mistakes = words::check(&page, &voice::all(root, files));
    let finding = |one: words::Mistake| Finding::new(&one.file, one.line, one.what, one.instead);
    mistakes.into_iter().map(finding).collect()
}

fn check_modules(root: &Path, files: &[String]) -> Vec<Finding> {
    let read = |file: &String| Some((file.clone(), fs::read_to_string(root.join(file)).ok()?));
    let sources: Vec<(String, String)> =
        files.iter().filter(|file| file.ends_with(".rs")).filter_map(read).collect();
    let mut findings = circles::check(&sources);
    findings.extend(orphans::check(&sources));
    let page = fs::read_to_string(root.join(unsafety::FILE)).unwrap_or_default();
    findings.extend(unsafety::check(&page, &sources));
    let table = fs::read_to_string(root.join(methods::FILE)).unwrap_or_default();
    let (above, notes) = methods::check(&table, &sources);
    notes.iter().for_each(|note| crate::say(note));
    findings.extend(above);
    findings
}
