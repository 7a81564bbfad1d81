//! Compresses the segments of a long run in a separate thread. A segment that cannot be compressed
//! stays as it is, so no lines are lost.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use throng_metrics::Interval;
use zstd::stream::write::Encoder;

use crate::directory::{EVENTS_FILE, RunInfo, create_new};
use crate::event::Event;
use crate::record::lines::{Records, json_onto};
use crate::record::segments::{
    BUFFER_BYTES, Chain, Checkpoint, Counted, MINUTE_S, Segment, Sums, checkpoint_path,
    minutes_path, open, packed_path, plain_path,
};

/// Takes a tenth of the time of the best level, for files that are a fifth larger.
const LEVEL: i32 = 9;

/// Compresses segments in a separate thread.
pub(crate) struct Packer {
    numbers: Option<Sender<u32>>,
    thread: Option<JoinHandle<()>>,
}

impl Packer {
    /// If the thread cannot be started, segments stay uncompressed.
    pub(crate) fn new(directory: &Path, info: &RunInfo) -> Packer {
        let packing = Packing::new(directory, info);
        let (numbers, segments) = channel();
        let thread = std::thread::Builder::new().name("packer".into());
        let thread = thread.spawn(move || packing.work(&segments)).ok();
        Packer { numbers: thread.is_some().then_some(numbers), thread }
    }

    /// The segments up to this one are complete.
    pub(crate) fn pack(&self, number: u32) {
        if let Some(numbers) = &self.numbers {
            let _ = numbers.send(number);
        }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        self.numbers = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Packing {
    directory: PathBuf,
    checkpoint: Checkpoint,
    /// A line was unreadable or a file could not be written, so the checkpoint stays as it is.
    is_broken: bool,
}

/// A file that is renamed when it is complete.
struct NewFile {
    path: PathBuf,
    new: PathBuf,
    out: Encoder<'static, Counted<BufWriter<File>>>,
}

impl NewFile {
    fn create(path: PathBuf) -> io::Result<NewFile> {
        let new = path.with_extension("new");
        let _ = std::fs::remove_file(&new);
        let file = BufWriter::with_capacity(BUFFER_BYTES, create_new(&new)?);
        let mut out = Encoder::new(Counted::new(file), LEVEL)?;
        out.include_checksum(true)?;
        Ok(NewFile { path, new, out })
    }

    fn finish(self) -> io::Result<Segment> {
        let NewFile { path, new, out } = self;
        let mut counted = out.finish()?;
        counted.flush()?;
        let segment = counted.segment();
        counted.out.get_ref().sync_all()?;
        std::fs::rename(&new, &path)?;
        Ok(segment)
    }
}

impl Packing {
    fn new(directory: &Path, info: &RunInfo) -> Packing {
        let checkpoint = Checkpoint::nothing(info);
        Packing { directory: directory.to_path_buf(), checkpoint, is_broken: false }
    }

    fn work(mut self, numbers: &Receiver<u32>) {
        for number in numbers {
            // A segment that cannot be compressed stays as it is.
            let packed = self.pack(number);
            if packed.is_err() {
                for path in [packed_path, minutes_path].map(|path| path(&self.directory, number)) {
                    let _ = std::fs::remove_file(path.with_extension("new"));
                }
            }
            let told = packed.and_then(|()| match self.is_broken {
                true => Ok(()),
                false => self.write_checkpoint(),
            });
            self.is_broken |= told.is_err();
        }
    }

    fn pack(&mut self, number: u32) -> io::Result<()> {
        // Events determine when phases end, so they are read before the lines.
        let events = Chain::open(vec![self.directory.join(EVENTS_FILE)])?;
        let figures = &mut self.checkpoint.figures;
        Records::<Event>::new(Box::new(BufReader::new(events))).for_each(|it| figures.event(&it));
        let plain = plain_path(&self.directory, number);
        let mut minutes = NewFile::create(minutes_path(&self.directory, number))?;
        let mut packed = NewFile::create(packed_path(&self.directory, number))?;
        io::copy(&mut open(&plain)?, &mut packed.out)?;
        let mut lines = Records::<Interval>::behind(open(&plain)?, self.checkpoint.lines);
        let mut sums = Sums::new(MINUTE_S);
        let (mut result, mut line) = (Ok(()), Vec::new());
        let mut told = |sum: Interval| {
            line.clear();
            let written = json_onto(&mut line, &sum).map_err(io::Error::from);
            line.push(b'\n');
            let written = written.and_then(|()| minutes.out.write_all(&line));
            if result.is_ok() {
                result = written;
            }
        };
        for interval in lines.by_ref() {
            self.checkpoint.totals.interval(&interval);
            figures.interval(&interval);
            sums.add(interval, &mut told);
        }
        sums.finish(&mut told);
        result?;
        self.is_broken |= !lines.is_whole();
        self.checkpoint.lines = lines.last_number();
        minutes.finish()?;
        self.checkpoint.segments.push(packed.finish()?);
        std::fs::remove_file(&plain)
    }

    fn write_checkpoint(&self) -> io::Result<()> {
        let path = checkpoint_path(&self.directory);
        let new = path.with_extension("new");
        let _ = std::fs::remove_file(&new);
        let mut text = Vec::new();
        json_onto(&mut text, &self.checkpoint)?;
        let mut file = create_new(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&new, &path)
    }
}
