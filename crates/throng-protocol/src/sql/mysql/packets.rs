//! Splits the server's data into packets, and joins those that continue. Only packets that are
//! needed are kept.

use throng_base::Said;

use crate::sql::error::SqlError;

const HEAD_BYTES: usize = 4;

/// A packet of this size continues in the next one.
pub(super) const FULL_BYTES: usize = 0xff_ffff;

/// Capacity that is kept for packets that arrive in pieces.
const HELD_BYTES_MAX: usize = 4 * 1024;

#[derive(Debug, Default)]
pub(super) struct Packets {
    /// The sequence number of the next packet; `None` accepts any.
    pub(super) expects: Option<u8>,
    /// Of the last packet, or of the current one.
    pub(super) head: [u8; HEAD_BYTES],
    /// Bytes of the head that have arrived.
    head_bytes: usize,
    /// Bytes of this part that are missing.
    left: usize,
    /// Size of all parts so far.
    all: usize,
    /// The first byte, and whether the packet is needed.
    first: Option<(u8, bool)>,
    held: Vec<u8>,
}

/// A packet.
pub(super) struct Packet<'p> {
    pub(super) sequence: u8,
    pub(super) first: u8,
    /// Its length.
    pub(super) bytes: usize,
    /// Includes the first byte; empty if the packet is not needed.
    pub(super) body: &'p [u8],
}

impl Packets {
    pub(super) fn expecting(number: u8) -> Packets {
        Packets { expects: Some(number), ..Packets::default() }
    }

    /// Reads the next packet, and calls `take` with it; `None` if it is incomplete. `wants` gets
    /// the first byte and the length.
    pub(super) fn next<T>(
        &mut self,
        input: &mut &[u8],
        bytes_max: usize,
        wants: impl Fn(u8, usize) -> bool,
        take: impl FnOnce(&Packet<'_>) -> T,
    ) -> Result<Option<T>, SqlError> {
        // A complete one is not copied.
        if self.is_between()
            && let Some((head, rest)) = input.split_first_chunk()
            && let Some((body, rest)) = rest.split_at_checked(length(head))
            && body.len() < FULL_BYTES
        {
            self.begin(*head, bytes_max)?;
            self.all = 0;
            *input = rest;
            let &first = body.first().ok_or(SqlError::Packet(&EMPTY))?;
            let bytes = body.len();
            let body = if wants(first, bytes) { body } else { b"" };
            return Ok(Some(take(&Packet { sequence: head[3], first, bytes, body })));
        }
        loop {
            if self.left == 0 {
                let some = input.len().min(HEAD_BYTES - self.head_bytes);
                self.head[self.head_bytes..][..some].copy_from_slice(&input[..some]);
                self.head_bytes += some;
                *input = &input[some..];
                if self.head_bytes < HEAD_BYTES {
                    return Ok(None);
                }
                self.begin(self.head, bytes_max)?;
                self.left = length(&self.head);
            }
            if self.left > 0 && input.is_empty() {
                return Ok(None);
            }
            if self.first.is_none() {
                let &first =
                    input.first().filter(|_| self.left > 0).ok_or(SqlError::Packet(&EMPTY))?;
                self.first = Some((first, wants(first, self.left)));
            }
            let (some, rest) = input.split_at(self.left.min(input.len()));
            *input = rest;
            self.left -= some.len();
            let Some((first, is_wanted)) = self.first else { return Ok(None) };
            if is_wanted {
                self.held.extend_from_slice(some);
            }
            if self.left > 0 {
                return Ok(None);
            }
            self.head_bytes = 0;
            if length(&self.head) == FULL_BYTES {
                continue;
            }
            let (sequence, bytes) = (self.head[3], std::mem::take(&mut self.all));
            self.first = None;
            let taken = take(&Packet { sequence, first, bytes, body: &self.held });
            self.held.clear();
            self.held.shrink_to(HELD_BYTES_MAX);
            return Ok(Some(taken));
        }
    }

    fn begin(&mut self, head: [u8; HEAD_BYTES], bytes_max: usize) -> Result<(), SqlError> {
        self.head = head;
        if self.expects.is_some_and(|expected| head[3] != expected) {
            return Err(SqlError::Packet(&ORDER));
        }
        self.expects = Some(head[3].wrapping_add(1));
        self.all += length(&head);
        match self.all > bytes_max {
            true => Err(SqlError::PacketTooLarge { bytes: self.all, bytes_max }),
            false => Ok(()),
        }
    }

    fn is_between(&self) -> bool {
        self.head_bytes == 0 && self.first.is_none()
    }

    /// Bytes of an incomplete packet.
    pub(super) fn half(&self) -> usize {
        match self.is_between() {
            true => 0,
            false => self.held.len().max(1),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.held.capacity()
    }
}

fn length(head: &[u8; HEAD_BYTES]) -> usize {
    usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16
}

/// Writes a packet with the output of `body`; several if it does not fit into one.
pub(super) fn write_packet(sequence: u8, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let (mut at, mut sequence) = (out.len(), sequence);
    out.extend_from_slice(&[0; HEAD_BYTES]);
    body(out);
    loop {
        let bytes = (out.len() - at - HEAD_BYTES).min(FULL_BYTES);
        let [a, b, c, ..] = (bytes as u32).to_le_bytes();
        out[at..at + HEAD_BYTES].copy_from_slice(&[a, b, c, sequence]);
        if bytes < FULL_BYTES {
            return;
        }
        at += HEAD_BYTES + bytes;
        sequence = sequence.wrapping_add(1);
        out.splice(at..at, [0; HEAD_BYTES]);
    }
}

static EMPTY: Said = say!("the server sent an empty MySQL packet");
static ORDER: Said = say!("the MySQL packets of the server are out of order");
