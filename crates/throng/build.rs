//! Passes the commit and the build to the compiler, for `throng --version`. It runs again only if
//! HEAD or the shipped sources have changed, and does not require git: a source archive contains
//! its commit in `src/commit.txt`; without either, only the version is shown.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Filled in by `git archive`; see .gitattributes.
const ARCHIVED: &str = "src/commit.txt";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={ARCHIVED}");
    let commit = of_git().or_else(of_archive).unwrap_or_default();
    println!("cargo:rustc-env=THRONG_COMMIT={commit}");
    for (name, variable) in [("TARGET", "TARGET"), ("PROFILE", "PROFILE")] {
        let value = std::env::var(variable).unwrap_or_default();
        println!("cargo:rustc-env=THRONG_BUILD_{name}={value}");
    }
    println!("cargo:rustc-env=THRONG_BUILD_RUSTC={}", compiler().unwrap_or_default());
}

/// `rustc 1.95.0 (59807616e 2026-04-14)`.
fn compiler() -> Option<String> {
    said(Command::new(std::env::var_os("RUSTC")?).arg("--version"))
}

/// `108dfbd 2026-11-23`, with `+changes` after the commit if the sources differ from it.
fn of_git() -> Option<String> {
    let root = home()?.join("../..").canonicalize().ok()?;
    let git = |words: &[&str]| {
        said(Command::new("git").arg("--no-optional-locks").current_dir(&root).args(words))
    };
    // Sources copied into another repository do not belong to its commit.
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?) != root {
        return None;
    }
    let branch = git(&["rev-parse", "--symbolic-full-name", "HEAD"]).unwrap_or_default();
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch] {
        // Cargo runs this script at every build if a file that it names does not exist.
        let path = git(&["rev-parse", "--git-path", name]).map(|path| root.join(path));
        if let Some(path) = path.filter(|path| path.is_file()) {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    let mut sources = vec!["Cargo.toml".to_string(), "Cargo.lock".to_string()];
    for entry in std::fs::read_dir(root.join("crates")).ok()?.flatten() {
        sources.push(format!("crates/{}/src", entry.file_name().to_string_lossy()));
    }
    for path in sources.iter().map(|path| root.join(path)).filter(|path| path.exists()) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let mut words = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    words.extend(sources.iter().map(String::as_str));
    let changed = if git(&words)?.is_empty() { "" } else { "+changes" };
    let commit = git(&["log", "-1", "--format=%h", "--abbrev=9"])?;
    let date = git(&["log", "-1", "--format=%cs"])?;
    Some(format!("{commit}{changed} {date}"))
}

/// From `git archive`, which replaces the placeholders.
fn of_archive() -> Option<String> {
    let text = std::fs::read_to_string(home()?.join(ARCHIVED)).ok()?;
    let text = text.trim();
    (!text.is_empty() && !text.contains("$Format")).then(|| text.to_string())
}

/// The folder of this crate, read at run time: if a tree is moved with its `target`, the compiled
/// script still contains the old path.
fn home() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?))
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}
