//! The times in an access log in the common or combined format: the number of requests in each
//! second. Memory depends on the seconds, not on the length of the log. `request`: the requests
//! themselves, for a replay.

mod request;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use throng_base::units::format_count;

use crate::error::DataError;
use crate::file;
use crate::moment::log_time;

pub use request::{LogRequest, seconds};

/// Maximum number of seconds with requests: eleven days without a pause.
pub const SECONDS_MAX: usize = 1_000_000;
/// Servers write a line when its request ends, with the time at which it started, so times can go
/// back by the duration of requests. More than this means another log.
const BACK_SECONDS_MAX: i64 = 3600;
const BUFFER_BYTES: usize = 256 * 1024;
/// The time is in the first part of a line; the rest is not read.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Requests by second, in order, starting with second 0; the first and the last are not empty.
pub type Seconds = Vec<(u64, u64)>;

/// Reads a log, which can be compressed with gzip.
pub fn read(path: &Path) -> Result<Seconds, DataError> {
    let mut log = Log::default();
    walk(path, &mut |line, has_ended| log.line(line, has_ended))?;
    log.finish().map_err(|error| error.file(path))
}

/// Reads the requests of a log, in the order of its lines. Returns the number of lines without one.
pub fn requests(
    path: &Path,
    each: &mut dyn FnMut(LogRequest) -> Result<(), DataError>,
) -> Result<u64, DataError> {
    let (mut passed, mut latest, mut any) = (0, f64::NEG_INFINITY, false);
    walk(path, &mut |line, _| match request::parse(line) {
        Some(request) => {
            (latest, any) = (latest.max(request.at_s), true);
            match latest - request.at_s > BACK_SECONDS_MAX as f64 {
                true => Err(back_in_time((latest - request.at_s) as i64)),
                false => each(request),
            }
        }
        None => {
            passed += u64::from(!line.trim_ascii().is_empty());
            Ok(())
        }
    })?;
    match any {
        true => Ok(passed),
        false => Err(no_requests().file(path)),
    }
}

/// Handles a line without its line end, and whether it had one.
type EachLine<'a> = dyn FnMut(&[u8], bool) -> Result<(), DataError> + 'a;

fn walk(path: &Path, each: &mut EachLine<'_>) -> Result<(), DataError> {
    let file = file::open(path)?;
    let unreadable = |cause: io::Error| DataError::unreadable(path, &cause);
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let is_compressed = reader.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
    match is_compressed {
        true => {
            let plain = MultiGzDecoder::new(reader);
            walk_lines(&mut BufReader::with_capacity(BUFFER_BYTES, plain), path, each)
        }
        false => walk_lines::<BufReader<File>>(&mut reader, path, each),
    }
}

fn walk_lines<R: BufRead>(
    reader: &mut R,
    path: &Path,
    each: &mut EachLine<'_>,
) -> Result<(), DataError> {
    let mut line: Vec<u8> = Vec::new();
    for number in 1.. {
        line.clear();
        let has_ended =
            read_line(reader, &mut line).map_err(|cause| DataError::unreadable(path, &cause))?;
        if line.is_empty() && !has_ended {
            break;
        }
        each(&line, has_ended).map_err(|error| error.file(path).line(number))?;
    }
    Ok(())
}

/// Reads the start of the next line, without its line end. True if it had one.
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

/// The time in the first brackets that contain one, in seconds since 1970.
fn time_of(line: &[u8]) -> Option<i64> {
    let brackets = memchr::memchr_iter(b'[', line);
    brackets.take(8).find_map(|at| {
        let inside = line.get(at + 1..at + 28)?;
        (inside[26] == b']').then(|| log_time(inside))?
    })
}

#[derive(Default)]
struct Log {
    counts: BTreeMap<i64, u64>,
    /// The second of the last line, which is not in `counts` yet.
    second: i64,
    count: u64,
    latest: Option<i64>,
}

impl Log {
    fn line(&mut self, line: &[u8], has_ended: bool) -> Result<(), DataError> {
        match time_of(line) {
            Some(second) => self.add(second),
            None if line.trim_ascii().is_empty() => Ok(()),
            // The server had not finished the last line.
            None if !has_ended => Ok(()),
            None => Err(no_time()),
        }
    }

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
            return Err(no_requests());
        };
        let since = |(second, count): (i64, u64)| ((second - first) as u64, count);
        Ok(self.counts.into_iter().map(since).collect())
    }
}

fn no_requests() -> DataError {
    let help = say!("use a non-empty log in the common or combined format");
    DataError::new("data-empty", say!("the log has no requests")).help(help)
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
    let message = say!("the requests in the log span more than {most} distinct seconds");
    DataError::new("data-malformed", message)
        .help(say!("shorten the log to the part that you want to replay"))
}

#[cfg(test)]
mod tests;
