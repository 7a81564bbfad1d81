//! Determines the message of a packet from its selecting fields, and the request it answers.

use std::io::Write as _;

use crate::fields::number::read_unsigned;

/// Kinds below this are looked up by their value.
const SMALL_KINDS_MAX: u64 = 1024;

/// The messages that one side sends, and those of the other side that cannot be confused with them.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// The values, sorted, with their messages.
    numbers: Vec<(u64, u16)>,
    /// The same, indexed by value, for small values.
    small: Vec<Option<u16>>,
    /// The texts with their terminators, sorted; none is a prefix of another.
    texts: Vec<(Box<[u8]>, u16)>,
}

impl Kinds {
    /// Adds a message, unless this value is taken.
    pub(super) fn add_number(&mut self, raw: u64, message: u16) {
        if let Err(at) = self.numbers.binary_search_by_key(&raw, |(kind, _)| *kind) {
            self.numbers.insert(at, (raw, message));
        }
    }

    /// Adds a message, unless a text is a prefix of the other.
    pub(super) fn add_text(&mut self, text: &[u8], message: u16) {
        if self.text(text).is_none() && !self.may_become_text(text) {
            let at = self.texts.partition_point(|(other, _)| **other < *text);
            self.texts.insert(at, (text.into(), message));
        }
    }

    /// All messages are added.
    pub(super) fn complete(&mut self) {
        for (raw, message) in self.numbers.iter().take_while(|(raw, _)| *raw < SMALL_KINDS_MAX) {
            self.small.resize(*raw as usize, None);
            self.small.push(Some(*message));
        }
    }

    #[inline]
    pub(super) fn number(&self, raw: u64) -> Option<u16> {
        if let Some(kind) = self.small.get(raw as usize) {
            return *kind;
        }
        let at = self.numbers.binary_search_by_key(&raw, |(kind, _)| *kind).ok()?;
        Some(self.numbers[at].1)
    }

    /// The message whose text the bytes start with.
    pub(super) fn text(&self, bytes: &[u8]) -> Option<u16> {
        let behind = self.texts.partition_point(|(text, _)| **text <= *bytes);
        let (text, message) = self.texts.get(behind.checked_sub(1)?)?;
        bytes.starts_with(text).then_some(*message)
    }

    /// Whether the bytes are a prefix of some text.
    pub(super) fn may_become_text(&self, bytes: &[u8]) -> bool {
        let at = self.texts.partition_point(|(text, _)| **text < *bytes);
        self.texts.get(at).is_some_and(|(text, _)| text.starts_with(bytes))
    }
}

/// The number of a correlating text: the one that throng wrote, or one that throng never writes,
/// unique to the text.
pub(super) fn number_of_text(text: &[u8]) -> u64 {
    let is_number = !text.starts_with(b"0") && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|text| is_number && text.len() < 11);
    number.and_then(|text| text.parse().ok()).unwrap_or_else(|| foreign(text))
}

/// The same for a BER or DER integer.
pub(super) fn number_of_integer(bytes: &[u8]) -> u64 {
    match bytes {
        [0..0x80, ..] if bytes.len() <= 5 => read_unsigned(bytes, false),
        _ => foreign(bytes),
    }
}

/// FNV-1a, with the highest bit set.
fn foreign(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash | 1 << 63
}

/// Writes a correlating number: in decimal digits, or as a BER or DER integer (X.690, 8.3) of
/// minimal length.
pub(super) fn write_correlation(number: u64, is_text: bool, out: &mut Vec<u8>) {
    if is_text {
        // Writing to memory does not fail.
        let _ = write!(out, "{number}");
        return;
    }
    if number.leading_zeros().is_multiple_of(8) {
        out.push(0);
    }
    out.extend_from_slice(&number.to_be_bytes()[number.leading_zeros() as usize / 8..]);
}
