//! Writes a run directory during the run. Every line is one write to a file opened for appending,
//! so a kill leaves at most one torn line, at the end.
//!
//! - `lines`: reads lines, including torn and damaged ones.
//! - `segments`: the compressed and summed lines of a long run.
//! - `packer`: compresses segments during the run.

pub(crate) mod lines;
mod packer;
pub(crate) mod segments;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use throng_base::Diagnostic;
use throng_base::private::Private as _;
use throng_metrics::Interval;

use crate::directory::{
    EVENTS_FILE, EndInfo, INTERVALS_FILE, MACHINE, RUN_FILE, RunInfo, SCENARIO_FILE, SEQ, Totals,
    create_new,
};
use crate::event::Event;
use lines::json_onto;
use packer::Packer;
use segments::SEGMENT_BYTES;

/// Writes the directory of one run.
pub struct Recorder {
    directory: PathBuf,
    intervals: Lines,
    events: Lines,
    /// The number of segments that were started, and their packer, if there are any.
    segments: u32,
    packer: Option<Packer>,
    info: RunInfo,
    segment_bytes: u64,
    /// The end of the last interval: the time of events about the recording itself.
    at_ns: u64,
    /// Totals of everything to be recorded, even if it could not be written.
    totals: Totals,
}

/// What could not be written, and why.
#[derive(Debug)]
pub struct RecordError {
    pub path: PathBuf,
    pub error: io::Error,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl RecordError {
    /// The message to the operator. The run continues.
    pub fn diagnostic(&self) -> Diagnostic {
        let help = match self.error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                say!("free some disk space: recording then continues")
            }
            io::ErrorKind::FileTooLarge => {
                say!(
                    "this process is not allowed to write larger files: raise `ulimit -f`, then \
                     run the test again"
                )
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                say!("choose another directory for the run")
            }
            io::ErrorKind::AlreadyExists => {
                say!("a run directory is never overwritten: choose a new directory")
            }
            _ => say!("check the disk: recording continues when it is writable again"),
        };
        Diagnostic::error("record-failed", say!("the run could not be recorded"))
            .note(say!("cause: {self}"))
            .help(help)
    }
}

impl Recorder {
    /// Creates a run directory. `directory` may exist, but must not contain a run.
    pub fn create(
        directory: &Path,
        info: &RunInfo,
        scenario_text: &str,
    ) -> Result<Recorder, RecordError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |error| RecordError { path, error }
        };
        create_folder(directory).map_err(failed(directory))?;
        let scenario = directory.join(SCENARIO_FILE);
        create_new(&scenario)
            .and_then(|mut file| file.write_all(scenario_text.as_bytes()))
            .map_err(failed(&scenario))?;
        let lines = |name: &str| {
            let path = directory.join(name);
            let file = create_new(&path).map_err(failed(&path))?;
            Ok(Lines::new(path, Box::new(file)))
        };
        let recorder = Recorder {
            directory: directory.to_path_buf(),
            intervals: lines(INTERVALS_FILE)?,
            events: lines(EVENTS_FILE)?,
            segments: 0,
            packer: None,
            info: info.clone(),
            segment_bytes: SEGMENT_BYTES,
            at_ns: 0,
            totals: Totals::default(),
        };
        let length = recorder.write_info(info)?;
        recorder.reserve_end(length);
        Ok(recorder)
    }

    #[cfg(test)]
    pub(crate) fn set_segment_bytes(&mut self, bytes: u64) {
        self.segment_bytes = bytes;
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Number of lines that could not be written.
    pub fn lost(&self) -> u64 {
        self.intervals.lost + self.events.lost
    }

    /// Appends an interval. An error is returned once per disturbance: later intervals are tried
    /// again, and silently counted as lost until a write succeeds.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), RecordError> {
        self.at_ns = interval.second.saturating_add(1).saturating_mul(1_000_000_000);
        let in_trouble = self.intervals.in_trouble;
        self.totals.interval(interval);
        let result = self.intervals.append(0, interval);
        if in_trouble && !self.intervals.in_trouble {
            let detail = say!("recording continues");
            let (at_ns, lost) = (self.at_ns, self.lost());
            self.event(&Event::RecordingTrouble { at_ns, lost, detail })?;
        }
        if self.intervals.bytes >= self.segment_bytes && self.intervals.is_at_end_of_line() {
            // If the segment cannot be created, the file continues until it is as long again.
            let _ = self.end_segment();
            self.intervals.bytes = 0;
        }
        result
    }

    /// Makes the lines so far a segment, which is compressed during the run.
    fn end_segment(&mut self) -> io::Result<()> {
        create_folder(&segments::folder(&self.directory))?;
        let path = &self.intervals.path;
        let new = path.with_extension("new");
        let file = create_new(&new)?;
        let number = self.segments + 1;
        std::fs::rename(path, segments::plain_path(&self.directory, number))?;
        // Readers accept segments without a current file, which is missing for a moment.
        std::fs::rename(&new, path)?;
        self.intervals.out = Box::new(file);
        self.segments = number;
        let packer = || Packer::new(&self.directory, &self.info);
        self.packer.get_or_insert_with(packer).pack(number);
        Ok(())
    }

    /// Appends an event of the run; errors as in [`Recorder::interval`].
    pub fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.event_of(0, event)
    }

    /// Appends an event of one of its machines.
    pub fn event_of(&mut self, machine: u16, event: &Event) -> Result<(), RecordError> {
        self.events.append(machine, event)
    }

    /// Writes `run.json` for the last time, with the lost lines and the totals.
    pub fn finish(&mut self, info: &RunInfo) -> Result<(), RecordError> {
        // Wait until all segments are compressed.
        self.packer = None;
        let totals = Totals {
            intervals: self.intervals.number,
            events: self.events.number,
            ..self.totals.clone()
        };
        let lines_lost = self.lost().max(info.lines_lost);
        let info = RunInfo {
            lines_lost,
            end: EndInfo { totals: Some(totals), ..info.end.clone() },
            ..info.clone()
        };
        self.write_info(&info).map(drop)
    }

    /// Reserves space for the final `run.json`, in case the disk fills up. Without space, the write
    /// is tried anyway.
    fn reserve_end(&self, begin_length: usize) {
        let zeros = vec![0; begin_length + END_BYTES];
        let path = self.new_info();
        let new = create_new(&path);
        if new.and_then(|mut file| file.write_all(&zeros)).is_err() {
            let _ = std::fs::remove_file(&path);
        }
    }

    /// Replaces `run.json` atomically, and returns its size.
    fn write_info(&self, info: &RunInfo) -> Result<usize, RecordError> {
        let path = self.directory.join(RUN_FILE);
        let new = self.new_info();
        let write = || {
            let mut text = serde_json::to_vec_pretty(info)?;
            text.push(b'\n');
            // Write over the reserved space: truncating the file would release it.
            let mut open = OpenOptions::new();
            let mut file = open.write(true).create(true).truncate(false).private().open(&new)?;
            file.write_all(&text)?;
            file.set_len(text.len() as u64)?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            Ok(text.len())
        };
        write().map_err(|error| {
            // The incomplete file is useless; failing to remove it does no harm.
            let _ = std::fs::remove_file(&new);
            RecordError { path, error }
        })
    }

    fn new_info(&self) -> PathBuf {
        self.directory.join(format!("{RUN_FILE}.new"))
    }
}

/// Maximum growth of `run.json` until the end of the run: verdicts and reasons.
const END_BYTES: usize = 4096;

/// Creates a directory that only its owner can access, and those above it.
fn create_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).private().create(path)
}

/// Creates a file that only its owner can access, and its directories.
pub fn create_file(path: &Path) -> Result<File, RecordError> {
    let made = path.parent().map_or(Ok(()), create_folder);
    made.and_then(|()| create_new(path))
        .map_err(|error| RecordError { path: path.to_path_buf(), error })
}

/// A file with one JSON value per line.
struct Lines {
    path: PathBuf,
    out: Box<dyn Write + Send>,
    line: Vec<u8>,
    /// The last write failed and was reported.
    in_trouble: bool,
    /// A line is incomplete; the next one starts with a line break.
    torn: bool,
    lost: u64,
    /// Bytes written to the current file.
    bytes: u64,
    /// The number of the last line, from 1. Lines that could not be written have a number, too.
    number: u64,
}

impl Lines {
    fn new(path: PathBuf, out: Box<dyn Write + Send>) -> Lines {
        let line = Vec::new();
        Lines { path, out, line, in_trouble: false, torn: false, lost: 0, bytes: 0, number: 0 }
    }

    fn append(&mut self, machine: u16, value: &impl Serialize) -> Result<(), RecordError> {
        match self.try_append(machine, value) {
            Ok(()) => {
                self.in_trouble = false;
                Ok(())
            }
            Err(_) if std::mem::replace(&mut self.in_trouble, true) => Ok(()),
            Err(error) => Err(RecordError { path: self.path.clone(), error }),
        }
    }

    fn is_at_end_of_line(&self) -> bool {
        !self.in_trouble && !self.torn
    }

    fn try_append(&mut self, machine: u16, value: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        if self.torn {
            self.line.push(b'\n');
        }
        self.number += 1;
        let serialized = serialize_numbered(self.number, machine, value, &mut self.line);
        self.line.push(b'\n');
        let (written, result) = match serialized {
            Ok(()) => write_line(&mut *self.out, &self.line),
            Err(error) => (0, Err(error.into())),
        };
        self.bytes += written as u64;
        if result.is_err() {
            // A line without only its line break is complete: the next line adds the break.
            self.lost += u64::from(written + 1 < self.line.len());
            self.torn |= written > 0;
        } else {
            self.torn = false;
        }
        result
    }
}

/// Serializes an object with at least one field, preceded by its number and, except for the first
/// machine, its machine.
fn serialize_numbered(
    number: u64,
    machine: u16,
    value: &impl Serialize,
    out: &mut Vec<u8>,
) -> serde_json::Result<()> {
    out.extend_from_slice(format!("{{\"{SEQ}\":{number}").as_bytes());
    if machine > 0 {
        out.extend_from_slice(format!(",\"{MACHINE}\":{machine}").as_bytes());
    }
    let brace = out.len();
    json_onto(out, value)?;
    debug_assert_eq!(out.get(brace), Some(&b'{'), "only objects are recorded");
    out[brace] = b',';
    Ok(())
}

/// Writes a line, in one write unless the system accepts only a part. Returns the number of bytes
/// written.
fn write_line(out: &mut dyn Write, line: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < line.len() {
        match out.write(&line[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A simulated disk with limited space.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>, usize)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.0.lock().unwrap();
            let taken = bytes.len().min(disk.0);
            disk.2 += 1;
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.0 -= taken;
            disk.1.extend(&bytes[..taken]);
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported_once_and_recording_resumes_with_space() {
        let value = serde_json::json!({"a": 1});
        let length = 16;
        for room in 0..=3 * length {
            let disk = Disk::default();
            disk.0.lock().unwrap().0 = room;
            let mut lines = Lines::new("x".into(), Box::new(disk.clone()));
            let told = (0..5).filter(|_| lines.append(0, &value).is_err()).count();
            assert_eq!(told, 1, "room {room}");
            disk.0.lock().unwrap().0 = 1000;
            assert!(lines.append(0, &value).is_ok() && lines.append(0, &value).is_ok());
            let text = String::from_utf8(disk.0.lock().unwrap().1.clone()).unwrap();
            let good = text.lines().filter(|line| line.ends_with(",\"a\":1}")).count() as u64;
            assert_eq!(good + lines.lost, 7, "room {room}: {text}");
            disk.0.lock().unwrap().0 = 0;
            assert!(lines.append(0, &value).is_err(), "a new time of trouble is told again");
        }
    }

    #[test]
    fn every_line_is_one_write() {
        let disk = Disk::default();
        disk.0.lock().unwrap().0 = usize::MAX;
        let mut lines = Lines::new("x".into(), Box::new(disk.clone()));
        (0..10).for_each(|_| lines.append(0, &crate::tests::sample::interval(0, 0)).unwrap());
        assert_eq!(disk.0.lock().unwrap().2, 10);
    }

    #[test]
    fn a_full_device_is_reported() {
        let Ok(full) = OpenOptions::new().append(true).open("/dev/full") else { return };
        let mut lines = Lines::new("/dev/full".into(), Box::new(full));
        let value = serde_json::json!({"a": 1});
        let error = lines.append(0, &value).unwrap_err();
        assert!(error.diagnostic().help.unwrap().english().starts_with("free some disk space"));
        assert!(lines.append(0, &value).is_ok());
        assert_eq!(lines.lost, 2);
    }

    #[test]
    fn a_run_directory_is_accessible_only_to_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("run");
        let mut recorder = Recorder::create(&directory, &RunInfo::default(), "x").unwrap();
        recorder.finish(&RunInfo::default()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory), 0o700);
        for entry in std::fs::read_dir(&directory).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
        let named = crate::create_directory(parent.path(), std::time::Duration::ZERO, "x").unwrap();
        assert_eq!(mode(&named), 0o700);
    }

    #[test]
    fn a_run_directory_is_never_overwritten() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a/b");
        let info = RunInfo::default();
        Recorder::create(&directory, &info, "name: x").unwrap();
        let error = Recorder::create(&directory, &info, "name: y").err().unwrap();
        assert_eq!(error.error.kind(), io::ErrorKind::AlreadyExists);
        let text = std::fs::read_to_string(directory.join(SCENARIO_FILE)).unwrap();
        assert_eq!(text, "name: x");
    }
}
