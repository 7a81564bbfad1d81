//! Finds the end of a reply in one pass, however its bytes arrive.

use std::ops::Range;

use super::violation::{DEPTH_MAX, Foreign, LINE_BYTES_MAX, Violation};

/// The shortest item of a list: a type byte, CR and LF.
const ITEM_BYTES_MIN: u64 = 3;

/// The line that starts an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head<'a> {
    /// A word such as `OK`.
    Status(&'a [u8]),
    Error(&'a [u8]),
    Number(i64),
    /// This many bytes follow, and CR and LF.
    Text(u64),
    /// This many items follow.
    List(u64),
    Nothing,
}

/// The head at the start of `input`, and its length; `None` if it is incomplete.
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

/// Progress in a reply.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// How many of its bytes were scanned.
    at: usize,
    /// Items of the innermost open list that are missing.
    left: u64,
    /// The same for the enclosing lists.
    outer: Vec<u64>,
    error: Option<Range<usize>>,
}

/// A complete reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) bytes: usize,
    /// The first error in it, after its type byte.
    pub(super) error: Option<Range<usize>>,
}

impl Scan {
    /// Continues in `input`, which starts where the reply does; `None` if it is incomplete. After a
    /// reply, the next one is scanned.
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

    /// A list starts, in another one or as the reply.
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

    /// An item is complete, and so may be the lists that it ends. True if the reply is.
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
