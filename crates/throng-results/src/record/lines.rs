//! Reads the lines of a run directory. Torn or damaged lines are counted and skipped. Numbers that
//! no run can reach count as damage, so that sums cannot overflow.

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use throng_metrics::{Interval, Merge, StepInterval};

use crate::directory::SEQ;
use crate::event::Event;
use crate::summary::Damage;

/// Maximum length of a line; longer ones count as damaged.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Appends the JSON of a value. All lines are written with this function, because each type of
/// writer would be compiled separately.
pub(crate) fn json_onto(out: &mut Vec<u8>, value: &impl Serialize) -> serde_json::Result<()> {
    serde_json::to_writer(out, value)
}

/// The numbers of the lines read so far, in any order.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// One past the largest number.
    next: u64,
    /// The gaps below it: the first missing number, and one past the last.
    gaps: BTreeMap<u64, u64>,
}

/// Maximum number of gaps. In a file with more, later lines count as duplicates.
const GAPS_MAX: usize = 10_000;

impl Numbers {
    /// Whether this is the first line with the number.
    pub(crate) fn is_new(&mut self, number: u64) -> bool {
        let next = self.next.max(1);
        if number >= next {
            if number > next && self.gaps.len() < GAPS_MAX {
                self.gaps.insert(next, number);
            }
            self.next = number.saturating_add(1);
            return true;
        }
        let gap = self.gaps.range(..=number).next_back().map(|(from, to)| (*from, *to));
        let Some((from, to)) = gap.filter(|(_, to)| number < *to) else { return false };
        self.gaps.remove(&from);
        for (from, to) in [(from, number), (number + 1, to)] {
            if from < to {
                self.gaps.insert(from, to);
            }
        }
        true
    }

    /// The number of missing lines, up to `last`.
    pub(crate) fn missing(&self, last: Option<u64>) -> u64 {
        let gaps: u64 = self.gaps.iter().map(|(from, to)| to - from).sum();
        let tail = last.map_or(0, |last| (last + 1).saturating_sub(self.next.max(1)));
        gaps.saturating_add(tail)
    }
}

/// Iterates over the records of a file.
pub struct Records<T> {
    input: Box<dyn BufRead>,
    pub(crate) line: Vec<u8>,
    accepted: Accepted,
    /// Damage in the lines read so far.
    pub damage: Damage,
    kind: PhantomData<T>,
}

impl<T> Records<T> {
    pub(crate) fn new(input: Box<dyn BufRead>) -> Records<T> {
        Records::behind(input, 0)
    }

    /// Only lines with a number above `last`.
    pub(crate) fn behind(input: Box<dyn BufRead>, last: u64) -> Records<T> {
        Records {
            input,
            line: Vec::new(),
            accepted: Accepted::behind(last),
            damage: Damage::default(),
            kind: PhantomData,
        }
    }

    /// Whether no line is missing, duplicate or damaged.
    pub(crate) fn is_whole(&self) -> bool {
        self.damage == Damage::default() && self.accepted.numbers.missing(None) == 0
    }

    pub(crate) fn last_number(&self) -> u64 {
        self.accepted.numbers.next.saturating_sub(1)
    }

    /// The numbers of the lines read so far.
    pub(crate) fn numbers(&self) -> &Numbers {
        &self.accepted.numbers
    }

    /// The text of the next line; lines that are too long are skipped.
    pub(crate) fn next_text(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.next_line()? {
                Line::TooLong => {}
                Line::Whole | Line::Last => return Some(std::mem::take(&mut self.line)),
            }
        }
    }

    /// Reads the next line without its line break. `None` at the end of the readable data.
    fn next_line(&mut self) -> Option<Line> {
        self.line.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        match self.input.by_ref().take(limit).read_until(b'\n', &mut self.line) {
            Ok(0) => None,
            Ok(_) if self.line.last() == Some(&b'\n') => {
                self.line.pop();
                Some(Line::Whole)
            }
            Ok(length) if length as u64 == limit => {
                self.input.skip_until(b'\n').ok()?;
                Some(Line::TooLong)
            }
            Ok(_) => Some(Line::Last),
            Err(_) => {
                self.damage.unreadable += 1;
                None
            }
        }
    }
}

enum Line {
    Whole,
    TooLong,
    /// Without a line break.
    Last,
}

impl<T: DeserializeOwned + Plausible> Iterator for Records<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            let line = self.next_line()?;
            if self.line.is_empty() {
                continue;
            }
            let parsed = match line {
                Line::Whole | Line::Last => Parsed::<T>::of(&self.line),
                Line::TooLong => None,
            };
            match parsed.map_or(Err(Refused::Unreadable), |parsed| self.accepted.take(parsed)) {
                Ok(parsed) => {
                    let unequal = parsed.number.is_some() && !parsed.record.is_equal();
                    self.damage.unequal += u64::from(unequal);
                    return Some(parsed.record);
                }
                Err(Refused::Doubled) => self.damage.doubled += 1,
                Err(Refused::Unreadable) if matches!(line, Line::Last) => self.damage.torn = true,
                Err(Refused::Unreadable) => self.damage.unreadable += 1,
            }
        }
    }
}

/// The content of a line, independent of other lines.
pub(crate) struct Parsed<T> {
    pub(crate) record: T,
    number: Option<u64>,
    weight: u64,
}

impl<T: DeserializeOwned + Plausible> Parsed<T> {
    /// `None` if the line is unreadable or its values are impossible.
    pub(crate) fn of(line: &[u8]) -> Option<Parsed<T>> {
        let record = numbers_fit(line).then(|| serde_json::from_slice::<T>(line).ok()).flatten()?;
        let weight = record.weight()?;
        Some(Parsed { record, number: number(line), weight })
    }
}

/// Decides which lines count, in the order of reading.
pub(crate) struct Accepted {
    budget: Budget,
    numbers: Numbers,
}

/// The reason that a line does not count.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is unreadable, or impossible together with earlier lines.
    Unreadable,
    /// Its number occurred before.
    Doubled,
}

impl Accepted {
    /// Only lines with a number above `last`.
    pub(crate) fn behind(last: u64) -> Accepted {
        let numbers = Numbers { next: last + 1, gaps: BTreeMap::new() };
        Accepted { budget: Budget::default(), numbers }
    }

    pub(crate) fn take<T>(&mut self, parsed: Parsed<T>) -> Result<Parsed<T>, Refused> {
        match parsed.number {
            _ if !self.budget.take(parsed.weight) => Err(Refused::Unreadable),
            Some(number) if !self.numbers.is_new(number) => Err(Refused::Doubled),
            _ => Ok(parsed),
        }
    }
}

/// The number of a line; lines of older versions have none.
pub(crate) fn number(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        seq: Option<u64>,
    }
    // Fast path for lines as written by throng; edited lines are parsed.
    let rest = line.strip_prefix(b"{\"").and_then(|rest| rest.strip_prefix(SEQ.as_bytes()));
    let rest = rest.and_then(|rest| rest.strip_prefix(b"\":"));
    let digits = rest.and_then(|rest| rest.split(|byte| !byte.is_ascii_digit()).next());
    let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    // Sums by minute have no number.
    let is_sum = line.starts_with(b"{\"second\":");
    number
        .or_else(|| if is_sum { None } else { serde_json::from_slice::<Numbered>(line).ok()?.seq })
}

/// Whether the sum of all integers in a line fits into 63 bits, so that no sum can overflow during
/// decoding. Digits within strings do not count.
pub(crate) fn numbers_fit(line: &[u8]) -> bool {
    let (mut sum, mut number) = (0u64, 0u64);
    let (mut in_text, mut escaped) = (false, false);
    for byte in line {
        let ends = *byte == b'"' && !escaped;
        escaped = in_text && *byte == b'\\' && !escaped;
        in_text ^= ends;
        if byte.is_ascii_digit() && !in_text {
            number = number.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
        } else {
            sum = sum.saturating_add(number);
            number = 0;
        }
    }
    sum.saturating_add(number) < 1 << 63
}

/// How much all counters may still grow without an overflow.
struct Budget(u64);

impl Default for Budget {
    fn default() -> Budget {
        Budget(1 << 62)
    }
}

impl Budget {
    fn take(&mut self, weight: u64) -> bool {
        match self.0.checked_sub(weight) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

/// Whether a record is possible by itself.
pub(crate) trait Plausible {
    /// How much the record increases sums; `None` if it is impossible.
    fn weight(&self) -> Option<u64>;

    /// Whether its sums match their parts.
    fn is_equal(&self) -> bool {
        true
    }
}

impl Plausible for Event {
    fn weight(&self) -> Option<u64> {
        Some(0)
    }
}

impl Plausible for Interval {
    fn weight(&self) -> Option<u64> {
        let step = |row: &StepInterval| row.ok_after <= row.ok && row.ok <= row.count;
        let parts_fit = self.steps.iter().all(step)
            && self.parts.targets.iter().all(|row| row.ok <= row.count)
            && self.parts.instances.iter().all(|row| row.failed <= row.count);
        (parts_fit && self.is_sound()).then(|| Merge::weight(self))
    }

    fn is_equal(&self) -> bool {
        let failed = |step: &StepInterval| Merge::weight(&step.errors);
        self.steps.iter().all(|step| step.count == step.ok.saturating_add(failed(step)))
    }
}
