//! The messages of a child in a file, read line by line as it grows. The child holds a lock on the
//! file while it runs, so that a restarted agent can tell whether the child has exited.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};

use throng_base::Said;
use throng_fleet::agent::{Finish, Spool};

use crate::fleet::LINES_FILE;
use crate::processes::how_it_ended;

/// The error message of a part that could not start.
pub(super) const ERRORS_FILE: &str = "errors.txt";
/// Exists once all lines are in the log.
pub(super) const SENT_FILE: &str = "sent";
/// Bytes per read. A longer line is read in one larger piece.
const PIECE_BYTES: usize = 256 << 10;
const LINE_BYTES_MAX: usize = 32 << 20;
/// The line that marks the end of a load.
const OVER: &[u8] = b"{\"over\":";
const ERRORS_BYTES_MAX: u64 = 4_096;

/// The lines and the exit status of a child.
pub struct Spooled {
    home: PathBuf,
    file: File,
    /// End of the last complete line that was read.
    at: u64,
    piece: usize,
    lines: u64,
    is_over: bool,
    /// The child's exit status, if this agent started the child.
    status: Option<Arc<OnceLock<ExitStatus>>>,
}

impl Spooled {
    pub(super) fn of(
        home: &Path,
        status: Option<Arc<OnceLock<ExitStatus>>>,
    ) -> io::Result<Spooled> {
        let file = File::open(home.join(LINES_FILE))?;
        let home = home.to_path_buf();
        Ok(Spooled { home, file, at: 0, piece: PIECE_BYTES, lines: 0, is_over: false, status })
    }

    /// The spool of an earlier agent process, unless all of it was sent.
    pub(super) fn left(home: &Path) -> Option<Spooled> {
        let is_sent = home.join(SENT_FILE).exists();
        Spooled::of(home, None).ok().filter(|_| !is_sent)
    }

    fn next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            self.file.seek(SeekFrom::Start(self.at))?;
            let mut bytes = Vec::new();
            self.file.by_ref().take(self.piece as u64).read_to_end(&mut bytes)?;
            match bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => {
                    bytes.truncate(end + 1);
                    self.piece = PIECE_BYTES;
                    return Ok(bytes);
                }
                None if bytes.len() == self.piece && self.piece < LINE_BYTES_MAX => self.piece *= 2,
                None => return Ok(Vec::new()),
            }
        }
    }

    /// The error message of a child that failed.
    fn errors(&self) -> String {
        let mut text = Vec::new();
        if let Ok(file) = File::open(self.home.join(ERRORS_FILE)) {
            let _ = file.take(ERRORS_BYTES_MAX).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).trim().to_string()
    }

    fn cut_short(&self) -> Option<Said> {
        let status = self.status.as_ref().and_then(|status| status.get());
        let how = status.copied().and_then(how_it_ended);
        let how = how.unwrap_or(say!("its agent was no longer running"));
        let errors = self.errors();
        Some(match errors.is_empty() {
            true => how,
            false => say!("{how}: {errors}"),
        })
    }
}

impl Spool for Spooled {
    fn read(&mut self) -> Vec<u8> {
        let lines = self.next().unwrap_or_default();
        self.at += lines.len() as u64;
        self.lines += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        let last = lines.split_inclusive(|byte| *byte == b'\n').next_back();
        self.is_over |= last.is_some_and(|last| last.starts_with(OVER));
        lines
    }

    fn ended(&mut self) -> Option<Finish> {
        // Fails while the child holds its lock.
        self.file.try_lock_shared().ok()?;
        let _ = self.file.unlock();
        if self.status.as_ref().is_some_and(|status| status.get().is_none()) {
            return None;
        }
        // The child may have written more between the last read and its exit.
        if !self.next().unwrap_or_default().is_empty() {
            return None;
        }
        let cut_short = if self.is_over { None } else { self.cut_short() };
        Some(Finish { cut_short, refused: self.lines == 0 })
    }

    fn sent(&mut self) {
        // If this fails, the lines are sent again after a restart; the receiver ignores duplicates.
        let _ = fs::write(self.home.join(SENT_FILE), b"");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_are_read_whole_until_the_child_releases_its_lock() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(LINES_FILE);
        let mut writer = File::options().create_new(true).append(true).open(&path).unwrap();
        writer.try_lock().unwrap();
        let mut spool = Spooled::left(home.path()).unwrap();
        writer.write_all(b"{\"ready\":1}\n{\"int").unwrap();
        assert_eq!(spool.read(), b"{\"ready\":1}\n");
        assert_eq!((spool.read(), spool.ended()), (Vec::new(), None));
        let long = "x".repeat(PIECE_BYTES * 3);
        writer
            .write_all(format!("erval\":\"{long}\"}}\n{{\"over\":{{}}}}\n{{\"torn").as_bytes())
            .unwrap();
        drop(writer);
        assert_eq!(spool.ended(), None, "there is more to read");
        let mut read = Vec::new();
        while let Some(lines) = Some(spool.read()).filter(|lines| !lines.is_empty()) {
            read.extend(lines);
        }
        assert_eq!(read.iter().filter(|byte| **byte == b'\n').count(), 2);
        assert_eq!(spool.ended(), Some(Finish { cut_short: None, refused: false }));
        spool.sent();
        assert!(Spooled::left(home.path()).is_none());
    }

    #[test]
    fn a_child_that_fails_before_it_is_ready_reports_its_error() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(LINES_FILE), b"").unwrap();
        fs::write(home.path().join(ERRORS_FILE), b"error: not allowed\n").unwrap();
        let mut spool = Spooled::left(home.path()).unwrap();
        let finish = spool.ended().unwrap();
        assert!(finish.refused);
        assert!(finish.cut_short.unwrap().english().ends_with("error: not allowed"));
    }
}
