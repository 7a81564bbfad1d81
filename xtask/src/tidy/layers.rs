//! Which crate may use which: the block in ARCHITECTURE.md against what cargo knows.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use crate::workspace::Package;

pub(super) const FILE: &str = "ARCHITECTURE.md";
const FENCE: &str = "```layers";

/// A crate's line in the block: where it stands and what it allows.
#[derive(Debug, PartialEq)]
pub(super) struct Layer {
    line: usize,
    allowed: BTreeSet<String>,
}

/// Compares the allowed edges with the normal dependencies among the crates of the workspace.
/// `read` gives a manifest's text, to name the line of an edge.
pub(super) fn check(
    document: &str,
    packages: &[Package],
    read: &dyn Fn(&str) -> String,
) -> Vec<Finding> {
    let Some(layers) = parse(document) else {
        let what = format!("no block {FENCE} that tells which crate may use which");
        return vec![Finding::new(FILE, 1, what, "add it, with a line for each crate")];
    };
    let mut findings = Vec::new();
    for package in packages {
        let edges = edges(package);
        let Some(layer) = layers.get(&package.name) else {
            let what = format!("`{}` has no line in the block of layers", package.name);
            let cure = format!("add `{}`", line_of(package));
            findings.push(Finding::new(FILE, 1, what, cure));
            continue;
        };
        for edge in edges.difference(&layer.allowed) {
            let line = line_naming(&read(&package.manifest), edge);
            let what = format!("{FILE} does not allow `{}` to use `{edge}`", package.name);
            let cure = format!("remove the dependency, or argue the edge in {FILE}");
            findings.push(Finding::new(&package.manifest, line, what, cure));
        }
        for edge in layer.allowed.difference(&edges) {
            let what = format!("`{}` does not use `{edge}` (any more)", package.name);
            findings.push(Finding::new(FILE, layer.line, what, "remove the edge from the block"));
        }
    }
    findings.extend(strangers(&layers, packages));
    findings
}

/// Lines of the block without a crate.
fn strangers(layers: &BTreeMap<String, Layer>, packages: &[Package]) -> Vec<Finding> {
    let known: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let unknown = layers.iter().filter(|(name, _)| !known.contains(name.as_str()));
    let finding = |(name, layer): (&String, &Layer)| {
        let what = format!("there is no crate `{name}`");
        Finding::new(FILE, layer.line, what, "remove the line from the block of layers")
    };
    unknown.map(finding).collect()
}

/// Reads the block: a line is `crate: crate crate …`; what follows `#` is a remark.
pub(super) fn parse(document: &str) -> Option<BTreeMap<String, Layer>> {
    let mut lines = document.lines().enumerate();
    lines.find(|(_, line)| line.trim() == FENCE)?;
    let mut layers = BTreeMap::new();
    for (index, line) in lines.take_while(|(_, line)| line.trim() != "```") {
        let line = line.split('#').next().unwrap_or_default();
        let Some((name, allowed)) = line.split_once(':') else { continue };
        let allowed = allowed.split_whitespace().map(str::to_string).collect();
        layers.insert(name.trim().to_string(), Layer { line: index + 1, allowed });
    }
    Some(layers)
}

fn edges(package: &Package) -> BTreeSet<String> {
    let inside = package.dependencies.iter().filter(|d| d.normal && !d.external);
    inside.map(|dependency| dependency.name.clone()).collect()
}

fn line_of(package: &Package) -> String {
    let edges: Vec<String> = edges(package).into_iter().collect();
    format!("{}: {}", package.name, edges.join(" ")).trim_end().to_string()
}

fn line_naming(manifest: &str, dependency: &str) -> usize {
    let named = |line: &str| {
        line.trim_start()
            .strip_prefix(dependency)
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest.lines().position(named).map_or(1, |index| index + 1)
}
