//! `cargo xtask elsewhere`: throng compiles for macOS and Windows. Nothing is linked and nothing
//! runs, so no compiler of C for them is needed: a stand-in writes empty files.

use std::path::Path;
use std::process::Command;

use crate::programs::{cargo, finish};
use crate::{files, say, workspace};

const TARGETS: [&str; 2] = ["x86_64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Creates what `cc -o FILE` and `ar cq FILE` would.
const STAND_IN: &str = "#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    -o) shift; : > \"$1\" ;;
    -o*) : > \"${1#-o}\" ;;
    *.a | *.lib) : > \"$1\" ;;
  esac
  shift
done
";

pub(crate) fn run() -> Result<(), String> {
    let missing: Vec<&str> = TARGETS.into_iter().filter(|target| !has_std(target)).collect();
    if !missing.is_empty() {
        return Err(format!("run `rustup target add {}`, then try again", missing.join(" ")));
    }
    let workspace = workspace::load()?;
    let stand_in = workspace.target.join("elsewhere/cc");
    files::write(&stand_in, STAND_IN)?;
    files::set_mode(&stand_in, 0o755)?;
    for target in TARGETS {
        say(&format!("== {target}"));
        let mut command = cargo(&workspace.root, &["check", "-p", "throng", "--target", target]);
        for tool in ["CC", "CXX", "AR"] {
            command.env(format!("{tool}_{}", target.replace('-', "_")), &stand_in);
        }
        finish(&mut command)?;
    }
    Ok(())
}

/// Whether the standard library for a target is installed.
fn has_std(target: &str) -> bool {
    let asked =
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    asked.is_ok_and(|it| Path::new(String::from_utf8_lossy(&it.stdout).trim()).is_dir())
}
