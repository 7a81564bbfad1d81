//! The licences of the crates that are inside of the binary: who hands it out has to hand them out
//! with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::listed;

/// What the file of a licence is called begins so.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];

/// A list of the crates, and below it each text once, with the names of those it is of.
pub(super) fn third_party(root: &Path) -> Result<String, String> {
    let metadata = metadata(root)?;
    let mut list = String::from("The crates inside of throng, and their licences.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in inside(&metadata) {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", field("name"), field("version"));
        let _ = writeln!(list, "{name}: {}", field("license"));
        let folder =
            Path::new(field("manifest_path")).parent().ok_or("a crate without a folder")?;
        for path in listed(folder)?.into_iter().filter(|path| path.is_file()) {
            let file = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if NAMES.iter().any(|begin| file.starts_with(begin)) {
                let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
                texts.entry(text.trim().to_string()).or_default().push(name.clone());
            }
        }
    }
    for (text, names) in texts {
        let _ = write!(list, "\n{}\n{}\n\n{text}\n", "=".repeat(72), names.join(", "));
    }
    Ok(list)
}

fn metadata(root: &Path) -> Result<Value, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform"]);
    let output = command.arg("x86_64-unknown-linux-gnu").current_dir(root).output();
    let output = output.map_err(|error| format!("cargo metadata: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The foreign crates that `throng` is linked with, sorted: those reached by normal dependencies.
fn inside(metadata: &Value) -> Vec<&Value> {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let nodes = list(&metadata["resolve"]["nodes"]);
    let id = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let is_normal = |dependency: &Value| {
        list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
    };
    let linked: BTreeMap<String, Vec<String>> = nodes
        .iter()
        .map(|node| {
            let all = list(&node["deps"]);
            let normal = all.iter().filter(|one| is_normal(one)).map(|one| id(&one["pkg"]));
            (id(&node["id"]), normal.collect())
        })
        .collect();
    let Some(packages) = metadata["packages"].as_array() else { return Vec::new() };
    let own = packages.iter().find(|package| package["name"] == "throng");
    let mut open: Vec<String> = own.map(|own| id(&own["id"])).into_iter().collect();
    let mut reached = BTreeSet::new();
    while let Some(one) = open.pop() {
        if reached.insert(one.clone()) {
            open.extend(linked.get(&one).cloned().unwrap_or_default());
        }
    }
    let is_foreign = |package: &&Value| !package["source"].is_null();
    let mut found: Vec<&Value> = packages
        .iter()
        .filter(is_foreign)
        .filter(|package| reached.contains(&id(&package["id"])))
        .collect();
    found.sort_by_key(|package| package["name"].as_str());
    found
}
