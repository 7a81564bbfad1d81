//! Reads a file row by row, and records where blocks of rows start, so that any row of a file of
//! any size is found with one read. It handles rows, not their content.

use std::fs::File;
use std::io;
use std::path::Path;

use throng_base::{Said, plain, system};

use crate::csv::{self, Scan};
use crate::error::DataError;

/// Size limits; tests make everything small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The longest row, without its line end.
    pub row_bytes_max: usize,
    /// A file up to this size is kept in memory.
    pub memory_bytes_max: usize,
    /// A block of the index ends with the row that reaches one of these limits.
    pub block_rows_max: u64,
    pub block_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            row_bytes_max: crate::ROW_BYTES_MAX,
            memory_bytes_max: 4 * 1024 * 1024,
            // Small enough that any row is found in two or three microseconds, large enough that
            // ten million rows need an index of 4 MB.
            block_rows_max: 64,
            block_bytes_max: 64 * 1024,
        }
    }
}

/// How rows are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Csv { separator: u8 },
    JsonLines,
}

impl Format {
    pub(crate) fn csv(separator: u8) -> Result<Format, DataError> {
        if separator.is_ascii() && !matches!(separator, b'"' | b'\n' | b'\r') {
            return Ok(Format::Csv { separator });
        }
        let separator = separator.escape_ascii();
        Err(DataError::new("data-column", say!("`{separator}` is not a valid column separator"))
            .help(say!("use `,`, `;`, `|` or a tab")))
    }

    /// The extent of the row at the start of `bytes`; `last` means that no bytes follow.
    fn scan(self, bytes: &[u8], last: bool) -> Scan {
        match self {
            Format::Csv { separator } => csv::scan(bytes, last, separator),
            Format::JsonLines => match memchr::memchr(b'\n', bytes) {
                Some(newline) => Scan::Row { length: newline + 1, lines: 1 },
                None if last => Scan::Row { length: bytes.len(), lines: 1 },
                None => Scan::More { quote: None },
            },
        }
    }

    /// True for an empty line.
    fn is_blank(self, content: &[u8]) -> bool {
        match self {
            Format::Csv { .. } => content.is_empty(),
            Format::JsonLines => content.trim_ascii().is_empty(),
        }
    }
}

/// A row without its line end.
fn content(row: &[u8]) -> &[u8] {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    row.strip_suffix(b"\r").unwrap_or(row)
}

/// Opens a seekable file: not a folder, pipe or terminal.
pub(crate) fn open(path: &Path) -> Result<File, DataError> {
    let unreadable = |cause: io::Error| DataError::unreadable(path, &cause);
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        let message = say!("`{}` is not a file", path.display());
        return Err(DataError::new("data-unreadable", message)
            .file(path)
            .help(say!("give a regular file; folders, pipes and devices are not seekable")));
    }
    plain::open(path).map_err(unreadable)
}

/// Bytes that can be read at any position.
pub(crate) trait ReadAt {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        system::read_at(self, buffer, offset)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let count = buffer.len().min(self.len() - from);
        buffer[..count].copy_from_slice(&self[from..from + count]);
        Ok(count)
    }
}

/// Fills the buffer as far as bytes are available.
pub(crate) fn read_full(bytes: &dyn ReadAt, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match bytes.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A row in the window of a [`Walk`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Its first line, counted from 1.
    pub line: u64,
    start: usize,
    length: usize,
}

/// The position of a block of rows, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The number of its first row.
    pub row: u64,
    pub offset: u64,
    pub length: u32,
    /// See [`fingerprint`].
    pub check: u32,
}

/// Reads the rows of a file. The window covers at least the start of the current block to the end
/// of the current row.
pub(crate) struct Walk<'a> {
    bytes: &'a dyn ReadAt,
    format: Format,
    path: &'a Path,
    limits: &'a Limits,
    window: Vec<u8>,
    /// The position of the window in the file.
    offset: u64,
    /// Positions in the window: start of the block, next row, end of the data.
    block: usize,
    next: usize,
    filled: usize,
    ended: bool,
    line: u64,
    /// Rows before the current block, and in it.
    rows_before: u64,
    rows_in_block: u64,
    marks: Vec<Mark>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        bytes: &'a dyn ReadAt,
        format: Format,
        path: &'a Path,
        limits: &'a Limits,
    ) -> Walk<'a> {
        // A block has at most `block_bytes_max` and a row; one more row is read ahead.
        let size = limits.block_bytes_max + 2 * (limits.row_bytes_max + 2) + 1;
        Walk {
            bytes,
            format,
            path,
            limits,
            window: vec![0; size],
            offset: 0,
            block: 0,
            next: 0,
            filled: 0,
            ended: false,
            line: 1,
            rows_before: 0,
            rows_in_block: 0,
            marks: Vec::new(),
        }
    }

    pub(crate) fn path(&self) -> &'a Path {
        self.path
    }

    pub(crate) fn separator(&self) -> u8 {
        match self.format {
            Format::Csv { separator } => separator,
            Format::JsonLines => b'\n',
        }
    }

    /// The row as text.
    pub(crate) fn text(&self, row: &Found) -> Result<&str, DataError> {
        let bytes = content(&self.window[row.start..row.start + row.length]);
        std::str::from_utf8(bytes).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            let line = row.line + memchr::memchr_iter(b'\n', before).count() as u64;
            DataError::new("data-malformed", say!("the line is not valid UTF-8"))
                .file(self.path)
                .line(line)
                .help(say!("save the file as UTF-8, for example with `iconv -t UTF-8`"))
        })
    }

    /// The next row that is not empty. It stays readable until the next call.
    pub(crate) fn next(&mut self) -> Result<Option<Found>, DataError> {
        loop {
            if self.block_is_full() {
                self.end_block();
            }
            if self.next == self.filled {
                if self.ended {
                    return Ok(None);
                }
                self.refill()?;
                continue;
            }
            let rest = &self.window[self.next..self.filled];
            let (length, lines) = match self.format.scan(rest, self.ended) {
                Scan::Row { length, lines } => (length, lines),
                Scan::More { quote } => {
                    if rest.len() > self.limits.row_bytes_max + 2 {
                        return Err(self.too_long(quote));
                    }
                    self.refill()?;
                    continue;
                }
                Scan::Unclosed { line } => return Err(self.unclosed(line)),
                Scan::AfterQuote { line } => return Err(self.after_quote(line)),
            };
            let bytes = content(&rest[..length]);
            if bytes.len() > self.limits.row_bytes_max {
                return Err(self.too_long(None));
            }
            let blank = self.format.is_blank(bytes);
            let found = Found { line: self.line, start: self.next, length };
            self.next += length;
            self.line += lines;
            if !blank {
                self.rows_in_block += 1;
                return Ok(Some(found));
            }
        }
    }

    fn block_is_full(&self) -> bool {
        self.rows_in_block >= self.limits.block_rows_max
            || self.next - self.block >= self.limits.block_bytes_max
    }

    /// The number of rows, and the blocks.
    pub(crate) fn finish(mut self) -> (u64, Vec<Mark>) {
        self.end_block();
        self.marks.shrink_to_fit();
        (self.rows_before, self.marks)
    }

    fn end_block(&mut self) {
        if self.rows_in_block > 0 {
            self.marks.push(Mark {
                row: self.rows_before,
                offset: self.offset + self.block as u64,
                length: (self.next - self.block) as u32,
                check: fingerprint(&self.window[self.block..self.next]),
            });
        }
        self.rows_before += self.rows_in_block;
        self.rows_in_block = 0;
        self.block = self.next;
    }

    /// Excludes the rows so far from the blocks, such as the header.
    pub(crate) fn skip(&mut self) {
        self.rows_in_block = 0;
        self.block = self.next;
    }

    fn refill(&mut self) -> Result<(), DataError> {
        self.window.copy_within(self.block..self.filled, 0);
        self.offset += self.block as u64;
        self.next -= self.block;
        self.filled -= self.block;
        self.block = 0;
        let at = self.offset + self.filled as u64;
        let free = &mut self.window[self.filled..];
        let wanted = free.len();
        let count = read_full(self.bytes, free, at)
            .map_err(|cause| DataError::unreadable(self.path, &cause))?;
        self.filled += count;
        self.ended = count < wanted;
        if at == 0 && self.window[..self.filled].starts_with(b"\xEF\xBB\xBF") {
            // A byte order mark is not part of the first row.
            self.next = 3;
            self.block = 3;
        }
        Ok(())
    }

    fn malformed(&self, line: u64, message: Said) -> DataError {
        DataError::new("data-malformed", message).file(self.path).line(self.line + line)
    }

    fn too_long(&self, quote: Option<u64>) -> DataError {
        let max = self.limits.row_bytes_max;
        match quote {
            Some(line) => self
                .malformed(line, say!("a quote is not closed within {max} bytes"))
                .help(say!("close it; inside a quoted field, write a quote as two quotes")),
            None => self
                .malformed(0, say!("the row is longer than {max} bytes"))
                .help(say!("make it shorter; check that the file has line breaks")),
        }
    }

    fn unclosed(&self, line: u64) -> DataError {
        self.malformed(line, say!("a quote is never closed"))
            .help(say!("close it; inside a quoted field, write a quote as two quotes"))
    }

    fn after_quote(&self, line: u64) -> DataError {
        let separator = char::from(self.separator()).escape_default();
        self.malformed(line, say!("a closing quote is not followed by `{separator}`"))
            .help(say!("inside a quoted field, write a quote as two quotes"))
    }
}

/// The boundaries of rows in a block. Stops at the first bytes that are not a row, which only
/// happens if the block has changed.
#[derive(Debug)]
pub(crate) struct Split {
    at: usize,
    rows: Vec<(u32, u32)>,
}

impl Split {
    pub(crate) fn new() -> Split {
        Split { at: 0, rows: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.at = 0;
        self.rows.clear();
    }

    /// The bytes of the block's row with this number, without its line end.
    pub(crate) fn row<'b>(
        &mut self,
        block: &'b [u8],
        number: usize,
        format: Format,
    ) -> Option<&'b [u8]> {
        while self.rows.len() <= number {
            let rest = block.get(self.at..).filter(|rest| !rest.is_empty())?;
            let Scan::Row { length, .. } = format.scan(rest, true) else { return None };
            let bytes = content(&rest[..length]);
            if !format.is_blank(bytes) {
                self.rows.push((self.at as u32, (self.at + bytes.len()) as u32));
            }
            self.at += length;
        }
        let (start, end) = self.rows[number];
        block.get(start as usize..end as usize)
    }
}

/// A checksum of bytes: multiply and rotate, eight bytes at a time. It detects files that change
/// during a run, not deliberate forgery.
pub(crate) fn fingerprint(bytes: &[u8]) -> u32 {
    const FACTOR: u64 = 0xD134_2543_DE82_EF95;
    let step = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum =
        words.iter().fold(bytes.len() as u64, |sum, word| step(sum, u64::from_le_bytes(*word)));
    let mut tail = [0; 8];
    tail[..rest.len()].copy_from_slice(rest);
    let sum = step(sum, u64::from_le_bytes(tail));
    ((sum ^ (sum >> 29)).wrapping_mul(FACTOR) >> 32) as u32
}
