//! Packs the files of a run for its agents and for a takeover: the bundle of the run directory,
//! including secrets, because no user can enter them there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use throng_base::{Diagnostic, Said, random};
use throng_results::directory::{EVENTS_FILE, INTERVALS_FILE, NoCopy};
use throng_results::{Recorder, RunInfo};
use throng_scenario::{FileRole, Recorded, RecordedFile};

use crate::Conduct;
use crate::{bundle, files};

/// A packed file: its relative path and its content.
pub(super) type Packed = (String, Vec<u8>);

/// A temporary directory that only the owner can read.
pub(super) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn new() -> Result<TemporaryDirectory, Box<Diagnostic>> {
        let path = std::env::temp_dir().join(format!("throng-{:016x}", random::fresh()));
        let made = files::private_directory(&path);
        made.map_err(|error| unwritable(&path, &error))?;
        Ok(TemporaryDirectory(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Box<Diagnostic> {
    let error = Said::of_error(error);
    let message = say!("{}: {error}", path.display());
    let help = say!("set TMPDIR to a writable directory");
    Box::new(Diagnostic::error("record-impossible", message).help(help))
}

/// Unpacks files into a temporary directory.
///
/// # Errors
/// A file cannot be written, or its path leads out of the directory.
pub(super) fn unpack(packed: &[Packed]) -> Result<TemporaryDirectory, Box<Diagnostic>> {
    let moment = TemporaryDirectory::new()?;
    for (path, bytes) in packed {
        let within = files::inside(&moment.0, path).ok_or(io::ErrorKind::InvalidInput.into());
        let written = within.and_then(|path| files::private_file(&path, bytes));
        written.map_err(|error| unwritable(&moment.0.join(path), &error))?;
    }
    Ok(moment)
}

/// Rejects a run whose files contain a private key.
///
/// # Errors
/// Names the key.
pub(super) fn has_no_key(recorded: &Recorded) -> Result<(), Box<Diagnostic>> {
    let is_key = |file: &&RecordedFile| file.copy.is_none() && file.role != FileRole::Include;
    let key = recorded.files.iter().find(is_key);
    key.map_or(Ok(()), |file| Err(unsendable(&file.path.display().to_string())))
}

fn unsendable(path: &str) -> Box<Diagnostic> {
    let message = say!("`{path}` cannot be sent to the agents of a fleet");
    let help = say!(
        "throng does not send keys or unreadable files to agents: run the scenario on one machine"
    );
    Box::new(Diagnostic::error("fleet-unbridged", message).help(help))
}

/// Packs all files that an agent needs.
///
/// # Errors
/// Names files that cannot be sent.
pub(super) fn pack(conduct: &Conduct<'_>, info: &RunInfo) -> Result<Vec<Packed>, Box<Diagnostic>> {
    let moment = TemporaryDirectory::new()?;
    let mut info = info.clone();
    (info.generator.machines, info.generator.shards) = (Vec::new(), 0);
    let text = bundle::write(&moment.0, (&conduct.recorded, None), u64::MAX, &mut info);
    let recorder = text.and_then(|text| Recorder::create(&moment.0, &info, &text));
    let recorder = recorder.map_err(|error| Box::new(error.diagnostic()))?;
    drop(recorder);
    let left_out = |file: &&throng_results::directory::FileInfo| {
        !matches!(file.no_copy, None | Some(NoCopy::Merged))
    };
    if let Some(file) = info.sources.files.iter().find(left_out) {
        return Err(unsendable(&file.path));
    }
    let mut packed = Vec::new();
    let walked = walk(&moment.0, &moment.0, &mut packed);
    walked.map_err(|error| unwritable(&moment.0, &error))?;
    Ok(packed)
}

fn walk(home: &Path, directory: &Path, packed: &mut Vec<Packed>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(home, &path, packed)?;
            continue;
        }
        let name = path.strip_prefix(home).unwrap_or(&path).display().to_string();
        if name != INTERVALS_FILE && name != EVENTS_FILE {
            packed.push((name, fs::read(&path)?));
        }
    }
    Ok(())
}
