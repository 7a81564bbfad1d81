//! The times of an access log in the common or the combined format: how many requests there were
//! in each second. However long the log is, only its seconds are kept.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use throng_base::units::format_count;

use crate::error::DataError;
use crate::file;
use crate::moment::log_time;

/// More seconds with requests in them are not read: eleven days without a pause.
pub const SECONDS_MAX: usize = 1_000_000;
/// Servers write a line when its request is over, with the time at which it began: lines are back
/// in time by as much as requests take. More than this is another log.
const BACK_SECONDS_MAX: i64 = 3600;
const BUFFER_BYTES: usize = 256 * 1024;
/// The time stands in the first part of a line; nothing behind this is looked at.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Requests by second, in order, from second 0 on; there are some in the first and in the last.
pub type Seconds = Vec<(u64, u64)>;

/// Reads a log, which may be compressed by gzip.
pub fn read(path: &Path) -> Result<Seconds, DataError> {
    let file = file::open(path)?;
    let unreadable = |cause: io::Error| DataError::unreadable(path, &cause);
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let is_compressed = reader.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
    match is_compressed {
        true => {
            let plain = MultiGzDecoder::new(reader);
            count(&mut BufReader::with_capacity(BUFFER_BYTES, plain), path)
        }
        false => count::<BufReader<File>>(&mut reader, path),
    }
}

fn count<R: BufRead>(reader: &mut R, path: &Path) -> Result<Seconds, DataError> {
    let mut log = Log::default();
    let mut line: Vec<u8> = Vec::new();
    loop {
        line.clear();
        let ended =
            read_line(reader, &mut line).map_err(|cause| DataError::unreadable(path, &cause))?;
        if line.is_empty() && !ended {
            break;
        }
        log.lines += 1;
        let line_number = log.lines;
        let at = |error: DataError| error.file(path).line(line_number);
        match time_of(&line) {
            Some(second) => log.add(second).map_err(at)?,
            None if line.trim_ascii().is_empty() => {}
            // The server was about to write it.
            None if !ended => {}
            None => return Err(at(no_time())),
        }
    }
    log.finish().map_err(|error| error.file(path))
}

/// The begin of the next line, without its end. Whether it has one.
fn read_line<R: BufRead>(reader: &mut R, line: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        let bytes = match reader.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if bytes.is_empty() {
            return Ok(false);
        }
        let end = memchr::memchr(b'\n', bytes);
        let own = &bytes[..end.unwrap_or(bytes.len())];
        let room = LINE_BYTES_MAX - line.len().min(LINE_BYTES_MAX);
        line.extend_from_slice(&own[..own.len().min(room)]);
        let used = own.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// The time in the first brackets that hold one, in seconds since 1970.
fn time_of(line: &[u8]) -> Option<i64> {
    let brackets = memchr::memchr_iter(b'[', line);
    brackets.take(8).find_map(|at| {
        let inside = line.get(at + 1..at + 28)?;
        (inside[26] == b']').then(|| log_time(inside))?
    })
}

#[derive(Default)]
struct Log {
    lines: u64,
    counts: BTreeMap<i64, u64>,
    /// Of the second of the last line, which are not in `counts` yet.
    second: i64,
    count: u64,
    latest: Option<i64>,
}

impl Log {
    fn add(&mut self, second: i64) -> Result<(), DataError> {
        let latest = self.latest.map_or(second, |latest| latest.max(second));
        if latest - second > BACK_SECONDS_MAX {
            return Err(back_in_time(latest - second));
        }
        self.latest = Some(latest);
        if second != self.second {
            self.flush();
            self.second = second;
        }
        self.count += 1;
        match self.counts.len() > SECONDS_MAX {
            true => Err(too_long()),
            false => Ok(()),
        }
    }

    fn flush(&mut self) {
        if self.count > 0 {
            *self.counts.entry(self.second).or_default() += std::mem::take(&mut self.count);
        }
    }

    fn finish(mut self) -> Result<Seconds, DataError> {
        self.flush();
        let Some(first) = self.counts.keys().next().copied() else {
            let help = say!("use a non-empty log in the common or combined format");
            return Err(DataError::new("data-empty", say!("the log has no requests")).help(help));
        };
        let since = |(second, count): (i64, u64)| ((second - first) as u64, count);
        Ok(self.counts.into_iter().map(since).collect())
    }
}

fn no_time() -> DataError {
    let message = say!("the line has no time in brackets");
    let help = say!(
        "lines in the common or combined format contain a time such as `[10/Oct/2026:13:55:36 \
         +0000]`; remove all other lines"
    );
    DataError::new("data-malformed", message).help(help)
}

fn back_in_time(seconds: i64) -> DataError {
    let seconds = format_count(seconds.unsigned_abs());
    let message = say!("the line is {seconds} seconds earlier than the latest one");
    let help = say!("concatenate logs from oldest to newest: `cat access.log.1 access.log`");
    DataError::new("data-malformed", message).help(help)
}

fn too_long() -> DataError {
    let most = format_count(SECONDS_MAX as u64);
    let message = say!("the requests in the log are spread over more than {most} distinct seconds");
    DataError::new("data-malformed", message)
        .help(say!("shorten the log to the part that you want to replay"))
}

#[cfg(test)]
mod tests;
