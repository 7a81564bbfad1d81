//! Files of keys: nobody but their owner can read them, and a torn one is never left.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::Said;

pub fn make_folder(path: &Path) -> Result<(), Said> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| failed(path, &error))
}

/// Writes beside and puts it in place, so that whoever reads sees the old or the new.
pub fn write(path: &Path, text: &str) -> Result<(), Said> {
    let beside = path.with_extension("new");
    let written = || -> io::Result<()> {
        let _ = fs::remove_file(&beside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
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

/// Bytes as PEM, as certificates and keys lie on disks.
pub fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    for at in (0..text.len()).step_by(64) {
        pem.push_str(&text[at..text.len().min(at + 64)]);
        pem.push('\n');
    }
    pem + &format!("-----END {label}-----\n")
}
