//! Writes a run directory while the run goes on. Every line is one write to a file opened for
//! appending, so that a kill at any moment leaves at most one torn line, at the end.
//!
//! - `lines`: reads lines, also torn and damaged ones.
//! - `segments`: the lines of a long run, packed and summed up while it goes on.
//! - `packer`: packs segments beside the run.

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

/// Writes the record of one run.
pub struct Recorder {
    directory: PathBuf,
    intervals: Lines,
    events: Lines,
    /// How many segments were begun, and what packs them, once there is one.
    segments: u32,
    packer: Option<Packer>,
    info: RunInfo,
    segment_bytes: u64,
    /// The end of the last interval: the time of events about the recording itself.
    at_ns: u64,
    /// Of all that was to be recorded, whether it could be or not.
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
    /// What a person is told at once. The run itself goes on.
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
    /// Begins a record in `directory`, which is made when it is not there and must not hold a
    /// record already.
    pub fn create(
        directory: &Path,
        info: &RunInfo,
        scenario_text: &str,
    ) -> Result<Recorder, RecordError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |error| RecordError { path, error }
        };
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).private();
        builder.create(directory).map_err(failed(directory))?;
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

    /// How many lines could not be written.
    pub fn lost(&self) -> u64 {
        self.intervals.lost + self.events.lost
    }

    /// Appends an interval. An error is returned once for each time of trouble: later intervals
    /// are tried again, and counted as lost without a word as long as the trouble lasts.
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
            // What cannot be made a segment goes on as it is, until it is as long again.
            let _ = self.end_segment();
            self.intervals.bytes = 0;
        }
        result
    }

    /// The lines so far become a segment, which is packed while the run goes on.
    fn end_segment(&mut self) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).private();
        builder.create(segments::folder(&self.directory))?;
        let path = &self.intervals.path;
        let new = path.with_extension("new");
        let file = create_new(&new)?;
        let number = self.segments + 1;
        std::fs::rename(path, segments::plain_path(&self.directory, number))?;
        // Readers take segments alone where there is a moment without a file behind them.
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

    /// Writes `run.json` for the last time, with the lines lost and the totals.
    pub fn finish(&mut self, info: &RunInfo) -> Result<(), RecordError> {
        // Waits for the segments that are being packed.
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

    /// Keeps room for the end of the run, which has to be told where the disk fills up meanwhile.
    /// Where there is none already, the end is tried all the same.
    fn reserve_end(&self, begin_length: usize) {
        let zeros = vec![0; begin_length + END_BYTES];
        let path = self.new_info();
        let new = create_new(&path);
        if new.and_then(|mut file| file.write_all(&zeros)).is_err() {
            let _ = std::fs::remove_file(&path);
        }
    }

    /// Replaces `run.json` in one step, so that there is always a whole one; says how long it is.
    fn write_info(&self, info: &RunInfo) -> Result<usize, RecordError> {
        let path = self.directory.join(RUN_FILE);
        let new = self.new_info();
        let write = || {
            let mut text = serde_json::to_vec_pretty(info)?;
            text.push(b'\n');
            // Over what was reserved: emptied first, the room would be gone.
            let mut open = OpenOptions::new();
            let mut file = open.write(true).create(true).truncate(false).private().open(&new)?;
            file.write_all(&text)?;
            file.set_len(text.len() as u64)?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            Ok(text.len())
        };
        write().map_err(|error| {
            // What is left of the attempt is of no use; that it cannot be removed changes nothing.
            let _ = std::fs::remove_file(&new);
            RecordError { path, error }
        })
    }

    fn new_info(&self) -> PathBuf {
        self.directory.join(format!("{RUN_FILE}.new"))
    }
}

/// By how much `run.json` may grow until the end of the run: verdicts and reasons.
const END_BYTES: usize = 4096;

/// Makes a file of a record, for who made it alone, and the folders that it is in.
pub fn create_file(path: &Path) -> Result<File, RecordError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).private();
    let made = path.parent().map_or(Ok(()), |folder| builder.create(folder));
    made.and_then(|()| create_new(path))
        .map_err(|error| RecordError { path: path.to_path_buf(), error })
}

/// A file of lines, each one JSON value.
struct Lines {
    path: PathBuf,
    out: Box<dyn Write + Send>,
    line: Vec<u8>,
    /// The last write failed, and this was said.
    in_trouble: bool,
    /// A piece of a line was written; the next line begins with a newline that ends it.
    torn: bool,
    lost: u64,
    /// Written since the file was begun.
    bytes: u64,
    /// Of the last line, counted from 1; one that could not be written has a number too.
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
            // A line that lacks only its newline is whole: the next one brings it.
            self.lost += u64::from(written + 1 < self.line.len());
            self.torn |= written > 0;
        } else {
            self.torn = false;
        }
        result
    }
}

/// The JSON of a value, an object with at least one field, with its number in front, and the
/// machine where it is not the first.
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

/// Writes a line, in one write unless the system takes only a piece. Says how much was written.
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

    /// A disk with room for so many bytes.
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
    fn a_full_disk_is_told_once_and_recording_goes_on_when_there_is_room() {
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
    fn a_real_full_device() {
        let Ok(full) = OpenOptions::new().append(true).open("/dev/full") else { return };
        let mut lines = Lines::new("/dev/full".into(), Box::new(full));
        let value = serde_json::json!({"a": 1});
        let error = lines.append(0, &value).unwrap_err();
        assert!(error.diagnostic().help.unwrap().english().starts_with("free some disk space"));
        assert!(lines.append(0, &value).is_ok());
        assert_eq!(lines.lost, 2);
    }

    #[test]
    fn a_record_is_for_who_made_it() {
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
    fn a_record_is_never_overwritten() {
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
