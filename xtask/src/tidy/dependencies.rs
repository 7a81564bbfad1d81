//! Rules about foreign code: how much of it there may be, and that each crate has a reason.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::workspace::Package;

pub(super) const FILE: &str = "docs/decisions/dependencies.md";
/// Foreign packages only.
const PACKAGES_LOCKED_MAX: usize = 290;

/// Counts the packages of the lock file that come from elsewhere.
pub(super) fn check_lock(lock: &str) -> Vec<Finding> {
    let count = lock.lines().filter(|line| line.starts_with("source = ")).count();
    match count {
        0 => vec![Finding::new("Cargo.lock", 1, "no packages", "commit the lock file")],
        _ if count > PACKAGES_LOCKED_MAX => {
            let what = format!("{count} locked packages of others; at most {PACKAGES_LOCKED_MAX}");
            let cure = "`cargo tree --duplicates` and `cargo tree -e features` show what to drop";
            vec![Finding::new("Cargo.lock", 1, what, cure)]
        }
        _ => Vec::new(),
    }
}

/// Foreign crates and where each is declared.
pub(super) fn declared(root: &str, packages: &[Package]) -> BTreeMap<String, String> {
    let mut declared = BTreeMap::new();
    for (name, line) in workspace_table(root) {
        declared.insert(name, format!("Cargo.toml:{line}"));
    }
    for package in packages {
        for dependency in package.dependencies.iter().filter(|d| d.external) {
            let place = || format!("{}:1", package.manifest);
            declared.entry(dependency.name.clone()).or_insert_with(place);
        }
    }
    declared
}

/// The foreign crates of `[workspace.dependencies]`, with their lines.
fn workspace_table(root: &str) -> Vec<(String, usize)> {
    let mut inside = false;
    let mut found = Vec::new();
    for (index, line) in root.lines().enumerate() {
        if line.starts_with('[') {
            inside = line.trim() == "[workspace.dependencies]";
        } else if let Some((name, value)) = line.split_once('=')
            && inside
            && !value.contains("path =")
        {
            found.push((name.trim().to_string(), index + 1));
        }
    }
    found
}

/// Each foreign crate has a line `` - `name` — why … `` and each such line a crate.
pub(super) fn check_reasons(document: &str, declared: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut reasoned = BTreeSet::new();
    for (index, line) in document.lines().enumerate() {
        let Some(name) = reason_of(line) else { continue };
        if !declared.contains_key(name) {
            let what = format!("no crate uses `{name}`");
            findings.push(Finding::new(FILE, index + 1, what, "remove the line"));
        }
        reasoned.insert(name);
    }
    for (name, place) in declared.iter().filter(|(name, _)| !reasoned.contains(name.as_str())) {
        let (file, line) = place.rsplit_once(':').unwrap_or((place, "1"));
        let what = format!("nobody says why `{name}` is needed");
        let cure = format!("add to {FILE}: - `{name}` — why it is needed");
        findings.push(Finding::new(file, line.parse().unwrap_or(1), what, cure));
    }
    findings
}

fn reason_of(line: &str) -> Option<&str> {
    line.strip_prefix("- `")?.split_once("` — ").map(|(name, _)| name)
}
