//! Where a reply ends: it is looked through once, however its bytes come.

use std::ops::Range;

use super::violation::{DEPTH_MAX, Foreign, LINE_BYTES_MAX, Violation};

/// The shortest item of a list: a mark, CR and LF.
const ITEM_BYTES_MIN: u64 = 3;

/// The line that an item begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head<'a> {
    /// A word such as `OK`.
    Status(&'a [u8]),
    Error(&'a [u8]),
    Number(i64),
    /// So many bytes follow, and CR and LF.
    Text(u64),
    /// So many items follow.
    List(u64),
    Nothing,
}

/// The head at the beginning of `input`, and how long it is; None if it is not complete.
#[inline]
pub(super) fn head(input: &[u8]) -> Result<Option<(Head<'_>, usize)>, Violation> {
    let Some(mark) = input.first() else { return Ok(None) };
    if !b"+-:$*".contains(mark) {
        return Err(Foreign::of(input).map_or(Violation::Mark(*mark), Violation::Foreign));
    }
    let line = &input[..input.len().min(LINE_BYTES_MAX)];
    let Some(end) = memchr::memchr(b'\n', line) else {
        return match input.len() < LINE_BYTES_MAX {
            true => Ok(None),
            false => Err(Violation::LineTooLong),
        };
    };
    let rest = input[1..end].strip_suffix(b"\r").ok_or(Violation::LineEnd)?;
    let number = || number(rest).ok_or(Violation::Number(*mark));
    let length = |number: i64| u64::try_from(number).map_err(|_| Violation::Number(*mark));
    let head = match mark {
        b'+' => Head::Status(rest),
        b'-' => Head::Error(rest),
        b':' => Head::Number(number()?),
        _ if rest == b"-1" => Head::Nothing,
        b'$' => Head::Text(length(number()?)?),
        _ => Head::List(length(number()?)?),
    };
    Ok(Some((head, end + 1)))
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// How far a reply was looked through.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// So many of its bytes are known.
    at: usize,
    /// Items of the innermost open list that are not complete.
    left: u64,
    /// The same of the lists around it.
    outer: Vec<u64>,
    error: Option<Range<usize>>,
}

/// A reply that is complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) bytes: usize,
    /// The first error in it, behind its mark.
    pub(super) error: Option<Range<usize>>,
}

impl Scan {
    /// Looks on in `input`, which begins where the reply does; None if it is not complete. After a
    /// reply, the next one is looked for.
    pub(super) fn next(&mut self, input: &[u8], limit: usize) -> Result<Option<Found>, Violation> {
        loop {
            let Some((head, bytes)) = head(&input[self.at.min(input.len())..])? else {
                return Ok(None);
            };
            let mut end = (self.at + bytes) as u64;
            match head {
                Head::Text(length) => {
                    end = end.saturating_add(length).saturating_add(2);
                    self.fits(end, limit)?;
                    match input.get(end as usize - 2..end as usize) {
                        None => return Ok(None),
                        Some(b"\r\n") => {}
                        Some(_) => return Err(Violation::TextEnd),
                    }
                }
                Head::List(items) if items > 0 => {
                    self.fits(end.saturating_add(items.saturating_mul(ITEM_BYTES_MIN)), limit)?;
                    self.at = end as usize;
                    self.open(items)?;
                    continue;
                }
                Head::Error(text) if self.error.is_none() => {
                    self.error = Some(self.at + 1..self.at + 1 + text.len());
                }
                _ => {}
            }
            self.fits(end, limit)?;
            self.at = end as usize;
            if self.item_ends() {
                let found = Found { bytes: self.at, error: self.error.take() };
                (self.at, self.left) = (0, 0);
                return Ok(Some(found));
            }
        }
    }

    fn fits(&self, bytes: u64, limit: usize) -> Result<(), Violation> {
        match bytes > limit as u64 {
            true => Err(Violation::TooLarge { bytes, limit }),
            false => Ok(()),
        }
    }

    /// A list begins, in another one or as the reply.
    fn open(&mut self, items: u64) -> Result<(), Violation> {
        if self.left > 0 {
            if self.outer.len() + 1 >= DEPTH_MAX {
                return Err(Violation::TooDeep);
            }
            self.outer.push(self.left);
        }
        self.left = items;
        Ok(())
    }

    /// An item is complete, and perhaps the lists that it is the last one of. Whether the reply is.
    fn item_ends(&mut self) -> bool {
        loop {
            self.left = self.left.saturating_sub(1);
            if self.left > 0 {
                return false;
            }
            match self.outer.pop() {
                Some(left) => self.left = left,
                None => return true,
            }
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.outer.capacity() * size_of::<u64>()
    }
}
