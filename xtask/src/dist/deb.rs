//! A package for Debian and what is made of it, by plain `dpkg-deb`: the files are there already,
//! and a tool that reads manifests would bring a hundred packages to write these forty lines.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::elf::is_static;
use super::{Machine, epoch, finish};
use crate::files::{listed, write as write_file};
use crate::workspace::Workspace;

/// In the format of Debian (machine-readable copyright files, 1.0).
pub(super) const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: throng

Files: *
Copyright: 2026 The throng authors
License: Expat or Apache-2.0
Comment: The texts are in LICENSE-MIT and LICENSE-APACHE beside this file. The
 binary contains the crates that THIRD-PARTY.gz lists, each with its license.

License: Expat
 See LICENSE-MIT beside this file.

License: Apache-2.0
 See /usr/share/common-licenses/Apache-2.0, or LICENSE-APACHE beside this file.
";

/// The libraries that a dynamic binary needs if it is built on Debian 12.
const LIBRARIES: &str = "libc6 (>= 2.34), libgcc-s1";

pub(super) fn write(
    workspace: &Workspace,
    machine: &Machine,
    version: &str,
    tree: &Path,
    deb: &Path,
) -> Result<(), String> {
    let files = files(&tree.join("usr"))?;
    let is_static = is_static(&tree.join("usr/bin/throng"))?;
    let control = control(machine, version, bytes(&files), is_static);
    write_file(&tree.join("DEBIAN/control"), control)?;
    write_file(&tree.join("DEBIAN/md5sums"), sums(tree, &files)?)?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(tree).arg(deb);
    finish(build.env("SOURCE_DATE_EPOCH", epoch(&workspace.root)))
}

fn control(machine: &Machine, version: &str, bytes: u64, is_static: bool) -> String {
    let mut control = format!(
        "Package: throng\nVersion: {version}\nArchitecture: {}\n\
         Maintainer: the authors of throng <throng@localhost>\nInstalled-Size: {}\n\
         Section: net\nPriority: optional\n",
        machine.debian,
        bytes.div_ceil(1024)
    );
    if !is_static {
        let _ = writeln!(control, "Depends: {LIBRARIES}");
    }
    control
        + "Recommends: ca-certificates\n\
           Description: load-testing tool for long-lived connections and for HTTP\n \
           Simulates up to a million concurrent users from one small machine, over HTTP,\n \
           gRPC, WebSocket, server-sent events, or a private protocol over TCP or UDP,\n \
           and shows what happened and why.\n"
}

fn bytes(files: &[PathBuf]) -> u64 {
    files.iter().filter_map(|file| fs::metadata(file).ok()).map(|file| file.len()).sum()
}

/// For `dpkg --verify`.
fn sums(tree: &Path, files: &[PathBuf]) -> Result<String, String> {
    let names = files.iter().filter_map(|file| file.strip_prefix(tree).ok());
    let output = Command::new("md5sum").args(names).current_dir(tree).output();
    let output = output.map_err(|error| format!("md5sum: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// All files below a folder.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in listed(folder)? {
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}
