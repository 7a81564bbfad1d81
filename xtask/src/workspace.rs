//! The workspace: its folders, packages and files. Runs `cargo metadata` and git.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::programs::{cargo, output_of};

/// The workspace as `cargo metadata --no-deps` tells it.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// A crate of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Path of its `Cargo.toml`, relative to the root.
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line of a `[dependencies]` table of any kind.
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// From a registry, not from this workspace.
    pub(crate) external: bool,
    /// Neither a dev- nor a build-dependency.
    pub(crate) normal: bool,
}

/// Asks cargo about the workspace in which this program was built.
pub(crate) fn load() -> Result<Workspace, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let words = ["metadata", "--format-version", "1", "--no-deps"];
    let metadata: Value = serde_json::from_slice(&output_of(&mut cargo(&root, &words))?)
        .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    Ok(resolve(&metadata))
}

fn resolve(metadata: &Value) -> Workspace {
    let path = |key: &str| PathBuf::from(metadata[key].as_str().unwrap_or_default());
    let root = path("workspace_root");
    let packages = list(&metadata["packages"]).map(|raw| package(raw, &root)).collect();
    Workspace { target: path("target_directory"), packages, root }
}

fn package(raw: &Value, root: &Path) -> Package {
    let manifest = Path::new(raw["manifest_path"].as_str().unwrap_or_default());
    let relative = manifest.strip_prefix(root).unwrap_or(manifest);
    Package {
        name: text(&raw["name"]),
        manifest: relative.to_string_lossy().into_owned(),
        dependencies: list(&raw["dependencies"])
            .map(|dependency| Dependency {
                name: text(&dependency["name"]),
                external: !dependency["source"].is_null(),
                normal: dependency["kind"].is_null(),
            })
            .collect(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

/// The files that git tracks or would track: all that it does not ignore.
pub(crate) fn files(root: &Path) -> Result<Vec<String>, String> {
    let words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let names = output_of(Command::new("git").args(words).current_dir(root))?;
    let mut files: Vec<String> = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .filter(|name| root.join(name).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
