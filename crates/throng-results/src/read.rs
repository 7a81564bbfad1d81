//! Reads run directories. Lines are read one by one, so that memory does not depend on the length
//! of a run.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use throng_base::Said;

use serde::Deserialize;
use throng_base::Diagnostic;
use throng_metrics::Interval;

use crate::collector::Collector;
use crate::directory::{
    EVENTS_FILE, FILE_BYTES_MAX, FORMAT, FORMAT_MIN, RECORDS, RUN_FILE, RunInfo, SCENARIO_FILE,
    STAMP_BYTES,
};
use crate::event::Event;
use crate::record::lines::{Accepted, Parsed, Records};
use crate::record::segments::{self, Chain, Checkpoint, MINUTE_S, Sums};
use crate::summary::{Damage, Summary};

/// Maximum number of run directories that are read to find a matching one.
const NEWEST_MAX: usize = 1_000;

/// A run directory.
#[derive(Debug)]
pub struct Run {
    pub directory: PathBuf,
    pub info: RunInfo,
    /// The scenario as executed; empty if the file is missing.
    pub scenario: String,
}

impl Run {
    /// Opens a run directory, even during the run.
    pub fn open(directory: &Path) -> Result<Run, Box<Diagnostic>> {
        let path = directory.join(RUN_FILE);
        let text = read_file(&path).map_err(|error| {
            let message = say!("{} is not a run directory", directory.display());
            let told = Diagnostic::error("run-unreadable", message)
                .note(say!("cause: {}: {error}", path.display(), error = Said::of_error(&error)))
                .help(say!("give the directory that `throng` printed at the end of the run"));
            Box::new(told)
        })?;
        check_format(&path, &text)?;
        let info: RunInfo =
            serde_json::from_slice(&text).map_err(|error| damaged(&path, &error))?;
        let scenario = read_file(&directory.join(SCENARIO_FILE)).unwrap_or_default();
        let scenario = String::from_utf8_lossy(&scenario).into_owned();
        Ok(Run { directory: directory.to_path_buf(), info, scenario })
    }

    /// The newest run below [`RECORDS`] for which `fits` is true. Only the newest thousand
    /// directories are read.
    pub fn newest(fits: impl Fn(&Run) -> bool) -> Option<Run> {
        let entries = std::fs::read_dir(RECORDS).ok()?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // Names begin with the start time in seconds.
        paths.sort_unstable_by(|a, b| b.cmp(a));
        let runs = paths.iter().take(NEWEST_MAX).filter_map(|path| Run::open(path).ok());
        let mut runs = runs.filter(fits);
        let first = runs.next()?;
        let stamp = stamp(&first.directory);
        let later = runs.take_while(|run| self::stamp(&run.directory) == stamp);
        std::iter::once(first)
            .chain(later.collect::<Vec<_>>())
            .max_by(|a, b| a.info.time.started.cmp(&b.info.time.started))
    }

    /// The intervals in the order in which they were written.
    pub fn intervals(&self) -> Result<Records<Interval>, Box<Diagnostic>> {
        self.records(segments::files(&self.directory, 0), 0)
    }

    /// The sums of this many seconds in order, separate for each phase and machine. The second of a
    /// sum is its last. Long runs already contain the sums of whole minutes; lines that were too
    /// late for their sum form another one.
    pub fn summed(
        &self,
        seconds: u64,
        mut look: impl FnMut(Interval),
    ) -> Result<(), Box<Diagnostic>> {
        let checkpoint = match seconds.is_multiple_of(MINUTE_S) {
            true => Checkpoint::read(&self.directory, &self.info),
            false => None,
        };
        let mut sums = Sums::new(seconds.max(1));
        let mut packed = 0;
        if let Some(checkpoint) = &checkpoint {
            packed = checkpoint.segments();
            let files = checkpoint.minutes(&self.directory);
            ahead(files, |interval| sums.add(interval, &mut look));
        }
        let rest = self.records(segments::files(&self.directory, packed), 0)?;
        rest.for_each(|interval| sums.add(interval, &mut look));
        sums.finish(&mut look);
        Ok(())
    }

    /// The events in the order in which they were written.
    pub fn events(&self) -> Result<Records<Event>, Box<Diagnostic>> {
        self.records(vec![self.directory.join(EVENTS_FILE)], 0)
    }

    /// Sums up the run, and reports what is missing. Stored sums are used if they are unchanged.
    pub fn summary(&self) -> Result<Summary, Box<Diagnostic>> {
        match Checkpoint::read(&self.directory, &self.info) {
            Some(checkpoint) => self.sum_up(checkpoint, |_| {}),
            None => self.summary_beside(|_| {}),
        }
    }

    /// The same, and passes each interval to `look`: the run directory is read once.
    pub fn summary_beside(&self, look: impl FnMut(&Interval)) -> Result<Summary, Box<Diagnostic>> {
        self.sum_up(Checkpoint::nothing(&self.info), look)
    }

    /// Continues from stored sums.
    fn sum_up(
        &self,
        from: Checkpoint,
        mut look: impl FnMut(&Interval),
    ) -> Result<Summary, Box<Diagnostic>> {
        let mut intervals: Records<Interval> =
            self.records(segments::files(&self.directory, from.segments()), from.lines)?;
        let mut collector = Collector::resume(from.figures, &self.info);
        let mut events = self.events()?;
        events.by_ref().for_each(|event| collector.event(&event));
        let mut totals = from.totals;
        intervals.by_ref().for_each(|interval| {
            totals.interval(&interval);
            look(&interval);
            collector.interval(&interval);
        });
        let wanted = self.info.end.totals.as_ref();
        (totals.events, totals.intervals) =
            wanted.map_or((0, 0), |wanted| (wanted.events, wanted.intervals));
        let missing = events.numbers().missing(wanted.map(|wanted| wanted.events))
            + intervals.numbers().missing(wanted.map(|wanted| wanted.intervals));
        let (events, intervals) = (events.damage, intervals.damage);
        let unreadable = events.unreadable + intervals.unreadable;
        let torn = events.torn || intervals.torn;
        collector.damage(Damage {
            unreadable,
            torn,
            // A line that is lost or unreadable is reported as such.
            missing: missing
                .saturating_sub(self.info.lines_lost.max(unreadable))
                .saturating_sub(u64::from(torn)),
            doubled: events.doubled + intervals.doubled,
            unequal: intervals.unequal,
            totals: wanted.is_some_and(|wanted| *wanted != totals).then_some(totals),
        });
        let mut summary = collector.finish(self.info.clone());
        summary.directory = Some(self.directory.clone());
        Ok(summary)
    }

    /// The records of several files; of numbered lines, only those after `last`.
    fn records<T>(&self, files: Vec<PathBuf>, last: u64) -> Result<Records<T>, Box<Diagnostic>> {
        let path = files.first().cloned().unwrap_or_default();
        match Chain::open(files) {
            Ok(chain) => {
                let input = BufReader::with_capacity(256 * 1024, chain);
                Ok(Records::behind(Box::new(input), last))
            }
            Err(error) => {
                let told =
                    Diagnostic::error("run-unreadable", say!("the run directory is not complete"))
                        .note(say!(
                            "cause: {}: {error}",
                            path.display(),
                            error = Said::of_error(&error)
                        ));
                Err(Box::new(told))
            }
        }
    }
}

/// Reads intervals in separate threads, a few ahead of `take`: one thread reads lines from disk,
/// and the others take turns to parse them, which is most of the work. The intervals and their
/// order are the same as with `Records`. Damage is not reported: this is used for curves, while the
/// results of a run are computed from its lines.
fn ahead(files: Vec<PathBuf>, mut take: impl FnMut(Interval)) {
    std::thread::scope(|scope| {
        let (mut lines, mut read) = (Vec::new(), Vec::new());
        for _ in 0..PARSERS {
            let (line, given) = sync_channel::<Vec<u8>>(AHEAD_MAX);
            let (interval, own) = sync_channel::<Option<Parsed<Interval>>>(AHEAD_MAX);
            lines.push(line);
            read.push(own);
            scope.spawn(move || {
                let parsed = given.iter().map(|line| Parsed::of(&line));
                // Stop if the receiver has ended.
                parsed.map_while(|it| interval.send(it).ok()).for_each(drop);
            });
        }
        scope.spawn(move || {
            let Ok(chain) = Chain::open(files) else { return };
            let input = BufReader::with_capacity(256 * 1024, chain);
            let mut texts = Records::<Interval>::new(Box::new(input));
            let turns = lines.iter().cycle();
            turns.map_while(|turn| turn.send(texts.next_text()?).ok()).for_each(drop);
        });
        // In the order of the lines: the parser whose turn it is ends after the last one.
        let turns = read.iter().cycle();
        let mut accepted = Accepted::behind(0);
        let parsed = turns.map_while(|turn| turn.recv().ok()).flatten();
        parsed.filter_map(|it| Some(accepted.take(it).ok()?.record)).for_each(&mut take);
    });
}

/// Number of parser threads.
const PARSERS: usize = 2;
/// Maximum number of lines and of intervals that wait for each thread.
const AHEAD_MAX: usize = 4;

fn stamp(directory: &Path) -> Option<Vec<u8>> {
    let name = directory.file_name()?.as_encoded_bytes();
    name.get(..STAMP_BYTES).map(<[u8]>::to_vec)
}

fn check_format(path: &Path, text: &[u8]) -> Result<(), Box<Diagnostic>> {
    #[derive(Deserialize)]
    struct Versioned {
        format: u64,
    }
    let versioned: Versioned =
        serde_json::from_slice(text).map_err(|error| damaged(path, &error))?;
    let format = versioned.format;
    if (u64::from(FORMAT_MIN)..=u64::from(FORMAT)).contains(&format) {
        return Ok(());
    }
    let message = say!(
        "the run directory has format {format}, but this version of throng reads \
             {FORMAT_MIN} to {FORMAT}"
    );
    let told = Diagnostic::error("format-unknown", message)
        .note(say!("cause: {} was written by another version of throng", path.display()))
        .help(say!("read it with the version of throng that wrote it, or a newer one"));
    Err(Box::new(told))
}

fn damaged(path: &Path, error: &serde_json::Error) -> Box<Diagnostic> {
    let told = Diagnostic::error("run-unreadable", say!("{} is damaged", path.display()))
        .note(say!("cause: {error}"));
    Box::new(told)
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    throng_base::plain::read(path, FILE_BYTES_MAX)
}

#[cfg(test)]
mod tests;
