//! Files and folders, with errors that name them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Creates a folder and those above it.
pub(crate) fn create(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

pub(crate) fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The entries of a folder, sorted.
pub(crate) fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Writes a file, and creates its folder if it is missing.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(told)?;
    fs::write(path, bytes).map_err(told)
}

/// Copies a file with this mode, and creates its folder if it is missing.
pub(crate) fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    write(to, fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?)?;
    set_mode(to, mode)
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(|error| format!("{}: {error}", path.display()))
}
