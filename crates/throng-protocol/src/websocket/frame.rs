//! The frame of RFC 6455, section 5: its header, its mask, and how it is written.
//!
//! The reader assembles messages from frames.

use super::error::WebSocketError;

/// The longest payload of a control frame (RFC 6455, 5.5).
pub const CONTROL_PAYLOAD_BYTES_MAX: usize = 125;
/// The longest frame header: two bytes, a length of eight, a mask of four.
pub const HEADER_BYTES_MAX: usize = 14;
/// Room for the reason in a close frame, after the code.
pub const CLOSE_REASON_BYTES_MAX: usize = CONTROL_PAYLOAD_BYTES_MAX - 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    pub fn is_control(self) -> bool {
        self as u8 >= 8
    }

    fn from_bits(bits: u8) -> Option<Opcode> {
        Some(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }
}

/// Appends one frame. It writes whatever is requested, even if the RFC forbids it: a test of a
/// target may need that.
pub fn write_frame(
    out: &mut Vec<u8>,
    opcode: Opcode,
    fin: bool,
    compressed: bool,
    mask: Option<[u8; 4]>,
    payload: &[u8],
) {
    out.reserve(HEADER_BYTES_MAX + payload.len());
    out.push(u8::from(fin) << 7 | u8::from(compressed) << 6 | opcode as u8);
    let masked = u8::from(mask.is_some()) << 7;
    match payload.len() {
        length @ 0..126 => out.push(masked | length as u8),
        length @ 126..0x1_0000 => {
            out.push(masked | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(masked | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(mask.as_ref().map_or(&[], |mask| &mask[..]));
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(mask) = mask {
        apply_mask(&mut out[start..], mask, 0);
    }
}

/// Appends a close frame. A reason longer than [`CLOSE_REASON_BYTES_MAX`] is truncated between two
/// characters; without a code there is no reason (RFC 6455, 5.5.1).
pub fn write_close(out: &mut Vec<u8>, code: Option<u16>, reason: &str, mask: Option<[u8; 4]>) {
    let mut payload = [0; CONTROL_PAYLOAD_BYTES_MAX];
    let mut length = 0;
    if let Some(code) = code {
        let reason = &reason[..reason.floor_char_boundary(CLOSE_REASON_BYTES_MAX)];
        length = 2 + reason.len();
        payload[..2].copy_from_slice(&code.to_be_bytes());
        payload[2..length].copy_from_slice(reason.as_bytes());
    }
    write_frame(out, Opcode::Close, true, false, mask, &payload[..length]);
}

/// Masks or unmasks in place; `offset` is the position of `bytes` in the frame's payload.
pub fn apply_mask(bytes: &mut [u8], mask: [u8; 4], offset: u64) {
    let turn = (offset % 4) as usize;
    let mask: [u8; 8] = std::array::from_fn(|index| mask[(index + turn) % 4]);
    let wide = u64::from_ne_bytes(mask);
    let mut chunks = bytes.chunks_exact_mut(8);
    for chunk in &mut chunks {
        if let Ok(word) = <&mut [u8; 8]>::try_from(chunk) {
            *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
        }
    }
    for (byte, mask) in chunks.into_remainder().iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

/// A valid frame header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) opcode: Opcode,
    pub(super) fin: bool,
    pub(super) compressed: bool,
    pub(super) mask: Option<[u8; 4]>,
    pub(super) payload_bytes: u64,
    pub(super) header_bytes: usize,
}

/// The context that decides whether a header is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    pub(super) masked: bool,
    pub(super) deflate: bool,
    /// The size of the unfinished message, if there is one.
    pub(super) message_bytes: Option<usize>,
    pub(super) frame_bytes_max: u64,
    pub(super) message_bytes_max: usize,
}

impl Header {
    /// Reads the header at the start of `bytes`; `None` if it is incomplete. Rules are checked in
    /// the order of the bytes, so that errors are found early and do not depend on how the stream
    /// is split.
    pub(super) fn parse(
        bytes: &[u8],
        situation: &Situation,
    ) -> Result<Option<Header>, WebSocketError> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let (opcode, fin, compressed) = check_first_byte(first, situation)?;
        let Some(&second) = bytes.get(1) else { return Ok(None) };
        let masked = second & 0x80 != 0;
        match (masked, situation.masked) {
            (true, false) => return Err(WebSocketError::Masked),
            (false, true) => return Err(WebSocketError::NotMasked),
            _ => {}
        }
        let short = u64::from(second & 0x7f);
        if opcode.is_control() && short > CONTROL_PAYLOAD_BYTES_MAX as u64 {
            return Err(WebSocketError::ControlTooLong(short));
        }
        let Some((payload_bytes, at)) = read_length(short, &bytes[2..])? else { return Ok(None) };
        if !opcode.is_control() {
            check_limits(payload_bytes, situation)?;
        }
        let mut header_bytes = 2 + at;
        let mut mask = None;
        if masked {
            let Some(key) = bytes[header_bytes..].first_chunk::<4>() else { return Ok(None) };
            mask = Some(*key);
            header_bytes += 4;
        }
        Ok(Some(Header { opcode, fin, compressed, mask, payload_bytes, header_bytes }))
    }
}

fn check_first_byte(
    first: u8,
    situation: &Situation,
) -> Result<(Opcode, bool, bool), WebSocketError> {
    let fin = first & 0x80 != 0;
    let reserved = first >> 4 & 0b111;
    let opcode =
        Opcode::from_bits(first & 0x0f).ok_or(WebSocketError::ReservedOpcode(first & 0x0f))?;
    // RSV1 marks only the first frame of a compressed message (RFC 7692, 6).
    let may_be_compressed = situation.deflate && matches!(opcode, Opcode::Text | Opcode::Binary);
    if reserved & 0b011 != 0 || (reserved != 0 && !may_be_compressed) {
        return Err(WebSocketError::ReservedBits(reserved));
    }
    match (opcode, situation.message_bytes) {
        (Opcode::Continuation, None) => Err(WebSocketError::ContinuationWithoutStart),
        (Opcode::Text | Opcode::Binary, Some(_)) => Err(WebSocketError::MessageInsideMessage),
        _ if opcode.is_control() && !fin => Err(WebSocketError::ControlFragmented),
        _ => Ok((opcode, fin, reserved != 0)),
    }
}

/// The payload's length, and how many bytes after the second one encode it.
fn read_length(short: u64, rest: &[u8]) -> Result<Option<(u64, usize)>, WebSocketError> {
    let (length, bytes, shorter_max) = match short {
        126 => {
            let Some(length) = rest.first_chunk::<2>() else { return Ok(None) };
            (u64::from(u16::from_be_bytes(*length)), 2, 125)
        }
        127 => {
            let Some(length) = rest.first_chunk::<8>() else { return Ok(None) };
            (u64::from_be_bytes(*length), 8, 0xffff)
        }
        _ => return Ok(Some((short, 0))),
    };
    if length >> 63 != 0 {
        return Err(WebSocketError::LengthTooLarge);
    }
    if length <= shorter_max {
        return Err(WebSocketError::LengthNotMinimal(length));
    }
    Ok(Some((length, bytes)))
}

fn check_limits(payload_bytes: u64, situation: &Situation) -> Result<(), WebSocketError> {
    if payload_bytes > situation.frame_bytes_max {
        let limit = situation.frame_bytes_max;
        return Err(WebSocketError::FrameTooLarge { size: payload_bytes, limit });
    }
    let size = payload_bytes + situation.message_bytes.unwrap_or(0) as u64;
    let limit = situation.message_bytes_max as u64;
    if size > limit {
        return Err(WebSocketError::MessageTooLarge { size, limit });
    }
    Ok(())
}
