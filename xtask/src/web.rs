//! The page of a run: that its types are right, and that the bundle in the tree is what its sources
//! make. `cargo xtask web` makes it anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::Workspace;

/// What is made, and what it is made from, below `web/`.
const BUNDLE: &str = "dist/report.html";
const SOURCES: [&str; 5] =
    ["package.json", "package-lock.json", "tsconfig.json", "build.mjs", "src"];

/// Makes the bundle anew.
pub(crate) fn make(workspace: &Workspace) -> Result<(), String> {
    let made = build(workspace)?;
    let place = workspace.root.join("web").join(BUNDLE);
    fs::copy(&made, &place).map(drop).map_err(|error| format!("{}: {error}", place.display()))
}

/// Fails where the bundle is another one than its sources make.
pub(crate) fn check(workspace: &Workspace) -> Result<(), String> {
    let made = build(workspace)?;
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let place = workspace.root.join("web").join(BUNDLE);
    match read(&made)? == read(&place)? {
        true => Ok(()),
        false => Err(format!("web/{BUNDLE} is not what its sources make: `cargo xtask web`")),
    }
}

/// In a folder of its own, so that nothing is left in the tree. Says where the bundle is.
fn build(workspace: &Workspace) -> Result<PathBuf, String> {
    let (source, folder) = (workspace.root.join("web"), workspace.target.join("ci/web"));
    let _ = fs::remove_dir_all(folder.join("src"));
    for name in SOURCES {
        copy(&source.join(name), &folder.join(name))?;
    }
    for arguments in [
        &["ci", "--no-audit", "--no-fund", "--loglevel=error"][..],
        &["run", "--silent", "check"],
        &["run", "--silent", "build"],
    ] {
        let mut command = Command::new("npm");
        let words = workspace.root.join("crates/throng-base/words/zh.txt");
        let status = command.args(arguments).current_dir(&folder).env("CATALOGUE", words).status();
        let status = status.map_err(|error| format!("npm does not start: {error}"))?;
        if !status.success() {
            return Err(format!("`npm {}` failed in web/ ({status})", arguments.join(" ")));
        }
    }
    Ok(folder.join(BUNDLE))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", from.display());
    if from.is_dir() {
        fs::create_dir_all(to).map_err(told)?;
        for entry in fs::read_dir(from).map_err(told)? {
            let entry = entry.map_err(told)?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all).map_err(told)?;
    fs::copy(from, to).map(drop).map_err(told)
}
