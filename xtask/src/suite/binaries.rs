//! Compiles the test binaries and lists their tests. The compiler of the workspace's own crates is
//! clippy's driver, which is rustc with more lints: one compilation checks and builds. (`cargo
//! clippy` would check all dependencies and crates a second time, without building anything.)

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::programs::{cargo, text_of};
use crate::say;
use crate::workspace::Workspace;

/// All test binaries of the workspace, and what the compiler said.
pub(crate) struct Compiled {
    pub(crate) tests: Vec<Test>,
    /// How many warnings there were, of rustc and clippy.
    pub(crate) lints: usize,
}

/// One test, and how to start it.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// The crate, or the crate and its integration test: `throng-base`, `throng::e2e`.
    pub(crate) owner: String,
    /// Its path within the binary: `run::tests::a_run_ends`.
    pub(crate) name: String,
    pub(crate) binary: PathBuf,
    /// The crate's folder, where `cargo test` would start it.
    pub(crate) folder: PathBuf,
}

impl Test {
    /// Unique in the workspace.
    pub(crate) fn full_name(&self) -> String {
        format!("{}::{}", self.owner, self.name)
    }

    /// It starts the binary, as a user does.
    pub(crate) fn is_end_to_end(&self) -> bool {
        self.owner.ends_with("::e2e")
    }

    /// It starts before the others.
    pub(crate) fn is_long(&self) -> bool {
        LONG.iter().any(|module| self.name.split("::").next() == Some(module))
    }

    /// A test below a module `clock` measures time. It runs alone, so that no other test can make
    /// it late.
    pub(crate) fn looks_at_the_clock(&self) -> bool {
        self.name.split("::").any(|module| module == "clock")
    }
}

/// Modules of end-to-end tests that take up to a minute each. They begin first, so that none of
/// them is the last alone.
const LONG: &[&str] = &["capacity", "fleet", "joined", "takeover", "tutorials", "why_staged"];

pub(crate) fn compile(workspace: &Workspace) -> Result<Compiled, String> {
    let mut command =
        cargo(&workspace.root, &["test", "--workspace", "--no-run", "--message-format=json"]);
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cargo: {error}"))?;
    let (mut binaries, mut lints) = (Vec::new(), 0);
    for line in BufReader::new(child.stdout.take().ok_or("cargo has no output")?).lines() {
        let line = line.map_err(|error| format!("cargo: {error}"))?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        lints += usize::from(is_lint(&message));
        if let Some(text) = message["message"]["rendered"].as_str() {
            say(text.trim_end());
        }
        binaries.extend(binary(workspace, &message));
    }
    let status = child.wait().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cargo test --no-run: {status}"));
    }
    let mut tests = Vec::new();
    // In the order of their names: cargo announces them as they are compiled.
    binaries.sort();
    for (owner, path, folder) in binaries {
        tests.extend(list(&owner, &path, &folder)?);
    }
    Ok(Compiled { tests, lints })
}

/// A warning with a name; not the line that counts them.
fn is_lint(message: &Value) -> bool {
    let inner = &message["message"];
    message["reason"] == "compiler-message" && inner["level"] == "warning" && {
        let spans = inner["spans"].as_array();
        !inner["code"].is_null() || spans.is_some_and(|spans| !spans.is_empty())
    }
}

/// The test binary that a message of cargo announces: its owner, path, and folder.
fn binary(workspace: &Workspace, message: &Value) -> Option<(String, PathBuf, PathBuf)> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let relative = manifest.strip_prefix(&workspace.root).ok()?;
    let package = workspace.packages.iter().find(|it| Path::new(&it.manifest) == relative)?;
    let target = &message["target"];
    let owner = match target["kind"][0].as_str()? {
        "test" => format!("{}::{}", package.name, target["name"].as_str()?),
        _ => package.name.clone(),
    };
    Some((owner, path, manifest.parent()?.to_path_buf()))
}

fn list(owner: &str, binary: &Path, folder: &Path) -> Result<Vec<Test>, String> {
    let mut command = Command::new(binary);
    let text = text_of(command.args(["--list", "--format", "terse"]).current_dir(folder))?;
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    let test = |name: &str| Test {
        owner: owner.to_string(),
        name: name.to_string(),
        binary: binary.to_path_buf(),
        folder: folder.to_path_buf(),
    };
    Ok(names.map(test).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_warning_counts_once() {
        let said = |message| json!({"reason": "compiler-message", "message": message});
        let span = json!([{"file_name": "a.rs"}]);
        assert!(is_lint(&said(json!({"level": "warning", "code": {"code": "unused"}}))));
        assert!(is_lint(&said(json!({"level": "warning", "code": null, "spans": span}))));
        assert!(!is_lint(&said(json!({"level": "warning", "code": null, "spans": []}))));
        assert!(!is_lint(&said(json!({"level": "error", "code": {"code": "E0308"}}))));
    }

    #[test]
    fn tests_of_a_module_clock_look_at_it() {
        let named = |name: &str| Test {
            owner: "throng::e2e".to_string(),
            name: name.to_string(),
            binary: PathBuf::new(),
            folder: PathBuf::new(),
        };
        assert!(named("clock::truth::a_frozen_target").looks_at_the_clock());
        assert!(!named("run::the_clock_is_read").looks_at_the_clock());
    }
}
