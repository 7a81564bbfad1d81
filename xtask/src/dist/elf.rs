//! What the headers of a binary say (elf(5)), as `readelf` prints them; every compiler needs its
//! package.

use std::path::Path;
use std::process::Command;

use crate::programs::text_of;

/// Whether no program header names a loader.
pub(super) fn is_static(binary: &Path) -> Result<bool, String> {
    Ok(!headers(binary)?.contains(" INTERP "))
}

/// Whether the kernel chooses the address where it is loaded.
pub(super) fn is_movable(binary: &Path) -> Result<bool, String> {
    Ok(headers(binary)?.contains(" DYN "))
}

fn headers(binary: &Path) -> Result<String, String> {
    let mut readelf = Command::new("readelf");
    text_of(readelf.args(["--file-header", "--program-headers"]).arg(binary).env("LC_ALL", "C"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test is a program with a loader.
    #[test]
    fn an_ordinary_program_is_not_static() {
        let this = std::env::current_exe().unwrap();
        assert!(!is_static(&this).unwrap());
        assert!(is_movable(&this).unwrap());
        assert!(is_static(Path::new("Cargo.toml")).is_err());
    }
}
