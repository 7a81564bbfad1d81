//! Cuts what the server sends into messages. Only those that somebody looks at are kept.

use crate::sql::error::SqlError;

/// Kind and length.
const HEAD_BYTES: usize = 5;

/// What is kept of the room for messages that come in pieces.
const HELD_BYTES_MAX: usize = 4 * 1024;

#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The beginning of a message that is not complete.
    held: Vec<u8>,
    /// So many bytes of a message remain that nobody looks at.
    skip: usize,
}

/// A message.
pub(super) struct Frame<'f> {
    pub(super) kind: u8,
    /// Empty of one that nobody looks at: the rest of it may not have come.
    pub(super) body: &'f [u8],
}

impl Frames {
    /// Reads the next message, and calls `take` with it; None where it is not complete.
    pub(super) fn next<T>(
        &mut self,
        input: &mut &[u8],
        bytes_max: usize,
        wants: impl FnOnce(u8) -> bool,
        take: impl FnOnce(Frame<'_>) -> T,
    ) -> Result<Option<T>, SqlError> {
        let skipped = self.skip.min(input.len());
        *input = &input[skipped..];
        self.skip -= skipped;
        if self.skip > 0 || input.is_empty() {
            return Ok(None);
        }
        if self.held.len() < HEAD_BYTES && !self.fill(input, HEAD_BYTES) {
            return Ok(None);
        }
        let head = if self.held.is_empty() { *input } else { &self.held };
        let &[kind, a, b, c, d, ..] = head else { return Ok(None) };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length < 4 {
            return Err(SqlError::Length { kind, length });
        }
        if length > bytes_max {
            return Err(SqlError::TooLarge { kind, bytes: length, bytes_max });
        }
        let all = 1 + length;
        if !wants(kind) {
            if self.held.is_empty() {
                *input = &input[HEAD_BYTES..];
            }
            self.held.clear();
            self.skip = all - HEAD_BYTES;
            return Ok(Some(take(Frame { kind, body: b"" })));
        }
        if !self.fill(input, all) {
            return Ok(None);
        }
        if self.held.is_empty() {
            let (message, rest) = input.split_at(all);
            *input = rest;
            return Ok(Some(take(Frame { kind, body: &message[HEAD_BYTES..] })));
        }
        let taken = take(Frame { kind, body: &self.held[HEAD_BYTES..] });
        self.held.clear();
        self.held.shrink_to(HELD_BYTES_MAX);
        Ok(Some(taken))
    }

    /// Whether so many bytes are there: in the input, or else in what is held.
    fn fill(&mut self, input: &mut &[u8], bytes: usize) -> bool {
        if self.held.is_empty() && input.len() >= bytes {
            return true;
        }
        let lacking = (bytes - self.held.len()).min(input.len());
        let (more, rest) = input.split_at(lacking);
        self.held.extend_from_slice(more);
        *input = rest;
        self.held.len() == bytes
    }

    /// How many bytes of a message have come that is not complete.
    pub(super) fn half(&self) -> usize {
        self.held.len() + usize::from(self.skip > 0)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.held.capacity()
    }
}
