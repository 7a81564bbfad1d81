//! permessage-deflate (RFC 7692) without context takeover.
//!
//! One [`Inflater`] and one [`Deflater`] serve all connections of a shard, because no message
//! refers to an earlier one; so an idle connection owns neither.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::error::WebSocketError;
use super::frame::{Opcode, write_frame};

/// Messages shorter than this are sent as they are: compression would gain nothing worth its time.
pub const DEFLATE_BYTES_MIN: usize = 128;

/// What a sync flush ends with and a message leaves out (RFC 7692, 7.2.1).
const TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];
/// An empty last block. Only after a message that is not cut does it end the stream.
const LAST_BLOCK: [u8; 5] = [0x01, 0x00, 0x00, 0xff, 0xff];
/// The first output buffer. When it is too small the message is inflated anew into a larger one,
/// up to the limit of a message.
const OUTPUT_BYTES_MIN: usize = 16 * 1024;
const OUTPUT_GROWTH: usize = 4;
/// How many blocks of a message may be marked as the last one. After each the decompressor is
/// reset, so a message of nothing else would cost a thousand times what it should.
const LAST_BLOCKS_MAX: usize = 16;
/// What an output buffer may keep between two messages.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Inflates messages, one after the other. Owns no memory before its first message.
#[derive(Debug, Default)]
pub struct Inflater {
    raw: Option<Decompress>,
    /// The payload with its tail put back.
    input: Vec<u8>,
    /// All initialised; the message fills a first part of it.
    output: Vec<u8>,
}

/// How an attempt to inflate a message ended.
enum Attempt {
    Whole { bytes: usize },
    OutputFull,
    Broken,
}

impl Inflater {
    pub fn new() -> Inflater {
        Inflater::default()
    }

    /// The memory that the buffers take now; the decompressor has some 40 KiB beside them.
    pub fn heap_bytes(&self) -> usize {
        self.input.capacity() + self.output.capacity()
    }

    /// Inflates one message, which may become `limit` bytes long and not one longer.
    ///
    /// An empty payload is taken for an empty message, as other implementations do.
    pub fn inflate(&mut self, payload: &[u8], limit: usize) -> Result<&[u8], WebSocketError> {
        if payload.is_empty() {
            return Ok(&[]);
        }
        trim(&mut self.input);
        trim(&mut self.output);
        self.input.clear();
        for part in [payload, &TAIL, &LAST_BLOCK] {
            self.input.extend_from_slice(part);
        }
        // One byte beyond the limit shows that the message goes beyond it.
        let room_max = limit.saturating_add(1);
        let mut room = self.output.len().max(OUTPUT_BYTES_MIN).min(room_max);
        loop {
            if self.output.len() < room {
                self.output.reserve_exact(room - self.output.len());
                self.output.resize(room, 0);
            }
            match self.attempt(payload.len(), room) {
                Attempt::Whole { bytes } if bytes <= limit => return Ok(&self.output[..bytes]),
                Attempt::Broken => return Err(WebSocketError::CompressionBroken),
                Attempt::OutputFull if room < room_max => {
                    room = room.saturating_mul(OUTPUT_GROWTH).min(room_max);
                }
                Attempt::Whole { .. } | Attempt::OutputFull => {
                    let limit = limit as u64;
                    return Err(WebSocketError::MessageTooLarge {
                        size: limit.saturating_add(1),
                        limit,
                    });
                }
            }
        }
    }

    /// Inflates the input from its start into the first `room` bytes of the output.
    ///
    /// All in one go, because only so the decompressor refuses a message that refers to the one
    /// before it; piece by piece it would read whatever its window holds.
    fn attempt(&mut self, payload_bytes: usize, room: usize) -> Attempt {
        let raw = self.raw.get_or_insert_with(|| Decompress::new(false));
        let (mut taken, mut filled) = (0, 0);
        for _ in 0..=LAST_BLOCKS_MAX {
            raw.reset(false);
            let output = &mut self.output[filled..room];
            let status = raw.decompress(&self.input[taken..], output, FlushDecompress::Finish);
            taken += raw.total_in() as usize;
            filled += raw.total_out() as usize;
            match status {
                Err(_) => return Attempt::Broken,
                // A block marked as the last one may end the message early (RFC 7692, 7.2.3.4).
                // What follows it begins a new stream; usually that is our own last block.
                Ok(Status::StreamEnd) if taken == payload_bytes || taken == self.input.len() => {
                    return Attempt::Whole { bytes: filled };
                }
                Ok(Status::StreamEnd) if raw.total_in() > 0 => {}
                Ok(_) if filled == room => return Attempt::OutputFull,
                Ok(_) => return Attempt::Broken,
            }
        }
        Attempt::Broken
    }
}

/// Compresses messages, one after the other. Owns no memory before its first message.
#[derive(Debug)]
pub struct Deflater {
    raw: Option<Compress>,
    level: Compression,
    output: Vec<u8>,
}

impl Default for Deflater {
    fn default() -> Deflater {
        Deflater::new(Compression::default().level())
    }
}

impl Deflater {
    /// `level` goes from 1, fast, to 9, small.
    pub fn new(level: u32) -> Deflater {
        let level = Compression::new(level.clamp(1, 9));
        Deflater { raw: None, level, output: Vec::new() }
    }

    /// The payload of a compressed message (RFC 7692, 7.2.1); `None` when the compressor fails.
    pub fn deflate(&mut self, payload: &[u8]) -> Option<&[u8]> {
        let level = self.level;
        let raw = self.raw.get_or_insert_with(|| Compress::new(level, false));
        raw.reset();
        trim(&mut self.output);
        let output = &mut self.output;
        let bound = payload.len() + payload.len() / 1024 + 64;
        if output.len() < bound {
            output.resize(bound, 0);
        }
        let (mut taken, mut filled) = (0, 0);
        loop {
            raw.compress(&payload[taken..], &mut output[filled..], FlushCompress::Sync).ok()?;
            taken = raw.total_in() as usize;
            filled = raw.total_out() as usize;
            // Only room that is left over shows that the flush is complete.
            if taken == payload.len() && filled < output.len() {
                break;
            }
            output.resize(output.len() * 2, 0);
        }
        let written = &output[..filled];
        Some(written.strip_suffix(&TAIL).unwrap_or(written))
    }
}

/// Appends a message as one compressed frame, or as it is when that is not longer or the message
/// is shorter than [`DEFLATE_BYTES_MIN`].
pub fn write_message_deflated(
    out: &mut Vec<u8>,
    opcode: Opcode,
    mask: Option<[u8; 4]>,
    payload: &[u8],
    deflater: &mut Deflater,
) {
    if payload.len() >= DEFLATE_BYTES_MIN {
        let deflated = deflater.deflate(payload);
        if let Some(deflated) = deflated.filter(|deflated| deflated.len() < payload.len()) {
            return write_frame(out, opcode, true, true, mask, deflated);
        }
    }
    write_frame(out, opcode, true, false, mask, payload);
}

/// Gives back the memory of an exceptional message.
fn trim(output: &mut Vec<u8>) {
    if output.len() > KEPT_BYTES_MAX {
        output.truncate(KEPT_BYTES_MAX);
        output.shrink_to(KEPT_BYTES_MAX);
    }
}
