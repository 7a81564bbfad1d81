//! The licences of the crates that are inside of the binary: who hands it out has to hand them out
//! with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::MACHINES;
use crate::files::{listed, text};
use crate::programs::{cargo, text_of};

/// The first letters of the names of licence files.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

/// Crates and features are the same on all.
const TARGET: &str = MACHINES[0].target;

/// A list of the crates; below it, each licence text once, with the names of its crates.
pub(super) fn third_party(root: &Path) -> Result<String, String> {
    let mut list = String::from("The crates inside of throng, and their licences.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in inside(root)? {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", field("name"), field("version"));
        let _ = writeln!(list, "{name}: {}", field("license"));
        let folder =
            Path::new(field("manifest_path")).parent().ok_or("a crate without a folder")?;
        for path in listed(folder)?.into_iter().filter(|path| path.is_file()) {
            let file = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if NAMES.iter().any(|begin| file.starts_with(begin)) {
                let text = text(&path)?;
                texts.entry(text.trim().to_string()).or_default().push(name.clone());
            }
        }
    }
    for (text, names) in texts {
        let _ = write!(list, "\n{}\n{}\n\n{text}\n", "=".repeat(72), names.join(", "));
    }
    Ok(list)
}

/// The foreign crates that `throng` links, including macros, sorted.
fn inside(root: &Path) -> Result<Vec<Value>, String> {
    let words = ["tree", "--package=throng", "--edges=normal", "--prefix=none", "--format={p}"];
    let words = [&words[..], &["--locked", "--target", TARGET]].concat();
    let tree = text_of(&mut cargo(root, &words))?;
    let reached: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| line.split_once(" v"))
        .filter_map(|(name, rest)| Some((name, rest.split_whitespace().next()?)))
        .collect();
    let words = ["metadata", "--format-version=1", "--locked", "--filter-platform", TARGET];
    let metadata: Value = serde_json::from_str(&text_of(&mut cargo(root, &words))?)
        .map_err(|error| error.to_string())?;
    let is_inside = |package: &&Value| {
        let named = package["name"].as_str().zip(package["version"].as_str());
        !package["source"].is_null() && named.is_some_and(|named| reached.contains(&named))
    };
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut found: Vec<Value> = packages.filter(is_inside).cloned().collect();
    found.sort_by_key(|package| package["name"].to_string());
    Ok(found)
}
