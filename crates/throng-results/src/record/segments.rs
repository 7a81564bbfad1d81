//! A long run in segments. When the file of intervals is large enough, it becomes a segment: its
//! lines are compressed (Zstandard, RFC 8878), their sums by minute are stored in another file, and
//! a checkpoint contains everything that a summary needs from the segments so far. A day is
//! therefore read as fast as an hour. A kill loses nothing: the unfinished part is a file of plain
//! lines.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use throng_base::plain;
use throng_metrics::{Interval, Merge as _};
use zstd::stream::read::Decoder;

use crate::collector::Figures;
use crate::directory::{FILE_BYTES_MAX, INTERVALS_FILE, RunInfo, Totals};

/// Size at which the file of intervals becomes a segment.
pub(crate) const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// Length of a sum in seconds.
pub(crate) const MINUTE_S: u64 = 60;

const FOLDER: &str = "segments";
const CHECKPOINT_FILE: &str = "checkpoint.json";
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;

pub(crate) fn folder(directory: &Path) -> PathBuf {
    directory.join(FOLDER)
}

/// The path of a segment before it is compressed.
pub(crate) fn plain_path(directory: &Path, number: u32) -> PathBuf {
    folder(directory).join(format!("{number:06}.ndjson"))
}

pub(crate) fn packed_path(directory: &Path, number: u32) -> PathBuf {
    folder(directory).join(format!("{number:06}.ndjson.zst"))
}

pub(crate) fn checkpoint_path(directory: &Path) -> PathBuf {
    folder(directory).join(CHECKPOINT_FILE)
}

pub(crate) fn minutes_path(directory: &Path, number: u32) -> PathBuf {
    folder(directory).join(format!("{number:06}.minutes.ndjson.zst"))
}

/// The existing segments after number `behind`, in order, and the current file.
pub(crate) fn files(directory: &Path, behind: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(directory)).into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let digits = name.strip_suffix(".ndjson").or_else(|| name.strip_suffix(".ndjson.zst"))?;
        digits.parse().ok().filter(|number| *number > behind)
    };
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    // A kill can leave both forms; the compressed one was complete before it was renamed.
    numbers.dedup();
    let mut files: Vec<PathBuf> = numbers
        .into_iter()
        .map(|number| {
            Some(packed_path(directory, number))
                .filter(|path| path.exists())
                .unwrap_or_else(|| plain_path(directory, number))
        })
        .collect();
    let last = directory.join(INTERVALS_FILE);
    if files.is_empty() || last.exists() {
        files.push(last);
    }
    files
}

/// Reads files one after another, compressed or not. If one becomes unreadable, the current line
/// ends, and the next file follows.
pub(crate) struct Chain {
    files: std::vec::IntoIter<PathBuf>,
    current: Option<Box<dyn BufRead>>,
}

impl Chain {
    /// Fails if the first file cannot be opened.
    pub(crate) fn open(files: Vec<PathBuf>) -> io::Result<Chain> {
        let mut chain = Chain { files: files.into_iter(), current: None };
        chain.next_file()?;
        Ok(chain)
    }

    fn next_file(&mut self) -> io::Result<()> {
        self.current = self.files.next().map(|path| open(&path)).transpose()?;
        Ok(())
    }
}

impl Read for Chain {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(current) = &mut self.current {
            match current.read(buffer) {
                Ok(0) if !buffer.is_empty() => self.next_file()?,
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.files.len() == 0 => return Err(error),
                Err(_) => {
                    self.next_file()?;
                    buffer[0] = b'\n';
                    return Ok(1);
                }
            }
        }
        Ok(0)
    }
}

pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = BufReader::with_capacity(BUFFER_BYTES, plain::open(path)?);
    Ok(match path.extension().is_some_and(|end| end == "zst") {
        true => Box::new(BufReader::with_capacity(BUFFER_BYTES, Decoder::with_buffer(file)?)),
        false => Box::new(file),
    })
}

/// Sums intervals over a number of seconds, separate for each phase and machine. The second of a
/// sum is its last, and its gauges are those of that second. Late intervals form another sum.
pub(crate) struct Sums {
    seconds: u64,
    /// By time, phase and machine.
    pending: BTreeMap<(u64, u16, u16), Interval>,
    latest: u64,
}

impl Sums {
    pub(crate) fn new(seconds: u64) -> Sums {
        Sums { seconds, pending: BTreeMap::new(), latest: 0 }
    }

    /// Adds an interval, and passes on complete sums.
    pub(crate) fn add(&mut self, interval: Interval, told: &mut impl FnMut(Interval)) {
        let place = interval.second / self.seconds;
        if place > self.latest {
            self.latest = place;
            // The previous sum may still receive late intervals.
            let open = self.pending.split_off(&(place - 1, 0, 0));
            self.tell(open, told);
        }
        let key = (place, interval.phase, interval.machine);
        match self.pending.get_mut(&key) {
            Some(sum) if sum.second == interval.second => {
                // Gauges of parts of the same second are added.
                let mut gauges = sum.gauges.clone();
                gauges.merge(&interval.gauges);
                sum.merge_later(&interval);
                sum.gauges = gauges;
            }
            Some(sum) => sum.merge_later(&interval),
            None => {
                self.pending.insert(key, interval);
            }
        }
    }

    /// Passes on the remaining sums.
    pub(crate) fn finish(&mut self, told: &mut impl FnMut(Interval)) {
        self.tell(BTreeMap::new(), told);
    }

    fn tell(&mut self, keep: BTreeMap<(u64, u16, u16), Interval>, told: &mut impl FnMut(Interval)) {
        std::mem::replace(&mut self.pending, keep).into_values().for_each(told);
    }
}

/// What a summary needs of the segments, with checks that they are unchanged.
#[derive(Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) segments: Vec<Segment>,
    /// The number of their last line.
    pub(crate) lines: u64,
    pub(crate) totals: Totals,
    pub(crate) figures: Figures,
}

/// A compressed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Segment {
    bytes: u64,
    crc32: u32,
}

impl Checkpoint {
    /// The checkpoint without segments.
    pub(crate) fn nothing(info: &RunInfo) -> Checkpoint {
        let figures = Figures::new(info);
        Checkpoint { segments: Vec::new(), lines: 0, totals: Totals::default(), figures }
    }

    /// Returns the checkpoint if it exists and all of its segments are unchanged.
    pub(crate) fn read(directory: &Path, info: &RunInfo) -> Option<Checkpoint> {
        // From bytes, like lines: another type of reader would be compiled separately.
        let text = plain::read(&checkpoint_path(directory), FILE_BYTES_MAX).ok()?;
        let found: Checkpoint = serde_json::from_slice(&text).ok()?;
        let mut numbered = (1..).zip(&found.segments);
        let same = numbered.all(|(number, segment)| {
            Segment::of(&packed_path(directory, number)).is_ok_and(|now| now == *segment)
        });
        let figures = found.figures.restored(info).filter(|_| same)?;
        Some(Checkpoint { figures, ..found })
    }

    /// The files with their sums by minute.
    pub(crate) fn minutes(&self, directory: &Path) -> Vec<PathBuf> {
        (1..).zip(&self.segments).map(|(number, _)| minutes_path(directory, number)).collect()
    }

    pub(crate) fn segments(&self) -> u32 {
        u32::try_from(self.segments.len()).unwrap_or(u32::MAX)
    }
}

impl Segment {
    fn of(path: &Path) -> io::Result<Segment> {
        let mut file = plain::open(path)?;
        let mut counted = Counted::new(io::sink());
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(counted.segment()),
                count => counted.write_all(&buffer[..count])?,
            }
        }
    }
}

/// Counts the written bytes.
pub(crate) struct Counted<W> {
    pub(crate) out: W,
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl<W: Write> Counted<W> {
    pub(crate) fn new(out: W) -> Counted<W> {
        Counted { out, crc: crc32fast::Hasher::new(), bytes: 0 }
    }

    pub(crate) fn segment(&self) -> Segment {
        Segment { bytes: self.bytes, crc32: self.crc.clone().finalize() }
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.crc.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
