//! The page of a run: that its types are right, and that the bundle in the tree is what its sources
//! give. `cargo xtask web` builds it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files;
use crate::programs::finish;
use crate::workspace::Workspace;

/// The bundle and its sources, below `web/`.
const BUNDLE: &str = "dist/report.html";
const SOURCES: [&str; 5] =
    ["package.json", "package-lock.json", "tsconfig.json", "build.mjs", "src"];

/// Builds the bundle again.
pub(crate) fn make(workspace: &Workspace) -> Result<(), String> {
    let made = build(workspace)?;
    let place = workspace.root.join("web").join(BUNDLE);
    fs::copy(&made, &place).map(drop).map_err(|error| format!("{}: {error}", place.display()))
}

/// Fails if the bundle differs from what its sources give.
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
    files::create(&folder)?;
    finish(Command::new("cp").arg("-r").args(SOURCES).arg(&folder).current_dir(&source))?;
    for arguments in [
        &["ci", "--no-audit", "--no-fund", "--loglevel=error"][..],
        &["run", "--silent", "check"],
        &["run", "--silent", "build"],
    ] {
        let words = workspace.root.join("crates/throng-base/words/zh.txt");
        let mut npm = Command::new("npm");
        finish(npm.args(arguments).current_dir(&folder).env("CATALOGUE", words))?;
    }
    Ok(folder.join(BUNDLE))
}
