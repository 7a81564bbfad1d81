//! Which crate may use which: the block in ARCHITECTURE.md has a line for each crate, with the
//! crates of the workspace that it uses.

use std::collections::BTreeMap;

use super::Finding;
use crate::workspace::Package;

pub(super) const FILE: &str = "ARCHITECTURE.md";
const FENCE: &str = "```layers";

/// Compares the lines of the block with the normal dependencies among the crates of the workspace.
pub(super) fn check(document: &str, packages: &[Package]) -> Vec<Finding> {
    let mut expected: BTreeMap<&str, String> =
        packages.iter().map(|package| (package.name.as_str(), line_of(package))).collect();
    let mut findings = Vec::new();
    let lines = document.lines().enumerate().skip_while(|(_, line)| *line != FENCE).skip(1);
    for (index, line) in lines.take_while(|(_, line)| *line != "```") {
        let name = line.split(':').next().unwrap_or_default();
        let (what, cure) = match expected.remove(name) {
            Some(own) if own == line => continue,
            Some(own) => (
                format!("the manifest of `{name}` says: `{own}`"),
                format!("change the dependencies, or argue the edge in {FILE}"),
            ),
            None => (format!("there is no crate `{name}`"), "remove the line".to_string()),
        };
        findings.push(Finding::new(FILE, index + 1, what, cure));
    }
    let missing = expected.values().map(|line| {
        Finding::new(FILE, 1, format!("the block {FENCE} has no line `{line}`"), "add it")
    });
    findings.extend(missing);
    findings
}

fn line_of(package: &Package) -> String {
    let inside = package.dependencies.iter().filter(|it| it.normal && !it.external);
    let mut names: Vec<&str> = inside.map(|dependency| dependency.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    format!("{}: {}", package.name, names.join(" ")).trim_end().to_string()
}
