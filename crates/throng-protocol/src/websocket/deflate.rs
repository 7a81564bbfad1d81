//! permessage-deflate (RFC 7692).
//!
//! One [`Inflater`] and one [`Deflater`] serve all connections of a shard. Our messages refer to no
//! earlier ones. If messages of the peer do, a connection keeps their last bytes; otherwise an idle
//! connection owns nothing.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::agreement::WINDOW_BITS_MAX;
use super::error::WebSocketError;
use super::frame::{Opcode, write_frame};

/// Shorter messages are sent uncompressed: the gain would not be worth the time.
pub const DEFLATE_BYTES_MIN: usize = 128;

/// The end of a sync flush, which a message omits (RFC 7692, 7.2.1).
const TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];
/// An empty last block. It ends the stream only after a complete message.
const LAST_BLOCK: [u8; 5] = [0x01, 0x00, 0x00, 0xff, 0xff];
/// The initial output buffer. If it is too small, the message is inflated again into a larger one,
/// up to the limit of a message.
const OUTPUT_BYTES_MIN: usize = 16 * 1024;
const OUTPUT_GROWTH: usize = 4;
/// How many blocks of a message may be marked as the last one. After each, the decompressor is
/// reset, so a message of only such blocks would cost a thousand times as much.
const LAST_BLOCKS_MAX: usize = 16;
/// The header of a stored block: its type and its length, twice (RFC 1951, 3.2.4).
const STORED_HEADER_BYTES: usize = 5;
/// Capacity that an output buffer keeps between two messages.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Inflates messages, one after another. Allocates nothing before its first message.
#[derive(Debug, Default)]
pub struct Inflater {
    raw: Option<Decompress>,
    /// The data that the message may refer to, and the payload with its tail restored.
    input: Vec<u8>,
    /// All initialized; first the data that the message may refer to, then the message.
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

    /// The current size of the buffers; the decompressor takes some 40 KiB in addition.
    pub fn heap_bytes(&self) -> usize {
        self.input.capacity() + self.output.capacity()
    }

    /// Inflates one message of at most `limit` bytes. It may refer to the `history`: at most 32 KiB
    /// of earlier inflated data of its connection.
    ///
    /// An empty payload counts as an empty message, as in other implementations.
    pub fn inflate(
        &mut self,
        payload: &[u8],
        history: &[u8],
        limit: usize,
    ) -> Result<&[u8], WebSocketError> {
        if payload.is_empty() {
            return Ok(&[]);
        }
        self.load(payload, history);
        let message_start = history.len();
        // One extra byte shows that the message exceeds the limit.
        let room_max = limit.saturating_add(1).saturating_add(message_start);
        let mut room = self.output.len().max(OUTPUT_BYTES_MIN + message_start).min(room_max);
        loop {
            if self.output.len() < room {
                self.output.reserve_exact(room - self.output.len());
                self.output.resize(room, 0);
            }
            match self.attempt(room) {
                Attempt::Whole { bytes } if bytes - message_start <= limit => {
                    return Ok(&self.output[message_start..bytes]);
                }
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

    /// Puts the history before the message as a stored block, which any decompressor reads into its
    /// window.
    fn load(&mut self, payload: &[u8], history: &[u8]) {
        trim(&mut self.input);
        trim(&mut self.output);
        self.input.clear();
        if let (Ok(length), false) = (u16::try_from(history.len()), history.is_empty()) {
            let ([low, high], [not_low, not_high]) =
                (length.to_le_bytes(), (!length).to_le_bytes());
            let header: [u8; STORED_HEADER_BYTES] = [0, low, high, not_low, not_high];
            self.input.extend_from_slice(&header);
            self.input.extend_from_slice(history);
        }
        for part in [payload, &TAIL, &LAST_BLOCK] {
            self.input.extend_from_slice(part);
        }
    }

    /// Inflates the input from its start into the first `room` bytes of the output.
    ///
    /// In one step, because only then the decompressor rejects a message that refers to data before
    /// its start; piece by piece, it would read whatever its window contains.
    fn attempt(&mut self, room: usize) -> Attempt {
        let payload_end = self.input.len() - TAIL.len() - LAST_BLOCK.len();
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
                // What follows starts a new stream; usually that is our own last block.
                Ok(Status::StreamEnd) if taken == payload_end || taken == self.input.len() => {
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

/// Compresses messages, one after another. Allocates nothing before its first message.
#[derive(Debug, Default)]
pub struct Deflater {
    raw: Option<Compress>,
    output: Vec<u8>,
}

impl Deflater {
    /// The payload of a compressed message (RFC 7692, 7.2.1) for a peer with this window, 8 to 15
    /// bits; `None` if the compressor fails.
    ///
    /// References never reach further back than the length of a piece. A message is therefore
    /// compressed in separate pieces of the window's size, and one compressor serves every window.
    pub fn deflate(&mut self, payload: &[u8], window_bits: u8) -> Option<&[u8]> {
        let raw = self.raw.get_or_insert_with(|| Compress::new(Compression::default(), false));
        let piece_bytes_max = match window_bits {
            bits if bits < WINDOW_BITS_MAX => 1 << bits,
            // The compressor respects the largest window by itself.
            _ => payload.len().max(1),
        };
        trim(&mut self.output);
        let mut filled = 0;
        let pieces = payload.chunks(piece_bytes_max).chain(payload.is_empty().then_some(payload));
        for piece in pieces {
            filled = compress_piece(raw, piece, &mut self.output, filled)?;
        }
        let written = &self.output[..filled];
        Some(written.strip_suffix(&TAIL).unwrap_or(written))
    }
}

/// Appends a piece that refers to nothing before it, up to a sync flush, after the `filled` part of
/// the output; returns the new filled length.
fn compress_piece(
    raw: &mut Compress,
    piece: &[u8],
    output: &mut Vec<u8>,
    filled: usize,
) -> Option<usize> {
    raw.reset();
    let bound = filled + piece.len() + piece.len() / 1024 + 64;
    if output.len() < bound {
        output.resize(bound, 0);
    }
    loop {
        let (taken, written) = (raw.total_in() as usize, filled + raw.total_out() as usize);
        raw.compress(&piece[taken..], &mut output[written..], FlushCompress::Sync).ok()?;
        let written = filled + raw.total_out() as usize;
        // Only unused space shows that the flush is complete.
        if raw.total_in() as usize == piece.len() && written < output.len() {
            return Some(written);
        }
        output.resize(output.len() * 2, 0);
    }
}

/// Appends a message as one compressed frame, or uncompressed if that is not longer or the message
/// is shorter than [`DEFLATE_BYTES_MIN`].
pub fn write_message_deflated(
    out: &mut Vec<u8>,
    opcode: Opcode,
    mask: Option<[u8; 4]>,
    payload: &[u8],
    window_bits: u8,
    deflater: &mut Deflater,
) {
    if payload.len() >= DEFLATE_BYTES_MIN {
        let deflated = deflater.deflate(payload, window_bits);
        if let Some(deflated) = deflated.filter(|deflated| deflated.len() < payload.len()) {
            return write_frame(out, opcode, true, true, mask, deflated);
        }
    }
    write_frame(out, opcode, true, false, mask, payload);
}

/// Releases the memory of an exceptionally large message.
fn trim(output: &mut Vec<u8>) {
    if output.len() > KEPT_BYTES_MAX {
        output.truncate(KEPT_BYTES_MAX);
        output.shrink_to(KEPT_BYTES_MAX);
    }
}
