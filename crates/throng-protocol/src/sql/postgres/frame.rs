//! Splits the server's data into messages. Only messages that are needed are kept.

use crate::sql::error::SqlError;

/// Type and length.
const HEAD_BYTES: usize = 5;

/// Capacity that is kept for messages that arrive in pieces.
const HELD_BYTES_MAX: usize = 4 * 1024;

#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The start of an incomplete message.
    held: Vec<u8>,
    /// Remaining bytes of a message that is not needed.
    skip: usize,
}

/// A message.
pub(super) struct Frame<'f> {
    pub(super) kind: u8,
    /// Empty if it is not needed: the rest of it may not have arrived.
    pub(super) body: &'f [u8],
}

impl Frames {
    /// Reads the next message, and calls `take` with it; `None` if it is incomplete.
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

    /// Whether this many bytes are available, in the input or in what is held.
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

    /// Bytes of an incomplete message.
    pub(super) fn half(&self) -> usize {
        self.held.len() + usize::from(self.skip > 0)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.held.capacity()
    }
}
