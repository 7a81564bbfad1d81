//! Files and directories that only their owner can access: run directories, recordings, keys. A key
//! file is complete or absent.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{Said, system};

/// Creates a file or directory that only its owner can access.
pub trait Private {
    /// A new file gets the mode 0600, a new directory 0700. Windows has no modes: both inherit the
    /// access list of their directory, which, in a user's profile, contains the user, the
    /// administrators and the system.
    fn private(&mut self) -> &mut Self;
}

impl Private for OpenOptions {
    fn private(&mut self) -> &mut OpenOptions {
        system::private_file(self)
    }
}

impl Private for DirBuilder {
    fn private(&mut self) -> &mut DirBuilder {
        system::private_folder(self)
    }
}

pub fn make_folder(path: &Path) -> Result<(), Said> {
    let made = DirBuilder::new().recursive(true).private().create(path);
    made.map_err(|error| failed(path, &error))
}

/// Writes a temporary file and renames it, so that readers see the old or the new content.
pub fn write(path: &Path, text: &str) -> Result<(), Said> {
    let beside = path.with_extension("new");
    let written = || -> io::Result<()> {
        let _ = fs::remove_file(&beside);
        let mut file = OpenOptions::new().write(true).create_new(true).private().open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    written().map_err(|error| failed(path, &error))
}

pub fn read(path: &Path) -> Result<String, Said> {
    fs::read_to_string(path).map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> Said {
    let (path, error) = (path.display(), Said::of_error(error));
    say!("`{path}`: {error}")
}

/// Bytes as PEM, the format of certificate and key files.
pub fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for at in (0..text.len()).step_by(64) {
        pem.push_str(&text[at..text.len().min(at + 64)]);
        pem.push('\n');
    }
    pem + &format!("-----END {label}-----\n")
}

/// A directory of this user by the XDG Base Directory Specification: the value of `variable`, or
/// `default` below the home directory.
pub fn user_folder(variable: &str, default: &str) -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let given = folder(variable).filter(|path| path.is_absolute());
    given.or_else(|| folder("HOME").map(|home| home.join(default)))
}
